#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "base/rng.h"

#include <string.h>

static struct msc_view view_of(const struct msc_schedule *s, const struct msc_node *node,
                               int32_t value, struct msc_value_number number) {
    const struct msc_group *g = &s->groups[node->group];
    const struct msc_entry *entry = msc_schedule_node(s, node, number.expr)->entry;
    struct msc_view v = msc_plan_view(g->numbering.plan, value, entry->outputs[number.output].data);
    v.quant = msc_numbering_integers(&g->numbering, number);
    v.dtype = v.quant ? msc_quant_dtype(v.quant) : v.dtype;
    return v;
}

// A value under a quantisation: integers of a byte, or float32 where they do not fit one. NULL: as
// it is.
static struct msc_view quantized_view(const struct msc_plan *plan, int32_t value,
                                      const struct msc_quant *quant, void *data) {
    struct msc_view v = msc_plan_view(plan, value, data);
    if (quant) {
        v.quant = msc_quant_is_integer(quant) ? quant : NULL;
        v.dtype = msc_quant_dtype(quant);
    }
    return v;
}

// ---- Steps ------------------------------------------------------------------------------------

enum { FEW = 4 };

// The views of a call: some on the stack, more on the heap.
struct views {
    struct msc_view inputs[MSC_STEP_MAX_INPUTS];
    struct msc_view few_outputs[FEW], *outputs;
    struct msc_quantized few_quantized[FEW], *quantized;
};

static void views_finish(struct views *v) {
    if (v->outputs != v->few_outputs) {
        msc_free(v->outputs);
    }
    if (v->quantized != v->few_quantized) {
        msc_free(v->quantized);
    }
}

static enum msc_status views_init(struct views *v, int32_t n_outputs, int32_t n_quantized) {
    v->outputs =
        n_outputs <= FEW ? v->few_outputs : msc_alloc((size_t)n_outputs * sizeof(v->outputs[0]));
    v->quantized = n_quantized <= FEW ? v->few_quantized
                                      : msc_alloc((size_t)n_quantized * sizeof(v->quantized[0]));
    if (!v->outputs || !v->quantized) {
        views_finish(v);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while running a step");
    }
    return MSC_OK;
}

static void list_fused(const struct msc_schedule *s, const struct msc_node *node, int32_t value,
                       struct msc_quantized out[]) {
    const struct msc_plan *plan = s->groups[node->group].numbering.plan;
    int32_t n = 0;
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        const struct msc_node *user = &s->nodes[s->edges[e].node];
        if (user->is_fused) {
            out[n].quant = msc_node_expr(s, user)->edit;
            out[n].view = quantized_view(plan, value, out[n].quant, user->entry->outputs[0].data);
            n++;
        }
    }
}

static enum msc_status fill_call(const struct msc_schedule *s, const struct msc_node *node,
                                 struct views *v, struct msc_call *call) {
    const struct msc_numbering *c = &s->groups[node->group].numbering;
    const struct msc_expr *expr = msc_node_expr(s, node);
    const struct msc_step *step = &c->plan->steps[expr->index];
    MSC_TRY(views_init(v, step->n_outputs, node->n_fused));
    for (int32_t i = 0; i < step->n_inputs; i++) {
        v->inputs[i] = view_of(s, node, step->inputs[i], c->inputs[expr->first_input + i]);
    }
    for (int32_t i = 0; i < step->n_outputs; i++) {
        void *data = node->entry ? node->entry->outputs[i].data : NULL;
        v->outputs[i] = quantized_view(c->plan, step->outputs[i], expr->edit, data);
    }
    list_fused(s, node, step->outputs[0], v->quantized);
    *call = (struct msc_call){.limits = s->limits,
                              .inputs = v->inputs,
                              .outputs = v->outputs,
                              .quantized = v->quantized,
                              .n_quantized = node->n_fused};
    if (expr->weights != MSC_NO_ID) {
        call->weights = msc_schedule_node(s, node, expr->weights)->entry->weights;
    }
    return MSC_OK;
}

static enum msc_status run_step(struct msc_schedule *s, const struct msc_node *node, int thread) {
    const struct msc_expr *expr = msc_node_expr(s, node);
    struct views v;
    struct msc_call call;
    MSC_TRY(fill_call(s, node, &v, &call));
    enum msc_status status = s->backend->def->run(
        s->backend, &s->groups[node->group].numbering.plan->steps[expr->index], &call, 1, thread);
    views_finish(&v);
    return status;
}

enum msc_status msc_schedule_compute_together(struct msc_schedule *s, const int32_t ids[],
                                              int32_t n, int thread) {
    const struct msc_node *first = &s->nodes[ids[0]];
    const struct msc_plan *plan = s->groups[first->group].numbering.plan;
    struct views *views = msc_alloc((size_t)n * sizeof(views[0]));
    struct msc_call *calls = msc_alloc((size_t)n * sizeof(calls[0]));
    enum msc_status status = MSC_OK;
    int32_t n_filled = 0;
    if (!views || !calls) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory while running a step");
    }
    while (status == MSC_OK && n_filled < n) {
        status = fill_call(s, &s->nodes[ids[n_filled]], &views[n_filled], &calls[n_filled]);
        n_filled += status == MSC_OK;
    }
    if (status == MSC_OK) {
        status = s->backend->def->run(s->backend, &plan->steps[msc_node_expr(s, first)->index],
                                      calls, (size_t)n, thread);
    }
    while (n_filled > 0) {
        views_finish(&views[--n_filled]);
    }
    msc_free(calls);
    msc_free(views);
    return status;
}

// ---- Quantising -------------------------------------------------------------------------------

// Elements moved by one part in 2^22, up where a bit is set, down where not.
MSC_SIMD static void move_block(float x[], int64_t n, uint64_t bits) {
    const float step = 1.0f / (1 << 22);
    for (int64_t i = 0; i < n; i++) {
        x[i] *= bits >> i & 1 ? 1.0f + step : 1.0f - step;
    }
}

enum { NOISE_BLOCK = 64, NOISE_PIECE = 256 * NOISE_BLOCK }; // elements

static void add_noise(float x[], int64_t n, struct msc_rng *rng) {
    for (int64_t i = 0; i < n; i += NOISE_BLOCK) {
        move_block(x + i, n - i < NOISE_BLOCK ? n - i : NOISE_BLOCK, msc_rng_u64(rng));
    }
}

// The expression's hash takes in the seed and all that its value comes from, so that no two tensors
// move alike, and none differently in other company.
static void seed_noise(struct msc_rng *rng, const struct msc_expr *expr, int32_t batch) {
    msc_rng_seed(rng, expr->hash.low, expr->hash.high + (uint64_t)batch);
}

// Memory of the host: piece by piece, so that the perturbed copy stays in the cache.
static enum msc_status quantize_pieces(struct msc_schedule *s, struct msc_rng *rng,
                                       struct msc_view in, struct msc_view out,
                                       const struct msc_quant *edit, int thread) {
    int64_t n = msc_view_n_elements(&in);
    const float *from = in.data;
    char *to = out.data;
    float *piece = msc_alloc_aligned(NOISE_PIECE * sizeof(piece[0]));
    enum msc_status status =
        piece ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for the noise of a loss");
    in.data = piece;
    in.layout = out.layout = MSC_LAYOUT_NCHW;
    in.n_dims = out.n_dims = 1;
    for (int64_t i = 0; status == MSC_OK && i < n; i += NOISE_PIECE) {
        in.dims[0] = out.dims[0] = n - i < NOISE_PIECE ? n - i : NOISE_PIECE;
        out.data = to + (size_t)i * msc_dtype_bytes(out.dtype);
        memcpy(piece, from + i, (size_t)in.dims[0] * sizeof(piece[0]));
        add_noise(piece, in.dims[0], rng);
        status = s->backend->def->quantize(s->backend, &in, &out, edit, thread);
    }
    msc_free_aligned(piece);
    return status;
}

// Memory of a device: the copy goes there and back.
static enum msc_status quantize_copy(struct msc_schedule *s, struct msc_rng *rng,
                                     struct msc_view in, const struct msc_view *out,
                                     const struct msc_quant *edit, int thread) {
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
    add_noise(host, msc_view_n_elements(&in), rng);
    MSC_TRY_OUT(def->upload(s->backend, copy, host, n_bytes));
    in.data = copy;
    status = def->quantize(s->backend, &in, out, edit, thread);
out:
    if (copy) {
        def->release_memory(s->backend, copy, n_bytes);
    }
    msc_free_aligned(host);
    return status;
}

static enum msc_status run_quantize(struct msc_schedule *s, const struct msc_node *node,
                                    const struct msc_expr *expr, int thread) {
    const struct msc_numbering *c = &s->groups[node->group].numbering;
    struct msc_view in = view_of(s, node, expr->index, c->inputs[expr->first_input]);
    struct msc_view out =
        quantized_view(c->plan, expr->index, expr->edit, node->entry->outputs[0].data);
    if (expr->noise_seed) {
        struct msc_rng rng;
        seed_noise(&rng, expr, node->batch);
        return s->backend->def->memory_is_host
                   ? quantize_pieces(s, &rng, in, out, expr->edit, thread)
                   : quantize_copy(s, &rng, in, &out, expr->edit, thread);
    }
    return s->backend->def->quantize(s->backend, &in, &out, expr->edit, thread);
}

// ---- Nodes ------------------------------------------------------------------------------------

static enum msc_status pack_weights(struct msc_schedule *s, const struct msc_numbering *c,
                                    const struct msc_expr *expr, void **weights, size_t *n_bytes) {
    const struct msc_step *step = &c->plan->steps[expr->index];
    const struct msc_edit *edits[MSC_STEP_MAX_WEIGHTS] = {NULL};
    for (int32_t i = 0; expr->slot_edits && i < step->n_weight_slots; i++) {
        edits[i] = expr->slot_edits[step->weight_slots[i]];
    }
    return s->backend->def->weights(s->backend, step, edits, weights, n_bytes);
}

enum msc_status msc_schedule_compute(struct msc_schedule *s, const struct msc_node *node,
                                     int thread, void **weights, size_t *weights_bytes) {
    const struct msc_numbering *c = &s->groups[node->group].numbering;
    const struct msc_expr *expr = msc_node_expr(s, node);
    switch (expr->kind) {
    case MSC_EXPR_INPUT: {
        const struct msc_array *a =
            msc_dataset_batch(s->dataset, (size_t)node->batch, (size_t)expr->index);
        return s->backend->def->upload(s->backend, node->entry->outputs[0].data, msc_array_data(a),
                                       msc_array_n_bytes(a));
    }
    case MSC_EXPR_WEIGHTS:
        return pack_weights(s, c, expr, weights, weights_bytes);
    case MSC_EXPR_QUANTIZE:
        return run_quantize(s, node, expr, thread);
    case MSC_EXPR_STEP:
        return run_step(s, node, thread);
    }
    return MSC_FAIL(MSC_E_STATE, "unknown kind of expression");
}

// ---- Handing over -----------------------------------------------------------------------------

// A target's value, still at the backend's address; without data where there is none.
static struct msc_view target_view(const struct msc_schedule *s, const struct msc_node *node,
                                   int32_t target) {
    const struct msc_group *g = &s->groups[node->group];
    const struct msc_plan *plan = g->numbering.plan;
    struct msc_value_number number =
        g->targets[(size_t)node->trial * (size_t)s->n_targets + (size_t)target];
    int32_t value = msc_schedule_target(s, plan, target);
    return value == MSC_NO_ID ? (struct msc_view){.dtype = MSC_DTYPE_NONE}
                              : view_of(s, node, value, number);
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

static enum msc_status download(const struct msc_schedule *s, const struct copies *c) {
    const struct msc_backend_def *def = s->backend->def;
    if (def->download_all) {
        return def->download_all(s->backend, c->hosts, c->memories, c->n_bytes, c->n);
    }
    for (size_t i = 0; i < c->n; i++) {
        MSC_TRY(def->download(s->backend, c->hosts[i], c->memories[i], c->n_bytes[i]));
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
            if ((*values)[at].data && !s->backend->def->memory_is_host) {
                MSC_TRY(add_copy(c, &(*values)[at]));
            }
        }
    }
    return c->n > 0 ? download(s, c) : MSC_OK;
}

static enum msc_status give(const struct msc_schedule *s, const struct msc_node *node,
                            const struct msc_view values[]) {
    const struct msc_sink *sink = s->sink;
    size_t trial = (size_t)node->trial, batch = (size_t)node->batch;
    if (node->n_targets > 0 && node->first_target >= s->n_wanted) {
        const struct msc_plan *plan = s->groups[node->group].numbering.plan;
        int32_t slot = node->first_target - s->n_wanted;
        int32_t part = plan->parts[plan->sites.slots[slot].joint];
        return sink->slot(sink->payload, trial, batch, part, plan->slot_ids[slot], values);
    }
    return sink->batch ? sink->batch(sink->payload, trial, batch, values) : MSC_OK;
}

int32_t msc_schedule_feed_sink(struct msc_schedule *s, const int32_t ids[], int32_t n,
                               enum msc_status *status) {
    struct copies c = {0};
    struct msc_view *values = NULL;
    int32_t n_given = 0;
    *status = gather_values(s, ids, n, &values, &c);
    while (*status == MSC_OK && n_given < n) {
        *status = give(s, &s->nodes[ids[n_given]], values);
        values += s->nodes[ids[n_given]].n_targets;
        n_given += *status == MSC_OK;
    }
    msc_arena_finish(&c.arena);
    return n_given;
}
