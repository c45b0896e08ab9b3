#include "graph/discontinuity.h"

#include "base/alloc.h"

enum { NOT_ASKED, WANTED, DONE };

static bool is_discontinuous(enum msc_op op) {
    return op == MSC_OP_EQUAL || op == MSC_OP_GREATER || op == MSC_OP_LESS || op == MSC_OP_ARGMAX ||
           op == MSC_OP_ROUND || op == MSC_OP_FLOOR || op == MSC_OP_CEIL || op == MSC_OP_NONZERO ||
           op == MSC_OP_NON_MAX_SUPPRESSION || op == MSC_OP_TOPK;
}

// The greatest values change as little as what they are taken from; only their places jump.
static bool is_sorted_values(const struct msc_joint *j, int32_t tensor) {
    return j->op == MSC_OP_TOPK && j->outputs[0] == tensor;
}

static bool gives_lengths(enum msc_op op) {
    return op == MSC_OP_SHAPE_OF || op == MSC_OP_SIZE;
}

// Whole numbers do not change a little, nor do sizes: only what jumps on other floats counts.
static bool jumps_on_floats(const struct msc_discontinuity *s, const struct msc_joint *j) {
    for (int32_t i = 0; is_discontinuous(j->op) && i < j->n_inputs; i++) {
        if (s->varies[j->inputs[i]] &&
            msc_dtype_is_float(msc_graph_tensor(s->g, j->inputs[i])->dtype)) {
            return true;
        }
    }
    return false;
}

static void look_at_joint(struct msc_discontinuity *s, const struct msc_joint *j) {
    bool varies = false;
    int32_t above = MSC_NO_ID;
    for (int32_t i = 0; i < j->n_inputs && !gives_lengths(j->op); i++) {
        varies = varies || s->varies[j->inputs[i]];
        above = above == MSC_NO_ID ? s->behind[j->inputs[i]] : above;
    }
    bool jumps = jumps_on_floats(s, j);
    for (int32_t i = 0; i < j->n_outputs; i++) {
        int32_t t = j->outputs[i];
        s->varies[t] = varies || j->op == MSC_OP_INPUT;
        s->behind[t] = jumps && !is_sorted_values(j, t) ? j->id : above;
    }
}

static enum msc_status init(struct msc_discontinuity *s) {
    size_t n = (size_t)msc_graph_n_tensors(s->g) + 1;
    s->varies = msc_alloc_zero(n, sizeof(s->varies[0]));
    s->behind = msc_alloc_zero(n, sizeof(s->behind[0]));
    s->asked = msc_alloc_zero(n, sizeof(s->asked[0]));
    s->found = msc_alloc_zero(n, sizeof(s->found[0]));
    if (!s->varies || !s->behind || !s->asked || !s->found) {
        return MSC_FAIL(MSC_E_NOMEM, "graph %s: out of memory", msc_graph_name(s->g));
    }
    for (size_t i = 0; i < n; i++) {
        s->behind[i] = MSC_NO_ID;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(s->g); i++) {
        look_at_joint(s, msc_graph_joint(s->g, i));
    }
    return MSC_OK;
}

enum msc_status msc_discontinuity_create(struct msc_discontinuity **out,
                                         const struct msc_graph *model, const struct msc_graph *g) {
    struct msc_discontinuity *s = msc_alloc_zero(1, sizeof *s);
    if (!s) {
        return MSC_FAIL(MSC_E_NOMEM, "graph %s: out of memory", msc_graph_name(g));
    }
    s->model = model;
    s->g = g;
    enum msc_status status = init(s);
    if (status != MSC_OK) {
        msc_discontinuity_destroy(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

void msc_discontinuity_destroy(struct msc_discontinuity *s) {
    if (s) {
        msc_free(s->varies);
        msc_free(s->behind);
        msc_free(s->asked);
        msc_free(s->found);
        msc_free(s);
    }
}

int32_t msc_discontinuity_above(const struct msc_discontinuity *s, int32_t tensor) {
    return s->behind[tensor];
}

// ---- What to compare instead ------------------------------------------------------------------

const char *msc_discontinuity_name(const struct msc_discontinuity *s, int32_t tensor) {
    const char *name = msc_tensor_label(msc_graph_tensor(s->g, tensor));
    return msc_graph_find_tensor(s->model, name) != MSC_NO_ID ? name : NULL;
}

// Can it be compared, sample by sample, and named? An input is the same in each trial.
static bool is_steady(const struct msc_discontinuity *s, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(s->g, tensor);
    return t->dtype == MSC_DTYPE_F32 && s->varies[tensor] && s->behind[tensor] == MSC_NO_ID &&
           t->producer != MSC_NO_ID && msc_graph_joint(s->g, t->producer)->op != MSC_OP_INPUT &&
           (s->g == s->model || msc_tensor_n_elements(t) >= 0) && msc_discontinuity_name(s, tensor);
}

// A part of its first input, or all of it in other places.
static bool only_moves(const struct msc_joint *j, int32_t tensor) {
    switch (j->op) {
    case MSC_OP_RESHAPE:
    case MSC_OP_FLATTEN:
    case MSC_OP_PERMUTE_DIMS:
    case MSC_OP_EXPAND_DIMS:
    case MSC_OP_SQUEEZE:
    case MSC_OP_SPLIT:
    case MSC_OP_STRIDED_SLICE:
    case MSC_OP_TAKE:
    case MSC_OP_GATHER_ELEMENTS:
    case MSC_OP_GATHER_ND:
        return true;
    default:
        return is_sorted_values(j, tensor);
    }
}

// The whole that a steady tensor is a part of.
static int32_t whole_of(const struct msc_discontinuity *s, int32_t tensor) {
    for (;;) {
        const struct msc_joint *j = msc_graph_joint(s->g, msc_graph_tensor(s->g, tensor)->producer);
        if (!only_moves(j, tensor) || !is_steady(s, j->inputs[0])) {
            return tensor;
        }
        tensor = j->inputs[0];
    }
}

static void want(struct msc_discontinuity *s, int32_t tensor) {
    if (s->asked[tensor] == NOT_ASKED) {
        s->asked[tensor] = WANTED;
    }
}

static void find(struct msc_discontinuity *s, int32_t tensor) {
    if (s->asked[tensor] != DONE) {
        s->asked[tensor] = DONE;
        s->found[s->n_found++] = tensor;
    }
}

// A tensor that is wanted, or, where it jumps, all that it is made of.
static void take(struct msc_discontinuity *s, const struct msc_joint *j, int32_t tensor) {
    if (is_steady(s, tensor)) {
        find(s, whole_of(s, tensor));
    }
    for (int32_t i = 0; !is_steady(s, tensor) && i < j->n_inputs; i++) {
        want(s, j->inputs[i]);
    }
    s->asked[tensor] = DONE;
}

void msc_discontinuity_collect(struct msc_discontinuity *s, int32_t tensor) {
    want(s, tensor);
    for (int32_t i = msc_graph_tensor(s->g, tensor)->producer; i != MSC_NO_ID && i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(s->g, i);
        for (int32_t k = 0; k < j->n_outputs; k++) {
            if (s->asked[j->outputs[k]] == WANTED) {
                take(s, j, j->outputs[k]);
            }
        }
    }
}
