#include "base/file_hash.h"

#include "base/file.h"

enum msc_status msc_file_hash(struct msc_hash *out, const char *path) {
    const void *data = NULL;
    size_t n_bytes = 0;
    MSC_TRY(msc_file_map(&data, &n_bytes, path));
    *out = msc_hash_bytes(data, n_bytes);
    msc_file_unmap(data, n_bytes);
    return MSC_OK;
}
