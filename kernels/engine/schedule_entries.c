#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

// With this many trials or more, results that only one trial uses are not kept, because the next
// call is unlikely to need them.
enum { MANY_TRIALS = 8 };

// The size of a value under a quantisation (NULL: unquantised).
static size_t value_bytes(const struct msc_plan *plan, int32_t value,
                          const struct msc_quant *quant) {
    const struct msc_value *v = &plan->values[value];
    enum msc_dtype dtype = quant ? msc_quant_dtype(quant) : v->dtype;
    return v->n_bytes / msc_dtype_bytes(v->dtype) * msc_dtype_bytes(dtype);
}

static size_t output_bytes(const struct msc_schedule *s, const struct msc_node *node, int32_t i) {
    const struct msc_plan *plan = s->plans[node->plan].plan;
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    if (expr->kind == MSC_EXPR_STEP) {
        return value_bytes(plan, plan->steps[expr->index].outputs[i], expr->edit);
    }
    if (expr->kind == MSC_EXPR_MASK || expr->kind == MSC_EXPR_QUANTIZE) {
        return value_bytes(plan, expr->index, expr->edit);
    }
    return msc_array_n_bytes(
        msc_dataset_batch(s->options.dataset, (size_t)node->batch, (size_t)expr->index));
}

// The samples of an input node, if steps can read them without a copy: if the backend uses host
// memory and the samples are aligned to 64 bytes, as the memory of values is. Otherwise NULL.
static void *samples_in_place(const struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_array *samples = msc_dataset_batch(s->options.dataset, (size_t)node->batch,
                                                        (size_t)msc_schedule__expr(s, node)->index);
    void *data = (void *)(uintptr_t)msc_array_data(samples);
    bool is_aligned = (uintptr_t)data % 64 == 0;
    return s->options.backend->def->memory_is_host && is_aligned ? data : NULL;
}

// Will a later call read the result of this node? Known only of calls that go onward.
static bool is_awaited_later(const struct msc_schedule *s, const struct msc_node *node) {
    return msc_schedule__is_onward(s) && s->plans[node->plan].is_awaited[node->expr];
}

static enum msc_status allocate_entry(struct msc_schedule *s, struct msc_node *node) {
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    struct msc_hash key = msc_schedule__key(expr, node->batch);
    size_t few[4];
    size_t *sizes = few;
    int32_t n = 1;
    if (expr->kind == MSC_EXPR_WEIGHTS) { // the backend allocates packed weights
        return msc_cache_add(&node->entry, s->options.cache, key, 0, NULL);
    }
    void *samples = expr->kind == MSC_EXPR_INPUT ? samples_in_place(s, node) : NULL;
    if (samples) {
        return msc_cache_add_borrowed(&node->entry, s->options.cache, key, samples);
    }
    if (expr->kind == MSC_EXPR_STEP) {
        n = s->plans[node->plan].plan->steps[expr->index].n_outputs;
        sizes = n > 4 ? msc_alloc((size_t)n * sizeof(sizes[0])) : few;
        MSC_TRY(MSC_ALLOCATED(sizes));
    }
    for (int32_t i = 0; i < n; i++) {
        sizes[i] = output_bytes(s, node, i);
    }
    enum msc_status status = msc_cache_add(&node->entry, s->options.cache, key, n, sizes);
    if (status == MSC_OK) {
        bool is_onward = msc_schedule__is_onward(s), is_awaited = is_awaited_later(s, node);
        bool is_unlikely = s->job.n_trials >= MANY_TRIALS && !node->is_shared;
        node->entry->is_brief = is_onward ? !is_awaited : is_unlikely;
        if ((s->job.flags & MSC_EVAL_KEEP) || is_awaited) {
            msc_cache_keep(s->options.cache, node->entry);
        }
    }
    if (sizes != few) {
        msc_free(sizes);
    }
    return status;
}

// Called when a node has read `input`: drops that reader's pin. After the last reader, `input`
// gives up its entry, and in fresh runs the entry is freed.
static void release_input(struct msc_schedule *s, struct msc_node *input) {
    if (!input->entry) {
        return;
    }
    if (--input->n_users > 0) {
        msc_cache_unpin(s->options.cache, input->entry);
        return;
    }
    // Packed weights are kept even in fresh runs: another plan may use the same entry.
    if (msc_schedule__is_fresh(s) && msc_schedule__expr(s, input)->kind != MSC_EXPR_WEIGHTS) {
        msc_cache_discard(s->options.cache, input->entry);
    } else {
        msc_cache_unpin(s->options.cache, input->entry);
    }
    input->entry = NULL;
}

void msc_schedule__release_inputs(struct msc_schedule *s, const struct msc_node *node) {
    const struct msc_scheduled_plan *p = &s->plans[node->plan];
    if (node->expr == MSC_NO_ID) {
        const struct msc_value_number *targets = msc_schedule__targets(s, p, (size_t)node->trial);
        for (int32_t i = node->first_target; i < node->first_target + node->n_targets; i++) {
            if (targets[i].expr != MSC_NO_ID) {
                release_input(s, msc_schedule__node(s, node, targets[i].expr));
            }
        }
        return;
    }
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    for (int32_t i = 0; i <= expr->n_inputs; i++) {
        int32_t input =
            i < expr->n_inputs ? p->numbering.inputs[expr->first_input + i].expr : expr->weights;
        if (input != MSC_NO_ID) {
            release_input(s, msc_schedule__node(s, node, input));
        }
    }
}

void msc_schedule__discard_entries(struct msc_schedule *s, struct msc_node *node) {
    int32_t e = node->first_edge;
    for (struct msc_node *n = node; n; n = msc_schedule__next_fused(s, &e)) {
        if (n->entry) {
            msc_cache_discard(s->options.cache, n->entry);
            n->entry = NULL;
        }
    }
}

// True if a step's unquantised output is stored even if only its quantised variants are read. A
// search begins with a few baseline trials, and later trials quantise the same values differently.
// So with few trials the output is stored while there is memory.
static bool keeps_unread(const struct msc_schedule *s) {
    return !msc_schedule__is_fresh(s) && !msc_schedule__is_onward(s) &&
           s->job.n_trials < MANY_TRIALS && msc_cache_has_room(s->options.cache);
}

enum msc_status msc_schedule__allocate_entries(struct msc_schedule *s, struct msc_node *node) {
    int32_t e = node->first_edge;
    bool is_read = node->n_users > node->n_fused || node->n_fused == 0 || keeps_unread(s) ||
                   is_awaited_later(s, node);
    enum msc_status status = is_read ? allocate_entry(s, node) : MSC_OK;
    for (struct msc_node *n; status == MSC_OK && (n = msc_schedule__next_fused(s, &e)) != NULL;) {
        status = allocate_entry(s, n);
    }
    return status;
}

void msc_schedule__release_unread(struct msc_schedule *s) {
    for (size_t i = 0; i < s->n_nodes; i++) {
        while (s->nodes[i].entry) {
            release_input(s, &s->nodes[i]);
        }
    }
}
