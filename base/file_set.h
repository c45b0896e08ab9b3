// The files of one command, each with a description. Ensures that no output overwrites an input
// or another output.
//
//     struct msc_file_set files = {0};
//     MSC_TRY_OUT(msc_file_set_read(&files, "the model", "digits.onnx"));
//     MSC_TRY_OUT(msc_file_set_write(&files, "the output", "small.onnx")); // no input
//     ... long work ...
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

// Adds a file that is read. Two paths name the same file if, after links are resolved, they lead to
// the same existing file or to the same absent one. Strings are copied. The file need not exist.
// NULL is ignored.
enum msc_status msc_file_set_read(struct msc_file_set *set, const char *what, const char *path);
// Adds a file that is written. MSC_E_INVALID if the set already has this file; the message names
// both. NULL is ignored.
enum msc_status msc_file_set_write(struct msc_file_set *set, const char *what, const char *path);
// The path of the i-th file, as given; NULL past the last.
const char *msc_file_set_path(const struct msc_file_set *set, size_t i);
// Hashes the contents of all files that are read, in order. The contents of a file are its bytes;
// the contents of a folder are the names and bytes of its files. A missing file also affects the
// hash. Paths do not affect it.
enum msc_status msc_file_set_hash(struct msc_hash *out, const struct msc_file_set *set);
void msc_file_set_finish(struct msc_file_set *set); // accepts a zeroed set

#endif
