// Finds the axis of samples of each input. Inputs that have the symbol for the number of samples
// have it there, at any axis: [samples, 80], or [layers, samples, hidden] for the state of a
// recurrent layer. An input without this symbol may have a length of its own that must be equal to
// the number of samples, as in models whose open lengths have no names. The network's shapes
// decide: it can be bound only if both lengths are equal.
#include "model/model_internal.h"

#include "graph/passes/bind.h"

#include <string.h>

#define MOST_INPUTS 64
#define FEW 2
#define MORE 3
#define OTHER_LENGTH 64 // of axes that do not count samples

// ---- By the symbol ----------------------------------------------------------------------------

static bool has_symbol(const struct msc_graph *g, int32_t input, int32_t symbol, int *axis) {
    const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, input));
    for (int k = 0; k < t->n_dims; k++) {
        if (t->dims[k] < 0 && t->prims[k] == symbol) {
            *axis = k;
            return true;
        }
    }
    return false;
}

void msc_model__find_symbol_axes(struct msc_model *m) {
    int32_t symbol = msc_graph_sample_symbol(m->graph);
    for (size_t i = 0; symbol != MSC_NO_ID && i < m->n_inputs; i++) {
        m->specs[i].is_batched = has_symbol(m->graph, (int32_t)i, symbol, &m->specs[i].axis);
    }
}

// ---- By the shapes ----------------------------------------------------------------------------

// The axis that may count samples: the first open one. -1: none.
static int candidate_of(const struct msc_input_spec *spec) {
    for (int k = 0; !spec->is_batched && k < spec->n_dims; k++) {
        if (spec->dims[k] < 0) {
            return k;
        }
    }
    return -1;
}

// Can the network be bound to n samples if input `odd` has n_odd in its candidate axis?
static bool can_bind(const struct msc_model *m, int64_t n, size_t odd, int64_t n_odd) {
    struct msc_input_shape shapes[MOST_INPUTS];
    struct msc_graph *bound = NULL;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_input_spec *spec = &m->specs[i];
        int axis = spec->is_batched ? spec->axis : candidate_of(spec);
        shapes[i].n_dims = spec->n_dims;
        for (int k = 0; k < spec->n_dims; k++) {
            int64_t open = k == axis ? (i == odd ? n_odd : n) : OTHER_LENGTH;
            shapes[i].dims[k] = spec->dims[k] < 0 ? open : spec->dims[k];
        }
    }
    bool is_bound = msc_graph_bind_shapes(&bound, m->graph, shapes, m->n_inputs) == MSC_OK;
    msc_graph_destroy(bound);
    return is_bound;
}

void msc_model__find_equal_axes(struct msc_model *m) {
    bool is_equal[MOST_INPUTS] = {false};
    size_t n_batched = 0, n_candidates = 0;
    for (size_t i = 0; i < m->n_inputs; i++) {
        n_batched += m->specs[i].is_batched;
        n_candidates += candidate_of(&m->specs[i]) >= 0;
    }
    if (n_batched == 0 || n_candidates == 0 || m->n_inputs > MOST_INPUTS ||
        !can_bind(m, FEW, 0, FEW) || !can_bind(m, MORE, 0, MORE)) {
        return;
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        is_equal[i] = candidate_of(&m->specs[i]) >= 0 && !can_bind(m, FEW, i, MORE);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (is_equal[i]) {
            m->specs[i].axis = candidate_of(&m->specs[i]);
            m->specs[i].is_batched = true;
        }
    }
}
