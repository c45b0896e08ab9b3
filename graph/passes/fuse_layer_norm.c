// Fuses (x - mean) / sqrt(variance + epsilon) * gamma over the last axes into nn.layer_norm. If a
// constant is added to the result, the constant then becomes beta of the nn.layer_norm.
#include "graph/passes/fuse_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"

// Some exporters compute x - mean once, others once for each use.
#define DEVIATION "sqrt(add(v:mean(power(d, 2)), $epsilon))"
#define DEVIATION_BY_PRODUCT "sqrt(add(v:mean(multiply(d, d)), $epsilon))"
#define DEVIATION_TWICE "sqrt(add(v:mean(power(subtract(x, n:mean(x)), 2)), $epsilon))"

#define FORMS(deviation)                                                                           \
    "multiply(divide(d:subtract(x, m:mean(x)), " deviation "), $gamma)",                           \
        "multiply(multiply(d:subtract(x, m:mean(x)), reciprocal(" deviation ")), $gamma)"

static const char *const patterns[] = {FORMS(DEVIATION), FORMS(DEVIATION_BY_PRODUCT),
                                       FORMS(DEVIATION_TWICE)};

static const char *const shifted[] = {"add(y:nn.layer_norm[center=0](x, $gamma), $beta)"};

// The first axis that a mean reduces. -1 if the reduced axes are not the tensor's last axes, or
// keepdims is false.
static int first_axis(const struct msc_joint *mean, int n_dims) {
    int64_t axes[MSC_MAX_DIMS];
    bool is_kept = false, is_axis[MSC_MAX_DIMS] = {false};
    int n = msc_joint_attr_list(mean, "axis", axes, MSC_MAX_DIMS);
    if (n < 1 || n > n_dims || !msc_joint_attr_bool(mean, "keepdims", &is_kept) || !is_kept) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        is_axis[axes[i] < 0 ? axes[i] + n_dims : axes[i]] = true;
    }
    for (int i = n_dims - n; i < n_dims; i++) {
        if (!is_axis[i]) {
            return -1;
        }
    }
    return n_dims - n;
}

// True if the constant has the shape of x from axis `first` on.
static bool fuse_layer_norm_has_shape_of(int32_t *weight, const struct msc_graph *g,
                                         int32_t constant, const struct msc_tensor *x, int first) {
    const struct msc_array *data = msc_match_constant(weight, g, constant);
    bool fits = msc_array_n_dims(data) == x->n_dims - first;
    for (int i = first; fits && i < x->n_dims; i++) {
        fits = msc_array_dims(data)[i - first] == x->dims[i];
    }
    return fits;
}

static enum msc_status fuse_layer_norm_normalize(bool *done, struct msc_fuse *f,
                                                 const struct msc_match *m, int32_t joint) {
    struct msc_graph *g = f->graph;
    int32_t x = msc_match_tensor(m, "x"), gamma;
    const struct msc_tensor *t = &g->tensors[x]->tensor;
    int first = first_axis(msc_match_joint(m, "m"), t->n_dims);
    double epsilon;
    bool fits = first >= 0 && first_axis(msc_match_joint(m, "v"), t->n_dims) == first &&
                (msc_match_tensor(m, "n") == MSC_NO_ID ||
                 first_axis(msc_match_joint(m, "n"), t->n_dims) == first) &&
                msc_fuse__same_shape(f, x, joint) &&
                msc_match_number(&epsilon, g, msc_match_tensor(m, "epsilon")) &&
                fuse_layer_norm_has_shape_of(&gamma, g, msc_match_tensor(m, "gamma"), t, first);
    if (!fits) {
        return MSC_OK;
    }
    struct msc_str axes = {0}, small = {0};
    int64_t list[MSC_MAX_DIMS];
    for (int i = first; i < t->n_dims; i++) {
        list[i - first] = i - t->n_dims;
    }
    msc_attr_write_ints(&axes, list, (size_t)(t->n_dims - first));
    msc_str_float(&small, (float)epsilon);
    struct msc_weight_spec weight = {"gamma", gamma};
    struct msc_attr attrs[] = {
        {"axes", msc_str_text(&axes)}, {"center", "0"}, {"epsilon", msc_str_text(&small)}};
    struct msc_joint_spec spec = {.op = MSC_OP_LAYER_NORM,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 1,
                                  .weights = &weight,
                                  .n_attrs = 3,
                                  .attrs = attrs};
    *done = true;
    enum msc_status status = msc_str_status(axes.failed ? &axes : &small);
    if (status == MSC_OK) {
        status = msc_fuse__replace(f, m, joint, &spec);
    }
    msc_str_finish(&axes);
    msc_str_finish(&small);
    return status;
}

static enum msc_status fuse_layer_norm_shift(bool *done, struct msc_fuse *f,
                                             const struct msc_match *m, int32_t joint) {
    struct msc_graph *g = f->graph;
    const struct msc_joint *norm = msc_match_joint(m, "y");
    int32_t x = msc_match_tensor(m, "x"), gamma = msc_match_tensor(m, "gamma"), beta;
    const struct msc_tensor *t = &g->tensors[x]->tensor;
    if (!msc_fuse__same_shape(f, x, joint) ||
        !fuse_layer_norm_has_shape_of(&beta, g, msc_match_tensor(m, "beta"), t,
                                      t->n_dims - g->tensors[gamma]->tensor.n_dims)) {
        return MSC_OK;
    }
    struct msc_weight_spec weights[] = {{"gamma", gamma}, {"beta", beta}};
    struct msc_attr attrs[] = {{"axes", msc_joint_attr(norm, "axes")},
                               {"epsilon", msc_joint_attr(norm, "epsilon")}};
    struct msc_joint_spec spec = {.op = MSC_OP_LAYER_NORM,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 2,
                                  .weights = weights,
                                  .n_attrs = 2,
                                  .attrs = attrs};
    *done = true;
    return msc_fuse__replace(f, m, joint, &spec);
}

enum msc_status msc_fuse_layer_norm(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    if (msc_fuse__find(&m, f, patterns, sizeof(patterns) / sizeof(patterns[0]), joint)) {
        return fuse_layer_norm_normalize(done, f, &m, joint);
    }
    if (msc_fuse__find(&m, f, shifted, 1, joint)) {
        return fuse_layer_norm_shift(done, f, &m, joint);
    }
    return MSC_OK;
}
