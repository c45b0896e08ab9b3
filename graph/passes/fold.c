#include "graph/passes/fold_internal.h"

#include "graph/graph_internal.h"

#include <math.h>
#include <string.h>

static enum msc_op producer_op(const struct msc_graph *g, int32_t tensor) {
    return g->joints[g->tensors[tensor]->tensor.producer]->joint.op;
}

static bool must_stay(const struct msc_graph *g, int32_t source, int32_t result) {
    enum msc_op op = producer_op(g, source);
    return msc_graph_is_output(g, result) &&
           (op == MSC_OP_INPUT || op == MSC_OP_CONSTANT || msc_graph_is_output(g, source));
}

enum msc_status msc_fold_identities(struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        if (j->op != MSC_OP_IDENTITY || must_stay(g, j->operands[0], j->outputs[0])) {
            continue;
        }
        MSC_TRY(msc_graph_replace_tensor(g, j->outputs[0], j->operands[0]));
        MSC_TRY(msc_graph_remove_joint(g, i));
    }
    return msc_graph_finalize(g);
}

bool msc_fold__with_bias(enum msc_op *out, enum msc_op op) {
    static const struct {
        enum msc_op from, to;
    } pairs[] = {
        {MSC_OP_CONV1D, MSC_OP_CONV1D_BIAS},
        {MSC_OP_CONV2D, MSC_OP_CONV2D_BIAS},
        {MSC_OP_CONV3D, MSC_OP_CONV3D_BIAS},
        {MSC_OP_CONV1D_BIAS, MSC_OP_CONV1D_BIAS},
        {MSC_OP_CONV2D_BIAS, MSC_OP_CONV2D_BIAS},
        {MSC_OP_CONV3D_BIAS, MSC_OP_CONV3D_BIAS},
        {MSC_OP_CONV2D_TRANSPOSE, MSC_OP_CONV2D_TRANSPOSE},
        {MSC_OP_LINEAR, MSC_OP_LINEAR_BIAS},
        {MSC_OP_LINEAR_BIAS, MSC_OP_LINEAR_BIAS},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (pairs[i].from == op) {
            *out = pairs[i].to;
            return true;
        }
    }
    return false;
}

enum msc_status msc_fold__add_bias(int32_t *out, struct msc_graph *g, const char *joint,
                                   const struct msc_array *data) {
    const char *name = msc_arena_printf(&g->arena, "%s.bias", joint);
    for (int n = 1; name != NULL && msc_graph__live_tensor(g, name) != MSC_NO_ID; n++) {
        name = msc_arena_printf(&g->arena, "%s.bias_%d", joint, n);
    }
    MSC_TRY(MSC_ALLOCATED(name));
    return msc_graph_add_weight(out, g, name, NULL, "O", data);
}

// A normalisation and the convolution or linear layer that produces its input.
struct pair {
    const struct msc_joint *conv, *norm;
    int32_t weight, bias; // bias: MSC_NO_ID if there is none
    int32_t params[4];    // gamma, beta, mean, var
    int64_t n_channels;
    double *scale, *shift; // [n_channels] normalisation(x) = scale * x + shift
};

// True for weights with elements of a float type of at most 32 bits.
static bool has_data(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = tensor == MSC_NO_ID ? NULL : &g->tensors[tensor]->tensor;
    return t != NULL && t->producer == MSC_NO_ID && t->data != NULL &&
           msc_dtype_is_float(t->dtype) && msc_dtype_bytes(t->dtype) <= sizeof(float);
}

// The axis of output channels in the output of a convolution or linear layer.
static int fold_channel_axis(const struct msc_joint *joint, const struct msc_tensor *output) {
    bool is_linear = joint->op == MSC_OP_LINEAR || joint->op == MSC_OP_LINEAR_BIAS;
    return is_linear ? output->n_dims - 1 : msc_tensor_axis(output, 'C');
}

static bool find_pair(struct pair *p, const struct msc_graph *g, const struct msc_joint *norm) {
    enum msc_op op;
    int64_t axis;
    if (norm->op != MSC_OP_BATCH_NORM) {
        return false;
    }
    const struct msc_tensor *x = &g->tensors[norm->operands[0]]->tensor;
    if (!msc_fold__with_bias(&op, producer_op(g, norm->operands[0]))) {
        return false;
    }
    p->norm = norm;
    p->conv = &g->joints[x->producer]->joint;
    p->weight = p->conv->operands[1];
    p->bias = p->conv->n_operands > 2 ? p->conv->operands[2] : MSC_NO_ID;
    bool is_alone = g->tensors[norm->operands[0]]->n_consumers == 1 &&
                    !msc_graph_is_output(g, norm->operands[0]);
    if (!is_alone || !has_data(g, p->weight) || g->tensors[p->weight]->n_consumers != 1 ||
        (p->bias != MSC_NO_ID && !has_data(g, p->bias))) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        p->params[i] = norm->operands[i + 1];
        if (!has_data(g, p->params[i])) {
            return false;
        }
    }
    p->n_channels = g->tensors[p->params[0]]->tensor.dims[0];
    return msc_joint_attr_i64(norm, "axis", &axis) && axis == fold_channel_axis(p->conv, x);
}

static void compute_scale(struct pair *p, const struct msc_graph *g) {
    float epsilon = 1e-5f;
    msc_joint_attr_float(p->norm, "epsilon", &epsilon);
    const struct msc_array *values[4];
    for (int i = 0; i < 4; i++) {
        values[i] = g->tensors[p->params[i]]->tensor.data;
    }
    for (int64_t c = 0; c < p->n_channels; c++) {
        p->scale[c] = msc_array_get_double(values[0], c) /
                      sqrt(msc_array_get_double(values[3], c) + (double)epsilon);
        p->shift[c] =
            msc_array_get_double(values[1], c) - msc_array_get_double(values[2], c) * p->scale[c];
    }
}

// Multiplies the weight by the scales of its output channels. In a transposed convolution, axis O
// counts the output channels of one group; the groups are contiguous along axis I.
static enum msc_status scale_weight(struct msc_array **out, const struct pair *p,
                                    const struct msc_graph *g) {
    const struct msc_tensor *t = &g->tensors[p->weight]->tensor;
    MSC_TRY(msc_array_convert(out, t->data, MSC_DTYPE_F32));
    float *w = msc_array_data(*out);
    int axis_o = msc_tensor_axis(t, 'O'), axis_i = msc_tensor_axis(t, 'I');
    int64_t groups = 1, stride_o = 1, stride_i = 1;
    msc_joint_attr_i64(p->conv, "groups", &groups);
    for (int d = t->n_dims - 1; d > axis_o; d--) {
        stride_o *= t->dims[d];
    }
    for (int d = t->n_dims - 1; d > axis_i; d--) {
        stride_i *= t->dims[d];
    }
    int64_t n_o = t->dims[axis_o], n_i = t->dims[axis_i];
    bool is_transposed = p->conv->op == MSC_OP_CONV2D_TRANSPOSE;
    for (int64_t e = 0; e < msc_array_n_elements(*out); e++) {
        int64_t channel = e / stride_o % n_o;
        if (is_transposed) {
            channel += e / stride_i % n_i / (n_i / groups) * n_o;
        }
        w[e] = (float)(w[e] * p->scale[channel]);
        if (!isfinite(w[e])) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint '%s': folding the batch normalisation '%s' into it overflows",
                            p->norm->name, g->tensors[p->params[3]]->tensor.name);
        }
    }
    return MSC_OK;
}

static enum msc_status make_bias(struct msc_array **out, const struct pair *p,
                                 const struct msc_graph *g) {
    MSC_TRY(msc_array_create(out, MSC_DTYPE_F32, 1, &p->n_channels));
    const struct msc_array *old = p->bias == MSC_NO_ID ? NULL : g->tensors[p->bias]->tensor.data;
    float *bias = msc_array_data(*out);
    for (int64_t c = 0; c < p->n_channels; c++) {
        double before = old == NULL ? 0.0 : msc_array_get_double(old, c) * p->scale[c];
        bias[c] = (float)(before + p->shift[c]);
    }
    return MSC_OK;
}

// Replaces *array by its elements in another type. *is_finite is false if one of them overflows.
static enum msc_status set_type(struct msc_array **array, bool *is_finite, enum msc_dtype dtype) {
    struct msc_array *typed;
    if (msc_array_dtype(*array) == dtype) {
        return MSC_OK;
    }
    MSC_TRY(msc_array_convert(&typed, *array, dtype));
    msc_array_release(*array);
    *array = typed;
    for (int64_t i = 0; i < msc_array_n_elements(typed); i++) {
        *is_finite = *is_finite && isfinite(msc_array_get_double(typed, i));
    }
    return MSC_OK;
}

// Stores the new bias in the old bias, or in beta if there is no old bias. If that tensor has other
// consumers, makes a new tensor.
static enum msc_status place_bias(int32_t *out, struct msc_graph *g, const struct pair *p,
                                  const struct msc_array *data) {
    *out = p->bias != MSC_NO_ID ? p->bias : p->params[1];
    bool is_typed = g->tensors[*out]->tensor.dtype == msc_array_dtype(data);
    if (g->tensors[*out]->n_consumers == 1 && is_typed) {
        return msc_graph_set_weight_data(g, *out, data);
    }
    return msc_fold__add_bias(out, g, p->conv->name, data);
}

static enum msc_status replace_pair(struct msc_graph *g, const struct pair *p, int32_t bias) {
    const char *alias = g->tensors[p->norm->outputs[0]]->tensor.alias;
    struct msc_weight_spec weights[] = {{"weight", p->weight}, {"bias", bias}};
    struct msc_joint_spec spec = {
        .name = p->conv->name,
        .scope = p->conv->scope,
        .n_inputs = 1,
        .inputs = &p->conv->operands[0],
        .n_weights = 2,
        .weights = weights,
        .n_attrs = p->conv->n_attrs,
        .attrs = p->conv->attrs,
        .aliases = &alias,
    };
    msc_fold__with_bias(&spec.op, p->conv->op);
    int32_t old_norm = p->norm->id, result = p->norm->outputs[0], joint;
    MSC_TRY(msc_graph_remove_joint(g, p->conv->id));
    MSC_TRY(msc_graph_add_joint(&joint, g, &spec));
    MSC_TRY(msc_graph_replace_tensor(g, result, g->joints[joint]->outputs[0]));
    return msc_graph_remove_joint(g, old_norm);
}

// Folds the normalisation into the convolution or linear layer. If a folded weight would overflow
// in its type, does nothing and sets *is_folded to false.
static enum msc_status fold_pair(bool *is_folded, struct msc_graph *g, struct pair *p) {
    struct msc_array *weight = NULL, *bias = NULL;
    enum msc_dtype dtype = g->tensors[p->weight]->tensor.dtype;
    int32_t bias_tensor;
    *is_folded = true;
    enum msc_status status = MSC_OK;
    p->scale = msc_alloc_zero((size_t)p->n_channels * 2 + 1, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(p->scale));
    p->shift = p->scale + p->n_channels;
    compute_scale(p, g);
    MSC_TRY_OUT(scale_weight(&weight, p, g));
    MSC_TRY_OUT(make_bias(&bias, p, g));
    MSC_TRY_OUT(set_type(&weight, is_folded, dtype));
    MSC_TRY_OUT(set_type(&bias, is_folded, dtype));
    if (!*is_folded) {
        goto out;
    }
    MSC_TRY_OUT(msc_graph_set_weight_data(g, p->weight, weight));
    MSC_TRY_OUT(place_bias(&bias_tensor, g, p, bias));
    MSC_TRY_OUT(replace_pair(g, p, bias_tensor));
out:
    msc_free(p->scale);
    msc_array_release(weight);
    msc_array_release(bias);
    return status;
}

enum msc_status msc_fold_batch_norms(struct msc_graph *g) {
    bool again = true;
    while (again) {
        again = false;
        // New joints are appended; this round visits only the joints that existed before it.
        int32_t n = g->n_joints;
        for (int32_t i = 0; i < n; i++) {
            struct pair p;
            bool is_folded = false;
            if (!g->joints[i]->is_dead && find_pair(&p, g, &g->joints[i]->joint)) {
                MSC_TRY(fold_pair(&is_folded, g, &p));
                again = again || is_folded;
            }
        }
        MSC_TRY(msc_graph_finalize(g));
    }
    return MSC_OK;
}
