#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu_gemm.h"
#include "kernels/lowering/bias.h"

#include <math.h>
#include <stdatomic.h>

// ---- Variants ---------------------------------------------------------------------------------

struct msc_cpu_gemm_variant {
    struct msc_array *elements; // the weight's elements before quantisation
    struct msc_quant quant;     // copied from the edit; bits is 0 for float weights
    float largest_scale;
    bool is_integer, is_int8;
    struct msc_bias bias;
    _Atomic(struct msc_cpu_gemm_pack *) packs[MSC_CPU_GEMM_UNIT_COUNT];
};

static void destroy_pack(struct msc_cpu_gemm_pack *p) {
    if (p) {
        msc_routine_weights_destroy(p->weights);
        msc_free_aligned(p->own);
        msc_free(p->sums);
        msc_free(p);
    }
}

void msc_cpu_gemm_release_weights(void *weights) {
    struct msc_cpu_gemm_variant *v = weights;
    if (v) {
        for (int i = 0; i < MSC_CPU_GEMM_UNIT_COUNT; i++) {
            destroy_pack(atomic_load(&v->packs[i]));
        }
        msc_array_release(v->elements);
        msc_quant_finish(&v->quant);
        msc_bias_finish(&v->bias);
        msc_free(v);
    }
}

bool msc_cpu_gemm_is_integer(const struct msc_cpu_gemm_variant *v) {
    return v->is_integer;
}

bool msc_cpu_gemm_is_int8(const struct msc_cpu_gemm_variant *v) {
    return v->is_int8;
}

void msc_cpu_gemm_scales(float out[], const struct msc_cpu_gemm_variant *v, int64_t n,
                         const struct msc_quant *input) {
    int64_t multiple = n / input->n;
    for (int64_t c = 0, i = 0; c < n; c++) {
        out[c] = input->scales[input->n > 1 ? c / multiple : 0] * v->quant.scales[i];
        i = i + 1 < v->quant.n ? i + 1 : 0;
    }
}

float msc_cpu_gemm_largest_scale(const struct msc_cpu_gemm_variant *v) {
    return v->largest_scale;
}

// True if every q - z fits int8.
static bool fits_int8(const struct msc_quant *q) {
    for (int32_t i = 0; i < q->n; i++) {
        if (q->low - q->zero_points[i] < INT8_MIN || q->high - q->zero_points[i] > INT8_MAX) {
            return false;
        }
    }
    return true;
}

static enum msc_status cpu_gemm_variant_set_quant(struct msc_cpu_gemm_variant *v,
                                                  const struct msc_cpu_gemm *k,
                                                  const struct msc_quant *quant) {
    MSC_TRY(msc_quant_copy(&v->quant, quant));
    for (int32_t i = 0; i < quant->n; i++) {
        v->largest_scale = fmaxf(v->largest_scale, quant->scales[i]);
    }
    v->is_integer = msc_gemm_is_integer(quant, k->out_axis);
    v->is_int8 = v->is_integer && fits_int8(quant);
    return MSC_OK;
}

// ---- Biases -----------------------------------------------------------------------------------

static float largest_of(const float x[], int64_t n) {
    float largest = 0.0f;
    for (int64_t i = 0; x && i < n; i++) {
        float size = isnan(x[i]) ? INFINITY : fabsf(x[i]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

struct msc_cpu_gemm_bias msc_cpu_gemm_bias_of(const float floats[], const int32_t integers[],
                                              int64_t n) {
    return (struct msc_cpu_gemm_bias){.floats = floats,
                                      .integers = integers,
                                      .largest = largest_of(floats, n),
                                      .largest_integer = msc_bias_largest(integers, n)};
}

struct msc_cpu_gemm_bias msc_cpu_gemm_float_bias(const struct msc_cpu_gemm *k,
                                                 const struct msc_cpu_gemm_variant *v) {
    return v->bias.floats ? msc_cpu_gemm_bias_of(v->bias.floats, NULL, k->channels) : k->bias;
}

bool msc_cpu_gemm_integer_bias(struct msc_cpu_gemm_bias *out, const struct msc_cpu_gemm_variant *v,
                               float scale) {
    *out = (struct msc_cpu_gemm_bias){.integers = v->bias.integers,
                                      .largest_integer = v->bias.largest};
    return msc_bias_joins_sums(&v->bias, &v->quant, scale);
}

// ---- Making -----------------------------------------------------------------------------------

static const struct msc_edit *cpu_gemm_edit_of(const struct msc_edit *const edits[], int32_t slot) {
    return slot == MSC_NO_ID ? NULL : edits[slot];
}

static enum msc_status cpu_gemm_variant_init(struct msc_cpu_gemm_variant *v,
                                             const struct msc_cpu_gemm *k,
                                             const struct msc_edit *const edits[]) {
    const struct msc_edit *weight = cpu_gemm_edit_of(edits, k->weight_slot);
    const struct msc_edit *bias = cpu_gemm_edit_of(edits, k->bias_slot);
    const struct msc_quant *quant = msc_edit_quant(weight);
    const struct msc_cpu_gemm_pack *pack;
    MSC_TRY(msc_edit_elements(&v->elements, k->weight, weight));
    MSC_TRY(bias ? msc_bias_init(&v->bias, k->bias_array, bias) : MSC_OK);
    // A quantised weight is packed later, when a call has chosen the unit.
    return quant ? cpu_gemm_variant_set_quant(v, k, quant)
                 : msc_cpu_gemm_pack(&pack, k, v, msc_cpu_gemm_float_unit(k));
}

enum msc_status msc_cpu_gemm_weights(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes) {
    (void)b;
    const struct msc_cpu_gemm *k = kernel;
    struct msc_cpu_gemm_variant *v = msc_alloc_zero(1, sizeof(*v));
    MSC_TRY(MSC_ALLOCATED(v));
    for (int i = 0; i < MSC_CPU_GEMM_UNIT_COUNT; i++) {
        atomic_init(&v->packs[i], NULL);
    }
    enum msc_status status = cpu_gemm_variant_init(v, k, edits);
    if (status != MSC_OK) {
        msc_cpu_gemm_release_weights(v);
        return status;
    }
    // An estimate: usually there is one pack, no larger than the floats, or twice as large for
    // Winograd's algorithm. Edited elements are stored in addition.
    size_t weight_bytes = msc_array_n_bytes(k->weight);
    *n_bytes = k->winograd && v->quant.bits > 0 && msc_cpu_gemm_prefers_winograd(k)
                   ? 2 * weight_bytes
                   : weight_bytes;
    *n_bytes += v->elements == k->weight ? 0 : weight_bytes;
    *out = v;
    return MSC_OK;
}

// ---- Packing ----------------------------------------------------------------------------------

// The plain weight viewed as [rows, per_group, inner], with output channels on the middle axis. In
// a transposed convolution, the middle axis has only the channels of one group, and each group has
// rows_of_group rows of its own.
struct channel_map {
    int64_t rows, per_group, inner;
    int64_t rows_of_group;
};

static struct channel_map map_channels(const struct msc_cpu_gemm *k) {
    int n_dims = msc_array_n_dims(k->weight);
    const int64_t *dims = msc_array_dims(k->weight);
    bool is_transposed = k->desc.kind == MSC_GEMM_CONV_TRANSPOSE;
    struct channel_map m = {
        .rows = msc_dims_product(k->out_axis, dims),
        .per_group = dims[k->out_axis],
        .inner = msc_dims_product(n_dims - k->out_axis - 1, dims + k->out_axis + 1),
    };
    m.rows_of_group = is_transposed ? m.rows / k->desc.groups : m.rows;
    return m;
}

// Sums over the weights of each output channel: sum (q - z) and size = sum |q - z|.
struct channel_sums {
    int64_t *sum, *size; // [channels]
    int32_t *zero;       // [per_group]
};

MSC_SIMD static void centre_run(int32_t q[], int64_t n, int32_t zero, int64_t *sum, int64_t *size) {
    int64_t all = 0, sizes = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t value = q[i] - zero;
        q[i] = value;
        all += value;
        sizes += value < 0 ? -value : value;
    }
    *sum += all;
    *size += sizes;
}

// Like centre_run, but for a row in which each element belongs to a different channel.
MSC_SIMD static void centre_row(int32_t *restrict q, int64_t n, const int32_t *restrict zero,
                                int64_t *restrict sum, int64_t *restrict size) {
    for (int64_t i = 0; i < n; i++) {
        int32_t value = q[i] - zero[i];
        q[i] = value;
        sum[i] += value;
        size[i] += value < 0 ? -value : value;
    }
}

static void centre_rows(const struct channel_sums *s, const struct channel_map *m, int32_t q[]) {
    for (int64_t r = 0; r < m->rows; r++) {
        int64_t first = r / m->rows_of_group * m->per_group;
        if (m->inner == 1) {
            centre_row(q, m->per_group, s->zero, s->sum + first, s->size + first);
        }
        for (int64_t c = 0; m->inner > 1 && c < m->per_group; c++) {
            centre_run(q + c * m->inner, m->inner, s->zero[c], &s->sum[first + c],
                       &s->size[first + c]);
        }
        q += m->per_group * m->inner;
    }
}

// Replaces q by q - z, and computes the sums of each channel and the largest sum |q - z|.
static enum msc_status centre(struct msc_cpu_gemm_pack *p, const struct msc_cpu_gemm *k,
                              const struct msc_cpu_gemm_variant *v, int32_t q[]) {
    struct channel_map m = map_channels(k);
    size_t n = (size_t)k->channels;
    struct channel_sums s = {
        .sum = msc_alloc_zero(n, sizeof(s.sum[0])),
        .size = msc_alloc_zero(n, sizeof(s.size[0])),
        .zero = msc_alloc_zero((size_t)m.per_group, sizeof(s.zero[0])),
    };
    enum msc_status status = MSC_OK;
    p->sums = msc_alloc_zero(n, sizeof(p->sums[0]));
    MSC_TRY_OUT(MSC_ALLOCATED(s.sum && s.size && s.zero && p->sums));
    for (int64_t c = 0; c < m.per_group; c++) {
        s.zero[c] = v->quant.zero_points[c % v->quant.n];
    }
    centre_rows(&s, &m, q);
    for (int64_t c = 0; c < k->channels; c++) {
        p->sums[c] = (int32_t)s.sum[c];
        p->largest = s.size[c] > p->largest ? s.size[c] : p->largest;
    }
out:
    msc_free(s.sum);
    msc_free(s.size);
    msc_free(s.zero);
    return status;
}

MSC_SIMD static void to_floats(float *restrict out, const int32_t *restrict q, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)q[i];
    }
}

MSC_SIMD static void to_int8(int8_t *restrict out, const int32_t *restrict q, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (int8_t)q[i];
    }
}

static enum msc_status pack_plain(struct msc_cpu_gemm_pack *p, const struct msc_cpu_gemm *k,
                                  const void *plain, enum msc_cpu_gemm_unit unit) {
    const struct msc_routine *routine;
    if (unit == MSC_CPU_GEMM_DEPTHWISE) {
        return msc_cpu_gemm_pack_depthwise(&p->own, k, plain);
    }
    if (unit == MSC_CPU_GEMM_FLOAT_DEPTHWISE) {
        return msc_cpu_gemm_pack_weigh(&p->own, k, plain);
    }
    if (unit == MSC_CPU_GEMM_WINOGRAD) {
        return msc_cpu_gemm_pack_winograd(&p->own, k, plain);
    }
    if (msc_cpu_gemm_is_indirect(unit)) {
        return msc_cpu_gemm_pack_indirect(&p->own, k, unit, plain);
    }
    MSC_TRY(msc_cpu_gemm_routine(&routine, k, unit));
    return msc_routine_pack(&p->weights, routine, plain);
}

static enum msc_status cpu_gemm_variant_pack_integers(struct msc_cpu_gemm_pack *p,
                                                      const struct msc_cpu_gemm *k,
                                                      const struct msc_cpu_gemm_variant *v,
                                                      enum msc_cpu_gemm_unit unit) {
    bool is_int8 = unit >= MSC_CPU_GEMM_INT8;
    struct msc_array *array;
    MSC_TRY(msc_quantize_array(&array, v->elements, &v->quant));
    int64_t n = msc_array_n_elements(array);
    int32_t *q = msc_array_data(array);
    void *plain = msc_alloc_aligned((size_t)n * (is_int8 ? sizeof(int8_t) : sizeof(float)));
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(plain));
    MSC_TRY_OUT(centre(p, k, v, q));
    if (is_int8) {
        to_int8(plain, q, n);
    } else {
        to_floats(plain, q, n);
    }
    status = pack_plain(p, k, plain, unit);
out:
    msc_free_aligned(plain);
    msc_array_release(array);
    return status;
}

static enum msc_status cpu_gemm_variant_pack_floats(struct msc_cpu_gemm_pack *p,
                                                    const struct msc_cpu_gemm *k,
                                                    const struct msc_cpu_gemm_variant *v,
                                                    enum msc_cpu_gemm_unit unit) {
    if (v->quant.bits == 0) {
        return pack_plain(p, k, msc_array_data(v->elements), unit);
    }
    struct msc_array *quantised;
    MSC_TRY(msc_fake_quantize_array(&quantised, v->elements, &v->quant));
    enum msc_status status = pack_plain(p, k, msc_array_data(quantised), unit);
    msc_array_release(quantised);
    return status;
}

static enum msc_status make_pack(struct msc_cpu_gemm_pack **out, const struct msc_cpu_gemm *k,
                                 const struct msc_cpu_gemm_variant *v,
                                 enum msc_cpu_gemm_unit unit) {
    struct msc_cpu_gemm_pack *p = msc_alloc_zero(1, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p));
    enum msc_status status = msc_cpu_gemm_is_float(unit)
                                 ? cpu_gemm_variant_pack_floats(p, k, v, unit)
                                 : cpu_gemm_variant_pack_integers(p, k, v, unit);
    if (status != MSC_OK) {
        destroy_pack(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}

enum msc_status msc_cpu_gemm_pack(const struct msc_cpu_gemm_pack **out,
                                  const struct msc_cpu_gemm *k,
                                  const struct msc_cpu_gemm_variant *v,
                                  enum msc_cpu_gemm_unit unit) {
    // The packs are a cache: the variant that callers see does not change.
    struct msc_cpu_gemm_variant *cache = (struct msc_cpu_gemm_variant *)v;
    struct msc_cpu_gemm_pack *have =
        atomic_load_explicit(&cache->packs[unit], memory_order_acquire);
    if (!have) {
        struct msc_cpu_gemm_pack *made = NULL;
        MSC_TRY(make_pack(&made, k, v, unit));
        if (atomic_compare_exchange_strong(&cache->packs[unit], &have, made)) {
            have = made;
        } else {
            destroy_pack(made);
        }
    }
    *out = have;
    return MSC_OK;
}
