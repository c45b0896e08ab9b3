// Translates other layers: normalisations that become several joints, signals, random numbers.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// ---- Normalisations ---------------------------------------------------------------------------

// (x - mean(x)) / (sqrt(mean(x^2) - mean(x)^2) + 1e-9)
enum msc_status msc_onnx__mean_variance(struct msc_onnx_node *n) {
    static const int64_t usual[] = {0, 2, 3};
    const int64_t *axes;
    int n_axes;
    struct msc_value *mean, *square, *pair[2] = {n->inputs[0], n->inputs[0]};
    MSC_TRY(msc_onnx__ints(&axes, &n_axes, n, "axes"));
    axes = n_axes < 0 ? usual : axes;
    n_axes = n_axes < 0 ? 3 : n_axes;
    msc_onnx__set_ints(n, "axis", axes, n_axes);
    msc_onnx__set_bool(n, "keepdims", true);
    MSC_TRY(msc_onnx__add_helper(&mean, n, MSC_OP_MEAN, pair, 1));
    MSC_TRY(msc_onnx__add_helper(&square, n, MSC_OP_MULTIPLY, pair, 2));
    msc_onnx__set_ints(n, "axis", axes, n_axes);
    msc_onnx__set_bool(n, "keepdims", true);
    MSC_TRY(msc_onnx__add_helper(&square, n, MSC_OP_MEAN, &square, 1));
    struct msc_value *means[2] = {mean, mean}, *deviation[2], *result[2];
    MSC_TRY(msc_onnx__add_helper(&means[1], n, MSC_OP_MULTIPLY, means, 2));
    means[0] = square;
    MSC_TRY(msc_onnx__add_helper(&deviation[0], n, MSC_OP_SUBTRACT, means, 2));
    MSC_TRY(msc_onnx__add_helper(&deviation[0], n, MSC_OP_SQRT, deviation, 1));
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    MSC_TRY(msc_onnx__make_scalar(&deviation[1], n, dtype, 1e-9));
    pair[1] = mean;
    MSC_TRY(msc_onnx__add_helper(&result[0], n, MSC_OP_SUBTRACT, pair, 2));
    MSC_TRY(msc_onnx__add_helper(&result[1], n, MSC_OP_ADD, deviation, 2));
    return msc_onnx__add_last(n, MSC_OP_DIVIDE, result, 2);
}

// The p-norm over some axes, which are kept with length 1: sum(|x|), sqrt(sum(x^2)), or in general
// sum(|x|^p)^(1/p).
static enum msc_status add_norm(struct msc_value **out, struct msc_onnx_node *n, int64_t p,
                                const int64_t axes[], int n_axes) {
    struct msc_value *pair[2] = {n->inputs[0], n->inputs[0]};
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    MSC_TRY(p == 2 ? msc_onnx__add_helper(&pair[0], n, MSC_OP_MULTIPLY, pair, 2)
                   : msc_onnx__add_helper(&pair[0], n, MSC_OP_ABS, pair, 1));
    if (p > 2) {
        MSC_TRY(msc_onnx__make_scalar(&pair[1], n, dtype, (double)p));
        MSC_TRY(msc_onnx__add_helper(&pair[0], n, MSC_OP_POWER, pair, 2));
    }
    msc_onnx__set_ints(n, "axis", axes, n_axes);
    msc_onnx__set_bool(n, "keepdims", true);
    MSC_TRY(msc_onnx__add_helper(out, n, MSC_OP_SUM, pair, 1));
    if (p > 2) {
        pair[0] = *out;
        MSC_TRY(msc_onnx__make_scalar(&pair[1], n, dtype, 1 / (double)p));
        return msc_onnx__add_helper(out, n, MSC_OP_POWER, pair, 2);
    }
    return p == 2 ? msc_onnx__add_helper(out, n, MSC_OP_SQRT, out, 1) : MSC_OK;
}

enum msc_status msc_onnx__lp_norm(struct msc_onnx_node *n) {
    int64_t axis, p;
    struct msc_value *pair[2] = {n->inputs[0], NULL};
    MSC_TRY(msc_onnx__int(&axis, n, "axis", -1));
    MSC_TRY(msc_onnx__int(&p, n, "p", 2));
    struct msc_value *norm[2];
    MSC_TRY(add_norm(&norm[0], n, p, &axis, 1));
    // The divisor is kept above 0, so that a vector of zeros remains zeros.
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    MSC_TRY(msc_onnx__make_scalar(&norm[1], n, dtype, dtype == MSC_DTYPE_F16 ? 6.1e-5 : 1.2e-38));
    MSC_TRY(msc_onnx__add_helper(&pair[1], n, MSC_OP_MAXIMUM, norm, 2));
    return msc_onnx__add_last(n, MSC_OP_DIVIDE, pair, 2);
}

enum msc_status msc_onnx__global_lp_pool(struct msc_onnx_node *n) {
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    int64_t p, axes[MSC_MAX_DIMS];
    struct msc_value *norm;
    MSC_TRY(msc_onnx__int(&p, n, "p", 2));
    for (int i = 2; i < rank; i++) {
        axes[i - 2] = i;
    }
    if (rank < 3) {
        return MSC_FAIL(MSC_E_FORMAT, "the input has %d dimensions, expected 3 or more", rank);
    }
    MSC_TRY(add_norm(&norm, n, p, axes, rank - 2));
    return msc_onnx__add_last(n, MSC_OP_IDENTITY, &norm, 1);
}

// Before opset 16, regions are not shifted by half an element.
enum msc_status msc_onnx__roi_align(struct msc_onnx_node *n) {
    MSC_TRY(msc_onnx__copy_attrs(n, MSC_OP_ROI_ALIGN));
    if (n->opset < 16) {
        msc_onnx__set(n, "coordinate_transformation_mode", "output_half_pixel");
    }
    return msc_onnx__add_last(n, MSC_OP_ROI_ALIGN, n->inputs, 3);
}

// ---- Signals ----------------------------------------------------------------------------------

// Before opset 20 the axis is an attribute with the default 1, the first axis after the batch axis.
// From opset 20 on, it is an optional input with the default -2.
enum msc_status msc_onnx__dft(struct msc_onnx_node *n) {
    int64_t axis;
    MSC_TRY(msc_onnx__copy_attrs(n, MSC_OP_DFT));
    if (n->n_inputs < 3) {
        MSC_TRY(msc_onnx__int(&axis, n, "axis", n->opset < 20 ? 1 : -2));
        msc_onnx__set_int(n, "axis", axis);
    }
    return msc_onnx__add_last(n, MSC_OP_DFT, n->inputs, n->n_inputs);
}

// ---- Random numbers ---------------------------------------------------------------------------

// Copies the node's float attribute `name` to the joint's attribute `key`.
static enum msc_status copy_float(struct msc_onnx_node *n, const char *key, const char *name,
                                  float otherwise) {
    float value;
    MSC_TRY(msc_onnx__float(&value, n, name, otherwise));
    msc_onnx__set_float(n, key, value);
    return MSC_OK;
}

static enum msc_status set_seed(struct msc_onnx_node *n) {
    float seed;
    MSC_TRY(msc_onnx__float(&seed, n, "seed", 0.0f));
    msc_onnx__set_float(n, "seed", seed);
    return MSC_OK;
}

// RandomNormal, RandomUniform, and the Like variants, which take the shape of an input.
enum msc_status msc_onnx__random(struct msc_onnx_node *n) {
    bool is_normal = strstr(n->rule.onnx, "Normal") != NULL;
    struct msc_value *shape = NULL;
    enum msc_dtype dtype = MSC_DTYPE_F32;
    if (n->n_inputs > 0) {
        dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
        MSC_TRY(msc_onnx__add_helper(&shape, n, MSC_OP_SHAPE_OF, n->inputs, 1));
    } else {
        MSC_TRY(msc_onnx__list_param(&shape, n, 0, "shape"));
    }
    if (shape == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "the shape is missing");
    }
    msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    MSC_TRY(msc_onnx__set_dtype(n, "dtype", "dtype"));
    msc_onnx__set(n, "distribution", is_normal ? "normal" : "uniform");
    MSC_TRY(copy_float(n, "first", is_normal ? "mean" : "low", 0.0f));
    MSC_TRY(copy_float(n, "second", is_normal ? "scale" : "high", 1.0f));
    MSC_TRY(set_seed(n));
    return msc_onnx__add_last(n, MSC_OP_RANDOM, &shape, 1);
}

// The result is 1 if a random number is below the probability, else 0.
enum msc_status msc_onnx__bernoulli(struct msc_onnx_node *n) {
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    struct msc_value *pair[2] = {NULL, n->inputs[0]};
    MSC_TRY(msc_onnx__add_helper(&pair[0], n, MSC_OP_SHAPE_OF, n->inputs, 1));
    msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    MSC_TRY(set_seed(n));
    MSC_TRY(msc_onnx__add_helper(&pair[0], n, MSC_OP_RANDOM, pair, 1));
    MSC_TRY(msc_onnx__add_helper(&pair[0], n, MSC_OP_LESS, pair, 2));
    msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    MSC_TRY(msc_onnx__set_dtype(n, "dtype", "dtype"));
    return msc_onnx__add_last(n, MSC_OP_CAST, pair, 1);
}

enum msc_status msc_onnx__tf_idf(struct msc_onnx_node *n) {
    if (msc_onnx__attribute(n, "pool_strings") != NULL) {
        return MSC_ONNX_UNSUPPORTED("n-grams of strings are not supported");
    }
    return msc_onnx__direct(n);
}
