// The operators of com.microsoft, which ONNX Runtime's optimiser writes: the table of rules, and
// the translators of fused products, convolutions, activations and pools. Semantics: ONNX
// Runtime's documentation of its operators. The files onnx_import_contrib_*.c have one family each.
#include "graph/onnx/onnx_import_compose.h"

#include <string.h>

static const struct msc_onnx_rule rules[] = {
    {"Attention", msc_onnx__contrib_attention, MSC_OP_MATMUL, 2, 7},
    {"BiasGelu", msc_onnx__bias_gelu, MSC_OP_GELU, 2, 2},
    {"BiasSplitGelu", msc_onnx__bias_split_gelu, MSC_OP_MULTIPLY, 2, 2},
    {"DequantizeLinear", msc_onnx__dequantize, MSC_OP_DEQUANTIZE, 2, 3},
    {"DynamicQuantizeMatMul", msc_onnx__dynamic_matmul, MSC_OP_MATMUL_INTEGER, 3, 5},
    {"EmbedLayerNormalization", msc_onnx__embed_layer_norm, MSC_OP_ADD, 1, 9},
    {"FastGelu", msc_onnx__bias_gelu, MSC_OP_GELU, 1, 2},
    {"FusedConv", msc_onnx__fused_conv, MSC_OP_CONV2D, 2, 4},
    {"FusedGemm", msc_onnx__fused_gemm, MSC_OP_GEMM, 2, 3},
    {"FusedMatMul", msc_onnx__fused_matmul, MSC_OP_MATMUL, 2, 2},
    {"GatherBlockQuantized", msc_onnx__gather_blocks, MSC_OP_TAKE, 3, 4},
    {"Gelu", msc_onnx__bias_gelu, MSC_OP_GELU, 1, 1},
    {"GroupQueryAttention", msc_onnx__group_query_attention, MSC_OP_MATMUL, 1, 17},
    {"MatMulIntegerToFloat", msc_onnx__matmul_to_float, MSC_OP_MATMUL_INTEGER, 4, 7},
    {"MatMulNBits", msc_onnx__matmul_bits, MSC_OP_LINEAR, 3, 6},
    {"MultiHeadAttention", msc_onnx__multi_head_attention, MSC_OP_MATMUL, 1, 10},
    {"NhwcConv", msc_onnx__nhwc, MSC_OP_CONV2D, 2, 3},
    {"NhwcMaxPool", msc_onnx__nhwc, MSC_OP_MAX_POOL2D, 1, 1},
    {"QGemm", msc_onnx__quantized_gemm, MSC_OP_GEMM, 6, 9},
    {"QLinearAdd", msc_onnx__quantized_binary, MSC_OP_ADD, 2, 8},
    {"QLinearAveragePool", msc_onnx__quantized_pool, MSC_OP_AVG_POOL2D, 2, 5},
    {"QLinearConcat", msc_onnx__quantized_concat, MSC_OP_CONCAT, 5, -1},
    {"QLinearConv", msc_onnx__quantized_conv, MSC_OP_QLINEAR_CONV, 8, 9},
    {"QLinearGlobalAveragePool", msc_onnx__quantized_pool, MSC_OP_GLOBAL_AVG_POOL, 5, 5},
    {"QLinearLeakyRelu", msc_onnx__quantized_unary, MSC_OP_LEAKY_RELU, 2, 5},
    {"QLinearMul", msc_onnx__quantized_binary, MSC_OP_MULTIPLY, 2, 8},
    {"QLinearSigmoid", msc_onnx__quantized_unary, MSC_OP_SIGMOID, 2, 5},
    {"QLinearSoftmax", msc_onnx__quantized_unary, MSC_OP_SOFTMAX, 2, 5},
    {"QLinearWhere", msc_onnx__quantized_where, MSC_OP_WHERE, 9, 9},
    {"QuantizeLinear", msc_onnx__quantize, MSC_OP_QUANTIZE, 2, 3},
    {"QuickGelu", msc_onnx__quick_gelu, MSC_OP_MULTIPLY, 1, 1},
    {"RotaryEmbedding", msc_onnx__contrib_rotary_embedding, MSC_OP_CONCAT, 4, 4},
    {"SkipLayerNormalization", msc_onnx__skip_layer_norm, MSC_OP_ADD, 3, 5},
    {"SkipSimplifiedLayerNormalization", msc_onnx__skip_rms_norm, MSC_OP_MULTIPLY, 3, 4},
    {"TransposeMatMul", msc_onnx__fused_matmul, MSC_OP_MATMUL, 2, 2},
};

const struct msc_onnx_domain msc_onnx__contrib = {
    .name = "com.microsoft",
    .rules = rules,
    .n_rules = sizeof(rules) / sizeof(rules[0]),
};

// ---- Activations ------------------------------------------------------------------------------

// The activations that may be fused, and the keys of their parameters.
static const struct activation {
    const char *name;
    enum msc_op op;
    const char *keys[2];
} activations[] = {
    {"", MSC_OP_IDENTITY, {NULL}},
    {"Clip", MSC_OP_CLIP, {"min", "max"}},
    {"Elu", MSC_OP_ELU, {"alpha"}},
    {"HardSigmoid", MSC_OP_HARD_SIGMOID, {"alpha", "beta"}},
    {"HardSwish", MSC_OP_HARD_SWISH, {NULL}},
    {"LeakyRelu", MSC_OP_LEAKY_RELU, {"alpha"}},
    {"Relu", MSC_OP_RELU, {NULL}},
    {"Selu", MSC_OP_SELU, {"alpha", "gamma"}},
    {"Sigmoid", MSC_OP_SIGMOID, {NULL}},
    {"Softplus", MSC_OP_SOFTPLUS, {NULL}},
    {"Softsign", MSC_OP_SOFTSIGN, {NULL}},
    {"Tanh", MSC_OP_TANH, {NULL}},
    {"ThresholdedRelu", MSC_OP_THRESHOLDED_RELU, {"alpha"}},
};

static enum msc_status find_activation(const struct activation **out,
                                       const struct msc_onnx_node *n) {
    const char *name;
    MSC_TRY(msc_onnx__text(&name, n, "activation", ""));
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        if (strcmp(activations[i].name, name) == 0) {
            *out = &activations[i];
            return MSC_OK;
        }
    }
    return MSC_ONNX_UNSUPPORTED("activation is '%s', which is not supported", name);
}

// ---- Products and convolutions ----------------------------------------------------------------

// Applies the attributes transA and transBatchA (or transB and transBatchB) to an operand:
// `batch_key` moves the first axis before the last one, then `key` swaps the last two axes.
static enum msc_status turn(struct msc_value **x, struct msc_compose *c, const char *key,
                            const char *batch_key) {
    int64_t is_turned, is_batch;
    int rank = msc_compose_shape(c, *x).n_dims;
    MSC_TRY(msc_onnx__int(&is_turned, c->node, key, 0));
    MSC_TRY(msc_onnx__int(&is_batch, c->node, batch_key, 0));
    if (is_batch != 0 && rank > 2) {
        *x = msc_compose_move(c, *x, 0, rank - 2);
    }
    if (is_turned != 0 && rank > 1) {
        *x = msc_compose_move(c, *x, rank - 2, rank - 1);
    }
    return c->status;
}

// alpha * A * B. If B is constant, alpha is multiplied into it.
enum msc_status msc_onnx__fused_matmul(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *operands[2] = {n->inputs[0], n->inputs[1]};
    float alpha;
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.0f));
    MSC_TRY(turn(&operands[0], &c, "transA", "transBatchA"));
    MSC_TRY(turn(&operands[1], &c, "transB", "transBatchB"));
    struct msc_value *factor =
        alpha == 1.0f ? NULL
                      : msc_compose_scalar(&c, msc_compose_shape(&c, operands[0]).dtype, alpha);
    if (factor != NULL && operands[1]->constant != NULL) {
        operands[1] = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, operands[1], factor);
        factor = NULL;
    }
    MSC_TRY(c.status);
    if (operands[1]->constant != NULL) {
        operands[1]->name = n->inputs[1]->name; // also if it was transposed or scaled
    }
    struct msc_value *product =
        msc_compose_translate(&c, msc_onnx__matmul, MSC_OP_MATMUL, operands, 2);
    return msc_compose_end(&c, factor == NULL ? product
                                              : MSC_COMPOSE(&c, MSC_OP_MULTIPLY, product, factor));
}

enum msc_status msc_onnx__fused_gemm(struct msc_onnx_node *n) {
    static const char *const names[] = {"activation_alpha", "activation_beta"};
    struct msc_compose c = {.node = n};
    const struct activation *activation = NULL;
    float value;
    MSC_TRY(find_activation(&activation, n));
    struct msc_value *x =
        msc_compose_translate(&c, msc_onnx__gemm, MSC_OP_GEMM, n->inputs, n->n_inputs);
    for (int i = 0; i < 2 && activation->keys[i] != NULL; i++) {
        bool is_gamma = strcmp(activation->keys[i], "gamma") == 0;
        const char *name = is_gamma ? "activation_gamma" : names[i];
        if (msc_onnx__attribute(n, name) != NULL) {
            MSC_TRY(msc_onnx__float(&value, n, name, 0.0f));
            msc_onnx__set_float(n, activation->keys[i], value);
        }
    }
    return msc_compose_end(&c, MSC_COMPOSE(&c, activation->op, x));
}

// Input 3 is added before the activation.
enum msc_status msc_onnx__fused_conv(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    const struct activation *activation = NULL;
    const float *parameters;
    int n_parameters;
    MSC_TRY(find_activation(&activation, n));
    MSC_TRY(msc_onnx__floats(&parameters, &n_parameters, n, "activation_params"));
    struct msc_value *x = msc_compose_translate(&c, msc_onnx__conv, MSC_OP_CONV2D, n->inputs,
                                                n->n_inputs < 3 ? n->n_inputs : 3);
    if (msc_onnx__input(n, 3) != NULL) {
        x = MSC_COMPOSE(&c, MSC_OP_ADD, x, n->inputs[3]);
    }
    for (int i = 0; i < 2 && i < n_parameters && activation->keys[i] != NULL; i++) {
        msc_onnx__set_float(n, activation->keys[i], parameters[i]);
    }
    return msc_compose_end(&c, MSC_COMPOSE(&c, activation->op, x));
}

// A convolution or pool whose channels are the last axis.
enum msc_status msc_onnx__nhwc(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *inputs[3] = {n->inputs[0], msc_onnx__input(n, 1), msc_onnx__input(n, 2)};
    bool is_conv = n->rule.op == MSC_OP_CONV2D;
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    if (rank < 3) {
        return MSC_FAIL(MSC_E_FORMAT, "the input has %d dimensions, expected 3 or more", rank);
    }
    inputs[0] = msc_compose_move(&c, inputs[0], rank - 1, 1);
    if (is_conv) {
        inputs[1] = msc_compose_move(&c, inputs[1], rank - 1, 1);
    }
    struct msc_value *x = msc_compose_translate(&c, is_conv ? msc_onnx__conv : msc_onnx__pool,
                                                n->rule.op, inputs, n->n_inputs);
    return msc_compose_end(&c, msc_compose_move(&c, x, 1, rank - 1));
}

// ---- Gelu -------------------------------------------------------------------------------------

// Input 1, if present, is added first.
enum msc_status msc_onnx__bias_gelu(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *x = n->inputs[0];
    if (msc_onnx__input(n, 1) != NULL) {
        x = MSC_COMPOSE(&c, MSC_OP_ADD, x, n->inputs[1]);
    }
    msc_onnx__set(n, "approximate", strcmp(n->rule.onnx, "FastGelu") == 0 ? "tanh" : "none");
    return MSC_COMPOSE_LAST(&c, MSC_OP_GELU, x);
}

// x * sigmoid(alpha * x)
enum msc_status msc_onnx__quick_gelu(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float alpha;
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.702f));
    return msc_compose_end(&c, msc_compose_swish(&c, n->inputs[0], alpha));
}

// The left half of (input + bias) times the Gelu of its right half.
enum msc_status msc_onnx__bias_split_gelu(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_onnx_shape shape = msc_onnx__shape(n, n->inputs[0]);
    int64_t width = shape.n_dims > 0 ? shape.dims[shape.n_dims - 1] : -1;
    if (width < 2 || width % 2 != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "the last axis has length %lld, expected an even number",
                        (long long)width);
    }
    struct msc_value *x = MSC_COMPOSE(&c, MSC_OP_ADD, n->inputs[0], n->inputs[1]);
    struct msc_value *left = msc_compose_slice(&c, x, -1, 0, width / 2, 1);
    struct msc_value *right = msc_compose_slice(&c, x, -1, width / 2, width, 1);
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, left, MSC_COMPOSE(&c, MSC_OP_GELU, right));
}
