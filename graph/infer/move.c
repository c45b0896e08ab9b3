// Infers the outputs of operators that join, split, slice, pad or repeat tensors.
#include "graph/infer/infer_internal.h"

#include <stdlib.h>
#include <string.h>

enum msc_status msc_infer__concat(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    const struct msc_infer_tensor *first = call->operands[0];
    int axis;
    MSC_TRY(msc_infer__axis(&axis, call, "axis", first->n_dims));
    msc_infer__copy(out, first);
    bool is_known = first->n_dims == 1 && first->n_values >= 0;
    if (is_known) {
        msc_infer__copy_all(out, first);
    }
    for (int i = 1; i < call->n_operands; i++) {
        const struct msc_infer_tensor *x = call->operands[i];
        bool fits = x->n_dims == out->n_dims && x->dtype == out->dtype;
        for (int d = 0; fits && d < x->n_dims; d++) {
            fits = d == axis || !msc_infer__is_number(x->dims[d]) ||
                   !msc_infer__is_number(out->dims[d]) || x->dims[d].value == out->dims[d].value;
            // If one operand has a number and another a symbol, the output has the number.
            out->dims[d] =
                fits && d != axis && msc_infer__is_number(x->dims[d]) ? x->dims[d] : out->dims[d];
        }
        if (!fits) {
            char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
            return msc_infer__fail(call, "operand %d is %s%s, which cannot be concatenated to %s%s",
                                   i, msc_dtype_name(x->dtype), msc_infer__shape_text(a, call, x),
                                   msc_dtype_name(first->dtype),
                                   msc_infer__shape_text(b, call, first));
        }
        MSC_TRY(
            msc_dim_binary(&out->dims[axis], call->graph, "Add", out->dims[axis], x->dims[axis]));
        if (out->layout[0] == '\0') {
            memcpy(out->layout, x->layout, sizeof(out->layout));
        }
        is_known =
            is_known && x->n_values >= 0 && out->n_values + x->n_values <= MSC_INFER_MAX_VALUES;
        for (int v = 0; is_known && v < x->n_values; v++) {
            out->values[out->n_values++] = x->values[v];
        }
    }
    out->n_values = is_known ? out->n_values : -1;
    return MSC_OK;
}

// Computes the sizes of the parts of a split from its attribute: a list of cut positions, a number
// of equal parts, or "" for equal parts, one for each output.
static enum msc_status split_sizes(struct msc_dim sizes[], const struct msc_infer *call,
                                   struct msc_dim length) {
    int n = call->n_outputs;
    const char *text = msc_infer__text(call, "indices_or_sections");
    int64_t cuts[MSC_INFER_MAX_VALUES];
    int n_cuts =
        msc_joint_attr_list(call->joint, "indices_or_sections", cuts, MSC_INFER_MAX_VALUES);
    bool is_list = strchr(text, ',') != NULL;
    struct msc_dim before = msc_infer__number(0);
    if (is_list && (n_cuts != n - 1 || n > MSC_INFER_MAX_VALUES)) {
        return msc_infer__fail(
            call, "found %d cut positions ('%.64s') for %d outputs, expected one fewer", n_cuts,
            text, n);
    }
    if (!is_list && text[0] != '\0' && (n_cuts != 1 || cuts[0] != n)) {
        return msc_infer__fail(call, "indices_or_sections is '%.64s', but there are %d outputs",
                               text, n);
    }
    struct msc_dim part;
    MSC_TRY(msc_dim_binary(&part, call->graph, "CeilDiv", length, msc_infer__number(n)));
    for (int i = 0; i < n; i++) {
        struct msc_dim cut = length;
        sizes[i] = part;
        if (is_list && i < n - 1) {
            cut = msc_infer__number(cuts[i]);
        }
        if (is_list) {
            MSC_TRY(msc_dim_binary(&sizes[i], call->graph, "Sub", cut, before));
            before = cut;
        } else if (i == n - 1 && msc_infer__is_number(length)) {
            // The last part may be shorter.
            sizes[i] = msc_infer__number(length.value - part.value * (n - 1));
        }
    }
    return MSC_OK;
}

static enum msc_status split_sizes_from_operand(struct msc_dim sizes[],
                                                const struct msc_infer *call,
                                                const struct msc_infer_list *list, int axis) {
    if (list->n >= 0 && list->n != call->n_outputs) {
        return msc_infer__fail(call, "found %d sizes of parts for %d outputs", list->n,
                               call->n_outputs);
    }
    for (int i = 0; i < call->n_outputs; i++) {
        if (list->state == MSC_INFER_KNOWN) {
            sizes[i] = list->values[i];
        } else {
            MSC_TRY(msc_infer__fresh(&sizes[i], call, i, axis));
        }
    }
    return MSC_OK;
}

static void split_values(struct msc_infer_tensor outputs[], int n,
                         const struct msc_infer_tensor *x) {
    int from = 0;
    for (int i = 0; i < n; i++) {
        struct msc_dim length = outputs[i].dims[0];
        if (x->n_dims != 1 || x->n_values < 0 || !msc_infer__is_number(length) ||
            length.value > x->n_values - from) {
            return;
        }
        for (int v = 0; v < (int)length.value; v++) {
            outputs[i].values[v] = x->values[from++];
        }
        outputs[i].n_values = (int)length.value;
    }
}

enum msc_status msc_infer__split(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_list list;
    int axis;
    if (call->n_outputs > MSC_INFER_MAX_VALUES) {
        return msc_infer__fail(call, "the joint has %d outputs, expected at most %d",
                               call->n_outputs, MSC_INFER_MAX_VALUES);
    }
    struct msc_dim sizes[MSC_INFER_MAX_VALUES];
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    if (call->n_operands > 1 && call->operands[1] != NULL) {
        MSC_TRY(msc_infer__list(&list, call, "indices_or_sections"));
        MSC_TRY(split_sizes_from_operand(sizes, call, &list, axis));
    } else {
        MSC_TRY(split_sizes(sizes, call, x->dims[axis]));
    }
    struct msc_dim total = msc_infer__number(0);
    for (int i = 0; i < call->n_outputs; i++) {
        msc_infer__copy(&call->outputs[i], x);
        call->outputs[i].dims[axis] = sizes[i];
        MSC_TRY(msc_dim_binary(&total, call->graph, "Add", total, sizes[i]));
        if (msc_infer__is_number(sizes[i]) && sizes[i].value < 0) {
            return msc_infer__fail(call, "part %d has length %lld, expected 0 or more", i,
                                   (long long)sizes[i].value);
        }
    }
    if (msc_infer__is_number(total) && msc_infer__is_number(x->dims[axis]) &&
        total.value != x->dims[axis].value) {
        return msc_infer__fail(call, "parts add up to %lld, but the axis has length %lld",
                               (long long)total.value, (long long)x->dims[axis].value);
    }
    split_values(call->outputs, call->n_outputs, x);
    return MSC_OK;
}

void msc_infer_slice_range(int64_t *begin, int64_t *count, int64_t length, int64_t end,
                           int64_t stride) {
    int64_t lowest = stride < 0 ? -1 : 0, highest = stride < 0 ? length - 1 : length;
    *begin = *begin < 0 ? *begin + length : *begin;
    end = end < 0 ? end + length : end;
    *begin = *begin < 0 ? 0 : *begin > highest ? highest : *begin;
    end = end < lowest ? lowest : end > highest ? highest : end;
    if (length == 0) {
        *count = 0;
    } else if (stride > 0) {
        *count = end <= *begin ? 0 : (end - *begin - 1) / stride + 1;
    } else {
        int64_t step = stride == INT64_MIN ? INT64_MAX : -stride;
        *count = *begin <= end ? 0 : (*begin - end - 1) / step + 1;
    }
}

// Converts the begin or end of a slice along an axis of symbolic length. Assumes that the begin or
// end is within the axis.
static enum msc_status slice_point(struct msc_dim *out, const struct msc_infer *call,
                                   struct msc_dim length, struct msc_dim point) {
    *out = point;
    if (!msc_infer__is_number(point)) {
        return MSC_OK;
    }
    if (point.value >= INT32_MAX) {
        *out = length;
        return MSC_OK;
    }
    if (point.value < -INT32_MAX) {
        *out = msc_infer__number(0);
        return MSC_OK;
    }
    if (point.value < 0) {
        return msc_dim_binary(out, call->graph, "Add", length, point);
    }
    return MSC_OK;
}

static enum msc_status slice_symbolic(struct msc_dim *out, const struct msc_infer *call,
                                      struct msc_dim length, struct msc_dim begin,
                                      struct msc_dim end, int64_t stride, int axis) {
    bool is_reversal = stride == -1 && msc_infer__is_number(begin) && begin.value == -1 &&
                       msc_infer__is_number(end) && end.value < -INT32_MAX;
    if (is_reversal) {
        *out = length;
        return MSC_OK;
    }
    if (stride < 1) {
        return msc_infer__fresh(out, call, 0, axis);
    }
    bool is_cut = msc_infer__is_number(end) && end.value >= 0 && end.value < INT32_MAX &&
                  !msc_infer__is_number(length);
    struct msc_dim first, last;
    MSC_TRY(slice_point(&first, call, length, begin));
    MSC_TRY(slice_point(&last, call, length, end));
    if (is_cut) {
        MSC_TRY(msc_dim_binary(&last, call->graph, "Min", length, last));
    }
    MSC_TRY(msc_dim_binary(out, call->graph, "Sub", last, first));
    return msc_dim_binary(out, call->graph, "CeilDiv", *out, msc_infer__number(stride));
}

struct slice {
    struct msc_infer_list begin, end, axes, strides;
    int n;
};

// Reads `begin` or `end`. If it is absent, the list is empty.
static enum msc_status read_ends(struct msc_infer_list *out, const struct msc_infer *call,
                                 const char *key) {
    MSC_TRY(msc_infer__list(out, call, key));
    if (out->state == MSC_INFER_ABSENT) {
        *out = (struct msc_infer_list){.state = MSC_INFER_KNOWN, .n = 0};
    }
    return MSC_OK;
}

static enum msc_status read_slice(struct slice *s, const struct msc_infer *call) {
    int rank = call->operands[0]->n_dims;
    MSC_TRY(read_ends(&s->begin, call, "begin"));
    MSC_TRY(read_ends(&s->end, call, "end"));
    MSC_TRY(msc_infer__list(&s->axes, call, "axes"));
    MSC_TRY(msc_infer__list(&s->strides, call, "strides"));
    s->n = s->begin.n >= 0 ? s->begin.n : s->end.n;
    bool fits = s->n >= 0 && s->n <= rank && (s->end.n < 0 || s->end.n == s->n) &&
                (s->axes.state == MSC_INFER_ABSENT || s->axes.n == s->n) &&
                (s->strides.state == MSC_INFER_ABSENT || s->strides.n == s->n);
    if (!fits) {
        return msc_infer__fail(
            call, "begin has %d numbers, end %d, axes %d and strides %d, for %d dimensions",
            s->begin.n, s->end.n, s->axes.n, s->strides.n, rank);
    }
    for (int i = 0; s->axes.state == MSC_INFER_KNOWN && i < s->axes.n; i++) {
        if (!msc_infer__is_number(s->axes.values[i])) {
            return msc_infer__fail(call, "its axes are symbolic, expected constants");
        }
    }
    return MSC_OK;
}

// Checks that each axis is sliced only once.
static enum msc_status check_slice_axes(const struct msc_infer *call, const struct slice *s) {
    bool is_cut[MSC_MAX_DIMS] = {false};
    for (int i = 0; s->axes.state == MSC_INFER_KNOWN && i < s->n; i++) {
        int axis;
        MSC_TRY(
            msc_infer__check_axis(&axis, call, s->axes.values[i].value, call->operands[0]->n_dims));
        if (is_cut[axis]) {
            return msc_infer__fail(call, "axis %d is given twice", axis);
        }
        is_cut[axis] = true;
    }
    return MSC_OK;
}

static void slice_values(struct msc_infer_tensor *out, const struct msc_infer_tensor *x,
                         int64_t begin, int64_t count, int64_t stride) {
    if (x->n_dims != 1 || x->n_values < 0) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out->values[i] = x->values[begin + i * stride];
    }
    out->n_values = (int)count;
}

static enum msc_status slice_axis(const struct msc_infer *call, const struct slice *s, int i) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    int axis;
    struct msc_dim at = s->axes.state == MSC_INFER_KNOWN ? s->axes.values[i] : msc_infer__number(i);
    MSC_TRY(msc_infer__check_axis(&axis, call, at.value, x->n_dims));
    struct msc_dim length = x->dims[axis];
    struct msc_dim stride =
        s->strides.state == MSC_INFER_KNOWN ? s->strides.values[i] : msc_infer__number(1);
    bool is_known = s->begin.state == MSC_INFER_KNOWN && s->end.state == MSC_INFER_KNOWN &&
                    s->strides.state != MSC_INFER_UNKNOWN && msc_infer__is_number(stride);
    if (!is_known) {
        return msc_infer__fresh(&out->dims[axis], call, 0, axis);
    }
    if (stride.value == 0) {
        return msc_infer__fail(call, "a stride is 0, expected any other number");
    }
    struct msc_dim begin = s->begin.values[i], end = s->end.values[i];
    if (msc_infer__is_number(length) && msc_infer__is_number(begin) && msc_infer__is_number(end)) {
        int64_t count, first = begin.value;
        msc_infer_slice_range(&first, &count, length.value, end.value, stride.value);
        out->dims[axis] = msc_infer__number(count);
        slice_values(out, x, first, count, stride.value);
        return MSC_OK;
    }
    return slice_symbolic(&out->dims[axis], call, length, begin, end, stride.value, axis);
}

enum msc_status msc_infer__slice(const struct msc_infer *call) {
    struct slice s;
    msc_infer__copy(&call->outputs[0], call->operands[0]);
    MSC_TRY(read_slice(&s, call));
    if (s.n == 0) {
        msc_infer__copy_all(&call->outputs[0], call->operands[0]);
    }
    if (s.axes.state == MSC_INFER_UNKNOWN) {
        for (int i = 0; i < call->operands[0]->n_dims; i++) {
            MSC_TRY(msc_infer__fresh(&call->outputs[0].dims[i], call, 0, i));
        }
        return MSC_OK;
    }
    MSC_TRY(check_slice_axes(call, &s));
    for (int i = 0; i < s.n; i++) {
        MSC_TRY(slice_axis(call, &s, i));
    }
    return MSC_OK;
}

enum msc_status msc_infer__pad(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list width;
    msc_infer__copy(out, x);
    MSC_TRY(msc_infer__list(&width, call, "pad_width"));
    bool is_for_some = msc_infer__text(call, "axes")[0] != '\0' ||
                       (call->n_operands > 3 && call->operands[3] != NULL);
    for (int i = 0; is_for_some && i < x->n_dims; i++) {
        MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
    }
    if (is_for_some) { // pad_width does not yet cover all axes, as a length was unknown
        return MSC_OK;
    }
    if (width.n >= 0 && width.n != 2 * x->n_dims) {
        return msc_infer__fail(call, "pad_width has %d numbers, expected %d", width.n,
                               2 * x->n_dims);
    }
    for (int i = 0; i < x->n_dims; i++) {
        if (width.state != MSC_INFER_KNOWN) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
            continue;
        }
        struct msc_dim *d = &out->dims[i];
        MSC_TRY(msc_dim_binary(d, call->graph, "Add", *d, width.values[i]));
        MSC_TRY(msc_dim_binary(d, call->graph, "Add", *d, width.values[x->n_dims + i]));
        if (msc_infer__is_number(*d) && d->value < 0) {
            return msc_infer__fail(call, "axis %d would have length %lld, expected 0 or more", i,
                                   (long long)d->value);
        }
    }
    return MSC_OK;
}

static void take_values(struct msc_infer_tensor *out, const struct msc_infer_tensor *x,
                        const struct msc_infer_tensor *indices) {
    if (x->n_dims != 1 || x->n_values < 0 || indices->n_values < 0) {
        return;
    }
    for (int i = 0; i < indices->n_values; i++) {
        struct msc_dim index = indices->values[i];
        if (!msc_infer__is_number(index) || index.value < -x->n_values ||
            index.value >= x->n_values) {
            return;
        }
        out->values[i] = x->values[index.value < 0 ? index.value + x->n_values : index.value];
    }
    out->n_values = indices->n_values;
}

enum msc_status msc_infer__take(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *indices = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    int axis;
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    if (indices->dtype != MSC_DTYPE_I64 && indices->dtype != MSC_DTYPE_I32) {
        return msc_infer__fail(call, "indices are %s, expected int32 or int64",
                               msc_dtype_name(indices->dtype));
    }
    int rank = x->n_dims - 1 + indices->n_dims;
    if (rank > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, expected at most %d", rank,
                               MSC_MAX_DIMS);
    }
    out->dtype = x->dtype;
    out->n_dims = rank;
    for (int i = 0; i < rank; i++) {
        out->dims[i] = i < axis                     ? x->dims[i]
                       : i < axis + indices->n_dims ? indices->dims[i - axis]
                                                    : x->dims[i - indices->n_dims + 1];
    }
    if (indices->n_dims == 1) {
        memcpy(out->layout, x->layout, sizeof(out->layout));
    } else if (indices->n_dims == 0 && x->layout[0] != '\0') {
        for (int i = 0; i < rank; i++) {
            out->layout[i] = x->layout[i < axis ? i : i + 1];
        }
        out->layout[rank] = '\0';
    }
    take_values(out, x, indices);
    return MSC_OK;
}

enum msc_status msc_infer__broadcast_to(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list shape;
    struct msc_infer_tensor to = {.dtype = x->dtype, .n_values = -1};
    MSC_TRY(msc_infer__list(&shape, call, "shape"));
    to.n_dims = shape.state == MSC_INFER_ABSENT ? 0 : shape.n;
    if (to.n_dims < 0 || to.n_dims > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, expected 0 to %d", shape.n,
                               MSC_MAX_DIMS);
    }
    for (int i = 0; i < to.n_dims; i++) {
        if (shape.state == MSC_INFER_KNOWN) {
            to.dims[i] = shape.values[i];
        } else {
            MSC_TRY(msc_infer__fresh(&to.dims[i], call, 0, i));
        }
        if (msc_infer__is_number(to.dims[i]) && to.dims[i].value < 0) {
            return msc_infer__fail(call, "dimension %d is %lld, expected 0 or more", i,
                                   (long long)to.dims[i].value);
        }
    }
    MSC_TRY(msc_infer__broadcast(out, call, x, &to));
    bool is_list = x->n_values == 1 && out->n_dims == 1 && msc_infer__is_number(out->dims[0]);
    if (is_list && out->dims[0].value <= MSC_INFER_MAX_VALUES) {
        out->n_values = (int)out->dims[0].value;
        for (int i = 0; i < out->n_values; i++) {
            out->values[i] = x->values[0];
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__tile(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list repeats;
    msc_infer__copy(out, x);
    MSC_TRY(msc_infer__list(&repeats, call, "repeats"));
    if (repeats.n >= 0 && repeats.n != x->n_dims) {
        return msc_infer__fail(call, "repeats has %d numbers, expected %d", repeats.n, x->n_dims);
    }
    for (int i = 0; i < x->n_dims; i++) {
        if (repeats.state != MSC_INFER_KNOWN) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
            continue;
        }
        if (msc_infer__is_number(repeats.values[i]) && repeats.values[i].value < 0) {
            return msc_infer__fail(call, "repeats contains %lld, expected 0 or more",
                                   (long long)repeats.values[i].value);
        }
        MSC_TRY(msc_dim_binary(&out->dims[i], call->graph, "Mul", x->dims[i], repeats.values[i]));
    }
    return MSC_OK;
}
