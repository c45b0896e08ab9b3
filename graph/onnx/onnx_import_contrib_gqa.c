// GroupQueryAttention of com.microsoft. Semantics: ONNX Runtime's documentation and its results on
// a CPU. Letters as in onnx_import_attention.h. In addition, p is the number of past keys, and n
// the number of new keys, which equals the number of queries.
#include "graph/onnx/onnx_import_attention.h"
#include "graph/onnx/onnx_import_rotary.h"

#include <math.h>

struct grouped {
    struct msc_attention a;
    int64_t heads, key_heads, size; // number of heads, and the size of each
    bool is_rotary, is_interleaved;
    struct msc_value *past_key, *past_value; // [b, heads, p, d]; NULL: none
    struct msc_value *lengths;               // [b] number of keys of each sequence
    struct msc_value *begin;                 // [b] position of the first query; NULL: 0
    bool is_appended; // the new keys follow all past ones, whatever the batch element
    int64_t total;    // number of keys in the present (past and new); -1: p + n
};

static enum msc_status refuse_inputs(const struct msc_onnx_node *n) {
    static const struct {
        int input;
        const char *name;
    } rows[] = {{12, "k_scale"},       {13, "v_scale"},       {14, "q_norm_weight"},
                {15, "k_norm_weight"}, {16, "query_seqlens"}, {-1, NULL}};
    for (int i = 0; rows[i].name != NULL; i++) {
        if (msc_onnx__input(n, rows[i].input) != NULL) {
            return MSC_ONNX_UNSUPPORTED("the input %s is not supported", rows[i].name);
        }
    }
    return MSC_OK;
}

static enum msc_status read_attrs(struct grouped *g, struct msc_onnx_node *n) {
    int64_t causal, rotary, interleaved, window, is_sliding, smooth;
    struct msc_attention *a = &g->a;
    MSC_TRY(refuse_inputs(n));
    *a = (struct msc_attention){.c = {.node = n},
                                .sees_a_key = true,
                                .right_window = -1,
                                .dtype = msc_onnx__shape(n, n->inputs[0]).dtype};
    a->softmax_dtype = a->dtype == MSC_DTYPE_F64 ? a->dtype : MSC_DTYPE_F32;
    MSC_TRY(msc_onnx__int(&g->heads, n, "num_heads", 0));
    MSC_TRY(msc_onnx__int(&g->key_heads, n, "kv_num_heads", 0));
    MSC_TRY(msc_onnx__int(&causal, n, "causal", 1));
    MSC_TRY(msc_onnx__int(&rotary, n, "do_rotary", 0));
    MSC_TRY(msc_onnx__int(&interleaved, n, "rotary_interleaved", 0));
    MSC_TRY(msc_onnx__int(&window, n, "local_window_size", -1));
    MSC_TRY(msc_onnx__int(&is_sliding, n, "sliding_window_cache", 0));
    MSC_TRY(msc_onnx__int(&smooth, n, "smooth_softmax", 0));
    MSC_TRY(msc_onnx__float(&a->scale, n, "scale", 0.0f));
    MSC_TRY(msc_onnx__float(&a->softcap, n, "softcap", 0.0f));
    a->is_causal = causal != 0;
    a->left_window = window > 0 ? window - 1 : -1;
    g->is_rotary = rotary != 0;
    g->is_interleaved = interleaved != 0;
    bool has_heads =
        g->heads >= 1 && g->heads <= INT32_MAX && g->key_heads >= 1 && g->key_heads <= INT32_MAX;
    if (!has_heads || is_sliding != 0) {
        return MSC_ONNX_UNSUPPORTED("num_heads is %lld, kv_num_heads %lld and "
                                    "sliding_window_cache %lld, expected 1 or more heads, and 0",
                                    (long long)g->heads, (long long)g->key_heads,
                                    (long long)is_sliding);
    }
    if (msc_onnx__input(n, 11) != NULL) { // head_sink
        a->sink = msc_compose_reshape(&a->c, n->inputs[11], (int64_t[]){g->heads, 1, 1}, 3);
    } else if (smooth == 1) {
        a->sink = msc_compose_scalar(&a->c, a->dtype, 0);
    }
    return a->c.status;
}

// Queries, keys and values [b, heads, n, d], from one input or three.
static enum msc_status read_heads(struct grouped *g) {
    struct msc_attention *a = &g->a;
    struct msc_compose *c = &a->c;
    struct msc_onnx_node *n = c->node;
    struct msc_onnx_shape shape = msc_onnx__shape(n, n->inputs[0]);
    bool is_packed = n->inputs[1] == NULL;
    int64_t n_heads = is_packed ? g->heads + 2 * g->key_heads : g->heads;
    if (shape.n_dims != 3 || shape.dims[2] < n_heads || shape.dims[2] % n_heads != 0 ||
        is_packed != (n->inputs[2] == NULL)) {
        return MSC_FAIL(MSC_E_FORMAT, "expected queries [batch, length, heads * size], and both "
                                      "keys and values or neither");
    }
    g->size = shape.dims[2] / n_heads;
    if (!is_packed) {
        a->q = msc_attention_split_heads(c, n->inputs[0], g->heads);
        a->k = msc_attention_split_heads(c, n->inputs[1], g->key_heads);
        a->v = msc_attention_split_heads(c, n->inputs[2], g->key_heads);
        return c->status;
    }
    struct msc_value *all = msc_attention_split_heads(c, n->inputs[0], n_heads);
    a->q = msc_compose_slice(c, all, 1, 0, g->heads, 1);
    a->k = msc_compose_slice(c, all, 1, g->heads, g->heads + g->key_heads, 1);
    a->v = msc_compose_slice(c, all, 1, g->heads + g->key_heads, n_heads, 1);
    return c->status;
}

// True if all lengths are constant and equal to `total`.
static bool are_all(const struct msc_value *lengths, int64_t total) {
    bool are = lengths->constant != NULL;
    for (int64_t i = 0; are && i < msc_array_n_elements(lengths->constant); i++) {
        are = msc_array_get_i64(lengths->constant, i) == total;
    }
    return are;
}

// Finds the position of the first new key of each sequence. If the total length (input 6) equals
// the number of queries and is not below p, the past is ignored. Otherwise the last new key of a
// sequence is at the sequence's last position (input 5). There are max(total, p) present keys; if
// the total, p or n is unknown, there are p + n.
static void find_begin(struct grouped *g) {
    struct msc_attention *a = &g->a;
    struct msc_compose *c = &a->c;
    struct msc_onnx_node *n = c->node;
    double given = -1;
    g->past_key = n->inputs[3];
    g->past_value = n->inputs[4];
    g->total = -1;
    if (g->past_key == NULL || g->past_value == NULL) {
        g->past_key = NULL;
        return;
    }
    int64_t batch = msc_compose_shape(c, g->past_key).dims[0];
    int64_t past = msc_compose_shape(c, g->past_key).dims[2];
    int64_t length = msc_compose_shape(c, a->q).dims[2];
    bool is_known = msc_onnx__scalar(&given, n->inputs[6]) && past >= 0 && length >= 0;
    int64_t total = is_known ? (int64_t)given : -1;
    if (is_known && total == length && past <= total) {
        g->past_key = NULL;
        return;
    }
    struct msc_value *one = msc_compose_scalar(c, MSC_DTYPE_I64, 1);
    g->lengths = msc_compose_cast(c, n->inputs[5], MSC_DTYPE_I64);
    g->lengths = MSC_COMPOSE(c, MSC_OP_ADD, g->lengths, one);
    g->lengths = msc_compose_reshape(c, g->lengths, (int64_t[]){-1}, 1);
    if (is_known && total != past + length) {
        g->total = total > past ? total : past;
    }
    if (is_known && total == length) {
        g->begin = msc_compose_ints(c, (int64_t[]){0}, 1);
    } else {
        g->begin = MSC_COMPOSE(c, MSC_OP_SUBTRACT, g->lengths, msc_compose_length(c, a->q, 2));
    }
    g->is_appended = c->status == MSC_OK && g->total < 0 &&
                     (batch == 1 || (is_known && are_all(g->lengths, past + length)));
    if (g->is_appended) {
        g->begin = msc_compose_reshape(c, msc_compose_length(c, g->past_key, 2), (int64_t[]){1}, 1);
    }
}

// Joins past and new keys or values [b, heads, n, d]; the past of each sequence ends at its
// `begin`. Element i of the result is past[i] if i < begin, new[i - begin] if i < begin + n, and
// else 0.
static struct msc_value *join_past(struct grouped *g, struct msc_value *past, struct msc_value *x) {
    struct msc_compose *c = &g->a.c;
    if (g->past_key == NULL || g->is_appended) {
        return g->past_key == NULL ? x : msc_compose_concat(c, past, x, 2);
    }
    static const int64_t turned[] = {0, 2, 1, 3};
    struct msc_value *old_length = msc_compose_length(c, past, 2);
    struct msc_value *new_length = msc_compose_length(c, x, 2);
    struct msc_value *all = msc_compose_concat(c, past, x, 2);
    struct msc_value *zero = MSC_COMPOSE(c, MSC_OP_MULTIPLY, msc_compose_slice(c, x, 2, 0, 1, 1),
                                         msc_compose_scalar(c, g->a.dtype, 0));
    struct msc_value *last = MSC_COMPOSE(c, MSC_OP_ADD, old_length, new_length), *index;
    if (g->total >= 0) {
        index = MSC_COMPOSE(c, MSC_OP_ARANGE, msc_compose_scalar(c, MSC_DTYPE_I64, 0),
                            msc_compose_scalar(c, MSC_DTYPE_I64, (double)g->total),
                            msc_compose_scalar(c, MSC_DTYPE_I64, 1));
    } else {
        index = msc_attention_count(c, all, 2);
    }
    struct msc_value *begin = msc_compose_unsqueeze(c, g->begin, 1);
    struct msc_value *shifted = MSC_COMPOSE(c, MSC_OP_SUBTRACT, index, begin);
    struct msc_value *fresh = MSC_COMPOSE(c, MSC_OP_ADD, shifted, old_length);
    fresh =
        MSC_COMPOSE(c, MSC_OP_WHERE, MSC_COMPOSE(c, MSC_OP_LESS, shifted, new_length), fresh, last);
    index = MSC_COMPOSE(c, MSC_OP_WHERE, MSC_COMPOSE(c, MSC_OP_LESS, index, begin), index, fresh);
    all = msc_compose_permute(c, msc_compose_concat(c, all, zero, 2), turned, 4);
    // Gives every sequence its own row of indices, even if all sequences have the same begin.
    msc_onnx__set_int(c->node, "end", 1);
    struct msc_value *dims = MSC_COMPOSE(c, MSC_OP_SHAPE_OF, x);
    dims = msc_compose_concat(c, dims, msc_compose_ints(c, (int64_t[]){1, 1}, 2), 0);
    index = MSC_COMPOSE(c, MSC_OP_BROADCAST_TO, msc_compose_unsqueeze(c, index, 2), dims);
    msc_onnx__set_int(c->node, "batch_dims", 1);
    return msc_compose_permute(c, MSC_COMPOSE(c, MSC_OP_GATHER_ND, all, index), turned, 4);
}

// Positions of the new keys: [b, n], or [1, n] if they are equal in all sequences.
static struct msc_value *find_positions(struct grouped *g) {
    struct msc_compose *c = &g->a.c;
    struct msc_value *given = msc_onnx__input(c->node, 9);
    if (given != NULL) {
        return given;
    }
    struct msc_value *positions = msc_compose_unsqueeze(c, msc_attention_count(c, g->a.q, 2), 0);
    return g->past_key == NULL
               ? positions
               : MSC_COMPOSE(c, MSC_OP_ADD, positions, msc_compose_unsqueeze(c, g->begin, 1));
}

static enum msc_status rotate(struct grouped *g) {
    struct msc_attention *a = &g->a;
    struct msc_compose *c = &a->c;
    struct msc_onnx_node *n = c->node;
    struct msc_value *cosine = msc_onnx__input(n, 7), *sine = msc_onnx__input(n, 8);
    if (cosine == NULL || sine == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "do_rotary is 1, but cos_cache or sin_cache is missing");
    }
    struct msc_value *positions = find_positions(g);
    struct msc_rotary r = {
        .is_interleaved = g->is_interleaved,
        .size = 2 * msc_compose_shape(c, cosine).dims[1],
        .cosine = msc_compose_unsqueeze(c, msc_compose_take(c, cosine, positions, 0), 1),
        .sine = msc_compose_unsqueeze(c, msc_compose_take(c, sine, positions, 0), 1),
    };
    if (c->status == MSC_OK && (r.size < 2 || r.size > g->size)) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "cos_cache has %lld columns, expected 1 to half of the %lld elements of a head",
            (long long)r.size / 2, (long long)g->size);
    }
    a->q = msc_compose_rotate(c, &r, a->q);
    a->k = msc_compose_rotate(c, &r, a->k);
    return c->status;
}

// Defines output 3 if it is requested: the scores, with 0 for masked keys, or the probabilities.
static enum msc_status show(struct grouped *g, struct msc_value *p) {
    struct msc_compose *c = &g->a.c;
    int64_t shown;
    MSC_TRY(msc_onnx__int(&shown, c->node, "qk_output", 0));
    if (shown == 1) {
        struct msc_value *low = msc_compose_scalar(c, g->a.dtype, -(double)INFINITY);
        p = MSC_COMPOSE(c, MSC_OP_WHERE, MSC_COMPOSE(c, MSC_OP_EQUAL, g->a.masked, low),
                        msc_compose_scalar(c, g->a.dtype, 0), g->a.masked);
    }
    if (shown != 0) {
        msc_compose_extra(c, 3, p);
    }
    return c->status;
}

enum msc_status msc_onnx__group_query_attention(struct msc_onnx_node *n) {
    struct grouped g = {0};
    struct msc_attention *a = &g.a;
    struct msc_compose *c = &a->c;
    MSC_TRY(msc_onnx__require(n, 1 << 0 | 1 << 5 | 1 << 6));
    MSC_TRY(read_attrs(&g, n));
    MSC_TRY(read_heads(&g));
    find_begin(&g);
    MSC_TRY(c->status);
    if (g.is_rotary) {
        MSC_TRY(rotate(&g));
    }
    a->k = join_past(&g, g.past_key, a->k);
    a->v = join_past(&g, g.past_value, a->v);
    msc_compose_extra(c, 1, a->k);
    msc_compose_extra(c, 2, a->v);
    if (g.past_key != NULL) {
        a->offset = msc_compose_reshape(c, g.begin, (int64_t[]){-1, 1, 1, 1}, 4);
        if (!a->is_causal) {
            a->kept_length = g.lengths;
        }
    }
    a->mask = msc_onnx__input(n, 10);
    a->k = msc_attention_repeat_heads(a, a->k);
    a->v = msc_attention_repeat_heads(a, a->v);
    struct msc_value *p = msc_attention_probabilities(a);
    MSC_TRY(show(&g, p));
    return msc_attention_last(a, p);
}
