// Infers the outputs of operators that change a shape but not the order of elements.
#include "graph/infer/infer_internal.h"

#include <string.h>

static void copy_values(struct msc_infer_tensor *out, const struct msc_infer_tensor *in) {
    out->n_values = in->n_values;
    for (int i = 0; i < in->n_values; i++) {
        out->values[i] = in->values[i];
    }
}

enum msc_status msc_infer__shape_of(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    int64_t rank = x->n_dims, start, end;
    MSC_TRY(msc_infer__int(&start, call, "start"));
    if (msc_infer__text(call, "end")[0] == '\0') {
        end = rank;
    } else {
        MSC_TRY(msc_infer__int(&end, call, "end"));
    }
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    out->dtype = MSC_DTYPE_I64;
    out->n_dims = 1;
    out->n_values = (int)(end - start);
    out->dims[0] = msc_infer__number(out->n_values);
    for (int i = 0; i < out->n_values; i++) {
        out->values[i] = x->dims[start + i];
    }
    return MSC_OK;
}

// Infers the dimension that is given as -1: the number of input elements divided by the product of
// the other dimensions. Equal dimensions are cancelled first: reshaping [N,8,W] to [N,-1] gives 8*W
// without a division.
static enum msc_status infer_rest(struct msc_dim *out, const struct msc_infer *call,
                                  const struct msc_infer_tensor *x,
                                  const struct msc_infer_tensor *to, int rest) {
    bool is_used[MSC_MAX_DIMS] = {false};
    struct msc_dim above = msc_infer__number(1), below = msc_infer__number(1);
    for (int o = 0; o < to->n_dims; o++) {
        int same = 0;
        while (same < x->n_dims &&
               (is_used[same] || !msc_infer__same_dim(x->dims[same], to->dims[o]))) {
            same++;
        }
        if (o == rest) {
            continue;
        }
        if (same < x->n_dims) {
            is_used[same] = true;
        } else {
            MSC_TRY(msc_dim_binary(&below, call->graph, "Mul", below, to->dims[o]));
        }
    }
    for (int i = 0; i < x->n_dims; i++) {
        if (!is_used[i]) {
            MSC_TRY(msc_dim_binary(&above, call->graph, "Mul", above, x->dims[i]));
        }
    }
    bool are_numbers = msc_infer__is_number(above) && msc_infer__is_number(below);
    if (msc_infer__is_number(below) && below.value == 0) {
        *out = msc_infer__number(0);
        return MSC_OK;
    }
    if (are_numbers && above.value % below.value != 0) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "the elements of %s are not divisible by the other dimensions",
                               msc_infer__shape_text(text, call, x));
    }
    return msc_dim_binary(out, call->graph, "FloorDiv", above, below);
}

static enum msc_status check_elements(const struct msc_infer *call,
                                      const struct msc_infer_tensor *x,
                                      const struct msc_infer_tensor *to) {
    struct msc_dim a, b;
    MSC_TRY(msc_infer__product(&a, call, x->dims, 0, x->n_dims));
    MSC_TRY(msc_infer__product(&b, call, to->dims, 0, to->n_dims));
    if (msc_infer__is_number(a) && msc_infer__is_number(b) && a.value != b.value) {
        char from[MSC_INFER_TEXT_BYTES], into[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "%s cannot be reshaped to %s",
                               msc_infer__shape_text(from, call, x),
                               msc_infer__shape_text(into, call, to));
    }
    return MSC_OK;
}

static enum msc_status reshape_to_known(const struct msc_infer *call,
                                        const struct msc_infer_list *shape) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    bool allows_zero = msc_infer__bool(call, "allowzero");
    int rest = -1;
    for (int i = 0; i < shape->n; i++) {
        struct msc_dim d = shape->values[i];
        bool is_number = msc_infer__is_number(d);
        if (is_number && d.value == 0 && !allows_zero) {
            if (i >= x->n_dims) {
                return msc_infer__fail(
                    call, "dimension %d is 0, but the input has no such axis to copy", i);
            }
            d = x->dims[i];
        } else if (is_number && d.value == -1 && rest < 0) {
            rest = i;
        } else if (is_number && d.value < 0) {
            return msc_infer__fail(call, "dimension %d is %lld, expected 0 or more and one -1", i,
                                   (long long)d.value);
        }
        out->dims[i] = d;
    }
    if (rest >= 0) {
        MSC_TRY(infer_rest(&out->dims[rest], call, x, out, rest));
    }
    return check_elements(call, x, out);
}

enum msc_status msc_infer__reshape(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list shape;
    MSC_TRY(msc_infer__list(&shape, call, "shape"));
    if (shape.state == MSC_INFER_ABSENT) {
        shape.n = 0; // "" is the shape of a scalar
    }
    if (shape.n < 0 || shape.n > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, expected 0 to %d", shape.n,
                               MSC_MAX_DIMS);
    }
    out->dtype = x->dtype;
    out->n_dims = shape.n;
    if (shape.state == MSC_INFER_UNKNOWN) {
        for (int i = 0; i < shape.n; i++) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        }
        return MSC_OK;
    }
    MSC_TRY(reshape_to_known(call, &shape));
    msc_infer__reshape_layout(out, x);
    copy_values(out, x);
    return MSC_OK;
}

enum msc_status msc_infer__flatten(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    int64_t axis;
    MSC_TRY(msc_infer__int(&axis, call, "axis"));
    if (axis < -x->n_dims || axis > x->n_dims) {
        return msc_infer__fail(call, "axis %lld is out of range for %d dimensions", (long long)axis,
                               x->n_dims);
    }
    axis = axis < 0 ? axis + x->n_dims : axis;
    out->dtype = x->dtype;
    out->n_dims = 2;
    MSC_TRY(msc_infer__product(&out->dims[0], call, x->dims, 0, (int)axis));
    MSC_TRY(msc_infer__product(&out->dims[1], call, x->dims, (int)axis, x->n_dims));
    if (axis == 1 && x->layout[0] == 'N') {
        memcpy(out->layout, "NC", 3);
    } else {
        msc_infer__reshape_layout(out, x);
    }
    copy_values(out, x);
    return MSC_OK;
}

enum msc_status msc_infer__permute(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    int64_t axes[MSC_MAX_DIMS];
    bool is_seen[MSC_MAX_DIMS] = {false};
    int n = x->n_dims;
    if (n > 0) {
        MSC_TRY(msc_infer__ints(axes, call, "axes", n));
    }
    out->dtype = x->dtype;
    out->n_dims = n;
    for (int i = 0; i < n; i++) {
        int axis;
        MSC_TRY(msc_infer__check_axis(&axis, call, axes[i], n));
        if (is_seen[axis]) {
            return msc_infer__fail(call, "axis %d is given twice", axis);
        }
        is_seen[axis] = true;
        axes[i] = axis;
        out->dims[i] = x->dims[axis];
    }
    msc_infer_permute_layout(out->layout, x->layout, axes, n);
    if (n <= 1) {
        copy_values(out, x);
    }
    return MSC_OK;
}

// Infers an output whose axes are computed at run time: only the number of dimensions is known.
static enum msc_status unknown_axes(const struct msc_infer *call, int rank) {
    struct msc_infer_tensor *out = &call->outputs[0];
    if (rank < 0 || rank > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, expected 0 to %d", rank,
                               MSC_MAX_DIMS);
    }
    out->dtype = call->operands[0]->dtype;
    out->n_dims = rank;
    for (int i = 0; i < rank; i++) {
        MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
    }
    return MSC_OK;
}

enum msc_status msc_infer__expand_dims(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list axes;
    MSC_TRY(msc_infer__list(&axes, call, "axis"));
    int rank = x->n_dims + (axes.n < 0 ? 0 : axes.n);
    if (axes.state == MSC_INFER_UNKNOWN || rank > MSC_MAX_DIMS) {
        return unknown_axes(call, axes.n < 0 ? -1 : rank);
    }
    bool is_axis[MSC_MAX_DIMS], is_given;
    MSC_TRY(msc_infer__axes(is_axis, &is_given, call, rank));
    char layout[MSC_MAX_DIMS + 4] = "";
    memcpy(layout, x->layout, sizeof(layout));
    out->dtype = x->dtype;
    out->n_dims = rank;
    for (int i = 0, from = 0; i < rank; i++) {
        out->dims[i] = is_axis[i] ? msc_infer__number(1) : x->dims[from++];
    }
    if (x->layout[0] != '\0') {
        for (int i = 0, from = 0; i < rank; i++) {
            if (is_axis[i]) {
                msc_infer__add_letter(layout);
                out->layout[i] = layout[strlen(layout) - 1];
            } else {
                out->layout[i] = x->layout[from++];
            }
        }
        out->layout[rank] = '\0';
    }
    copy_values(out, x);
    return MSC_OK;
}

enum msc_status msc_infer__squeeze(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list axes;
    bool is_axis[MSC_MAX_DIMS], is_given;
    MSC_TRY(msc_infer__list(&axes, call, "axis"));
    if (axes.state == MSC_INFER_UNKNOWN) {
        return unknown_axes(call, axes.n < 0 ? -1 : x->n_dims - axes.n);
    }
    MSC_TRY(msc_infer__axes(is_axis, &is_given, call, x->n_dims));
    out->dtype = x->dtype;
    for (int i = 0; i < x->n_dims; i++) {
        bool is_number = msc_infer__is_number(x->dims[i]);
        bool is_one = is_number && x->dims[i].value == 1;
        if (is_given && is_axis[i] && is_number && !is_one) {
            return msc_infer__fail(call, "axis %d has length %lld, expected 1", i,
                                   (long long)x->dims[i].value);
        }
        if (is_given ? is_axis[i] : is_one) {
            continue;
        }
        out->layout[out->n_dims] = x->layout[0] == '\0' ? '\0' : x->layout[i];
        out->dims[out->n_dims++] = x->dims[i];
    }
    out->layout[out->n_dims] = '\0';
    copy_values(out, x);
    return MSC_OK;
}
