// Operators that move elements.
#include "graph/tflite/writer.h"

#include <limits.h>
#include <string.h>

// ---- Joining and cutting ----------------------------------------------------------------------

enum msc_status msc_tflite__write_concat(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *y = msc_graph_tensor(w->g, j->outputs[0]);
    enum msc_tflite_order order = MSC_TFLITE_PLAIN;
    bool is_integer = msc_tflite__is_moved_integer(w, j);
    int64_t axis = 0;
    (void)msc_joint_attr_i64(j, "axis", &axis);
    int32_t *inputs = msc_arena_array(&w->arena, (size_t)j->n_operands, sizeof(inputs[0]));
    MSC_TRY(MSC_ALLOCATED(inputs));
    for (int32_t i = 0; i < j->n_operands; i++) {
        bool is_image = msc_tflite__order(w, j->operands[i]) == MSC_TFLITE_NHWC;
        order = is_image ? MSC_TFLITE_NHWC : order;
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        MSC_TRY(msc_tflite__want(&inputs[i], w, j->operands[i], order, is_integer));
    }
    struct msc_tflite_operator op = {
        .op = MSC_TFLITE_CONCATENATION, .n_inputs = (size_t)j->n_operands, .many = inputs};
    msc_tflite__int(&op, 0, msc_tflite__axis(y, axis, order));
    msc_tflite__byte(&op, 1, MSC_TFLITE_NO_ACTIVATION);
    return msc_tflite__emit(
        w, &op, &(struct msc_tflite_result){.joint = j, .order = order, .is_integer = is_integer});
}

// A part of a tensor: begin, end and stride by axis, in the order of the form. Bits of the masks:
// axes that are taken from their first or to their last element.
struct part {
    int64_t begin[MSC_MAX_DIMS], end[MSC_MAX_DIMS], strides[MSC_MAX_DIMS];
    int32_t begin_mask, end_mask;
};

static void take_all(struct part *p, int n_dims) {
    *p = (struct part){0};
    for (int i = 0; i < n_dims; i++) {
        p->strides[i] = 1;
        p->begin_mask |= 1 << i;
        p->end_mask |= 1 << i;
    }
}

static enum msc_status emit_part(struct msc_tflite_writer *w, const struct msc_joint *j,
                                 int32_t output, const struct part *p,
                                 enum msc_tflite_order order) {
    int n = msc_graph_tensor(w->g, j->operands[0])->n_dims;
    bool is_integer = msc_tflite__is_moved_integer(w, j);
    struct msc_tflite_operator op = {.op = MSC_TFLITE_STRIDED_SLICE, .n_inputs = 4};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    MSC_TRY(msc_tflite__integers(&op.inputs[1], w, n, p->begin));
    MSC_TRY(msc_tflite__integers(&op.inputs[2], w, n, p->end));
    MSC_TRY(msc_tflite__integers(&op.inputs[3], w, n, p->strides));
    msc_tflite__int(&op, 0, p->begin_mask);
    msc_tflite__int(&op, 1, p->end_mask);
    return msc_tflite__emit(
        w, &op,
        &(struct msc_tflite_result){
            .joint = j, .output = output, .order = order, .is_integer = is_integer});
}

enum msc_status msc_tflite__write_slice(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    int64_t begin[MSC_MAX_DIMS], end[MSC_MAX_DIMS], axes[MSC_MAX_DIMS], strides[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(j, "begin", begin, MSC_MAX_DIMS);
    int n_end = msc_joint_attr_list(j, "end", end, MSC_MAX_DIMS);
    int n_axes = msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS);
    int n_strides = msc_joint_attr_list(j, "strides", strides, MSC_MAX_DIMS);
    if (!msc_tflite__has_one_operand(j) || n < 0 || n_end != n) {
        return msc_tflite__refuse(j, "its bounds are not constant");
    }
    struct part p;
    take_all(&p, x->n_dims);
    for (int i = 0; i < n; i++) {
        int64_t axis = n_axes > 0 ? axes[i] : i, stride = n_strides > 0 ? strides[i] : 1;
        int at = msc_tflite__axis(x, axis, order);
        p.strides[at] = stride;
        p.begin[at] = begin[i];
        p.end[at] = end[i];
        p.begin_mask &= ~(1 << at);
        // A backward slice may end before the first element, which no number says.
        int64_t length = x->dims[axis < 0 ? axis + x->n_dims : axis];
        bool is_whole = stride < 0 ? end[i] < -(length > 0 ? length : INT_MAX) : end[i] >= INT_MAX;
        p.end_mask = is_whole ? p.end_mask : p.end_mask & ~(1 << at);
    }
    return emit_part(w, j, 0, &p, order);
}

enum msc_status msc_tflite__write_split(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    int64_t axis = 0, from = 0;
    (void)msc_joint_attr_i64(j, "axis", &axis);
    int plain = msc_tflite__axis(x, axis, MSC_TFLITE_PLAIN);
    int at = msc_tflite__axis(x, axis, order);
    for (int32_t i = 0; i < j->n_outputs; i++) {
        int64_t length = msc_graph_tensor(w->g, j->outputs[i])->dims[plain];
        if (length < 0) {
            return msc_tflite__refuse(j, "the lengths of its parts are symbolic");
        }
        struct part p;
        take_all(&p, x->n_dims);
        p.begin[at] = from;
        p.end[at] = from + length;
        p.begin_mask &= ~(1 << at);
        p.end_mask &= ~(1 << at);
        from += length;
        MSC_TRY(emit_part(w, j, i, &p, order));
    }
    return MSC_OK;
}

// ---- Padding ----------------------------------------------------------------------------------

enum msc_status msc_tflite__write_pad(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    const char *mode = msc_joint_attr(j, "pad_mode");
    bool is_reflect = mode != NULL && strcmp(mode, "reflect") == 0;
    int64_t width[2 * MSC_MAX_DIMS], pairs[2 * MSC_MAX_DIMS];
    float value = 0;
    (void)msc_joint_attr_float(j, "pad_value", &value);
    int n = msc_joint_attr_list(j, "pad_width", width, 2 * MSC_MAX_DIMS);
    if (!msc_tflite__has_one_operand(j) || n != 2 * x->n_dims) {
        return msc_tflite__refuse(j, "its widths are not constant, one pair for each axis");
    }
    if (mode != NULL && !is_reflect && strcmp(mode, "constant") != 0) {
        return msc_tflite__refuse(j, "its mode is %s", mode);
    }
    for (int i = 0; i < x->n_dims; i++) {
        int at = msc_tflite__axis(x, i, order);
        pairs[2 * at] = width[i];
        pairs[2 * at + 1] = width[x->n_dims + i];
        if (width[i] < 0 || width[x->n_dims + i] < 0) {
            return msc_tflite__refuse(j, "a width is negative");
        }
    }
    bool is_integer = msc_tflite__is_moved_integer(w, j), is_zero = value == 0 || is_reflect;
    struct msc_tflite_operator op = {.op = is_reflect ? MSC_TFLITE_MIRROR_PAD
                                           : is_zero  ? MSC_TFLITE_PAD
                                                      : MSC_TFLITE_PADV2,
                                     .n_inputs = is_zero ? 2 : 3};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    MSC_TRY(msc_tflite__pairs(&op.inputs[1], w, x->n_dims, pairs));
    if (!is_zero) {
        MSC_TRY(msc_tflite__scalar(&op.inputs[2], w, value, w->tensors[op.inputs[0]].quant));
    }
    if (is_reflect) {
        msc_tflite__byte(&op, 0, 0); // REFLECT
    }
    return msc_tflite__emit(
        w, &op, &(struct msc_tflite_result){.joint = j, .order = order, .is_integer = is_integer});
}

// ---- Shapes -----------------------------------------------------------------------------------

enum msc_status msc_tflite__write_reshape(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    const struct msc_tensor *y = msc_graph_tensor(w->g, j->outputs[0]);
    enum msc_tflite_order order =
        msc_tflite__is_flat(x) ? msc_tflite__order(w, j->operands[0]) : MSC_TFLITE_PLAIN;
    bool is_integer = msc_tflite__is_moved_integer(w, j);
    int n_open = 0;
    for (int i = 0; i < y->n_dims; i++) {
        n_open += y->dims[i] < 0;
    }
    if (n_open > 1) {
        return msc_tflite__refuse(j, "its result has several symbolic lengths");
    }
    struct msc_tflite_operator op = {.op = MSC_TFLITE_RESHAPE, .n_inputs = 2};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    MSC_TRY(msc_tflite__integers(&op.inputs[1], w, y->n_dims, y->dims));
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){
                                .joint = j, .order = MSC_TFLITE_PLAIN, .is_integer = is_integer});
}

enum msc_status msc_tflite__write_permute(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    bool is_integer = msc_tflite__is_moved_integer(w, j);
    int64_t axes[MSC_MAX_DIMS], perm[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS);
    for (int i = 0; i < x->n_dims; i++) {
        int64_t axis = n == x->n_dims ? axes[i] : x->n_dims - 1 - i;
        perm[i] = msc_tflite__axis(x, axis, order);
    }
    struct msc_tflite_operator op = {.op = MSC_TFLITE_TRANSPOSE, .n_inputs = 2};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    MSC_TRY(msc_tflite__integers(&op.inputs[1], w, x->n_dims, perm));
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){
                                .joint = j, .order = MSC_TFLITE_PLAIN, .is_integer = is_integer});
}
