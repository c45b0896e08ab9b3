// numpy's .npy (format versions 1.0, 2.0, 3.0) and .npz (a zip of .npy, stored or deflated).
//
// File: "\x93NUMPY", major, minor, little-endian header length (u16, from version 2 u32), a Python
// dict literal {'descr', 'fortran_order', 'shape'} padded to 64 bytes, then the elements.
// Big-endian and Fortran-ordered files are converted; object and string arrays are rejected.
#ifndef MSC_DATA_NPY_H
#define MSC_DATA_NPY_H

#include "data/array.h"

MSC_PUBLIC_BEGIN

enum msc_status msc_npy_load(struct msc_array **out, const char *path);
// Saves the array as version 1.0 in C order. The file ends up complete or absent. bfloat16 is saved
// as float32.
enum msc_status msc_npy_save(const char *path, const struct msc_array *array);

// Named arrays in file order.
struct msc_array_list {
    char **names;
    struct msc_array **arrays;
    size_t n;
    size_t names_capacity, arrays_capacity; // managed by msc_array_list_add
};

// Retains `array` and copies `name`.
enum msc_status msc_array_list_add(struct msc_array_list *list, const char *name,
                                   const struct msc_array *array);
// Finds an array by name, borrowed; NULL if absent.
struct msc_array *msc_array_list_find(const struct msc_array_list *list, const char *name);
void msc_array_list_finish(struct msc_array_list *list);

// Loads every member of a .npz into a zeroed list.
enum msc_status msc_npz_load(struct msc_array_list *out, const char *path);
// Saves without compression. The file ends up complete or absent.
enum msc_status msc_npz_save(const char *path, const struct msc_array_list *list);

MSC_PUBLIC_END

#endif
