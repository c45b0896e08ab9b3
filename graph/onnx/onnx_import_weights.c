// Replaces weights of a file (msc_onnx_import_options), for example by retrained weights. All
// weights of a layer must be replaced together (graph/onnx/new_weights.h).
#include "graph/onnx/onnx_import_internal.h"

#include "graph/onnx/new_weights.h"

#include <string.h>

// Lookup tables for the file's graph.
struct layers {
    const Onnx__GraphProto *g;
    struct msc_graph_names makers;       // maps a value to the node that produces it
    struct msc_graph_names initializers; // maps a name to its initialiser
    int32_t *same; // [n_node] another node of the same layer, or the node itself
};

enum msc_status msc_onnx__check_weight_names(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    if (im->options->weights == NULL) {
        return MSC_OK;
    }
    const char **known =
        msc_arena_array(&im->builder.arena, g->n_initializer + 1, sizeof(known[0]));
    MSC_TRY(MSC_ALLOCATED(known));
    for (size_t i = 0; i < g->n_initializer; i++) {
        known[i] = g->initializer[i]->name;
    }
    return msc_new_weights__check_names(im->options->weights, known, g->n_initializer);
}

// ---- Layers -----------------------------------------------------------------------------------

// Operators with weights, and the range of inputs that may be weights.
static const struct {
    const char *op;
    size_t first, end;
} kinds[] = {
    {"Conv", 1, 3},
    {"ConvTranspose", 1, 3},
    {"Gemm", 1, 3},
    {"MatMul", 0, 2},
    {"Add", 0, 2}, // after a MatMul
    {"BatchNormalization", 1, 5},
    {"InstanceNormalization", 1, 3},
    {"LayerNormalization", 1, 3},
    {"GroupNormalization", 1, 3},
    {"LSTM", 1, 4},
    {"GRU", 1, 4},
    {"RNN", 1, 4},
};

static bool is_op(const Onnx__NodeProto *node, const char *op) {
    return node->op_type != NULL && strcmp(node->op_type, op) == 0;
}

static bool is_float(const Onnx__TensorProto *t) {
    return t->data_type == MSC_ONNX_FLOAT || t->data_type == MSC_ONNX_DOUBLE ||
           t->data_type == MSC_ONNX_FLOAT16 || t->data_type == MSC_ONNX_BFLOAT16;
}

// The node that produces a value, or MSC_NO_ID.
static int32_t maker_of(const struct layers *l, const char *name) {
    return name == NULL ? MSC_NO_ID : msc_graph__names_find(&l->makers, name);
}

// The initialiser that holds the value's elements, found through nodes that only move or cast them;
// NULL if there is none.
static const Onnx__TensorProto *weight_of(const struct layers *l, const char *name) {
    static const char *const moves[] = {"Identity", "Transpose", "Cast"};
    for (size_t depth = 0; name != NULL && depth < l->g->n_node + 1; depth++) {
        int32_t i = msc_graph__names_find(&l->initializers, name);
        if (i != MSC_NO_ID) {
            return is_float(l->g->initializer[i]) ? l->g->initializer[i] : NULL;
        }
        int32_t node = maker_of(l, name);
        bool is_move = false;
        for (size_t k = 0; node != MSC_NO_ID && k < sizeof moves / sizeof moves[0]; k++) {
            is_move = is_move || is_op(l->g->node[node], moves[k]);
        }
        name = is_move && l->g->node[node]->n_input > 0 ? l->g->node[node]->input[0] : NULL;
    }
    return NULL;
}

static int32_t layer_of(const struct layers *l, int32_t node) {
    while (l->same[node] != node) {
        node = l->same[node];
    }
    return node;
}

// True if the node belongs to the same layer as `maker`, which produces its input: a normalisation
// after a convolution or product, or an addition after a product.
static bool follows(const struct layers *l, const Onnx__NodeProto *node, int32_t maker) {
    static const char *const layers[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    if (is_op(node, "Add")) {
        return is_op(l->g->node[maker], "MatMul");
    }
    bool is_behind = is_op(l->g->node[maker], "Add") && layer_of(l, maker) != maker;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        is_behind = is_behind || is_op(l->g->node[maker], layers[i]);
    }
    return is_op(node, "BatchNormalization") && is_behind;
}

static enum msc_status find_layers(struct layers *l, struct msc_arena *arena) {
    l->same = msc_arena_array(arena, l->g->n_node + 1, sizeof(l->same[0]));
    MSC_TRY(MSC_ALLOCATED(l->same));
    for (size_t i = 0; i < l->g->n_initializer; i++) {
        MSC_TRY(msc_graph__names_put(&l->initializers, l->g->initializer[i]->name, (int32_t)i));
    }
    for (size_t i = 0; i < l->g->n_node; i++) {
        const Onnx__NodeProto *node = l->g->node[i];
        l->same[i] = (int32_t)i;
        for (size_t k = 0; k < node->n_input; k++) {
            int32_t maker = maker_of(l, node->input[k]); // producers precede their consumers
            if (maker != MSC_NO_ID && follows(l, node, maker)) {
                l->same[i] = layer_of(l, maker);
            }
        }
        for (size_t k = 0; k < node->n_output; k++) {
            MSC_TRY(msc_graph__names_put(&l->makers, node->output[k], (int32_t)i));
        }
    }
    return MSC_OK;
}

// The n-th weight of a node; NULL if the node has fewer weights.
static const Onnx__TensorProto *weight_at(const struct layers *l, int32_t node, size_t n) {
    const Onnx__NodeProto *p = l->g->node[node];
    bool is_sum = is_op(p, "Add") && layer_of(l, node) == node;
    for (size_t k = 0; !is_sum && k < sizeof kinds / sizeof kinds[0]; k++) {
        if (is_op(p, kinds[k].op)) {
            size_t at = kinds[k].first + n;
            return at < kinds[k].end && at < p->n_input ? weight_of(l, p->input[at]) : NULL;
        }
    }
    return NULL;
}

enum msc_status msc_onnx__check_weight_layers(struct msc_onnx_import *im) {
    enum { MOST = 4 };
    struct layers l = {.g = im->proto};
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    size_t n_nodes = l.g->n_node, n = 0;
    if (im->options->weights == NULL) {
        return MSC_OK;
    }
    struct msc_layer_weight *list = msc_arena_array(&arena, n_nodes * MOST + 1, sizeof(list[0]));
    status =
        list != NULL ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory while checking new weights");
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(find_layers(&l, &arena));
    for (size_t i = 0; i < n_nodes * MOST; i++) {
        int32_t node = (int32_t)(i / MOST);
        const Onnx__TensorProto *w = weight_at(&l, node, i % MOST);
        if (w != NULL) {
            list[n++] = (struct msc_layer_weight){w->name, layer_of(&l, node)};
        }
    }
    status = msc_new_weights__check_layers(im->options->weights, list, n, n_nodes);
out:
    msc_graph__names_finish(&l.makers);
    msc_graph__names_finish(&l.initializers);
    msc_arena_finish(&arena);
    return status;
}
