// Which weights have histograms over the levels of their quantisation.
#include "model/layers_internal.h"

#include "base/alloc.h"

#include <stdlib.h>

// Weights beyond this number, those with the fewest elements, have no histogram.
#define MOST_WEIGHTS 64
struct weight {
    int32_t slot;
    int64_t n;
};

static enum msc_status add_weight(cJSON *list, const struct msc_layers_side *side, int32_t slot) {
    const struct msc_slot *s = &msc_evaluator_sites(side->runner.ev)->slots[slot];
    const struct msc_tensor *t = msc_graph_tensor(side->graph, s->tensor);
    const struct msc_edit *edit = msc_layers__edit(side, slot);
    const struct msc_quant *q = msc_edit_quant(edit);
    struct msc_array *elements = NULL;
    struct msc_layers_levels levels;
    MSC_TRY(msc_edit_elements(&elements, t->data, edit));
    msc_layers__levels_init(&levels, q);
    enum msc_status status = msc_layers__levels_count(
        &levels, msc_array_n_dims(elements), msc_array_dims(elements), msc_array_data(elements));
    if (status == MSC_OK) {
        status = msc_layers__levels_add(list, &levels, msc_tensor_label(t));
    }
    msc_array_release(elements);
    return status;
}

// ---- Which weights ------------------------------------------------------------------------------

// The quantisation of a weight whose elements are known; NULL: it has none.
static const struct msc_quant *quant_of(const struct msc_layers_side *side, int32_t slot) {
    const struct msc_slot *s = &msc_evaluator_sites(side->runner.ev)->slots[slot];
    const struct msc_array *data = msc_graph_tensor(side->graph, s->tensor)->data;
    bool is_weight = s->kind == MSC_SITE_WEIGHT && data && msc_array_dtype(data) == MSC_DTYPE_F32;
    const struct msc_quant *q = is_weight ? msc_edit_quant(msc_layers__edit(side, slot)) : NULL;
    return q && q->type == MSC_DTYPE_NONE && !q->is_dynamic ? q : NULL;
}

static int by_size(const void *a, const void *b) {
    const struct weight *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->slot > y->slot) - (x->slot < y->slot);
}

static int by_slot(const void *a, const void *b) {
    const struct weight *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

// Each quantised weight once, by the first slot that reads it.
static size_t find_weights(struct weight weights[], bool is_seen[],
                           const struct msc_layers_side *side) {
    const struct msc_sites *sites = msc_evaluator_sites(side->runner.ev);
    size_t n = 0;
    for (int32_t slot = 0; slot < sites->n_site_slots; slot++) {
        int32_t tensor = sites->slots[slot].tensor;
        if (!is_seen[tensor] && quant_of(side, slot)) {
            is_seen[tensor] = true;
            weights[n++] = (struct weight){
                slot, msc_array_n_elements(msc_graph_tensor(side->graph, tensor)->data)};
        }
    }
    return n;
}

enum msc_status msc_layers__weights(cJSON *list, const struct msc_layers_side *side) {
    const struct msc_graph *g = side->graph;
    const struct msc_sites *sites = msc_evaluator_sites(side->runner.ev);
    struct msc_arena arena = {0};
    struct weight *weights =
        msc_arena_array(&arena, (size_t)sites->n_site_slots + 1, sizeof weights[0]);
    bool *is_seen = msc_arena_array(&arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof is_seen[0]);
    enum msc_status status = MSC_ALLOCATED(weights && is_seen);
    size_t n = status == MSC_OK ? find_weights(weights, is_seen, side) : 0;
    qsort(weights, n, sizeof weights[0], by_size);
    n = n < MOST_WEIGHTS ? n : MOST_WEIGHTS;
    qsort(weights, n, sizeof weights[0], by_slot);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status = add_weight(list, side, weights[i].slot);
    }
    msc_arena_finish(&arena);
    return status;
}
