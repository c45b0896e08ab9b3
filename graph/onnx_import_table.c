// Which ONNX operators there are, and who translates them.
//
// To add one that is an operator of ops.def under another name: a row with msc_onnx__direct. One
// that needs more: a translator of its own beside its family.
#include "graph/onnx_import_internal.h"

#include <string.h>

static const struct msc_onnx_rule rules[] = {
    {"Abs", msc_onnx__direct, MSC_OP_ABS, 1, 1, ""},
    {"Add", msc_onnx__direct, MSC_OP_ADD, 2, 2, ""},
    {"ArgMax", msc_onnx__argmax, MSC_OP_ARGMAX, 1, 1, "axis select_last_index"},
    {"AveragePool", msc_onnx__pool, MSC_OP_AVG_POOL2D, 1, 1, "ceil_mode count_include_pad"},
    {"BatchNormalization", msc_onnx__batch_norm, MSC_OP_BATCH_NORM, 5, 5, "epsilon"},
    {"Cast", msc_onnx__cast, MSC_OP_CAST, 1, 1, ""},
    {"Ceil", msc_onnx__direct, MSC_OP_CEIL, 1, 1, ""},
    {"Clip", msc_onnx__clip, MSC_OP_CLIP, 1, 3, ""},
    {"Concat", msc_onnx__direct, MSC_OP_CONCAT, 1, -1, "axis"},
    {"Constant", msc_onnx__constant, MSC_OP_CONSTANT, 0, 0, ""},
    {"ConstantOfShape", msc_onnx__constant_of_shape, MSC_OP_BROADCAST_TO, 1, 1, ""},
    {"Conv", msc_onnx__conv, MSC_OP_CONV2D, 2, 3, ""},
    {"ConvTranspose", msc_onnx__conv_transpose, MSC_OP_CONV2D_TRANSPOSE, 2, 3, ""},
    {"Div", msc_onnx__direct, MSC_OP_DIVIDE, 2, 2, ""},
    {"Dropout", msc_onnx__dropout, MSC_OP_IDENTITY, 1, 3, ""},
    {"Elu", msc_onnx__direct, MSC_OP_ELU, 1, 1, "alpha"},
    {"Equal", msc_onnx__direct, MSC_OP_EQUAL, 2, 2, ""},
    {"Erf", msc_onnx__direct, MSC_OP_ERF, 1, 1, ""},
    {"Exp", msc_onnx__direct, MSC_OP_EXP, 1, 1, ""},
    {"Expand", msc_onnx__direct, MSC_OP_BROADCAST_TO, 2, 2, ""},
    {"Flatten", msc_onnx__direct, MSC_OP_FLATTEN, 1, 1, "axis"},
    {"Floor", msc_onnx__direct, MSC_OP_FLOOR, 1, 1, ""},
    {"Gather", msc_onnx__direct, MSC_OP_TAKE, 2, 2, "axis"},
    {"Gelu", msc_onnx__direct, MSC_OP_GELU, 1, 1, "approximate"},
    {"Gemm", msc_onnx__gemm, MSC_OP_GEMM, 2, 3, ""},
    {"GlobalAveragePool", msc_onnx__global_pool, MSC_OP_GLOBAL_AVG_POOL, 1, 1, ""},
    {"GlobalMaxPool", msc_onnx__global_pool, MSC_OP_GLOBAL_MAX_POOL, 1, 1, ""},
    {"Greater", msc_onnx__direct, MSC_OP_GREATER, 2, 2, ""},
    {"HardSigmoid", msc_onnx__direct, MSC_OP_HARD_SIGMOID, 1, 1, "alpha beta"},
    {"HardSwish", msc_onnx__direct, MSC_OP_HARD_SWISH, 1, 1, ""},
    {"Identity", msc_onnx__identity, MSC_OP_IDENTITY, 1, 1, ""},
    {"LayerNormalization", msc_onnx__layer_norm, MSC_OP_DIVIDE, 2, 3, ""},
    {"LeakyRelu", msc_onnx__direct, MSC_OP_LEAKY_RELU, 1, 1, "alpha"},
    {"Less", msc_onnx__direct, MSC_OP_LESS, 2, 2, ""},
    {"Log", msc_onnx__direct, MSC_OP_LOG, 1, 1, ""},
    {"LogSoftmax", msc_onnx__softmax, MSC_OP_LOG_SOFTMAX, 1, 1, ""},
    {"MatMul", msc_onnx__matmul, MSC_OP_MATMUL, 2, 2, ""},
    {"Max", msc_onnx__extremum, MSC_OP_MAXIMUM, 1, -1, ""},
    {"MaxPool", msc_onnx__pool, MSC_OP_MAX_POOL2D, 1, 1, "ceil_mode"},
    {"Min", msc_onnx__extremum, MSC_OP_MINIMUM, 1, -1, ""},
    {"Mul", msc_onnx__direct, MSC_OP_MULTIPLY, 2, 2, ""},
    {"Neg", msc_onnx__direct, MSC_OP_NEGATIVE, 1, 1, ""},
    {"Pad", msc_onnx__pad, MSC_OP_PAD, 1, 4, ""},
    {"Pow", msc_onnx__direct, MSC_OP_POWER, 2, 2, ""},
    {"Reciprocal", msc_onnx__direct, MSC_OP_RECIPROCAL, 1, 1, ""},
    {"ReduceMax", msc_onnx__reduce, MSC_OP_MAX, 1, 2, ""},
    {"ReduceMean", msc_onnx__reduce, MSC_OP_MEAN, 1, 2, ""},
    {"ReduceMin", msc_onnx__reduce, MSC_OP_MIN, 1, 2, ""},
    {"ReduceSum", msc_onnx__reduce, MSC_OP_SUM, 1, 2, ""},
    {"Relu", msc_onnx__direct, MSC_OP_RELU, 1, 1, ""},
    {"Reshape", msc_onnx__reshape, MSC_OP_RESHAPE, 2, 2, "allowzero"},
    {"Resize", msc_onnx__resize, MSC_OP_RESIZE, 1, 4, ""},
    {"Round", msc_onnx__direct, MSC_OP_ROUND, 1, 1, ""},
    {"Shape", msc_onnx__direct, MSC_OP_SHAPE_OF, 1, 1, "start end"},
    {"Sigmoid", msc_onnx__direct, MSC_OP_SIGMOID, 1, 1, ""},
    {"Slice", msc_onnx__slice, MSC_OP_STRIDED_SLICE, 1, 5, ""},
    {"Softmax", msc_onnx__softmax, MSC_OP_SOFTMAX, 1, 1, ""},
    {"Split", msc_onnx__split, MSC_OP_SPLIT, 1, 2, "axis"},
    {"Sqrt", msc_onnx__direct, MSC_OP_SQRT, 1, 1, ""},
    {"Squeeze", msc_onnx__axes, MSC_OP_SQUEEZE, 1, 2, ""},
    {"Sub", msc_onnx__direct, MSC_OP_SUBTRACT, 2, 2, ""},
    {"Sum", msc_onnx__sum, MSC_OP_ADD, 1, -1, ""},
    {"Tanh", msc_onnx__direct, MSC_OP_TANH, 1, 1, ""},
    {"Tile", msc_onnx__direct, MSC_OP_TILE, 2, 2, ""},
    {"Transpose", msc_onnx__transpose, MSC_OP_PERMUTE_DIMS, 1, 1, ""},
    {"Unsqueeze", msc_onnx__axes, MSC_OP_EXPAND_DIMS, 1, 2, ""},
    {"Upsample", msc_onnx__upsample, MSC_OP_RESIZE, 1, 2, ""},
    {"Where", msc_onnx__direct, MSC_OP_WHERE, 3, 3, ""},
};

const struct msc_onnx_rule *msc_onnx__find_rule(const char *op_type) {
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (strcmp(rules[i].onnx, op_type) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}
