// safetensors: u64 little-endian header length, a JSON header
// {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}},
// then the elements. Offsets must be inside the file, match the shapes, and leave neither
// overlaps nor gaps.
#ifndef MSC_DATA_SAFETENSORS_H
#define MSC_DATA_SAFETENSORS_H

#include "data/npy.h"

MSC_PUBLIC_BEGIN

// Loads all tensors, ordered by offset, into a zeroed list.
enum msc_status msc_safetensors_load(struct msc_array_list *out, const char *path);
// Reads the value of one __metadata__ key. The caller owns *out (msc_free). MSC_E_NOT_FOUND if the
// key is absent.
enum msc_status msc_safetensors_metadata(char **out, const char *path, const char *key);
// Saves a list. `metadata` has n_metadata pairs of key and value; may be NULL. The elements begin
// at a multiple of 64 bytes, and tensors of wider types come first. Each tensor is therefore
// aligned, and there are no gaps, as the format requires. Equal lists and metadata give equal
// bytes. The file ends up complete or absent.
enum msc_status msc_safetensors_save(const char *path, const struct msc_array_list *list,
                                     const char *const (*metadata)[2], size_t n_metadata);

MSC_PUBLIC_END

#endif
