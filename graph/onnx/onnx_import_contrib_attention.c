// Attention and MultiHeadAttention of com.microsoft. Semantics: ONNX Runtime's documentation and
// its results on a CPU. Letters as in onnx_import_attention.h.
#include "graph/onnx/onnx_import_attention.h"

struct contrib {
    struct msc_attention a;
    int64_t heads;
    float filter;           // is added to the scores of masked keys
    struct msc_value *bias; // is added to the scores; NULL: none
};

static enum msc_status read_attrs(struct contrib *t, struct msc_onnx_node *n) {
    int64_t causal;
    t->a = (struct msc_attention){.c = {.node = n},
                                  .sees_a_key = true,
                                  .left_window = -1,
                                  .right_window = -1,
                                  .dtype = msc_onnx__shape(n, n->inputs[0]).dtype};
    t->a.softmax_dtype = t->a.dtype;
    MSC_TRY(msc_onnx__int(&causal, n, "unidirectional", 0));
    t->a.is_causal = causal != 0;
    MSC_TRY(msc_onnx__int(&t->heads, n, "num_heads", 0));
    MSC_TRY(msc_onnx__float(&t->a.scale, n, "scale", 0.0f));
    return msc_onnx__float(&t->filter, n, "mask_filter_value", -10000.0f);
}

// Fails if the node has an attribute that ONNX Runtime supports only on other devices.
static enum msc_status refuse(const struct msc_onnx_node *n, const char *name) {
    int64_t value;
    MSC_TRY(msc_onnx__int(&value, n, name, 0));
    return value == 0 ? MSC_OK
                      : MSC_ONNX_UNSUPPORTED("%s is %lld, expected 0", name, (long long)value);
}

// Reads a mask that holds the index after the last key of each sequence [b], followed, if
// has_begin, by the index of each first key [2 * b]. The result is true for the keys in between.
static struct msc_value *mask_between(struct msc_compose *c, struct msc_value *mask,
                                      struct msc_value *key, bool has_begin) {
    struct msc_value *end = mask, *begin = NULL;
    if (has_begin) {
        struct msc_value *pair = msc_compose_reshape(c, mask, (int64_t[]){2, -1}, 2);
        end = msc_compose_take(c, pair, msc_compose_scalar(c, MSC_DTYPE_I64, 0), 0);
        begin = msc_compose_take(c, pair, msc_compose_scalar(c, MSC_DTYPE_I64, 1), 0);
        begin = msc_compose_cast(c, msc_compose_unsqueeze(c, begin, 1), MSC_DTYPE_I64);
    }
    end = msc_compose_cast(c, msc_compose_unsqueeze(c, end, 1), MSC_DTYPE_I64);
    struct msc_value *kept = MSC_COMPOSE(c, MSC_OP_LESS, key, end);
    if (begin != NULL) {
        kept = MSC_COMPOSE(c, MSC_OP_LOGICAL_AND, kept,
                           MSC_COMPOSE(c, MSC_OP_GREATER_EQUAL, key, begin));
    }
    return kept;
}

// Sets a->mask, which is added to the scores, to the sum of the node's mask and bias (NULL: none).
// The mask is [b], [2 * b], [b, t] or [b, s, t]. Call after the keys are known.
static enum msc_status set_mask(struct contrib *t, struct msc_value *mask, struct msc_value *bias) {
    struct msc_attention *a = &t->a;
    struct msc_compose *c = &a->c;
    a->mask = bias;
    if (mask == NULL || c->status != MSC_OK) {
        return c->status;
    }
    struct msc_onnx_shape shape = msc_compose_shape(c, mask);
    int64_t batch = msc_compose_shape(c, a->q).dims[0], given = shape.dims[0];
    struct msc_value *kept;
    if (shape.n_dims == 1) {
        bool is_end = given == batch || given < 0 || batch < 0;
        if (!is_end && given != 2 * batch) {
            return MSC_ONNX_UNSUPPORTED(
                "the mask has %lld elements for %lld sequences, expected one or two per sequence",
                (long long)given, (long long)batch);
        }
        kept = mask_between(c, mask, msc_attention_count(c, a->k, 2), !is_end);
    } else if (shape.n_dims == 2 || shape.n_dims == 3) {
        kept = MSC_COMPOSE(c, MSC_OP_GREATER, mask, msc_compose_scalar(c, shape.dtype, 0));
    } else {
        return MSC_ONNX_UNSUPPORTED("the mask has %d dimensions, expected 1 to 3", shape.n_dims);
    }
    if (shape.n_dims < 3) {
        kept = msc_compose_unsqueeze(c, kept, 1);
    }
    kept = msc_compose_unsqueeze(c, kept, 1);
    mask = MSC_COMPOSE(c, MSC_OP_WHERE, kept, msc_compose_scalar(c, a->dtype, 0),
                       msc_compose_scalar(c, a->dtype, t->filter));
    a->mask = bias == NULL ? mask : MSC_COMPOSE(c, MSC_OP_ADD, bias, mask);
    return c->status;
}

// Appends new keys or values [b, h, s, d] to earlier ones.
static struct msc_value *append(struct msc_compose *c, struct msc_value *past,
                                struct msc_value *x) {
    return past == NULL ? x : msc_compose_concat(c, past, x, 2);
}

// ---- Attention --------------------------------------------------------------------------------

// Multiplies the input by the merged weights, and splits the result into queries, keys and values.
static enum msc_status project(struct contrib *t) {
    struct msc_attention *a = &t->a;
    struct msc_compose *c = &a->c;
    struct msc_onnx_node *n = c->node;
    const int64_t *given;
    int n_given;
    int64_t total = msc_onnx__shape(n, n->inputs[1]).dims[1];
    int64_t sizes[3] = {total / 3, total / 3, total / 3};
    MSC_TRY(msc_onnx__ints(&given, &n_given, n, "qkv_hidden_sizes"));
    bool fits = total > 0;
    for (int i = 0; i < 3; i++) {
        sizes[i] = n_given == 3 ? given[i] : sizes[i];
        fits = fits && sizes[i] >= 1 && sizes[i] <= total;
    }
    if (!fits || sizes[0] + sizes[1] + sizes[2] != total) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%lld columns of the weights cannot be divided among queries, "
                        "keys and values",
                        (long long)total);
    }
    struct msc_value *x = msc_compose_translate(c, msc_onnx__matmul, MSC_OP_MATMUL, n->inputs, 2);
    if (msc_onnx__input(n, 2) != NULL) {
        x = MSC_COMPOSE(c, MSC_OP_ADD, x, n->inputs[2]);
    }
    struct msc_value **parts[] = {&a->q, &a->k, &a->v};
    for (int64_t i = 0, begin = 0; i < 3; begin += sizes[i++]) {
        struct msc_value *part = msc_compose_slice(c, x, 2, begin, begin + sizes[i], 1);
        *parts[i] = msc_attention_split_heads(c, part, t->heads);
    }
    return c->status;
}

// Puts the past keys and values before the new ones. Both the past and output 1 hold keys and then
// values: [2, b, h, p, d], where p is the number of past keys.
static void join_past(struct msc_attention *a, struct msc_value *past) {
    struct msc_compose *c = &a->c;
    struct msc_value *keys = NULL, *values = NULL;
    if (past != NULL) {
        keys = msc_compose_take(c, past, msc_compose_scalar(c, MSC_DTYPE_I64, 0), 0);
        values = msc_compose_take(c, past, msc_compose_scalar(c, MSC_DTYPE_I64, 1), 0);
        a->offset = msc_compose_length(c, past, 3);
    }
    a->k = append(c, keys, a->k);
    a->v = append(c, values, a->v);
    if (c->node->proto->n_output > 1) {
        struct msc_value *present = msc_compose_concat(c, msc_compose_unsqueeze(c, a->k, 0),
                                                       msc_compose_unsqueeze(c, a->v, 0), 0);
        msc_compose_extra(c, 1, present);
    }
}

enum msc_status msc_onnx__contrib_attention(struct msc_onnx_node *n) {
    struct contrib t = {0};
    MSC_TRY(refuse(n, "do_rotary"));
    MSC_TRY(refuse(n, "past_present_share_buffer"));
    MSC_TRY(read_attrs(&t, n));
    MSC_TRY(project(&t));
    join_past(&t.a, msc_onnx__input(n, 4));
    MSC_TRY(set_mask(&t, msc_onnx__input(n, 3), msc_onnx__input(n, 5)));
    return msc_attention_last(&t.a, msc_attention_probabilities(&t.a));
}

// ---- MultiHeadAttention -----------------------------------------------------------------------

// Queries, keys or values [b, h, s, d]; `begin` is the first element of their part of the bias.
static struct msc_value *read_part(struct contrib *t, int input, int64_t *begin) {
    struct msc_compose *c = &t->a.c;
    struct msc_onnx_node *n = c->node;
    struct msc_value *x = n->inputs[input], *bias = msc_onnx__input(n, 3);
    struct msc_onnx_shape shape = msc_compose_shape(c, x);
    if (shape.n_dims == 4) {
        return x;
    }
    if (bias != NULL) {
        int64_t end = *begin + shape.dims[2];
        x = MSC_COMPOSE(c, MSC_OP_ADD, x, msc_compose_slice(c, bias, 0, *begin, end, 1));
        *begin = end;
    }
    return msc_attention_split_heads(c, x, t->heads);
}

enum msc_status msc_onnx__multi_head_attention(struct msc_onnx_node *n) {
    struct contrib t = {0};
    struct msc_attention *a = &t.a;
    struct msc_compose *c = &a->c;
    struct msc_value *past_key = msc_onnx__input(n, 6), *past_value = msc_onnx__input(n, 7);
    int64_t begin = 0;
    MSC_TRY(read_attrs(&t, n));
    for (int i = 0; i < 3; i++) {
        struct msc_value *v = msc_onnx__input(n, i);
        struct msc_onnx_shape shape = {0};
        if (v != NULL) {
            shape = msc_onnx__shape(n, v);
        }
        if ((shape.n_dims != 3 && (i == 0 || shape.n_dims != 4)) ||
            (shape.n_dims == 3 && shape.dims[2] < 0)) {
            return MSC_ONNX_UNSUPPORTED("queries, keys and values must be separate inputs of 3 "
                                        "dimensions with a known last one");
        }
    }
    if (msc_onnx__input(n, 8) != NULL || msc_onnx__input(n, 9) != NULL) {
        return MSC_ONNX_UNSUPPORTED("past_sequence_length and cache_indirection are not supported");
    }
    a->q = read_part(&t, 0, &begin);
    a->k = read_part(&t, 1, &begin);
    a->v = read_part(&t, 2, &begin);
    a->offset = past_key == NULL ? NULL : msc_compose_length(c, past_key, 2);
    a->k = append(c, past_key, a->k);
    a->v = append(c, past_value, a->v);
    msc_compose_extra(c, 1, a->k);
    msc_compose_extra(c, 2, a->v);
    MSC_TRY(set_mask(&t, msc_onnx__input(n, 4), msc_onnx__input(n, 5)));
    struct msc_value *p = msc_attention_probabilities(a);
    msc_compose_extra(c, 3, a->masked);
    return msc_attention_last(a, p);
}
