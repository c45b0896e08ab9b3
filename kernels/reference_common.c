#include "kernels/reference_internal.h"

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
    return msc_joint_attr_i64(call->joint, key, out) ? MSC_OK
                                                     : bad_attr(call, key, "a whole number");
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

enum msc_status msc_reference__get_axis(int *out, const struct msc_reference_call *call,
                                        const char *key, int n_dims) {
    int64_t axis;
    MSC_TRY(msc_reference__get_i64(&axis, call, key));
    int64_t positive = axis < 0 ? axis + n_dims : axis;
    if (positive < 0 || positive >= n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: %s %lld is outside its %d dimensions",
                        call->joint->name, key, (long long)axis, n_dims);
    }
    *out = (int)positive;
    return MSC_OK;
}

// The operand that holds a parameter, or NULL.
static const struct msc_view *param_operand(const struct msc_reference_call *call,
                                            const char *role) {
    int position = msc_joint_operand(call->joint, role);
    return position >= 0 && msc_reference__has(call, position) ? &call->operands[position] : NULL;
}

static enum msc_status check_count(const struct msc_reference_call *call, const char *key,
                                   int64_t n, int max) {
    if (n < 0 || n > max) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: %s holds %lld numbers, expected at most %d",
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
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s takes float32 only, found %s",
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

// The views with float elements as float32, in `memory`, which grows behind them.
static char *to_f32(struct msc_view *to, const struct msc_view *from, char *memory) {
    *to = *from;
    if (msc_dtype_is_float(from->dtype) && from->dtype != MSC_DTYPE_F32) {
        to->dtype = MSC_DTYPE_F32;
        to->data = memory;
        memory += (size_t)msc_view_n_elements(from) * sizeof(float);
    }
    return memory;
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
    if (!memory) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", call->joint->name);
    }
    char *end = to_f32(&output, &call->outputs[0], memory);
    for (int i = 0; i < call->n_operands; i++) {
        end = to_f32(&operands[i], &call->operands[i], end);
        bool is_copied = operands[i].data != call->operands[i].data;
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
    bool is_copied = output.data != call->outputs[0].data;
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
        return MSC_FAIL(MSC_E_STATE, "joint %s: its output came to %s", call->joint->name,
                        msc_dims_format(text, n_dims, dims));
    }
    return MSC_OK;
}

double msc_reference__get_double_at(const struct msc_view *v, int64_t i) {
    switch (v->dtype) {
    case MSC_DTYPE_F32:
        return ((const float *)v->data)[i];
    case MSC_DTYPE_F64:
        return ((const double *)v->data)[i];
    case MSC_DTYPE_F16:
        return msc_f16_to_f32(((const uint16_t *)v->data)[i]);
    case MSC_DTYPE_BF16:
        return msc_bf16_to_f32(((const uint16_t *)v->data)[i]);
    default:
        return (double)msc_reference__get_i64_at(v, i);
    }
}

// Truncates and saturates; NaN becomes 0.
static int64_t truncate_to_range(double x, int64_t low, int64_t high) {
    if (x != x) {
        return 0;
    }
    // (double)INT64_MAX rounds up to 2^63, which does not fit: hence >=.
    return x >= (double)high ? high : x <= (double)low ? low : (int64_t)x;
}

int64_t msc_reference__get_i64_at(const struct msc_view *v, int64_t i) {
    switch (v->dtype) {
    case MSC_DTYPE_I8:
        return ((const int8_t *)v->data)[i];
    case MSC_DTYPE_I16:
        return ((const int16_t *)v->data)[i];
    case MSC_DTYPE_I32:
        return ((const int32_t *)v->data)[i];
    case MSC_DTYPE_I64:
    case MSC_DTYPE_U64:
        return ((const int64_t *)v->data)[i];
    case MSC_DTYPE_BOOL:
    case MSC_DTYPE_U8:
        return ((const uint8_t *)v->data)[i];
    case MSC_DTYPE_U16:
        return ((const uint16_t *)v->data)[i];
    case MSC_DTYPE_U32:
        return ((const uint32_t *)v->data)[i];
    case MSC_DTYPE_NONE:
        return 0;
    default:
        return truncate_to_range(msc_reference__get_double_at(v, i), INT64_MIN, INT64_MAX);
    }
}

void msc_reference__set_double_at(const struct msc_view *v, int64_t i, double value) {
    static const struct {
        int64_t low, high;
    } ranges[MSC_DTYPE_COUNT] = {
        [MSC_DTYPE_I8] = {INT8_MIN, INT8_MAX},    [MSC_DTYPE_I16] = {INT16_MIN, INT16_MAX},
        [MSC_DTYPE_I32] = {INT32_MIN, INT32_MAX}, [MSC_DTYPE_I64] = {INT64_MIN, INT64_MAX},
        [MSC_DTYPE_U8] = {0, UINT8_MAX},          [MSC_DTYPE_U16] = {0, UINT16_MAX},
        [MSC_DTYPE_U32] = {0, UINT32_MAX},        [MSC_DTYPE_U64] = {0, INT64_MAX},
    };
    switch (v->dtype) {
    case MSC_DTYPE_F32:
        ((float *)v->data)[i] = (float)value;
        break;
    case MSC_DTYPE_F64:
        ((double *)v->data)[i] = value;
        break;
    case MSC_DTYPE_F16:
        ((uint16_t *)v->data)[i] = msc_f32_to_f16((float)value);
        break;
    case MSC_DTYPE_BF16:
        ((uint16_t *)v->data)[i] = msc_f32_to_bf16((float)value);
        break;
    case MSC_DTYPE_BOOL:
        ((uint8_t *)v->data)[i] = value != 0;
        break;
    default:
        msc_reference__set_i64_at(
            v, i, truncate_to_range(value, ranges[v->dtype].low, ranges[v->dtype].high));
        break;
    }
}

void msc_reference__set_i64_at(const struct msc_view *v, int64_t i, int64_t value) {
    switch (v->dtype) {
    case MSC_DTYPE_I8:
    case MSC_DTYPE_U8:
        ((uint8_t *)v->data)[i] = (uint8_t)value;
        break;
    case MSC_DTYPE_I16:
    case MSC_DTYPE_U16:
        ((uint16_t *)v->data)[i] = (uint16_t)value;
        break;
    case MSC_DTYPE_I32:
    case MSC_DTYPE_U32:
        ((uint32_t *)v->data)[i] = (uint32_t)value;
        break;
    case MSC_DTYPE_I64:
    case MSC_DTYPE_U64:
        ((int64_t *)v->data)[i] = value;
        break;
    case MSC_DTYPE_BOOL:
        ((uint8_t *)v->data)[i] = value != 0;
        break;
    case MSC_DTYPE_F32: // not by way of double, which would round twice
        ((float *)v->data)[i] = (float)value;
        break;
    default:
        msc_reference__set_double_at(v, i, (double)value);
        break;
    }
}

enum msc_status msc_reference__check_u64(const struct msc_reference_call *call) {
    for (int k = 0; k < call->n_operands; k++) {
        const struct msc_view *v = &call->operands[k];
        if (v->dtype != MSC_DTYPE_U64) {
            continue;
        }
        int64_t n = msc_view_n_elements(v);
        for (int64_t i = 0; i < n; i++) {
            if (msc_reference__get_i64_at(v, i) < 0) {
                return MSC_FAIL(MSC_E_UNSUPPORTED,
                                "joint %s: operand %d: uint64 values above 2^63 - 1",
                                call->joint->name, k);
            }
        }
    }
    return MSC_OK;
}

enum msc_reference_kind msc_reference__kind(enum msc_dtype dtype) {
    if (dtype == MSC_DTYPE_F32) {
        return MSC_REFERENCE_F32;
    }
    return msc_dtype_is_float(dtype) ? MSC_REFERENCE_DOUBLE : MSC_REFERENCE_INT;
}

const void *msc_reference__load_chunk(union msc_reference_chunk *buffer, const struct msc_view *v,
                                      int64_t offset, int64_t stride, int64_t n,
                                      enum msc_reference_kind kind) {
    if (kind == MSC_REFERENCE_F32 && v->dtype == MSC_DTYPE_F32) {
        const float *x = (const float *)v->data + offset;
        if (stride == 1) {
            return x;
        }
        for (int64_t i = 0; i < n; i++) {
            buffer->f32[i] = x[i * stride];
        }
        return buffer;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = offset + i * stride;
        switch (kind) {
        case MSC_REFERENCE_F32:
            buffer->f32[i] = (float)msc_reference__get_double_at(v, at);
            break;
        case MSC_REFERENCE_DOUBLE:
            buffer->real[i] = msc_reference__get_double_at(v, at);
            break;
        case MSC_REFERENCE_INT:
            buffer->whole[i] = msc_reference__get_i64_at(v, at);
            break;
        }
    }
    return buffer;
}

void msc_reference__store_chunk(const struct msc_view *v, int64_t offset, const void *numbers,
                                int64_t n, enum msc_reference_kind kind) {
    if (kind == MSC_REFERENCE_F32 && v->dtype == MSC_DTYPE_F32) {
        memcpy((float *)v->data + offset, numbers, (size_t)n * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        switch (kind) {
        case MSC_REFERENCE_F32:
            msc_reference__set_double_at(v, offset + i, ((const float *)numbers)[i]);
            break;
        case MSC_REFERENCE_DOUBLE:
            msc_reference__set_double_at(v, offset + i, ((const double *)numbers)[i]);
            break;
        case MSC_REFERENCE_INT:
            msc_reference__set_i64_at(v, offset + i, ((const int64_t *)numbers)[i]);
            break;
        }
    }
}
