// Histograms over the levels of a quantisation.
#include "model/layers_internal.h"

#include "base/alloc.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

void msc_layers__levels_init(struct msc_layers_levels *h, const struct msc_quant *q) {
    double n_levels = (double)q->high - (double)q->low + 1.0;
    *h = (struct msc_layers_levels){.quant = q, .step = ceil(n_levels / MSC_LAYERS_BINS)};
    double n_inside = ceil(n_levels / h->step);
    h->from = (double)q->low - 0.5 - MSC_LAYERS_MARGIN * h->step;
    h->n_bins = (size_t)n_inside + 2 * (size_t)MSC_LAYERS_MARGIN;
}

// Elements far outside of the range are counted in the outermost bins.
static void count_element(struct msc_layers_levels *h, double level) {
    const struct msc_quant *q = h->quant;
    double bin = floor((level - h->from) / h->step);
    double last = (double)h->n_bins - 1.0;
    if (!isnan(level)) {
        h->counts[(size_t)fmin(fmax(bin, 0.0), last)] += 1.0;
        h->n_clipped += level < (double)q->low - 0.5 || level > (double)q->high + 0.5;
    }
}

enum msc_status msc_layers__levels_count(struct msc_layers_levels *h, int32_t n_dims,
                                         const int64_t dims[], const float x[]) {
    const struct msc_quant *q = h->quant;
    struct msc_quant_split s;
    if (!msc_quant_split(&s, q, n_dims, dims)) {
        return MSC_FAIL(MSC_E_STATE, "the scales of a tensor do not fit its shape");
    }
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t k = 0; k < s.length; k++) {
            for (int64_t i = 0; i < s.inner; i++) {
                int64_t at = o * s.outer_step + k / s.size * s.block_step + i * s.inner_step;
                count_element(h, (double)*x++ / (double)q->scales[at] + q->zero_points[at]);
            }
        }
    }
    h->n += (double)(s.outer * s.length * s.inner);
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

static enum msc_status describe(cJSON *object, const struct msc_layers_levels *h,
                                const char *name) {
    const struct msc_quant *q = h->quant;
    double clip = NAN;
    MSC_TRY(find_clip(&clip, q));
    MSC_TRY(msc_json_add_text(object, "tensor", name));
    MSC_TRY(msc_json_add_number(object, "bits", q->bits));
    MSC_TRY(msc_json_add_number(object, "low", q->low));
    MSC_TRY(msc_json_add_number(object, "high", q->high));
    MSC_TRY(msc_json_add_number(object, "scales", q->n));
    MSC_TRY(msc_json_add_number(object, "clip", clip));
    MSC_TRY(msc_json_add_number(object, "clipped", h->n > 0.0 ? h->n_clipped / h->n : 0.0));
    MSC_TRY(msc_json_add_number(object, "from", h->from));
    MSC_TRY(msc_json_add_number(object, "step", h->step));
    cJSON *counts = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "counts", counts));
    for (size_t i = 0; i < h->n_bins; i++) {
        MSC_TRY(msc_json_push(counts, cJSON_CreateNumber(h->counts[i])));
    }
    return MSC_OK;
}

enum msc_status msc_layers__levels_add(cJSON *list, const struct msc_layers_levels *levels,
                                       const char *name) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    return describe(object, levels, name);
}
