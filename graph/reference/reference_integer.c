// Convolutions and matrix products of integers, for models that are already quantised, and
// convolutions of float types other than float32. Integer sums are exact (64 bits), float sums are
// in double.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <math.h>
#include <string.h>

// The zero point of element i. The operand at this position has one zero point for each element or
// a single one; an absent operand means 0.
static int64_t zero_of(const struct msc_reference_call *call, int position, int64_t i) {
    if (!msc_reference__has(call, position)) {
        return 0;
    }
    const struct msc_view *v = &call->operands[position];
    return msc_reference__get_i64_at(v, msc_view_n_elements(v) == 1 ? 0 : i);
}

static float scale_of(const struct msc_view *v, int64_t i) {
    return (float)msc_reference__get_double_at(v, msc_view_n_elements(v) == 1 ? 0 : i);
}

// round(sum * scale) + zero point, half to even, saturated.
static void store_quantized(const struct msc_view *out, int64_t at, int64_t sum, float scale,
                            int64_t zero) {
    msc_reference__set_double_at(out, at, rint((double)((float)sum * scale)) + (double)zero);
}

// ---- Convolution ------------------------------------------------------------------------------

struct integer_conv {
    struct msc_conv conv;
    const struct msc_view *x, *w, *out;
    bool is_real;
};

struct sums {
    double real;
    int64_t integer;
};

// The sum of products for output channel `channel` at output position `at`, with zero points
// subtracted.
static struct sums sum_window(const struct integer_conv *c, int64_t batch, int64_t channel,
                              const int64_t at[3], int64_t x_zero, int64_t w_zero) {
    const struct msc_window *w = &c->conv.window;
    int64_t in = w->in_channels / c->conv.groups, out = w->out_channels / c->conv.groups;
    struct sums sums = {0, 0};
    for (int64_t tap = 0; tap < w->kernel[0] * w->kernel[1] * w->kernel[2]; tap++) {
        int64_t k[3] = {tap / (w->kernel[1] * w->kernel[2]), tap / w->kernel[2] % w->kernel[1],
                        tap % w->kernel[2]};
        int64_t from = batch * w->in_batch_stride + channel / out * in * w->in_channel_stride;
        int64_t weight =
            channel / out * c->conv.weight_group_stride + channel % out * c->conv.weight_out_stride;
        bool is_inside = true;
        for (int a = 0; a < 3; a++) {
            int64_t source = msc_reference__conv_source(&c->conv, a, at[a], k[a]);
            is_inside = is_inside && source >= 0;
            from += source * w->in_strides[a];
            weight += k[a] * w->kernel_strides[a];
        }
        for (int64_t i = 0; is_inside && i < in; i++) {
            int64_t x_at = from + i * w->in_channel_stride;
            int64_t w_at = weight + i * c->conv.weight_in_stride;
            if (c->is_real) {
                sums.real += msc_reference__get_double_at(c->x, x_at) *
                             msc_reference__get_double_at(c->w, w_at);
            } else {
                sums.integer += (msc_reference__get_i64_at(c->x, x_at) - x_zero) *
                                (msc_reference__get_i64_at(c->w, w_at) - w_zero);
            }
        }
    }
    return sums;
}

// Positions of these operands in the call; they differ between the convolution operators.
struct places {
    int weight, x_zero, w_zero, bias;
};

static void store_conv(const struct msc_reference_call *call, const struct places *p, int64_t to,
                       int64_t channel, struct sums sums) {
    const struct msc_view *out = &call->outputs[0];
    bool has_bias = p->bias >= 0 && msc_reference__has(call, p->bias);
    if (msc_dtype_is_float(out->dtype)) {
        double bias =
            has_bias ? msc_reference__get_double_at(&call->operands[p->bias], channel) : 0;
        msc_reference__set_double_at(out, to, sums.real + bias);
    } else if (call->joint->op == MSC_OP_QLINEAR_CONV) {
        int64_t bias = has_bias ? msc_reference__get_i64_at(&call->operands[p->bias], channel) : 0;
        float scale = scale_of(&call->operands[1], 0) * scale_of(&call->operands[4], channel) /
                      scale_of(&call->operands[6], 0);
        store_quantized(out, to, sums.integer + bias, scale, zero_of(call, 7, 0));
    } else {
        msc_reference__set_i64_at(out, to, sums.integer);
    }
}

static enum msc_status reference_integer_run_conv(const struct msc_reference_call *call,
                                                  const struct places *p) {
    struct msc_view operands[2] = {call->operands[0], call->operands[p->weight]};
    struct msc_reference_call plain = *call;
    plain.operands = operands;
    plain.n_operands = 2;
    struct integer_conv c = {.x = &operands[0],
                             .w = &operands[1],
                             .out = &call->outputs[0],
                             .is_real = msc_dtype_is_float(operands[0].dtype)};
    MSC_TRY(msc_reference__conv_init(&c.conv, &plain));
    const struct msc_window *w = &c.conv.window;
    int64_t positions = w->out[0] * w->out[1] * w->out[2];
    for (int64_t i = 0; i < w->n_batches * w->out_channels * positions; i++) {
        int64_t position = i % positions, channel = i / positions % w->out_channels;
        int64_t batch = i / (positions * w->out_channels);
        int64_t at[3] = {position / (w->out[1] * w->out[2]), position / w->out[2] % w->out[1],
                         position % w->out[2]};
        int64_t to = batch * w->out_batch_stride + channel * w->out_channel_stride;
        for (int a = 0; a < 3; a++) {
            to += at[a] * w->out_strides[a];
        }
        store_conv(call, p, to, channel,
                   sum_window(&c, batch, channel, at, zero_of(call, p->x_zero, 0),
                              zero_of(call, p->w_zero, channel)));
    }
    return MSC_OK;
}

enum msc_status msc_reference__real_conv(const struct msc_reference_call *call) {
    return reference_integer_run_conv(
        call, &(struct places){.weight = 1, .x_zero = 3, .w_zero = 3, .bias = 2});
}

enum msc_status msc_reference__conv_integer(const struct msc_reference_call *call) {
    return reference_integer_run_conv(
        call, &(struct places){.weight = 1, .x_zero = 2, .w_zero = 3, .bias = -1});
}

enum msc_status msc_reference__qlinear_conv(const struct msc_reference_call *call) {
    return reference_integer_run_conv(
        call, &(struct places){.weight = 3, .x_zero = 2, .w_zero = 5, .bias = 8});
}

// ---- Matrix products --------------------------------------------------------------------------

// Both operands as stacks of matrices. The stacks broadcast to the stack of the output.
struct matrices {
    int64_t m, n, k;
    struct msc_walk walk; // over the stacks of the output, a and b
};

static void matrices_init(struct matrices *s, const struct msc_view *out, const struct msc_view *a,
                          const struct msc_view *b) {
    bool is_row = a->n_dims == 1, is_column = b->n_dims == 1;
    int n_stack = out->n_dims - !is_row - !is_column;
    int64_t strides[MSC_MAX_DIMS];
    s->k = a->dims[a->n_dims - 1];
    s->m = is_row ? 1 : a->dims[a->n_dims - 2];
    s->n = is_column ? 1 : b->dims[b->n_dims - 1];
    msc_reference__walk_init(&s->walk, n_stack, out->dims);
    msc_reference__strides(strides, n_stack, out->dims);
    for (int i = 0; i < n_stack; i++) {
        strides[i] *= s->m * s->n;
    }
    msc_reference__walk_add(&s->walk, strides);
    const struct msc_view *both[2] = {a, b};
    for (int v = 0; v < 2; v++) {
        struct msc_view stack = *both[v];
        int n_matrix = stack.n_dims < 2 ? stack.n_dims : 2;
        stack.n_dims -= n_matrix;
        msc_reference__broadcast_strides(strides, &stack, n_stack, out->dims);
        for (int i = 0; i < n_stack; i++) {
            strides[i] *= v == 0 ? s->m * s->k : s->k * s->n;
        }
        msc_reference__walk_add(&s->walk, strides);
    }
}

static void store_product(const struct msc_reference_call *call, int64_t to, struct sums sums,
                          int64_t row, int64_t column) {
    const struct msc_view *out = &call->outputs[0];
    if (msc_dtype_is_float(out->dtype)) {
        msc_reference__set_double_at(out, to, sums.real);
    } else if (call->joint->op == MSC_OP_QLINEAR_MATMUL) {
        float scale = scale_of(&call->operands[1], row) * scale_of(&call->operands[4], column) /
                      scale_of(&call->operands[6], 0);
        store_quantized(out, to, sums.integer, scale, zero_of(call, 7, 0));
    } else {
        msc_reference__set_i64_at(out, to, sums.integer);
    }
}

static void reference_integer_multiply(const struct msc_reference_call *call,
                                       const struct matrices *s, const int64_t firsts[3],
                                       const struct places *p) {
    const struct msc_view *a = &call->operands[0], *b = &call->operands[p->weight];
    bool is_real = msc_dtype_is_float(a->dtype);
    for (int64_t i = 0; i < s->m * s->n; i++) {
        int64_t row = i / s->n, column = i % s->n;
        int64_t a_zero = zero_of(call, p->x_zero, row), b_zero = zero_of(call, p->w_zero, column);
        struct sums sums = {0, 0};
        for (int64_t k = 0; k < s->k; k++) {
            int64_t a_at = firsts[1] + row * s->k + k, b_at = firsts[2] + k * s->n + column;
            if (is_real) {
                sums.real +=
                    msc_reference__get_double_at(a, a_at) * msc_reference__get_double_at(b, b_at);
            } else {
                // Products of 64-bit operands wrap, as in numpy.
                uint64_t x = (uint64_t)msc_reference__get_i64_at(a, a_at) - (uint64_t)a_zero;
                uint64_t y = (uint64_t)msc_reference__get_i64_at(b, b_at) - (uint64_t)b_zero;
                sums.integer = (int64_t)((uint64_t)sums.integer + x * y);
            }
        }
        store_product(call, firsts[0] + i, sums, row, column);
    }
}

// ---- Products of bytes ------------------------------------------------------------------------

// Maximum number of products of two bytes, zero points subtracted, whose sum is exact in float32:
// each product is below 2^16 in magnitude, and float32 holds all integers up to 2^24.
enum { EXACT_TERMS = 256 };

static bool is_byte(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I8;
}

// Memory for products of bytes: both operands without zero points, and sums.
struct byte_product {
    float *a;      // [m, k]
    float *b;      // [panels of MSC_DOT_WIDTH columns][k, MSC_DOT_WIDTH]
    float *part;   // [m, MSC_DOT_WIDTH] sums of EXACT_TERMS terms
    int32_t *sums; // [m, n]
    float *zeros;  // [n] zero points of b
};

// out = x - zeros; `is_single`: all have the zero point zeros[0].
MSC_SIMD static void load_row(float *restrict out, const struct msc_view *v, int64_t first,
                              int64_t n, const float *restrict zeros, bool is_single) {
    const uint8_t *u8 = (const uint8_t *)v->data + first;
    const int8_t *i8 = (const int8_t *)v->data + first;
    bool is_unsigned = v->dtype == MSC_DTYPE_U8;
    float zero = zeros[0];
    if (is_single && is_unsigned) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (float)u8[i] - zero;
        }
    } else if (is_single) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (float)i8[i] - zero;
        }
    } else if (is_unsigned) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (float)u8[i] - zeros[i];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (float)i8[i] - zeros[i];
        }
    }
}

static void load_bytes(const struct byte_product *w, const struct msc_reference_call *call,
                       const struct matrices *s, const int64_t firsts[3], const struct places *p) {
    const struct msc_view *a = &call->operands[0], *b = &call->operands[p->weight];
    for (int64_t i = 0; i < s->m; i++) {
        float zero = (float)zero_of(call, p->x_zero, i);
        load_row(w->a + i * s->k, a, firsts[1] + i * s->k, s->k, &zero, true);
    }
    for (int64_t j = 0; j < s->n; j++) {
        w->zeros[j] = (float)zero_of(call, p->w_zero, j);
    }
    for (int64_t j = 0; j < s->n; j += MSC_DOT_WIDTH) {
        int64_t columns = s->n - j < MSC_DOT_WIDTH ? s->n - j : MSC_DOT_WIDTH;
        for (int64_t k = 0; k < s->k; k++) {
            load_row(w->b + j * s->k + k * MSC_DOT_WIDTH, b, firsts[2] + k * s->n + j, columns,
                     w->zeros + j, false);
        }
    }
}

// round(sum * scale) + zero point, half to even, clamped to [low, high], stored as a byte. Rounds
// in float32 at the same steps as store_quantized.
MSC_SIMD static void store_bytes(uint8_t *restrict out, const int32_t *restrict sums, int64_t n,
                                 float scale, float zero, float low, float high) {
    for (int64_t i = 0; i < n; i++) {
        float y = rintf((float)sums[i] * scale);
        y = y < low - zero ? low - zero : y;
        y = y > high - zero ? high - zero : y;
        out[i] = (uint8_t)(int32_t)(y + zero);
    }
}

// Quantises a row of sums and stores it as bytes. False if the joint's output is not bytes with a
// single scale.
static bool store_byte_row(const struct msc_reference_call *call, int64_t to, const int32_t sums[],
                           int64_t n) {
    const struct msc_view *out = &call->outputs[0];
    if (call->joint->op != MSC_OP_QLINEAR_MATMUL || !is_byte(out->dtype) ||
        msc_view_n_elements(&call->operands[1]) != 1 ||
        msc_view_n_elements(&call->operands[4]) != 1) {
        return false;
    }
    float scale = scale_of(&call->operands[1], 0) * scale_of(&call->operands[4], 0) /
                  scale_of(&call->operands[6], 0);
    bool is_signed = out->dtype == MSC_DTYPE_I8;
    if (isfinite(scale)) {
        store_bytes((uint8_t *)out->data + to, sums, n, scale, (float)zero_of(call, 7, 0),
                    is_signed ? -128.0f : 0.0f, is_signed ? 127.0f : 255.0f);
    }
    return isfinite(scale);
}

MSC_SIMD static void set_sums(int32_t *restrict sums, const float *restrict part, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        sums[i] = (int32_t)part[i];
    }
}

MSC_SIMD static void add_sums(int32_t *restrict sums, const float *restrict part, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(int32_t)part[i]);
    }
}

// Like reference_integer_multiply, but in float32. The sums are exact integers, so the results are
// the same.
static void multiply_bytes(const struct byte_product *w, const struct msc_reference_call *call,
                           const struct matrices *s, const int64_t firsts[3],
                           const struct places *p) {
    load_bytes(w, call, s, firsts, p);
    if (s->k == 0) {
        memset(w->sums, 0, (size_t)(s->m * s->n) * sizeof(w->sums[0]));
    }
    for (int64_t j = 0; j < s->n; j += MSC_DOT_WIDTH) {
        int64_t columns = s->n - j < MSC_DOT_WIDTH ? s->n - j : MSC_DOT_WIDTH;
        for (int64_t k = 0; k < s->k; k += EXACT_TERMS) {
            const float *tile = w->b + j * s->k + k * MSC_DOT_WIDTH;
            int64_t n = s->k - k < EXACT_TERMS ? s->k - k : EXACT_TERMS;
            msc_reference__dot_tiles(w->part, w->a + k, s->k, 1, s->m, tile, n);
            for (int64_t i = 0; i < s->m; i++) {
                int32_t *sums = w->sums + i * s->n + j;
                (k == 0 ? set_sums : add_sums)(sums, w->part + i * MSC_DOT_WIDTH, columns);
            }
        }
    }
    for (int64_t i = 0; i < s->m; i++) {
        const int32_t *row = w->sums + i * s->n;
        bool is_stored = store_byte_row(call, firsts[0] + i * s->n, row, s->n);
        for (int64_t j = 0; !is_stored && j < s->n; j++) {
            struct sums sums = {0, row[j]};
            store_product(call, firsts[0] + i * s->n + j, sums, i, j);
        }
    }
}

// Sums of more terms may not fit int32.
enum { MOST_TERMS = 1 << 15 };

static enum msc_status create_byte_product(struct byte_product *w, const struct matrices *s) {
    size_t n_a = (size_t)(s->m * s->k), n = (size_t)s->n;
    size_t n_panels = (n + MSC_DOT_WIDTH - 1) / MSC_DOT_WIDTH;
    size_t n_b = n_panels * (size_t)s->k * MSC_DOT_WIDTH;
    size_t n_part = (size_t)s->m * MSC_DOT_WIDTH;
    w->a = msc_alloc_zero(n_a + n_b + n + n_part + (size_t)s->m * n, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(w->a));
    w->b = w->a + n_a;
    w->zeros = w->b + n_b;
    w->part = w->zeros + n;
    w->sums = (int32_t *)(void *)(w->part + n_part);
    return MSC_OK;
}

static enum msc_status run_matmul(const struct msc_reference_call *call, const struct places *p) {
    struct matrices s;
    matrices_init(&s, &call->outputs[0], &call->operands[0], &call->operands[p->weight]);
    struct msc_walk *w = &s.walk;
    struct byte_product bytes = {0};
    if (s.m == 0 || s.n == 0) {
        return MSC_OK;
    }
    bool are_bytes = is_byte(call->operands[0].dtype) && s.k <= MOST_TERMS &&
                     is_byte(call->operands[p->weight].dtype);
    MSC_TRY(are_bytes ? create_byte_product(&bytes, &s) : MSC_OK);
    for (bool more = msc_reference__walk_first(w); more; more = msc_reference__walk_next(w)) {
        for (int64_t i = 0; i < w->length; i++) {
            int64_t firsts[3];
            for (int v = 0; v < 3; v++) {
                firsts[v] = w->offsets[v] + i * w->steps[v];
            }
            if (are_bytes) {
                multiply_bytes(&bytes, call, &s, firsts, p);
            } else {
                reference_integer_multiply(call, &s, firsts, p);
            }
        }
    }
    msc_free(bytes.a);
    return MSC_OK;
}

enum msc_status msc_reference__any_matmul(const struct msc_reference_call *call) {
    return run_matmul(call, &(struct places){.weight = 1, .x_zero = 2, .w_zero = 2});
}

enum msc_status msc_reference__matmul_integer(const struct msc_reference_call *call) {
    return run_matmul(call, &(struct places){.weight = 1, .x_zero = 2, .w_zero = 3});
}

enum msc_status msc_reference__qlinear_matmul(const struct msc_reference_call *call) {
    return run_matmul(call, &(struct places){.weight = 3, .x_zero = 2, .w_zero = 5});
}
