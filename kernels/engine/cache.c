#include "kernels/engine/cache.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

enum {
    FIRST_BUCKETS = 1024,
    PROBATION_SHARE = 16, // entries that have not been found again may take at most 1/16 of the
                          // cache's limit
};

enum msc_status msc_cache_init(struct msc_cache *cache, struct msc_backend *backend,
                               uint64_t limit_bytes) {
    *cache = (struct msc_cache){.pool = {.backend = backend, .limit_bytes = limit_bytes},
                                .n_buckets = FIRST_BUCKETS};
    cache->buckets = msc_alloc_zero(FIRST_BUCKETS, sizeof(cache->buckets[0]));
    return MSC_ALLOCATED(cache->buckets);
}

static struct msc_entry **bucket_of(const struct msc_cache *cache, struct msc_hash key) {
    return &cache->buckets[key.low & (cache->n_buckets - 1)];
}

static struct msc_entry_list *list_of(struct msc_cache *cache, const struct msc_entry *entry) {
    return entry->was_found ? &cache->kept : &cache->probation;
}

static uint64_t entry_bytes(const struct msc_entry *e) {
    uint64_t n = e->weights_bytes;
    for (int32_t i = 0; i < e->n_outputs; i++) {
        n += e->outputs[i].n_bytes;
    }
    return n;
}

static void list_push(struct msc_entry_list *list, struct msc_entry *entry) {
    entry->older = list->newest;
    entry->newer = NULL;
    if (list->newest) {
        list->newest->newer = entry;
    } else {
        list->oldest = entry;
    }
    list->newest = entry;
}

static void list_remove(struct msc_entry_list *list, struct msc_entry *entry) {
    *(entry->newer ? &entry->newer->older : &list->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &list->oldest) = entry->newer;
    entry->newer = entry->older = NULL;
}

static void cache_store(struct msc_cache *cache, struct msc_entry *entry) {
    list_push(list_of(cache, entry), entry);
    cache->probation_bytes += entry->was_found ? 0 : entry_bytes(entry);
}

static void cache_unstore(struct msc_cache *cache, struct msc_entry *entry) {
    list_remove(list_of(cache, entry), entry);
    cache->probation_bytes -= entry->was_found ? 0 : entry_bytes(entry);
}

static void free_entry(struct msc_cache *cache, struct msc_entry *entry) {
    struct msc_entry **at = bucket_of(cache, entry->key);
    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    cache->n_entries--;
    for (int32_t i = 0; i < entry->n_outputs && !entry->is_borrowed; i++) {
        msc_pool_give(&cache->pool, entry->outputs[i].data, entry->outputs[i].n_bytes);
    }
    if (entry->weights) {
        struct msc_backend *b = cache->pool.backend;
        b->def->release_weights(b, entry->step, entry->weights);
        msc_pool_account(&cache->pool, -(int64_t)entry->weights_bytes);
    }
    msc_free(entry);
}

// The next entry to evict; NULL if all entries are pinned.
static struct msc_entry *next_to_evict(const struct msc_cache *cache) {
    return cache->probation.oldest ? cache->probation.oldest : cache->kept.oldest;
}

static bool evict_one(struct msc_cache *cache) {
    struct msc_entry *entry = next_to_evict(cache);
    if (!entry) {
        return false;
    }
    cache_unstore(cache, entry);
    free_entry(cache, entry);
    return true;
}

static void count_pinned(struct msc_cache *cache, uint64_t n_bytes) {
    cache->pinned_bytes += n_bytes;
    if (cache->pinned_bytes > cache->pinned_peak) {
        cache->pinned_peak = cache->pinned_bytes;
    }
}

struct msc_entry *msc_cache_find(struct msc_cache *cache, struct msc_hash key) {
    for (struct msc_entry *e = *bucket_of(cache, key); e; e = e->next) {
        if (msc_hash_equal(e->key, key)) {
            if (e->pins++ == 0) {
                cache_unstore(cache, e);
                count_pinned(cache, entry_bytes(e));
            }
            e->was_found = true;
            e->is_brief = false;
            return e;
        }
    }
    return NULL;
}

static void grow_buckets(struct msc_cache *cache) {
    size_t n = cache->n_buckets * 2;
    struct msc_entry **old = cache->buckets;
    struct msc_entry **grown = msc_alloc_zero(n, sizeof(grown[0]));
    if (!grown) {
        return; // keep the old table: its longer chains are slower but correct
    }
    size_t n_old = cache->n_buckets;
    cache->buckets = grown;
    cache->n_buckets = n;
    for (size_t i = 0; i < n_old; i++) {
        for (struct msc_entry *e = old[i], *next; e; e = next) {
            next = e->next;
            struct msc_entry **bucket = bucket_of(cache, e->key);
            e->next = *bucket;
            *bucket = e;
        }
    }
    msc_free(old);
}

static void *cache_take_memory(struct msc_cache *cache, size_t n_bytes) {
    void *memory = msc_pool_take(&cache->pool, n_bytes, false);
    while (!memory && evict_one(cache)) {
        memory = msc_pool_take(&cache->pool, n_bytes, false);
    }
    return memory ? memory : msc_pool_take(&cache->pool, n_bytes, true);
}

static enum msc_status insert_entry(struct msc_entry **out, struct msc_cache *cache,
                                    struct msc_entry *e) {
    e->pins = 1;
    if (cache->n_entries >= cache->n_buckets) {
        grow_buckets(cache);
    }
    struct msc_entry **bucket = bucket_of(cache, e->key);
    e->next = *bucket;
    *bucket = e;
    cache->n_entries++;
    count_pinned(cache, entry_bytes(e));
    *out = e;
    return MSC_OK;
}

enum msc_status msc_cache_add(struct msc_entry **out, struct msc_cache *cache, struct msc_hash key,
                              int32_t n_outputs, const size_t n_bytes[]) {
    struct msc_entry *e = msc_alloc_zero(1, sizeof(*e) + (size_t)n_outputs * sizeof(e->outputs[0]));
    MSC_TRY(MSC_ALLOCATED(e));
    e->key = key;
    e->n_outputs = n_outputs;
    for (int32_t i = 0; i < n_outputs; i++) {
        e->outputs[i].n_bytes = n_bytes[i];
        e->outputs[i].data = cache_take_memory(cache, n_bytes[i]);
        if (!e->outputs[i].data) {
            for (int32_t k = 0; k < i; k++) {
                msc_pool_give(&cache->pool, e->outputs[k].data, e->outputs[k].n_bytes);
            }
            msc_free(e);
            return MSC_FAIL(MSC_E_NOMEM, "not enough memory for activations (%zu bytes more)",
                            n_bytes[i]);
        }
    }
    return insert_entry(out, cache, e);
}

enum msc_status msc_cache_add_borrowed(struct msc_entry **out, struct msc_cache *cache,
                                       struct msc_hash key, void *data) {
    struct msc_entry *e = msc_alloc_zero(1, sizeof(*e) + sizeof(e->outputs[0]));
    MSC_TRY(MSC_ALLOCATED(e));
    e->key = key;
    e->n_outputs = 1;
    e->outputs[0].data = data;
    e->is_borrowed = true;
    return insert_entry(out, cache, e);
}

void msc_cache_pin(struct msc_entry *entry, int32_t pins) {
    assert(entry->pins > 0);
    entry->pins += pins;
}

void msc_cache_unpin(struct msc_cache *cache, struct msc_entry *entry) {
    assert(entry->pins > 0);
    if (--entry->pins > 0) {
        return;
    }
    cache->pinned_bytes -= entry_bytes(entry);
    if (entry->is_brief) {
        free_entry(cache, entry);
        return;
    }
    entry->last_use = cache->now;
    cache_store(cache, entry);
    uint64_t most = msc_pool_most(&cache->pool);
    if (cache->pool.held_bytes > most) {
        (void)msc_pool_trim(&cache->pool);
    }
    while (cache->pool.held_bytes > most && evict_one(cache)) {}
    while (cache->probation_bytes > most / PROBATION_SHARE) {
        evict_one(cache);
    }
}

bool msc_cache_has_room(const struct msc_cache *cache) {
    return cache->pool.held_bytes < msc_pool_most(&cache->pool) / PROBATION_SHARE;
}

void msc_cache_keep(const struct msc_cache *cache, struct msc_entry *entry) {
    assert(entry->pins > 0);
    entry->was_found = cache->pool.held_bytes < msc_pool_most(&cache->pool) / 4 * 3;
}

bool msc_cache_make_room(struct msc_cache *cache, int attempt) {
    struct msc_pool *pool = &cache->pool;
    uint64_t before = pool->held_bytes, evicted = 0;
    uint64_t enough = attempt < 3 ? (before / 8) << attempt : before;
    (void)msc_pool_trim(pool);
    for (const struct msc_entry *e; evicted < enough && (e = next_to_evict(cache)) != NULL;) {
        evicted += entry_bytes(e);
        evict_one(cache);
    }
    (void)msc_pool_trim(pool);
    msc_pool_lower(pool);
    pool->was_short = pool->was_short || pool->held_bytes == before;
    return pool->held_bytes < before;
}

void msc_cache_pass(struct msc_cache *cache, uint64_t n_trials) {
    struct msc_entry *e;
    cache->now += n_trials;
    msc_pool_raise(&cache->pool);
    while ((e = cache->kept.oldest) != NULL && e->last_use + MSC_CACHE_LIFE < cache->now) {
        cache_unstore(cache, e);
        free_entry(cache, e);
    }
}

void msc_cache_discard(struct msc_cache *cache, struct msc_entry *entry) {
    if (entry->pins == 0) {
        cache_unstore(cache, entry);
    } else {
        cache->pinned_bytes -= entry_bytes(entry);
    }
    free_entry(cache, entry);
}

void msc_cache_set_weights(struct msc_cache *cache, struct msc_entry *entry,
                           const struct msc_step *step, void *weights, size_t n_bytes) {
    entry->step = step;
    entry->weights = weights;
    entry->weights_bytes = n_bytes;
    msc_pool_account(&cache->pool, (int64_t)n_bytes);
    count_pinned(cache, n_bytes);
}

void msc_cache_drop(struct msc_cache *cache) {
    while (evict_one(cache)) {}
    (void)msc_pool_trim(&cache->pool);
}

void msc_cache_finish(struct msc_cache *cache) {
    if (cache->buckets) {
        msc_cache_drop(cache);
        assert(cache->n_entries == 0);
        msc_pool_finish(&cache->pool);
        msc_free(cache->buckets);
    }
    *cache = (struct msc_cache){0};
}
