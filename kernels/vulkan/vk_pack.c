// Constant weights under edits, packed as the shaders read them.
#include "kernels/vulkan/vk_weighted.h"

#include "base/alloc.h"

#include <string.h>

void msc_vk_weighted_release_weights(void *weights, struct msc_vk_backend *b) {
    struct msc_vk_variant *v = weights;
    if (v) {
        for (int i = 0; i < MSC_VK_PACK_FORMS; i++) {
            msc_vk_free(b->vk, v->packs[i].weight);
            msc_vk_free(b->vk, v->packs[i].tail);
        }
        msc_free(v->scales);
        msc_free(v->zero_points);
        msc_free(v);
    }
}

static enum msc_status set_edit(struct msc_vk_variant *v, const struct msc_vk_weighted *k,
                                const struct msc_quant *edit) {
    size_t n = (size_t)edit->n;
    v->scales = msc_alloc(n * sizeof(float));
    v->zero_points = msc_alloc(n * sizeof(int32_t));
    if (!v->scales || !v->zero_points) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    memcpy(v->scales, edit->scales, n * sizeof(float));
    memcpy(v->zero_points, edit->zero_points, n * sizeof(int32_t));
    v->quant = *edit;
    v->quant.scales = v->scales;
    v->quant.zero_points = v->zero_points;
    v->is_integer = msc_quant_is_integer(edit) && (edit->n == 1 || edit->axis == k->spec.out_axis);
    v->fits_bytes = v->is_integer;
    for (int32_t i = 0; i < edit->n; i++) {
        v->fits_bytes = v->fits_bytes && edit->low - edit->zero_points[i] >= INT8_MIN &&
                        edit->high - edit->zero_points[i] <= INT8_MAX;
    }
    return MSC_OK;
}

static int64_t n_taps(const struct msc_vk_weighted *k) {
    const struct msc_dense_desc *d = &k->spec.desc;
    int64_t n = 1;
    for (int i = 0; d->kind != MSC_DENSE_LINEAR && i < d->n_spatial; i++) {
        n *= d->kernel[i];
    }
    return n;
}

static int64_t pack_elements(const struct msc_vk_weighted *k) {
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    return (w.is_depthwise ? 1 : k->spec.desc.groups) * n_taps(k) * w.channels * w.row;
}

enum msc_status msc_vk_weighted_weights(void *kernel, struct msc_vk_backend *b,
                                        const struct msc_quant *edit, void **out, size_t *n_bytes) {
    const struct msc_vk_weighted *k = kernel;
    struct msc_vk_variant *v = msc_alloc_zero(1, sizeof(*v));
    if (!v) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    v->kernel = k;
    enum msc_status status = edit ? set_edit(v, k, edit) : MSC_OK;
    if (status != MSC_OK) {
        msc_vk_weighted_release_weights(v, b);
        return status;
    }
    *out = v;
    *n_bytes = (size_t)pack_elements(k) * sizeof(float);
    return MSC_OK;
}

// ---- Packing ----------------------------------------------------------------------------------

// Where an element of the weight as the model has it goes in the pack, and whose channel it is.
struct place {
    int64_t to, channel;
};

static struct place place_of(const struct msc_vk_weighted *k, const struct msc_vk_gemm_weight *w,
                             int64_t taps, int64_t i) {
    const struct msc_dense_desc *d = &k->spec.desc;
    int64_t in = d->in_channels / d->groups, out = d->out_channels / d->groups;
    int64_t tap = i % taps, rest = i / taps;
    int64_t group, c, n;                       // input and output channel within the group
    if (d->kind == MSC_DENSE_CONV_TRANSPOSE) { // [all in][out]
        n = rest % out;
        group = rest / out / in;
        c = rest / out % in;
    } else if (d->kind == MSC_DENSE_LINEAR && d->is_input_first) { // [in][out]
        n = rest % out;
        c = rest / out;
        group = 0;
    } else { // [all out][in]
        c = rest % in;
        group = rest / in / out;
        n = rest / in % out;
    }
    struct place p = {.channel = group * out + n};
    p.to = w->is_depthwise ? tap * w->row + p.channel
                           : ((group * taps + tap) * w->channels + c) * w->row + n;
    return p;
}

// The weight as whole numbers q - z, as floats or bytes; their sums over each channel, and the
// largest sum of their sizes.
static enum msc_status pack_whole(void *packed, int32_t sums[], int64_t *largest,
                                  const struct msc_vk_variant *v, bool as_bytes) {
    const struct msc_vk_weighted *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), n = msc_array_n_elements(k->weight);
    struct msc_array *array;
    MSC_TRY(msc_quantize_array(&array, k->weight, &v->quant));
    const int32_t *q = msc_array_data(array);
    int64_t *sizes = msc_alloc_zero((size_t)k->spec.desc.out_channels, sizeof(*sizes));
    if (!sizes) {
        msc_array_release(array);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    for (int64_t i = 0; i < n; i++) {
        struct place p = place_of(k, &w, taps, i);
        int32_t number = q[i] - v->zero_points[p.channel % v->quant.n];
        if (as_bytes) {
            // Row r, column c: byte r % 4 of word c of row r / 4.
            int64_t row = p.to / w.row, col = p.to % w.row;
            ((int8_t *)packed)[(row / 4 * w.row + col) * 4 + row % 4] = (int8_t)number;
        } else {
            ((float *)packed)[p.to] = (float)number;
        }
        sums[p.channel] += number;
        sizes[p.channel] += number < 0 ? -number : number;
        *largest = sizes[p.channel] > *largest ? sizes[p.channel] : *largest;
    }
    msc_free(sizes);
    msc_array_release(array);
    return MSC_OK;
}

static enum msc_status pack_floats(float packed[], const struct msc_vk_variant *v) {
    const struct msc_vk_weighted *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), n = msc_array_n_elements(k->weight);
    struct msc_array *array = NULL;
    const float *from = msc_array_data(k->weight);
    if (v->quant.bits != 0) {
        MSC_TRY(msc_fake_quantize_array(&array, k->weight, &v->quant));
        from = msc_array_data(array);
    }
    for (int64_t i = 0; i < n; i++) {
        packed[place_of(k, &w, taps, i).to] = from[i];
    }
    msc_array_release(array);
    return MSC_OK;
}

// [3][channels]; the last row, of sums, is there already.
static enum msc_status upload_tail(struct msc_vk_pack *p, struct msc_vk_backend *b,
                                   const struct msc_vk_variant *v, float *tail) {
    const struct msc_vk_weighted *k = v->kernel;
    int64_t n = k->spec.desc.out_channels;
    for (int64_t c = 0; c < n; c++) {
        tail[c] = v->quant.bits != 0 ? v->scales[c % v->quant.n] : 1.0f;
        tail[n + c] = k->bias ? k->bias[c] : 0.0f;
    }
    return msc_vk_upload_new(b->vk, &p->tail, tail, (uint64_t)(3 * n) * sizeof(*tail));
}

enum msc_status msc_vk_get_pack(const struct msc_vk_pack **out, struct msc_vk_backend *b,
                                struct msc_vk_variant *v, enum msc_vk_pack_form form) {
    struct msc_vk_pack *p = &v->packs[form];
    *out = p;
    if (p->tail) {
        return MSC_OK;
    }
    size_t n_bytes =
        (size_t)pack_elements(v->kernel) * (form == MSC_VK_AS_BYTES ? 1 : sizeof(float));
    size_t channels = (size_t)v->kernel->spec.desc.out_channels;
    enum msc_status status = MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", v->kernel->name);
    void *packed = msc_alloc_zero(n_bytes, 1);
    float *tail = msc_alloc_zero(3 * channels, sizeof(*tail));
    if (!packed || !tail) {
        goto out;
    }
    msc_vk_free(b->vk, p->weight);
    *p = (struct msc_vk_pack){.largest = 0};
    MSC_TRY_OUT(form == MSC_VK_AS_FLOATS
                    ? pack_floats(packed, v)
                    : pack_whole(packed, (int32_t *)(void *)(tail + 2 * channels), &p->largest, v,
                                 form == MSC_VK_AS_BYTES));
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &p->weight, packed, n_bytes));
    status = upload_tail(p, b, v, tail);
out:
    msc_free(packed);
    msc_free(tail);
    return status;
}
