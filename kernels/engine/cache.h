// The activation cache: finished expressions by key, in memory of a pool, least recently used first
// out. An entry with pins is in use and stays. Entries found at least once are kept in preference
// to entries that nobody has asked for again, so that one pass over many trials does not push out
// what they share. Not thread-safe: the evaluator calls it under its lock.
//
// What is not likely to be found is freed early, even with memory to spare: the next result is then
// written over it, and not into fresh pages, which cost more than many kernels.
#ifndef MSC_KERNELS_ENGINE_CACHE_H
#define MSC_KERNELS_ENGINE_CACHE_H

#include "kernels/engine/pool.h"

struct msc_entry {
    struct msc_hash key;
    int32_t pins;
    bool was_found;                  // by a later call: protected
    bool is_brief;                   // freed with its last pin, unless it is found before
    uint64_t last_use;               // in trials
    struct msc_entry *newer, *older; // in its list, while unpinned
    struct msc_entry *next;          // in its bucket
    const struct msc_step *step;     // of `weights`
    void *weights;                   // packed weights, or NULL
    size_t weights_bytes;
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
    uint64_t now;                       // trials that were evaluated
    uint64_t pinned_bytes, pinned_peak; // of entries with pins
};

enum msc_status msc_cache_init(struct msc_cache *cache, struct msc_backend *backend,
                               uint64_t limit_bytes);
void msc_cache_finish(struct msc_cache *cache); // nothing may be pinned

// The entry with one more pin, or NULL.
struct msc_entry *msc_cache_find(struct msc_cache *cache, struct msc_hash key);
// A new entry with one pin, its outputs allocated ([n] bytes each). Evicts what is unpinned to make
// room; when that does not do, goes over the limit rather than fail. MSC_E_NOMEM: none to be had.
enum msc_status msc_cache_add(struct msc_entry **out, struct msc_cache *cache, struct msc_hash key,
                              int32_t n_outputs, const size_t n_bytes[]);
void msc_cache_pin(struct msc_entry *entry, int32_t pins);
void msc_cache_unpin(struct msc_cache *cache, struct msc_entry *entry);
// Is there memory yet for entries that may never be found?
bool msc_cache_has_room(const struct msc_cache *cache);
// A step got no memory for what it needs besides its outputs: gives free buffers back to the backend,
// and of what is unpinned an eighth of what is held, with each attempt (0, 1, …) more, at last all.
// From then on no more is held. False: nothing could be given.
bool msc_cache_make_room(struct msc_cache *cache, int attempt);
// Takes an entry out and frees it, whatever its pins: for one whose computation failed.
void msc_cache_discard(struct msc_cache *cache, struct msc_entry *entry);
// Adds the size of packed weights, which the backend allocated.
void msc_cache_set_weights(struct msc_cache *cache, struct msc_entry *entry,
                           const struct msc_step *step, void *weights, size_t n_bytes);
// So many trials have passed: frees what none of the last thousand has asked for.
void msc_cache_pass(struct msc_cache *cache, uint64_t n_trials);
// Frees every unpinned entry and all free memory.
void msc_cache_drop(struct msc_cache *cache);

#endif
