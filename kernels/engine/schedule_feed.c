#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "kernels/engine/remainder.h"

// A target's value, still at the backend's address; without data where there is none.
static struct msc_view target_view(const struct msc_schedule *s, const struct msc_node *node,
                                   int32_t target) {
    const struct msc_scheduled_plan *p = &s->plans[node->plan];
    const struct msc_value_number *targets = msc_schedule__targets(s, p, (size_t)node->trial);
    int32_t value = msc_schedule__target_value(s, p->plan, target);
    return value == MSC_NO_ID ? (struct msc_view){.dtype = MSC_DTYPE_NONE}
                              : msc_schedule__view(s, node, value, targets[target]);
}

// Values of a backend whose memory is not the host's, to be copied in one go.
struct copies {
    struct msc_arena arena;
    void **hosts;
    const void **memories;
    size_t *n_bytes;
    size_t n;
};

static enum msc_status add_copy(struct copies *c, struct msc_view *v) {
    void *host = msc_arena_alloc(&c->arena, msc_view_n_bytes(v) + 1);
    if (!host) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
    }
    c->hosts[c->n] = host;
    c->memories[c->n] = v->data;
    c->n_bytes[c->n++] = msc_view_n_bytes(v);
    v->data = host;
    return MSC_OK;
}

static enum msc_status download_copies(struct msc_backend *b, const struct copies *c) {
    if (b->def->download_all) {
        return b->def->download_all(b, c->hosts, c->memories, c->n_bytes, c->n);
    }
    for (size_t i = 0; i < c->n; i++) {
        MSC_TRY(b->def->download(b, c->hosts[i], c->memories[i], c->n_bytes[i]));
    }
    return MSC_OK;
}

// Sinks know float32 alone.
static enum msc_status dequantize(struct copies *c, struct msc_view *v) {
    int64_t n = msc_view_n_elements(v);
    float *x = msc_arena_array(&c->arena, (size_t)n + 1, sizeof(x[0]));
    if (!x) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
    }
    msc_view_dequantize(x, v);
    v->data = x;
    v->dtype = MSC_DTYPE_F32;
    v->quant = NULL;
    return MSC_OK;
}

static enum msc_status dequantize_all(struct copies *c, struct msc_view values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(values[i].data && values[i].quant ? dequantize(c, &values[i]) : MSC_OK);
    }
    return MSC_OK;
}

// The values of all targets of the nodes, one node after the other, in host memory.
static enum msc_status gather_values(const struct msc_schedule *s, const int32_t ids[], int32_t n,
                                     struct msc_view **values, struct copies *c) {
    size_t n_values = 1, at = 0;
    for (int32_t i = 0; i < n; i++) {
        n_values += (size_t)s->nodes[ids[i]].n_targets;
    }
    *values = msc_arena_array(&c->arena, n_values, sizeof(**values));
    c->hosts = msc_arena_array(&c->arena, n_values, sizeof(c->hosts[0]));
    c->memories = msc_arena_array(&c->arena, n_values, sizeof(c->memories[0]));
    c->n_bytes = msc_arena_array(&c->arena, n_values, sizeof(c->n_bytes[0]));
    if (!*values || !c->hosts || !c->memories || !c->n_bytes) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
    }
    for (int32_t i = 0; i < n; i++) {
        const struct msc_node *node = &s->nodes[ids[i]];
        for (int32_t k = 0; k < node->n_targets; k++, at++) {
            (*values)[at] = target_view(s, node, node->first_target + k);
            if ((*values)[at].data && !s->options.backend->def->memory_is_host) {
                MSC_TRY(add_copy(c, &(*values)[at]));
            }
        }
    }
    MSC_TRY(c->n > 0 ? download_copies(s->options.backend, c) : MSC_OK);
    return dequantize_all(c, *values, at);
}

static enum msc_status feed_slot(const struct msc_schedule *s, const struct msc_node *node,
                                 const struct msc_view *value) {
    const struct msc_sink *sink = s->job.sink;
    const struct msc_plan *plan = msc_schedule__plan(s, node);
    int32_t slot = node->first_target - s->n_live_out;
    int32_t joint = plan->sites.slots[slot].joint;
    int32_t part = joint == MSC_NO_ID ? 0 : plan->parts[joint];
    return sink->slot(sink->payload, s->job.first_trial + (size_t)node->trial, (size_t)node->batch,
                      part, plan->slot_ids[slot], value);
}

static enum msc_status feed_live_out(const struct msc_schedule *s, const struct msc_node *node,
                                     const struct msc_view live_out[]) {
    const struct msc_sink *sink = s->job.sink;
    const struct msc_eval_trial *trial = &s->job.trials[node->trial];
    const struct msc_remainder remainder = {.plan = msc_schedule__plan(s, node),
                                            .dataset = s->options.dataset,
                                            .batch = (size_t)node->batch,
                                            .edits = trial->edits,
                                            .noise_seed = trial->noise_seed,
                                            .sink = sink,
                                            .trial = s->job.first_trial + (size_t)node->trial,
                                            .store = s->options.remainder_store,
                                            .limits = s->options.limits};
    if (msc_remainder_is_asked(remainder.plan, sink)) {
        return msc_remainder_run(&remainder, live_out);
    }
    return sink->batch ? sink->batch(sink->payload, remainder.trial, remainder.batch, live_out)
                       : MSC_OK;
}

int32_t msc_schedule__feed_sink(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                enum msc_status *status) {
    struct copies c = {0};
    struct msc_view *values = NULL;
    int32_t n_given = 0;
    *status = gather_values(s, ids, n, &values, &c);
    while (*status == MSC_OK && n_given < n) {
        const struct msc_node *node = &s->nodes[ids[n_given]];
        bool is_slot = node->n_targets > 0 && node->first_target >= s->n_live_out;
        *status = is_slot ? feed_slot(s, node, values) : feed_live_out(s, node, values);
        values += node->n_targets;
        n_given += *status == MSC_OK;
    }
    msc_arena_finish(&c.arena);
    return n_given;
}
