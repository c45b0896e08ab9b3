// Adjusts attributes of joints whose tensors lose channels: one function for each operator that
// has such attributes.
#include "graph/infer.h"
#include "graph/passes/prune_internal.h"
#include "graph/reshape.h"

#include <string.h>

// ---- Setting attributes -----------------------------------------------------------------------

// Sets an attribute of the copy. First copies the attributes, because they are shared with the
// original joint.
static enum msc_status set_attr(struct msc_builder_copy *copy, struct msc_prune *p, const char *key,
                                const char *value) {
    int32_t n = copy->joint.n_attrs, i = 0;
    struct msc_attr *attrs = msc_arena_array(&p->builder->arena, (size_t)n + 1, sizeof(attrs[0]));
    MSC_TRY(MSC_ALLOCATED(attrs && value));
    memcpy(attrs, copy->joint.attrs, (size_t)n * sizeof(attrs[0]));
    while (i < n && strcmp(attrs[i].key, key) != 0) {
        i++;
    }
    attrs[i] = (struct msc_attr){key, value};
    copy->joint.attrs = attrs;
    copy->joint.n_attrs = i == n ? n + 1 : n;
    return MSC_OK;
}

static enum msc_status set_ints(struct msc_builder_copy *copy, struct msc_prune *p, const char *key,
                                const int64_t values[], int n) {
    return set_attr(copy, p, key, msc_builder_ints(p->builder, values, n));
}

static bool is_any_cut(const struct msc_prune *p, int32_t tensor) {
    for (int i = 0; i < msc_graph_tensor(p->from, tensor)->n_dims; i++) {
        if (msc_prune__is_cut(p, tensor, i)) {
            return true;
        }
    }
    return false;
}

// ---- Operators --------------------------------------------------------------------------------

// Sets the number of groups: the number of input channels, divided by the number of input channels
// of one group (length of the weight's axis I). For a transposed convolution, uses output channels
// and axis O.
static enum msc_status prune_conv(struct msc_builder_copy *copy, struct msc_prune *p,
                                  const struct msc_joint *j) {
    bool is_turned = msc_op_is_conv_transpose(j->op);
    const char *layout = msc_joint_attr(j, is_turned ? "out_layout" : "data_layout");
    layout = layout == NULL || layout[0] == '\0' ? msc_joint_attr(j, "data_layout") : layout;
    int channels = (int)(strchr(layout, 'C') - layout);
    const char *kernel = msc_joint_attr(j, "kernel_layout");
    int each = (int)(strchr(kernel, is_turned ? 'O' : 'I') - kernel);
    int64_t all[MSC_MAX_DIMS], one[MSC_MAX_DIMS], groups;
    if (!msc_joint_attr_i64(j, "groups", &groups) || groups == 1) {
        return MSC_OK;
    }
    msc_prune__dims(all, p, is_turned ? j->outputs[0] : j->operands[0]);
    msc_prune__dims(one, p, j->operands[1]);
    return set_attr(copy, p, "groups", msc_builder_int(p->builder, all[channels] / one[each]));
}

static enum msc_status prune_recurrent(struct msc_builder_copy *copy, struct msc_prune *p,
                                       const struct msc_joint *j) {
    int64_t dims[MSC_MAX_DIMS];
    const char *size = msc_joint_attr(j, "hidden_size");
    if (size == NULL || size[0] == '\0') {
        return MSC_OK;
    }
    msc_prune__dims(dims, p, j->operands[2]);
    return set_attr(copy, p, "hidden_size", msc_builder_int(p->builder, dims[2]));
}

// True if an element of the shape operand must change. 0 in `numbers` means that the element is
// kept.
static bool differs(const struct msc_prune *p, const struct msc_value *shape,
                    const int64_t numbers[], int n) {
    const struct msc_graph_tensor *t = p->builder->graph->tensors[shape->tensor];
    for (int i = 0; i < n; i++) {
        bool is_same =
            t->n_values == n && t->values[i].prim == MSC_NO_ID && t->values[i].value == numbers[i];
        if (numbers[i] != 0 && !is_same) {
            return true;
        }
    }
    return false;
}

static enum msc_status add_list(struct msc_value **out, struct msc_prune *p, const char *joint,
                                const char *what, enum msc_dtype dtype, const int64_t numbers[],
                                int n) {
    const int64_t dims[] = {n};
    const char *name = msc_arena_printf(&p->builder->arena, "%s.%s", joint, what);
    struct msc_array *array;
    MSC_TRY(msc_array_create(&array, dtype, 1, dims));
    for (int i = 0; i < n; i++) {
        if (dtype == MSC_DTYPE_I64) {
            ((int64_t *)msc_array_data(array))[i] = numbers[i];
        } else {
            ((bool *)msc_array_data(array))[i] = numbers[i] != 0;
        }
    }
    enum msc_status status = name == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                          : msc_builder_constant(out, p->builder, name, array);
    msc_array_release(array);
    return status;
}

// Adds a joint that replaces elements of the shape operand by the numbers that are not 0.
static enum msc_status put_lengths(struct msc_builder_copy *copy, struct msc_prune *p,
                                   const struct msc_joint *j, const int64_t numbers[], int n) {
    struct msc_value *operands[3] = {NULL, NULL, copy->operands[1]};
    const char *alias = "";
    const struct msc_builder_joint where = {
        .op = MSC_OP_WHERE,
        .name = msc_arena_printf(&p->builder->arena, "%s.shape", j->name),
        .scope = j->scope,
        .n_operands = 3,
        .operands = operands,
        .n_outputs = 1,
        .aliases = &alias};
    MSC_TRY(add_list(&operands[0], p, j->name, "is_known", MSC_DTYPE_BOOL, numbers, n));
    MSC_TRY(add_list(&operands[1], p, j->name, "lengths", MSC_DTYPE_I64, numbers, n));
    return where.name == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                              : msc_builder_add(&copy->operands[1], p->builder, &where);
}

// Sets the remaining lengths in the attribute `shape` if it can express all of them; otherwise in
// the shape operand.
static enum msc_status prune_shape(struct msc_builder_copy *copy, struct msc_prune *p,
                                   const struct msc_joint *j) {
    int64_t shape[MSC_MAX_DIMS], numbers[MSC_MAX_DIMS], dims[MSC_MAX_DIMS];
    msc_prune__dims(dims, p, j->outputs[0]);
    int n = msc_reshape_shape(shape, p->from, j, dims);
    int n_numbers = msc_reshape_elements(numbers, p->from, j, dims);
    bool is_other = is_any_cut(p, j->outputs[0]) ||
                    (n_numbers >= 0 && differs(p, copy->operands[1], numbers, n_numbers));
    if (!is_other || (n < 0 && n_numbers < 0)) {
        return MSC_OK;
    }
    if (n < 0) {
        return put_lengths(copy, p, j, numbers, n_numbers);
    }
    if (j->n_operands > 1) {
        copy->operands[1] = NULL;
    }
    return set_ints(copy, p, "shape", shape, n);
}

static enum msc_status prune_split(struct msc_builder_copy *copy, struct msc_prune *p,
                                   const struct msc_joint *j) {
    int n_dims = msc_graph_tensor(p->from, j->operands[0])->n_dims;
    int64_t axis, cuts[MSC_INFER_MAX_VALUES], dims[MSC_MAX_DIMS], end = 0;
    if (!msc_joint_attr_i64(j, "axis", &axis)) {
        return MSC_OK;
    }
    axis += axis < 0 ? n_dims : 0;
    if (!msc_prune__is_cut(p, j->operands[0], (int)axis)) {
        return MSC_OK;
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        msc_prune__dims(dims, p, j->outputs[i]);
        end += dims[axis];
        cuts[i] = end;
    }
    return j->n_outputs < 2 ? MSC_OK
                            : set_ints(copy, p, "indices_or_sections", cuts, j->n_outputs - 1);
}

static enum msc_status prune_slice(struct msc_builder_copy *copy, struct msc_prune *p,
                                   const struct msc_joint *j) {
    int64_t axes[MSC_MAX_DIMS], begin[MSC_MAX_DIMS], end[MSC_MAX_DIMS], count;
    const struct msc_tensor *x = msc_graph_tensor(p->from, j->operands[0]);
    int n = msc_joint_attr_list(j, "begin", begin, MSC_MAX_DIMS);
    int n_axes = msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS);
    bool is_cut = false;
    if (n < 0 || msc_joint_attr_list(j, "end", end, MSC_MAX_DIMS) != n) {
        return MSC_OK;
    }
    for (int i = 0; i < n; i++) {
        int64_t axis = n_axes > i ? axes[i] : i;
        axis += axis < 0 ? x->n_dims : 0;
        if (msc_prune__is_cut(p, j->operands[0], (int)axis)) {
            msc_infer_slice_range(&begin[i], &count, x->dims[axis], end[i], 1);
            end[i] = msc_prune__count(p, j->operands[0], (int)axis, begin[i] + count);
            begin[i] = msc_prune__count(p, j->operands[0], (int)axis, begin[i]);
            is_cut = true;
        }
    }
    if (!is_cut) {
        return MSC_OK;
    }
    MSC_TRY(set_ints(copy, p, "begin", begin, n));
    return set_ints(copy, p, "end", end, n);
}

// Reduces pad widths by the number of removed channels that the pad added.
static enum msc_status prune_pad(struct msc_builder_copy *copy, struct msc_prune *p,
                                 const struct msc_joint *j) {
    const struct msc_tensor *y = msc_graph_tensor(p->from, j->outputs[0]);
    int64_t widths[2 * MSC_MAX_DIMS];
    int32_t out = j->outputs[0];
    if (msc_joint_attr_list(j, "pad_width", widths, 2 * MSC_MAX_DIMS) != 2 * y->n_dims ||
        !is_any_cut(p, out)) {
        return MSC_OK;
    }
    for (int i = 0; i < y->n_dims; i++) {
        int64_t *begin = &widths[i], *end = &widths[y->n_dims + i], length = y->dims[i];
        if (msc_prune__is_cut(p, out, i) && *begin >= 0 && *end >= 0) {
            *end = msc_prune__count(p, out, i, length) - msc_prune__count(p, out, i, length - *end);
            *begin = msc_prune__count(p, out, i, *begin);
        }
    }
    return set_ints(copy, p, "pad_width", widths, 2 * y->n_dims);
}

static enum msc_status prune_resize(struct msc_builder_copy *copy, struct msc_prune *p,
                                    const struct msc_joint *j) {
    int64_t sizes[MSC_MAX_DIMS], dims[MSC_MAX_DIMS];
    int n_dims = msc_graph_tensor(p->from, j->outputs[0])->n_dims;
    if (msc_joint_attr_list(j, "size", sizes, MSC_MAX_DIMS) != n_dims ||
        !is_any_cut(p, j->outputs[0])) {
        return MSC_OK;
    }
    msc_prune__dims(dims, p, j->outputs[0]);
    for (int i = 0; i < n_dims; i++) {
        sizes[i] = dims[i] >= 0 && msc_prune__is_cut(p, j->outputs[0], i) ? dims[i] : sizes[i];
    }
    return set_ints(copy, p, "size", sizes, n_dims);
}

// Renumbers the indices of a `take`: each becomes its position among the remaining channels of the
// input.
static enum msc_status prune_take(struct msc_builder_copy *copy, struct msc_prune *p,
                                  const struct msc_joint *j) {
    int64_t axis, length;
    int32_t weight = msc_graph_weight_of(p->from, j->operands[1]);
    const struct msc_tensor *x = msc_graph_tensor(p->from, j->operands[0]);
    if (weight == MSC_NO_ID || !msc_joint_attr_i64(j, "axis", &axis)) {
        return MSC_OK;
    }
    axis += axis < 0 ? x->n_dims : 0;
    length = x->dims[axis];
    if (!msc_prune__is_cut(p, j->operands[0], (int)axis)) {
        return MSC_OK;
    }
    const struct msc_value *was = p->values[weight];
    const struct msc_array *old = was->constant;
    struct msc_array *indices;
    MSC_TRY(msc_array_create(&indices, MSC_DTYPE_I64, msc_array_n_dims(old), msc_array_dims(old)));
    for (int64_t i = 0; i < msc_array_n_elements(old); i++) {
        int64_t from = msc_array_get_i64(old, i);
        from += from < 0 ? length : 0;
        ((int64_t *)msc_array_data(indices))[i] =
            msc_prune__count(p, j->operands[0], (int)axis, from);
    }
    enum msc_status status =
        msc_builder_constant(&copy->operands[1], p->builder, was->name, indices);
    msc_array_release(indices);
    return status;
}

typedef enum msc_status (*prune_fn)(struct msc_builder_copy *copy, struct msc_prune *p,
                                    const struct msc_joint *j);

static const prune_fn functions[MSC_OP_COUNT] = {
    [MSC_OP_CONV1D] = prune_conv,
    [MSC_OP_CONV1D_BIAS] = prune_conv,
    [MSC_OP_CONV2D] = prune_conv,
    [MSC_OP_CONV2D_BIAS] = prune_conv,
    [MSC_OP_CONV3D] = prune_conv,
    [MSC_OP_CONV3D_BIAS] = prune_conv,
    [MSC_OP_CONV1D_TRANSPOSE] = prune_conv,
    [MSC_OP_CONV2D_TRANSPOSE] = prune_conv,
    [MSC_OP_CONV3D_TRANSPOSE] = prune_conv,
    [MSC_OP_RNN] = prune_recurrent,
    [MSC_OP_GRU] = prune_recurrent,
    [MSC_OP_LSTM] = prune_recurrent,
    [MSC_OP_RESHAPE] = prune_shape,
    [MSC_OP_BROADCAST_TO] = prune_shape,
    [MSC_OP_SPLIT] = prune_split,
    [MSC_OP_STRIDED_SLICE] = prune_slice,
    [MSC_OP_PAD] = prune_pad,
    [MSC_OP_RESIZE] = prune_resize,
    [MSC_OP_RESIZE_ANTIALIAS] = prune_resize,
    [MSC_OP_TAKE] = prune_take,
};

enum msc_status msc_prune__attrs(struct msc_builder_copy *copy, struct msc_prune *p,
                                 const struct msc_joint *j) {
    return functions[j->op] == NULL ? MSC_OK : functions[j->op](copy, p, j);
}
