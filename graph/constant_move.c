// Constants copied, cut and put together.
#include "graph/constant_internal.h"
#include "graph/infer_internal.h"

#include <string.h>

void msc_constant__strides(int64_t strides[], int n_dims, const int64_t dims[]) {
    int64_t step = 1;
    for (int i = n_dims - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
}

void msc_constant__copy_strided(char *to, const char *from, size_t element_bytes,
                                const struct msc_constant_copy *copy) {
    int64_t index[MSC_MAX_DIMS] = {0};
    int64_t n = msc_dims_product(copy->n_dims, copy->dims);
    int64_t from_at = 0, to_at = 0;
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + to_at * (int64_t)element_bytes, from + from_at * (int64_t)element_bytes,
               element_bytes);
        for (int d = copy->n_dims - 1; d >= 0; d--) {
            from_at += copy->strides[d];
            to_at += copy->to_strides[d];
            if (++index[d] < copy->dims[d]) {
                break;
            }
            from_at -= copy->strides[d] * copy->dims[d];
            to_at -= copy->to_strides[d] * copy->dims[d];
            index[d] = 0;
        }
    }
}

static struct msc_constant_copy copy_of(const struct msc_array *out) {
    struct msc_constant_copy copy = {.n_dims = msc_array_n_dims(out)};
    const int64_t *dims = msc_array_dims(out);
    for (int i = 0; i < copy.n_dims; i++) {
        copy.dims[i] = dims[i];
    }
    msc_constant__strides(copy.to_strides, copy.n_dims, copy.dims);
    return copy;
}

static size_t element_bytes(const struct msc_array *a) {
    return msc_dtype_bytes(msc_array_dtype(a));
}

bool msc_constant__copy(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    if (msc_array_n_bytes(in) != msc_array_n_bytes(call->outputs[0])) {
        return false;
    }
    if (msc_array_n_bytes(in) > 0) {
        memcpy(msc_array_data(call->outputs[0]), msc_array_data(in), msc_array_n_bytes(in));
    }
    return true;
}

static int axis_of(const struct msc_constant_call *call, int rank) {
    int64_t axis;
    if (!msc_joint_attr_i64(call->joint, "axis", &axis) || axis < -rank || axis >= rank) {
        return -1;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

bool msc_constant__permute(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    struct msc_constant_copy copy = copy_of(call->outputs[0]);
    int64_t axes[MSC_MAX_DIMS], strides[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(call->joint, "axes", axes, MSC_MAX_DIMS);
    if (n != copy.n_dims) {
        return false;
    }
    msc_constant__strides(strides, n, msc_array_dims(in));
    for (int i = 0; i < n; i++) {
        copy.strides[i] = strides[axes[i] < 0 ? axes[i] + n : axes[i]];
    }
    msc_constant__copy_strided(msc_array_data(call->outputs[0]), msc_array_data(in),
                               element_bytes(in), &copy);
    return true;
}

bool msc_constant__concat(const struct msc_constant_call *call) {
    struct msc_array *out = call->outputs[0];
    int axis = axis_of(call, msc_array_n_dims(out));
    struct msc_constant_copy copy = copy_of(out);
    int64_t at = 0;
    if (axis < 0) {
        return false;
    }
    for (int i = 0; i < call->n_operands; i++) {
        const struct msc_array *in = call->operands[i];
        copy.dims[axis] = msc_array_dim(in, axis);
        msc_constant__strides(copy.strides, copy.n_dims, msc_array_dims(in));
        char *to =
            (char *)msc_array_data(out) + at * copy.to_strides[axis] * (int64_t)element_bytes(out);
        msc_constant__copy_strided(to, msc_array_data(in), element_bytes(in), &copy);
        at += copy.dims[axis];
    }
    return true;
}

bool msc_constant__split(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    int axis = axis_of(call, msc_array_n_dims(in));
    int64_t at = 0;
    if (axis < 0) {
        return false;
    }
    for (int32_t i = 0; i < call->joint->n_outputs; i++) {
        struct msc_constant_copy copy = copy_of(call->outputs[i]);
        msc_constant__strides(copy.strides, copy.n_dims, msc_array_dims(in));
        const char *from =
            (const char *)msc_array_data(in) + at * copy.strides[axis] * (int64_t)element_bytes(in);
        msc_constant__copy_strided(msc_array_data(call->outputs[i]), from, element_bytes(in),
                                   &copy);
        at += copy.dims[axis];
    }
    return true;
}

// At most MSC_MAX_DIMS numbers of an attribute; absent ones are `otherwise`.
static bool read_list(int64_t out[MSC_MAX_DIMS], const struct msc_joint *j, const char *key, int n,
                      const int64_t otherwise[]) {
    const char *text = msc_joint_attr(j, key);
    if (text == NULL) {
        return false;
    }
    if (text[0] == '\0' && otherwise != NULL) {
        for (int i = 0; i < n; i++) {
            out[i] = otherwise[i];
        }
        return true;
    }
    return msc_joint_attr_list(j, key, out, MSC_MAX_DIMS) == n;
}

bool msc_constant__slice(const struct msc_constant_call *call) {
    static const int64_t ones[MSC_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t in_order[MSC_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct msc_array *in = call->operands[0];
    const struct msc_joint *j = call->joint;
    struct msc_constant_copy copy = copy_of(call->outputs[0]);
    int64_t begin[MSC_MAX_DIMS], end[MSC_MAX_DIMS], axes[MSC_MAX_DIMS], steps[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(j, "begin", begin, MSC_MAX_DIMS);
    if (n < 0 || n > copy.n_dims || !read_list(end, j, "end", n, NULL) ||
        !read_list(axes, j, "axes", n, in_order) || !read_list(steps, j, "strides", n, ones)) {
        return false;
    }
    msc_constant__strides(copy.strides, copy.n_dims, msc_array_dims(in));
    const char *from = msc_array_data(in);
    for (int i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + copy.n_dims : axes[i];
        int64_t count;
        msc_infer__slice_range(&begin[i], &count, msc_array_dim(in, (int)axis), end[i], steps[i]);
        if (count > 0) {
            from += begin[i] * copy.strides[axis] * (int64_t)element_bytes(in);
        }
        copy.strides[axis] *= count > 1 ? steps[i] : 0; // any step, where there is none
    }
    msc_constant__copy_strided(msc_array_data(call->outputs[0]), from, element_bytes(in), &copy);
    return true;
}

bool msc_constant__take(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0], *indices = call->operands[1];
    int axis = axis_of(call, msc_array_n_dims(in));
    if (axis < 0) {
        return false;
    }
    const int64_t *dims = msc_array_dims(in);
    int64_t n_outer = msc_dims_product(axis, dims);
    int64_t inner_bytes = msc_dims_product(msc_array_n_dims(in) - axis - 1, dims + axis + 1) *
                          (int64_t)element_bytes(in);
    char *to = msc_array_data(call->outputs[0]);
    const char *from = msc_array_data(in);
    for (int64_t o = 0; o < n_outer; o++) {
        for (int64_t i = 0; i < msc_array_n_elements(indices); i++) {
            int64_t at = msc_array_get_i64(indices, i);
            at = at < 0 ? at + dims[axis] : at;
            if (at < 0 || at >= dims[axis]) {
                return false;
            }
            memcpy(to, from + (o * dims[axis] + at) * inner_bytes, (size_t)inner_bytes);
            to += inner_bytes;
        }
    }
    return true;
}

bool msc_constant__broadcast_to(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    struct msc_constant_copy copy = copy_of(call->outputs[0]);
    int rank = msc_array_n_dims(in);
    int64_t strides[MSC_MAX_DIMS];
    msc_constant__strides(strides, rank, msc_array_dims(in));
    for (int i = 0; i < rank; i++) {
        int to = copy.n_dims - rank + i;
        copy.strides[to] = msc_array_dim(in, i) == 1 ? 0 : strides[i];
    }
    msc_constant__copy_strided(msc_array_data(call->outputs[0]), msc_array_data(in),
                               element_bytes(in), &copy);
    return true;
}

bool msc_constant__tile(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    struct msc_array *out = call->outputs[0];
    int n = msc_array_n_dims(in);
    int64_t in_strides[MSC_MAX_DIMS], out_strides[MSC_MAX_DIMS];
    size_t bytes = element_bytes(in);
    msc_constant__strides(in_strides, n, msc_array_dims(in));
    msc_constant__strides(out_strides, n, msc_array_dims(out));
    for (int64_t i = 0; i < msc_array_n_elements(out); i++) {
        int64_t from = 0, rest = i;
        for (int d = 0; d < n; d++) {
            from += rest / out_strides[d] % msc_array_dim(in, d) * in_strides[d];
            rest %= out_strides[d];
        }
        memcpy((char *)msc_array_data(out) + i * (int64_t)bytes,
               (const char *)msc_array_data(in) + from * (int64_t)bytes, bytes);
    }
    return true;
}
