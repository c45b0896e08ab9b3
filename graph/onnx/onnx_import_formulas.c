// Translates operators that ONNX has had since opset 23 and that are formulas of other operators:
// RMS normalisation, Swish, SwiGLU and causal convolution (formulas: ONNX's specification of each
// operator). Also translates Range, an older operator that has had a new attribute since then.
#include "graph/onnx/onnx_import_compose.h"

#include <string.h>

// x / sqrt(mean(x^2) + epsilon) * scale, with the mean over the axes from `axis` on. Statistics of
// narrower types are computed in float32.
enum msc_status msc_onnx__rms_norm(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    int64_t axis, stash;
    float epsilon;
    MSC_TRY(msc_onnx__int(&axis, n, "axis", -1));
    MSC_TRY(msc_onnx__int(&stash, n, "stash_type", 1));
    MSC_TRY(msc_onnx__float(&epsilon, n, "epsilon", 1e-5f));
    struct msc_onnx_shape shape = msc_onnx__shape(n, n->inputs[0]);
    int64_t first = axis < 0 ? axis + shape.n_dims : axis;
    if (first < 0 || first >= shape.n_dims) {
        return MSC_FAIL(MSC_E_FORMAT, "axis %lld is out of range for %d dimensions",
                        (long long)axis, shape.n_dims);
    }
    enum msc_dtype dtype = msc_onnx_dtype(stash < 0 || stash > 1000 ? 0 : (int)stash);
    struct msc_value *y = msc_compose_rms_norm(&c, n->inputs[0], first, epsilon, dtype);
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, y, n->inputs[1]);
}

enum msc_status msc_onnx__swish(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float alpha;
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.0f));
    struct msc_value *x = n->inputs[0];
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, x, msc_compose_gate(&c, x, alpha));
}

enum msc_status msc_onnx__swiglu(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float alpha;
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.0f));
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, msc_compose_swish(&c, n->inputs[0], alpha),
                            n->inputs[1]);
}

// ---- Causal convolution -----------------------------------------------------------------------

// A depthwise convolution over the past elements (zeros by default) and the input. Output 1 has the
// last elements of both, which are the past elements of the next call.
enum msc_status msc_onnx__causal_conv(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    const char *activation;
    MSC_TRY(msc_onnx__text(&activation, n, "activation", "none"));
    bool is_swish = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!is_swish && strcmp(activation, "none") != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "activation is '%s', expected none, silu or swish",
                        activation);
    }
    struct msc_value *x = n->inputs[0], *past = msc_onnx__input(n, 3);
    struct msc_onnx_shape shape = msc_onnx__shape(n, x), kernel = msc_onnx__shape(n, n->inputs[1]);
    if (shape.n_dims != 3 || kernel.n_dims != 3 || kernel.dims[0] < 1 || kernel.dims[2] < 1) {
        return MSC_FAIL(MSC_E_FORMAT, "expected an input [batch, channels, length] and a weight "
                                      "[channels, 1, width] with known dimensions");
    }
    int64_t before = kernel.dims[2] - 1;
    if (past != NULL) {
        x = msc_compose_concat(&c, past, x, 2);
    } else if (before > 0) {
        struct msc_value *widths = msc_compose_ints(&c, (int64_t[]){0, 0, before, 0, 0, 0}, 6);
        msc_onnx__set(n, "pad_mode", "constant");
        msc_onnx__set_float(n, "pad_value", 0.0f);
        x = MSC_COMPOSE(&c, MSC_OP_PAD, x, widths);
    }
    if (n->proto->n_output > 1) {
        int64_t begin = before == 0 ? INT64_MAX : -before;
        msc_compose_extra(&c, 1, msc_compose_slice(&c, x, 2, begin, INT64_MAX, 1));
    }
    struct msc_value *bias = msc_onnx__input(n, 2);
    struct msc_value *operands[3] = {x, n->inputs[1], bias};
    enum msc_op op = bias == NULL ? MSC_OP_CONV1D : MSC_OP_CONV1D_BIAS;
    msc_onnx__set_int(n, "groups", kernel.dims[0]);
    if (!is_swish) {
        return msc_compose_last(&c, op, operands, bias == NULL ? 2 : 3);
    }
    x = msc_compose_joint(&c, op, operands, bias == NULL ? 2 : 3);
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, x, MSC_COMPOSE(&c, MSC_OP_SIGMOID, x));
}

// ---- Newer attributes -------------------------------------------------------------------------

// Range adds up float16 and bfloat16 in a wider type, float32 by default (stash_type).
enum msc_status msc_onnx__range(struct msc_onnx_node *n) {
    int64_t stash;
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    MSC_TRY(msc_onnx__int(&stash, n, "stash_type", MSC_ONNX_FLOAT));
    bool is_narrow = dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
    if (is_narrow && stash != MSC_ONNX_FLOAT && stash != MSC_ONNX_DOUBLE) {
        return MSC_ONNX_UNSUPPORTED("stash_type is %lld, expected 1 (float32)", (long long)stash);
    }
    return msc_onnx__direct(n);
}
