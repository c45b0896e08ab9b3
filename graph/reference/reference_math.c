// Unary functions that networks rarely use. Every type is computed in double and rounded once.
#include "graph/reference/reference_internal.h"

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

enum msc_status msc_reference__math(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    struct math m;
    MSC_TRY(math_init(&m, call));
    int64_t n = msc_view_n_elements(x);
    for (int64_t i = 0; i < n; i++) {
        msc_reference__set_double_at(&call->outputs[0], i,
                                     reference_math_one(&m, msc_reference__get_double_at(x, i)));
    }
    return MSC_OK;
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
    for (int64_t i = 0; i < n; i++) {
        double value = msc_reference__get_double_at(x, i);
        bool answer = is_inf ? isinf(value) && (value > 0 ? high : low) : isnan(value);
        msc_reference__set_i64_at(&call->outputs[0], i, answer);
    }
    return MSC_OK;
}

enum msc_status msc_reference__not(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    bool is_logical = call->joint->op == MSC_OP_LOGICAL_NOT;
    int64_t n = msc_view_n_elements(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t value = msc_reference__get_i64_at(x, i);
        msc_reference__set_i64_at(&call->outputs[0], i, is_logical ? value == 0 : ~value);
    }
    return MSC_OK;
}
