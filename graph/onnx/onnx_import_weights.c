// Other weights in place of a file's (msc_onnx_import_options): what training leaves of a network. A layer's come
// together: new elements of a convolution beside an old batch normalisation, or beside a bias into which one
// went, would be a network that nobody has trained.
#include "graph/onnx/onnx_import_internal.h"

#include "data/npy.h"
#include "graph/onnx/load.h"

#include <string.h>

// What the check knows of the file's graph.
struct layers {
    const Onnx__GraphProto *g;
    const struct msc_array_list *weights;
    struct msc_graph_names makers;       // of values: nodes
    struct msc_graph_names initializers; // by name
    int32_t *same;                       // [n_node] a node of the same layer, or itself
};

// ---- Names that there are none of -------------------------------------------------------------

// How many batches a normalisation was trained on: nothing that computes.
bool msc_weight_is_counter(const char *name) {
    static const char ending[] = "num_batches_tracked";
    size_t n = strlen(name), n_ending = sizeof ending - 1;
    return n >= n_ending && strcmp(name + n - n_ending, ending) == 0 &&
           (n == n_ending || name[n - n_ending - 1] == '.');
}

// Do the new weights have statistics of what the name begins with?
static bool is_of_norm(const struct msc_array_list *weights, const char *name, int n_stem) {
    static const char *const endings[] = {".running_mean", ".running_var"};
    for (size_t i = 0; i < weights->n; i++) {
        for (size_t k = 0; k < 2; k++) {
            if (strncmp(weights->names[i], name, (size_t)n_stem) == 0 &&
                strcmp(weights->names[i] + n_stem, endings[k]) == 0) {
                return true;
            }
        }
    }
    return false;
}

static int stem_length(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot != NULL ? (int)(dot - name) : 0;
}

enum msc_status msc_weight_fail_unknown(const struct msc_array_list *weights, const char *name) {
    int n_stem = stem_length(name);
    if (n_stem > 0 && is_of_norm(weights, name, n_stem)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "there is no '%s' for the new weights: when this file was made, the batch "
            "normalisation %.*s went into another layer, for which weights that were "
            "trained with it are none; export the model with it (torch.onnx.export: "
            "optimize=False, or training=TrainingMode.PRESERVE), or with the new weights",
            name, n_stem, name);
    }
    return MSC_FAIL(MSC_E_INVALID, "there is no initialiser '%s' for the new weights", name);
}

enum msc_status msc_onnx__check_weight_names(struct msc_onnx_import *im) {
    const struct msc_array_list *weights = im->options->weights;
    const char *unknown = NULL; // of a normalisation, if there is one: it says why
    for (size_t i = 0; weights != NULL && i < weights->n; i++) {
        const char *name = weights->names[i];
        bool is_known = msc_onnx__is_initializer(im, name) || msc_weight_is_counter(name);
        bool says_why = !is_known && is_of_norm(weights, name, stem_length(name));
        unknown = !is_known && (unknown == NULL || says_why) ? name : unknown;
    }
    return unknown == NULL ? MSC_OK : msc_weight_fail_unknown(weights, unknown);
}

// ---- Layers -----------------------------------------------------------------------------------

// Operators that have weights, and which of their inputs are.
static const struct {
    const char *op;
    size_t first, end;
} kinds[] = {
    {"Conv", 1, 3},
    {"ConvTranspose", 1, 3},
    {"Gemm", 1, 3},
    {"MatMul", 0, 2},
    {"Add", 0, 2}, // behind a MatMul
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
    return t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
           t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
           t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
           t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
}

// The node that makes a value, or MSC_NO_ID.
static int32_t maker_of(const struct layers *l, const char *name) {
    return name == NULL ? MSC_NO_ID : msc_graph__names_find(&l->makers, name);
}

// The initialiser that a value holds, at times moved; NULL: none.
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

// A normalisation belongs to the layer before it, a sum to the product before it.
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
    if (l->same == NULL) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for new weights");
    }
    for (size_t i = 0; i < l->g->n_initializer; i++) {
        MSC_TRY(msc_graph__names_put(&l->initializers, l->g->initializer[i]->name, (int32_t)i));
    }
    for (size_t i = 0; i < l->g->n_node; i++) {
        const Onnx__NodeProto *node = l->g->node[i];
        l->same[i] = (int32_t)i;
        for (size_t k = 0; k < node->n_input; k++) {
            int32_t maker = maker_of(l, node->input[k]); // nodes come behind what they read
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

// The n-th weight of a node, or NULL.
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

static enum msc_status check_layers(const struct layers *l, const char **given) {
    enum { MOST = 4 };
    for (int32_t i = 0; i < (int32_t)l->g->n_node; i++) {
        for (size_t n = 0; n < MOST; n++) {
            const Onnx__TensorProto *w = weight_at(l, i, n);
            if (w != NULL && msc_array_list_find(l->weights, w->name) != NULL) {
                given[layer_of(l, i)] = w->name;
            }
        }
    }
    for (int32_t i = 0; i < (int32_t)l->g->n_node; i++) {
        const char *name = given[layer_of(l, i)];
        for (size_t n = 0; name != NULL && n < MOST; n++) {
            const Onnx__TensorProto *w = weight_at(l, i, n);
            if (w != NULL && msc_array_list_find(l->weights, w->name) == NULL) {
                return MSC_FAIL(MSC_E_INVALID,
                                "the new weights have '%s' but not '%s', which belongs to the same "
                                "layer; give all of a layer, or export the model with the new "
                                "weights",
                                name, w->name);
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__check_weight_layers(struct msc_onnx_import *im) {
    struct layers l = {.g = im->proto, .weights = im->options->weights};
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    if (l.weights == NULL) {
        return MSC_OK;
    }
    const char **given = msc_arena_array(&arena, l.g->n_node + 1, sizeof(given[0]));
    status = given != NULL ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for new weights");
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(find_layers(&l, &arena));
    status = check_layers(&l, given);
out:
    msc_graph__names_finish(&l.makers);
    msc_graph__names_finish(&l.initializers);
    msc_arena_finish(&arena);
    return status;
}
