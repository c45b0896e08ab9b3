#include "graph/discontinuity.h"

#include "base/alloc.h"

#include <string.h>

enum { NOT_ASKED, WANTED, DONE };

// ---- Discontinuities of operators -------------------------------------------------------------

// Which outputs of a joint may jump when its float inputs change slightly: none, those that are not
// floats, or all.
enum steps { STEPS_NONE, STEPS_INTEGERS, STEPS_ALL };

// One function for each name in the `discontinuity` column of ops.def.
typedef enum msc_status (*discontinuity_fn)(enum steps *out, const struct msc_joint *j);

// Operators that are continuous, read no floats, or quantise. A step as small as a quantisation's
// scale is ignored, and so is an overflow to infinity.
static enum msc_status discontinuity_none(enum steps *out, const struct msc_joint *j) {
    (void)j;
    *out = STEPS_NONE;
    return MSC_OK;
}

static enum msc_status discontinuity_all(enum steps *out, const struct msc_joint *j) {
    (void)j;
    *out = STEPS_ALL;
    return MSC_OK;
}

// Outputs that are results of comparisons, indices or counts jump. Float outputs of the same joint
// are continuous.
static enum msc_status discontinuity_integers(enum steps *out, const struct msc_joint *j) {
    (void)j;
    *out = STEPS_INTEGERS;
    return MSC_OK;
}

// The output jumps from one grid element to the next if `mode` selects the nearest element.
static enum msc_status discontinuity_nearest(enum steps *out, const struct msc_joint *j) {
    const char *mode = msc_joint_attr(j, "mode");
    *out = mode && strcmp(mode, "nearest") == 0 ? STEPS_ALL : STEPS_NONE;
    return MSC_OK;
}

// The output jumps between 0 and alpha, unless alpha is 0.
static enum msc_status discontinuity_threshold(enum steps *out, const struct msc_joint *j) {
    float alpha = 0.0f;
    msc_joint_attr_float(j, "alpha", &alpha);
    *out = alpha != 0.0f ? STEPS_ALL : STEPS_NONE;
    return MSC_OK;
}

// The output jumps between 0 and lambd - bias, unless lambd equals bias.
static enum msc_status discontinuity_shrink(enum steps *out, const struct msc_joint *j) {
    float bias = 0.0f, lambd = 0.0f;
    msc_joint_attr_float(j, "bias", &bias);
    msc_joint_attr_float(j, "lambd", &lambd);
    *out = bias != lambd ? STEPS_ALL : STEPS_NONE;
    return MSC_OK;
}

// Control flow: if any output of a body may jump, all outputs may, because a body may compute the
// condition or state that all outputs depend on.
static enum msc_status discontinuity_bodies(enum steps *out, const struct msc_joint *j) {
    *out = STEPS_NONE;
    for (int32_t i = 0; i < j->n_graphs && *out == STEPS_NONE; i++) {
        struct msc_discontinuity *body;
        MSC_TRY(msc_discontinuity_create(&body, j->graphs[i], j->graphs[i]));
        for (int32_t k = 0; k < msc_graph_n_outputs(body->g); k++) {
            bool is_behind =
                msc_discontinuity_above(body, msc_graph_output(body->g, k)) != MSC_NO_ID;
            *out = is_behind ? STEPS_ALL : *out;
        }
        msc_discontinuity_destroy(body);
    }
    return MSC_OK;
}

static const discontinuity_fn functions[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = discontinuity_##discontinuity,
#include "graph/ops.def"
#undef MSC_OP
};

// ---- Propagation through the graph ------------------------------------------------------------

// True if a float input depends on the network's inputs. Only such an input can change slightly and
// so cause a step; integers and lengths cannot.
static bool reads_varying_floats(const struct msc_discontinuity *s, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_inputs; i++) {
        if (s->varies[j->inputs[i]] &&
            msc_dtype_is_float(msc_graph_tensor(s->g, j->inputs[i])->dtype)) {
            return true;
        }
    }
    return false;
}

static enum msc_status follow_joint(struct msc_discontinuity *s, const struct msc_joint *j) {
    bool varies = false, reads_shape = msc_op_has_trait(j->op, MSC_TRAIT_SHAPE);
    int32_t above = MSC_NO_ID;
    for (int32_t i = 0; i < j->n_inputs && !reads_shape; i++) {
        varies = varies || s->varies[j->inputs[i]];
        above = above == MSC_NO_ID ? s->behind[j->inputs[i]] : above;
    }
    enum steps steps = STEPS_NONE;
    if (!reads_shape && reads_varying_floats(s, j)) {
        MSC_TRY(functions[j->op](&steps, j));
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        int32_t t = j->outputs[i];
        bool is_float = msc_dtype_is_float(msc_graph_tensor(s->g, t)->dtype);
        bool is_step = steps == STEPS_ALL || (steps == STEPS_INTEGERS && !is_float);
        s->varies[t] = varies || j->op == MSC_OP_INPUT;
        s->behind[t] = is_step ? j->id : above;
    }
    return MSC_OK;
}

static enum msc_status discontinuity_init(struct msc_discontinuity *s) {
    size_t n = (size_t)msc_graph_n_tensors(s->g) + 1;
    s->varies = msc_alloc_zero(n, sizeof(s->varies[0]));
    s->behind = msc_alloc_zero(n, sizeof(s->behind[0]));
    s->asked = msc_alloc_zero(n, sizeof(s->asked[0]));
    s->found = msc_alloc_zero(n, sizeof(s->found[0]));
    MSC_TRY(MSC_ALLOCATED(s->varies && s->behind && s->asked && s->found));
    for (size_t i = 0; i < n; i++) {
        s->behind[i] = MSC_NO_ID;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(s->g); i++) {
        MSC_TRY(follow_joint(s, msc_graph_joint(s->g, i)));
    }
    return MSC_OK;
}

enum msc_status msc_discontinuity_create(struct msc_discontinuity **out,
                                         const struct msc_graph *model, const struct msc_graph *g) {
    struct msc_discontinuity *s = msc_alloc_zero(1, sizeof *s);
    MSC_TRY(MSC_ALLOCATED(s));
    s->model = model;
    s->g = g;
    enum msc_status status = discontinuity_init(s);
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

// ---- Tensors to compare instead ---------------------------------------------------------------

const char *msc_discontinuity_name(const struct msc_discontinuity *s, int32_t tensor) {
    const char *name = msc_tensor_label(msc_graph_tensor(s->g, tensor));
    return msc_graph_find_tensor(s->model, name) != MSC_NO_ID ? name : NULL;
}

// True if the tensor is suitable for comparison: float32, dependent on inputs, not downstream of a
// discontinuous joint, and named. Inputs are excluded because they are equal in all trials.
static bool is_steady(const struct msc_discontinuity *s, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(s->g, tensor);
    return t->dtype == MSC_DTYPE_F32 && s->varies[tensor] && s->behind[tensor] == MSC_NO_ID &&
           t->producer != MSC_NO_ID && msc_graph_joint(s->g, t->producer)->op != MSC_OP_INPUT &&
           (s->g == s->model || msc_tensor_n_elements(t) >= 0) && msc_discontinuity_name(s, tensor);
}

// The largest steady tensor (see is_steady) that contains the steady tensor `tensor` as a part (a
// slice, for example); possibly `tensor` itself.
static int32_t whole_of(const struct msc_discontinuity *s, int32_t tensor) {
    for (;;) {
        const struct msc_joint *j = msc_graph_joint(s->g, msc_graph_tensor(s->g, tensor)->producer);
        if (!msc_op_has_trait(j->op, MSC_TRAIT_PART) || !is_steady(s, j->inputs[0])) {
            return tensor;
        }
        tensor = j->inputs[0];
    }
}

static void want_tensor(struct msc_discontinuity *s, int32_t tensor) {
    if (s->asked[tensor] == NOT_ASKED) {
        s->asked[tensor] = WANTED;
    }
}

static void add_found(struct msc_discontinuity *s, int32_t tensor) {
    if (s->asked[tensor] != DONE) {
        s->asked[tensor] = DONE;
        s->found[s->n_found++] = tensor;
    }
}

// Adds a wanted tensor to `found` if it is steady (see is_steady). Otherwise marks the inputs of
// its producer `j` as wanted.
static void take_wanted(struct msc_discontinuity *s, const struct msc_joint *j, int32_t tensor) {
    if (is_steady(s, tensor)) {
        add_found(s, whole_of(s, tensor));
    }
    for (int32_t i = 0; !is_steady(s, tensor) && i < j->n_inputs; i++) {
        want_tensor(s, j->inputs[i]);
    }
    s->asked[tensor] = DONE;
}

void msc_discontinuity_collect(struct msc_discontinuity *s, int32_t tensor) {
    want_tensor(s, tensor);
    for (int32_t i = msc_graph_tensor(s->g, tensor)->producer; i != MSC_NO_ID && i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(s->g, i);
        for (int32_t k = 0; k < j->n_outputs; k++) {
            if (s->asked[j->outputs[k]] == WANTED) {
                take_wanted(s, j, j->outputs[k]);
            }
        }
    }
}
