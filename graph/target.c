#include "graph/target.h"

#include "base/str.h"
#include "graph/affine.h"
#include "graph/tail.h"

#include <string.h>

enum { MIN_BITS = 2, MAX_BITS = 16 };
enum { COLUMN_ONNXRUNTIME, COLUMN_OPENVINO, COLUMN_TENSORRT, COLUMN_TFLITE, N_COLUMNS };

// What all targets that run in ONNX Runtime share.
#define IN_ONNXRUNTIME                                                                             \
    .column = COLUMN_ONNXRUNTIME, .runtime = "onnxruntime", .has_kernel_times = true,              \
    .min_bits = MIN_BITS, .max_bits = MAX_BITS, .takes_groups = true, .takes = "2 to 16 bits",     \
    .has_forms = true, .rounds_biases = true, .pairs_moves = true, .requantises = true

static const struct msc_target targets[] = {
    // int8 weights and unsigned activations with a zero point. Weights of joints that read and
    // write floats may also have 4 bits or be grouped.
    {.name = "onnxruntime", IN_ONNXRUNTIME},
    // ONNX Runtime on machines without VNNI. There, its kernels add two products of a signed and an
    // unsigned byte in 16 bits. This saturates for 8-bit weights but not for signed 7-bit weights.
    // Products of unsigned bytes are summed in 32 bits (measured with version 1.32 on an emulated
    // Haswell).
    {.name = "onnxruntime_avx2", IN_ONNXRUNTIME, .stores_unsigned = true},
    // Weights in groups are read by ONNX Runtime's own operators, which keep them in few bits and
    // multiply floats.
    {.name = "onnxruntime_nbits", IN_ONNXRUNTIME, .has_block_operators = true},
    // OpenVINO's low-precision transformations: uint8 or int8 activations, int8 weights without a
    // zero point. Fewer bits are possible only for weights of joints that compute in float.
    {.name = "openvino",
     .column = COLUMN_OPENVINO,
     .runtime = "openvino",
     .has_kernel_times = true,
     .min_bits = 8,
     .max_bits = 8,
     .weights_symmetric = true,
     .narrow_weights = true,
     .takes = "8 bits and symmetric weights",
     .requantises = true},
    // Signed int8 without zero points. int4 is possible only for weights of joints that compute in
    // float.
    {.name = "tensorrt",
     .column = COLUMN_TENSORRT,
     .min_bits = 8,
     .max_bits = 8,
     .weights_symmetric = true,
     .narrow_weights = true,
     .weights_per_channel = true,
     .activations_symmetric = true,
     .takes = "8 bits, symmetric weights per channel and symmetric activations",
     .pairs_moves = true,
     .requantises = true},
    // TensorFlow Lite's 8-bit specification: int8 activations with a zero point, and weights in
    // [-127, 127] without a zero point.
    {.name = "tflite",
     .column = COLUMN_TFLITE,
     .runtime = "litert",
     .suffix = ".tflite",
     .min_bits = 8,
     .max_bits = 8,
     .weights_symmetric = true,
     .narrow_weights = true,
     .takes = "8 bits and symmetric weights",
     .rounds_biases = true,
     .pairs_moves = true,
     .resizes_integers = true,
     .fixes_scales = true,
     .requantises = true},
    // No specific runtime: exports exactly what a search chooses.
    {.name = "generic",
     .alias = "onnx",
     .column = COLUMN_ONNXRUNTIME, // used only to look up the meanings of operators
     .min_bits = MIN_BITS,
     .max_bits = MAX_BITS,
     .takes_groups = true,
     .takes_channels = true,
     .takes = "2 to 16 bits"},
};
enum { N_TARGETS = sizeof(targets) / sizeof(targets[0]) };

static const unsigned char roles[MSC_OP_COUNT][N_COLUMNS] = {
#define MSC_TARGET_ROW(op, onnxruntime, openvino, tensorrt, tflite)                                \
    [MSC_OP_##op] = {[COLUMN_ONNXRUNTIME] = MSC_TARGET_##onnxruntime,                              \
                     [COLUMN_OPENVINO] = MSC_TARGET_##openvino,                                    \
                     [COLUMN_TENSORRT] = MSC_TARGET_##tensorrt,                                    \
                     [COLUMN_TFLITE] = MSC_TARGET_##tflite},
#define MSC_TARGET_MEANING(question, text, onnxruntime, openvino, tensorrt, tflite)
#define MSC_TARGET_DYNAMIC(op, onnxruntime, openvino, tensorrt, tflite)
#include "graph/targets.def"
#undef MSC_TARGET_ROW
#undef MSC_TARGET_MEANING
#undef MSC_TARGET_DYNAMIC
};

static const bool dynamics[MSC_OP_COUNT][N_COLUMNS] = {
#define MSC_TARGET_ROW(op, onnxruntime, openvino, tensorrt, tflite)
#define MSC_TARGET_MEANING(question, text, onnxruntime, openvino, tensorrt, tflite)
#define MSC_TARGET_DYNAMIC(op, onnxruntime, openvino, tensorrt, tflite)                            \
    [MSC_OP_##op] = {[COLUMN_ONNXRUNTIME] = onnxruntime,                                           \
                     [COLUMN_OPENVINO] = openvino,                                                 \
                     [COLUMN_TENSORRT] = tensorrt,                                                 \
                     [COLUMN_TFLITE] = tflite},
#include "graph/targets.def"
#undef MSC_TARGET_ROW
#undef MSC_TARGET_MEANING
#undef MSC_TARGET_DYNAMIC
};

// One row for each question, one column for each target. The last column is ONNX's specification.
static const unsigned char meanings[MSC_TARGET_QUESTION_COUNT][N_COLUMNS + 1] = {
#define MSC_TARGET_ROW(op, onnxruntime, openvino, tensorrt, tflite)
#define MSC_TARGET_MEANING(question, text, onnxruntime, openvino, tensorrt, tflite)                \
    [MSC_TARGET_##question] = {[COLUMN_ONNXRUNTIME] = MSC_TARGET_##onnxruntime,                    \
                               [COLUMN_OPENVINO] = MSC_TARGET_##openvino,                          \
                               [COLUMN_TENSORRT] = MSC_TARGET_##tensorrt,                          \
                               [COLUMN_TFLITE] = MSC_TARGET_##tflite,                              \
                               [N_COLUMNS] = MSC_TARGET_##text},
#define MSC_TARGET_DYNAMIC(op, onnxruntime, openvino, tensorrt, tflite)
#include "graph/targets.def"
#undef MSC_TARGET_ROW
#undef MSC_TARGET_MEANING
#undef MSC_TARGET_DYNAMIC
};

enum msc_target_meaning msc_target_meaning(const struct msc_target *t,
                                           enum msc_target_question question) {
    return (enum msc_target_meaning)meanings[question][t != NULL ? t->column : N_COLUMNS];
}

bool msc_target_takes_dynamic(const struct msc_target *t, enum msc_op op) {
    return dynamics[op][t != NULL ? t->column : COLUMN_ONNXRUNTIME];
}

bool msc_target_fixed_scale(const struct msc_target *t, enum msc_op op, float *scale,
                            int32_t *zero_point) {
    // TensorFlow Lite's 8-bit specification: [0, 1) and [-1, 1) in steps of a power of two.
    bool is_share = op == MSC_OP_SIGMOID || op == MSC_OP_SOFTMAX;
    *scale = is_share ? 1.0f / 256 : 1.0f / 128;
    *zero_point = is_share ? INT8_MIN : 0;
    return t->fixes_scales && (is_share || op == MSC_OP_TANH);
}

const struct msc_target *msc_target_at(size_t i) {
    return i < N_TARGETS ? &targets[i] : NULL;
}

const struct msc_target *msc_target_find(const char *name) {
    for (size_t i = 0; i < N_TARGETS; i++) {
        const struct msc_target *t = &targets[i];
        if (strcmp(t->name, name) == 0 || (t->alias != NULL && strcmp(t->alias, name) == 0)) {
            return t;
        }
    }
    return NULL;
}

enum msc_status msc_target_get(const struct msc_target **out, const char *name, const char *where) {
    struct msc_str known = {0};
    *out = msc_target_find(name);
    if (*out != NULL) {
        return MSC_OK;
    }
    for (size_t i = 0; i < N_TARGETS; i++) {
        msc_str_item(&known, targets[i].name);
    }
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: unknown target \"%s\", expected one of %s", where, name,
                 msc_str_text(&known));
    msc_str_finish(&known);
    return status;
}

const struct msc_target *msc_target_by_default(bool sums_bytes) {
    return msc_target_find(sums_bytes ? "onnxruntime" : "onnxruntime_avx2");
}

const char *msc_target_suffix(const struct msc_target *target) {
    return target && target->suffix ? target->suffix : ".onnx";
}

static bool has_constant(const struct msc_graph *g, const struct msc_joint *j) {
    for (int32_t k = 0; k < j->n_operands; k++) {
        if (j->operands[k] != MSC_NO_ID && msc_graph_weight_of(g, j->operands[k]) != MSC_NO_ID) {
            return true;
        }
    }
    return false;
}

static bool resizes_integers(const struct msc_target *t, const struct msc_joint *j) {
    const char *method = msc_joint_attr(j, "method");
    bool is_linear = method != NULL && strcmp(method, "linear") == 0;
    return method != NULL && (strncmp(method, "nearest", strlen("nearest")) == 0 ||
                              (is_linear && t->resizes_integers));
}

enum { IMAGE_DIMS = 4 };

// True if the pool can be computed as a depthwise convolution with a weight of ones
// (graph/onnx/onnx_export_form.h).
static bool is_even_pool(const struct msc_joint *j) {
    int64_t padding[IMAGE_DIMS] = {0}, dilation[2] = {1, 1};
    bool is_counted = false, is_ceil = false;
    (void)msc_joint_attr_list(j, "padding", padding, IMAGE_DIMS);
    (void)msc_joint_attr_list(j, "dilation", dilation, 2);
    (void)msc_joint_attr_bool(j, "count_include_pad", &is_counted);
    (void)msc_joint_attr_bool(j, "ceil_mode", &is_ceil);
    bool is_padded = padding[0] != 0 || padding[1] != 0 || padding[2] != 0 || padding[3] != 0;
    return !is_ceil && (!is_padded || is_counted) && dilation[0] == 1 && dilation[1] == 1;
}

static bool is_over_image(const struct msc_joint *j) {
    int64_t axes[MSC_MAX_DIMS];
    if (msc_joint_attr_list(j, "axis", axes, MSC_MAX_DIMS) != 2) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        axes[i] += axes[i] < 0 ? IMAGE_DIMS : 0;
    }
    return (axes[0] == 2 && axes[1] == 3) || (axes[0] == 3 && axes[1] == 2);
}

// True if the pad can write bytes. A pad with a constant can do so only if the constant is 0.
static bool pads_bytes(const struct msc_joint *j) {
    const char *mode = msc_joint_attr(j, "pad_mode");
    bool is_constant = mode == NULL || strcmp(mode, "constant") == 0;
    float value = 0;
    for (int32_t k = 1; k < j->n_operands; k++) {
        if (j->operands[k] != MSC_NO_ID) {
            return false;
        }
    }
    return (!is_constant || (msc_joint_attr_float(j, "pad_value", &value) && value == 0));
}

static bool is_constant_limit(const struct msc_graph *g, const struct msc_joint *j) {
    if (j->n_operands != 2 || msc_graph_weight_of(g, j->operands[0]) != MSC_NO_ID) {
        return false;
    }
    int32_t limit = msc_graph_weight_of(g, j->operands[1]);
    const struct msc_tensor *t = limit == MSC_NO_ID ? NULL : msc_graph_tensor(g, limit);
    return t != NULL && t->dtype == MSC_DTYPE_F32 && t->data != NULL &&
           msc_array_n_elements(t->data) == 1;
}

// True if the joint reads images with a known number of channels.
static bool reads_images(const struct msc_graph *g, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(g, j->operands[0]);
    return x->n_dims == IMAGE_DIMS && x->dims[1] > 0;
}

// For a target with `has_forms`: true if it has an integer kernel for the joint, possibly after the
// export has rewritten the joint as other nodes.
static bool has_form(const struct msc_graph *g, const struct msc_joint *j) {
    switch (j->op) {
    case MSC_OP_AVG_POOL2D:
        return reads_images(g, j) && is_even_pool(j);
    case MSC_OP_BATCH_NORM:
        return reads_images(g, j);
    case MSC_OP_MEAN:
        return reads_images(g, j) && is_over_image(j);
    case MSC_OP_MAXIMUM:
    case MSC_OP_MINIMUM:
        return is_constant_limit(g, j);
    default:
        return true;
    }
}

static enum msc_target_role in_table(const struct msc_target *t, const struct msc_joint *j) {
    return (enum msc_target_role)roles[j->op][t->column];
}

static const struct msc_joint *find_root(const struct msc_target *t, const struct msc_graph *g,
                                         const struct msc_joint *j, int n_before);

// The joint whose result reaches `tensor`, possibly through a tail (graph/tail.h); NULL if a tensor
// on the way has more than one consumer.
static const struct msc_joint *root_behind(const struct msc_target *t, const struct msc_graph *g,
                                           int32_t tensor, int n_before) {
    for (; n_before < MSC_TAIL_MOST_JOINTS && msc_graph__is_between(g, tensor); n_before++) {
        const struct msc_joint *j = msc_graph_joint(g, msc_graph_producer(g, tensor));
        if (in_table(t, j) != MSC_TARGET_SATURATES || !has_form(g, j)) {
            const struct msc_joint *root = find_root(t, g, j, n_before + 1);
            return root == NULL ? j : root;
        }
        tensor = j->operands[0];
    }
    return NULL;
}

// The joint whose tail contains the affine joint `j`; NULL if there is none. The factor must be
// positive, and a summand can only be added to a joint with a bias.
static const struct msc_joint *find_root(const struct msc_target *t, const struct msc_graph *g,
                                         const struct msc_joint *j, int n_before) {
    struct msc_affine a;
    if (!t->has_forms || !msc_graph__read_affine(&a, g, j) || !(a.factor > 0)) {
        return NULL;
    }
    bool is_sum = j->op == MSC_OP_ADD || j->op == MSC_OP_SUBTRACT;
    const struct msc_joint *root = root_behind(t, g, a.activation, n_before);
    bool is_integer =
        root != NULL && has_form(g, root) &&
        (msc_target_is_integer(in_table(t, root)) || in_table(t, root) == MSC_TARGET_FOLLOWS);
    return is_integer && (!is_sum || msc_op_is_conv(root->op)) ? root : NULL;
}

// True if the tensor is an input of the model, possibly moved by other joints. Sums and products of
// such a tensor and a scalar remain float.
static bool is_moved_input(const struct msc_target *t, const struct msc_graph *g, int32_t tensor) {
    const struct msc_joint *j = msc_graph_joint(g, msc_graph_producer(g, tensor));
    while (in_table(t, j) == MSC_TARGET_MOVES && j->operands[0] != MSC_NO_ID &&
           msc_graph_weight_of(g, j->operands[0]) == MSC_NO_ID) {
        j = msc_graph_joint(g, msc_graph_producer(g, j->operands[0]));
    }
    return j->op == MSC_OP_INPUT;
}

static enum msc_target_role role_of_sum(const struct msc_target *t, const struct msc_graph *g,
                                        const struct msc_joint *j) {
    struct msc_affine a;
    if (find_root(t, g, j, 0) != NULL) {
        return MSC_TARGET_AFFINE;
    }
    bool is_by_number =
        t->has_forms && msc_graph__read_affine(&a, g, j) && !is_moved_input(t, g, a.activation);
    bool is_float = in_table(t, j) == MSC_TARGET_AFFINE || (has_constant(g, j) && !is_by_number);
    return is_float ? MSC_TARGET_FLOAT : in_table(t, j);
}

// The joint's role in the table; MSC_TARGET_FLOAT if the target does not requantise, or has no
// integer kernel for the joint.
static enum msc_target_role row_of(const struct msc_target *t, const struct msc_graph *g,
                                   const struct msc_joint *j) {
    if (!t->requantises || (t->has_forms && !has_form(g, j))) {
        return MSC_TARGET_FLOAT;
    }
    switch (j->op) {
    case MSC_OP_ADD:
    case MSC_OP_MULTIPLY:
    case MSC_OP_SUBTRACT:
    case MSC_OP_DIVIDE:
        return role_of_sum(t, g, j);
    case MSC_OP_CONCAT:
        return has_constant(g, j) ? MSC_TARGET_FLOAT : in_table(t, j);
    case MSC_OP_PAD:
        return pads_bytes(j) ? in_table(t, j) : MSC_TARGET_FLOAT;
    case MSC_OP_RESIZE:
        return resizes_integers(t, j) ? in_table(t, j) : MSC_TARGET_FLOAT;
    default:
        return in_table(t, j);
    }
}

// The role FOLLOWS is resolved by looking upstream, which may lead to further joints with this
// role. Beyond this number of such joints, the next is taken to be INTEGER.
enum { MOST_FOLLOWED = 6 };

static bool passes_on(enum msc_target_role role) {
    return role == MSC_TARGET_MOVES || role == MSC_TARGET_SATURATES || role == MSC_TARGET_AFFINE;
}

static bool reads_integers(const struct msc_target *t, const struct msc_graph *g,
                           const struct msc_joint *j, int n_followed);

// True if the tensor's producer can write it as integers. Inputs of the model can be integers,
// because they take the type that their consumers read.
static bool is_written_as_integers(const struct msc_target *t, const struct msc_graph *g,
                                   int32_t tensor, int n_followed) {
    const struct msc_joint *j;
    enum msc_target_role role = MSC_TARGET_MOVES;
    while (passes_on(role)) {
        if (tensor == MSC_NO_ID || msc_graph_weight_of(g, tensor) != MSC_NO_ID) {
            return false;
        }
        j = msc_graph_joint(g, msc_graph_producer(g, tensor));
        role = j->op == MSC_OP_INPUT ? MSC_TARGET_INTEGER : row_of(t, g, j);
        tensor = msc_graph__passed_on(g, j);
    }
    if (role != MSC_TARGET_FOLLOWS || n_followed == MOST_FOLLOWED) {
        return role == MSC_TARGET_INTEGER || role == MSC_TARGET_FOLLOWS;
    }
    return reads_integers(t, g, j, n_followed + 1);
}

// True if all operands of the joint, except a scalar constant, are written as integers.
static bool reads_integers(const struct msc_target *t, const struct msc_graph *g,
                           const struct msc_joint *j, int n_followed) {
    struct msc_affine a = {.activation = MSC_NO_ID};
    bool has_number = msc_graph__read_affine(&a, g, j);
    for (int32_t k = 0; k < j->n_operands; k++) {
        bool is_number = has_number && j->operands[k] != a.activation;
        if (!is_number && !is_written_as_integers(t, g, j->operands[k], n_followed)) {
            return false;
        }
    }
    return true;
}

enum msc_target_role msc_target_role(const struct msc_target *t, const struct msc_graph *g,
                                     const struct msc_joint *j) {
    enum msc_target_role role = row_of(t, g, j);
    if (role != MSC_TARGET_FOLLOWS) {
        return role;
    }
    return reads_integers(t, g, j, 0) ? MSC_TARGET_INTEGER : MSC_TARGET_FLOAT;
}

int32_t msc_target_stored_bits(const struct msc_target *t, bool is_weight, int32_t bits) {
    bool has_type = bits == 8 || bits == 16;
    return !t->requantises || has_type || (is_weight && bits < 8) ? bits : bits < 8 ? 8 : 16;
}
