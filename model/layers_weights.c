// Histograms of weights over the levels of their quantisation.
#include "model/layers_internal.h"

#include "base/alloc.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

// Weights beyond this number, those with the fewest elements, have no histogram.
#define MOST_WEIGHTS 64
// At most this many bins lie inside of the range of q, and this many on each side of it.
#define MOST_BINS 64
#define MARGIN_BINS 4

struct weight {
    int32_t slot;
    int64_t n;
};

struct histogram {
    double from, step; // in q
    size_t n_bins;
    double counts[MOST_BINS + 2 * MARGIN_BINS];
    double n_clipped;
};

static void init_histogram(struct histogram *h, const struct msc_quant *q) {
    double n_levels = (double)q->high - (double)q->low + 1.0;
    *h = (struct histogram){.step = ceil(n_levels / MOST_BINS)};
    double n_inside = ceil(n_levels / h->step);
    h->from = (double)q->low - 0.5 - MARGIN_BINS * h->step;
    h->n_bins = (size_t)n_inside + 2 * MARGIN_BINS;
}

// Elements far outside of the range are counted in the outermost bins.
static void count_element(struct histogram *h, const struct msc_quant *q, double level) {
    double bin = floor((level - h->from) / h->step);
    double last = (double)h->n_bins - 1.0;
    if (!isnan(level)) {
        h->counts[(size_t)fmin(fmax(bin, 0.0), last)] += 1.0;
        h->n_clipped += level < (double)q->low - 0.5 || level > (double)q->high + 0.5;
    }
}

static enum msc_status count_elements(struct histogram *h, const struct msc_quant *q,
                                      const struct msc_array *elements) {
    struct msc_quant_split s;
    const float *x = msc_array_data(elements);
    if (!msc_quant_split(&s, q, msc_array_n_dims(elements), msc_array_dims(elements))) {
        return MSC_FAIL(MSC_E_STATE, "the scales of a weight do not fit its shape");
    }
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t k = 0; k < s.length; k++) {
            for (int64_t i = 0; i < s.inner; i++) {
                int64_t at = o * s.outer_step + k / s.size * s.block_step + i * s.inner_step;
                count_element(h, q, (double)*x++ / (double)q->scales[at] + q->zero_points[at]);
            }
        }
    }
    return MSC_OK;
}

static int by_value(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// The median over the scales of the largest magnitude that is not clipped.
static enum msc_status find_clip(double *out, const struct msc_quant *q) {
    float *clips = msc_alloc_zero((size_t)q->n, sizeof clips[0]);
    MSC_TRY(MSC_ALLOCATED(clips));
    for (int32_t i = 0; i < q->n; i++) {
        int64_t below = (int64_t)q->zero_points[i] - q->low;
        int64_t above = (int64_t)q->high - q->zero_points[i];
        clips[i] = q->scales[i] * (float)(below > above ? below : above);
    }
    qsort(clips, (size_t)q->n, sizeof clips[0], by_value);
    *out = clips[q->n / 2];
    msc_free(clips);
    return MSC_OK;
}

static enum msc_status describe(cJSON *object, const struct histogram *h, const struct msc_quant *q,
                                const char *name, int64_t n) {
    double clip = NAN;
    MSC_TRY(find_clip(&clip, q));
    MSC_TRY(msc_json_add_text(object, "tensor", name));
    MSC_TRY(msc_json_add_number(object, "bits", q->bits));
    MSC_TRY(msc_json_add_number(object, "low", q->low));
    MSC_TRY(msc_json_add_number(object, "high", q->high));
    MSC_TRY(msc_json_add_number(object, "scales", q->n));
    MSC_TRY(msc_json_add_number(object, "clip", clip));
    MSC_TRY(msc_json_add_number(object, "clipped", h->n_clipped / (double)n));
    MSC_TRY(msc_json_add_number(object, "from", h->from));
    MSC_TRY(msc_json_add_number(object, "step", h->step));
    cJSON *counts = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "counts", counts));
    for (size_t i = 0; i < h->n_bins; i++) {
        MSC_TRY(msc_json_push(counts, cJSON_CreateNumber(h->counts[i])));
    }
    return MSC_OK;
}

static enum msc_status add_weight(cJSON *list, const struct msc_layers_side *side, int32_t slot) {
    const struct msc_slot *s = &msc_evaluator_sites(side->runner.ev)->slots[slot];
    const struct msc_tensor *t = msc_graph_tensor(side->graph, s->tensor);
    const struct msc_edit *edit = msc_layers__edit(side, slot);
    const struct msc_quant *q = msc_edit_quant(edit);
    struct msc_array *elements = NULL;
    struct histogram h;
    MSC_TRY(msc_edit_elements(&elements, t->data, edit));
    init_histogram(&h, q);
    enum msc_status status = count_elements(&h, q, elements);
    cJSON *object = status == MSC_OK ? cJSON_CreateObject() : NULL;
    if (status == MSC_OK) {
        status = msc_json_push(list, object);
    }
    if (status == MSC_OK) {
        status = describe(object, &h, q, msc_tensor_label(t), msc_array_n_elements(elements));
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
