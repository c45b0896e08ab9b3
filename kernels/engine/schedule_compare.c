// Sinks that only need distances from references: the backend compares the values of sink nodes, so
// that a device's memory is not read back. References are entries of the cache.
#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "kernels/engine/remainder.h"

// The comparisons of some sink nodes, node by node.
struct comparing {
    struct msc_schedule *s;
    struct msc_arena arena;
    struct msc_comparison *items;
    struct msc_entry **references; // [n_items] each with one pin
    const double **squares;        // [n_items]
    size_t n_items;
};

// The wanted tensors of a sink node whose values may be compared; 0: they must be given.
static int32_t n_compared(const struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_plan *plan = msc_schedule__plan(s, node);
    bool is_live_out = node->first_target == 0 && node->n_targets >= plan->n_wanted;
    return is_live_out && !msc_remainder_is_asked(plan, s->job.sink) ? plan->n_wanted : 0;
}

// The reference in the backend's memory, pinned. NULL if there is no memory for it: references and
// results in use may take half of the memory. The caller holds the lock: no other thread may find
// the entry before the upload is recorded.
static struct msc_entry *take_reference(struct msc_schedule *s, int32_t batch,
                                        const struct msc_eval_reference *r) {
    struct msc_backend *b = s->options.backend;
    struct msc_cache *cache = s->options.cache;
    struct msc_hash key = msc_hash_add_u64(r->key, (uint64_t)batch + 1);
    size_t n_bytes = (size_t)(r->n_samples * r->n) * sizeof(r->values[0]);
    struct msc_entry *entry = msc_cache_find(cache, key);
    if (entry || cache->pinned_bytes + n_bytes > cache->pool.limit_bytes / 2 ||
        msc_cache_add(&entry, cache, key, 1, &n_bytes) != MSC_OK) {
        return entry;
    }
    if (b->def->upload(b, entry->outputs[0].data, r->values, n_bytes) != MSC_OK) {
        msc_cache_discard(cache, entry);
        return NULL;
    }
    entry->was_found = true; // each later trial reads it, too
    return entry;
}

// Adds the comparison of one wanted tensor. False: its values must be given.
static bool add_item(struct comparing *c, const struct msc_node *node, int32_t index) {
    struct msc_schedule *s = c->s;
    struct msc_backend *b = s->options.backend;
    const struct msc_sink *sink = s->job.sink;
    struct msc_eval_reference r;
    const struct msc_view z = msc_schedule__target_view(s, node, index);
    if (!z.data || !sink->reference(sink->payload, (size_t)node->batch, index, &r) ||
        r.n_samples * r.n != msc_view_n_elements(&z) || !b->def->compares(b, &z, r.n)) {
        return false;
    }
    double *squares = msc_arena_array(&c->arena, (size_t)r.n_samples, sizeof(squares[0]));
    pthread_mutex_lock(&s->lock);
    struct msc_entry *reference = squares ? take_reference(s, node->batch, &r) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (!reference) {
        return false;
    }
    c->references[c->n_items] = reference;
    c->squares[c->n_items] = squares;
    c->items[c->n_items++] = (struct msc_comparison){.y = reference->outputs[0].data,
                                                     .z = z,
                                                     .n_samples = r.n_samples,
                                                     .n = r.n,
                                                     .squares = squares};
    return true;
}

// Drops the items after the first n.
static void drop_items(struct comparing *c, size_t n) {
    pthread_mutex_lock(&c->s->lock);
    while (c->n_items > n) {
        msc_cache_unpin(c->s->options.cache, c->references[--c->n_items]);
    }
    pthread_mutex_unlock(&c->s->lock);
}

// Adds the comparisons of nodes, up to the first whose values must be given. Returns the number of
// nodes.
static int32_t add_nodes(struct comparing *c, const int32_t ids[], int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        const struct msc_node *node = &c->s->nodes[ids[i]];
        size_t n_before = c->n_items;
        int32_t n_wanted = n_compared(c->s, node);
        bool is_added = n_wanted > 0;
        for (int32_t k = 0; is_added && k < n_wanted; k++) {
            is_added = add_item(c, node, k);
        }
        if (!is_added) {
            drop_items(c, n_before);
            return i;
        }
    }
    return n;
}

static enum msc_status make_lists(struct comparing *c, const int32_t ids[], int32_t n) {
    size_t most = 1;
    for (int32_t i = 0; i < n; i++) {
        most += (size_t)c->s->nodes[ids[i]].n_targets;
    }
    c->items = msc_arena_array(&c->arena, most, sizeof(c->items[0]));
    c->references = msc_arena_array(&c->arena, most, sizeof(c->references[0]));
    c->squares = msc_arena_array(&c->arena, most, sizeof(c->squares[0]));
    return MSC_ALLOCATED(c->items && c->references && c->squares);
}

// Gives the distances of n nodes to the sink, until one fails. Returns the number that succeeded.
static int32_t give_squares(const struct comparing *c, const int32_t ids[], int32_t n,
                            enum msc_status *status) {
    const struct msc_sink *sink = c->s->job.sink;
    const double *const *squares = c->squares;
    for (int32_t i = 0; i < n; i++) {
        const struct msc_node *node = &c->s->nodes[ids[i]];
        *status = sink->squares(sink->payload, c->s->job.first_trial + (size_t)node->trial,
                                (size_t)node->batch, squares);
        if (*status != MSC_OK) {
            return i;
        }
        squares += n_compared(c->s, node);
    }
    return n;
}

int32_t msc_schedule__compare_sinks(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                    enum msc_status *status) {
    struct msc_backend *b = s->options.backend;
    struct comparing c = {.s = s};
    int32_t n_given = 0;
    *status = MSC_OK;
    if (!s->job.sink->reference || !b->def->compare) {
        return 0;
    }
    *status = make_lists(&c, ids, n);
    int32_t n_added = *status == MSC_OK ? add_nodes(&c, ids, n) : 0;
    if (n_added > 0) {
        *status = b->def->compare(b, c.items, c.n_items);
        n_given = *status == MSC_OK ? give_squares(&c, ids, n_added, status) : 0;
    }
    drop_items(&c, 0);
    msc_arena_finish(&c.arena);
    // To give the values takes no further memory of the device.
    *status = *status == MSC_E_NOMEM && n_given == 0 ? MSC_OK : *status;
    return n_given;
}
