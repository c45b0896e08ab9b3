// What reading and writing safetensors have in common. Internal to data/.
#ifndef MSC_DATA_SAFETENSORS_FORMAT_H
#define MSC_DATA_SAFETENSORS_FORMAT_H

#include "base/str.h"
#include "data/array_file.h"
#include "data/array_pick.h"
#include "data/dtype.h"

// The header's length, little-endian, comes first.
#define MSC_SAFETENSORS_LENGTH_BYTES 8u

// "F32", "BOOL", ...; never NULL for a type that arrays can have.
const char *msc_safetensors__code(enum msc_dtype dtype);

// Appends all that comes before the elements, and says where those of each array begin behind it.
// `metadata` and errors as msc_safetensors_save has them.
enum msc_status msc_safetensors__lay_out(struct msc_str *header, uint64_t places[],
                                         const struct msc_array_form forms[], size_t n,
                                         const char *const (*metadata)[2], size_t n_metadata,
                                         const char *path);
// Of all tensors, as the header lists them; in the arena.
enum msc_status msc_safetensors__names(const char ***out, size_t *n, struct msc_arena *arena,
                                       const char *path);
// As msc_safetensors_load, but only those tensors that are picked; of the others no more is looked at
// than their place.
enum msc_status msc_safetensors__load(struct msc_array_list *out, struct msc_array_pick *pick,
                                      const char *path);

#endif
