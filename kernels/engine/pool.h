// Backend memory with reuse: freed buffers are kept by size for later requests, since fresh pages
// cost more than most kernels. Sizes are rounded up by at most an eighth. Not thread-safe: the
// evaluator calls it under its lock.
//
// The backend may have less memory than the limit allows. When it refuses a request, the bytes held
// at that time become a ceiling below the limit, so that it is not asked in vain again and again.
#ifndef MSC_KERNELS_ENGINE_POOL_H
#define MSC_KERNELS_ENGINE_POOL_H

#include "kernels/backend.h"

#define MSC_POOL_CLASSES 512 // eight sizes per power of two

struct msc_pool {
    struct msc_backend *backend;
    uint64_t limit_bytes;
    uint64_t ceiling_bytes; // 0: none
    uint64_t held_bytes;    // in use or free
    uint64_t peak_bytes;
    bool was_short; // took memory beyond the limit, or had no free buffers to return when short
    struct msc_pool_list {
        void **items;
        size_t n, capacity;
    } free_lists[MSC_POOL_CLASSES];
};

// NULL if it would exceed the limit or the ceiling (unless `force`), or if the backend refuses even
// after all free buffers here are returned.
void *msc_pool_take(struct msc_pool *pool, size_t n_bytes, bool force);
void msc_pool_give(struct msc_pool *pool, void *memory, size_t n_bytes); // accepts NULL
// Counts memory that is allocated elsewhere (packed weights).
void msc_pool_account(struct msc_pool *pool, int64_t n_bytes);
// Returns all free buffers to the backend. False: there were none.
bool msc_pool_trim(struct msc_pool *pool);
// The lower of limit and ceiling.
uint64_t msc_pool_most(const struct msc_pool *pool);
// Makes the bytes held now the ceiling, until it is raised.
void msc_pool_lower(struct msc_pool *pool);
// Raises the ceiling a little: other processes may have freed memory meanwhile.
void msc_pool_raise(struct msc_pool *pool);
void msc_pool_finish(struct msc_pool *pool);

#endif
