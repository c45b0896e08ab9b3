#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

static enum msc_status bad_attr(const struct msc_reference_call *call, const char *key,
                                const char *expected) {
    const char *text = msc_joint_attr(call->joint, key);
    return MSC_FAIL(MSC_E_INVALID, "joint %s: attribute %s: expected %s, found '%s'",
                    call->joint->name, key, expected, text ? text : "nothing");
}

enum msc_status msc_reference__get_i64(int64_t *out, const struct msc_reference_call *call,
                                       const char *key) {
    return msc_joint_attr_i64(call->joint, key, out) ? MSC_OK : bad_attr(call, key, "an integer");
}

enum msc_status msc_reference__get_float(float *out, const struct msc_reference_call *call,
                                         const char *key) {
    return msc_joint_attr_float(call->joint, key, out) ? MSC_OK : bad_attr(call, key, "a number");
}

enum msc_status msc_reference__get_bool(bool *out, const struct msc_reference_call *call,
                                        const char *key) {
    return msc_joint_attr_bool(call->joint, key, out) ? MSC_OK : bad_attr(call, key, "0 or 1");
}

const char *msc_reference__get_text(const struct msc_reference_call *call, const char *key) {
    const char *text = msc_joint_attr(call->joint, key);
    return text ? text : "";
}

enum msc_status msc_reference__fail_text(const struct msc_reference_call *call, const char *key) {
    return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s '%s' is not supported", call->joint->name, key,
                    msc_reference__get_text(call, key));
}

enum msc_status msc_reference__get_axis(int *out, const struct msc_reference_call *call,
                                        const char *key, int n_dims) {
    int64_t axis;
    MSC_TRY(msc_reference__get_i64(&axis, call, key));
    int64_t positive = axis < 0 ? axis + n_dims : axis;
    if (positive < 0 || positive >= n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: %s %lld is out of range for %d dimensions",
                        call->joint->name, key, (long long)axis, n_dims);
    }
    *out = (int)positive;
    return MSC_OK;
}

// The operand with this role, or NULL.
static const struct msc_view *param_operand(const struct msc_reference_call *call,
                                            const char *role) {
    int position = msc_joint_operand(call->joint, role);
    return position >= 0 && msc_reference__has(call, position) ? &call->operands[position] : NULL;
}

static enum msc_status check_count(const struct msc_reference_call *call, const char *key,
                                   int64_t n, int max) {
    if (n < 0 || n > max) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: %s has %lld numbers, expected at most %d",
                        call->joint->name, key, (long long)n, max);
    }
    return MSC_OK;
}

enum msc_status msc_reference__param_ints(int64_t out[], int *n,
                                          const struct msc_reference_call *call, const char *key,
                                          const char *role, int max) {
    *n = 0;
    const char *text = msc_joint_attr(call->joint, key);
    const struct msc_view *v = param_operand(call, role);
    if (text && text[0] != '\0') {
        int count = msc_joint_attr_list(call->joint, key, out, max);
        MSC_TRY(check_count(call, key, count, max));
        *n = count;
    } else if (v) {
        int64_t count = msc_view_n_elements(v);
        MSC_TRY(check_count(call, key, count, max));
        for (int64_t i = 0; i < count; i++) {
            out[i] = msc_reference__get_i64_at(v, i);
        }
        *n = (int)count;
    }
    return MSC_OK;
}

enum msc_status msc_reference__param_floats(float out[], int *n,
                                            const struct msc_reference_call *call, const char *key,
                                            const char *role, int max) {
    *n = 0;
    const char *text = msc_joint_attr(call->joint, key);
    const struct msc_view *v = param_operand(call, role);
    if (text && text[0] != '\0') {
        int count = msc_joint_attr_floats(call->joint, key, out, max);
        MSC_TRY(check_count(call, key, count, max));
        *n = count;
    } else if (v) {
        int64_t count = msc_view_n_elements(v);
        MSC_TRY(check_count(call, key, count, max));
        for (int64_t i = 0; i < count; i++) {
            out[i] = (float)msc_reference__get_double_at(v, i);
        }
        *n = (int)count;
    }
    return MSC_OK;
}

enum msc_status msc_reference__need_f32(const struct msc_reference_call *call) {
    enum msc_dtype found = MSC_DTYPE_F32;
    for (int i = 0; i < call->n_operands; i++) {
        enum msc_dtype dtype = call->operands[i].dtype;
        if (dtype != MSC_DTYPE_NONE && dtype != MSC_DTYPE_F32) {
            found = dtype;
        }
    }
    found = call->outputs[0].dtype != MSC_DTYPE_F32 ? call->outputs[0].dtype : found;
    if (found != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s supports only float32, found %s",
                        call->joint->name, msc_op_info(call->joint->op)->name,
                        msc_dtype_name(found));
    }
    return MSC_OK;
}

bool msc_reference__is_f32(const struct msc_reference_call *call) {
    bool is_f32 = call->outputs[0].dtype == MSC_DTYPE_F32;
    for (int i = 0; i < call->n_operands; i++) {
        enum msc_dtype dtype = call->operands[i].dtype;
        is_f32 = is_f32 && (dtype == MSC_DTYPE_NONE || dtype == MSC_DTYPE_F32);
    }
    return is_f32;
}

// Converts the elements of a float view to float32 in `memory`, and makes `to` a view of them.
// Returns the end of the memory used.
static char *to_f32(struct msc_view *to, const struct msc_view *from, char *memory) {
    *to = *from;
    if (msc_dtype_is_float(from->dtype) && from->dtype != MSC_DTYPE_F32) {
        to->dtype = MSC_DTYPE_F32;
        to->data = memory;
        memory += (size_t)msc_view_n_elements(from) * sizeof(float);
    }
    return memory;
}

static bool is_half(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
}

bool msc_reference__convert(const struct msc_view *to, const struct msc_view *from) {
    int64_t n = msc_view_n_elements(from);
    if (from->dtype == MSC_DTYPE_F32 && is_half(to->dtype)) {
        msc_f32_narrow(to->data, to->dtype, from->data, n);
        return true;
    }
    if (to->dtype == MSC_DTYPE_F32 && is_half(from->dtype)) {
        msc_f32_widen(to->data, from->data, from->dtype, n);
        return true;
    }
    return false;
}

enum msc_status msc_reference__through_f32(const struct msc_reference_call *call,
                                           msc_reference_fn kernel) {
    enum { MOST = 16 };
    struct msc_view operands[MOST], output;
    size_t n_elements = (size_t)msc_view_n_elements(&call->outputs[0]) + 1;
    if (call->n_operands > MOST || !msc_dtype_is_float(call->operands[0].dtype)) {
        return msc_reference__need_f32(call);
    }
    for (int i = 0; i < call->n_operands; i++) {
        n_elements += (size_t)msc_view_n_elements(&call->operands[i]);
    }
    char *memory = msc_alloc_zero(n_elements, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(memory));
    char *end = to_f32(&output, &call->outputs[0], memory);
    for (int i = 0; i < call->n_operands; i++) {
        end = to_f32(&operands[i], &call->operands[i], end);
        bool is_copied = operands[i].data != call->operands[i].data;
        is_copied = is_copied && !msc_reference__convert(&operands[i], &call->operands[i]);
        for (int64_t k = 0; is_copied && k < msc_view_n_elements(&operands[i]); k++) {
            msc_reference__set_double_at(&operands[i], k,
                                         msc_reference__get_double_at(&call->operands[i], k));
        }
    }
    struct msc_reference_call inner = *call;
    inner.operands = operands;
    inner.n_outputs = 1;
    inner.outputs = &output;
    enum msc_status status =
        msc_reference__is_f32(&inner) ? kernel(&inner) : msc_reference__need_f32(call);
    bool is_copied = output.data != call->outputs[0].data &&
                     (status != MSC_OK || !msc_reference__convert(&call->outputs[0], &output));
    for (int64_t k = 0; status == MSC_OK && is_copied && k < msc_view_n_elements(&output); k++) {
        msc_reference__set_double_at(&call->outputs[0], k,
                                     msc_reference__get_double_at(&output, k));
    }
    msc_free(memory);
    return status;
}

enum msc_status msc_reference__allocate(const struct msc_reference_call *call, int output,
                                        int n_dims, const int64_t dims[]) {
    if (call->allocate) {
        return call->allocate(call->payload, output, n_dims, dims);
    }
    const struct msc_view *out = &call->outputs[output];
    bool fits = out->n_dims == n_dims;
    for (int i = 0; fits && i < n_dims; i++) {
        fits = out->dims[i] == dims[i];
    }
    if (!fits) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(
            MSC_E_STATE,
            "joint %s: its kernel computed an output of shape %s, but another shape was inferred",
            call->joint->name, msc_dims_format(text, n_dims, dims));
    }
    return MSC_OK;
}
