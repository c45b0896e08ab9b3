// The hash of a file's bytes.
#ifndef MSC_BASE_FILE_HASH_H
#define MSC_BASE_FILE_HASH_H

#include "base/hash.h"
#include "base/status.h"

enum msc_status msc_file_hash(struct msc_hash *out, const char *path);

#endif
