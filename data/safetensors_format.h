// Internal to data/: shared by reading and writing safetensors.
#ifndef MSC_DATA_SAFETENSORS_FORMAT_H
#define MSC_DATA_SAFETENSORS_FORMAT_H

#include "base/str.h"
#include "data/array_file.h"
#include "data/array_pick.h"
#include "data/dtype.h"

// The file begins with the header's length, little-endian.
#define MSC_SAFETENSORS_LENGTH_BYTES 8u

// The code of a type, such as "F32" or "BOOL"; never NULL for a type that arrays can have.
const char *msc_safetensors__code(enum msc_dtype dtype);

// Appends everything before the elements to `header`. places[i] is the offset of array i's elements
// after the header. `metadata` and errors as for msc_safetensors_save.
enum msc_status msc_safetensors__lay_out(struct msc_str *header, uint64_t places[],
                                         const struct msc_array_form forms[], size_t n,
                                         const char *const (*metadata)[2], size_t n_metadata,
                                         const char *path);
// Reads the names of all tensors, in the order of the header, into the arena.
enum msc_status msc_safetensors__names(const char ***out, size_t *n, struct msc_arena *arena,
                                       const char *path);
// Like msc_safetensors_load, but loads only the selected tensors. For the others, only the offsets
// are checked.
enum msc_status msc_safetensors__load(struct msc_array_list *out, struct msc_array_pick *pick,
                                      const char *path);

#endif
