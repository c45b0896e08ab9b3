// Translates matrix products, normalisation and softmax.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// A copy of the constant, multiplied by `factor`. If `length` is not 0, the result is [length]; a
// single element is repeated.
static enum msc_status scaled(struct msc_value **out, struct msc_onnx_node *n,
                              const struct msc_value *v, float factor, int64_t length) {
    struct msc_array *array, *typed = NULL;
    const struct msc_array *from = v->constant;
    if (length == 0) {
        MSC_TRY(
            msc_array_create(&array, MSC_DTYPE_F32, msc_array_n_dims(from), msc_array_dims(from)));
    } else {
        MSC_TRY(msc_array_create(&array, MSC_DTYPE_F32, 1, &length));
    }
    float *to = msc_array_data(array);
    bool is_one = msc_array_n_elements(from) == 1;
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        to[i] = factor * (float)msc_array_get_double(from, is_one ? 0 : i);
    }
    enum msc_status status = msc_array_convert(&typed, array, msc_array_dtype(from));
    if (status == MSC_OK) {
        status = msc_builder_constant(out, &n->import->builder, v->name, typed);
    }
    if (status == MSC_OK) {
        (*out)->joint_name = v->joint_name;
    }
    msc_array_release(typed);
    msc_array_release(array);
    return status;
}

// True for the float types of at most 32 bits, in which linear layers are computed.
static bool is_single(const struct msc_array *a) {
    enum msc_dtype dtype = msc_array_dtype(a);
    return msc_dtype_is_float(dtype) && msc_dtype_bytes(dtype) <= sizeof(float);
}

static bool is_float_matrix(const struct msc_value *v) {
    return v->constant != NULL && msc_array_n_dims(v->constant) == 2 && is_single(v->constant);
}

// True for [O], [1,O], [1] or a scalar: every row of the product gets the same bias.
static bool is_row_bias(const struct msc_value *v, int64_t n_outputs) {
    if (v->constant == NULL || !is_single(v->constant)) {
        return false;
    }
    int rank = msc_array_n_dims(v->constant);
    int64_t n = msc_array_n_elements(v->constant);
    return rank <= 2 && (n == 1 || (n == n_outputs && msc_array_dim(v->constant, -1) == n));
}

static bool is_read(const struct msc_graph *g, int32_t weight) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_graph_joint *j = g->joints[i];
        for (int32_t k = 0; k < j->joint.n_operands && !j->is_dead; k++) {
            if (j->operands[k] == weight) {
                return true;
            }
        }
    }
    return false;
}

// Sets the layout of a linear layer's weight. If the weight is a transpose and another joint reads
// the original, both joints share one weight (tied embeddings).
static struct msc_value *name_axes(const struct msc_onnx_node *n, struct msc_value *weight,
                                   bool is_oi) {
    const struct msc_graph *g = n->import->builder.graph;
    struct msc_value *turned = weight->turned;
    if (turned != NULL && turned->weight != MSC_NO_ID && is_read(g, turned->weight)) {
        const char *letters = is_oi ? "IO" : "OI";
        const char *given = g->tensors[turned->weight]->tensor.layout;
        if (given[0] == '\0' || strcmp(given, letters) == 0) {
            turned->layout = letters;
            return turned;
        }
    }
    weight->layout = is_oi ? "OI" : "IO";
    return weight;
}

struct gemm {
    float alpha, beta;
    int64_t trans_a, trans_b;
};

static enum msc_status gemm_as_linear(struct msc_onnx_node *n, const struct gemm *g) {
    struct msc_value *operands[3] = {n->inputs[0], n->inputs[1], msc_onnx__input(n, 2)};
    int64_t n_outputs = msc_array_dim(operands[1]->constant, g->trans_b ? 0 : 1);
    if (g->alpha != 1.0f) {
        MSC_TRY(scaled(&operands[1], n, operands[1], g->alpha, 0));
    }
    operands[1] = name_axes(n, operands[1], g->trans_b != 0);
    if (operands[2] == NULL) {
        return msc_onnx__add_last(n, MSC_OP_LINEAR, operands, 2);
    }
    if (g->beta != 1.0f || msc_array_n_dims(operands[2]->constant) != 1 ||
        msc_array_n_elements(operands[2]->constant) != n_outputs) {
        MSC_TRY(scaled(&operands[2], n, operands[2], g->beta, n_outputs));
    }
    return msc_onnx__add_last(n, MSC_OP_LINEAR_BIAS, operands, 3);
}

enum msc_status msc_onnx__gemm(struct msc_onnx_node *n) {
    struct gemm g;
    int64_t broadcast;
    MSC_TRY(msc_onnx__float(&g.alpha, n, "alpha", 1.0f));
    MSC_TRY(msc_onnx__float(&g.beta, n, "beta", 1.0f));
    MSC_TRY(msc_onnx__int(&g.trans_a, n, "transA", 0));
    MSC_TRY(msc_onnx__int(&g.trans_b, n, "transB", 0));
    MSC_TRY(msc_onnx__int(&broadcast, n, "broadcast", 1));
    struct msc_value *c = msc_onnx__input(n, 2);
    bool is_linear =
        n->inputs[0]->constant == NULL && is_float_matrix(n->inputs[1]) && g.trans_a == 0;
    if (is_linear && c != NULL) {
        is_linear = is_row_bias(c, msc_array_dim(n->inputs[1]->constant, g.trans_b ? 0 : 1));
    }
    if (is_linear) {
        return gemm_as_linear(n, &g);
    }
    msc_onnx__set_float(n, "alpha", g.alpha);
    msc_onnx__set_float(n, "beta", g.beta);
    msc_onnx__set_bool(n, "trans_a", g.trans_a != 0);
    msc_onnx__set_bool(n, "trans_b", g.trans_b != 0);
    return msc_onnx__add_last(n, MSC_OP_GEMM, n->inputs, n->n_inputs);
}

enum msc_status msc_onnx__matmul(struct msc_onnx_node *n) {
    if (n->inputs[0]->constant == NULL && is_float_matrix(n->inputs[1])) {
        struct msc_value *operands[2] = {n->inputs[0], name_axes(n, n->inputs[1], false)};
        return msc_onnx__add_last(n, MSC_OP_LINEAR, operands, 2);
    }
    return msc_onnx__add_last(n, MSC_OP_MATMUL, n->inputs, 2);
}

// Before opset 14, an additional output with a name means training mode, even if nothing reads it.
// Before opset 7, the attribute is_test can disable training mode.
static enum msc_status check_training_outputs(const struct msc_onnx_node *n) {
    int64_t is_test;
    MSC_TRY(msc_onnx__int(&is_test, n, "is_test", 0));
    for (size_t i = 1; n->opset < 14 && is_test == 0 && i < n->proto->n_output; i++) {
        const char *name = n->proto->output[i];
        if (name != NULL && name[0] != '\0') {
            return MSC_ONNX_UNSUPPORTED(
                "the output '%s' means training mode before opset 14; export "
                "the model for inference",
                name);
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__batch_norm(struct msc_onnx_node *n) {
    int64_t training, spatial;
    MSC_TRY(check_training_outputs(n));
    MSC_TRY(msc_onnx__int(&training, n, "training_mode", 0));
    MSC_TRY(msc_onnx__int(&spatial, n, "spatial", 1));
    if (training != 0 || spatial != 1) {
        return MSC_ONNX_UNSUPPORTED("training_mode is %lld and spatial %lld, expected 0 and 1",
                                    (long long)training, (long long)spatial);
    }
    MSC_TRY(msc_onnx__copy_attrs(n, MSC_OP_BATCH_NORM));
    msc_onnx__set_int(n, "axis", 1);
    return msc_onnx__add_last(n, MSC_OP_BATCH_NORM, n->inputs, 5);
}

// Mean over the normalised axes, which are kept with length 1.
static enum msc_status add_mean(struct msc_value **out, struct msc_onnx_node *n, int first,
                                int rank, struct msc_value *x) {
    int64_t axes[MSC_MAX_DIMS];
    for (int i = first; i < rank; i++) {
        axes[i - first] = i;
    }
    msc_onnx__set_ints(n, "axis", axes, rank - first);
    msc_onnx__set_bool(n, "keepdims", true);
    return msc_onnx__add_helper(out, n, MSC_OP_MEAN, &x, 1);
}

// Adds the joints of the formula that older exporters write:
// (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias.
enum msc_status msc_onnx__layer_norm(struct msc_onnx_node *n) {
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    int64_t axis;
    float epsilon;
    MSC_TRY(msc_onnx__int(&axis, n, "axis", -1));
    MSC_TRY(msc_onnx__float(&epsilon, n, "epsilon", 1e-5f));
    if (axis < -rank || axis >= rank) {
        return MSC_FAIL(MSC_E_FORMAT, "axis %lld is out of range for a tensor with %d dimensions",
                        (long long)axis, rank);
    }
    int first = (int)(axis < 0 ? axis + rank : axis);
    struct msc_value *mean, *centred, *variance, *small, *sum, *deviation, *normal;
    MSC_TRY(add_mean(&mean, n, first, rank, n->inputs[0]));
    struct msc_value *pair[2] = {n->inputs[0], mean};
    MSC_TRY(msc_onnx__add_helper(&centred, n, MSC_OP_SUBTRACT, pair, 2));
    pair[0] = pair[1] = centred;
    MSC_TRY(msc_onnx__add_helper(&variance, n, MSC_OP_MULTIPLY, pair, 2));
    MSC_TRY(add_mean(&variance, n, first, rank, variance));
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    MSC_TRY(msc_onnx__make_scalar(&small, n, dtype, (double)epsilon));
    pair[0] = variance;
    pair[1] = small;
    MSC_TRY(msc_onnx__add_helper(&sum, n, MSC_OP_ADD, pair, 2));
    MSC_TRY(msc_onnx__add_helper(&deviation, n, MSC_OP_SQRT, &sum, 1));
    MSC_TRY(msc_onnx__define_extra(n, 1, mean));
    if (n->proto->n_output > 2) {
        struct msc_value *inverse;
        MSC_TRY(msc_onnx__add_helper(&inverse, n, MSC_OP_RECIPROCAL, &deviation, 1));
        MSC_TRY(msc_onnx__define_extra(n, 2, inverse));
    }
    pair[0] = centred;
    pair[1] = deviation;
    MSC_TRY(msc_onnx__add_helper(&normal, n, MSC_OP_DIVIDE, pair, 2));
    pair[0] = normal;
    pair[1] = n->inputs[1];
    if (msc_onnx__input(n, 2) == NULL) {
        return msc_onnx__add_last(n, MSC_OP_MULTIPLY, pair, 2);
    }
    MSC_TRY(msc_onnx__add_helper(&pair[0], n, MSC_OP_MULTIPLY, pair, 2));
    pair[1] = n->inputs[2];
    return msc_onnx__add_last(n, MSC_OP_ADD, pair, 2);
}

// Before opset 13, Softmax treats all axes from `axis` on as one. If more than one of these axes is
// longer than 1, they are merged before the joint and split again after it.
static enum msc_status flattened_softmax(struct msc_onnx_node *n, int axis,
                                         const struct msc_onnx_shape *x) {
    int64_t shape[MSC_MAX_DIMS];
    struct msc_value *merged, *normal, *before;
    for (int i = 0; i < axis; i++) {
        shape[i] = 0;
    }
    shape[axis] = -1;
    msc_onnx__set_ints(n, "shape", shape, axis + 1);
    MSC_TRY(msc_onnx__add_helper(&merged, n, MSC_OP_RESHAPE, n->inputs, 1));
    msc_onnx__set_int(n, "axis", -1);
    MSC_TRY(msc_onnx__add_helper(&normal, n, n->rule.op, &merged, 1));
    bool has_symbols = false;
    for (int i = 0; i < x->n_dims; i++) {
        has_symbols |= x->dims[i] < 0;
    }
    if (!has_symbols) {
        msc_onnx__set_ints(n, "shape", x->dims, x->n_dims);
        return msc_onnx__add_last(n, MSC_OP_RESHAPE, &normal, 1);
    }
    MSC_TRY(msc_onnx__add_helper(&before, n, MSC_OP_SHAPE_OF, n->inputs, 1));
    struct msc_value *operands[] = {normal, before};
    return msc_onnx__add_last(n, MSC_OP_RESHAPE, operands, 2);
}

enum msc_status msc_onnx__softmax(struct msc_onnx_node *n) {
    struct msc_onnx_shape x = msc_onnx__shape(n, n->inputs[0]);
    int64_t axis;
    MSC_TRY(msc_onnx__int(&axis, n, "axis", n->opset < 13 ? 1 : -1));
    if (axis < -x.n_dims || axis >= x.n_dims) {
        return MSC_FAIL(MSC_E_FORMAT, "axis %lld is out of range for a tensor with %d dimensions",
                        (long long)axis, x.n_dims);
    }
    axis = axis < 0 ? axis + x.n_dims : axis;
    int n_long = 0;
    for (int i = (int)axis; i < x.n_dims; i++) {
        if (x.dims[i] != 1) {
            n_long++;
        }
    }
    bool is_first = x.dims[axis] != 1;
    if (n->opset < 13 && (n_long > 1 || (n_long == 1 && !is_first))) {
        return flattened_softmax(n, (int)axis, &x);
    }
    msc_onnx__set_int(n, "axis", axis);
    return msc_onnx__add_last(n, n->rule.op, n->inputs, 1);
}
