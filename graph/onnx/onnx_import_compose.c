#include "graph/onnx/onnx_import_compose.h"

struct msc_value *msc_compose_joint(struct msc_compose *c, enum msc_op op,
                                    struct msc_value *const operands[], int n_operands) {
    struct msc_value *out = NULL;
    if (c->status == MSC_OK) {
        c->status = msc_onnx__add_helper(&out, c->node, op, operands, n_operands);
    }
    return out;
}

enum msc_status msc_compose_last(struct msc_compose *c, enum msc_op op,
                                 struct msc_value *const operands[], int n_operands) {
    MSC_TRY(c->status);
    return msc_onnx__add_last(c->node, op, operands, n_operands);
}

struct msc_value *msc_compose_translate(struct msc_compose *c, msc_onnx_translator translate,
                                        enum msc_op op, struct msc_value *const inputs[], int n) {
    struct msc_value *result = NULL;
    if (c->status == MSC_OK) {
        struct msc_onnx_node node = *c->node;
        node.inputs = (struct msc_value **)inputs;
        node.n_inputs = n;
        node.rule.op = op;
        node.result = &result;
        c->status = translate(&node);
        c->node->n_attrs = 0;
    }
    return result;
}

enum msc_status msc_compose_end(struct msc_compose *c, struct msc_value *v) {
    MSC_TRY(c->status);
    if (c->node->result != NULL) {
        *c->node->result = v;
        return MSC_OK;
    }
    return msc_onnx__set_output(c->node, v);
}

void msc_compose_extra(struct msc_compose *c, int output, struct msc_value *v) {
    for (int i = 0; i < c->node->n_inputs; i++) {
        if (v != NULL && v == c->node->inputs[i]) {
            v = MSC_COMPOSE(c, MSC_OP_IDENTITY, v);
            break;
        }
    }
    if (c->status == MSC_OK) {
        c->status = msc_onnx__define_extra(c->node, output, v);
    }
}

struct msc_value *msc_compose_scalar(struct msc_compose *c, enum msc_dtype dtype, double value) {
    struct msc_value *out = NULL;
    if (c->status == MSC_OK) {
        c->status = msc_onnx__make_scalar(&out, c->node, dtype, value);
    }
    return out;
}

struct msc_value *msc_compose_ints(struct msc_compose *c, const int64_t values[], int n) {
    struct msc_value *out = NULL;
    if (c->status == MSC_OK) {
        c->status = msc_onnx__make_ints(&out, c->node, "", values, n);
    }
    return out;
}

struct msc_onnx_shape msc_compose_shape(const struct msc_compose *c, const struct msc_value *v) {
    return c->status == MSC_OK ? msc_onnx__shape(c->node, v) : (struct msc_onnx_shape){0};
}

struct msc_value *msc_compose_cast(struct msc_compose *c, struct msc_value *x,
                                   enum msc_dtype dtype) {
    if (msc_compose_shape(c, x).dtype == dtype) {
        return x;
    }
    msc_onnx__set(c->node, "dtype", msc_dtype_name(dtype));
    return MSC_COMPOSE(c, MSC_OP_CAST, x);
}

struct msc_value *msc_compose_reshape(struct msc_compose *c, struct msc_value *x,
                                      const int64_t dims[], int n) {
    msc_onnx__set_ints(c->node, "shape", dims, n);
    return MSC_COMPOSE(c, MSC_OP_RESHAPE, x);
}

struct msc_value *msc_compose_permute(struct msc_compose *c, struct msc_value *x,
                                      const int64_t axes[], int n) {
    msc_onnx__set_ints(c->node, "axes", axes, n);
    return MSC_COMPOSE(c, MSC_OP_PERMUTE_DIMS, x);
}

struct msc_value *msc_compose_move(struct msc_compose *c, struct msc_value *x, int from, int to) {
    int64_t axes[MSC_MAX_DIMS];
    int rank = msc_compose_shape(c, x).n_dims;
    for (int i = 0, k = 0; i < rank; i++) {
        k += k == from;
        axes[i] = i == to ? from : k++;
    }
    return msc_compose_permute(c, x, axes, rank);
}

struct msc_value *msc_compose_unsqueeze(struct msc_compose *c, struct msc_value *x, int64_t axis) {
    msc_onnx__set_ints(c->node, "axis", &axis, 1);
    return MSC_COMPOSE(c, MSC_OP_EXPAND_DIMS, x);
}

struct msc_value *msc_compose_slice(struct msc_compose *c, struct msc_value *x, int64_t axis,
                                    int64_t begin, int64_t end, int64_t step) {
    msc_onnx__set_ints(c->node, "axes", &axis, 1);
    msc_onnx__set_ints(c->node, "begin", &begin, 1);
    msc_onnx__set_ints(c->node, "end", &end, 1);
    msc_onnx__set_ints(c->node, "strides", &step, 1);
    return MSC_COMPOSE(c, MSC_OP_STRIDED_SLICE, x);
}

struct msc_value *msc_compose_concat(struct msc_compose *c, struct msc_value *a,
                                     struct msc_value *b, int64_t axis) {
    msc_onnx__set_int(c->node, "axis", axis);
    return MSC_COMPOSE(c, MSC_OP_CONCAT, a, b);
}

struct msc_value *msc_compose_take(struct msc_compose *c, struct msc_value *x,
                                   struct msc_value *indices, int64_t axis) {
    msc_onnx__set_int(c->node, "axis", axis);
    return MSC_COMPOSE(c, MSC_OP_TAKE, x, indices);
}

struct msc_value *msc_compose_reduce(struct msc_compose *c, enum msc_op op, struct msc_value *x,
                                     int64_t axis) {
    msc_onnx__set_ints(c->node, "axis", &axis, 1);
    msc_onnx__set_bool(c->node, "keepdims", true);
    return MSC_COMPOSE(c, op, x);
}

struct msc_value *msc_compose_length(struct msc_compose *c, struct msc_value *x, int64_t axis) {
    struct msc_value *dims = MSC_COMPOSE(c, MSC_OP_SHAPE_OF, x);
    return msc_compose_take(c, dims, msc_compose_scalar(c, MSC_DTYPE_I64, (double)axis), 0);
}

enum msc_status msc_compose_last_norm(struct msc_compose *c, struct msc_value *x,
                                      struct msc_value *gamma, struct msc_value *beta,
                                      float epsilon) {
    enum msc_dtype dtype = msc_compose_shape(c, x).dtype;
    struct msc_value *mean = msc_compose_reduce(c, MSC_OP_MEAN, x, -1);
    struct msc_value *centred = MSC_COMPOSE(c, MSC_OP_SUBTRACT, x, mean);
    struct msc_value *variance = MSC_COMPOSE(c, MSC_OP_MULTIPLY, centred, centred);
    variance = msc_compose_reduce(c, MSC_OP_MEAN, variance, -1);
    variance = MSC_COMPOSE(c, MSC_OP_ADD, variance, msc_compose_scalar(c, dtype, epsilon));
    x = MSC_COMPOSE(c, MSC_OP_DIVIDE, centred, MSC_COMPOSE(c, MSC_OP_SQRT, variance));
    return beta == NULL
               ? MSC_COMPOSE_LAST(c, MSC_OP_MULTIPLY, x, gamma)
               : MSC_COMPOSE_LAST(c, MSC_OP_ADD, MSC_COMPOSE(c, MSC_OP_MULTIPLY, x, gamma), beta);
}

struct msc_value *msc_compose_rms_norm(struct msc_compose *c, struct msc_value *x, int64_t first,
                                       float epsilon, enum msc_dtype dtype) {
    int64_t axes[MSC_MAX_DIMS];
    int n_axes = 0;
    struct msc_onnx_shape shape = msc_compose_shape(c, x);
    for (int64_t i = first; i < shape.n_dims; i++) {
        axes[n_axes++] = i;
    }
    x = msc_compose_cast(c, x, dtype);
    struct msc_value *square = MSC_COMPOSE(c, MSC_OP_MULTIPLY, x, x);
    msc_onnx__set_ints(c->node, "axis", axes, n_axes);
    msc_onnx__set_bool(c->node, "keepdims", true);
    square = MSC_COMPOSE(c, MSC_OP_MEAN, square);
    square = MSC_COMPOSE(c, MSC_OP_ADD, square, msc_compose_scalar(c, dtype, epsilon));
    x = MSC_COMPOSE(c, MSC_OP_DIVIDE, x, MSC_COMPOSE(c, MSC_OP_SQRT, square));
    return msc_compose_cast(c, x, shape.dtype);
}

struct msc_value *msc_compose_gate(struct msc_compose *c, struct msc_value *x, float alpha) {
    if (alpha != 1.0f) {
        struct msc_value *factor = msc_compose_scalar(c, msc_compose_shape(c, x).dtype, alpha);
        x = MSC_COMPOSE(c, MSC_OP_MULTIPLY, x, factor);
    }
    return MSC_COMPOSE(c, MSC_OP_SIGMOID, x);
}

struct msc_value *msc_compose_swish(struct msc_compose *c, struct msc_value *x, float alpha) {
    return MSC_COMPOSE(c, MSC_OP_MULTIPLY, x, msc_compose_gate(c, x, alpha));
}
