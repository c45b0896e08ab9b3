// Symbolic lengths of inputs: the symbol that counts samples, and the names that can be bound to
// numbers, which include inputs of one integer, as these may select a branch.
#include "graph/graph_internal.h"

#include "base/str.h"

#include <string.h>

// ---- Samples ----------------------------------------------------------------------------------

// True if each input with dims has this symbol as a length.
static bool is_in_all_inputs(const struct msc_graph *g, int32_t prim) {
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const struct msc_tensor *t = &g->tensors[g->inputs[i]]->tensor;
        bool is_in = t->n_dims == 0;
        for (int d = 0; d < t->n_dims; d++) {
            is_in = is_in || (t->dims[d] < 0 && t->prims[d] == prim);
        }
        if (!is_in) {
            return false;
        }
    }
    return true;
}

// The number of sequences of the first recurrent joint, if it is a symbol. Else MSC_NO_ID.
static int32_t symbol_of_sequences(const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        int64_t layout;
        if ((j->op == MSC_OP_RNN || j->op == MSC_OP_GRU || j->op == MSC_OP_LSTM) &&
            msc_joint_attr_i64(j, "layout", &layout)) {
            const struct msc_tensor *x = msc_graph_tensor(g, j->operands[0]);
            int axis = layout == 0 ? 1 : 0;
            return x->n_dims == 3 && x->dims[axis] < 0 ? x->prims[axis] : MSC_NO_ID;
        }
    }
    return MSC_NO_ID;
}

static int32_t first_symbol(const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const struct msc_tensor *t = &g->tensors[g->inputs[i]]->tensor;
        if (t->n_dims > 0 && t->dims[0] < 0) {
            return t->prims[0];
        }
    }
    return MSC_NO_ID;
}

// A recurrent network with the steps first has the samples on the second axis, in its states too.
int32_t msc_graph_sample_symbol(const struct msc_graph *g) {
    int32_t symbol = first_symbol(g);
    if (g->n_inputs > 1 && (symbol == MSC_NO_ID || !is_in_all_inputs(g, symbol))) {
        int32_t sequences = symbol_of_sequences(g);
        symbol = sequences != MSC_NO_ID && is_in_all_inputs(g, sequences) ? sequences : symbol;
    }
    return symbol;
}

// ---- Names that can be bound ------------------------------------------------------------------

static bool is_length(const struct msc_graph *g, int32_t prim) {
    const struct msc_prim *p = g->prims[prim];
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const struct msc_tensor *t = &g->tensors[g->inputs[i]]->tensor;
        for (int d = 0; d < t->n_dims; d++) {
            if (t->prims[d] == prim && strcmp(p->optype, "shape") == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool is_whole_number(const struct msc_tensor *t) {
    bool is_whole = msc_dtype_is_integer(t->dtype) || t->dtype == MSC_DTYPE_BOOL;
    return is_whole && msc_tensor_n_elements(t) == 1 && t->alias[0] != '\0';
}

enum msc_status msc_graph_bindables(const char *const **out, size_t *n, const struct msc_graph *g,
                                    struct msc_arena *arena) {
    size_t n_most = (size_t)g->n_prims + (size_t)g->n_inputs;
    const char **names = msc_arena_array(arena, n_most + 1, sizeof(names[0]));
    MSC_TRY(MSC_ALLOCATED(names));
    *n = 0;
    for (int32_t i = 0; i < g->n_prims; i++) {
        if (is_length(g, i)) {
            names[(*n)++] = g->prims[i]->name;
        }
    }
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const struct msc_tensor *t = &g->tensors[g->inputs[i]]->tensor;
        if (is_whole_number(t)) {
            names[(*n)++] = t->alias;
        }
    }
    *out = names;
    return MSC_OK;
}

enum msc_status msc_graph__fail_binding(const char *place, const char *symbol,
                                        const char *const names[], size_t n) {
    struct msc_str all = {0};
    const char *near = msc_suggest(symbol, names, n);
    for (size_t i = 0; i < n; i++) {
        msc_str_item(&all, names[i]);
    }
    enum msc_status status =
        near != NULL
            ? MSC_FAIL(MSC_E_INVALID, "bind: nothing is called \"%s\", did you mean \"%s\"?",
                       symbol, near)
            : MSC_FAIL(MSC_E_INVALID,
                       "bind: no input or input dimension is called \"%s\"; possible %s: %s",
                       symbol, n == 1 ? "name" : "names", n > 0 ? msc_str_text(&all) : "none");
    if (place != NULL) {
        status = msc_status_prefix(status, "%s", place);
    }
    msc_str_finish(&all);
    return status;
}

enum msc_status msc_graph_fail_binding(const struct msc_graph *g, const char *place,
                                       const char *symbol) {
    struct msc_arena arena = {0};
    const char *const *names;
    size_t n;
    enum msc_status status = msc_graph_bindables(&names, &n, g, &arena);
    if (status == MSC_OK) {
        status = msc_graph__fail_binding(place, symbol, names, n);
    }
    msc_arena_finish(&arena);
    return status;
}
