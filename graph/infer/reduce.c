// Infers the outputs of reductions over axes.
#include "graph/infer/infer_internal.h"

#include <string.h>

// Removes the reduced axes, or sets their lengths to 1 if keepdims is true.
static void reduce_shape(struct msc_infer_tensor *out, const struct msc_infer_tensor *in,
                         const bool is_axis[], bool keepdims) {
    bool has_layout = in->layout[0] != '\0';
    out->n_dims = 0;
    for (int i = 0; i < in->n_dims; i++) {
        if (is_axis[i] && !keepdims) {
            continue;
        }
        out->layout[out->n_dims] = has_layout ? in->layout[i] : '\0';
        out->dims[out->n_dims++] = is_axis[i] ? msc_infer__number(1) : in->dims[i];
    }
    out->layout[out->n_dims] = '\0';
}

// Infers a reduction whose axes are computed at run time: all lengths are unknown, only the number
// of dimensions is known.
static enum msc_status reduce_unknown(const struct msc_infer *call, int n_axes) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    bool keepdims = msc_infer__bool(call, "keepdims");
    if (!keepdims && (n_axes < 0 || n_axes > x->n_dims)) {
        return msc_infer__fail(call,
                               "the number of axes is computed at run time, expected a constant");
    }
    out->dtype = x->dtype;
    out->n_dims = keepdims ? x->n_dims : x->n_dims - n_axes;
    for (int i = 0; i < out->n_dims; i++) {
        MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
    }
    return MSC_OK;
}

enum msc_status msc_infer__reduce(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_list axes;
    MSC_TRY(msc_infer__list(&axes, call, "axis"));
    if (axes.state == MSC_INFER_UNKNOWN) {
        return reduce_unknown(call, axes.n);
    }
    bool is_axis[MSC_MAX_DIMS], is_given;
    MSC_TRY(msc_infer__axes(is_axis, &is_given, call, x->n_dims));
    for (int i = 0; !is_given && i < x->n_dims; i++) {
        is_axis[i] = true;
    }
    call->outputs[0].dtype = x->dtype;
    reduce_shape(&call->outputs[0], x, is_axis, msc_infer__bool(call, "keepdims"));
    return MSC_OK;
}

enum msc_status msc_infer__argmax(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    bool is_axis[MSC_MAX_DIMS] = {false};
    int axis;
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    is_axis[axis] = true;
    call->outputs[0].dtype = MSC_DTYPE_I64;
    reduce_shape(&call->outputs[0], x, is_axis, msc_infer__bool(call, "keepdims"));
    return MSC_OK;
}
