// Unary functions that networks rarely use. Every type is computed in double and rounded once. For
// float32 and float16, the functions are those of numeric_real.h.
#include "graph/reference/reference_internal.h"

#include "base/platform.h"
#include "graph/reference/numeric_real.h"

#include <math.h>

struct math {
    enum msc_op op;
    double alpha, beta;
};

static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double sign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static double shrink(const struct math *m, double x) {
    return x < -m->beta ? x + m->alpha : x > m->beta ? x - m->alpha : 0;
}

static double one_activation(const struct math *m, double x) {
    switch (m->op) {
    case MSC_OP_SELU:
        return m->beta * (x > 0 ? x : m->alpha * expm1(x));
    case MSC_OP_CELU:
        return x > 0 ? x : m->alpha * expm1(x / m->alpha);
    case MSC_OP_SOFTPLUS:
        return softplus(x);
    case MSC_OP_SOFTSIGN:
        return x / (1 + fabs(x));
    case MSC_OP_THRESHOLDED_RELU:
        return x > m->alpha ? x : 0;
    case MSC_OP_SHRINK:
        return shrink(m, x);
    case MSC_OP_MISH:
        return x * tanh(softplus(x));
    default:
        return sign(x);
    }
}

static double reference_math_one(const struct math *m, double x) {
    switch (m->op) {
    case MSC_OP_SIN:
        return sin(x);
    case MSC_OP_COS:
        return cos(x);
    case MSC_OP_TAN:
        return tan(x);
    case MSC_OP_ASIN:
        return asin(x);
    case MSC_OP_ACOS:
        return acos(x);
    case MSC_OP_ATAN:
        return atan(x);
    case MSC_OP_SINH:
        return sinh(x);
    case MSC_OP_COSH:
        return cosh(x);
    case MSC_OP_ASINH:
        return asinh(x);
    case MSC_OP_ACOSH:
        return acosh(x);
    case MSC_OP_ATANH:
        return atanh(x);
    default:
        return one_activation(m, x);
    }
}

// Reads the operator's parameters, whose keys differ between operators.
static enum msc_status math_init(struct math *m, const struct msc_reference_call *call) {
    static const struct {
        enum msc_op op;
        const char *keys[2];
    } rows[] = {
        {MSC_OP_SELU, {"alpha", "gamma"}},
        {MSC_OP_CELU, {"alpha", NULL}},
        {MSC_OP_THRESHOLDED_RELU, {"alpha", NULL}},
        {MSC_OP_SHRINK, {"bias", "lambd"}},
    };
    *m = (struct math){.op = call->joint->op};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float values[2] = {0};
        for (int k = 0; rows[i].op == m->op && k < 2 && rows[i].keys[k]; k++) {
            MSC_TRY(msc_reference__get_float(&values[k], call, rows[i].keys[k]));
            m->alpha = (double)values[0];
            m->beta = (double)values[1];
        }
    }
    return MSC_OK;
}

// ---- Chunks -----------------------------------------------------------------------------------

MSC_SIMD static void run_formula(const struct math *m, double *restrict out,
                                 const double *restrict x, int64_t n) {
    struct math local = *m;
    switch (m->op) {
    case MSC_OP_SOFTSIGN:
        for (int64_t i = 0; i < n; i++) {
            out[i] = x[i] / (1 + fabs(x[i]));
        }
        break;
    case MSC_OP_THRESHOLDED_RELU:
        for (int64_t i = 0; i < n; i++) {
            out[i] = x[i] > local.alpha ? x[i] : 0;
        }
        break;
    case MSC_OP_SHRINK:
        for (int64_t i = 0; i < n; i++) {
            out[i] = shrink(&local, x[i]);
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            out[i] = sign(x[i]);
        }
        break;
    }
}

// out = x > 0 ? factor * x : factor * alpha * expm1(x / divisor)
MSC_SIMD static void run_exponential(double *restrict out, const double *restrict x, int64_t n,
                                     double factor, double alpha, double divisor) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] / divisor;
    }
    msc_real_expm1_run(out, out, n);
    for (int64_t i = 0; i < n; i++) {
        out[i] = factor * (x[i] > 0 ? x[i] : alpha * out[i]);
    }
}

static bool has_large_angle(const double x[], int64_t n) {
    bool is_large = false;
    for (int64_t i = 0; i < n; i++) {
        is_large = is_large || !(fabs(x[i]) <= MSC_REAL_MOST_ANGLE);
    }
    return is_large;
}

// The vectorised function that computes the operator; NULL if there is none.
static void (*vectorised(enum msc_op op))(double[], const double[], int64_t) {
    switch (op) {
    case MSC_OP_SIN:
        return msc_real_sin_run;
    case MSC_OP_COS:
        return msc_real_cos_run;
    case MSC_OP_TAN:
        return msc_real_tan_run;
    case MSC_OP_ASIN:
        return msc_real_asin_run;
    case MSC_OP_ACOS:
        return msc_real_acos_run;
    case MSC_OP_ATAN:
        return msc_real_atan_run;
    case MSC_OP_SINH:
        return msc_real_sinh_run;
    case MSC_OP_COSH:
        return msc_real_cosh_run;
    case MSC_OP_SOFTPLUS:
        return msc_real_softplus_run;
    case MSC_OP_MISH:
        return msc_real_mish_run;
    default:
        return NULL;
    }
}

// Computes n results that are later rounded to float32 or a smaller type.
static void run_rounded(const struct math *m, double out[], const double x[], int64_t n) {
    bool is_angle = m->op == MSC_OP_SIN || m->op == MSC_OP_COS || m->op == MSC_OP_TAN;
    if (vectorised(m->op) && !(is_angle && has_large_angle(x, n))) {
        vectorised(m->op)(out, x, n);
        return;
    }
    switch (m->op) {
    case MSC_OP_SELU:
        run_exponential(out, x, n, m->beta, m->alpha, 1);
        break;
    case MSC_OP_CELU:
        run_exponential(out, x, n, 1, m->alpha, m->alpha);
        break;
    case MSC_OP_SOFTSIGN:
    case MSC_OP_THRESHOLDED_RELU:
    case MSC_OP_SHRINK:
    case MSC_OP_SIGN:
        run_formula(m, out, x, n);
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            out[i] = reference_math_one(m, x[i]);
        }
        break;
    }
}

enum msc_status msc_reference__math(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    bool is_exact = x->dtype != MSC_DTYPE_F32 && x->dtype != MSC_DTYPE_F16;
    struct math m;
    MSC_TRY(math_init(&m, call));
    int64_t n = msc_view_n_elements(x);
    union msc_reference_chunk from, to;
    for (int64_t i = 0; i < n; i += MSC_REFERENCE_CHUNK) {
        int64_t count = n - i < MSC_REFERENCE_CHUNK ? n - i : MSC_REFERENCE_CHUNK;
        const double *numbers =
            msc_reference__load_chunk(&from, x, i, 1, count, MSC_REFERENCE_DOUBLE);
        for (int64_t k = 0; is_exact && k < count; k++) {
            to.real[k] = reference_math_one(&m, numbers[k]);
        }
        if (!is_exact) {
            run_rounded(&m, to.real, numbers, count);
        }
        msc_reference__store_chunk(&call->outputs[0], i, to.real, count, MSC_REFERENCE_DOUBLE);
    }
    return MSC_OK;
}

MSC_SIMD static void test_nan(int64_t *restrict out, const double *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] != x[i];
    }
}

MSC_SIMD static void test_infinite(int64_t *restrict out, const double *restrict x, int64_t n,
                                   bool low, bool high) {
    double least = low ? -INFINITY : INFINITY, greatest = high ? INFINITY : -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        bool is_low = x[i] == least, is_high = x[i] == greatest;
        out[i] = (is_low && low) || (is_high && high);
    }
}

// Tests of single elements (isinf, isnan), with bool results.
enum msc_status msc_reference__test(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    bool is_inf = call->joint->op == MSC_OP_ISINF, low = false, high = false;
    if (is_inf) {
        MSC_TRY(msc_reference__get_bool(&low, call, "detect_negative"));
        MSC_TRY(msc_reference__get_bool(&high, call, "detect_positive"));
    }
    int64_t n = msc_view_n_elements(x);
    union msc_reference_chunk from;
    int64_t answers[MSC_REFERENCE_CHUNK];
    for (int64_t i = 0; i < n; i += MSC_REFERENCE_CHUNK) {
        int64_t count = n - i < MSC_REFERENCE_CHUNK ? n - i : MSC_REFERENCE_CHUNK;
        const double *numbers =
            msc_reference__load_chunk(&from, x, i, 1, count, MSC_REFERENCE_DOUBLE);
        if (is_inf) {
            test_infinite(answers, numbers, count, low, high);
        } else {
            test_nan(answers, numbers, count);
        }
        msc_reference__store_chunk(&call->outputs[0], i, answers, count, MSC_REFERENCE_INT);
    }
    return MSC_OK;
}

MSC_SIMD static void run_not(uint8_t *restrict out, const uint8_t *restrict x, int64_t n,
                             bool is_logical) {
    uint8_t flip = is_logical ? 1 : 0xff;
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] ^ flip;
    }
}

enum msc_status msc_reference__not(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    bool is_logical = call->joint->op == MSC_OP_LOGICAL_NOT;
    int64_t n = msc_view_n_elements(x);
    if (msc_dtype_bytes(x->dtype) == 1) {
        run_not(call->outputs[0].data, x->data, n, is_logical);
        return MSC_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t value = msc_reference__get_i64_at(x, i);
        msc_reference__set_i64_at(&call->outputs[0], i, is_logical ? value == 0 : ~value);
    }
    return MSC_OK;
}
