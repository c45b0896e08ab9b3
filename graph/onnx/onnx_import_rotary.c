// Rotary embedding of ONNX and of com.microsoft, and msc_compose_rotate for other translators.
// Formulas: ONNX's specification of RotaryEmbedding, and ONNX Runtime's documentation.
#include "graph/onnx/onnx_import_attention.h"
#include "graph/onnx/onnx_import_rotary.h"

// The rotated elements without the rest of the head.
static struct msc_value *rotate(struct msc_compose *c, const struct msc_rotary *r,
                                struct msc_value *x) {
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

struct msc_value *msc_compose_rotate(struct msc_compose *c, const struct msc_rotary *r,
                                     struct msc_value *x) {
    int64_t width = msc_compose_shape(c, x).dims[3];
    struct msc_value *out = rotate(c, r, x);
    return r->size == width
               ? out
               : msc_compose_concat(c, out, msc_compose_slice(c, x, 3, r->size, width, 1), 3);
}

// The node's tensor as [b, s, h, d] or [b, h, s, d].
struct tensor {
    struct msc_compose c;
    struct msc_value *x;
    bool has_sequence_first; // x is [b, s, h, d]
    int rank;                // of the node's input, 3 or 4
};

// Sets t->x to the node's input, with a head axis if it has none. `heads` is the number of heads
// and `width` the size of a head; one of them may be 0 (unknown).
static enum msc_status split(struct tensor *t, int64_t heads, int64_t width) {
    struct msc_onnx_node *n = t->c.node;
    struct msc_onnx_shape shape = msc_onnx__shape(n, n->inputs[0]);
    int64_t length = shape.n_dims > 0 ? shape.dims[shape.n_dims - 1] : -1;
    t->x = n->inputs[0];
    t->rank = shape.n_dims;
    t->has_sequence_first = shape.n_dims == 3;
    if (shape.n_dims == 3 && length > 0 && (heads > 0 || width > 0)) {
        int64_t part = heads > 0 ? heads : width;
        if (length % part != 0) {
            return MSC_FAIL(MSC_E_FORMAT, "%lld values cannot be divided into heads of %lld",
                            (long long)length, (long long)(heads > 0 ? length / heads : width));
        }
        heads = heads > 0 ? heads : length / width;
        width = length / heads;
        t->x = msc_compose_reshape(&t->c, t->x, (int64_t[]){0, 0, heads, width}, 4);
    } else if (shape.n_dims != 4 || length < 0) {
        return MSC_FAIL(MSC_E_FORMAT, "expected an input of 3 dimensions and num_heads, or of 4 "
                                      "dimensions, with a known size of a head");
    }
    return t->c.status;
}

static enum msc_status finish(struct tensor *t, struct msc_rotary *r) {
    int64_t width = msc_compose_shape(&t->c, t->x).dims[3];
    r->size = r->size == 0 ? width : r->size;
    if (r->size < 2 || r->size > width || r->size % 2 != 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%lld elements of a head of %lld are rotated, expected an even number",
                        (long long)r->size, (long long)width);
    }
    struct msc_value *out = msc_compose_rotate(&t->c, r, t->x);
    if (t->rank == 4) {
        return MSC_COMPOSE_LAST(&t->c, MSC_OP_IDENTITY, out);
    }
    msc_onnx__set_ints(t->c.node, "shape", (int64_t[]){0, 0, -1}, 3);
    return MSC_COMPOSE_LAST(&t->c, MSC_OP_RESHAPE, out);
}

// The sines or cosines of each element, with an axis for the heads. With positions, takes these
// rows of the cache [max position, size / 2]; without, the cache is already [b, s, size / 2].
static struct msc_value *angles(struct tensor *t, struct msc_value *cache,
                                struct msc_value *positions) {
    if (positions != NULL) {
        cache = msc_compose_take(&t->c, cache, positions, 0);
    }
    return msc_compose_unsqueeze(&t->c, cache, t->has_sequence_first ? 2 : 1);
}

enum msc_status msc_onnx__rotary_embedding(struct msc_onnx_node *n) {
    struct tensor t = {.c = {.node = n}};
    struct msc_rotary r = {0};
    int64_t interleaved, heads;
    MSC_TRY(msc_onnx__int(&interleaved, n, "interleaved", 0));
    MSC_TRY(msc_onnx__int(&heads, n, "num_heads", 0));
    MSC_TRY(msc_onnx__int(&r.size, n, "rotary_embedding_dim", 0));
    r.is_interleaved = interleaved != 0;
    MSC_TRY(split(&t, heads, 0));
    r.cosine = angles(&t, n->inputs[1], msc_onnx__input(n, 3));
    r.sine = angles(&t, n->inputs[2], msc_onnx__input(n, 3));
    return finish(&t, &r);
}

// Positions are [b, s], or the position of the first element.
enum msc_status msc_onnx__contrib_rotary_embedding(struct msc_onnx_node *n) {
    struct tensor t = {.c = {.node = n}};
    struct msc_rotary r = {0};
    int64_t interleaved, heads, rotated, is_packed;
    MSC_TRY(msc_onnx__int(&interleaved, n, "interleaved", 0));
    MSC_TRY(msc_onnx__int(&heads, n, "num_heads", 0));
    MSC_TRY(msc_onnx__int(&rotated, n, "rotary_embedding_dim", 0));
    MSC_TRY(msc_onnx__int(&is_packed, n, "is_packed_batching", 0));
    int64_t half = msc_onnx__shape(n, n->inputs[2]).dims[1];
    if (is_packed != 0 || half < 1 || half > INT32_MAX) {
        return MSC_ONNX_UNSUPPORTED("is_packed_batching is %lld, and the cache has %lld columns, "
                                    "expected 0, and a known number",
                                    (long long)is_packed, (long long)half);
    }
    r.is_interleaved = interleaved != 0;
    r.size = 2 * half;
    MSC_TRY(split(&t, rotated > 0 ? heads : 0, r.size));
    struct msc_value *positions = n->inputs[1];
    if (msc_onnx__shape(n, positions).n_dims < 2) {
        struct msc_value *count = msc_attention_count(&t.c, t.x, t.has_sequence_first ? 1 : 2);
        positions = msc_compose_cast(&t.c, positions, MSC_DTYPE_I64);
        positions = MSC_COMPOSE(&t.c, MSC_OP_ADD, positions, count);
        positions = msc_compose_unsqueeze(&t.c, positions, 0);
    }
    r.cosine = angles(&t, n->inputs[2], positions);
    r.sine = angles(&t, n->inputs[3], positions);
    return finish(&t, &r);
}
