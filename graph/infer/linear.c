// Infers the outputs of matrix products, resizing, normalisation, and other operators that keep
// most of a shape.
#include "graph/infer/infer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum msc_status fail_product(const struct msc_infer *call) {
    char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
    return msc_infer__fail(call, "%s and %s cannot be multiplied",
                           msc_infer__shape_text(a, call, call->operands[0]),
                           msc_infer__shape_text(b, call, call->operands[1]));
}

enum msc_status msc_infer__linear(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    const struct msc_infer_tensor *w = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    MSC_TRY(msc_infer__require_rank(call, 1, 2));
    MSC_TRY(msc_infer__require_float(call, 0));
    MSC_TRY(msc_infer__require_float(call, 1));
    if (x->n_dims < 1) {
        return fail_product(call);
    }
    // A weight whose layout is not "IO" is [O, I], as in MSC.
    int out_axis = strcmp(w->layout, "IO") == 0 ? 1 : 0;
    if (!msc_infer__agree(x->dims[x->n_dims - 1], w->dims[1 - out_axis])) {
        return fail_product(call);
    }
    msc_infer__copy(out, x);
    out->dims[x->n_dims - 1] = w->dims[out_axis];
    if (out->layout[0] == '\0' && out->n_dims == 2) {
        memcpy(out->layout, "NC", 3);
    }
    if (call->n_operands > 2 && call->operands[2] != NULL) {
        MSC_TRY(msc_infer__require_rank(call, 2, 1));
        MSC_TRY(msc_infer__require_float(call, 2));
        if (!msc_infer__agree(call->operands[2]->dims[0], w->dims[out_axis])) {
            char text[MSC_INFER_TEXT_BYTES];
            return msc_infer__fail(call, "bias is %s, expected one element for each output",
                                   msc_infer__shape_text(text, call, call->operands[2]));
        }
    }
    return MSC_OK;
}

static enum msc_status check_types(const struct msc_infer *call) {
    if (call->operands[0]->dtype != call->operands[1]->dtype) {
        return msc_infer__fail(call, "operands are %s and %s, expected the same type",
                               msc_dtype_name(call->operands[0]->dtype),
                               msc_dtype_name(call->operands[1]->dtype));
    }
    return MSC_OK;
}

// Infers the matrix product of operand 0 and operand `second`. If operand 0 has one dimension, it
// is treated as a row; if operand `second` has one dimension, as a column. The result lacks the
// axes of length 1 that this adds.
static enum msc_status infer_product(const struct msc_infer *call, int second) {
    struct msc_infer_tensor a = *call->operands[0], b = *call->operands[second];
    struct msc_infer_tensor *out = &call->outputs[0];
    bool is_row = a.n_dims == 1, is_column = b.n_dims == 1;
    if (a.n_dims == 0 || b.n_dims == 0) {
        return fail_product(call);
    }
    if (is_row) {
        a.n_dims = 2;
        a.dims[1] = a.dims[0];
        a.dims[0] = msc_infer__number(1);
        a.layout[0] = '\0';
    }
    if (is_column) {
        b.n_dims = 2;
        b.dims[1] = msc_infer__number(1);
        b.layout[0] = '\0';
    }
    struct msc_dim rows = a.dims[a.n_dims - 2], columns = b.dims[b.n_dims - 1];
    if (!msc_infer__agree(a.dims[a.n_dims - 1], b.dims[b.n_dims - 2])) {
        return fail_product(call);
    }
    // Broadcast all axes before the last two, which are the matrices.
    for (int i = 1; i <= 2; i++) {
        a.dims[a.n_dims - i] = msc_infer__number(1);
        b.dims[b.n_dims - i] = msc_infer__number(1);
    }
    MSC_TRY(msc_infer__broadcast(out, call, &a, &b));
    out->dtype = a.dtype;
    out->dims[out->n_dims - 2] = rows;
    out->dims[out->n_dims - 1] = columns;
    if (is_row) {
        out->dims[out->n_dims - 2] = columns;
    }
    out->n_dims -= (int)is_row + (int)is_column;
    if (is_row || is_column) {
        out->layout[0] = '\0';
    }
    return MSC_OK;
}

enum msc_status msc_infer__matmul(const struct msc_infer *call) {
    MSC_TRY(check_types(call));
    return infer_product(call, 1);
}

static struct msc_dim count_rows(const struct msc_infer_tensor *a) {
    return a->n_dims < 2 ? msc_infer__number(1) : a->dims[a->n_dims - 2];
}

static struct msc_dim count_columns(const struct msc_infer_tensor *b) {
    return b->n_dims < 2 ? msc_infer__number(1) : b->dims[b->n_dims - 1];
}

enum msc_status msc_infer__matmul_integer(const struct msc_infer *call) {
    MSC_TRY(infer_product(call, 1));
    MSC_TRY(msc_infer__require_count(call, 2, count_rows(call->operands[0])));
    MSC_TRY(msc_infer__require_count(call, 3, count_columns(call->operands[1])));
    call->outputs[0].dtype = MSC_DTYPE_I32;
    return MSC_OK;
}

enum msc_status msc_infer__qlinear_matmul(const struct msc_infer *call) {
    MSC_TRY(infer_product(call, 3));
    for (int i = 1; i < 8; i++) {
        if (i != 3) { // operands 1 to 7 except the matrix: scales and zero points
            MSC_TRY(msc_infer__require_count(call, i,
                                             i < 3   ? count_rows(call->operands[0])
                                             : i < 6 ? count_columns(call->operands[3])
                                                     : msc_infer__number(1)));
        }
    }
    call->outputs[0].dtype = call->operands[7]->dtype;
    return MSC_OK;
}

enum msc_status msc_infer__gemm(const struct msc_infer *call) {
    const struct msc_infer_tensor *a = call->operands[0], *b = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    MSC_TRY(msc_infer__require_rank(call, 0, 2));
    MSC_TRY(msc_infer__require_rank(call, 1, 2));
    MSC_TRY(check_types(call));
    int trans_a = msc_infer__bool(call, "trans_a") ? 1 : 0;
    int trans_b = msc_infer__bool(call, "trans_b") ? 1 : 0;
    if (!msc_infer__agree(a->dims[1 - trans_a], b->dims[trans_b])) {
        return fail_product(call);
    }
    out->dtype = a->dtype;
    out->n_dims = 2;
    out->dims[0] = a->dims[trans_a];
    out->dims[1] = b->dims[1 - trans_b];
    memcpy(out->layout, "NC", 3);
    if (call->n_operands > 2 && call->operands[2] != NULL) {
        struct msc_infer_tensor sum;
        struct msc_infer_tensor product = *out;
        MSC_TRY(msc_infer__broadcast(&sum, call, &product, call->operands[2]));
        if (sum.n_dims != 2 || !msc_infer__agree(sum.dims[0], out->dims[0]) ||
            !msc_infer__agree(sum.dims[1], out->dims[1])) {
            char text[MSC_INFER_TEXT_BYTES];
            return msc_infer__fail(call, "%s cannot be added to the product",
                                   msc_infer__shape_text(text, call, call->operands[2]));
        }
    }
    return MSC_OK;
}

// Computes the length of a resized axis. As in ONNX Runtime, the product is computed in float32 and
// truncated.
static enum msc_status scale_dim(struct msc_dim *out, const struct msc_infer *call,
                                 struct msc_dim in, float scale, int axis) {
    if (!(scale >= 1e-6f && scale <= 1e6f)) {
        return msc_infer__fail(call, "a scale is %g, expected a number from 1e-6 to 1e6",
                               (double)scale);
    }
    if (msc_infer__is_number(in)) {
        float length = scale * (float)in.value;
        if (!(length < 1e12f)) {
            return msc_infer__fail(call, "length %lld scaled by %g is too large",
                                   (long long)in.value, (double)scale);
        }
        *out = msc_infer__number((int64_t)length);
        return MSC_OK;
    }
    float inverse = 1.0f / scale;
    if (scale == floorf(scale)) {
        return msc_dim_binary(out, call->graph, "Mul", in, msc_infer__number((int64_t)scale));
    }
    if (inverse == floorf(inverse)) {
        return msc_dim_binary(out, call->graph, "FloorDiv", in,
                              msc_infer__number((int64_t)inverse));
    }
    return msc_infer__fresh(out, call, 0, axis);
}

static enum msc_status resize_by_scales(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    float scales[MSC_MAX_DIMS];
    int n = msc_joint_attr_floats(call->joint, "scales", scales, MSC_MAX_DIMS);
    if (call->n_operands > 2 && call->operands[2] != NULL) {
        for (int i = 0; i < x->n_dims; i++) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        }
        return MSC_OK;
    }
    if (n != x->n_dims) {
        return msc_infer__fail(call, "scales has %d numbers, expected %d", n, x->n_dims);
    }
    for (int i = 0; i < n; i++) {
        MSC_TRY(scale_dim(&out->dims[i], call, x->dims[i], scales[i], i));
    }
    return MSC_OK;
}

// Infers a resize whose sizes or scales are given for only some axes, or that keeps the aspect
// ratio. In the second case, and if the numbers are not known, the lengths become new symbols.
static enum msc_status resize_some_axes(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list size;
    int64_t axes[MSC_MAX_DIMS];
    float scales[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(call->joint, "axes", axes, MSC_MAX_DIMS);
    int n_scales = msc_joint_attr_floats(call->joint, "scales", scales, MSC_MAX_DIMS);
    bool keeps_ratio = msc_infer__text(call, "keep_aspect_ratio_policy")[0] != '\0';
    bool has_operand = call->n_operands > 2 && call->operands[2] != NULL;
    MSC_TRY(msc_infer__list(&size, call, "size"));
    bool has_size = !keeps_ratio && n > 0 && size.n == n && size.state != MSC_INFER_UNKNOWN;
    bool has_scales = !keeps_ratio && n > 0 && size.state == MSC_INFER_ABSENT && n_scales == n;
    for (int i = 0; i < (n > 0 ? n : out->n_dims); i++) {
        int axis;
        MSC_TRY(msc_infer__check_axis(&axis, call, n > 0 ? axes[i] : i, out->n_dims));
        if (has_size) {
            out->dims[axis] = size.values[i];
        } else if (has_scales && !has_operand) {
            MSC_TRY(scale_dim(&out->dims[axis], call, out->dims[axis], scales[i], axis));
        } else {
            MSC_TRY(msc_infer__fresh(&out->dims[axis], call, 0, axis));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__resize(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list size;
    msc_infer__copy(out, x);
    const char *layout = msc_infer__text(call, "layout");
    if (strlen(layout) == (size_t)x->n_dims) {
        memcpy(out->layout, layout, (size_t)x->n_dims + 1);
    }
    if (msc_infer__text(call, "axes")[0] != '\0' ||
        msc_infer__text(call, "keep_aspect_ratio_policy")[0] != '\0') {
        return resize_some_axes(call);
    }
    MSC_TRY(msc_infer__list(&size, call, "size"));
    if (size.state == MSC_INFER_ABSENT) {
        return resize_by_scales(call);
    }
    if (size.n >= 0 && size.n != x->n_dims) {
        return msc_infer__fail(call, "size has %d numbers, expected %d", size.n, x->n_dims);
    }
    for (int i = 0; i < x->n_dims; i++) {
        if (size.state == MSC_INFER_UNKNOWN) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
            continue;
        }
        out->dims[i] = size.values[i];
        if (msc_infer__is_number(out->dims[i]) && out->dims[i].value < 1) {
            return msc_infer__fail(call, "a size is %lld, expected 1 or more",
                                   (long long)out->dims[i].value);
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__batch_norm(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    int axis;
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    MSC_TRY(msc_infer__require_float(call, 0));
    for (int i = 1; i < call->n_operands; i++) {
        MSC_TRY(msc_infer__require_rank(call, i, 1));
        MSC_TRY(msc_infer__require_float(call, i));
        if (!msc_infer__agree(x->dims[axis], call->operands[i]->dims[0])) {
            return msc_infer__fail(call, "operand %d has %lld elements, expected %lld", i,
                                   (long long)call->operands[i]->dims[0].value,
                                   (long long)x->dims[axis].value);
        }
    }
    msc_infer__copy(&call->outputs[0], x);
    if (x->layout[0] == '\0' && axis == 1 && x->n_dims >= 2 && x->n_dims <= 5) {
        static const char *const layouts[] = {"NC", "NCW", "NCHW", "NCDHW"};
        memcpy(call->outputs[0].layout, layouts[x->n_dims - 2], (size_t)x->n_dims + 1);
    }
    return MSC_OK;
}

enum msc_status msc_infer__softmax(const struct msc_infer *call) {
    int axis;
    MSC_TRY(msc_infer__axis(&axis, call, "axis", call->operands[0]->n_dims));
    msc_infer__copy(&call->outputs[0], call->operands[0]);
    return MSC_OK;
}
