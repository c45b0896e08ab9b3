#include "graph/reference/reference_internal.h"

#include "base/platform.h"
#include "graph/reference/numeric.h"

#include <math.h>
#include <string.h>

struct unary {
    enum msc_op op;
    float alpha;
    float beta;
    bool is_tanh_gelu;
    double low, high; // limits of clip
    int64_t low_int, high_int;
};

// 0.5 * x * (1 + erf(x / sqrt 2)), or its tanh approximation.
static void gelu_float(const struct unary *u, float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = u->is_tanh_gelu ? 0.797884561f * (x[i] + 0.044715f * (x[i] * x[i] * x[i]))
                                 : x[i] * 0.707106781f;
    }
    if (u->is_tanh_gelu) {
        msc_tanh_run(out, out, n);
    } else {
        msc_erf_run(out, out, n);
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0.5f * x[i] * (1.0f + out[i]);
    }
}

// Operators whose formula has a parameter or several steps.
MSC_SIMD static void run_float_formula(const struct unary *u, float out[], const float x[],
                                       int64_t n) {
    float low = (float)u->low, high = (float)u->high;
    switch (u->op) {
    case MSC_OP_LEAKY_RELU:
        for (int64_t i = 0; i < n; i++) {
            out[i] = x[i] < 0.0f ? u->alpha * x[i] : x[i];
        }
        break;
    case MSC_OP_CLIP:
        for (int64_t i = 0; i < n; i++) {
            float y = x[i] < low ? low : x[i];
            out[i] = y > high ? high : y;
        }
        break;
    case MSC_OP_HARD_SIGMOID:
    case MSC_OP_HARD_SWISH:
        for (int64_t i = 0; i < n; i++) {
            float y = u->alpha * x[i] + u->beta;
            y = y < 0.0f ? 0.0f : y;
            y = y > 1.0f ? 1.0f : y;
            out[i] = u->op == MSC_OP_HARD_SWISH ? x[i] * y : y;
        }
        break;
    case MSC_OP_ELU:
        msc_exp_run(out, x, n);
        for (int64_t i = 0; i < n; i++) {
            out[i] = x[i] < 0.0f ? u->alpha * (out[i] - 1.0f) : x[i];
        }
        break;
    case MSC_OP_LOG:
        msc_log_run(out, x, n);
        break;
    default:
        gelu_float(u, out, x, n);
        break;
    }
}

MSC_SIMD static void run_float(const struct unary *u, float out[], const float x[], int64_t n) {
    switch (u->op) {
    case MSC_OP_RELU:
        for (int64_t i = 0; i < n; i++) {
            out[i] = x[i] < 0.0f ? 0.0f : x[i]; // NaN remains NaN
        }
        break;
    case MSC_OP_SIGMOID:
        msc_sigmoid_run(out, x, n);
        break;
    case MSC_OP_TANH:
        msc_tanh_run(out, x, n);
        break;
    case MSC_OP_EXP:
        msc_exp_run(out, x, n);
        break;
    case MSC_OP_ERF:
        msc_erf_run(out, x, n);
        break;
    case MSC_OP_SQRT:
        for (int64_t i = 0; i < n; i++) {
            out[i] = sqrtf(x[i]);
        }
        break;
    case MSC_OP_ABS:
        for (int64_t i = 0; i < n; i++) {
            out[i] = fabsf(x[i]);
        }
        break;
    case MSC_OP_NEGATIVE:
        for (int64_t i = 0; i < n; i++) {
            out[i] = -x[i];
        }
        break;
    case MSC_OP_RECIPROCAL:
        for (int64_t i = 0; i < n; i++) {
            out[i] = 1.0f / x[i];
        }
        break;
    case MSC_OP_FLOOR:
        for (int64_t i = 0; i < n; i++) {
            out[i] = floorf(x[i]);
        }
        break;
    case MSC_OP_CEIL:
        for (int64_t i = 0; i < n; i++) {
            out[i] = ceilf(x[i]);
        }
        break;
    case MSC_OP_ROUND:
        for (int64_t i = 0; i < n; i++) {
            out[i] = rintf(x[i]);
        }
        break;
    default:
        run_float_formula(u, out, x, n);
        break;
    }
}

static double one_double(const struct unary *u, double x) {
    double y;
    switch (u->op) {
    case MSC_OP_RELU:
        return x < 0 ? 0 : x;
    case MSC_OP_LEAKY_RELU:
        return x < 0 ? (double)u->alpha * x : x;
    case MSC_OP_SIGMOID:
        return 1 / (1 + exp(-x));
    case MSC_OP_HARD_SIGMOID:
    case MSC_OP_HARD_SWISH:
        y = (double)u->alpha * x + (double)u->beta;
        y = y < 0 ? 0 : y > 1 ? 1 : y;
        return u->op == MSC_OP_HARD_SWISH ? x * y : y;
    case MSC_OP_TANH:
        return tanh(x);
    case MSC_OP_ELU:
        return x < 0 ? (double)u->alpha * expm1(x) : x;
    case MSC_OP_GELU:
        y = u->is_tanh_gelu ? tanh(sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x))
                            : erf(x / sqrt(2));
        return 0.5 * x * (1 + y);
    case MSC_OP_CLIP:
        y = x < u->low ? u->low : x;
        return y > u->high ? u->high : y;
    case MSC_OP_EXP:
        return exp(x);
    case MSC_OP_LOG:
        return log(x);
    case MSC_OP_SQRT:
        return sqrt(x);
    case MSC_OP_ERF:
        return erf(x);
    case MSC_OP_ABS:
        return fabs(x);
    case MSC_OP_NEGATIVE:
        return -x;
    case MSC_OP_RECIPROCAL:
        return 1 / x;
    case MSC_OP_FLOOR:
        return floor(x);
    case MSC_OP_CEIL:
        return ceil(x);
    default:
        return rint(x);
    }
}

static bool has_int_form(enum msc_op op) {
    switch (op) {
    case MSC_OP_RELU:
    case MSC_OP_CLIP:
    case MSC_OP_ABS:
    case MSC_OP_NEGATIVE:
    case MSC_OP_FLOOR:
    case MSC_OP_CEIL:
    case MSC_OP_ROUND:
        return true;
    default:
        return false;
    }
}

static int64_t one_int(const struct unary *u, int64_t x) {
    int64_t y = x;
    switch (u->op) {
    case MSC_OP_RELU:
        return x < 0 ? 0 : x;
    case MSC_OP_CLIP:
        y = x < u->low_int ? u->low_int : x;
        return y > u->high_int ? u->high_int : y;
    case MSC_OP_ABS:
        return x < 0 ? (int64_t) - (uint64_t)x : x;
    case MSC_OP_NEGATIVE:
        return (int64_t) - (uint64_t)x;
    default: // floor, ceil, round
        return x;
    }
}

static void run_kind(const struct unary *u, void *out, const void *x, int64_t n,
                     enum msc_reference_kind kind) {
    switch (kind) {
    case MSC_REFERENCE_F32:
        run_float(u, out, x, n);
        break;
    case MSC_REFERENCE_DOUBLE:
        for (int64_t i = 0; i < n; i++) {
            ((double *)out)[i] = one_double(u, ((const double *)x)[i]);
        }
        break;
    case MSC_REFERENCE_INT:
        for (int64_t i = 0; i < n; i++) {
            ((int64_t *)out)[i] = one_int(u, ((const int64_t *)x)[i]);
        }
        break;
    }
}

// Reads one limit of clip from the attribute or the scalar operand, if either exists.
static void clip_limit(const struct msc_reference_call *call, const char *key, double *real,
                       int64_t *integer) {
    float value;
    int position = msc_joint_operand(call->joint, key);
    if (msc_joint_attr_float(call->joint, key, &value)) {
        *real = (double)value;
        // The limits of int64 are not exact floats. A limit beyond them has no effect.
        if (value > -9.2e18f && value < 9.2e18f) {
            *integer = (int64_t)value;
        }
    } else if (position >= 0 && msc_reference__has(call, position)) {
        *real = msc_reference__get_double_at(&call->operands[position], 0);
        *integer = msc_reference__get_i64_at(&call->operands[position], 0);
    }
}

static enum msc_status unary_init(struct unary *u, const struct msc_reference_call *call) {
    *u = (struct unary){
        .op = call->joint->op,
        .low = -INFINITY,
        .high = INFINITY,
        .low_int = INT64_MIN,
        .high_int = INT64_MAX,
    };
    switch (u->op) {
    case MSC_OP_LEAKY_RELU:
    case MSC_OP_ELU:
        MSC_TRY(msc_reference__get_float(&u->alpha, call, "alpha"));
        break;
    case MSC_OP_HARD_SIGMOID:
        MSC_TRY(msc_reference__get_float(&u->alpha, call, "alpha"));
        MSC_TRY(msc_reference__get_float(&u->beta, call, "beta"));
        break;
    case MSC_OP_HARD_SWISH: // constants of the operator
        u->alpha = 1.0f / 6.0f;
        u->beta = 0.5f;
        break;
    case MSC_OP_GELU:
        u->is_tanh_gelu = msc_reference__get_text(call, "approximate")[0] == 't';
        break;
    case MSC_OP_CLIP:
        clip_limit(call, "min", &u->low, &u->low_int);
        clip_limit(call, "max", &u->high, &u->high_int);
        break;
    default:
        break;
    }
    return MSC_OK;
}

enum msc_status msc_reference__unary(const struct msc_reference_call *call) {
    struct unary u;
    MSC_TRY(unary_init(&u, call));
    const struct msc_view *x = &call->operands[0];
    enum msc_reference_kind kind = msc_reference__kind(x->dtype);
    if (kind == MSC_REFERENCE_INT && !has_int_form(u.op)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s does not support %s", call->joint->name,
                        msc_op_info(u.op)->name, msc_dtype_name(x->dtype));
    }
    MSC_TRY(msc_reference__check_u64(call));
    int64_t n = msc_view_n_elements(x);
    union msc_reference_chunk from, to;
    for (int64_t i = 0; i < n; i += MSC_REFERENCE_CHUNK) {
        int64_t count = n - i < MSC_REFERENCE_CHUNK ? n - i : MSC_REFERENCE_CHUNK;
        run_kind(&u, &to, msc_reference__load_chunk(&from, x, i, 1, count, kind), count, kind);
        msc_reference__store_chunk(&call->outputs[0], i, &to, count, kind);
    }
    return MSC_OK;
}

static bool fits_f32(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_F32 || dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BOOL ||
           dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I8;
}

enum msc_status msc_reference__cast(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *y = &call->outputs[0];
    if (x->dtype == y->dtype) {
        return msc_reference__copy(call);
    }
    if (msc_reference__convert(y, x)) {
        return MSC_OK;
    }
    MSC_TRY(msc_reference__check_u64(call));
    // Floats are converted through double, so that integer results are truncated from the exact
    // value. If all numbers of both types are also float32 numbers, conversion through float32 is
    // exact, too.
    enum msc_reference_kind kind =
        msc_dtype_is_float(x->dtype) ? MSC_REFERENCE_DOUBLE : MSC_REFERENCE_INT;
    if (fits_f32(x->dtype) && msc_dtype_is_float(y->dtype) && fits_f32(y->dtype)) {
        kind = MSC_REFERENCE_F32;
    }
    int64_t n = msc_view_n_elements(x);
    union msc_reference_chunk buffer;
    for (int64_t i = 0; i < n; i += MSC_REFERENCE_CHUNK) {
        int64_t count = n - i < MSC_REFERENCE_CHUNK ? n - i : MSC_REFERENCE_CHUNK;
        msc_reference__store_chunk(y, i, msc_reference__load_chunk(&buffer, x, i, 1, count, kind),
                                   count, kind);
    }
    return MSC_OK;
}

// Elements keep their bits. For bool outputs, 0 remains 0 and any other byte becomes 1.
enum msc_status msc_reference__bit_cast(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *y = &call->outputs[0];
    size_t n = (size_t)msc_view_n_elements(x);
    for (size_t i = 0; y->dtype == MSC_DTYPE_BOOL && i < n; i++) {
        ((uint8_t *)y->data)[i] = ((const uint8_t *)x->data)[i] != 0;
    }
    if (y->dtype != MSC_DTYPE_BOOL && n > 0) {
        memcpy(y->data, x->data, n * msc_dtype_bytes(x->dtype));
    }
    return MSC_OK;
}
