// A dense array in memory: type, shape, contiguous elements in C order (last axis fastest).
//
// Arrays are shared by reference count. The creator fills an array before sharing it; after that
// the elements do not change.
//
//     struct msc_array *a;
//     MSC_TRY(msc_array_create(&a, MSC_DTYPE_F32, 2, (const int64_t[]){3, 4}));
//     float *x = msc_array_data(a);              // [3, 4]
//     msc_array_release(a);
#ifndef MSC_DATA_ARRAY_H
#define MSC_DATA_ARRAY_H

#include "base/hash.h"
#include "data/dtype.h"

MSC_PUBLIC_BEGIN

#define MSC_MAX_DIMS 8

struct msc_array;

// Creates an array of zeros. *out has one reference, which the caller owns. MSC_E_INVALID if there
// are more than MSC_MAX_DIMS dims, a dim is negative, or the size overflows.
enum msc_status msc_array_create(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                 const int64_t dims[]);
// Creates an array whose elements the caller sets.
enum msc_status msc_array_create_unset(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                       const int64_t dims[]);
// Creates an array with a copy of `data` (NULL: zeros).
enum msc_status msc_array_create_from(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                      const int64_t dims[], const void *data);
// Creates an array over the caller's memory, which must outlive every reference. The elements have
// the alignment of that memory.
enum msc_status msc_array_create_over(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                      const int64_t dims[], void *data);
// Creates an array over bytes of a file, from `offset` on, which must be a multiple of the element
// size. The elements are read when they are used, and leave memory again when other mapped arrays
// are used (data/mapped.h); they must not be written. The file must not change while the array
// exists. MSC_E_FORMAT: the file is too short.
enum msc_status msc_array_create_mapped(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                        const int64_t dims[], const char *path, uint64_t offset);
// Copies the array and converts every element. Float to integer truncates as in C, but saturates.
enum msc_status msc_array_convert(struct msc_array **out, const struct msc_array *array,
                                  enum msc_dtype dtype);
// Copies rows [first, first + count) of the first axis.
enum msc_status msc_array_rows(struct msc_array **out, const struct msc_array *array, int64_t first,
                               int64_t count);
// Copies indices [first, first + count) of `axis`, which the array must have.
enum msc_status msc_array_slice(struct msc_array **out, const struct msc_array *array, int axis,
                                int64_t first, int64_t count);
// Copies indices [first, first + count) of `axis` of `from` to the indices from `at` on of `to`.
// All other dims and the type must be equal.
void msc_array_place(struct msc_array *to, int64_t at, const struct msc_array *from, int axis,
                     int64_t first, int64_t count);
// Adds a reference to the same array; safe from several threads. Returns `array`.
struct msc_array *msc_array_retain(const struct msc_array *array);
void msc_array_release(struct msc_array *array); // accepts NULL

enum msc_dtype msc_array_dtype(const struct msc_array *array);
int msc_array_n_dims(const struct msc_array *array);
const int64_t *msc_array_dims(const struct msc_array *array);
// a negative axis counts from the end
int64_t msc_array_dim(const struct msc_array *array, int axis);
int64_t msc_array_n_elements(const struct msc_array *array); // 1 for a scalar
size_t msc_array_n_bytes(const struct msc_array *array);
// Never NULL; 64-byte aligned if the array owns its elements.
void *msc_array_data(const struct msc_array *array);
// Element `index` in C order as a double or an integer; works for every type.
double msc_array_get_double(const struct msc_array *array, int64_t index);
int64_t msc_array_get_i64(const struct msc_array *array, int64_t index);
// True if a float represents element `index` exactly.
bool msc_array_fits_float(const struct msc_array *array, int64_t index);
// Hash of type, shape and elements.
struct msc_hash msc_array_hash(const struct msc_array *array);

// Counts a thread's array memory: bytes it allocates minus bytes it frees.
struct msc_array_meter {
    int64_t held_bytes, peak_bytes;
    // Limit for the whole process; 0: no limit. Creating an array that would exceed it fails with
    // MSC_E_NOMEM.
    uint64_t limit_bytes;
    uint64_t unseen_bytes; // bytes allocated since the process's memory was last read
};
// Starts to count the calling thread's arrays in `meter`; NULL stops counting. Returns the previous
// meter.
struct msc_array_meter *msc_array_measure(struct msc_array_meter *meter);

// Product of dims. -1 if a dim is negative, or if the product of the non-zero dims overflows; so
// strides always fit.
int64_t msc_dims_product(int n_dims, const int64_t dims[]);
// Writes dims such as "[1,3,224,224]" into `text`; returns `text`.
#define MSC_DIMS_TEXT_BYTES 192
const char *msc_dims_format(char text[MSC_DIMS_TEXT_BYTES], int n_dims, const int64_t dims[]);

MSC_PUBLIC_END

#endif
