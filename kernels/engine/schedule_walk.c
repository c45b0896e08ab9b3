#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

// ---- Scheduling (the caller holds the lock) ----------------------------------------------------

// Stops the job. Only the first reason given is kept. All threads see the stop before they take
// their next nodes.
static void stop_all(struct msc_schedule *s, enum msc_status status, const char *message) {
    if (s->stop == MSC_OK) {
        s->stop = status;
        snprintf(s->stop_message, sizeof s->stop_message, "%s", message);
        pthread_cond_broadcast(&s->wake);
    }
}

static void fail_node(struct msc_schedule *s, int32_t id, enum msc_status status) {
    char message[200];
    snprintf(message, sizeof(message), "%s", msc_status_message());
    s->nodes[id].failure = 0;
    if (msc_grow(&s->failures, &s->failures_capacity, s->n_failures + 1, sizeof(s->failures[0])) ==
        MSC_OK) {
        struct msc_failure *f = &s->failures[s->n_failures];
        f->node = id;
        f->status = status;
        memcpy(f->message, message, sizeof(f->message));
        s->nodes[id].failure = (int32_t)s->n_failures++;
    }
    if (status == MSC_E_LOST) {
        stop_all(s, status, message);
    }
}

// Returns the failure whose node was made first, regardless of which node failed first.
static int32_t first_failure(const struct msc_schedule *s, int32_t a, int32_t b) {
    if (a == MSC_NO_ID || b == MSC_NO_ID) {
        return a == MSC_NO_ID ? b : a;
    }
    return s->failures[a].node < s->failures[b].node ? a : b;
}

// If a step waits only for its weights, makes the node that packs them ready.
static void push_weights(struct msc_schedule *s, const struct msc_node *user) {
    const struct msc_expr *expr = user->expr == MSC_NO_ID ? NULL : msc_schedule__expr(s, user);
    if (!expr || expr->weights == MSC_NO_ID) {
        return;
    }
    struct msc_node *weights = msc_schedule__node(s, user, expr->weights);
    if (!weights->is_begun && !weights->entry) {
        weights->is_begun = true;
        s->ready.items[s->ready.n++] = (int32_t)(weights - s->nodes);
    }
}

static void finish_computed(struct msc_schedule *s, struct msc_node *node);

// Removes a finished node from the pending inputs of the nodes that wait for it. If the node
// failed, passes its failure on to them.
static void wake_users(struct msc_schedule *s, struct msc_node *node) {
    size_t before = s->ready.n;
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        struct msc_node *user = &s->nodes[s->edges[e].node];
        user->failure = first_failure(s, user->failure, node->failure);
        if (user->is_fused) {
            finish_computed(s, user);
        } else if (--user->n_pending == 0) {
            s->ready.items[s->ready.n++] = s->edges[e].node;
        } else if (user->n_pending == 1) {
            push_weights(s, user);
        }
    }
    if (s->ready.n > before + 1 && s->n_waiting > 0) {
        pthread_cond_broadcast(&s->wake);
    }
}

// Finishes a node that was computed or has failed, and the nodes fused into it.
static void finish_computed(struct msc_schedule *s, struct msc_node *node) {
    struct msc_entry *entry = node->entry;
    if (entry) {
        msc_cache_pin(entry, node->n_users);
    }
    wake_users(s, node);
    msc_schedule__release_inputs(s, node);
    if (entry) {
        msc_cache_unpin(s->options.cache, entry); // the pin of msc_cache_add; users have their own
    }
    s->n_done++;
}

static void set_weights(struct msc_schedule *s, const struct msc_node *node, void *weights,
                        size_t n_bytes) {
    const struct msc_plan *plan = s->plans[node->plan].plan;
    msc_cache_set_weights(s->options.cache, node->entry,
                          &plan->steps[msc_schedule__expr(s, node)->index], weights, n_bytes);
}

// Computes a node. If a device cannot allocate temporary memory or packed weights, frees part of
// the cache and retries. On the host, the cache is not the cause of a shortage, so nothing is
// retried. The caller holds the lock, which is released while the node is computed.
static enum msc_status compute_in_room(struct msc_schedule *s, const struct msc_node *node,
                                       int thread, void **weights, size_t *weights_bytes) {
    bool can_evict = !s->options.backend->def->memory_is_host;
    enum msc_status status = MSC_OK;
    int attempt = 0;
    do {
        pthread_mutex_unlock(&s->lock);
        status = msc_schedule__compute(s, node, thread, weights, weights_bytes);
        pthread_mutex_lock(&s->lock);
    } while (status == MSC_E_NOMEM && can_evict &&
             msc_cache_make_room(s->options.cache, attempt++));
    return status;
}

// Computes a node. The caller holds the lock, which is released while the node is computed.
static void compute_one(struct msc_schedule *s, int32_t id, int thread) {
    struct msc_node *node = &s->nodes[id];
    void *weights = NULL;
    size_t weights_bytes = 0;
    if (node->failure == MSC_NO_ID) {
        enum msc_status status = msc_schedule__allocate_entries(s, node);
        if (status == MSC_OK) {
            status = compute_in_room(s, node, thread, &weights, &weights_bytes);
        }
        if (status != MSC_OK) {
            fail_node(s, id, status);
            msc_schedule__discard_entries(s, node);
        }
    }
    if (weights) {
        set_weights(s, node, weights, weights_bytes);
    }
    finish_computed(s, node);
}

static enum msc_status try_together(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                    int thread) {
    enum msc_status status = MSC_OK;
    for (int32_t i = 0; status == MSC_OK && i < n; i++) {
        status = msc_schedule__allocate_entries(s, &s->nodes[ids[i]]);
    }
    if (status == MSC_OK) {
        pthread_mutex_unlock(&s->lock);
        status = msc_schedule__compute_together(s, ids, n, thread);
        pthread_mutex_lock(&s->lock);
    }
    for (int32_t i = 0; i < n && status == MSC_OK; i++) {
        finish_computed(s, &s->nodes[ids[i]]);
    }
    for (int32_t i = 0; i < n && status != MSC_OK; i++) {
        msc_schedule__discard_entries(s, &s->nodes[ids[i]]);
    }
    return status;
}

// Computes several nodes of one step together. If the call fails, each node runs by itself to find
// which of them fails. If the call runs out of memory, it is retried once with part of the cache
// freed. If that fails too, half as many nodes run together, also in later calls.
static void compute_together(struct msc_schedule *s, const int32_t ids[], int32_t n, int thread) {
    const struct msc_node *first = &s->nodes[ids[0]];
    int32_t *most = &s->plans[first->plan].most_together[msc_schedule__expr(s, first)->index];
    while (n > 0) {
        int32_t now = n < *most ? n : *most;
        enum msc_status status = MSC_E_NOMEM;
        if (now > 1) {
            status = try_together(s, ids, now, thread);
            if (status == MSC_E_NOMEM && msc_cache_make_room(s->options.cache, 0)) {
                status = try_together(s, ids, now, thread);
            }
            if (status == MSC_E_NOMEM) {
                *most = now / 2;
                continue;
            }
        }
        for (int32_t i = 0; i < now && status != MSC_OK; i++) {
            compute_one(s, ids[i], thread);
        }
        ids += now;
        n -= now;
    }
}

static void close_sink(struct msc_schedule *s, int32_t id) {
    struct msc_node *node = &s->nodes[id];
    bool is_last = msc_schedule__finish_sink(s, node);
    msc_schedule__release_inputs(s, node);
    s->n_done++;
    if (is_last) {
        msc_schedule__end_trial(s, node->trial);
    }
}

// Runs sink nodes whose values are all ready. If a sink node fails, the values of the nodes after
// it are downloaded again.
static void run_sinks(struct msc_schedule *s, const int32_t ids[], int32_t n) {
    while (n > 0) {
        enum msc_status status;
        pthread_mutex_unlock(&s->lock);
        int32_t n_given = msc_schedule__compare_sinks(s, ids, n, &status);
        if (n_given == 0 && status == MSC_OK) {
            n_given = msc_schedule__feed_sink(s, ids, n, &status);
        }
        pthread_mutex_lock(&s->lock);
        if (status != MSC_OK) {
            fail_node(s, ids[n_given++], status);
        }
        for (int32_t i = 0; i < n_given; i++) {
            close_sink(s, ids[i]);
        }
        ids += n_given;
        n -= n_given;
    }
}

static void run_nodes(struct msc_schedule *s, int32_t ids[], int32_t n, int thread) {
    const struct msc_node *first = &s->nodes[ids[0]];
    if (first->expr != MSC_NO_ID && n > 1) {
        compute_together(s, ids, n, thread);
    } else if (first->expr != MSC_NO_ID) {
        compute_one(s, ids[0], thread);
    } else {
        int32_t n_good = 0;
        for (int32_t i = 0; i < n; i++) {
            if (s->nodes[ids[i]].failure != MSC_NO_ID) {
                close_sink(s, ids[i]);
            } else {
                ids[n_good++] = ids[i];
            }
        }
        run_sinks(s, ids, n_good);
    }
}

static void work_as_thread(struct msc_schedule *s, int thread) {
    int32_t ids[MSC_SCHEDULE_TOGETHER], n;
    pthread_mutex_lock(&s->lock);
    s->n_started++;
    while ((n = msc_schedule__take(s, ids, thread)) > 0) {
        run_nodes(s, ids, n, thread);
        if (s->stepper == thread) {
            s->stepper = MSC_NO_ID;
            pthread_cond_broadcast(&s->wake);
        }
        if (s->n_done == s->n_nodes) {
            pthread_cond_broadcast(&s->wake);
        }
        if (msc_cancel_now(s->options.cancel)) {
            stop_all(s, MSC_E_CANCELLED, "stopped on request");
        }
    }
    pthread_mutex_unlock(&s->lock);
}

void msc_schedule__walk(struct msc_schedule *s) {
    s->stop = MSC_OK;
    s->stepper = MSC_NO_ID;
    s->n_started = 0;
    msc_schedule__ready_roots(s);
    if (s->options.n_threads == 1) {
        work_as_thread(s, 0);
    } else {
#pragma omp parallel num_threads(s->options.n_threads)
        {
            omp_set_num_threads(1);
            work_as_thread(s, omp_get_thread_num());
        }
    }
    if (s->stop != MSC_OK) {
        msc_schedule__release_unread(s);
    }
}
