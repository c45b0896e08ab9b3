// Finds the workers of a pool and the holders of its parts.
#include "cluster/pool_internal.h"

struct msc_pool_holder *msc_pool__find_holder(struct msc_pool_shard *shard, int32_t number) {
    return shard->holders[0].worker == number   ? &shard->holders[0]
           : shard->holders[1].worker == number ? &shard->holders[1]
                                                : NULL;
}

struct msc_pool_worker *msc_pool__find_worker(struct msc_pool *pool, int32_t number) {
    for (size_t i = 0; i < pool->n_workers; i++) {
        if (pool->workers[i].number == number) {
            return &pool->workers[i];
        }
    }
    return NULL;
}

size_t msc_pool__n_ready(const struct msc_pool *pool) {
    size_t n = 0;
    for (size_t i = 0; i < pool->n_workers; i++) {
        n += pool->workers[i].state == MSC_POOL_READY;
    }
    return n;
}
