// Scales of weights, found from the values of their elements.
#include "tools/block_rows.h"
#include "tools/quantizer_internal.h"

#include <string.h>

// Gathers the elements of scale `index`; returns their number.
static int64_t gather_scale(float out[], const float x[], const struct msc_quant_split *s,
                            int64_t index) {
    int64_t n_blocks = (s->length + s->size - 1) / s->size;
    int64_t n_inner = s->inner_step == 1 ? s->inner : 1;
    int64_t first = s->inner_step == 1 ? index % n_inner : 0;
    int64_t block = s->block_step > 0 ? index / s->block_step % n_blocks : 0;
    int64_t begin = block * s->size;
    int64_t end = begin + s->size < s->length ? begin + s->size : s->length;
    // If scales do not vary along `outer`, each scale covers all of its indices.
    int64_t from = s->outer_step > 0 ? index / s->outer_step : 0;
    int64_t to = s->outer_step > 0 ? from + 1 : s->outer;
    int64_t width = s->inner / n_inner, n = 0;
    for (int64_t o = from; o < to; o++) {
        for (int64_t k = begin; k < end; k++) {
            memcpy(out + n, x + (o * s->length + k) * s->inner + first,
                   (size_t)width * sizeof(float));
            n += width;
        }
    }
    return n;
}

static enum msc_status fit_values(const float x[], int64_t n, const struct msc_observation *o,
                                  float factor, float *scale, int32_t *zero_point) {
    struct msc_range range;
    MSC_TRY(msc_range_of_values(&range, x, n, o));
    range.low *= factor;
    range.high *= factor;
    msc_scheme_fit(&o->scheme, range, scale, zero_point);
    return MSC_OK;
}

bool msc_quantizer__takes_blocks(const struct msc_quantizer *q, int32_t site, size_t choice) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, s->tensor);
    const struct msc_gguf_block_type *type = q->choices[choice].blocks;
    return !type || (s->kind == MSC_SITE_WEIGHT &&
                     msc_block_rows_fits(t, s->group_axis, s->group_axes, type));
}

enum msc_status msc_quantizer__fit_blocks(struct msc_quant *out, const struct msc_quantizer *q,
                                          int32_t site, int32_t choice,
                                          const struct msc_array *elements) {
    const struct msc_site *s = &q->sites.sites[site];
    struct msc_tensor weight = *msc_graph_tensor(q->graph, s->tensor);
    const struct msc_moment columns = {.n_groups = 1, .n_columns = weight.dims[s->group_axis]};
    const struct msc_block_rows_options o = {.type = q->choices[choice].blocks,
                                             .axis = s->group_axis,
                                             .n_threads = q->n_threads > 0 ? q->n_threads : 1};
    struct msc_weight_rows rows;
    struct msc_arena arena = {0};
    weight.data = (struct msc_array *)elements;
    enum msc_status status =
        msc_weight_rows_init(&rows, &weight, &q->sites.slots[s->slots[0]], &columns, &arena);
    status = status == MSC_OK ? msc_block_rows_round(out, &rows, &o) : status;
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_quantizer__fit_elements(struct msc_quant *out, const struct msc_quantizer *q,
                                            int32_t site, int32_t choice,
                                            const struct msc_array *w) {
    const struct msc_site *s = &q->sites.sites[site];
    struct msc_observation o = msc_quantizer__observation(q, site, choice);
    float factor = (float)q->choices[choice].range_scale;
    struct msc_quant form = msc_quantizer__form(q, site, choice);
    struct msc_quant_split split;
    if (form.blocks) {
        return msc_quantizer__fit_blocks(out, q, site, choice, w);
    }
    int64_t n = form.n;
    float *values = msc_alloc((size_t)msc_array_n_elements(w) * sizeof(float) + 1);
    float *scales = msc_alloc((size_t)n * sizeof(float) + 1);
    int32_t *zeros = msc_alloc((size_t)n * sizeof(int32_t) + 1);
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(values && scales && zeros));
    if (!msc_quant_split(&split, &form, msc_array_n_dims(w), msc_array_dims(w))) {
        status = MSC_FAIL(MSC_E_STATE, "scales do not fit the shape of %s", s->name);
        goto out;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t length = gather_scale(values, msc_array_data(w), &split, i);
        MSC_TRY_OUT(fit_values(values, length, &o, factor, &scales[i], &zeros[i]));
    }
    form.scales = scales;
    form.zero_points = zeros;
    msc_quant_seal(&form);
    status = msc_quant_copy(out, &form);
out:
    msc_free(values);
    msc_free(scales);
    msc_free(zeros);
    return status;
}
