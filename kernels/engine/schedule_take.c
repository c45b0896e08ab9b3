#include "kernels/engine/schedule_internal.h"

#include <string.h>

static int32_t most_together(const struct msc_schedule *s) {
    int32_t n = s->options.backend->def->max_calls;
    return n < MSC_SCHEDULE_TOGETHER ? n : MSC_SCHEDULE_TOGETHER;
}

static bool is_sink_of_live_out(const struct msc_schedule *s, const struct msc_node *node) {
    return node->expr == MSC_NO_ID && node->first_target < s->n_live_out;
}

// Lower ranks run first. Nodes that are neither steps nor sinks of live-out values have the lowest
// rank, because they make other nodes ready or free memory. Sinks of live-out values come last.
static int64_t rank_of(const struct msc_schedule *s, const struct msc_node *node) {
    if (is_sink_of_live_out(s, node)) {
        return INT64_MAX;
    }
    bool is_step = node->expr != MSC_NO_ID && node->failure == MSC_NO_ID &&
                   msc_schedule__expr(s, node)->kind == MSC_EXPR_STEP;
    return is_step
               ? 1 + (int64_t)msc_schedule__expr(s, node)->index * s->options.n_plans + node->plan
               : 0;
}

// True if the backend leaves the step to the host. On the host, running calls together gains
// nothing.
static bool is_left_to_host(const struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_backend *b = s->options.backend;
    return strcmp(msc_backend_place(b, msc_schedule__step(s, node)).device, b->def->name) != 0;
}

// Takes the ready nodes of lowest rank: several if they belong to one step or are sinks. If a step
// is next but another thread runs a step, takes none: the running step may make more nodes of the
// next step ready.
static int32_t take_lowest(struct msc_schedule *s, int32_t ids[], int thread) {
    int64_t lowest = INT64_MAX;
    int32_t n = 0, most = most_together(s);
    const struct msc_node *first = NULL;
    for (size_t i = 0; i < s->ready.n; i++) {
        const struct msc_node *node = &s->nodes[s->ready.items[i]];
        int64_t rank = rank_of(s, node);
        first = rank < lowest ? node : first;
        lowest = rank < lowest ? rank : lowest;
    }
    if (lowest == 0 || (lowest < INT64_MAX && is_left_to_host(s, first))) {
        most = 1;
    } else if (lowest < INT64_MAX && s->stepper != MSC_NO_ID) {
        return 0;
    } else if (lowest < INT64_MAX) {
        s->stepper = thread;
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->ready.n; i++) {
        bool is_taken = n < most && rank_of(s, &s->nodes[s->ready.items[i]]) == lowest;
        if (is_taken) {
            ids[n++] = s->ready.items[i];
        } else {
            s->ready.items[kept++] = s->ready.items[i];
        }
    }
    s->ready.n = kept;
    return n;
}

// True if the root is taken from the start. Nodes that pack weights wait until a step needs the
// weights or no other node is left.
static bool is_early_root(const struct msc_schedule *s, const struct msc_node *node) {
    return node->expr == MSC_NO_ID || msc_schedule__expr(s, node)->kind != MSC_EXPR_WEIGHTS;
}

void msc_schedule__ready_roots(struct msc_schedule *s) {
    if (most_together(s) <= 1) {
        return;
    }
    for (size_t i = 0; i < s->roots.n; i++) {
        struct msc_node *node = &s->nodes[s->roots.items[i]];
        if (!node->is_begun && is_early_root(s, node)) {
            node->is_begun = true;
            s->ready.items[s->ready.n++] = s->roots.items[i];
        }
    }
}

// Packed weights stay in memory until their steps have run. If entries in use take half of the
// memory, a thread packs weights before their step needs them only if no other thread works.
static bool waits_for_memory(const struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_cache *cache = s->options.cache;
    return !is_early_root(s, node) && cache->pinned_bytes > cache->pool.limit_bytes / 2 &&
           s->n_waiting + 1 < s->n_started;
}

static int32_t take_root(struct msc_schedule *s) {
    for (; s->next_root < s->roots.n; s->next_root++) {
        int32_t root = s->roots.items[s->next_root];
        if (!s->nodes[root].is_begun && waits_for_memory(s, &s->nodes[root])) {
            return MSC_NO_ID;
        }
        if (!s->nodes[root].is_begun) {
            s->next_root++;
            s->nodes[root].is_begun = true;
            return root;
        }
    }
    return MSC_NO_ID;
}

// Takes a ready node, or else a root.
static int32_t take_any(struct msc_schedule *s, int32_t ids[]) {
    ids[0] = s->ready.n > 0 ? s->ready.items[--s->ready.n] : take_root(s);
    return ids[0] != MSC_NO_ID ? 1 : 0;
}

int32_t msc_schedule__take(struct msc_schedule *s, int32_t ids[], int thread) {
    bool is_together = most_together(s) > 1;
    while (s->stop == MSC_OK && s->n_done < s->n_nodes) {
        int32_t n = is_together && s->ready.n > 0 ? take_lowest(s, ids, thread) : take_any(s, ids);
        if (n > 0) {
            return n;
        }
        s->n_waiting++;
        pthread_cond_wait(&s->wake, &s->lock);
        s->n_waiting--;
    }
    return 0;
}
