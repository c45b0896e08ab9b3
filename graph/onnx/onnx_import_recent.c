// Operators that ONNX added since opset 23 and that are formulas of other operators: RMS
// normalisation, rotary embedding, Swish, SwiGLU and causal convolution. Formulas: ONNX's
// specification of each operator. Also attributes that older operators have since opset 23.
#include "graph/onnx/onnx_import_compose.h"

#include <string.h>

// x / sqrt(mean(x^2) + epsilon) * scale, with the mean over the axes from `axis` on. Statistics of
// narrower types are computed in float32.
enum msc_status msc_onnx__rms_norm(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    int64_t axis, stash, axes[MSC_MAX_DIMS];
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
    for (int64_t i = first; i < shape.n_dims; i++) {
        axes[i - first] = i;
    }
    enum msc_dtype dtype = msc_onnx_dtype(stash < 0 || stash > 1000 ? 0 : (int)stash);
    struct msc_value *x = msc_compose_cast(&c, n->inputs[0], dtype);
    struct msc_value *square = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, x, x);
    msc_onnx__set_ints(n, "axis", axes, (int)(shape.n_dims - first));
    msc_onnx__set_bool(n, "keepdims", true);
    square = MSC_COMPOSE(&c, MSC_OP_MEAN, square);
    square = MSC_COMPOSE(&c, MSC_OP_ADD, square, msc_compose_scalar(&c, dtype, epsilon));
    struct msc_value *y = MSC_COMPOSE(&c, MSC_OP_DIVIDE, x, MSC_COMPOSE(&c, MSC_OP_SQRT, square));
    y = msc_compose_cast(&c, y, shape.dtype);
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, y, n->inputs[1]);
}

enum msc_status msc_onnx__swish(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float alpha;
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.0f));
    struct msc_value *x = n->inputs[0], *gate = x;
    if (alpha != 1.0f) {
        enum msc_dtype dtype = msc_onnx__shape(n, x).dtype;
        gate = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, x, msc_compose_scalar(&c, dtype, alpha));
    }
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, x, MSC_COMPOSE(&c, MSC_OP_SIGMOID, gate));
}

enum msc_status msc_onnx__swiglu(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float alpha;
    MSC_TRY(msc_onnx__float(&alpha, n, "alpha", 1.0f));
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, msc_compose_swish(&c, n->inputs[0], alpha),
                            n->inputs[1]);
}

// ---- Rotary embedding -------------------------------------------------------------------------

// Rotates pairs of elements by the angles of their position. Pairs are neighbours, or elements of
// the two halves of the head.
struct rotary {
    struct msc_compose c;
    bool is_interleaved, has_sequence_first; // the latter: x is [b, s, h, d], else [b, h, s, d]
    int64_t size;                            // number of elements of a head that are rotated
    struct msc_value *cosine, *sine;         // broadcast to x's axes; [..., size / 2]
};

// [max position, size / 2] at the positions, or [b, s, size / 2].
static struct msc_value *angles(struct rotary *r, int input) {
    struct msc_onnx_node *n = r->c.node;
    struct msc_value *cache = n->inputs[input], *positions = msc_onnx__input(n, 3);
    if (positions != NULL) {
        cache = msc_compose_take(&r->c, cache, positions, 0);
    }
    return msc_compose_unsqueeze(&r->c, cache, r->has_sequence_first ? 2 : 1);
}

static struct msc_value *rotate(struct rotary *r, struct msc_value *x) {
    struct msc_compose *c = &r->c;
    int64_t half = r->size / 2, step = r->is_interleaved ? 2 : 1;
    int64_t begin = r->is_interleaved ? 1 : half;
    struct msc_value *first =
        msc_compose_slice(c, x, 3, 0, r->is_interleaved ? r->size : half, step);
    struct msc_value *second = msc_compose_slice(c, x, 3, begin, r->size, step);
    struct msc_value *real =
        MSC_COMPOSE(c, MSC_OP_SUBTRACT, MSC_COMPOSE(c, MSC_OP_MULTIPLY, first, r->cosine),
                    MSC_COMPOSE(c, MSC_OP_MULTIPLY, second, r->sine));
    struct msc_value *imaginary =
        MSC_COMPOSE(c, MSC_OP_ADD, MSC_COMPOSE(c, MSC_OP_MULTIPLY, first, r->sine),
                    MSC_COMPOSE(c, MSC_OP_MULTIPLY, second, r->cosine));
    if (!r->is_interleaved) {
        return msc_compose_concat(c, real, imaginary, 3);
    }
    struct msc_value *pairs = msc_compose_concat(c, msc_compose_unsqueeze(c, real, 4),
                                                 msc_compose_unsqueeze(c, imaginary, 4), 4);
    return msc_compose_reshape(c, pairs, (int64_t[]){0, 0, 0, r->size}, 4);
}

enum msc_status msc_onnx__rotary_embedding(struct msc_onnx_node *n) {
    struct rotary r = {.c = {.node = n}};
    struct msc_compose *c = &r.c;
    int64_t interleaved, heads;
    MSC_TRY(msc_onnx__int(&interleaved, n, "interleaved", 0));
    MSC_TRY(msc_onnx__int(&heads, n, "num_heads", 0));
    MSC_TRY(msc_onnx__int(&r.size, n, "rotary_embedding_dim", 0));
    r.is_interleaved = interleaved != 0;
    struct msc_value *x = n->inputs[0];
    struct msc_onnx_shape shape = msc_onnx__shape(n, x);
    r.has_sequence_first = shape.n_dims == 3;
    int64_t width = shape.n_dims == 3 || shape.n_dims == 4 ? shape.dims[shape.n_dims - 1] : -1;
    if (shape.n_dims == 3 && heads > 0 && width > 0) {
        width /= heads;
        x = msc_compose_reshape(c, x, (int64_t[]){0, 0, heads, width}, 4);
    } else if (shape.n_dims != 4 || width < 0) {
        return MSC_FAIL(MSC_E_FORMAT, "expected an input of 3 dimensions and num_heads, or of 4 "
                                      "dimensions, with a known size of a head");
    }
    r.size = r.size == 0 ? width : r.size;
    if (r.size < 2 || r.size > width || r.size % 2 != 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%lld elements of a head of %lld are rotated, expected an even number",
                        (long long)r.size, (long long)width);
    }
    r.cosine = angles(&r, 1);
    r.sine = angles(&r, 2);
    struct msc_value *out = rotate(&r, x);
    if (r.size < width) {
        out = msc_compose_concat(c, out, msc_compose_slice(c, x, 3, r.size, width, 1), 3);
    }
    if (shape.n_dims == 4) {
        return MSC_COMPOSE_LAST(c, MSC_OP_IDENTITY, out);
    }
    msc_onnx__set_ints(n, "shape", (int64_t[]){0, 0, -1}, 3);
    return MSC_COMPOSE_LAST(c, MSC_OP_RESHAPE, out);
}

// ---- Causal convolution -----------------------------------------------------------------------

// A depthwise convolution over the earlier elements (zeros by default) and the new ones. Output 1
// has the last elements, which are the earlier ones of the next call.
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

// Narrow floats are counted up in a wider type.
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
