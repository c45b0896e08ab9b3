// Attention: products, masks and a softmax. Formulas: ONNX's specification of Attention, opsets 23
// to 25.
#include "graph/onnx/onnx_import_attention.h"

#include <math.h>

struct msc_value *msc_attention_split_heads(struct msc_compose *c, struct msc_value *x,
                                            int64_t heads) {
    struct msc_onnx_shape shape = msc_compose_shape(c, x);
    bool is_static = shape.n_dims == 3 && shape.dims[2] >= 0;
    if (c->status == MSC_OK && (heads < 1 || (is_static && shape.dims[2] % heads != 0))) {
        c->status = MSC_FAIL(MSC_E_FORMAT, "%lld values cannot be divided among %lld heads",
                             (long long)shape.dims[2], (long long)heads);
    }
    int64_t size = is_static && heads > 0 ? shape.dims[2] / heads : -1;
    x = msc_compose_reshape(c, x, (int64_t[]){0, 0, heads, size}, 4);
    return msc_compose_permute(c, x, (int64_t[]){0, 2, 1, 3}, 4);
}

struct msc_value *msc_attention_repeat_heads(struct msc_attention *a, struct msc_value *x) {
    int64_t heads = msc_compose_shape(&a->c, a->q).dims[1];
    int64_t given = msc_compose_shape(&a->c, x).dims[1];
    if (a->c.status != MSC_OK || heads == given || heads < 0 || given < 0) {
        return x;
    }
    int64_t indices[4096];
    if (given == 0 || heads % given != 0 || heads > 4096) {
        a->c.status =
            MSC_FAIL(MSC_E_FORMAT, "%lld query heads cannot share %lld heads of keys and values",
                     (long long)heads, (long long)given);
        return x;
    }
    for (int64_t i = 0; i < heads; i++) {
        indices[i] = i / (heads / given);
    }
    return msc_compose_take(&a->c, x, msc_compose_ints(&a->c, indices, (int)heads), 1);
}

struct msc_value *msc_attention_count(struct msc_compose *c, struct msc_value *x, int64_t axis) {
    struct msc_value *zero = msc_compose_scalar(c, MSC_DTYPE_I64, 0);
    struct msc_value *one = msc_compose_scalar(c, MSC_DTYPE_I64, 1);
    return MSC_COMPOSE(c, MSC_OP_ARANGE, zero, msc_compose_length(c, x, axis), one);
}

static struct msc_value *both(struct msc_attention *a, struct msc_value *x, struct msc_value *y) {
    return x == NULL ? y : MSC_COMPOSE(&a->c, MSC_OP_LOGICAL_AND, x, y);
}

// A mask that is true for the keys that each query may see by their positions. It broadcasts to
// [b, h, s, t]; NULL: all keys.
static struct msc_value *find_visible(struct msc_attention *a) {
    struct msc_compose *c = &a->c;
    struct msc_value *visible = NULL, *key = NULL;
    if (a->is_causal || a->left_window >= 0 || a->right_window >= 0) {
        // The position of query i is i, plus the number of keys before the first query.
        key = msc_attention_count(c, a->k, 2);
        struct msc_value *query = msc_compose_unsqueeze(c, msc_attention_count(c, a->q, 2), 1);
        if (a->offset != NULL) {
            query = MSC_COMPOSE(c, MSC_OP_ADD, query, a->offset);
        }
        int64_t right = a->is_causal ? 0 : a->right_window;
        if (right >= 0) {
            struct msc_value *last = query;
            if (right > 0) {
                last = MSC_COMPOSE(c, MSC_OP_ADD, query,
                                   msc_compose_scalar(c, MSC_DTYPE_I64, (double)right));
            }
            visible = MSC_COMPOSE(c, MSC_OP_LESS_EQUAL, key, last);
        }
        if (a->left_window >= 0) {
            struct msc_value *first =
                MSC_COMPOSE(c, MSC_OP_SUBTRACT, query,
                            msc_compose_scalar(c, MSC_DTYPE_I64, (double)a->left_window));
            visible = both(a, visible, MSC_COMPOSE(c, MSC_OP_GREATER_EQUAL, key, first));
        }
    }
    if (a->kept_length != NULL) {
        struct msc_value *kept =
            msc_compose_reshape(c, a->kept_length, (int64_t[]){-1, 1, 1, 1}, 4);
        key = key == NULL ? msc_attention_count(c, a->k, 2) : key;
        visible = both(a, visible, MSC_COMPOSE(c, MSC_OP_LESS, key, kept));
    }
    return visible;
}

// A mask may be shorter than the keys; keys beyond its end are masked.
static struct msc_value *pad_mask(struct msc_attention *a, struct msc_value *mask) {
    struct msc_onnx_shape shape = msc_compose_shape(&a->c, mask);
    int64_t length = msc_compose_shape(&a->c, a->k).dims[2];
    int64_t given = shape.n_dims > 0 ? shape.dims[shape.n_dims - 1] : -1;
    if (a->c.status != MSC_OK || length < 0 || given < 0 || given >= length) {
        return mask;
    }
    bool is_bool = shape.dtype == MSC_DTYPE_BOOL;
    int64_t widths[2 * MSC_MAX_DIMS] = {0};
    widths[2 * shape.n_dims - 1] = length - given;
    struct msc_value *value =
        msc_compose_scalar(&a->c, shape.dtype, is_bool ? 0.0 : -(double)INFINITY);
    struct msc_value *list = msc_compose_ints(&a->c, widths, 2 * shape.n_dims);
    msc_onnx__set(a->c.node, "pad_mode", "constant");
    return MSC_COMPOSE(&a->c, MSC_OP_PAD, mask, list, value);
}

// The number that is added to each score: the mask, or -inf for keys that are not visible.
static struct msc_value *make_bias(struct msc_attention *a) {
    struct msc_compose *c = &a->c;
    struct msc_value *visible = find_visible(a), *mask = a->mask;
    struct msc_value *low = msc_compose_scalar(c, a->dtype, -(double)INFINITY);
    struct msc_value *zero = msc_compose_scalar(c, a->dtype, 0.0);
    mask = mask == NULL ? NULL : pad_mask(a, mask);
    if (mask != NULL && msc_compose_shape(c, mask).dtype == MSC_DTYPE_BOOL) {
        mask = MSC_COMPOSE(c, MSC_OP_WHERE, mask, zero, low);
    }
    if (visible == NULL) {
        return mask;
    }
    return MSC_COMPOSE(c, MSC_OP_WHERE, visible, mask == NULL ? zero : mask, low);
}

// True if each query is known to see a key: the bias is constant and no row of it is all -inf, or
// queries see at least the first key.
static bool sees_a_key(const struct msc_attention *a, const struct msc_value *bias) {
    if (bias == NULL || a->sees_a_key ||
        (a->is_causal && a->mask == NULL && a->kept_length == NULL && a->left_window < 0)) {
        return true;
    }
    const struct msc_array *values = bias->constant;
    if (values == NULL || msc_array_n_dims(values) < 1) {
        return false;
    }
    int64_t length = msc_array_dim(values, -1), n = msc_array_n_elements(values), n_low = 0;
    for (int64_t i = 0; i < n; i++) {
        double value = msc_array_get_double(values, i);
        n_low = i % length == 0 ? 0 : n_low;
        n_low += isinf(value) && value < 0;
        if (n_low == length) {
            return false;
        }
    }
    return true;
}

// Computes the softmax over the scores and the sink. Returns only the probabilities of the keys, so
// they sum to less than 1.
static struct msc_value *softmax_with_sink(struct msc_attention *a, struct msc_value *scores) {
    struct msc_compose *c = &a->c;
    msc_onnx__set_int(c->node, "end", 3);
    struct msc_value *dims = MSC_COMPOSE(c, MSC_OP_SHAPE_OF, scores);
    dims = msc_compose_concat(c, dims, msc_compose_ints(c, (int64_t[]){1}, 1), 0);
    struct msc_value *sink = msc_compose_cast(c, a->sink, a->softmax_dtype);
    sink = MSC_COMPOSE(c, MSC_OP_BROADCAST_TO, sink, dims);
    msc_onnx__set_int(c->node, "axis", -1);
    struct msc_value *p = MSC_COMPOSE(c, MSC_OP_SOFTMAX, msc_compose_concat(c, sink, scores, 3));
    return msc_compose_slice(c, p, 3, 1, INT64_MAX, 1);
}

// The probabilities of the keys. If a query sees no key, all its probabilities are 0.
static struct msc_value *find_probabilities(struct msc_attention *a, struct msc_value *scores,
                                            struct msc_value *bias) {
    struct msc_compose *c = &a->c;
    scores = msc_compose_cast(c, scores, a->softmax_dtype);
    if (a->sink != NULL) {
        return softmax_with_sink(a, scores);
    }
    msc_onnx__set_int(c->node, "axis", -1);
    struct msc_value *p = MSC_COMPOSE(c, MSC_OP_SOFTMAX, scores);
    if (c->status == MSC_OK && !sees_a_key(a, bias)) {
        struct msc_value *low = msc_compose_scalar(c, a->dtype, -(double)INFINITY);
        struct msc_value *zero = msc_compose_scalar(c, a->softmax_dtype, 0.0);
        struct msc_value *most = msc_compose_reduce(c, MSC_OP_MAX, bias, -1);
        p = MSC_COMPOSE(c, MSC_OP_WHERE, MSC_COMPOSE(c, MSC_OP_EQUAL, most, low), zero, p);
    }
    return p;
}

// The factor of the scores; 1 / sqrt(d) by default.
static struct msc_value *find_scale(struct msc_attention *a, double power) {
    struct msc_compose *c = &a->c;
    int64_t size = msc_compose_shape(c, a->q).dims[3];
    if (a->scale == 0.0f && size < 0) {
        struct msc_value *length = msc_compose_cast(c, msc_compose_length(c, a->q, 3), a->dtype);
        return MSC_COMPOSE(c, MSC_OP_POWER, length, msc_compose_scalar(c, a->dtype, -0.5 * power));
    }
    double scale = a->scale != 0.0f ? (double)a->scale : size > 0 ? 1 / sqrt((double)size) : 1.0;
    return msc_compose_scalar(c, a->dtype, power == 1.0 ? scale : pow(scale, power));
}

// The scaled product of queries and keys [b, h, s, t]. In float32, the queries are multiplied by
// the scale. In narrower types, queries and keys are each multiplied by the square root of the
// scale, so that the scores stay in range.
static struct msc_value *find_scores(struct msc_attention *a) {
    struct msc_compose *c = &a->c;
    bool is_narrow = a->dtype != MSC_DTYPE_F32 && a->dtype != MSC_DTYPE_F64;
    struct msc_value *scale = find_scale(a, is_narrow ? 0.5 : 1.0);
    struct msc_value *q = MSC_COMPOSE(c, MSC_OP_MULTIPLY, a->q, scale);
    struct msc_value *k = is_narrow ? MSC_COMPOSE(c, MSC_OP_MULTIPLY, a->k, scale) : a->k;
    k = msc_compose_permute(c, k, (int64_t[]){0, 1, 3, 2}, 4);
    return MSC_COMPOSE(c, MSC_OP_MATMUL, q, k);
}

static struct msc_value *limit_scores(struct msc_attention *a, struct msc_value *scores) {
    struct msc_compose *c = &a->c;
    struct msc_value *cap = msc_compose_scalar(c, a->dtype, a->softcap);
    scores = MSC_COMPOSE(c, MSC_OP_TANH, MSC_COMPOSE(c, MSC_OP_DIVIDE, scores, cap));
    return MSC_COMPOSE(c, MSC_OP_MULTIPLY, scores, cap);
}

struct msc_value *msc_attention_probabilities(struct msc_attention *a) {
    struct msc_compose *c = &a->c;
    a->products = find_scores(a);
    a->limited = a->softcap > 0.0f ? limit_scores(a, a->products) : a->products;
    a->masked = a->limited;
    struct msc_value *bias = make_bias(a);
    if (bias != NULL) {
        a->masked = MSC_COMPOSE(c, MSC_OP_ADD, a->masked, bias);
    }
    return msc_compose_cast(c, find_probabilities(a, a->masked, bias), a->dtype);
}

enum msc_status msc_attention_last(struct msc_attention *a, struct msc_value *p) {
    struct msc_compose *c = &a->c;
    struct msc_value *out =
        msc_compose_permute(c, MSC_COMPOSE(c, MSC_OP_MATMUL, p, a->v), (int64_t[]){0, 2, 1, 3}, 4);
    msc_onnx__set_ints(c->node, "shape", (int64_t[]){0, 0, -1}, 3);
    return MSC_COMPOSE_LAST(c, MSC_OP_RESHAPE, out);
}

// ---- ONNX's Attention -------------------------------------------------------------------------

// The state of the translation: msc_attention, and the attributes that it lacks.
struct standard {
    struct msc_attention a;
    int64_t query_heads, key_heads; // 0: not given
    int64_t mode;                   // what output 3 contains
};

static enum msc_status read_attrs(struct standard *st, struct msc_onnx_node *n) {
    struct msc_attention *a = &st->a;
    int64_t causal;
    MSC_TRY(msc_onnx__int(&causal, n, "is_causal", 0));
    a->is_causal = causal != 0;
    MSC_TRY(msc_onnx__int(&st->query_heads, n, "q_num_heads", 0));
    MSC_TRY(msc_onnx__int(&st->key_heads, n, "kv_num_heads", 0));
    MSC_TRY(msc_onnx__int(&a->left_window, n, "left_window_size", -1));
    MSC_TRY(msc_onnx__int(&a->right_window, n, "right_window_size", -1));
    MSC_TRY(msc_onnx__int(&st->mode, n, "qk_matmul_output_mode", 0));
    MSC_TRY(msc_onnx__float(&a->scale, n, "scale", 0.0f));
    MSC_TRY(msc_onnx__float(&a->softcap, n, "softcap", 0.0f));
    a->dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    a->softmax_dtype = a->dtype;
    int64_t type;
    MSC_TRY(msc_onnx__int(&type, n, "softmax_precision", 0));
    if (type != 0) {
        a->softmax_dtype = msc_onnx_dtype(type < 0 || type > 1000 ? 0 : (int)type);
        if (!msc_dtype_is_float(a->softmax_dtype)) {
            return MSC_FAIL(MSC_E_FORMAT, "softmax_precision is %lld, expected a float type",
                            (long long)type);
        }
    }
    return MSC_OK;
}

// Appends new keys or values to earlier ones. The result is also the node's output `output`.
static struct msc_value *append(struct msc_attention *a, struct msc_value *x, int past,
                                int output) {
    struct msc_onnx_node *n = a->c.node;
    struct msc_value *earlier = msc_onnx__input(n, past);
    if (earlier != NULL) {
        x = msc_compose_concat(&a->c, earlier, x, 2);
    }
    if ((size_t)output < n->proto->n_output) {
        msc_compose_extra(&a->c, output, x);
    }
    return x;
}

static enum msc_status read_inputs(struct standard *st) {
    struct msc_attention *a = &st->a;
    struct msc_onnx_node *n = a->c.node;
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    a->q = n->inputs[0];
    a->k = n->inputs[1];
    a->v = n->inputs[2];
    if (rank != 3 && rank != 4) {
        return MSC_FAIL(MSC_E_FORMAT, "the queries have %d dimensions, expected 3 or 4", rank);
    }
    if (rank == 3) {
        a->q = msc_attention_split_heads(&a->c, a->q, st->query_heads);
        a->k = msc_attention_split_heads(&a->c, a->k, st->key_heads);
        a->v = msc_attention_split_heads(&a->c, a->v, st->key_heads);
    }
    struct msc_value *past = msc_onnx__input(n, 4);
    a->kept_length = msc_onnx__input(n, 6);
    if (past != NULL) {
        a->offset = msc_compose_length(&a->c, past, 2);
    } else if (a->kept_length != NULL) {
        struct msc_value *length = msc_compose_length(&a->c, a->q, 2);
        a->offset = MSC_COMPOSE(&a->c, MSC_OP_SUBTRACT, a->kept_length, length);
        a->offset = msc_compose_reshape(&a->c, a->offset, (int64_t[]){-1, 1, 1, 1}, 4);
    }
    a->mask = msc_onnx__input(n, 3);
    a->k = msc_attention_repeat_heads(a, append(a, a->k, 4, 1));
    a->v = msc_attention_repeat_heads(a, append(a, a->v, 5, 2));
    return a->c.status;
}

enum msc_status msc_onnx__attention(struct msc_onnx_node *n) {
    struct standard st = {.a = {.c = {.node = n}}};
    struct msc_attention *a = &st.a;
    MSC_TRY(read_attrs(&st, n));
    MSC_TRY(read_inputs(&st));
    struct msc_value *p = msc_attention_probabilities(a);
    if (n->proto->n_output > 3) {
        struct msc_value *const shown[] = {a->products, a->limited, a->masked, p};
        msc_compose_extra(&a->c, 3, shown[st.mode >= 0 && st.mode <= 3 ? st.mode : 0]);
    }
    return msc_onnx__shape(n, n->inputs[0]).n_dims == 4
               ? MSC_COMPOSE_LAST(&a->c, MSC_OP_MATMUL, p, a->v)
               : msc_attention_last(a, p);
}
