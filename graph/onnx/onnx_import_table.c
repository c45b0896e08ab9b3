// The table of ONNX operators and their translators. An operator that matches its row in ops.def
// needs no row here: msc_onnx__direct translates it. Rows are needed for
//   - operators that differ in any opset: add a translator in the file of its family, and a
//     row;
//   - operators that become several joints, or a joint of another name.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

static const struct msc_onnx_rule rules[] = {
    {"Add", msc_onnx__binary, MSC_OP_ADD, 2, 2},
    {"And", msc_onnx__binary, MSC_OP_LOGICAL_AND, 2, 2},
    {"Attention", msc_onnx__attention, MSC_OP_MATMUL, 3, 7},
    {"AveragePool", msc_onnx__pool, MSC_OP_AVG_POOL2D, 1, 1},
    {"BatchNormalization", msc_onnx__batch_norm, MSC_OP_BATCH_NORM, 5, 5},
    {"Bernoulli", msc_onnx__bernoulli, MSC_OP_RANDOM, 1, 1},
    {"BitShift", msc_onnx__bit_shift, MSC_OP_LEFT_SHIFT, 2, 2},
    {"Cast", msc_onnx__cast, MSC_OP_CAST, 1, 1},
    {"CastLike", msc_onnx__cast_like, MSC_OP_CAST, 2, 2},
    {"CausalConvWithState", msc_onnx__causal_conv, MSC_OP_CONV1D, 2, 4},
    {"Clip", msc_onnx__clip, MSC_OP_CLIP, 1, 3},
    {"Concat", msc_onnx__concat, MSC_OP_CONCAT, 1, -1},
    {"Constant", msc_onnx__constant, MSC_OP_CONSTANT, 0, 0},
    {"ConstantOfShape", msc_onnx__constant_of_shape, MSC_OP_BROADCAST_TO, 1, 1},
    {"Conv", msc_onnx__conv, MSC_OP_CONV2D, 2, 3},
    {"ConvInteger", msc_onnx__conv_integer, MSC_OP_CONV_INTEGER, 2, 4},
    {"ConvTranspose", msc_onnx__conv_transpose, MSC_OP_CONV2D_TRANSPOSE, 2, 3},
    {"DFT", msc_onnx__dft, MSC_OP_DFT, 1, 3},
    {"DequantizeLinear", msc_onnx__dequantize, MSC_OP_DEQUANTIZE, 2, 3},
    {"Div", msc_onnx__binary, MSC_OP_DIVIDE, 2, 2},
    {"Dropout", msc_onnx__dropout, MSC_OP_IDENTITY, 1, 3},
    {"Equal", msc_onnx__binary, MSC_OP_EQUAL, 2, 2},
    {"Gemm", msc_onnx__gemm, MSC_OP_GEMM, 2, 3},
    {"GlobalAveragePool", msc_onnx__global_pool, MSC_OP_GLOBAL_AVG_POOL, 1, 1},
    {"GlobalLpPool", msc_onnx__global_lp_pool, MSC_OP_SUM, 1, 1},
    {"GlobalMaxPool", msc_onnx__global_pool, MSC_OP_GLOBAL_MAX_POOL, 1, 1},
    {"Greater", msc_onnx__binary, MSC_OP_GREATER, 2, 2},
    {"Hardmax", msc_onnx__softmax, MSC_OP_HARDMAX, 1, 1},
    {"Identity", msc_onnx__identity, MSC_OP_IDENTITY, 1, 1},
    {"If", msc_onnx__if, MSC_OP_IF, 1, 1},
    {"LayerNormalization", msc_onnx__layer_norm, MSC_OP_DIVIDE, 2, 3},
    {"Less", msc_onnx__binary, MSC_OP_LESS, 2, 2},
    {"LogSoftmax", msc_onnx__softmax, MSC_OP_LOG_SOFTMAX, 1, 1},
    {"Loop", msc_onnx__loop, MSC_OP_LOOP, 2, -1},
    {"LpNormalization", msc_onnx__lp_norm, MSC_OP_DIVIDE, 1, 1},
    {"LpPool", msc_onnx__pool, MSC_OP_LP_POOL, 1, 1},
    {"MatMul", msc_onnx__matmul, MSC_OP_MATMUL, 2, 2},
    {"Max", msc_onnx__extremum, MSC_OP_MAXIMUM, 1, -1},
    {"MaxPool", msc_onnx__pool, MSC_OP_MAX_POOL2D, 1, 1},
    {"MaxUnpool", msc_onnx__max_unpool, MSC_OP_MAX_UNPOOL, 2, 3},
    {"Mean", msc_onnx__mean, MSC_OP_ADD, 1, -1},
    {"MeanVarianceNormalization", msc_onnx__mean_variance, MSC_OP_DIVIDE, 1, 1},
    {"Min", msc_onnx__extremum, MSC_OP_MINIMUM, 1, -1},
    {"Mod", msc_onnx__mod, MSC_OP_MOD, 2, 2},
    {"Mul", msc_onnx__binary, MSC_OP_MULTIPLY, 2, 2},
    {"Or", msc_onnx__binary, MSC_OP_LOGICAL_OR, 2, 2},
    {"PRelu", msc_onnx__binary, MSC_OP_PRELU, 2, 2},
    {"Pad", msc_onnx__pad, MSC_OP_PAD, 1, 4},
    {"Pow", msc_onnx__binary, MSC_OP_POWER, 2, 2},
    {"QLinearConv", msc_onnx__conv_integer, MSC_OP_QLINEAR_CONV, 8, 9},
    {"QuantizeLinear", msc_onnx__quantize, MSC_OP_QUANTIZE, 2, 3},
    {"RMSNormalization", msc_onnx__rms_norm, MSC_OP_MULTIPLY, 2, 2},
    {"RandomNormal", msc_onnx__random, MSC_OP_RANDOM, 0, 0},
    {"RandomNormalLike", msc_onnx__random, MSC_OP_RANDOM, 1, 1},
    {"RandomUniform", msc_onnx__random, MSC_OP_RANDOM, 0, 0},
    {"RandomUniformLike", msc_onnx__random, MSC_OP_RANDOM, 1, 1},
    {"Range", msc_onnx__range, MSC_OP_ARANGE, 3, 3},
    {"ReduceL1", msc_onnx__spelled_reduce, MSC_OP_SUM, 1, 2},
    {"ReduceL2", msc_onnx__spelled_reduce, MSC_OP_SUM, 1, 2},
    {"ReduceLogSum", msc_onnx__spelled_reduce, MSC_OP_SUM, 1, 2},
    {"ReduceLogSumExp", msc_onnx__reduce_log_sum_exp, MSC_OP_SUM, 1, 2},
    {"ReduceMax", msc_onnx__reduce, MSC_OP_MAX, 1, 2},
    {"ReduceMean", msc_onnx__reduce, MSC_OP_MEAN, 1, 2},
    {"ReduceMin", msc_onnx__reduce, MSC_OP_MIN, 1, 2},
    {"ReduceProd", msc_onnx__reduce, MSC_OP_PROD, 1, 2},
    {"ReduceSum", msc_onnx__reduce, MSC_OP_SUM, 1, 2},
    {"ReduceSumSquare", msc_onnx__spelled_reduce, MSC_OP_SUM, 1, 2},
    {"Reshape", msc_onnx__reshape, MSC_OP_RESHAPE, 1, 2},
    {"Resize", msc_onnx__resize, MSC_OP_RESIZE, 1, 4},
    {"RoiAlign", msc_onnx__roi_align, MSC_OP_ROI_ALIGN, 3, 3},
    {"RotaryEmbedding", msc_onnx__rotary_embedding, MSC_OP_CONCAT, 3, 4},
    {"Scan", msc_onnx__scan, MSC_OP_SCAN, 1, -1},
    {"Scatter", msc_onnx__direct, MSC_OP_SCATTER_ELEMENTS, 3, 3},
    {"Selu", msc_onnx__selu, MSC_OP_SELU, 1, 1},
    {"SimplifiedLayerNormalization", msc_onnx__rms_norm, MSC_OP_MULTIPLY, 2, 2}, // ONNX Runtime's
    {"Slice", msc_onnx__slice, MSC_OP_STRIDED_SLICE, 1, 5},
    {"Softmax", msc_onnx__softmax, MSC_OP_SOFTMAX, 1, 1},
    {"SoftmaxCrossEntropyLoss", msc_onnx__cross_entropy, MSC_OP_NLL_LOSS, 2, 3},
    {"Split", msc_onnx__split, MSC_OP_SPLIT, 1, 2},
    {"Squeeze", msc_onnx__axes, MSC_OP_SQUEEZE, 1, 2},
    {"Sub", msc_onnx__binary, MSC_OP_SUBTRACT, 2, 2},
    {"Sum", msc_onnx__sum, MSC_OP_ADD, 1, -1},
    {"SwiGLU", msc_onnx__swiglu, MSC_OP_MULTIPLY, 2, 2},
    {"Swish", msc_onnx__swish, MSC_OP_MULTIPLY, 1, 1},
    {"TfIdfVectorizer", msc_onnx__tf_idf, MSC_OP_TF_IDF, 1, 1},
    {"Tile", msc_onnx__tile, MSC_OP_TILE, 2, 3},
    {"TopK", msc_onnx__top_k, MSC_OP_TOPK, 1, 2},
    {"Transpose", msc_onnx__transpose, MSC_OP_PERMUTE_DIMS, 1, 1},
    {"Trilu", msc_onnx__trilu, MSC_OP_TRIU, 1, 2},
    {"Unsqueeze", msc_onnx__axes, MSC_OP_EXPAND_DIMS, 1, 2},
    {"Upsample", msc_onnx__upsample, MSC_OP_RESIZE, 1, 2},
    {"Xor", msc_onnx__binary, MSC_OP_LOGICAL_XOR, 2, 2},
};

// Sets the minimum and maximum number of inputs from the operator's roles.
static void count_inputs(struct msc_onnx_rule *rule) {
    struct msc_op_role role;
    for (int i = 0; msc_op_role(rule->op, i, &role); i++) {
        if (role.is_repeated) {
            rule->min_inputs += i == 0;
            rule->max_inputs = -1;
            return;
        }
        rule->min_inputs += !role.is_optional;
        rule->max_inputs++;
    }
}

static bool find_row(struct msc_onnx_rule *out, const struct msc_onnx_rule table[], size_t n,
                     const char *op_type) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i].onnx, op_type) == 0) {
            *out = table[i];
            return true;
        }
    }
    return false;
}

static bool find_standard(struct msc_onnx_rule *out, const char *op_type) {
    if (find_row(out, rules, sizeof(rules) / sizeof(rules[0]), op_type)) {
        return true;
    }
    for (int op = 0; op < MSC_OP_COUNT && op_type[0] != '\0'; op++) {
        const char *onnx = msc_op_info((enum msc_op)op)->onnx;
        if (strcmp(onnx, op_type) == 0) {
            *out = (struct msc_onnx_rule){onnx, msc_onnx__direct, (enum msc_op)op, 0, 0};
            count_inputs(out);
            return true;
        }
    }
    return false;
}

// Domains in addition to ONNX's own.
static const struct msc_onnx_domain *const domains[] = {&msc_onnx__contrib};

static bool find_domain(struct msc_onnx_rule *out, const char *domain, const char *op_type) {
    if (strcmp(domain, "ai.onnx.ml") == 0) {
        return msc_onnx__find_ml_rule(out, op_type);
    }
    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
        if (strcmp(domains[i]->name, domain) == 0) {
            return find_row(out, domains[i]->rules, domains[i]->n_rules, op_type);
        }
    }
    return false;
}

// Advice for messages about nodes that have no rule.
static const char *advice_of(const char *domain, const char *op_type) {
    if (strcmp(domain, "ai.onnx.ml") == 0 && strcmp(op_type, "ZipMap") == 0) {
        return "it turns the probabilities into dictionaries: export the model without it "
               "(skl2onnx: options={'zipmap': False}), so that its output is the tensor of "
               "probabilities";
    }
    static const struct {
        const char *domain, *advice;
    } rows[] = {
        {"ai.onnx", "docs/conformance.md lists the supported operators"},
        {"com.microsoft", "use the model before ONNX Runtime's optimiser changed it"},
        {"com.microsoft.nchwc", "ONNX Runtime wrote the node for one processor: optimise at level "
                                "extended or below, or use the model before optimisation"},
        {"com.ms.internal.nhwc", "ONNX Runtime wrote the node for one device: optimise at level "
                                 "extended or below, or use the model before optimisation"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].domain, domain) == 0) {
            return rows[i].advice;
        }
    }
    return "the model has no function of this name: state the types of the node's outputs "
           "(value_info), or give a plug-in that infers them (--operators)";
}

enum msc_status msc_onnx__find_rule(struct msc_onnx_rule *out, const char *domain,
                                    const char *op_type) {
    bool is_standard = domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
    const char *name = is_standard ? "ai.onnx" : domain;
    op_type = op_type == NULL ? "" : op_type;
    if (is_standard ? find_standard(out, op_type) : find_domain(out, domain, op_type)) {
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "unsupported operator '%s' of domain '%s'; %s", op_type,
                    name, advice_of(name, op_type));
}
