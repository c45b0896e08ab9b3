// Parts of files in memory: the elements of arrays that are not copied from their file.
//
//     MSC_TRY(msc_mapped_create(&mapped, "weights.data", offset, n_bytes));
//     msc_mapped_touch(mapped);               // before a longer use
//     const float *x = msc_mapped_data(mapped);
//     msc_mapped_destroy(mapped);
//
// Only the parts used last stay in memory, MSC_MAPPED_BYTES together, or the last one if it is
// larger. The others have left memory; an access reads their file again, so pointers stay valid. A
// part of a file that another program has cut short cannot be read: the system then ends the
// process by SIGBUS.
#ifndef MSC_DATA_MAPPED_H
#define MSC_DATA_MAPPED_H

#include "base/hash.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define MSC_MAPPED_BYTES ((size_t)128 << 20)

struct msc_mapped;

// *out is owned by the caller. MSC_E_FORMAT: the file is too short.
enum msc_status msc_mapped_create(struct msc_mapped **out, const char *path, uint64_t offset,
                                  size_t n_bytes);
void msc_mapped_destroy(struct msc_mapped *mapped); // accepts NULL
const void *msc_mapped_data(const struct msc_mapped *mapped);
// Marks the part as used last; safe from several threads.
void msc_mapped_touch(struct msc_mapped *mapped);
// Hash of the bytes, which are read at the first call only; safe from several threads.
struct msc_hash msc_mapped_hash(struct msc_mapped *mapped);

#endif
