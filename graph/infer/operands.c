// Helpers for the inference functions: read and check attributes and operands. Errors name the
// joint.
#include "graph/graph_internal.h"
#include "graph/infer/infer_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum msc_status msc_infer__fail(const struct msc_infer *call, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return MSC_FAIL(MSC_E_INVALID, "joint '%s' (%s): %s", call->joint->name,
                    msc_op_info(call->joint->op)->name, text);
}

void msc_infer__copy(struct msc_infer_tensor *out, const struct msc_infer_tensor *in) {
    out->dtype = in->dtype;
    out->n_dims = in->n_dims;
    memcpy(out->dims, in->dims, sizeof(out->dims));
    memcpy(out->layout, in->layout, sizeof(out->layout));
}

void msc_infer__copy_all(struct msc_infer_tensor *out, const struct msc_infer_tensor *in) {
    msc_infer__copy(out, in);
    out->n_values = in->n_values;
    for (int i = 0; i < in->n_values; i++) {
        out->values[i] = in->values[i];
    }
}

const char *msc_infer__shape_text(char text[MSC_INFER_TEXT_BYTES], const struct msc_infer *call,
                                  const struct msc_infer_tensor *t) {
    size_t used = 0;
    text[used++] = '[';
    for (int i = 0; i < t->n_dims && used < MSC_INFER_TEXT_BYTES - 32; i++) {
        const char *comma = i == 0 ? "" : ",";
        int n = msc_infer__is_number(t->dims[i])
                    ? snprintf(text + used, 28, "%s%lld", comma, (long long)t->dims[i].value)
                    : snprintf(text + used, 28, "%s%s", comma,
                               msc_graph_prim(call->graph, t->dims[i].prim)->name);
        used += n < 28 ? (size_t)n : 27;
    }
    text[used++] = ']';
    text[used] = '\0';
    return text;
}

enum msc_status msc_infer__int(int64_t *out, const struct msc_infer *call, const char *key) {
    if (!msc_joint_attr_i64(call->joint, key, out)) {
        const char *value = msc_joint_attr(call->joint, key);
        return msc_infer__fail(call, "attribute %s is '%s', expected an integer", key,
                               value == NULL ? "" : value);
    }
    return MSC_OK;
}

enum msc_status msc_infer__check_axis(int *out, const struct msc_infer *call, int64_t axis,
                                      int rank) {
    if (axis < -rank || axis >= rank) {
        return msc_infer__fail(call, "axis %lld is out of range for %d dimensions", (long long)axis,
                               rank);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return MSC_OK;
}

enum msc_status msc_infer__axis(int *out, const struct msc_infer *call, const char *key, int rank) {
    int64_t axis;
    MSC_TRY(msc_infer__int(&axis, call, key));
    return msc_infer__check_axis(out, call, axis, rank);
}

bool msc_infer__bool(const struct msc_infer *call, const char *key) {
    bool value;
    return msc_joint_attr_bool(call->joint, key, &value) && value;
}

enum msc_status msc_infer__ints(int64_t out[], const struct msc_infer *call, const char *key,
                                int n) {
    int found = msc_joint_attr_list(call->joint, key, out, n);
    if (found != n) {
        const char *value = msc_joint_attr(call->joint, key);
        return msc_infer__fail(call, "attribute %s is '%s', expected %d integers", key,
                               value == NULL ? "" : value, n);
    }
    return MSC_OK;
}

const char *msc_infer__text(const struct msc_infer *call, const char *key) {
    const char *value = msc_joint_attr(call->joint, key);
    return value == NULL ? "" : value;
}

static enum msc_status list_from_operand(struct msc_infer_list *out, const struct msc_infer *call,
                                         const char *key, const struct msc_infer_tensor *t) {
    if (t->n_dims > 1 || !(msc_dtype_is_integer(t->dtype) || msc_dtype_is_float(t->dtype))) {
        return msc_infer__fail(call,
                               "operand %s has %d dimensions of %s, expected a list of numbers",
                               key, t->n_dims, msc_dtype_name(t->dtype));
    }
    out->state = MSC_INFER_UNKNOWN;
    if (t->n_dims == 0) {
        out->n = 1;
    } else if (msc_infer__is_number(t->dims[0]) && t->dims[0].value <= MSC_INFER_MAX_VALUES) {
        out->n = (int)t->dims[0].value;
    }
    if (t->n_values >= 0) {
        out->state = MSC_INFER_KNOWN;
        out->n = t->n_values;
        memcpy(out->values, t->values, (size_t)t->n_values * sizeof(out->values[0]));
    }
    return MSC_OK;
}

// Position of the operand with this role, or -1. Uses the operator's roles, because the joint has
// no operands yet.
static int find_role(const struct msc_infer *call, const char *key) {
    struct msc_op_role role;
    for (int i = 0; i < call->n_operands && msc_op_role(call->joint->op, i, &role); i++) {
        if ((size_t)role.length == strlen(key) &&
            strncmp(role.name, key, (size_t)role.length) == 0) {
            return i;
        }
    }
    return -1;
}

enum msc_status msc_infer__list(struct msc_infer_list *out, const struct msc_infer *call,
                                const char *key) {
    *out = (struct msc_infer_list){.state = MSC_INFER_ABSENT, .n = -1};
    int position = find_role(call, key);
    if (position >= 0 && call->operands[position] != NULL) {
        return list_from_operand(out, call, key, call->operands[position]);
    }
    const char *value = msc_infer__text(call, key);
    if (value[0] == '\0') {
        return MSC_OK;
    }
    int64_t numbers[MSC_INFER_MAX_VALUES];
    int n = msc_joint_attr_list(call->joint, key, numbers, MSC_INFER_MAX_VALUES);
    if (n < 0 || n > MSC_INFER_MAX_VALUES) {
        return msc_infer__fail(call, "attribute %s is '%.64s', expected up to %d integers", key,
                               value, MSC_INFER_MAX_VALUES);
    }
    out->state = MSC_INFER_KNOWN;
    out->n = n;
    for (int i = 0; i < n; i++) {
        out->values[i] = msc_infer__number(numbers[i]);
    }
    return MSC_OK;
}

enum msc_status msc_infer__axes(bool is_axis[MSC_MAX_DIMS], bool *is_given,
                                const struct msc_infer *call, int rank) {
    struct msc_infer_list axes;
    MSC_TRY(msc_infer__list(&axes, call, "axis"));
    if (axes.state == MSC_INFER_UNKNOWN) {
        return msc_infer__fail(call, "its axes are computed at run time, expected constants");
    }
    *is_given = axes.state == MSC_INFER_KNOWN && axes.n > 0;
    memset(is_axis, 0, MSC_MAX_DIMS * sizeof(is_axis[0]));
    for (int i = 0; i < axes.n; i++) {
        int axis = 0;
        if (!msc_infer__is_number(axes.values[i])) {
            return msc_infer__fail(call, "its axes are symbolic, expected constants");
        }
        MSC_TRY(msc_infer__check_axis(&axis, call, axes.values[i].value, rank));
        if (is_axis[axis]) {
            return msc_infer__fail(call, "axis %d is given twice", axis);
        }
        is_axis[axis] = true;
    }
    return MSC_OK;
}

enum msc_status msc_infer__fresh(struct msc_dim *out, const struct msc_infer *call, int output,
                                 int dim) {
    const char *name =
        msc_arena_printf(&call->graph->arena, "%s:%d.%d", call->joint->name, output, dim);
    MSC_TRY(MSC_ALLOCATED(name));
    out->value = -1;
    return msc_graph_add_symbol(&out->prim, call->graph, name);
}

enum msc_status msc_infer__product(struct msc_dim *out, const struct msc_infer *call,
                                   const struct msc_dim dims[], int first, int last) {
    *out = msc_infer__number(1);
    for (int i = first; i < last; i++) {
        MSC_TRY(msc_dim_binary(out, call->graph, "Mul", *out, dims[i]));
    }
    return MSC_OK;
}

enum msc_status msc_infer__require_rank(const struct msc_infer *call, int operand, int rank) {
    const struct msc_infer_tensor *t = call->operands[operand];
    if (t->n_dims != rank) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "operand %d is %s, expected %d dimensions", operand,
                               msc_infer__shape_text(text, call, t), rank);
    }
    return MSC_OK;
}

bool msc_infer__agree(struct msc_dim a, struct msc_dim b) {
    return !msc_infer__is_number(a) || !msc_infer__is_number(b) || a.value == b.value;
}

enum msc_status msc_infer__require_count(const struct msc_infer *call, int operand,
                                         struct msc_dim many) {
    const struct msc_infer_tensor *t = operand < call->n_operands ? call->operands[operand] : NULL;
    struct msc_dim n = msc_infer__number(1);
    int n_long = 0;
    for (int i = 0; t != NULL && i < t->n_dims; i++) {
        bool is_one = msc_infer__is_number(t->dims[i]) && t->dims[i].value == 1;
        n = is_one ? n : t->dims[i];
        n_long += !is_one;
    }
    if (n_long == 0 || (n_long == 1 && msc_infer__agree(n, many))) {
        return MSC_OK;
    }
    char text[MSC_INFER_TEXT_BYTES];
    return msc_infer__fail(
        call, "operand %d is %s, expected one element%s", operand,
        msc_infer__shape_text(text, call, t),
        msc_infer__is_number(many) && many.value == 1 ? "" : " or one for each row or channel");
}

enum msc_status msc_infer__require_float(const struct msc_infer *call, int operand) {
    enum msc_dtype dtype = call->operands[operand]->dtype;
    if (!msc_dtype_is_float(dtype)) {
        return msc_infer__fail(call, "operand %d is %s, expected a float type", operand,
                               msc_dtype_name(dtype));
    }
    return MSC_OK;
}
