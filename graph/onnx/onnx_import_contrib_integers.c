// Operators of com.microsoft on quantised integers. Most become the float operator between
// `dequantize` and `quantize`; products of integers stay products of integers. Semantics: ONNX
// Runtime's documentation.
#include "graph/onnx/onnx_import_compose.h"

#include <string.h>

// Inputs `x` to x + 2 of the node: a tensor, its scale, and its zero point (may be absent).
static struct msc_value *read(struct msc_compose *c, int x) {
    struct msc_onnx_node *n = c->node;
    struct msc_value *operands[] = {n->inputs[x], n->inputs[x + 1], msc_onnx__input(n, x + 2)};
    return msc_compose_joint(c, MSC_OP_DEQUANTIZE, operands, operands[2] == NULL ? 2 : 3);
}

// Quantises y to the type of input `like`. The scale is input `scale`; the zero point is input
// scale + 1, which may be absent.
static enum msc_status write(struct msc_compose *c, struct msc_value *y, int scale, int like) {
    struct msc_onnx_node *n = c->node;
    struct msc_value *operands[] = {y, n->inputs[scale], msc_onnx__input(n, scale + 1)};
    msc_onnx__set(n, "dtype", msc_dtype_name(msc_onnx__shape(n, n->inputs[like]).dtype));
    return msc_compose_last(c, MSC_OP_QUANTIZE, operands, operands[2] == NULL ? 2 : 3);
}

enum msc_status msc_onnx__quantized_binary(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    MSC_TRY(msc_onnx__require(n, 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 6));
    struct msc_value *a = read(&c, 0), *b = read(&c, 3);
    return write(&c, MSC_COMPOSE(&c, n->rule.op, a, b), 6, 0);
}

// Sigmoid, LeakyRelu and Softmax. The attribute `opset` selects the ONNX version of Softmax.
enum msc_status msc_onnx__quantized_unary(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    MSC_TRY(msc_onnx__require(n, 1 << 0 | 1 << 1 | 1 << 3));
    struct msc_value *x = read(&c, 0);
    float alpha;
    if (n->rule.op == MSC_OP_SOFTMAX) {
        struct msc_value *inputs[] = {x};
        MSC_TRY(msc_onnx__int(&n->opset, n, "opset", n->opset));
        x = msc_compose_translate(&c, msc_onnx__softmax, n->rule.op, inputs, 1);
        return write(&c, x, 3, 0);
    }
    if (n->rule.op == MSC_OP_LEAKY_RELU) {
        MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 0.01f));
        msc_onnx__set_float(n, "alpha", alpha);
    }
    return write(&c, MSC_COMPOSE(&c, n->rule.op, x), 3, 0);
}

// Move the channels from the last axis to axis 1, and back.
static struct msc_value *channels_first(struct msc_compose *c, struct msc_value *x) {
    return msc_compose_move(c, x, msc_compose_shape(c, x).n_dims - 1, 1);
}

static struct msc_value *channels_last(struct msc_compose *c, struct msc_value *x) {
    return msc_compose_move(c, x, 1, msc_compose_shape(c, x).n_dims - 1);
}

enum msc_status msc_onnx__quantized_pool(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    int64_t is_last;
    MSC_TRY(msc_onnx__require(n, 1 << 0 | 1 << 1 | 1 << 3));
    MSC_TRY(msc_onnx__int(&is_last, n, "channels_last", 0));
    struct msc_value *x = read(&c, 0);
    x = is_last != 0 ? channels_first(&c, x) : x;
    bool is_global = n->rule.op == MSC_OP_GLOBAL_AVG_POOL;
    x = msc_compose_translate(&c, is_global ? msc_onnx__global_pool : msc_onnx__pool, n->rule.op,
                              &x, 1);
    x = is_last != 0 ? channels_last(&c, x) : x;
    return write(&c, x, 3, 0);
}

// Inputs: scale and zero point of the output, and then each tensor with its scale and zero point.
enum msc_status msc_onnx__quantized_concat(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    int64_t axis;
    int count = (n->n_inputs - 2) / 3;
    MSC_TRY(msc_onnx__int(&axis, n, "axis", 0));
    struct msc_value **parts =
        msc_arena_array(&n->import->builder.arena, (size_t)count, sizeof(parts[0]));
    MSC_TRY(MSC_ALLOCATED(parts));
    if (n->n_inputs != 2 + 3 * count) {
        return MSC_FAIL(MSC_E_FORMAT, "found %d inputs, expected 2, plus 3 for each tensor",
                        n->n_inputs);
    }
    for (int i = 0; i < count; i++) {
        parts[i] = read(&c, 2 + 3 * i);
    }
    msc_onnx__set_int(n, "axis", axis);
    return write(&c, msc_compose_joint(&c, MSC_OP_CONCAT, parts, count), 0, 1);
}

enum msc_status msc_onnx__quantized_where(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *x = read(&c, 1), *y = read(&c, 4);
    return write(&c, MSC_COMPOSE(&c, MSC_OP_WHERE, n->inputs[0], x, y), 7, 1);
}

// As ONNX's QLinearConv; the input's channels may be the last axis.
enum msc_status msc_onnx__quantized_conv(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *inputs[9] = {NULL};
    int64_t is_last;
    MSC_TRY(msc_onnx__int(&is_last, n, "channels_last", 0));
    if (is_last == 0) {
        return msc_onnx__conv_integer(n);
    }
    memcpy(inputs, n->inputs, (size_t)n->n_inputs * sizeof(inputs[0]));
    inputs[0] = channels_first(&c, inputs[0]);
    struct msc_value *y =
        msc_compose_translate(&c, msc_onnx__conv_integer, n->rule.op, inputs, n->n_inputs);
    return msc_compose_end(&c, channels_last(&c, y));
}

// ---- Products ---------------------------------------------------------------------------------

// alpha * A * B + C, where C contains integers with the scale alpha * (scale of A) * (scale of B).
// The output is quantised if it has a scale.
enum msc_status msc_onnx__quantized_gemm(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    int64_t is_turned;
    float alpha;
    MSC_TRY(msc_onnx__int(&is_turned, n, "transB", 0));
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.0f));
    struct msc_value *inputs[3] = {read(&c, 0), NULL, NULL};
    msc_onnx__set_int(n, "axis", is_turned != 0 ? 0 : 1);
    inputs[1] = read(&c, 3);
    if (msc_onnx__input(n, 6) != NULL) {
        struct msc_value *scale = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, n->inputs[1], n->inputs[4]);
        scale =
            MSC_COMPOSE(&c, MSC_OP_MULTIPLY, scale, msc_compose_scalar(&c, MSC_DTYPE_F32, alpha));
        struct msc_value *bias = msc_compose_cast(&c, n->inputs[6], MSC_DTYPE_F32);
        inputs[2] = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, bias, scale);
    }
    struct msc_value *y =
        msc_compose_translate(&c, msc_onnx__gemm, MSC_OP_GEMM, inputs, inputs[2] == NULL ? 2 : 3);
    return msc_onnx__input(n, 7) == NULL ? msc_compose_end(&c, y) : write(&c, y, 7, 0);
}

// Multiplies integers as int32, converts the sums to floats, and multiplies these by the scales of
// both factors. The zero points and the bias may be NULL.
static enum msc_status multiply(struct msc_compose *c, struct msc_value *const factors[2],
                                struct msc_value *const zeros[2], struct msc_value *const scales[2],
                                struct msc_value *bias) {
    struct msc_value *operands[] = {factors[0], factors[1], zeros[0], zeros[1]};
    int n_operands = zeros[1] != NULL ? 4 : zeros[0] != NULL ? 3 : 2;
    struct msc_value *y = msc_compose_joint(c, MSC_OP_MATMUL_INTEGER, operands, n_operands);
    y = msc_compose_cast(c, y, MSC_DTYPE_F32);
    struct msc_value *scale = MSC_COMPOSE(c, MSC_OP_MULTIPLY, scales[0], scales[1]);
    y = MSC_COMPOSE(c, MSC_OP_MULTIPLY, y, scale);
    return msc_compose_end(c, bias == NULL ? y : MSC_COMPOSE(c, MSC_OP_ADD, y, bias));
}

// Quantises A at run time, with the range of its elements.
enum msc_status msc_onnx__dynamic_matmul(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *a[3]; // integers, scale, zero point
    MSC_TRY(msc_onnx__add_helpers(a, 3, n, MSC_OP_DYNAMIC_QUANTIZE, n->inputs, 1));
    struct msc_value *factors[] = {a[0], n->inputs[1]}, *scales[] = {a[1], n->inputs[2]};
    struct msc_value *zeros[] = {a[2], msc_onnx__input(n, 3)};
    return multiply(&c, factors, zeros, scales, msc_onnx__input(n, 4));
}

enum msc_status msc_onnx__matmul_to_float(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *zeros[] = {msc_onnx__input(n, 4), msc_onnx__input(n, 5)};
    return multiply(&c, n->inputs, zeros, &n->inputs[2], msc_onnx__input(n, 6));
}
