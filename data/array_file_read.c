// Chooses the reader of a file by the ending of its path.
#include "data/array_file.h"
#include "data/npy.h"
#include "data/npy_format.h"
#include "data/safetensors.h"
#include "data/safetensors_format.h"

#include <string.h>

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), n = strlen(ending);
    return length > n && strcmp(path + length - n, ending) == 0;
}

enum msc_array_file_kind msc_array_file_kind_of(const char *path) {
    return ends_in(path, ".npz")           ? MSC_ARRAY_FILE_NPZ
           : ends_in(path, ".safetensors") ? MSC_ARRAY_FILE_SAFETENSORS
                                           : MSC_ARRAY_FILE_NONE;
}

enum msc_status msc_array_file_names(const char ***out, size_t *n, struct msc_arena *arena,
                                     const char *path) {
    return msc_array_file_kind_of(path) == MSC_ARRAY_FILE_NPZ
               ? msc_npz__names(out, n, arena, path)
               : msc_safetensors__names(out, n, arena, path);
}

enum msc_status msc_array_file_load(struct msc_array_list *out, const char *path) {
    switch (msc_array_file_kind_of(path)) {
    case MSC_ARRAY_FILE_NPZ:
        return msc_npz_load(out, path);
    case MSC_ARRAY_FILE_SAFETENSORS:
        return msc_safetensors_load(out, path);
    default:
        return MSC_FAIL(MSC_E_INVALID, "%s: expected a file that ends in .npz or .safetensors",
                        path);
    }
}
