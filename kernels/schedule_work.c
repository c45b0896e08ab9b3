#include "kernels/schedule.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "base/rng.h"

#include <string.h>

static struct msc_view view_of(const struct msc_schedule *s, const struct msc_node *node,
                               int32_t value, struct msc_class_ref ref) {
    const struct msc_group *g = &s->groups[node->group];
    const struct msc_entry *entry = msc_schedule_node(s, node, ref.id)->entry;
    struct msc_view v = msc_plan_view(g->classes.plan, value, entry->outputs[ref.output].data);
    v.quant = msc_class_integers(&g->classes, ref);
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
    const struct msc_plan *plan = s->groups[node->group].classes.plan;
    int32_t n = 0;
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        const struct msc_node *user = &s->nodes[s->edges[e].node];
        if (user->is_fused) {
            out[n].quant = msc_node_class(s, user)->edit;
            out[n].view = quantized_view(plan, value, out[n].quant, user->entry->outputs[0].data);
            n++;
        }
    }
}

static enum msc_status run_step(struct msc_schedule *s, const struct msc_node *node,
                                const struct msc_class *k, int thread) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    const struct msc_step *step = &c->plan->steps[k->index];
    struct views v;
    MSC_TRY(views_init(&v, step->n_outputs, node->n_fused));
    for (int32_t i = 0; i < step->n_inputs; i++) {
        v.inputs[i] = view_of(s, node, step->inputs[i], c->inputs[k->first_input + i]);
    }
    for (int32_t i = 0; i < step->n_outputs; i++) {
        void *data = node->entry ? node->entry->outputs[i].data : NULL;
        v.outputs[i] = quantized_view(c->plan, step->outputs[i], k->edit, data);
    }
    list_fused(s, node, step->outputs[0], v.quantized);
    struct msc_call call = {.inputs = v.inputs,
                            .outputs = v.outputs,
                            .quantized = v.quantized,
                            .n_quantized = node->n_fused};
    if (k->weights != MSC_NO_ID) {
        call.weights = msc_schedule_node(s, node, k->weights)->entry->weights;
    }
    enum msc_status status = s->backend->def->run(s->backend, step, &call, 1, thread);
    views_finish(&v);
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

// The class takes in the seed and all that its value comes from, so that no two tensors move alike,
// and none differently in other company.
static void seed_noise(struct msc_rng *rng, const struct msc_class *k, int32_t batch) {
    msc_rng_seed(rng, k->hash.low, k->hash.high + (uint64_t)batch);
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
    in.layout = out.layout = MSC_LAYOUT_PLAIN;
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
                                    const struct msc_class *k, int thread) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    struct msc_view in = view_of(s, node, k->index, c->inputs[k->first_input]);
    struct msc_view out = quantized_view(c->plan, k->index, k->edit, node->entry->outputs[0].data);
    if (k->noise_seed) {
        struct msc_rng rng;
        seed_noise(&rng, k, node->batch);
        return s->backend->def->memory_is_host ? quantize_pieces(s, &rng, in, out, k->edit, thread)
                                               : quantize_copy(s, &rng, in, &out, k->edit, thread);
    }
    return s->backend->def->quantize(s->backend, &in, &out, k->edit, thread);
}

// ---- Nodes ------------------------------------------------------------------------------------

enum msc_status msc_schedule_compute(struct msc_schedule *s, const struct msc_node *node,
                                     int thread, void **weights, size_t *weights_bytes) {
    const struct msc_classes *c = &s->groups[node->group].classes;
    const struct msc_class *k = msc_node_class(s, node);
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

// A target's value in host memory: a copy where the backend's memory is not the host's.
static enum msc_status gather_target(struct msc_schedule *s, const struct msc_node *node,
                                     int32_t target, struct msc_view *out,
                                     struct msc_arena *copies) {
    const struct msc_group *g = &s->groups[node->group];
    const struct msc_plan *plan = g->classes.plan;
    struct msc_class_ref ref =
        g->targets[(size_t)node->trial * (size_t)s->n_targets + (size_t)target];
    int32_t value =
        target < s->n_wanted ? plan->wanted[target] : plan->slot_values[target - s->n_wanted];
    *out = view_of(s, node, value, ref);
    if (s->backend->def->memory_is_host) {
        return MSC_OK;
    }
    void *copy = msc_arena_alloc(copies, msc_view_n_bytes(out));
    if (!copy) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
    }
    MSC_TRY(s->backend->def->download(s->backend, copy, out->data, msc_view_n_bytes(out)));
    out->data = copy;
    return MSC_OK;
}

static enum msc_status hand_over(struct msc_schedule *s, const struct msc_node *node,
                                 struct msc_arena *arena) {
    const struct msc_sink *sink = s->sink;
    size_t trial = (size_t)node->trial, batch = (size_t)node->batch;
    struct msc_view *values =
        msc_arena_array(arena, (size_t)node->n_targets + 1, sizeof(values[0]));
    if (!values) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for outputs");
    }
    for (int32_t i = 0; i < node->n_targets; i++) {
        MSC_TRY(gather_target(s, node, node->first_target + i, &values[i], arena));
    }
    if (node->n_targets > 0 && node->first_target >= s->n_wanted) {
        int32_t slot = node->first_target - s->n_wanted;
        return sink->slot(sink->payload, trial, batch, slot, values);
    }
    return sink->batch ? sink->batch(sink->payload, trial, batch, values) : MSC_OK;
}

enum msc_status msc_schedule_hand_over(struct msc_schedule *s, const struct msc_node *node) {
    struct msc_arena arena = {0};
    enum msc_status status = hand_over(s, node, &arena);
    msc_arena_finish(&arena);
    return status;
}
