// Normalisations of com.microsoft: of the sum of an input and a skip connection, and of a sum of
// embeddings. Semantics: ONNX Runtime's documentation.
#include "graph/onnx/onnx_import_attention.h"

// The sum of input, skip connection and bias (NULL: none). It is also output 3 of the node.
static struct msc_value *add_skip(struct msc_compose *c, struct msc_value *bias) {
    struct msc_onnx_node *n = c->node;
    struct msc_value *x = n->inputs[0];
    x = bias == NULL ? x : MSC_COMPOSE(c, MSC_OP_ADD, x, bias);
    x = MSC_COMPOSE(c, MSC_OP_ADD, x, n->inputs[1]);
    msc_compose_extra(c, 3, x);
    return x;
}

enum msc_status msc_onnx__skip_layer_norm(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float epsilon;
    MSC_TRY(msc_onnx__float(&epsilon, n, "epsilon", 1e-12f));
    struct msc_value *x = add_skip(&c, msc_onnx__input(n, 4));
    return msc_compose_last_norm(&c, x, n->inputs[2], msc_onnx__input(n, 3), epsilon);
}

enum msc_status msc_onnx__skip_rms_norm(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float epsilon;
    MSC_TRY(msc_onnx__float(&epsilon, n, "epsilon", 1e-12f));
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    if (rank < 1) {
        return MSC_FAIL(MSC_E_FORMAT, "the input has 0 dimensions, expected 1 or more");
    }
    struct msc_value *x = add_skip(&c, msc_onnx__input(n, 3));
    x = msc_compose_rms_norm(&c, x, rank - 1, epsilon, MSC_DTYPE_F32);
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, x, n->inputs[2]);
}

// Normalises the sum of the embeddings of words, positions and, if present, segments. Output 1 is
// the number of ones in each row of the mask, and output 2 the sum of embeddings.
enum msc_status msc_onnx__embed_layer_norm(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    MSC_TRY(msc_onnx__require(n, 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6));
    struct msc_value *words = n->inputs[0], *segments = n->inputs[1], *mask = msc_onnx__input(n, 7);
    struct msc_value *positions = msc_onnx__input(n, 8);
    float epsilon;
    MSC_TRY(msc_onnx__float(&epsilon, n, "epsilon", 1e-12f));
    if ((segments == NULL) != (n->inputs[4] == NULL)) {
        return MSC_FAIL(MSC_E_FORMAT, "only one of segment_ids and segment_embedding is given");
    }
    if (positions == NULL) {
        positions = msc_attention_count(&c, words, 1);
    }
    struct msc_value *x = MSC_COMPOSE(&c, MSC_OP_ADD, msc_compose_take(&c, n->inputs[2], words, 0),
                                      msc_compose_take(&c, n->inputs[3], positions, 0));
    if (segments != NULL) {
        x = MSC_COMPOSE(&c, MSC_OP_ADD, x, msc_compose_take(&c, n->inputs[4], segments, 0));
    }
    msc_compose_extra(&c, 2, x);
    if (mask != NULL) {
        msc_onnx__set_ints(n, "axis", (int64_t[]){1}, 1);
        msc_onnx__set_bool(n, "keepdims", false);
        msc_compose_extra(&c, 1, MSC_COMPOSE(&c, MSC_OP_SUM, mask));
    }
    return msc_compose_last_norm(&c, x, n->inputs[5], n->inputs[6], epsilon);
}
