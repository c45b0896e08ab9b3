// Backend memory with reuse: freed buffers are kept by size for the next request, since fresh pages
// cost more than most kernels. Sizes are rounded up by at most an eighth. Not thread-safe: the
// evaluator calls it under its lock.
#ifndef MSC_KERNELS_ENGINE_POOL_H
#define MSC_KERNELS_ENGINE_POOL_H

#include "kernels/backend.h"

#define MSC_POOL_CLASSES 512 // eight sizes for each power of two

struct msc_pool {
    struct msc_backend *backend;
    uint64_t limit_bytes;
    uint64_t held_bytes; // in use and free
    uint64_t peak_bytes;
    bool was_short; // something was taken beyond the limit
    struct msc_pool_list {
        void **items;
        size_t n, capacity;
    } free_lists[MSC_POOL_CLASSES];
};

// NULL when it would exceed the limit (unless `force`) or memory is short.
void *msc_pool_take(struct msc_pool *pool, size_t n_bytes, bool force);
void msc_pool_give(struct msc_pool *pool, void *memory, size_t n_bytes); // accepts NULL
// Memory that is accounted for but allocated elsewhere (packed weights).
void msc_pool_account(struct msc_pool *pool, int64_t n_bytes);
// Returns all free buffers to the backend.
void msc_pool_trim(struct msc_pool *pool);
void msc_pool_finish(struct msc_pool *pool);

#endif
