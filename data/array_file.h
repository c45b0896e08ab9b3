// Writes named arrays to a .npz or .safetensors file, in pieces and in any order. The file ends up
// complete or absent. Only the names are held in memory.
//
//     const struct msc_array_form forms[] = {{"conv1", MSC_DTYPE_F32, 2, {1000, 64}}};
//     MSC_TRY(msc_array_file_begin(&file, MSC_ARRAY_FILE_NPZ, "out.npz", forms, 1));
//     MSC_TRY_OUT(msc_array_file_put(file, 0, sample * 64, values, 64));
//     status = msc_array_file_commit(file);
// out:
//     msc_array_file_close(file);
//
// A .npz is a zip archive of stored .npy members with 64-bit sizes (PKWARE's APPNOTE 6.3, 4.3 and
// 4.5.3), as numpy writes it. Equal arrays give equal files.
#ifndef MSC_DATA_ARRAY_FILE_H
#define MSC_DATA_ARRAY_FILE_H

#include "base/alloc.h"
#include "data/array.h"

MSC_PUBLIC_BEGIN

struct msc_array_file;
struct msc_array_list;

enum msc_array_file_kind { MSC_ARRAY_FILE_NONE, MSC_ARRAY_FILE_NPZ, MSC_ARRAY_FILE_SAFETENSORS };

struct msc_array_form {
    const char *name;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};

// Fills in the form of an array; the name is borrowed.
void msc_array_form_of(struct msc_array_form *out, const char *name, const struct msc_array *array);

// The kind that the path's ending selects: .npz or .safetensors.
enum msc_array_file_kind msc_array_file_kind_of(const char *path);
// Loads all arrays of a .npz or .safetensors into a zeroed list. MSC_E_INVALID if the path has
// neither ending.
enum msc_status msc_array_file_load(struct msc_array_list *out, const char *path);
// Reads the names of the arrays in a .npz or .safetensors, without reading the arrays. The list and
// the names are in the arena. MSC_E_FORMAT if the file is of another kind or damaged.
enum msc_status msc_array_file_names(const char ***out, size_t *n, struct msc_arena *arena,
                                     const char *path);
// Begins a file. Names must differ. A .npz stores bfloat16 as float32. All arguments are copied.
// The caller owns *out.
enum msc_status msc_array_file_begin(struct msc_array_file **out, enum msc_array_file_kind kind,
                                     const char *path, const struct msc_array_form forms[],
                                     size_t n);
// Writes elements [first, first + n) of array `i`, replacing earlier ones. Before the commit, every
// element must be written.
enum msc_status msc_array_file_put(struct msc_array_file *file, size_t i, int64_t first,
                                   const void *elements, int64_t n);
// Completes the file and moves it to `path`.
enum msc_status msc_array_file_commit(struct msc_array_file *file);
uint64_t msc_array_file_bytes(const struct msc_array_file *file); // size of the committed file
// Frees the writer. If the file is not committed, removes everything written. Accepts NULL.
void msc_array_file_close(struct msc_array_file *file);

MSC_PUBLIC_END

#endif
