// Element-wise operators and softmax.
#include "graph/tflite/writer.h"

#include <math.h>
#include <string.h>

enum { IMAGE_DIMS = 4 };

// The quantisation that TensorFlow Lite's kernel gives its results; NULL: any.
static enum msc_status find_fixed(const struct msc_tflite_quant **out, struct msc_tflite_writer *w,
                                  enum msc_op op) {
    float scale;
    int32_t zero_point;
    bool is_fixed = msc_target_fixed_scale(msc_target_find("tflite"), op, &scale, &zero_point);
    *out = NULL;
    return is_fixed ? msc_tflite__quant(out, w, scale, zero_point) : MSC_OK;
}

// ---- One operand ------------------------------------------------------------------------------

struct unary {
    enum msc_op op;
    enum msc_tflite_op as;
};

static const struct unary unaries[] = {
    {MSC_OP_SIGMOID, MSC_TFLITE_LOGISTIC},
    {MSC_OP_TANH, MSC_TFLITE_TANH},
    {MSC_OP_HARD_SWISH, MSC_TFLITE_HARD_SWISH},
    {MSC_OP_LEAKY_RELU, MSC_TFLITE_LEAKY_RELU},
    {MSC_OP_GELU, MSC_TFLITE_GELU},
    {MSC_OP_EXP, MSC_TFLITE_EXP},
    {MSC_OP_LOG, MSC_TFLITE_LOG},
    {MSC_OP_SQRT, MSC_TFLITE_SQRT},
    {MSC_OP_ABS, MSC_TFLITE_ABS},
    {MSC_OP_NEGATIVE, MSC_TFLITE_NEG},
    {MSC_OP_FLOOR, MSC_TFLITE_FLOOR},
    {MSC_OP_CEIL, MSC_TFLITE_CEIL},
};

static const struct unary *find_unary(enum msc_op op) {
    size_t i = 0;
    while (unaries[i].op != op) {
        i++;
    }
    return &unaries[i];
}

enum msc_status msc_tflite__write_unary(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct unary *u = find_unary(j->op);
    const char *approximate = msc_joint_attr(j, "approximate");
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    bool is_integer = msc_tflite__is_integer(w, j) && msc_tflite__info(u->as)->int8_version > 0;
    struct msc_tflite_operator op = {.op = u->as, .n_inputs = 1};
    const struct msc_tflite_quant *fixed;
    float alpha;
    MSC_TRY(find_fixed(&fixed, w, j->op));
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    if (u->as == MSC_TFLITE_LEAKY_RELU && msc_joint_attr_float(j, "alpha", &alpha)) {
        msc_tflite__float(&op, 0, alpha);
    }
    if (u->as == MSC_TFLITE_GELU) {
        msc_tflite__byte(&op, 0, approximate != NULL && strcmp(approximate, "tanh") == 0);
    }
    return msc_tflite__emit(
        w, &op,
        &(struct msc_tflite_result){
            .joint = j, .order = order, .is_integer = is_integer, .own = fixed});
}

enum msc_status msc_tflite__write_softmax(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    int64_t axis = -1;
    (void)msc_joint_attr_i64(j, "axis", &axis);
    bool is_over_channels =
        x->n_dims == IMAGE_DIMS && msc_tflite__axis(x, axis, MSC_TFLITE_NHWC) == IMAGE_DIMS - 1;
    enum msc_tflite_order order = is_over_channels ? MSC_TFLITE_NHWC : MSC_TFLITE_PLAIN;
    if (!is_over_channels && msc_tflite__axis(x, axis, order) != x->n_dims - 1) {
        return msc_tflite__refuse(j, "its axis is neither the last one nor an image's channels");
    }
    bool is_integer = msc_tflite__is_integer(w, j);
    struct msc_tflite_operator op = {.op = MSC_TFLITE_SOFTMAX, .n_inputs = 1};
    const struct msc_tflite_quant *fixed;
    MSC_TRY(find_fixed(&fixed, w, j->op));
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    msc_tflite__float(&op, 0, 1); // beta
    return msc_tflite__emit(
        w, &op,
        &(struct msc_tflite_result){
            .joint = j, .order = order, .is_integer = is_integer, .own = fixed});
}

// ---- Clips ------------------------------------------------------------------------------------

// A clip that is not fused into its producer.
enum msc_status msc_tflite__write_clip(struct msc_tflite_writer *w, const struct msc_joint *j) {
    static const enum msc_tflite_op ops[] = {
        [MSC_TFLITE_TO_RELU] = MSC_TFLITE_RELU,
        [MSC_TFLITE_TO_RELU_N1_TO_1] = MSC_TFLITE_RELU_N1_TO_1,
        [MSC_TFLITE_TO_RELU6] = MSC_TFLITE_RELU6,
    };
    float low, high;
    enum msc_tflite_activation activation;
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    if (!msc_tflite__bounds(j, &low, &high)) {
        return msc_tflite__refuse(j, "its bounds are not constant");
    }
    bool has_op =
        msc_tflite__activation(&activation, low, high) && activation != MSC_TFLITE_NO_ACTIVATION;
    struct msc_tflite_operator op = {.op = has_op            ? ops[activation]
                                           : high < INFINITY ? MSC_TFLITE_MINIMUM
                                                             : MSC_TFLITE_MAXIMUM,
                                     .n_inputs = has_op ? 1 : 2};
    bool is_integer =
        has_op ? msc_tflite__is_integer(w, j) && msc_tflite__info(op.op)->int8_version > 0
               : msc_tflite__is_moved_integer(w, j);
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    if (!has_op) {
        const struct msc_tflite_quant *quant = w->tensors[op.inputs[0]].quant;
        MSC_TRY(msc_tflite__clip(&op.inputs[0], w, high < INFINITY ? low : -INFINITY, INFINITY));
        MSC_TRY(msc_tflite__scalar(&op.inputs[1], w, high < INFINITY ? high : low, quant));
    }
    return msc_tflite__emit(
        w, &op, &(struct msc_tflite_result){.joint = j, .order = order, .is_integer = is_integer});
}

// clip(alpha * x + beta, 0, 1), as floats.
enum msc_status msc_tflite__write_hard_sigmoid(struct msc_tflite_writer *w,
                                               const struct msc_joint *j) {
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    struct msc_tflite_operator multiply = {.op = MSC_TFLITE_MUL, .n_inputs = 2};
    struct msc_tflite_operator add = {.op = MSC_TFLITE_ADD, .n_inputs = 2};
    struct msc_tflite_operator limit = {.op = MSC_TFLITE_MINIMUM, .n_inputs = 2};
    float alpha = 0.2f, beta = 0.5f;
    (void)msc_joint_attr_float(j, "alpha", &alpha);
    (void)msc_joint_attr_float(j, "beta", &beta);
    MSC_TRY(msc_tflite__want(&multiply.inputs[0], w, j->operands[0], order, false));
    const struct msc_tflite_tensor t = w->tensors[multiply.inputs[0]];
    MSC_TRY(msc_tflite__scalar(&multiply.inputs[1], w, alpha, NULL));
    MSC_TRY(
        msc_tflite__emit_between(&add.inputs[0], w, &multiply, "scaled", t.n_dims, t.dims, NULL));
    MSC_TRY(msc_tflite__scalar(&add.inputs[1], w, beta, NULL));
    msc_tflite__byte(&add, 0, MSC_TFLITE_TO_RELU);
    MSC_TRY(msc_tflite__emit_between(&limit.inputs[0], w, &add, "shifted", t.n_dims, t.dims, NULL));
    MSC_TRY(msc_tflite__scalar(&limit.inputs[1], w, 1, NULL));
    return msc_tflite__emit(w, &limit, &(struct msc_tflite_result){.joint = j, .order = order});
}

// ---- Batch normalisation ----------------------------------------------------------------------

// Factor gamma / sqrt(var + epsilon) and summand beta - mean * factor for each channel.
static enum msc_status read_batch_norm(const float *out[2], struct msc_tflite_writer *w,
                                       const struct msc_joint *j, int64_t n) {
    enum { GAMMA = 1, BETA, MEAN, VAR, N_OPERANDS };
    const float *of[N_OPERANDS] = {NULL};
    float epsilon = 1e-5f;
    float *factors = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(factors[0]));
    float *summands = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(summands[0]));
    MSC_TRY(MSC_ALLOCATED(factors && summands));
    (void)msc_joint_attr_float(j, "epsilon", &epsilon);
    for (int32_t i = GAMMA; i < N_OPERANDS; i++) {
        int32_t weight = msc_graph_weight_of(w->g, j->operands[i]);
        const struct msc_array *data =
            weight == MSC_NO_ID ? NULL : msc_graph_tensor(w->g, weight)->data;
        if (data == NULL || msc_array_dtype(data) != MSC_DTYPE_F32 ||
            msc_array_n_elements(data) != n) {
            return msc_tflite__refuse(j, "its parameters are not constant floats");
        }
        of[i] = msc_array_data(data);
    }
    for (int64_t c = 0; c < n; c++) {
        double factor = (double)of[GAMMA][c] / sqrt((double)of[VAR][c] + (double)epsilon);
        factors[c] = (float)factor;
        summands[c] = (float)((double)of[BETA][c] - (double)of[MEAN][c] * factor);
    }
    out[0] = factors;
    out[1] = summands;
    return MSC_OK;
}

// A factor and a summand for each channel, as floats.
enum msc_status msc_tflite__write_batch_norm(struct msc_tflite_writer *w,
                                             const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    enum msc_tflite_order order = x->n_dims == IMAGE_DIMS ? MSC_TFLITE_NHWC : MSC_TFLITE_PLAIN;
    struct msc_tflite_operator multiply = {.op = MSC_TFLITE_MUL, .n_inputs = 2};
    struct msc_tflite_operator add = {.op = MSC_TFLITE_ADD, .n_inputs = 2};
    const float *parameters[2] = {NULL, NULL};
    int64_t axis = 1;
    (void)msc_joint_attr_i64(j, "axis", &axis);
    int64_t n = msc_tensor_dim(x, (int)axis);
    if (msc_tflite__axis(x, axis, order) != x->n_dims - 1 || n < 1) {
        return msc_tflite__refuse(j,
                                  "its channels are neither those of an image nor the last axis");
    }
    MSC_TRY(read_batch_norm(parameters, w, j, n));
    struct msc_tflite_tensor t = {.name = "channels",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 1,
                                  .dims = {n},
                                  .data = parameters[0],
                                  .n_bytes = (size_t)n * sizeof(float)};
    MSC_TRY(msc_tflite__want(&multiply.inputs[0], w, j->operands[0], order, false));
    MSC_TRY(msc_tflite__add(&multiply.inputs[1], w, &t));
    t.data = parameters[1];
    MSC_TRY(msc_tflite__add(&add.inputs[1], w, &t));
    const struct msc_tflite_tensor of_x = w->tensors[multiply.inputs[0]];
    MSC_TRY(msc_tflite__emit_between(&add.inputs[0], w, &multiply, "scaled", of_x.n_dims, of_x.dims,
                                     NULL));
    return msc_tflite__emit(w, &add, &(struct msc_tflite_result){.joint = j, .order = order});
}

// ---- Two operands -----------------------------------------------------------------------------

static enum msc_tflite_op binary_op(enum msc_op op) {
    switch (op) {
    case MSC_OP_ADD:
        return MSC_TFLITE_ADD;
    case MSC_OP_SUBTRACT:
        return MSC_TFLITE_SUB;
    case MSC_OP_MULTIPLY:
        return MSC_TFLITE_MUL;
    case MSC_OP_DIVIDE:
        return MSC_TFLITE_DIV;
    case MSC_OP_MAXIMUM:
        return MSC_TFLITE_MAXIMUM;
    default:
        return MSC_TFLITE_MINIMUM;
    }
}

static bool is_constant(const struct msc_tflite_writer *w, int32_t tensor) {
    return msc_graph_weight_of(w->g, tensor) != MSC_NO_ID;
}

// NHWC if an operand is present as NHWC and the other one can be too: it has 4 dims, or is a
// constant, which then gets leading dims of 1.
static enum msc_tflite_order common_order(const struct msc_tflite_writer *w,
                                          const struct msc_joint *j) {
    bool is_image = false, can = true;
    for (int32_t i = 0; i < 2; i++) {
        const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[i]);
        is_image = is_image || msc_tflite__order(w, j->operands[i]) == MSC_TFLITE_NHWC;
        can = can && (x->n_dims == IMAGE_DIMS || is_constant(w, j->operands[i]));
    }
    return is_image && can ? MSC_TFLITE_NHWC : MSC_TFLITE_PLAIN;
}

// A constant with fewer than 4 dims as NHWC: [C, 1, 1], [H, W], [W] and so on, as they broadcast.
static enum msc_status add_broadcast(int32_t *out, struct msc_tflite_writer *w, int32_t tensor) {
    MSC_TRY(msc_tflite__want(out, w, tensor, MSC_TFLITE_PLAIN, false));
    struct msc_tflite_tensor t = w->tensors[*out];
    int64_t dims[IMAGE_DIMS];
    int n_new = IMAGE_DIMS - t.n_dims;
    for (int i = 0; i < IMAGE_DIMS; i++) {
        dims[i] = i < n_new ? 1 : t.dims[i - n_new];
    }
    MSC_TRY(msc_tflite__permute(&t.data, w, t.data, msc_dtype_bytes(t.dtype), IMAGE_DIMS, dims,
                                msc_tflite__nhwc));
    t.n_dims = IMAGE_DIMS;
    for (int i = 0; i < IMAGE_DIMS; i++) {
        t.dims[i] = dims[msc_tflite__nhwc[i]];
    }
    return msc_tflite__add(out, w, &t);
}

enum msc_status msc_tflite__write_binary(struct msc_tflite_writer *w, const struct msc_joint *j) {
    if (j->n_operands != 2) {
        return msc_tflite__refuse(j, "it has %d operands", (int)j->n_operands);
    }
    struct msc_tflite_operator op = {.op = binary_op(j->op), .n_inputs = 2};
    enum msc_tflite_order order = common_order(w, j);
    bool is_limit = op.op == MSC_TFLITE_MAXIMUM || op.op == MSC_TFLITE_MINIMUM;
    // MAXIMUM and MINIMUM compare the integers, which may have different scales.
    bool is_integer =
        msc_tflite__is_integer(w, j) && !is_limit && msc_tflite__info(op.op)->int8_version > 0;
    for (int32_t i = 0; i < 2; i++) {
        int32_t x = j->operands[i];
        bool is_spread = order == MSC_TFLITE_NHWC && is_constant(w, x) &&
                         msc_graph_tensor(w->g, x)->n_dims < IMAGE_DIMS;
        MSC_TRY(is_spread ? add_broadcast(&op.inputs[i], w, x)
                          : msc_tflite__want(&op.inputs[i], w, x, order, is_integer));
    }
    return msc_tflite__emit(
        w, &op, &(struct msc_tflite_result){.joint = j, .order = order, .is_integer = is_integer});
}
