#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "base/clock.h"

// ---- Steps ------------------------------------------------------------------------------------

enum { FEW = 4 };

// The views of a call: on the stack if they are few, otherwise on the heap.
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

// Lists the quantised variants of `value` that the step of the node writes itself.
static void list_fused(const struct msc_schedule *s, const struct msc_node *node, int32_t value,
                       struct msc_quantized out[]) {
    const struct msc_plan *plan = msc_schedule__plan(s, node);
    int32_t e = node->first_edge;
    for (const struct msc_node *user; (user = msc_schedule__next_fused(s, &e)) != NULL; out++) {
        void *data = user->entry->outputs[0].data;
        out->quant = msc_schedule__expr(s, user)->edit;
        out->view = msc_schedule__quantized_view(plan, value, out->quant, data);
    }
}

static enum msc_status schedule_compute_fill_call(const struct msc_schedule *s,
                                                  const struct msc_node *node, struct views *v,
                                                  struct msc_call *call) {
    const struct msc_plan *plan = msc_schedule__plan(s, node);
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    const struct msc_step *step = msc_schedule__step(s, node);
    MSC_TRY(views_init(v, step->n_outputs, node->n_fused));
    for (int32_t i = 0; i < step->n_inputs; i++) {
        v->inputs[i] =
            msc_schedule__view(s, node, step->inputs[i], msc_schedule__input(s, node, i));
    }
    for (int32_t i = 0; i < step->n_outputs; i++) {
        void *data = node->entry ? node->entry->outputs[i].data : NULL;
        v->outputs[i] = msc_schedule__quantized_view(plan, step->outputs[i], expr->edit, data);
    }
    list_fused(s, node, step->outputs[0], v->quantized);
    *call = (struct msc_call){.limits = s->options.limits,
                              .inputs = v->inputs,
                              .outputs = v->outputs,
                              .quantized = v->quantized,
                              .n_quantized = node->n_fused};
    if (expr->weights != MSC_NO_ID) {
        call->weights = msc_schedule__node(s, node, expr->weights)->entry->weights;
    }
    return MSC_OK;
}

static enum msc_status run_step(struct msc_schedule *s, const struct msc_node *node, int thread) {
    struct msc_backend *b = s->options.backend;
    struct views v;
    struct msc_call call;
    MSC_TRY(schedule_compute_fill_call(s, node, &v, &call));
    enum msc_status status = b->def->run(b, msc_schedule__step(s, node), &call, 1, thread);
    views_finish(&v);
    return status;
}

enum msc_status msc_schedule__compute_together(struct msc_schedule *s, const int32_t ids[],
                                               int32_t n, int thread) {
    struct msc_backend *b = s->options.backend;
    const struct msc_step *step = msc_schedule__step(s, &s->nodes[ids[0]]);
    struct views *views = msc_alloc((size_t)n * sizeof(views[0]));
    struct msc_call *calls = msc_alloc((size_t)n * sizeof(calls[0]));
    enum msc_status status = MSC_OK;
    int32_t n_filled = 0;
    if (!views || !calls) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory while running a step");
    }
    while (status == MSC_OK && n_filled < n) {
        status = schedule_compute_fill_call(s, &s->nodes[ids[n_filled]], &views[n_filled],
                                            &calls[n_filled]);
        n_filled += status == MSC_OK;
    }
    if (status == MSC_OK) {
        status = b->def->run(b, step, calls, (size_t)n, thread);
    }
    while (n_filled > 0) {
        views_finish(&views[--n_filled]);
    }
    msc_free(calls);
    msc_free(views);
    return status;
}

// ---- Nodes ------------------------------------------------------------------------------------

static enum msc_status upload_input(struct msc_schedule *s, const struct msc_node *node) {
    struct msc_backend *b = s->options.backend;
    size_t input = (size_t)msc_schedule__expr(s, node)->index;
    const struct msc_array *a = msc_dataset_batch(s->options.dataset, (size_t)node->batch, input);
    if (node->entry->is_borrowed) {
        return MSC_OK;
    }
    return b->def->upload(b, node->entry->outputs[0].data, msc_array_data(a), msc_array_n_bytes(a));
}

static enum msc_status pack_weights(struct msc_schedule *s, const struct msc_node *node,
                                    void **weights, size_t *n_bytes) {
    struct msc_backend *b = s->options.backend;
    const struct msc_edit *const *slot_edits = msc_schedule__expr(s, node)->slot_edits;
    const struct msc_step *step = msc_schedule__step(s, node);
    const struct msc_edit *edits[MSC_STEP_MAX_WEIGHTS] = {NULL};
    for (int32_t i = 0; i < step->n_weight_slots; i++) {
        edits[i] = msc_numbering_weight_edit(step, i, slot_edits);
    }
    return b->def->weights(b, step, edits, weights, n_bytes);
}

static enum msc_status mask_value(struct msc_schedule *s, const struct msc_node *node, int thread) {
    struct msc_backend *b = s->options.backend;
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    struct msc_view in = msc_schedule__view(s, node, expr->index, msc_schedule__input(s, node, 0));
    struct msc_view out =
        msc_plan_view(msc_schedule__plan(s, node), expr->index, node->entry->outputs[0].data);
    return b->def->mask(b, &in, &out, expr->mask, thread);
}

static enum msc_status compute_node(struct msc_schedule *s, const struct msc_node *node, int thread,
                                    void **weights, size_t *weights_bytes) {
    switch (msc_schedule__expr(s, node)->kind) {
    case MSC_EXPR_INPUT:
        return upload_input(s, node);
    case MSC_EXPR_WEIGHTS:
        return pack_weights(s, node, weights, weights_bytes);
    case MSC_EXPR_MASK:
        return mask_value(s, node, thread);
    case MSC_EXPR_QUANTIZE:
        return msc_schedule__quantize(s, node, thread);
    case MSC_EXPR_STEP:
        return run_step(s, node, thread);
    }
    return MSC_FAIL(MSC_E_STATE, "unknown kind of expression");
}

// Computes the node and reports the elapsed time to the timer.
enum msc_status msc_schedule__compute(struct msc_schedule *s, const struct msc_node *node,
                                      int thread, void **weights, size_t *weights_bytes) {
    const struct msc_step_timer *timer = s->options.timer;
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    if (!timer || (expr->kind != MSC_EXPR_STEP && expr->kind != MSC_EXPR_QUANTIZE)) {
        return compute_node(s, node, thread, weights, weights_bytes);
    }
    bool is_step = expr->kind == MSC_EXPR_STEP;
    int32_t index = expr->index;
    uint64_t begin_ns = msc_clock_ns();
    MSC_TRY(compute_node(s, node, thread, weights, weights_bytes));
    timer->ran(timer->payload, msc_schedule__plan(s, node), is_step ? index : MSC_NO_ID,
               is_step ? MSC_NO_ID : index, msc_clock_ns() - begin_ns);
    return MSC_OK;
}
