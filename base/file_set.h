// The files of one command, each with what it is: no output may take the place of an input, nor of
// another output.
//
//     struct msc_file_set files = {0};
//     MSC_TRY_OUT(msc_file_set_read(&files, "the model", "digits.onnx"));
//     MSC_TRY_OUT(msc_file_set_write(&files, "the output", "small.onnx")); // or it is the model
//     ... all that takes long ...
//     msc_file_set_finish(&files);
#ifndef MSC_BASE_FILE_SET_H
#define MSC_BASE_FILE_SET_H

#include "base/alloc.h"
#include "base/hash.h"

struct msc_file_set_item;

struct msc_file_set {
    struct msc_arena arena;
    struct msc_file_set_item *items;
    size_t n, capacity;
};

// Two paths are one file when both lead to the same one, by whatever links, or, where nothing is
// yet, to the same place. Text is copied. A file that is read need not exist; NULL is passed over.
enum msc_status msc_file_set_read(struct msc_file_set *set, const char *what, const char *path);
// MSC_E_INVALID names both: this is a file of the set already. It joins the set. NULL is passed
// over.
enum msc_status msc_file_set_write(struct msc_file_set *set, const char *what, const char *path);
// The path of the i-th file, as it was given; NULL: there are no more.
const char *msc_file_set_path(const struct msc_file_set *set, size_t i);
// Of the contents of all that is read, in its order: of a file's bytes, of a folder's files with their
// names, of what is not there that it is not. Where they lie does not count.
enum msc_status msc_file_set_hash(struct msc_hash *out, const struct msc_file_set *set);
void msc_file_set_finish(struct msc_file_set *set); // accepts a zeroed one

#endif
