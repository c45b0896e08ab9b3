#include "graph/quant.h"

#include "base/alloc.h"
#include "base/float_bits.h"
#include "base/platform.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// All operations after the division are exact in float32 as long as the result is within [low,
// high], because zero point and result have at most 16 bits. Other results are clamped. NaN is not
// clamped, so fake quantisation returns NaN.
static inline float quant_code(float x, float scale, float zero_point, float low, float high) {
    float q = rintf(x / scale) + zero_point;
    q = q < low ? low : q;
    return q > high ? high : q;
}

// Rounds a finite float32 to a multiple of 2^n units in the last place (to nearest, ties to even).
// A carry increments the exponent, which is correct.
static inline uint32_t drop_bits(uint32_t bits, int n) {
    uint32_t last = bits >> n & 1;
    return (bits + ((1u << (n - 1)) - 1) + last) >> n << n;
}

// The nearest finite float16. Float16 numbers below 2^-14 are spaced by 2^-24; in this range both
// multiplications are exact.
static inline float round_to_f16(float x) {
    const float most = MSC_F16_MAX;
    float normal = msc_float_of_bits(drop_bits(msc_float_bits(x), 13));
    float y = fabsf(x) < 0x1p-14f ? rintf(x * 0x1p24f) * 0x1p-24f : normal;
    y = y > most ? most : y;
    y = y < -most ? -most : y;
    return isnan(x) ? x : y;
}

static inline float round_to_bf16(float x) {
    const float most = MSC_BF16_MAX;
    float y = msc_float_of_bits(drop_bits(msc_float_bits(x), 16));
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
    if (q->group_size > 0) {
        h = msc_hash_add_u64(h, (uint64_t)q->group_size << 32 | (uint64_t)q->group_axes);
    }
    h = q->type != MSC_DTYPE_NONE ? msc_hash_add_text(h, msc_dtype_name(q->type)) : h;
    h = q->is_dynamic ? msc_hash_add_text(h, "dynamic") : h;
    h = q->blocks != NULL ? msc_hash_add_text(h, q->blocks->name) : h;
    size_t n = (size_t)q->n;
    h = msc_hash_add_bytes(h, q->scales, n * sizeof(q->scales[0]));
    q->hash = msc_hash_add_bytes(h, q->zero_points, n * sizeof(q->zero_points[0]));
    if (q->integers) {
        struct msc_hash integers = msc_array_hash(q->integers);
        q->hash = msc_hash_add_bytes(q->hash, &integers, sizeof(integers));
    }
    if (q->shifts) {
        struct msc_hash shifts = msc_array_hash(q->shifts);
        q->hash = msc_hash_combine(q->hash, msc_hash_combine(msc_hash_bytes("shifts", 6), shifts));
    }
}

enum msc_status msc_quant_copy(struct msc_quant *out, const struct msc_quant *q) {
    size_t n = (size_t)q->n;
    float *scales = msc_alloc(n * sizeof(scales[0]));
    int32_t *zero_points = msc_alloc(n * sizeof(zero_points[0]));
    if (scales == NULL || zero_points == NULL) {
        msc_free(scales);
        msc_free(zero_points);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    memcpy(scales, q->scales, n * sizeof(scales[0]));
    memcpy(zero_points, q->zero_points, n * sizeof(zero_points[0]));
    *out = *q;
    out->scales = scales;
    out->zero_points = zero_points;
    out->integers = q->integers ? msc_array_retain(q->integers) : NULL;
    out->shifts = q->shifts ? msc_array_retain(q->shifts) : NULL;
    return MSC_OK;
}

void msc_quant_finish(struct msc_quant *q) {
    msc_free((void *)q->scales);
    msc_free((void *)q->zero_points);
    msc_array_release((struct msc_array *)q->integers);
    msc_array_release((struct msc_array *)q->shifts);
}

struct msc_quant msc_quant_of_float(enum msc_dtype type) {
    static const float scale = 1;
    static const int32_t zero_point = 0;
    struct msc_quant q = {
        .type = type, .bits = 16, .axis = -1, .n = 1, .scales = &scale, .zero_points = &zero_point};
    msc_quant_seal(&q);
    return q;
}

struct msc_quant msc_quant_of_blocks(const struct msc_gguf_block_type *type, int32_t axis,
                                     const struct msc_array *bytes) {
    static const float scale = 1;
    static const int32_t zero_point = 0;
    struct msc_quant q = {.blocks = type,
                          .bits = type->bits,
                          .high = (1 << type->bits) - 1,
                          .axis = axis,
                          .n = 1,
                          .group_size = type->n,
                          .group_axes = 1,
                          .scales = &scale,
                          .zero_points = &zero_point,
                          .integers = bytes};
    msc_quant_seal(&q);
    return q;
}

struct msc_quant msc_quant_dynamic(void) {
    static const float scale = 1;
    static const int32_t zero_point = 0;
    struct msc_quant q = {.is_dynamic = true,
                          .bits = 8,
                          .high = UINT8_MAX,
                          .axis = -1,
                          .n = 1,
                          .scales = &scale,
                          .zero_points = &zero_point};
    msc_quant_seal(&q);
    return q;
}

enum { LANES = 32 };

// The range of the elements, extended to contain 0. Comparisons with NaN are false.
MSC_SIMD static void find_range(float *least, float *greatest, const float x[], int64_t n) {
    float low[LANES] = {0}, high[LANES] = {0};
    int64_t whole = n / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        for (int64_t k = 0; k < LANES; k++) {
            low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
            high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
        }
    }
    for (int64_t i = whole; i < n; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    *least = *greatest = 0;
    for (int64_t k = 0; k < LANES; k++) {
        *least = low[k] < *least ? low[k] : *least;
        *greatest = high[k] > *greatest ? high[k] : *greatest;
    }
}

void msc_quant_find_dynamic(float *scale, int32_t *zero_point, const float x[], int64_t n) {
    float least, greatest;
    find_range(&least, &greatest, x, n);
    *scale = greatest > least ? (greatest - least) / UINT8_MAX : 1;
    *zero_point = msc_quantize_value(-least, *scale, 0, 0, UINT8_MAX);
}

int32_t msc_quantize_value(float x, float scale, int32_t zero_point, int32_t low, int32_t high) {
    return to_integer(quant_code(x, scale, (float)zero_point, (float)low, (float)high), low);
}

MSC_SIMD static void quantize_clones(int32_t out[], const float x[], int64_t n, float scale,
                                     int32_t zero_point, int32_t low, int32_t high) {
    float zero = (float)zero_point, least = (float)low, most = (float)high;
    for (int64_t i = 0; i < n; i++) {
        out[i] = to_integer(quant_code(x[i], scale, zero, least, most), low);
    }
}

void msc_quantize_run(int32_t out[], const float x[], int64_t n, float scale, int32_t zero_point,
                      int32_t low, int32_t high) {
    quantize_clones(out, x, n, scale, zero_point, low, high);
}

MSC_SIMD static void fake_quantize_clones(float out[], const float x[], int64_t n, float scale,
                                          int32_t zero_point, int32_t low, int32_t high) {
    float zero = (float)zero_point, least = (float)low, most = (float)high;
    for (int64_t i = 0; i < n; i++) {
        out[i] = (quant_code(x[i], scale, zero, least, most) - zero) * scale;
    }
}

void msc_fake_quantize_run(float out[], const float x[], int64_t n, float scale, int32_t zero_point,
                           int32_t low, int32_t high) {
    fake_quantize_clones(out, x, n, scale, zero_point, low, high);
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
    float scale = q->scales[0];
    int32_t zero_point = q->zero_points[0];
    if (q->is_dynamic) {
        msc_quant_find_dynamic(&scale, &zero_point, x, n);
    }
    switch (q->type) {
    case MSC_DTYPE_F16:
        round_run_to_f16(out, x, n);
        return;
    case MSC_DTYPE_BF16:
        round_run_to_bf16(out, x, n);
        return;
    default:
        msc_fake_quantize_run(out, x, n, scale, zero_point, q->low, q->high);
    }
}

// Quantises one row in which each element has its own scale.
MSC_SIMD static void quantize_row(int32_t out[], const float x[], int64_t n, const float scales[],
                                  const int32_t zero_points[], int32_t low, int32_t high) {
    for (int64_t i = 0; i < n; i++) {
        float q = quant_code(x[i], scales[i], (float)zero_points[i], (float)low, (float)high);
        out[i] = to_integer(q, low);
    }
}

MSC_SIMD static void fake_quantize_row(float out[], const float x[], int64_t n,
                                       const float scales[], const int32_t zero_points[],
                                       int32_t low, int32_t high) {
    for (int64_t i = 0; i < n; i++) {
        float zero = (float)zero_points[i];
        float q = quant_code(x[i], scales[i], zero, (float)low, (float)high);
        out[i] = (q - zero) * scales[i];
    }
}

// Like quantize_row, but writes bytes.
MSC_SIMD static void quantize_row_to_bytes(uint8_t out[], const float x[], int64_t n,
                                           const float scales[], const int32_t zero_points[],
                                           int32_t low, int32_t high) {
    for (int64_t i = 0; i < n; i++) {
        float q = quant_code(x[i], scales[i], (float)zero_points[i], (float)low, (float)high);
        out[i] = (uint8_t)to_integer(q, low);
    }
}

MSC_SIMD static void quantize_run_to_bytes(uint8_t out[], const float x[], int64_t n, float scale,
                                           int32_t zero_point, int32_t low, int32_t high) {
    for (int64_t i = 0; i < n; i++) {
        float q = quant_code(x[i], scale, (float)zero_point, (float)low, (float)high);
        out[i] = (uint8_t)to_integer(q, low);
    }
}

static void quantize_channels_to_bytes(uint8_t out[], const float x[], int64_t outer, int64_t inner,
                                       const struct msc_quant *q) {
    for (int64_t i = 0; i < outer; i++) {
        if (inner == 1) {
            quantize_row_to_bytes(out, x, q->n, q->scales, q->zero_points, q->low, q->high);
        }
        for (int32_t c = 0; inner > 1 && c < q->n; c++) {
            quantize_run_to_bytes(out + c * inner, x + c * inner, inner, q->scales[c],
                                  q->zero_points[c], q->low, q->high);
        }
        x += q->n * inner;
        out += q->n * inner;
    }
}

static void fake_quantize_channels(float out[], const float x[], int64_t outer, int64_t inner,
                                   const struct msc_quant *q) {
    for (int64_t i = 0; i < outer; i++) {
        if (inner == 1) {
            fake_quantize_row(out, x, q->n, q->scales, q->zero_points, q->low, q->high);
        }
        for (int32_t c = 0; inner > 1 && c < q->n; c++) {
            msc_fake_quantize_run(out + c * inner, x + c * inner, inner, q->scales[c],
                                  q->zero_points[c], q->low, q->high);
        }
        x += q->n * inner;
        out += q->n * inner;
    }
}

void msc_quantize_channels(void *out, enum msc_dtype dtype, const float x[], int64_t outer,
                           int64_t inner, const struct msc_quant *q) {
    if (dtype == MSC_DTYPE_F32) {
        fake_quantize_channels(out, x, outer, inner, q);
    } else {
        quantize_channels_to_bytes(out, x, outer, inner, q);
    }
}

// `flip` is 0x80 for signed bytes, else 0. Flipping the sign bit of a signed byte adds 128 and
// makes it unsigned; the 128 is then subtracted.
MSC_SIMD static void dequantize_row(float out[], const uint8_t q[], int64_t n, uint8_t flip,
                                    const float scales[], const int32_t zero_points[]) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)((int32_t)(uint8_t)(q[i] ^ flip) - flip - zero_points[i]) * scales[i];
    }
}

MSC_SIMD static void dequantize_bytes(float out[], const uint8_t q[], int64_t n, uint8_t flip,
                                      float scale, int32_t zero_point) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)((int32_t)(uint8_t)(q[i] ^ flip) - flip - zero_point) * scale;
    }
}

void msc_dequantize_run(float out[], const void *q, enum msc_dtype dtype, int64_t n,
                        const struct msc_quant *quant) {
    dequantize_bytes(out, q, n, dtype == MSC_DTYPE_I8 ? 0x80 : 0, quant->scales[0],
                     quant->zero_points[0]);
}

void msc_dequantize_channels(float out[], const void *q, enum msc_dtype dtype, int64_t outer,
                             int64_t inner, const struct msc_quant *quant) {
    const uint8_t *bytes = q, flip = dtype == MSC_DTYPE_I8 ? 0x80 : 0;
    for (int64_t i = 0; i < outer; i++) {
        if (inner == 1) {
            dequantize_row(out, bytes, quant->n, flip, quant->scales, quant->zero_points);
        }
        for (int32_t c = 0; inner > 1 && c < quant->n; c++) {
            dequantize_bytes(out + c * inner, bytes + c * inner, inner, flip, quant->scales[c],
                             quant->zero_points[c]);
        }
        bytes += quant->n * inner;
        out += quant->n * inner;
    }
}

static void split_channels(struct msc_quant_split *s, const struct msc_quant *q, int n_dims,
                           const int64_t dims[]) {
    s->outer = msc_dims_product(q->axis, dims);
    s->inner = msc_dims_product(n_dims - q->axis - 1, dims + q->axis + 1);
    s->length = dims[q->axis];
    s->size = 1;
    s->block_step = 1;
    if (s->inner == 1) { // rows in which each element has its own scale
        s->inner = s->length;
        s->length = 1;
        s->block_step = 0;
        s->inner_step = 1;
    }
}

static void split_groups(struct msc_quant_split *s, const struct msc_quant *q, int n_dims,
                         const int64_t dims[]) {
    int end = q->axis + q->group_axes;
    s->outer = msc_dims_product(q->axis, dims);
    s->length = msc_dims_product(q->group_axes, dims + q->axis);
    s->inner = msc_dims_product(n_dims - end, dims + end);
    s->size = q->group_size;
    s->inner_step = s->inner > 1;
    s->block_step = s->inner;
    s->outer_step = (s->length + s->size - 1) / s->size * s->inner;
}

bool msc_quant_split(struct msc_quant_split *out, const struct msc_quant *q, int n_dims,
                     const int64_t dims[]) {
    *out = (struct msc_quant_split){.outer = 1, .inner = 1};
    if (q->axis < 0) {
        out->length = out->size = msc_dims_product(n_dims, dims);
        return q->n == 1 && q->group_size == 0;
    }
    if (q->group_size == 0) {
        if (q->axis >= n_dims || dims[q->axis] != q->n) {
            return false;
        }
        split_channels(out, q, n_dims, dims);
        return true;
    }
    if (q->group_size < 0 || q->group_axes < 1 || q->axis + q->group_axes > n_dims) {
        return false;
    }
    split_groups(out, q, n_dims, dims);
    return out->outer * out->outer_step == q->n;
}

static enum msc_status split_array(struct msc_quant_split *out, const struct msc_array *x,
                                   const struct msc_quant *q) {
    int n_dims = msc_array_n_dims(x);
    const int64_t *dims = msc_array_dims(x);
    char text[MSC_DIMS_TEXT_BYTES];
    if (msc_array_dtype(x) != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_INVALID, "cannot quantise %s%s, expected float32",
                        msc_dtype_name(msc_array_dtype(x)), msc_dims_format(text, n_dims, dims));
    }
    if (!msc_quant_split(out, q, n_dims, dims)) {
        return MSC_FAIL(MSC_E_INVALID, "%d scales along axis %d do not fit a tensor of %s",
                        (int)q->n, (int)q->axis, msc_dims_format(text, n_dims, dims));
    }
    return MSC_OK;
}

// A contiguous piece of an array, with one scale or with consecutive scales.
struct piece {
    int64_t at, n;
    int64_t scale; // index of the scale of the first element
};

static void fake_quantize_piece(const struct piece *p, const struct msc_quant_split *s,
                                const struct msc_quant *q, const float x[], void *out) {
    float *to = (float *)out + p->at;
    const float *scales = q->scales + p->scale;
    const int32_t *zeros = q->zero_points + p->scale;
    if (s->inner_step == 0) {
        msc_fake_quantize_run(to, x + p->at, p->n, scales[0], zeros[0], q->low, q->high);
    } else {
        fake_quantize_row(to, x + p->at, p->n, scales, zeros, q->low, q->high);
    }
}

static void quantize_piece(const struct piece *p, const struct msc_quant_split *s,
                           const struct msc_quant *q, const float x[], void *out) {
    int32_t *to = (int32_t *)out + p->at;
    const float *scales = q->scales + p->scale;
    const int32_t *zeros = q->zero_points + p->scale;
    if (s->inner_step == 0) {
        msc_quantize_run(to, x + p->at, p->n, scales[0], zeros[0], q->low, q->high);
    } else {
        quantize_row(to, x + p->at, p->n, scales, zeros, q->low, q->high);
    }
}

typedef void (*piece_fn)(const struct piece *p, const struct msc_quant_split *s,
                         const struct msc_quant *q, const float x[], void *out);

static void for_pieces(const struct msc_quant_split *s, const struct msc_quant *q, const float x[],
                       void *out, piece_fn fn) {
    for (int64_t o = 0; o < s->outer; o++) {
        for (int64_t begin = 0; begin < s->length; begin += s->size) {
            int64_t count = s->length - begin < s->size ? s->length - begin : s->size;
            // A block with a single scale is one piece; otherwise each of its rows is a piece.
            int64_t rows = s->inner_step == 0 ? 1 : count;
            struct piece p = {.at = (o * s->length + begin) * s->inner,
                              .n = count * s->inner / rows,
                              .scale = o * s->outer_step + begin / s->size * s->block_step};
            for (int64_t r = 0; r < rows; r++) {
                fn(&p, s, q, x, out);
                p.at += p.n;
            }
        }
    }
}

static inline int32_t chosen_integer(const struct msc_quant *q, uint8_t byte) {
    return q->low < 0 ? (int8_t)byte : byte;
}

static enum msc_status check_blocks(const struct msc_quant *q, int64_t n) {
    int64_t expected = n / q->blocks->n * q->blocks->n_bytes;
    if (n % q->blocks->n != 0 || q->integers == NULL ||
        msc_array_dtype(q->integers) != MSC_DTYPE_U8 ||
        msc_array_n_elements(q->integers) != expected) {
        return MSC_FAIL(MSC_E_INVALID, "expected %lld bytes of blocks %s", (long long)expected,
                        q->blocks->name);
    }
    return MSC_OK;
}

enum msc_status msc_quant_check_integers(const struct msc_quant *q, int64_t n) {
    if (q->blocks != NULL) {
        return check_blocks(q, n);
    }
    enum msc_dtype dtype = q->low < 0 ? MSC_DTYPE_I8 : MSC_DTYPE_U8;
    if (!q->integers) {
        return MSC_OK;
    }
    if (msc_array_dtype(q->integers) != dtype || msc_array_n_elements(q->integers) != n) {
        return MSC_FAIL(
            MSC_E_INVALID, "found %lld chosen integers of type %s, expected %lld of type %s",
            (long long)msc_array_n_elements(q->integers),
            msc_dtype_name(msc_array_dtype(q->integers)), (long long)n, msc_dtype_name(dtype));
    }
    const uint8_t *bytes = msc_array_data(q->integers);
    for (int64_t i = 0; i < n; i++) {
        int32_t integer = chosen_integer(q, bytes[i]);
        if (integer < q->low || integer > q->high) {
            return MSC_FAIL(MSC_E_INVALID, "chosen integer %lld is %lld, expected %d to %d",
                            (long long)i, (long long)integer, (int)q->low, (int)q->high);
        }
    }
    return MSC_OK;
}

// Dequantises a piece of `q->integers`, the integers already chosen for the weight.
static void dequantize_chosen_piece(const struct piece *p, const struct msc_quant_split *s,
                                    const struct msc_quant *q, const float x[], void *out) {
    const uint8_t *bytes = (const uint8_t *)msc_array_data(q->integers) + p->at;
    float *to = (float *)out + p->at;
    (void)x;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t scale = p->scale + i * s->inner_step;
        int32_t integer = chosen_integer(q, bytes[i]);
        to[i] = (float)(integer - q->zero_points[scale]) * q->scales[scale];
    }
}

// Decodes blocks. If their axis is not the last one, rows are gathered elements.
static enum msc_status decode_blocks(struct msc_array **out, const struct msc_array *x,
                                     const struct msc_quant *q) {
    int n_dims = msc_array_n_dims(x);
    const int64_t *dims = msc_array_dims(x);
    struct msc_array *rows;
    MSC_TRY(msc_quant_check_integers(q, msc_array_n_elements(x)));
    if (q->axis >= n_dims || dims[q->axis] % q->blocks->n != 0) {
        return MSC_FAIL(MSC_E_INVALID, "blocks %s along axis %d do not fit the tensor",
                        q->blocks->name, (int)q->axis);
    }
    MSC_TRY(msc_array_create_unset(&rows, MSC_DTYPE_F32, n_dims, dims));
    float *from = msc_array_data(rows);
    msc_gguf_decode(from, msc_array_data(q->integers), msc_array_n_elements(x) / q->blocks->n,
                    q->blocks);
    int64_t length = dims[q->axis];
    int64_t inner = msc_dims_product(n_dims - q->axis - 1, dims + q->axis + 1);
    if (inner == 1) {
        *out = rows;
        return MSC_OK;
    }
    enum msc_status status = msc_array_create_unset(out, MSC_DTYPE_F32, n_dims, dims);
    float *to = status == MSC_OK ? msc_array_data(*out) : NULL;
    for (int64_t i = 0; status == MSC_OK && i < msc_array_n_elements(x); i++) {
        int64_t row = i / (length * inner) * inner + i % inner;
        to[i] = from[row * length + i / inner % length];
    }
    msc_array_release(rows);
    return status;
}

enum msc_status msc_fake_quantize_array(struct msc_array **out, const struct msc_array *x,
                                        const struct msc_quant *q) {
    struct msc_quant_split split;
    if (q->blocks != NULL) {
        return decode_blocks(out, x, q);
    }
    MSC_TRY(split_array(&split, x, q));
    MSC_TRY(msc_array_create_unset(out, MSC_DTYPE_F32, msc_array_n_dims(x), msc_array_dims(x)));
    const float *from = msc_array_data(x);
    if (q->integers) {
        for_pieces(&split, q, NULL, msc_array_data(*out), dequantize_chosen_piece);
        return MSC_OK;
    }
    if (q->axis < 0) {
        msc_quant_apply_run(msc_array_data(*out), from, split.length, q);
        return MSC_OK;
    }
    for_pieces(&split, q, from, msc_array_data(*out), fake_quantize_piece);
    return MSC_OK;
}

enum msc_status msc_quantize_array(struct msc_array **out, const struct msc_array *x,
                                   const struct msc_quant *q) {
    struct msc_quant_split split;
    if (q->type != MSC_DTYPE_NONE || q->blocks != NULL) {
        return MSC_FAIL(MSC_E_INVALID, "%s is not an integer type",
                        q->blocks != NULL ? q->blocks->name : msc_dtype_name(q->type));
    }
    MSC_TRY(split_array(&split, x, q));
    MSC_TRY(msc_array_create_unset(out, MSC_DTYPE_I32, msc_array_n_dims(x), msc_array_dims(x)));
    if (q->integers) {
        int32_t *to = msc_array_data(*out);
        const uint8_t *bytes = msc_array_data(q->integers);
        for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
            to[i] = chosen_integer(q, bytes[i]);
        }
        return MSC_OK;
    }
    for_pieces(&split, q, msc_array_data(x), msc_array_data(*out), quantize_piece);
    return MSC_OK;
}
