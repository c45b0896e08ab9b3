// Infers the outputs of joints that have bodies. A length of an output is a number only if the
// output has this length for all inputs; otherwise the length is a new symbol.
#include "graph/infer/infer_internal.h"

#include <stdio.h>
#include <string.h>

static const struct msc_tensor *body_output(const struct msc_graph *body, int i) {
    return msc_graph_tensor(body, msc_graph_output(body, i));
}

// Sets *out to `length`, or to a new symbol named after the joint if `length` is -1 (unknown).
static enum msc_status copy_dim(struct msc_dim *out, const struct msc_infer *call, int output,
                                int dim, int64_t length) {
    *out = msc_infer__number(length);
    return length >= 0 ? MSC_OK : msc_infer__fresh(out, call, output, dim);
}

enum msc_status msc_infer__if(const struct msc_infer *call) {
    const struct msc_joint *j = call->joint;
    if (j->n_graphs != 2 || msc_graph_n_outputs(j->graphs[0]) != call->n_outputs ||
        msc_graph_n_outputs(j->graphs[1]) != call->n_outputs) {
        return msc_infer__fail(call, "the joint has %d outputs, but a body has a different number",
                               call->n_outputs);
    }
    for (int i = 0; i < call->n_outputs; i++) {
        const struct msc_tensor *a = body_output(j->graphs[0], i);
        const struct msc_tensor *b = body_output(j->graphs[1], i);
        struct msc_infer_tensor *out = &call->outputs[i];
        if (a->dtype != b->dtype || a->n_dims != b->n_dims) {
            return msc_infer__fail(call,
                                   "output %d is %s of %d dimensions in one body, %s of %d in the "
                                   "other; bind the lengths or integers that select the body",
                                   i, msc_dtype_name(a->dtype), a->n_dims, msc_dtype_name(b->dtype),
                                   b->n_dims);
        }
        out->dtype = a->dtype;
        out->n_dims = a->n_dims;
        for (int d = 0; d < a->n_dims; d++) {
            MSC_TRY(
                copy_dim(&out->dims[d], call, i, d, a->dims[d] == b->dims[d] ? a->dims[d] : -1));
        }
    }
    return MSC_OK;
}

static enum msc_status copy_state(const struct msc_infer *call, int output,
                                  const struct msc_tensor *t, const struct msc_dim *batch) {
    struct msc_infer_tensor *out = &call->outputs[output];
    int shift = batch != NULL ? 1 : 0;
    out->dtype = t->dtype;
    out->n_dims = t->n_dims + shift;
    if (out->n_dims > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "output %d has %d dimensions, which is too many", output,
                               out->n_dims);
    }
    if (batch != NULL) {
        out->dims[0] = *batch;
    }
    for (int d = 0; d < t->n_dims; d++) {
        MSC_TRY(copy_dim(&out->dims[d + shift], call, output, d + shift, t->dims[d]));
    }
    return MSC_OK;
}

// Like copy_state, but the output has one more axis, whose length is the number of iterations.
static enum msc_status copy_scanned(const struct msc_infer *call, int output,
                                    const struct msc_tensor *t, int64_t axis,
                                    const struct msc_dim *turns, const struct msc_dim *batch) {
    struct msc_infer_tensor *out = &call->outputs[output];
    int shift = batch != NULL ? 1 : 0, from = 0;
    out->dtype = t->dtype;
    out->n_dims = t->n_dims + 1 + shift;
    axis = axis < 0 ? axis + t->n_dims + 1 : axis;
    if (out->n_dims > MSC_MAX_DIMS || axis < 0 || axis > t->n_dims) {
        return msc_infer__fail(
            call, "output %d is scanned along axis %lld, which is out of range for %d dimensions",
            output, (long long)axis, out->n_dims);
    }
    if (batch != NULL) {
        out->dims[0] = *batch;
    }
    for (int d = 0; d < t->n_dims + 1; d++) {
        if (d == axis && turns != NULL) {
            out->dims[d + shift] = *turns;
        } else {
            int64_t length = d == axis ? -1 : t->dims[from++];
            MSC_TRY(copy_dim(&out->dims[d + shift], call, output, d + shift, length));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__loop(const struct msc_infer *call) {
    const struct msc_joint *j = call->joint;
    int64_t n_states;
    MSC_TRY(msc_infer__int(&n_states, call, "n_states"));
    if (j->n_graphs != 1 || msc_graph_n_outputs(j->graphs[0]) != call->n_outputs + 1) {
        return msc_infer__fail(call,
                               "the joint has %d outputs, expected one fewer than its body has",
                               call->n_outputs);
    }
    // The first two operands are the limit and the condition.
    if (n_states < 0 || n_states > call->n_outputs || n_states > call->n_operands - 2) {
        return msc_infer__fail(call,
                               "n_states is %lld, but the joint has %d operands and %d outputs",
                               (long long)n_states, call->n_operands, call->n_outputs);
    }
    for (int i = 0; i < call->n_outputs; i++) {
        const struct msc_tensor *t = body_output(j->graphs[0], i + 1);
        MSC_TRY(i < n_states ? copy_state(call, i, t, NULL)
                             : copy_scanned(call, i, t, 0, NULL, NULL));
    }
    // After zero iterations, a state has its initial value. So a length is known only if the body
    // does not change it.
    for (int i = 0; i < n_states && i < call->n_outputs; i++) {
        const struct msc_infer_tensor *in = call->operands[i + 2];
        struct msc_infer_tensor *out = &call->outputs[i];
        for (int d = 0; in != NULL && d < out->n_dims && d < in->n_dims; d++) {
            bool is_same = msc_infer__same_dim(in->dims[d], out->dims[d]);
            if (!is_same && msc_infer__is_number(out->dims[d])) {
                MSC_TRY(msc_infer__fresh(&out->dims[d], call, i, d));
            }
        }
    }
    return MSC_OK;
}

// Checks that all operands have the same batch size, and all scanned operands the same length along
// the scanned axis (the number of iterations).
static enum msc_status check_scanned(const struct msc_infer *call, int64_t n_states,
                                     int64_t n_scans, const int64_t axes[], bool has_batch) {
    const struct msc_infer_tensor *first = call->operands[n_states];
    int shift = has_batch ? 1 : 0;
    struct msc_dim turns = {0};
    for (int i = 0; i < n_states + n_scans; i++) {
        const struct msc_infer_tensor *t = call->operands[i];
        int scan = i - (int)n_states;
        bool fits = t != NULL && (!has_batch || (t->n_dims > 0 && first->n_dims > 0 &&
                                                 msc_infer__agree(t->dims[0], first->dims[0])));
        if (fits && scan >= 0) {
            int64_t rank = t->n_dims - shift;
            int64_t axis = axes[scan] < 0 ? axes[scan] + rank : axes[scan];
            fits = axis >= 0 && axis < rank;
            turns = fits && scan == 0 ? t->dims[axis + shift] : turns;
            fits = fits && msc_infer__agree(t->dims[axis + shift], turns);
        }
        if (!fits) {
            return msc_infer__fail(
                call,
                "operand %d has a different batch size or number of iterations than operand %d", i,
                (int)n_states);
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__scan(const struct msc_infer *call) {
    const struct msc_joint *j = call->joint;
    int64_t n_states, n_scans, in_axes[64] = {0}, out_axes[64] = {0};
    bool has_batch = msc_infer__bool(call, "has_batch");
    MSC_TRY(msc_infer__int(&n_states, call, "n_states"));
    MSC_TRY(msc_infer__int(&n_scans, call, "n_scans"));
    (void)msc_joint_attr_list(j, "scan_input_axes", in_axes, 64);
    (void)msc_joint_attr_list(j, "scan_output_axes", out_axes, 64);
    if (j->n_graphs != 1 || msc_graph_n_outputs(j->graphs[0]) != call->n_outputs || n_states < 0 ||
        n_scans < 1 || n_scans > call->n_operands || n_states > call->n_operands - n_scans ||
        n_scans > 64 || call->n_outputs - n_states > 64) {
        return msc_infer__fail(
            call, "the number of outputs, %d, does not match the states and scans of the body",
            call->n_outputs);
    }
    const struct msc_infer_tensor *first = call->operands[n_states];
    int shift = has_batch ? 1 : 0;
    int64_t axis = in_axes[0] < 0 ? in_axes[0] + first->n_dims - shift : in_axes[0];
    if (axis < 0 || axis + shift >= first->n_dims) {
        return msc_infer__fail(call, "scan axis %lld is out of range for %d dimensions",
                               (long long)axis, first->n_dims);
    }
    MSC_TRY(check_scanned(call, n_states, n_scans, in_axes, has_batch));
    struct msc_dim turns = first->dims[axis + shift];
    const struct msc_dim *batch = has_batch ? &first->dims[0] : NULL;
    for (int i = 0; i < call->n_outputs; i++) {
        const struct msc_tensor *t = body_output(j->graphs[0], i);
        MSC_TRY(i < n_states ? copy_state(call, i, t, batch)
                             : copy_scanned(call, i, t, out_axes[i - n_states], &turns, batch));
    }
    return MSC_OK;
}

// ---- A body that runs once --------------------------------------------------------------------

static bool infer_control_takes(const struct msc_infer *call, const struct msc_graph *body,
                                int operand) {
    const struct msc_infer_tensor *x = call->operands[operand];
    const struct msc_tensor *t = msc_graph_tensor(body, msc_graph_input(body, operand));
    bool fits = x != NULL && x->dtype == t->dtype && x->n_dims == t->n_dims;
    for (int d = 0; fits && d < t->n_dims; d++) {
        fits = t->dims[d] < 0 || msc_infer__agree(x->dims[d], msc_infer__number(t->dims[d]));
    }
    return fits;
}

// Translates a symbol of the body: finds an operand's dimension that has this symbol in the body,
// and sets *out to the dimension's length in the enclosing graph.
static bool find_symbol(struct msc_dim *out, const struct msc_infer *call,
                        const struct msc_graph *body, int32_t prim) {
    for (int i = 0; i < call->n_operands; i++) {
        const struct msc_tensor *t = msc_graph_tensor(body, msc_graph_input(body, i));
        for (int d = 0; d < t->n_dims; d++) {
            if (t->prims[d] == prim) {
                *out = call->operands[i]->dims[d];
                return true;
            }
        }
    }
    return false;
}

static enum msc_status give_output(const struct msc_infer *call, const struct msc_graph *body,
                                   int output) {
    const struct msc_tensor *t = body_output(body, output);
    struct msc_infer_tensor *out = &call->outputs[output];
    out->dtype = t->dtype;
    out->n_dims = t->n_dims;
    snprintf(out->layout, sizeof(out->layout), "%s", t->layout);
    for (int d = 0; d < t->n_dims; d++) {
        if (t->prims[d] == MSC_NO_ID || !find_symbol(&out->dims[d], call, body, t->prims[d])) {
            MSC_TRY(copy_dim(&out->dims[d], call, output, d, t->dims[d]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__held(const struct msc_infer *call) {
    const struct msc_joint *j = call->joint;
    const struct msc_graph *body = j->n_graphs == 1 ? j->graphs[0] : NULL;
    if (body == NULL || msc_graph_n_inputs(body) != call->n_operands ||
        msc_graph_n_outputs(body) != call->n_outputs) {
        return msc_infer__fail(
            call, "the joint has %d operands and %d outputs, which do not match its body",
            call->n_operands, call->n_outputs);
    }
    for (int i = 0; i < call->n_operands; i++) {
        if (call->operands[i] == NULL || !infer_control_takes(call, body, i)) {
            return msc_infer__fail(
                call, "operand %d does not match the corresponding input of the body", i);
        }
    }
    for (int i = 0; i < call->n_outputs; i++) {
        MSC_TRY(give_output(call, body, i));
    }
    return MSC_OK;
}
