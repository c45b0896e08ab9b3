// Reuses memory of the backend: freed buffers are kept in lists by size for later requests, because
// the first access to fresh pages takes longer than most kernels. Sizes are rounded up by at most
// an eighth. Not thread-safe: the caller holds the schedule's lock.
//
// The backend may have less memory than the limit allows. When it refuses a request, the bytes held
// at that time become a ceiling below the limit, so that later requests do not fail again and
// again.
#ifndef MSC_KERNELS_ENGINE_POOL_H
#define MSC_KERNELS_ENGINE_POOL_H

#include "kernels/backend.h"

#define MSC_POOL_CLASSES 512 // eight sizes per power of two

struct msc_pool {
    struct msc_backend *backend;
    uint64_t limit_bytes;
    uint64_t ceiling_bytes; // 0: no ceiling
    uint64_t held_bytes;    // all buffers, in use or free
    uint64_t peak_bytes;
    bool was_short; // a request exceeded the limit or failed with nothing left to free
    struct msc_pool_list {
        void **items;
        size_t n, capacity;
    } free_lists[MSC_POOL_CLASSES];
};

// Allocates a buffer. NULL if it would exceed the limit or the ceiling (unless `force`), or if the
// backend refuses even after all free buffers of the pool are returned to it.
void *msc_pool_take(struct msc_pool *pool, size_t n_bytes, bool force);
void msc_pool_give(struct msc_pool *pool, void *memory, size_t n_bytes); // accepts NULL
// Adds to the held bytes memory that is allocated elsewhere (packed weights).
void msc_pool_account(struct msc_pool *pool, int64_t n_bytes);
// Returns all free buffers to the backend. False: there were none.
bool msc_pool_trim(struct msc_pool *pool);
// The lower of limit and ceiling.
uint64_t msc_pool_most(const struct msc_pool *pool);
// Sets the ceiling to the bytes held now. msc_pool_raise raises it again.
void msc_pool_lower(struct msc_pool *pool);
// Raises the ceiling a little, because other processes may have freed memory.
void msc_pool_raise(struct msc_pool *pool);
void msc_pool_finish(struct msc_pool *pool);

#endif
