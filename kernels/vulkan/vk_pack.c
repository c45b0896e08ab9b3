// Packs constant weights under edits in the form that the shaders read.
#include "kernels/vulkan/vk_conv_gemm.h"

#include "base/alloc.h"
#include "kernels/lowering/digits.h"

#include <string.h>

void msc_vk_conv_gemm_release_weights(void *weights, struct msc_vk_backend *b) {
    struct msc_vk_variant *v = weights;
    if (v) {
        for (int i = 0; i < MSC_VK_PACK_KINDS; i++) {
            msc_vk_free(b->vk, v->packs[i].weight);
            msc_vk_free(b->vk, v->packs[i].tail);
        }
        msc_array_release(v->elements);
        msc_bias_finish(&v->bias);
        msc_quant_finish(&v->quant);
        msc_free(v);
    }
}

static enum msc_status set_quant(struct msc_vk_variant *v, const struct msc_vk_conv_gemm *k,
                                 const struct msc_quant *edit) {
    MSC_TRY(msc_quant_copy(&v->quant, edit));
    v->is_integer = msc_gemm_is_integer(edit, k->spec.out_axis);
    v->fits_bytes = v->is_integer;
    for (int32_t i = 0; i < edit->n; i++) {
        v->fits_bytes = v->fits_bytes && edit->low - edit->zero_points[i] >= INT8_MIN &&
                        edit->high - edit->zero_points[i] <= INT8_MAX;
    }
    return MSC_OK;
}

static int64_t n_taps(const struct msc_vk_conv_gemm *k) {
    const struct msc_gemm_desc *d = &k->spec.desc;
    int64_t n = 1;
    for (int i = 0; d->kind != MSC_GEMM_LINEAR && i < d->n_spatial; i++) {
        n *= d->kernel[i];
    }
    return n;
}

static int64_t pack_elements(const struct msc_vk_conv_gemm *k) {
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    return (w.is_depthwise ? 1 : k->spec.desc.groups) * n_taps(k) * w.channels * w.row;
}

// ---- Packing ----------------------------------------------------------------------------------

// Where the taps of one pair of input and output channel are packed: the first tap's index in a
// pack of floats (`floats`) and of bytes (`bytes`), and the distance `step` between taps, all in
// elements. `channel` is the output channel.
struct place {
    int64_t floats, bytes, step;
    int64_t channel;
};

// Finds the place of pair number `run` of the weight's channels. Each branch gives the weight's
// dims: `all in` and `all out` count the channels of all groups, `in` and `out` those of one group.
static struct place place_of(const struct msc_vk_conv_gemm *k, const struct msc_vk_gemm_weight *w,
                             int64_t taps, int64_t run) {
    const struct msc_gemm_desc *d = &k->spec.desc;
    int64_t in = d->in_channels / d->groups, out = d->out_channels / d->groups;
    int64_t group, c, n;                      // c, n: input and output channel within the group
    if (d->kind == MSC_GEMM_CONV_TRANSPOSE) { // [all in][out]
        n = run % out;
        group = run / out / in;
        c = run / out % in;
    } else if (d->kind == MSC_GEMM_LINEAR && d->is_input_first) { // [in][out]
        n = run % out;
        c = run / out;
        group = 0;
    } else { // [all out][in]
        c = run % in;
        group = run / in / out;
        n = run / in % out;
    }
    int64_t channel = group * out + n;
    if (w->is_depthwise) {
        return (struct place){channel, 0, w->row, channel};
    }
    // In a pack of bytes, four consecutive rows form one row of words.
    int64_t row = group * taps * w->channels + c;
    return (struct place){row * w->row + n, (row / 4 * w->row + n) * 4 + row % 4,
                          w->channels * w->row, channel};
}

// The contents of a pack, in host memory.
struct packing {
    enum msc_vk_pack_kind kind;
    void *elements;
    size_t n_bytes;
    float *tail; // [TAIL_ROWS][channels]
    int64_t largest;
};

// The rows of a tail, each with one number per output channel (shaders/conv.glsl).
enum { SCALES, BIASES, SUMS, INTEGER_BIASES, TAIL_ROWS };

static size_t tail_bytes(const struct msc_vk_conv_gemm *k) {
    return TAIL_ROWS * (size_t)k->spec.desc.out_channels * sizeof(float);
}

static int32_t *integer_row(const struct packing *p, const struct msc_vk_conv_gemm *k, int row) {
    return (int32_t *)(void *)(p->tail + row * k->spec.desc.out_channels);
}

static void finish_packing(struct packing *p) {
    msc_free(p->elements);
    msc_free(p->tail);
}

static enum msc_status allocate_elements(struct packing *p, const struct msc_vk_conv_gemm *k) {
    p->n_bytes = (size_t)pack_elements(k) * (p->kind == MSC_VK_AS_BYTES ? 1 : sizeof(float));
    p->elements = msc_alloc_zero(p->n_bytes, 1);
    return MSC_ALLOCATED(p->elements);
}

// Chooses bytes if the device has a shader for bytes, and if this shader is faster than floats or
// some input could make sums too large for floats. The choice does not depend on the actual input,
// so that the weight is packed only once.
static enum msc_vk_pack_kind choose_kind(const struct msc_vk_variant *v,
                                         const struct msc_vk_backend *b, int64_t largest) {
    bool may_be_bytes = v->fits_bytes && b->base.options.allow_int8 &&
                        msc_vk_gemm_has(v->kernel->gemm, b, MSC_VK_UNIT_INT);
    bool is_one_digit = msc_digits_cut(UINT8_MAX, largest).n == 1;
    return may_be_bytes && (msc_vk_prefers_int(b->vk) || !is_one_digit) ? MSC_VK_AS_BYTES
                                                                        : MSC_VK_AS_INTEGERS;
}

// Replaces q by q - z, where z is the zero point. Computes the sum of q - z over each output
// channel, and the maximum over channels of the sum of |q - z|.
static enum msc_status add_up(struct packing *p, const struct msc_vk_variant *v, int32_t q[],
                              int64_t n) {
    const struct msc_vk_conv_gemm *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), channels = k->spec.desc.out_channels;
    int32_t *sums = integer_row(p, k, SUMS);
    int64_t *sizes = msc_alloc_zero((size_t)channels, sizeof(*sizes));
    MSC_TRY(MSC_ALLOCATED(sizes));
    for (int64_t run = 0; run * taps < n; run++) {
        int64_t channel = place_of(k, &w, taps, run).channel;
        int32_t zero = v->quant.zero_points[channel % v->quant.n];
        for (int64_t i = run * taps; i < (run + 1) * taps; i++) {
            q[i] -= zero;
            sums[channel] += q[i];
            sizes[channel] += q[i] < 0 ? -q[i] : q[i];
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        p->largest = sizes[c] > p->largest ? sizes[c] : p->largest;
    }
    msc_free(sizes);
    return MSC_OK;
}

static void place_integers(const struct packing *p, const struct msc_vk_conv_gemm *k,
                           const int32_t numbers[], int64_t n) {
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k);
    for (int64_t run = 0; run * taps < n; run++) {
        struct place to = place_of(k, &w, taps, run);
        for (int64_t tap = 0; tap < taps; tap++) {
            int32_t number = numbers[run * taps + tap];
            if (p->kind == MSC_VK_AS_BYTES) {
                ((int8_t *)p->elements)[to.bytes + tap * to.step] = (int8_t)number;
            } else {
                ((float *)p->elements)[to.floats + tap * to.step] = (float)number;
            }
        }
    }
}

// Packs the weight as integers q - z, stored as floats or bytes.
static enum msc_status pack_integers(struct packing *p, const struct msc_vk_backend *b,
                                     const struct msc_vk_variant *v) {
    const struct msc_vk_conv_gemm *k = v->kernel;
    int64_t n = msc_array_n_elements(k->weight);
    struct msc_array *array;
    enum msc_status status;
    MSC_TRY(msc_quantize_array(&array, v->elements, &v->quant));
    MSC_TRY_OUT(add_up(p, v, msc_array_data(array), n));
    p->kind = p->kind == MSC_VK_PACK_KINDS ? choose_kind(v, b, p->largest) : p->kind;
    MSC_TRY_OUT(allocate_elements(p, k));
    place_integers(p, k, msc_array_data(array), n);
out:
    msc_array_release(array);
    return status;
}

static enum msc_status pack_floats(struct packing *p, const struct msc_vk_variant *v) {
    const struct msc_vk_conv_gemm *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), n = msc_array_n_elements(k->weight);
    struct msc_array *array = NULL;
    const float *from = msc_array_data(v->elements);
    MSC_TRY(allocate_elements(p, k));
    float *packed = p->elements;
    if (v->quant.bits != 0) {
        MSC_TRY(msc_fake_quantize_array(&array, v->elements, &v->quant));
        from = msc_array_data(array);
    }
    for (int64_t run = 0; run * taps < n; run++) {
        struct place to = place_of(k, &w, taps, run);
        for (int64_t tap = 0; tap < taps; tap++) {
            packed[to.floats + tap * to.step] = from[run * taps + tap];
        }
    }
    msc_array_release(array);
    return MSC_OK;
}

// Fills the rows of the tail, except for the sums of the weights.
static void set_tail(const struct packing *p, const struct msc_vk_variant *v) {
    const struct msc_vk_conv_gemm *k = v->kernel;
    int64_t n = k->spec.desc.out_channels;
    const float *bias = k->bias ? msc_array_data(k->bias) : NULL;
    bias = v->bias.floats ? v->bias.floats : bias;
    for (int64_t c = 0; c < n; c++) {
        p->tail[SCALES * n + c] = v->quant.bits != 0 ? v->quant.scales[c % v->quant.n] : 1.0f;
        p->tail[BIASES * n + c] = bias ? bias[c] : 0.0f;
    }
    if (v->bias.integers) {
        memcpy(integer_row(p, k, INTEGER_BIASES), v->bias.integers, (size_t)n * sizeof(int32_t));
    }
}

static enum msc_status make_tail(struct packing *p, const struct msc_vk_variant *v) {
    p->tail = msc_alloc_zero(tail_bytes(v->kernel), 1);
    MSC_TRY(MSC_ALLOCATED(p->tail));
    set_tail(p, v);
    return MSC_OK;
}

enum msc_status msc_vk_tail_by_channel(struct msc_vk_block **out, struct msc_vk_backend *b,
                                       const struct msc_vk_variant *v,
                                       const struct msc_quant *input) {
    int64_t n = v->kernel->spec.desc.out_channels, multiple = n / input->n;
    struct packing p = {.tail = NULL};
    MSC_TRY(make_tail(&p, v));
    for (int64_t c = 0; c < n; c++) {
        p.tail[SCALES * n + c] *= input->scales[c / multiple];
    }
    enum msc_status status = msc_vk_upload_new(b->vk, out, p.tail, tail_bytes(v->kernel));
    finish_packing(&p);
    return status;
}

// Packs a weight. If `kind` is MSC_VK_PACK_KINDS, packs integers, as choose_kind chooses. The
// caller finishes *p, also on failure.
static enum msc_status make_packing(struct packing *p, const struct msc_vk_backend *b,
                                    const struct msc_vk_variant *v, enum msc_vk_pack_kind kind) {
    *p = (struct packing){.kind = kind};
    MSC_TRY(make_tail(p, v));
    return kind == MSC_VK_AS_FLOATS ? pack_floats(p, v) : pack_integers(p, b, v);
}

static enum msc_status upload_packing(const struct packing *p, struct msc_vk_backend *b,
                                      struct msc_vk_variant *v) {
    struct msc_vk_pack *to = &v->packs[p->kind];
    msc_vk_free(b->vk, to->weight);
    *to = (struct msc_vk_pack){.largest = p->largest};
    MSC_TRY(msc_vk_upload_new(b->vk, &to->weight, p->elements, p->n_bytes));
    return msc_vk_upload_new(b->vk, &to->tail, p->tail, tail_bytes(v->kernel));
}

enum msc_status msc_vk_get_pack(const struct msc_vk_pack **out, struct msc_vk_backend *b,
                                struct msc_vk_variant *v, enum msc_vk_pack_kind kind) {
    struct packing p;
    *out = &v->packs[kind];
    if (v->packs[kind].tail) {
        return MSC_OK;
    }
    enum msc_status status = make_packing(&p, b, v, kind);
    if (status == MSC_OK) {
        status = upload_packing(&p, b, v);
    }
    finish_packing(&p);
    return status;
}

// ---- Variants ---------------------------------------------------------------------------------

static const struct msc_edit *edit_of(const struct msc_edit *const edits[], int32_t slot) {
    return slot == MSC_NO_ID ? NULL : edits[slot];
}

static enum msc_status vk_pack_init(struct msc_vk_variant *v, const struct msc_vk_conv_gemm *k,
                                    const struct msc_edit *const edits[]) {
    const struct msc_edit *weight = edit_of(edits, k->weight_slot);
    const struct msc_edit *bias = edit_of(edits, k->bias_slot);
    const struct msc_quant *quant = msc_edit_quant(weight);
    v->kernel = k;
    MSC_TRY(msc_edit_elements(&v->elements, k->weight, weight));
    MSC_TRY(bias ? msc_bias_init(&v->bias, k->bias, bias) : MSC_OK);
    return quant ? set_quant(v, k, quant) : MSC_OK;
}

// The current size of a variant. Packs that are made later count as memory of the backend
// (msc_backend_memory).
static size_t variant_bytes(const struct msc_vk_variant *v) {
    uint64_t n = 0;
    for (int i = 0; i < MSC_VK_PACK_KINDS; i++) {
        n += v->packs[i].weight ? v->packs[i].weight->n_bytes : 0;
        n += v->packs[i].tail ? v->packs[i].tail->n_bytes : 0;
    }
    return (size_t)n;
}

// Packs the weight in the form that calls will most likely need. Works without the lock, so that
// several threads can pack at the same time.
enum msc_status msc_vk_conv_gemm_weights(void *kernel, struct msc_vk_backend *b,
                                         const struct msc_edit *const edits[], void **out,
                                         size_t *n_bytes) {
    const struct msc_vk_conv_gemm *k = kernel;
    struct packing p = {.elements = NULL};
    struct msc_vk_variant *v = msc_alloc_zero(1, sizeof(*v));
    MSC_TRY(MSC_ALLOCATED(v));
    enum msc_status status = vk_pack_init(v, k, edits);
    if (status == MSC_OK) {
        status = make_packing(&p, b, v, v->is_integer ? MSC_VK_PACK_KINDS : MSC_VK_AS_FLOATS);
        v->integers = p.kind;
    }
    msc_vk_lock(b->vk);
    if (status == MSC_OK) {
        status = upload_packing(&p, b, v);
    }
    if (status != MSC_OK) {
        msc_vk_conv_gemm_release_weights(v, b);
    }
    msc_vk_unlock(b->vk);
    finish_packing(&p);
    if (status == MSC_OK) {
        *out = v;
        *n_bytes = variant_bytes(v);
    }
    return status;
}
