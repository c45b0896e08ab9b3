#include "kernels/schedule.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

// ---- Running one node (without the lock) ------------------------------------------------------

// The node that makes a class for the batch of `node`.
static struct msc_node *node_of(const struct msc_schedule *s, const struct msc_node *node,
                                int32_t class_id) {
    const struct msc_group *g = &s->groups[node->group];
    return &s->nodes[*msc_group_node(g, class_id, node->batch)];
}

static struct msc_view view_of(const struct msc_schedule *s, const struct msc_node *node,
                               int32_t value, struct msc_class_ref ref) {
    const struct msc_group *g = &s->groups[node->group];
    const struct msc_entry *entry = node_of(s, node, ref.id)->entry;
    struct msc_view v = msc_plan_view(g->classes.plan, value, entry->outputs[ref.output].data);
    v.quant = msc_class_integers(&g->classes, ref);
    v.dtype = v.quant ? msc_quant_dtype(v.quant) : v.dtype;
    return v;
}

static enum msc_status run_step(struct msc_schedule *s, const struct msc_node *node,
                                const struct msc_class *k, int thread) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    const struct msc_step *step = &c->plan->steps[k->index];
    struct msc_view inputs[MSC_STEP_MAX_INPUTS];
    struct msc_view few[4];
    struct msc_view *outputs = few;
    if (step->n_outputs > 4) {
        outputs = msc_alloc((size_t)step->n_outputs * sizeof(outputs[0]));
        if (!outputs) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory while running a step");
        }
    }
    for (int32_t i = 0; i < step->n_inputs; i++) {
        inputs[i] = view_of(s, node, step->inputs[i], c->inputs[k->first_input + i]);
    }
    for (int32_t i = 0; i < step->n_outputs; i++) {
        outputs[i] = msc_plan_view(c->plan, step->outputs[i], node->entry->outputs[i].data);
    }
    struct msc_call call = {.inputs = inputs, .outputs = outputs};
    if (k->weights != MSC_NO_ID) {
        call.weights = node_of(s, node, k->weights)->entry->weights;
    }
    enum msc_status status = s->backend->def->run(s->backend, step, &call, 1, thread);
    if (outputs != few) {
        msc_free(outputs);
    }
    return status;
}

// The elements in host memory, each moved by one part in 2^22 up or down. The class takes in the
// seed and all that its value comes from, so that no two tensors move alike, and none differently
// in other company.
static void add_noise(float x[], int64_t n, const struct msc_class *k, int32_t batch) {
    const float step = 1.0f / (1 << 22);
    struct msc_rng rng;
    uint64_t bits = 0;
    msc_rng_seed(&rng, k->hash.low, k->hash.high + (uint64_t)batch);
    for (int64_t i = 0; i < n; i++) {
        bits = i % 64 == 0 ? msc_rng_u64(&rng) : bits >> 1;
        x[i] *= bits & 1 ? 1.0f + step : 1.0f - step;
    }
}

// Quantises a perturbed copy of `in`, made in memory of the backend.
static enum msc_status quantize_noisy(struct msc_schedule *s, const struct msc_node *node,
                                      const struct msc_class *k, struct msc_view in,
                                      const struct msc_view *out, int thread) {
    const struct msc_backend_def *def = s->backend->def;
    size_t n_bytes = msc_view_n_bytes(&in);
    float *host = msc_alloc_aligned(n_bytes + 1);
    void *copy = def->allocate(s->backend, n_bytes);
    enum msc_status status = MSC_OK;
    if (!host || !copy) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for the noise of a loss");
        goto out;
    }
    MSC_TRY_OUT(def->download(s->backend, host, in.data, n_bytes));
    add_noise(host, msc_view_n_elements(&in), k, node->batch);
    MSC_TRY_OUT(def->upload(s->backend, copy, host, n_bytes));
    in.data = copy;
    status = def->quantize(s->backend, &in, out, k->edit, thread);
out:
    if (copy) {
        def->release_memory(s->backend, copy, n_bytes);
    }
    msc_free_aligned(host);
    return status;
}

// What a quantised value is kept as: integers of a byte, or float32 where they do not fit one.
static enum msc_dtype stored_dtype(const struct msc_quant *q) {
    return msc_quant_is_integer(q) ? msc_quant_dtype(q) : MSC_DTYPE_F32;
}

static enum msc_status run_quantize(struct msc_schedule *s, const struct msc_node *node,
                                    const struct msc_class *k, int thread) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    struct msc_view in = view_of(s, node, k->index, c->inputs[k->first_input]);
    struct msc_view out = in;
    out.data = node->entry->outputs[0].data;
    out.quant = msc_quant_is_integer(k->edit) ? k->edit : NULL;
    out.dtype = stored_dtype(k->edit);
    if (k->noise_seed) {
        return quantize_noisy(s, node, k, in, &out, thread);
    }
    return s->backend->def->quantize(s->backend, &in, &out, k->edit, thread);
}

static enum msc_status run_class(struct msc_schedule *s, const struct msc_node *node, int thread,
                                 void **weights, size_t *weights_bytes) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    const struct msc_class *k = &c->items[node->class_id];
    switch (k->kind) {
    case MSC_CLASS_INPUT: {
        const struct msc_array *a =
            msc_dataset_batch(s->dataset, (size_t)node->batch, (size_t)k->index);
        return s->backend->def->upload(s->backend, node->entry->outputs[0].data, msc_array_data(a),
                                       msc_array_n_bytes(a));
    }
    case MSC_CLASS_WEIGHTS:
        return s->backend->def->weights(s->backend, &c->plan->steps[k->index], k->edit, weights,
                                        weights_bytes);
    case MSC_CLASS_QUANTIZE:
        return run_quantize(s, node, k, thread);
    case MSC_CLASS_STEP:
        return run_step(s, node, k, thread);
    }
    return MSC_FAIL(MSC_E_STATE, "unknown class of work");
}

// Target values as host memory: where the backend's memory is not the host's, a copy for each.
static enum msc_status gather_targets(struct msc_schedule *s, const struct msc_node *node,
                                      struct msc_view values[], struct msc_arena *copies) {
    const struct msc_group *g = &s->groups[node->group];
    const struct msc_plan *plan = g->classes.plan;
    const struct msc_class_ref *targets = &g->targets[(size_t)node->trial * (size_t)s->n_targets];
    for (int32_t i = 0; i < s->n_targets; i++) {
        int32_t value =
            i < plan->n_wanted ? plan->wanted[i] : plan->slot_values[i - plan->n_wanted];
        values[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
        if (targets[i].id == MSC_NO_ID) {
            continue;
        }
        values[i] = view_of(s, node, value, targets[i]);
        if (s->backend->def->memory_is_host) {
            continue;
        }
        void *copy = msc_arena_alloc(copies, msc_view_n_bytes(&values[i]));
        if (!copy) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
        }
        MSC_TRY(s->backend->def->download(s->backend, copy, values[i].data,
                                          msc_view_n_bytes(&values[i])));
        values[i].data = copy;
    }
    return MSC_OK;
}

static enum msc_status run_sink(struct msc_schedule *s, const struct msc_node *node) {
    struct msc_arena arena = {0};
    struct msc_view *values = msc_arena_array(&arena, (size_t)s->n_targets + 1, sizeof(values[0]));
    enum msc_status status = values ? gather_targets(s, node, values, &arena)
                                    : MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
    if (status == MSC_OK) {
        status = s->sink->batch(s->sink->payload, (size_t)node->trial, (size_t)node->batch, values);
    }
    msc_arena_finish(&arena);
    return status;
}

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

static enum msc_status allocate_entry(struct msc_schedule *s, struct msc_node *node) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    const struct msc_class *k = &c->items[node->class_id];
    struct msc_hash key = k->hash;
    size_t few[4];
    size_t *sizes = few;
    int32_t n = 1;
    if (k->kind == MSC_CLASS_WEIGHTS) {
        return msc_cache_add(&node->entry, s->cache, key, 0, NULL);
    }
    key = msc_hash_add_u64(key, (uint64_t)node->batch + 1);
    if (k->kind == MSC_CLASS_STEP) {
        const struct msc_step *step = &c->plan->steps[k->index];
        n = step->n_outputs;
        sizes = n > 4 ? msc_alloc((size_t)n * sizeof(sizes[0])) : few;
        if (!sizes) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory while running a step");
        }
        for (int32_t i = 0; i < n; i++) {
            sizes[i] = c->plan->values[step->outputs[i]].n_bytes;
        }
    } else if (k->kind == MSC_CLASS_QUANTIZE) {
        const struct msc_value *v = &c->plan->values[k->index];
        sizes[0] = v->n_bytes / msc_dtype_bytes(v->dtype) * msc_dtype_bytes(stored_dtype(k->edit));
    } else {
        const struct msc_array *a =
            msc_dataset_batch(s->dataset, (size_t)node->batch, (size_t)k->index);
        sizes[0] = msc_array_n_bytes(a);
    }
    enum msc_status status = msc_cache_add(&node->entry, s->cache, key, n, sizes);
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
    if (s->is_fresh && !input->entry->weights) {
        msc_cache_discard(s->cache, input->entry);
    } else {
        msc_cache_unpin(s->cache, input->entry);
    }
    input->entry = NULL;
}

static void release_inputs(struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_group *g = &s->groups[node->group];
    if (node->class_id == MSC_NO_ID) {
        const struct msc_class_ref *t = &g->targets[(size_t)node->trial * (size_t)s->n_targets];
        for (int32_t i = 0; i < s->n_targets; i++) {
            if (t[i].id != MSC_NO_ID) {
                release_input(s, node_of(s, node, t[i].id));
            }
        }
        return;
    }
    const struct msc_class *k = &g->classes.items[node->class_id];
    for (int32_t i = 0; i <= k->n_inputs; i++) {
        int32_t class_id = i < k->n_inputs ? g->classes.inputs[k->first_input + i].id : k->weights;
        if (class_id != MSC_NO_ID) {
            release_input(s, node_of(s, node, class_id));
        }
    }
}

// Hands a finished node to those that wait for it; a failure goes on to all that depend on it.
static void wake_users(struct msc_schedule *s, struct msc_node *node) {
    size_t before = s->n_ready;
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        struct msc_node *user = &s->nodes[s->edges[e].node];
        user->failure = first_failure(s, user->failure, node->failure);
        if (--user->n_pending == 0) {
            s->ready[s->n_ready++] = s->edges[e].node;
        }
    }
    if (s->n_ready > before + 1 && s->n_waiting > 0) {
        pthread_cond_broadcast(&s->wake);
    }
}

// Returns true when this was the trial's last batch and it will not be tried again.
static bool finish_sink(struct msc_schedule *s, const struct msc_node *node) {
    struct msc_eval_trial *trial = &s->trials[node->trial];
    int32_t *failed = &s->failed_batch[node->trial];
    if (node->failure != MSC_NO_ID && (*failed == MSC_NO_ID || node->batch < *failed)) {
        const struct msc_failure *f = &s->failures[node->failure];
        *failed = node->batch;
        trial->status = f->status;
        snprintf(trial->message, sizeof(trial->message), "%s", f->message);
    }
    return --s->batches_left[node->trial] == 0 &&
           (trial->status != MSC_E_NOMEM || s->is_last_attempt);
}

static int32_t take_node(struct msc_schedule *s) {
    for (;;) {
        if (s->is_cancelled || s->n_done == s->n_nodes) {
            return MSC_NO_ID;
        }
        if (s->n_ready > 0) {
            return s->ready[--s->n_ready];
        }
        if (s->next_root < s->n_roots) {
            return s->roots[s->next_root++];
        }
        s->n_waiting++;
        pthread_cond_wait(&s->wake, &s->lock);
        s->n_waiting--;
    }
}

// Runs a node taken under the lock; the lock is let go while it computes.
static void run_node(struct msc_schedule *s, int32_t id, int thread) {
    struct msc_node *node = &s->nodes[id];
    bool is_class = node->class_id != MSC_NO_ID;
    bool is_last = false;
    void *weights = NULL;
    size_t weights_bytes = 0;
    enum msc_status status = MSC_OK;
    if (node->failure == MSC_NO_ID && is_class) {
        status = allocate_entry(s, node);
    }
    if (node->failure == MSC_NO_ID && status == MSC_OK) {
        pthread_mutex_unlock(&s->lock);
        status =
            is_class ? run_class(s, node, thread, &weights, &weights_bytes) : run_sink(s, node);
        pthread_mutex_lock(&s->lock);
    }
    if (status != MSC_OK) {
        fail_node(s, id, status);
        if (is_class && node->entry) {
            msc_cache_discard(s->cache, node->entry);
            node->entry = NULL;
        }
    } else if (weights) {
        const struct msc_classes *c = &s->groups[node->group].classes;
        msc_cache_set_weights(s->cache, node->entry,
                              &c->plan->steps[c->items[node->class_id].index], weights,
                              weights_bytes);
    }
    if (is_class) {
        if (node->entry) {
            msc_cache_pin(node->entry, node->n_users);
        }
        wake_users(s, node);
    } else {
        is_last = finish_sink(s, node);
    }
    release_inputs(s, node);
    if (is_class && node->entry) {
        msc_cache_unpin(s->cache, node->entry); // the pin it was made with; users hold their own
    }
    s->n_done++;
    if (s->n_done == s->n_nodes) {
        pthread_cond_broadcast(&s->wake);
    }
    if (is_last && s->sink->end) {
        int32_t trial = node->trial;
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_lock(&s->end_lock);
        s->sink->end(s->sink->payload, (size_t)trial);
        pthread_mutex_unlock(&s->end_lock);
        pthread_mutex_lock(&s->lock);
    }
}

static void work(struct msc_schedule *s, int thread) {
    pthread_mutex_lock(&s->lock);
    int32_t id;
    while ((id = take_node(s)) != MSC_NO_ID) {
        run_node(s, id, thread);
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
            if (s->batches_left[t] > 0) {
                s->trials[t].status = MSC_E_CANCELLED;
                snprintf(s->trials[t].message, sizeof(s->trials[t].message), "stopped on request");
            }
        }
        return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
    }
    return MSC_OK;
}
