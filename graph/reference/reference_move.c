#include "graph/reference/reference_internal.h"

#include <string.h>

// Data movement for elements of any type.

enum msc_status msc_reference__shape_of(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *out = &call->outputs[0];
    int64_t start;
    MSC_TRY(msc_reference__get_i64(&start, call, "start"));
    start = start < 0 ? start + x->n_dims : start;
    start = start < 0 ? 0 : start;
    for (int64_t i = 0; i < out->dims[0]; i++) {
        msc_reference__set_i64_at(out, i, x->dims[start + i]);
    }
    return MSC_OK;
}

// Reshape and similar operators: copies the elements, which get other dims.
enum msc_status msc_reference__copy(const struct msc_reference_call *call) {
    size_t n_bytes = msc_view_n_bytes(&call->outputs[0]);
    if (n_bytes > 0) {
        memcpy(call->outputs[0].data, call->operands[0].data, n_bytes);
    }
    return MSC_OK;
}

enum msc_status msc_reference__permute(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *out = &call->outputs[0];
    int64_t axes[MSC_MAX_DIMS], own[MSC_MAX_DIMS], to[MSC_MAX_DIMS], from[MSC_MAX_DIMS];
    int n;
    MSC_TRY(msc_reference__param_ints(axes, &n, call, "axes", "axes", MSC_MAX_DIMS));
    if (n != x->n_dims) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: axes has %d numbers, but the operand has %d dimensions",
                        call->joint->name, n, x->n_dims);
    }
    msc_reference__strides(own, x->n_dims, x->dims);
    msc_reference__strides(to, out->n_dims, out->dims);
    for (int i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + n : axes[i];
        if (axis < 0 || axis >= n) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: axis %lld is out of range for %d dimensions",
                            call->joint->name, (long long)axes[i], n);
        }
        from[i] = own[axis];
    }
    struct msc_walk w;
    msc_reference__walk_init(&w, n, out->dims);
    msc_reference__walk_add(&w, to);
    msc_reference__walk_add(&w, from);
    msc_reference__copy_walk(&w, out, 0, x, 0);
    return MSC_OK;
}

enum msc_status msc_reference__broadcast_to(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    int64_t to[MSC_MAX_DIMS], from[MSC_MAX_DIMS];
    msc_reference__strides(to, out->n_dims, out->dims);
    msc_reference__broadcast_strides(from, &call->operands[0], out->n_dims, out->dims);
    struct msc_walk w;
    msc_reference__walk_init(&w, out->n_dims, out->dims);
    msc_reference__walk_add(&w, to);
    msc_reference__walk_add(&w, from);
    msc_reference__copy_walk(&w, out, 0, &call->operands[0], 0);
    return MSC_OK;
}

// Each output axis is treated as two axes: the repetition, and the position within the repetition.
enum msc_status msc_reference__tile(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *out = &call->outputs[0];
    int64_t x_strides[MSC_MAX_DIMS], out_strides[MSC_MAX_DIMS];
    int64_t dims[MSC_WALK_DIMS], to[MSC_WALK_DIMS], from[MSC_WALK_DIMS];
    if (msc_view_n_elements(out) == 0) {
        return MSC_OK;
    }
    msc_reference__strides(x_strides, x->n_dims, x->dims);
    msc_reference__strides(out_strides, out->n_dims, out->dims);
    for (int i = 0; i < x->n_dims; i++) {
        dims[2 * i] = out->dims[i] / x->dims[i];
        to[2 * i] = out_strides[i] * x->dims[i];
        from[2 * i] = 0;
        dims[2 * i + 1] = x->dims[i];
        to[2 * i + 1] = out_strides[i];
        from[2 * i + 1] = x_strides[i];
    }
    struct msc_walk w;
    msc_reference__walk_init(&w, 2 * x->n_dims, dims);
    msc_reference__walk_add(&w, to);
    msc_reference__walk_add(&w, from);
    msc_reference__copy_walk(&w, out, 0, x, 0);
    return MSC_OK;
}

// Copies elements between two views whose lengths differ only along `axis`: as many positions along
// `axis` as the shorter view has. The copied part begins at position `x_first` of `x` and at
// position `out_first` of `out`.
static void copy_part(const struct msc_view *out, const struct msc_view *x, int axis,
                      int64_t out_first, int64_t x_first) {
    int64_t to[MSC_MAX_DIMS], from[MSC_MAX_DIMS];
    msc_reference__strides(to, out->n_dims, out->dims);
    msc_reference__strides(from, x->n_dims, x->dims);
    struct msc_walk w;
    msc_reference__walk_init(&w, x->n_dims, x->dims);
    w.dims[axis] = x->dims[axis] < out->dims[axis] ? x->dims[axis] : out->dims[axis];
    msc_reference__walk_add(&w, to);
    msc_reference__walk_add(&w, from);
    msc_reference__copy_walk(&w, out, out_first * to[axis], x, x_first * from[axis]);
}

enum msc_status msc_reference__concat(const struct msc_reference_call *call) {
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", call->outputs[0].n_dims));
    int64_t first = 0;
    for (int i = 0; i < call->n_operands; i++) {
        copy_part(&call->outputs[0], &call->operands[i], axis, first, 0);
        first += call->operands[i].dims[axis];
    }
    return MSC_OK;
}

enum msc_status msc_reference__split(const struct msc_reference_call *call) {
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", call->operands[0].n_dims));
    int64_t first = 0;
    for (int i = 0; i < call->n_outputs; i++) {
        copy_part(&call->outputs[i], &call->operands[0], axis, 0, first);
        first += call->outputs[i].dims[axis];
    }
    return MSC_OK;
}

// The first index of a slice. A negative `begin` counts from the end. The index is then clamped to
// [0, length], or to [0, length - 1] if the step is negative.
static int64_t slice_begin(int64_t begin, int64_t length, int64_t step) {
    int64_t last = step < 0 ? length - 1 : length;
    begin = begin < 0 ? begin + length : begin;
    return begin < 0 ? 0 : begin > last ? last : begin;
}

enum msc_status msc_reference__slice(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *out = &call->outputs[0];
    int64_t begin[MSC_MAX_DIMS], axes[MSC_MAX_DIMS], steps[MSC_MAX_DIMS];
    int n, n_axes, n_steps;
    MSC_TRY(msc_reference__param_ints(begin, &n, call, "begin", "begin", MSC_MAX_DIMS));
    MSC_TRY(msc_reference__param_ints(axes, &n_axes, call, "axes", "axes", MSC_MAX_DIMS));
    MSC_TRY(msc_reference__param_ints(steps, &n_steps, call, "strides", "strides", MSC_MAX_DIMS));

    int64_t to[MSC_MAX_DIMS], from[MSC_MAX_DIMS], first = 0;
    msc_reference__strides(to, out->n_dims, out->dims);
    msc_reference__strides(from, x->n_dims, x->dims);
    for (int i = 0; i < n; i++) {
        int64_t axis = i < n_axes ? axes[i] : i;
        axis = axis < 0 ? axis + x->n_dims : axis;
        if (axis < 0 || axis >= x->n_dims) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: axis %lld is out of range for %d dimensions",
                            call->joint->name, (long long)axis, x->n_dims);
        }
        int64_t step = i < n_steps ? steps[i] : 1;
        first += slice_begin(begin[i], x->dims[axis], step) * from[axis];
        from[axis] *= out->dims[axis] > 1 ? step : 0; // a single element needs no step
    }
    struct msc_walk w;
    msc_reference__walk_init(&w, out->n_dims, out->dims);
    msc_reference__walk_add(&w, to);
    msc_reference__walk_add(&w, from);
    msc_reference__copy_walk(&w, out, 0, x, first);
    return MSC_OK;
}

enum msc_status msc_reference__take(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *indices = &call->operands[1];
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    int64_t n = msc_view_n_elements(indices);
    int64_t length = x->dims[axis];
    int64_t outer = msc_dims_product(axis, x->dims);
    int64_t inner = msc_dims_product(x->n_dims - axis - 1, x->dims + axis + 1);
    size_t n_bytes = (size_t)inner * msc_dtype_bytes(x->dtype);
    char *to = call->outputs[0].data;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < n; i++) {
            int64_t index = msc_reference__get_i64_at(indices, i);
            int64_t at = index < 0 ? index + length : index;
            if (at < 0 || at >= length) {
                return MSC_FAIL(MSC_E_INVALID,
                                "joint %s: index %lld is out of range for axis %d of length %lld",
                                call->joint->name, (long long)index, axis, (long long)length);
            }
            if (n_bytes > 0) {
                memcpy(to, (const char *)x->data + (size_t)(o * length + at) * n_bytes, n_bytes);
                to += n_bytes;
            }
        }
    }
    return MSC_OK;
}
