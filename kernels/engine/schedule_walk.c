#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

// ---- Scheduling (with the lock) ---------------------------------------------------------------

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
}

// Of several failures the one whose node was made first is told, whichever came first in time.
static int32_t first_failure(const struct msc_schedule *s, int32_t a, int32_t b) {
    if (a == MSC_NO_ID || b == MSC_NO_ID) {
        return a == MSC_NO_ID ? b : a;
    }
    return s->failures[a].node < s->failures[b].node ? a : b;
}

// From so many trials on, what one of them has for itself is not kept: that just this one is what
// the next call starts from is not likely enough.
enum { MANY_TRIALS = 8 };

// The bytes of a value, under a quantisation or (NULL) as it is.
static size_t value_bytes(const struct msc_plan *plan, int32_t value,
                          const struct msc_quant *quant) {
    const struct msc_value *v = &plan->values[value];
    enum msc_dtype dtype = quant ? msc_quant_dtype(quant) : v->dtype;
    return v->n_bytes / msc_dtype_bytes(v->dtype) * msc_dtype_bytes(dtype);
}

static enum msc_status allocate_entry(struct msc_schedule *s, struct msc_node *node) {
    const struct msc_numbering *c = &s->groups[node->group].numbering;
    const struct msc_expr *expr = &c->exprs[node->expr];
    struct msc_hash key = msc_schedule_key(expr, node->batch);
    size_t few[4];
    size_t *sizes = few;
    int32_t n = 1;
    if (expr->kind == MSC_EXPR_WEIGHTS) {
        return msc_cache_add(&node->entry, s->cache, key, 0, NULL);
    }
    if (expr->kind == MSC_EXPR_STEP) {
        const struct msc_step *step = &c->plan->steps[expr->index];
        n = step->n_outputs;
        sizes = n > 4 ? msc_alloc((size_t)n * sizeof(sizes[0])) : few;
        if (!sizes) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory while running a step");
        }
        for (int32_t i = 0; i < n; i++) {
            sizes[i] = value_bytes(c->plan, step->outputs[i], expr->edit);
        }
    } else if (expr->kind == MSC_EXPR_QUANTIZE) {
        sizes[0] = value_bytes(c->plan, expr->index, expr->edit);
    } else {
        const struct msc_array *a =
            msc_dataset_batch(s->dataset, (size_t)node->batch, (size_t)expr->index);
        sizes[0] = msc_array_n_bytes(a);
    }
    enum msc_status status = msc_cache_add(&node->entry, s->cache, key, n, sizes);
    if (status == MSC_OK) {
        node->entry->is_brief = s->n_trials >= MANY_TRIALS && !node->is_shared;
    }
    if (sizes != few) {
        msc_free(sizes);
    }
    return status;
}

// An input has been read: its entry may go when this was the last reader.
static void release_input(struct msc_schedule *s, struct msc_node *input) {
    if (!input->entry) {
        return;
    }
    if (--input->n_users > 0) {
        msc_cache_unpin(s->cache, input->entry);
        return;
    }
    // Entries of weights may be another plan's, too.
    if (s->is_fresh && msc_node_expr(s, input)->kind != MSC_EXPR_WEIGHTS) {
        msc_cache_discard(s->cache, input->entry);
    } else {
        msc_cache_unpin(s->cache, input->entry);
    }
    input->entry = NULL;
}

static void release_inputs(struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_group *g = &s->groups[node->group];
    if (node->expr == MSC_NO_ID) {
        const struct msc_value_number *t = &g->targets[(size_t)node->trial * (size_t)s->n_targets];
        for (int32_t i = node->first_target; i < node->first_target + node->n_targets; i++) {
            if (t[i].expr != MSC_NO_ID) {
                release_input(s, msc_schedule_node(s, node, t[i].expr));
            }
        }
        return;
    }
    const struct msc_expr *expr = &g->numbering.exprs[node->expr];
    for (int32_t i = 0; i <= expr->n_inputs; i++) {
        int32_t input =
            i < expr->n_inputs ? g->numbering.inputs[expr->first_input + i].expr : expr->weights;
        if (input != MSC_NO_ID) {
            release_input(s, msc_schedule_node(s, node, input));
        }
    }
}

// The next node fused into a step, after edge *e (of its own first_edge at the start).
static struct msc_node *next_fused(const struct msc_schedule *s, int32_t *e) {
    while (*e != MSC_NO_ID) {
        struct msc_node *user = &s->nodes[s->edges[*e].node];
        *e = s->edges[*e].next;
        if (user->is_fused) {
            return user;
        }
    }
    return NULL;
}

static void discard_entries(struct msc_schedule *s, struct msc_node *node) {
    int32_t e = node->first_edge;
    for (struct msc_node *n = node; n; n = next_fused(s, &e)) {
        if (n->entry) {
            msc_cache_discard(s->cache, n->entry);
            n->entry = NULL;
        }
    }
}

// What a few trials have in common with many that follow (a search begins with its baselines) may
// be asked for in other quantised variants: it is kept as it is, too, while there is memory for it.
static bool keeps_unread(const struct msc_schedule *s) {
    return !s->is_fresh && s->n_trials < MANY_TRIALS && msc_cache_has_room(s->cache);
}

// Memory for what a node makes: for itself, if anybody reads it, and for what is fused into it.
static enum msc_status allocate_entries(struct msc_schedule *s, struct msc_node *node) {
    int32_t e = node->first_edge;
    bool is_read = node->n_users > node->n_fused || node->n_fused == 0 || keeps_unread(s);
    enum msc_status status = is_read ? allocate_entry(s, node) : MSC_OK;
    for (struct msc_node *n; status == MSC_OK && (n = next_fused(s, &e)) != NULL;) {
        status = allocate_entry(s, n);
    }
    return status;
}

// A step that waits for one thing only: if that is its weights, they are next.
static void push_weights(struct msc_schedule *s, const struct msc_node *user) {
    const struct msc_expr *expr = user->expr == MSC_NO_ID ? NULL : msc_node_expr(s, user);
    if (!expr || expr->weights == MSC_NO_ID) {
        return;
    }
    struct msc_node *weights = msc_schedule_node(s, user, expr->weights);
    if (!weights->is_begun && !weights->entry) {
        weights->is_begun = true;
        s->ready[s->n_ready++] = (int32_t)(weights - s->nodes);
    }
}

static void finish_computed(struct msc_schedule *s, struct msc_node *node);

// Hands a finished node to those that wait for it; a failure goes on to all that depend on it.
static void wake_users(struct msc_schedule *s, struct msc_node *node) {
    size_t before = s->n_ready;
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        struct msc_node *user = &s->nodes[s->edges[e].node];
        user->failure = first_failure(s, user->failure, node->failure);
        if (user->is_fused) {
            finish_computed(s, user);
        } else if (--user->n_pending == 0) {
            s->ready[s->n_ready++] = s->edges[e].node;
        } else if (user->n_pending == 1) {
            push_weights(s, user);
        }
    }
    if (s->n_ready > before + 1 && s->n_waiting > 0) {
        pthread_cond_broadcast(&s->wake);
    }
}

// An expression that has its entry, or failed, and with it what is fused into it.
static void finish_computed(struct msc_schedule *s, struct msc_node *node) {
    struct msc_entry *entry = node->entry;
    if (entry) {
        msc_cache_pin(entry, node->n_users);
    }
    wake_users(s, node);
    release_inputs(s, node);
    if (entry) {
        msc_cache_unpin(s->cache, entry); // the pin it was made with; users hold their own
    }
    s->n_done++;
}

// Is this sink's failure the one to tell of its trial so far? Of the lowest batch that fails it is
// the one whose node was made first, whichever came first in time.
static bool is_told(const struct msc_schedule *s, const struct msc_node *sink) {
    const struct msc_progress *p = &s->progress[sink->trial];
    if (p->failed_batch == MSC_NO_ID || sink->batch != p->failed_batch) {
        return p->failed_batch == MSC_NO_ID || sink->batch < p->failed_batch;
    }
    return s->failures[sink->failure].node < p->failed_node;
}

// Returns true when this was the trial's last sink node and it will not be tried again.
static bool finish_sink(struct msc_schedule *s, const struct msc_node *node) {
    struct msc_eval_trial *trial = &s->trials[node->trial];
    struct msc_progress *p = &s->progress[node->trial];
    if (node->failure != MSC_NO_ID && is_told(s, node)) {
        const struct msc_failure *f = &s->failures[node->failure];
        p->failed_batch = node->batch;
        p->failed_node = f->node;
        trial->status = f->status;
        snprintf(trial->message, sizeof(trial->message), "%s", f->message);
    }
    trial->reuse_ratio = p->macs_asked > 0 ? 1.0 - p->macs_run / p->macs_asked : 0.0;
    return --p->sinks_left == 0 && (trial->status != MSC_E_NOMEM || s->is_last_attempt);
}

static void set_weights(struct msc_schedule *s, const struct msc_node *node, void *weights,
                        size_t n_bytes) {
    const struct msc_plan *plan = s->groups[node->group].numbering.plan;
    msc_cache_set_weights(s->cache, node->entry, &plan->steps[msc_node_expr(s, node)->index],
                          weights, n_bytes);
}

// Computes an expression taken under the lock; the lock is let go meanwhile.
static void compute_one(struct msc_schedule *s, int32_t id, int thread) {
    struct msc_node *node = &s->nodes[id];
    void *weights = NULL;
    size_t weights_bytes = 0;
    if (node->failure == MSC_NO_ID) {
        enum msc_status status = allocate_entries(s, node);
        if (status == MSC_OK) {
            pthread_mutex_unlock(&s->lock);
            status = msc_schedule_compute(s, node, thread, &weights, &weights_bytes);
            pthread_mutex_lock(&s->lock);
        }
        if (status != MSC_OK) {
            fail_node(s, id, status);
            discard_entries(s, node);
        }
    }
    if (weights) {
        set_weights(s, node, weights, weights_bytes);
    }
    finish_computed(s, node);
}

// The same for nodes of one step. Should they fail together, each is tried alone, to see which
// does.
static void compute_together(struct msc_schedule *s, const int32_t ids[], int32_t n, int thread) {
    enum msc_status status = MSC_OK;
    int32_t n_ready = 0;
    while (status == MSC_OK && n_ready < n) {
        status = allocate_entries(s, &s->nodes[ids[n_ready]]);
        n_ready += status == MSC_OK;
    }
    if (status == MSC_OK) {
        pthread_mutex_unlock(&s->lock);
        status = msc_schedule_compute_together(s, ids, n, thread);
        pthread_mutex_lock(&s->lock);
    }
    for (int32_t i = 0; i < n && status == MSC_OK; i++) {
        finish_computed(s, &s->nodes[ids[i]]);
    }
    for (int32_t i = 0; i < n && status != MSC_OK; i++) {
        discard_entries(s, &s->nodes[ids[i]]);
    }
    for (int32_t i = 0; i < n && status != MSC_OK; i++) {
        compute_one(s, ids[i], thread);
    }
}

static void end_trial(struct msc_schedule *s, int32_t trial) {
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->end_lock);
    s->sink->end(s->sink->payload, (size_t)trial);
    pthread_mutex_unlock(&s->end_lock);
    pthread_mutex_lock(&s->lock);
}

static void close_sink(struct msc_schedule *s, int32_t id) {
    struct msc_node *node = &s->nodes[id];
    bool is_last = finish_sink(s, node);
    release_inputs(s, node);
    s->n_done++;
    if (is_last && s->sink->end) {
        end_trial(s, node->trial);
    }
}

// Sinks that all have their values. The values of one that fails were asked for with the others':
// those after it are asked for again.
static void run_sinks(struct msc_schedule *s, const int32_t ids[], int32_t n) {
    while (n > 0) {
        enum msc_status status;
        pthread_mutex_unlock(&s->lock);
        int32_t n_given = msc_schedule_feed_sink(s, ids, n, &status);
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

static void work(struct msc_schedule *s, int thread) {
    int32_t ids[MSC_SCHEDULE_TOGETHER], n;
    pthread_mutex_lock(&s->lock);
    while ((n = msc_schedule_take(s, ids)) > 0) {
        run_nodes(s, ids, n, thread);
        if (s->n_done == s->n_nodes) {
            pthread_cond_broadcast(&s->wake);
        }
        if (msc_cancel_now(s->cancel) && !s->is_cancelled) {
            s->is_cancelled = true;
            pthread_cond_broadcast(&s->wake);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

// After a stop: lets go of what readers that never ran still hold.
static void release_unread(struct msc_schedule *s) {
    for (size_t i = 0; i < s->n_nodes; i++) {
        while (s->nodes[i].entry) {
            release_input(s, &s->nodes[i]);
        }
    }
}

enum msc_status msc_schedule_run(struct msc_schedule *s) {
    s->is_cancelled = false;
    msc_schedule_ready_roots(s);
    if (s->n_threads == 1) {
        work(s, 0);
    } else {
#pragma omp parallel num_threads(s->n_threads)
        {
            omp_set_num_threads(1);
            work(s, omp_get_thread_num());
        }
    }
    if (s->is_cancelled) {
        release_unread(s);
        for (size_t t = 0; t < s->n_trials; t++) {
            if (s->progress[t].sinks_left > 0) {
                s->trials[t].status = MSC_E_CANCELLED;
                snprintf(s->trials[t].message, sizeof(s->trials[t].message), "stopped on request");
            }
        }
        return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
    }
    for (size_t t = 0; t < s->n_trials; t++) {
        struct msc_progress *p = &s->progress[t];
        p->is_over = p->is_over || p->failed_batch != MSC_NO_ID ||
                     (s->sink->is_over && s->sink->is_over(s->sink->payload, t));
    }
    return MSC_OK;
}

void msc_schedule_end(struct msc_schedule *s) {
    for (size_t t = 0; t < s->n_trials; t++) {
        bool is_retried = s->trials[t].status == MSC_E_NOMEM && !s->is_last_attempt;
        if (s->progress[t].sinks_left > 0 && !is_retried && s->sink->end) {
            s->sink->end(s->sink->payload, t);
        }
    }
}
