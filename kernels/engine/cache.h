// The activation cache: finds results of expressions by key. Their memory comes from a pool. The
// least recently used entry is evicted first. Pinned entries are in use and are never evicted.
// Entries that were found again are evicted after all other entries, so that one pass over many
// trials does not evict the results that trials share. Not thread-safe: the caller holds the
// schedule's lock.
//
// Results unlikely to be found again are freed early, even if memory is left, so that the next
// result reuses their memory. This saves time, because the first access to fresh pages takes longer
// than many kernels.
#ifndef MSC_KERNELS_ENGINE_CACHE_H
#define MSC_KERNELS_ENGINE_CACHE_H

#include "kernels/engine/pool.h"

struct msc_entry {
    struct msc_hash key;
    int32_t pins;
    bool was_found;                  // found at least once since it was added: evicted after all
                                     // entries that were not
    bool is_borrowed;                // the caller of msc_cache_add_borrowed owns the output's
                                     // memory
    bool is_brief;                   // freed when its last pin is dropped, unless found again
    uint64_t last_use;               // time of the last use, counted in trials
    struct msc_entry *newer, *older; // neighbours in the list of unpinned entries
    struct msc_entry *next;          // next entry of the same bucket
    const struct msc_step *step;     // step that `weights` belong to
    void *weights;                   // packed weights, or NULL
    size_t weights_bytes;
    // Of a dynamic quantisation (graph/quant.h): the quantisation of the output, with the scale and
    // zero point that were found. They are here and not in the output because backends read the
    // parameters of a quantisation on the host.
    struct msc_quant found;
    float found_scale;
    int32_t found_zero;
    int32_t n_outputs;
    struct msc_output {
        void *data;
        size_t n_bytes;
    } outputs[];
};

struct msc_entry_list {
    struct msc_entry *newest, *oldest;
};

struct msc_cache {
    struct msc_pool pool;
    struct msc_entry **buckets; // [n_buckets], a power of two
    size_t n_buckets, n_entries;
    struct msc_entry_list probation, kept; // unpinned entries
    uint64_t probation_bytes;
    uint64_t now;                       // number of trials evaluated so far
    uint64_t pinned_bytes, pinned_peak; // size of the pinned entries: now, maximum
};

enum msc_status msc_cache_init(struct msc_cache *cache, struct msc_backend *backend,
                               uint64_t limit_bytes);
void msc_cache_finish(struct msc_cache *cache); // no entry may be pinned

// Finds an entry and adds a pin; NULL if there is none.
struct msc_entry *msc_cache_find(struct msc_cache *cache, struct msc_hash key);
// Makes an entry with one pin and allocates its n outputs. Evicts unpinned entries to make room;
// if that is not enough, exceeds the limit. MSC_E_NOMEM: the backend has no memory left.
enum msc_status msc_cache_add(struct msc_entry **out, struct msc_cache *cache, struct msc_hash key,
                              int32_t n_outputs, const size_t n_bytes[]);
// Like msc_cache_add, with one output whose memory the caller owns. Its size is not counted.
enum msc_status msc_cache_add_borrowed(struct msc_entry **out, struct msc_cache *cache,
                                       struct msc_hash key, void *data);
void msc_cache_pin(struct msc_entry *entry, int32_t pins);
void msc_cache_unpin(struct msc_cache *cache, struct msc_entry *entry);
// True if memory is left for entries that may never be found again.
bool msc_cache_has_room(const struct msc_cache *cache);
// Treats a pinned entry as one that was found again, unless three quarters of the memory are taken.
void msc_cache_keep(const struct msc_cache *cache, struct msc_entry *entry);
// Called when a step cannot allocate its temporary memory. Returns free buffers to the backend and
// evicts unpinned entries: an eighth of the held bytes, more with each attempt (0, 1, …), finally
// all. The bytes then held become the new ceiling of the cache. False: there was nothing to free.
bool msc_cache_make_room(struct msc_cache *cache, int attempt);
// Removes and frees an entry whose computation failed, even if it is pinned.
void msc_cache_discard(struct msc_cache *cache, struct msc_entry *entry);
// Attaches packed weights, which the backend allocated, and counts their size.
void msc_cache_set_weights(struct msc_cache *cache, struct msc_entry *entry,
                           const struct msc_step *step, void *weights, size_t n_bytes);
// Advances the clock by n_trials: frees entries that were found again, but not during the last
// MSC_CACHE_LIFE trials.
#define MSC_CACHE_LIFE 1024
void msc_cache_pass(struct msc_cache *cache, uint64_t n_trials);
// Frees every unpinned entry and all free memory.
void msc_cache_drop(struct msc_cache *cache);

#endif
