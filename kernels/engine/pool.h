// Backend memory with reuse: freed buffers are kept by size for the next request, since fresh pages
// cost more than most kernels. Sizes are rounded up by at most an eighth. Not thread-safe: the
// evaluator calls it under its lock.
//
// The backend may have less than the limit says. What was held when it refused is a ceiling then,
// below the limit, so that it is not asked for more all the time.
#ifndef MSC_KERNELS_ENGINE_POOL_H
#define MSC_KERNELS_ENGINE_POOL_H

#include "kernels/backend.h"

#define MSC_POOL_CLASSES 512 // eight sizes for each power of two

struct msc_pool {
    struct msc_backend *backend;
    uint64_t limit_bytes;
    uint64_t ceiling_bytes; // 0: none
    uint64_t held_bytes;    // in use and free
    uint64_t peak_bytes;
    bool was_short; // something was taken beyond the limit, or there was nothing to give up for it
    struct msc_pool_list {
        void **items;
        size_t n, capacity;
    } free_lists[MSC_POOL_CLASSES];
};

// NULL when it would exceed the limit or the ceiling (unless `force`), or the backend refuses even
// with nothing free here.
void *msc_pool_take(struct msc_pool *pool, size_t n_bytes, bool force);
void msc_pool_give(struct msc_pool *pool, void *memory, size_t n_bytes); // accepts NULL
// Memory that is accounted for but allocated elsewhere (packed weights).
void msc_pool_account(struct msc_pool *pool, int64_t n_bytes);
// Returns all free buffers to the backend. False: there were none.
bool msc_pool_trim(struct msc_pool *pool);
// The lower of limit and ceiling.
uint64_t msc_pool_most(const struct msc_pool *pool);
// No more is held than now, until it is raised.
void msc_pool_lower(struct msc_pool *pool);
// By a little: others may have given memory back meanwhile.
void msc_pool_raise(struct msc_pool *pool);
void msc_pool_finish(struct msc_pool *pool);

#endif
