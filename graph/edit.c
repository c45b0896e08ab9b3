#include "graph/edit.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// Everything between the division and the result is exact in float32: q and the zero point have at
// most 16 bits, and what lies outside of that is clamped away. A NaN passes every comparison
// untouched, so that fake quantisation hands it on.
static inline float quantize(float x, float scale, float zero_point, float low, float high) {
    float q = rintf(x / scale) + zero_point;
    q = q < low ? low : q;
    return q > high ? high : q;
}

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// Drops the low `n` bits of a finite float32, to nearest, half to even: in the bits a carry runs on
// into the exponent, as it should.
static inline uint32_t drop_bits(uint32_t bits, int n) {
    uint32_t last = bits >> n & 1;
    return (bits + ((1u << (n - 1)) - 1) + last) >> n << n;
}

// The nearest float16. Below 2^-14 its numbers lie 2^-24 apart, where both products are exact.
static inline float round_to_f16(float x) {
    const float most = 65504.0f;
    float normal = float_of(drop_bits(bits_of(x), 13));
    float y = fabsf(x) < 0x1p-14f ? rintf(x * 0x1p24f) * 0x1p-24f : normal;
    y = y > most ? most : y;
    y = y < -most ? -most : y;
    return isnan(x) ? x : y;
}

static inline float round_to_bf16(float x) {
    const float most = 0x1.fep127f;
    float y = float_of(drop_bits(bits_of(x), 16));
    y = y > most ? most : y;
    y = y < -most ? -most : y;
    return isnan(x) ? x : y;
}

static inline int32_t to_integer(float q, int32_t low) {
    return isnan(q) ? low : (int32_t)q;
}

void msc_quant_seal(struct msc_quant *q) {
    struct msc_hash h = msc_hash_bytes("quant", 5);
    const int32_t numbers[] = {q->bits, q->low, q->high, q->axis, q->n};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        h = msc_hash_add_u64(h, (uint64_t)(int64_t)numbers[i]);
    }
    h = q->type != MSC_DTYPE_NONE ? msc_hash_add_text(h, msc_dtype_name(q->type)) : h;
    size_t n = (size_t)q->n;
    h = msc_hash_add_bytes(h, q->scales, n * sizeof(q->scales[0]));
    q->hash = msc_hash_add_bytes(h, q->zero_points, n * sizeof(q->zero_points[0]));
}

enum msc_status msc_quant_copy(struct msc_quant *out, const struct msc_quant *q) {
    size_t n = (size_t)q->n;
    float *scales = msc_alloc(n * sizeof(scales[0]));
    int32_t *zero_points = msc_alloc(n * sizeof(zero_points[0]));
    if (scales == NULL || zero_points == NULL) {
        msc_free(scales);
        msc_free(zero_points);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu scales", n);
    }
    memcpy(scales, q->scales, n * sizeof(scales[0]));
    memcpy(zero_points, q->zero_points, n * sizeof(zero_points[0]));
    *out = *q;
    out->scales = scales;
    out->zero_points = zero_points;
    return MSC_OK;
}

void msc_quant_finish(struct msc_quant *q) {
    msc_free((void *)q->scales);
    msc_free((void *)q->zero_points);
}

struct msc_quant msc_quant_of_float(enum msc_dtype type) {
    static const float scale = 1;
    static const int32_t zero_point = 0;
    struct msc_quant q = {
        .type = type, .bits = 16, .axis = -1, .n = 1, .scales = &scale, .zero_points = &zero_point};
    msc_quant_seal(&q);
    return q;
}

int32_t msc_quantize_value(float x, float scale, int32_t zero_point, int32_t low, int32_t high) {
    return to_integer(quantize(x, scale, (float)zero_point, (float)low, (float)high), low);
}

MSC_SIMD void msc_quantize_run(int32_t out[], const float x[], int64_t n, float scale,
                               int32_t zero_point, int32_t low, int32_t high) {
    float zero = (float)zero_point, least = (float)low, most = (float)high;
    for (int64_t i = 0; i < n; i++) {
        out[i] = to_integer(quantize(x[i], scale, zero, least, most), low);
    }
}

MSC_SIMD void msc_fake_quantize_run(float out[], const float x[], int64_t n, float scale,
                                    int32_t zero_point, int32_t low, int32_t high) {
    float zero = (float)zero_point, least = (float)low, most = (float)high;
    for (int64_t i = 0; i < n; i++) {
        out[i] = (quantize(x[i], scale, zero, least, most) - zero) * scale;
    }
}

MSC_SIMD static void round_run_to_f16(float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = round_to_f16(x[i]);
    }
}

MSC_SIMD static void round_run_to_bf16(float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = round_to_bf16(x[i]);
    }
}

void msc_quant_apply_run(float out[], const float x[], int64_t n, const struct msc_quant *q) {
    switch (q->type) {
    case MSC_DTYPE_F16:
        round_run_to_f16(out, x, n);
        return;
    case MSC_DTYPE_BF16:
        round_run_to_bf16(out, x, n);
        return;
    default:
        msc_fake_quantize_run(out, x, n, q->scales[0], q->zero_points[0], q->low, q->high);
    }
}

// One row whose elements are of different channels: element i has scales[i].
MSC_SIMD static void quantize_row(int32_t out[], const float x[], int64_t n, const float scales[],
                                  const int32_t zero_points[], int32_t low, int32_t high) {
    for (int64_t i = 0; i < n; i++) {
        float q = quantize(x[i], scales[i], (float)zero_points[i], (float)low, (float)high);
        out[i] = to_integer(q, low);
    }
}

MSC_SIMD static void fake_quantize_row(float out[], const float x[], int64_t n,
                                       const float scales[], const int32_t zero_points[],
                                       int32_t low, int32_t high) {
    for (int64_t i = 0; i < n; i++) {
        float zero = (float)zero_points[i];
        float q = quantize(x[i], scales[i], zero, (float)low, (float)high);
        out[i] = (q - zero) * scales[i];
    }
}

// How an array falls into runs of one scale: [n_outer, q->n, n_inner].
struct split {
    int64_t n_outer;
    int64_t n_inner;
};

static enum msc_status split_array(struct split *out, const struct msc_array *x,
                                   const struct msc_quant *q) {
    int n_dims = msc_array_n_dims(x);
    const int64_t *dims = msc_array_dims(x);
    char text[MSC_DIMS_TEXT_BYTES];
    if (msc_array_dtype(x) != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_INVALID, "cannot quantise %s%s, expected float32",
                        msc_dtype_name(msc_array_dtype(x)), msc_dims_format(text, n_dims, dims));
    }
    *out = (struct split){1, 1};
    if (q->axis < 0 && q->n == 1) {
        out->n_inner = msc_array_n_elements(x);
        return MSC_OK;
    }
    if (q->axis < 0 || q->axis >= n_dims || dims[q->axis] != q->n) {
        return MSC_FAIL(MSC_E_INVALID, "%d scales along axis %d do not fit a tensor of %s",
                        (int)q->n, (int)q->axis, msc_dims_format(text, n_dims, dims));
    }
    for (int i = 0; i < n_dims; i++) {
        out->n_outer *= i < q->axis ? dims[i] : 1;
        out->n_inner *= i > q->axis ? dims[i] : 1;
    }
    return MSC_OK;
}

enum msc_status msc_fake_quantize_array(struct msc_array **out, const struct msc_array *x,
                                        const struct msc_quant *q) {
    struct split split;
    MSC_TRY(split_array(&split, x, q));
    MSC_TRY(msc_array_create(out, MSC_DTYPE_F32, msc_array_n_dims(x), msc_array_dims(x)));
    const float *from = msc_array_data(x);
    float *to = msc_array_data(*out);
    if (q->axis < 0) {
        msc_quant_apply_run(to, from, split.n_inner, q);
        return MSC_OK;
    }
    for (int64_t o = 0; o < split.n_outer; o++) {
        if (split.n_inner == 1) {
            int64_t at = o * q->n;
            fake_quantize_row(to + at, from + at, q->n, q->scales, q->zero_points, q->low, q->high);
            continue;
        }
        for (int64_t c = 0; c < q->n; c++) {
            int64_t at = (o * q->n + c) * split.n_inner;
            msc_fake_quantize_run(to + at, from + at, split.n_inner, q->scales[c],
                                  q->zero_points[c], q->low, q->high);
        }
    }
    return MSC_OK;
}

enum msc_status msc_quantize_array(struct msc_array **out, const struct msc_array *x,
                                   const struct msc_quant *q) {
    struct split split;
    if (q->type != MSC_DTYPE_NONE) {
        return MSC_FAIL(MSC_E_INVALID, "%s is no integer type", msc_dtype_name(q->type));
    }
    MSC_TRY(split_array(&split, x, q));
    MSC_TRY(msc_array_create(out, MSC_DTYPE_I32, msc_array_n_dims(x), msc_array_dims(x)));
    const float *from = msc_array_data(x);
    int32_t *to = msc_array_data(*out);
    for (int64_t o = 0; o < split.n_outer; o++) {
        if (split.n_inner == 1) {
            int64_t at = o * q->n;
            quantize_row(to + at, from + at, q->n, q->scales, q->zero_points, q->low, q->high);
            continue;
        }
        for (int64_t c = 0; c < q->n; c++) {
            int64_t at = (o * q->n + c) * split.n_inner;
            msc_quantize_run(to + at, from + at, split.n_inner, q->scales[c], q->zero_points[c],
                             q->low, q->high);
        }
    }
    return MSC_OK;
}
