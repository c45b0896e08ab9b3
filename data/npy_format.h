// Reads and formats a .npy, which is either a file or a member of a .npz. Internal to data/.
#ifndef MSC_DATA_NPY_FORMAT_H
#define MSC_DATA_NPY_FORMAT_H

#include "base/alloc.h"
#include "data/array.h"
#include "data/array_pick.h"
#include "data/stream.h"

struct msc_npy_header {
    enum msc_dtype dtype;
    bool is_big_endian;
    bool is_fortran_order;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    size_t n_bytes; // size of the elements
};

// Parses the dict literal `text`, which begins at byte `offset` of the file `name`.
enum msc_status msc_npy__parse_dict(struct msc_npy_header *header, const char *text, size_t length,
                                    size_t offset, const char *name);
// Reads header and elements; the stream must contain nothing else. Allocates no more memory than
// the stream has bytes.
enum msc_status msc_npy__read(struct msc_array **out, struct msc_stream *stream);

// The numpy code of a type, such as "<f4" or "|u1"; NULL if numpy lacks the type.
const char *msc_npy__code(enum msc_dtype dtype);

#define MSC_NPY_HEADER_BYTES 512
// Formats magic number, version, length and dict, padded to 64 bytes. Returns the number of bytes.
size_t msc_npy__format_header(char text[MSC_NPY_HEADER_BYTES], enum msc_dtype dtype, int n_dims,
                              const int64_t dims[]);
// The array in a type that numpy has. Converts bfloat16 to float32; other arrays get a new
// reference.
enum msc_status msc_npy__known_to_numpy(struct msc_array **out, const struct msc_array *array);
// Reads the names of an archive's members, without the ending .npy, into the arena.
enum msc_status msc_npz__names(const char ***out, size_t *n, struct msc_arena *arena,
                               const char *path);
// Like msc_npz_load, but loads only the selected members. The others are not checked.
enum msc_status msc_npz__load(struct msc_array_list *out, struct msc_array_pick *pick,
                              const char *path);

#endif
