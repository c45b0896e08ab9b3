// Reads and writes elements of any type as numbers, one by one and in chunks.
#include "graph/reference/reference_internal.h"

#include "base/platform.h"

#include <string.h>

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
    // (double)INT64_MAX rounds up to 2^63, which does not fit in int64, so this compares with >=.
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
    case MSC_DTYPE_F32: // not through double, which would round twice
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
                                "joint %s: operand %d has uint64 values above 2^63 - 1, which are "
                                "not supported",
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

// Loops over n elements that are `stride` apart. The cases of adjacent elements and of one repeated
// element are vectorised.
#define EACH(type, assignment)                                                                     \
    do {                                                                                           \
        const type *x = (const type *)v->data + offset;                                            \
        if (stride == 1) {                                                                         \
            for (int64_t i = 0, k = 0; i < n; i++, k++) {                                          \
                assignment;                                                                        \
            }                                                                                      \
        } else if (stride == 0) {                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const int64_t k = 0;                                                               \
                assignment;                                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0, k = 0; i < n; i++, k += stride) {                                  \
                assignment;                                                                        \
            }                                                                                      \
        }                                                                                          \
    } while (0)

// Loads elements of integer types, with one loop for each type. False for any other type.
MSC_SIMD static bool load_integers(int64_t *restrict out, const struct msc_view *v, int64_t offset,
                                   int64_t stride, int64_t n) {
    switch (v->dtype) {
    case MSC_DTYPE_BOOL:
    case MSC_DTYPE_U8:
        EACH(uint8_t, out[i] = x[k]);
        return true;
    case MSC_DTYPE_I8:
        EACH(int8_t, out[i] = x[k]);
        return true;
    case MSC_DTYPE_I32:
        EACH(int32_t, out[i] = x[k]);
        return true;
    case MSC_DTYPE_I64:
    case MSC_DTYPE_U64:
        EACH(int64_t, out[i] = x[k]);
        return true;
    default:
        return false;
    }
}

// Loads elements of types whose numbers are all float32 numbers. False for any other type.
MSC_SIMD static bool load_floats(float *restrict out, const struct msc_view *v, int64_t offset,
                                 int64_t stride, int64_t n) {
    switch (v->dtype) {
    case MSC_DTYPE_F32:
        EACH(float, out[i] = x[k]);
        return true;
    case MSC_DTYPE_BOOL:
    case MSC_DTYPE_U8:
        EACH(uint8_t, out[i] = x[k]);
        return true;
    case MSC_DTYPE_I8:
        EACH(int8_t, out[i] = x[k]);
        return true;
    case MSC_DTYPE_F16:
        if (stride == 1) {
            msc_f16_to_f32_run(out, (const uint16_t *)v->data + offset, n);
        }
        return stride == 1;
    default:
        return false;
    }
}

// Loads elements as double. False for types that networks rarely use.
MSC_SIMD static bool load_reals(double *restrict out, const struct msc_view *v, int64_t offset,
                                int64_t stride, int64_t n) {
    float halves[MSC_REFERENCE_CHUNK];
    switch (v->dtype) {
    case MSC_DTYPE_F32:
        EACH(float, out[i] = (double)x[k]);
        return true;
    case MSC_DTYPE_F64:
        EACH(double, out[i] = x[k]);
        return true;
    case MSC_DTYPE_F16:
        if (stride != 1) {
            return false;
        }
        msc_f16_to_f32_run(halves, (const uint16_t *)v->data + offset, n);
        for (int64_t i = 0; i < n; i++) {
            out[i] = (double)halves[i];
        }
        return true;
    default:
        return false;
    }
}

#undef EACH

// Stores n numbers as elements of a type; `value` computes element i.
#define STORE(type, value)                                                                         \
    do {                                                                                           \
        type *to = (type *)v->data + offset;                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            to[i] = (type)(value);                                                                 \
        }                                                                                          \
    } while (0)

MSC_SIMD static bool store_integers(const struct msc_view *v, int64_t offset,
                                    const int64_t *restrict numbers, int64_t n) {
    switch (v->dtype) {
    case MSC_DTYPE_BOOL:
        STORE(uint8_t, numbers[i] != 0);
        return true;
    case MSC_DTYPE_I8:
    case MSC_DTYPE_U8:
        STORE(uint8_t, numbers[i]);
        return true;
    case MSC_DTYPE_I32:
    case MSC_DTYPE_U32:
        STORE(uint32_t, numbers[i]);
        return true;
    case MSC_DTYPE_I64:
    case MSC_DTYPE_U64:
        STORE(int64_t, numbers[i]);
        return true;
    case MSC_DTYPE_F32:
        STORE(float, numbers[i]);
        return true;
    default:
        return false;
    }
}

MSC_SIMD static bool store_reals(const struct msc_view *v, int64_t offset,
                                 const double *restrict numbers, int64_t n) {
    float floats[MSC_REFERENCE_CHUNK];
    switch (v->dtype) {
    case MSC_DTYPE_F32:
        STORE(float, numbers[i]);
        return true;
    case MSC_DTYPE_F64:
        STORE(double, numbers[i]);
        return true;
    case MSC_DTYPE_BOOL:
        STORE(uint8_t, numbers[i] != 0);
        return true;
    case MSC_DTYPE_I64:
        STORE(int64_t, truncate_to_range(numbers[i], INT64_MIN, INT64_MAX));
        return true;
    case MSC_DTYPE_I32:
        STORE(int32_t, truncate_to_range(numbers[i], INT32_MIN, INT32_MAX));
        return true;
    case MSC_DTYPE_F16:
        for (int64_t i = 0; i < n; i++) {
            floats[i] = (float)numbers[i];
        }
        msc_f32_to_f16_run((uint16_t *)v->data + offset, floats, n);
        return true;
    default:
        return false;
    }
}

#undef STORE

const void *msc_reference__load_chunk(union msc_reference_chunk *buffer, const struct msc_view *v,
                                      int64_t offset, int64_t stride, int64_t n,
                                      enum msc_reference_kind kind) {
    static const enum msc_dtype same[] = {
        [MSC_REFERENCE_F32] = MSC_DTYPE_F32,
        [MSC_REFERENCE_DOUBLE] = MSC_DTYPE_F64,
        [MSC_REFERENCE_INT] = MSC_DTYPE_I64,
    };
    if (v->dtype == same[kind] && stride == 1) {
        return (const char *)v->data + (size_t)offset * msc_dtype_bytes(v->dtype);
    }
    if (kind == MSC_REFERENCE_F32 && load_floats(buffer->f32, v, offset, stride, n)) {
        return buffer;
    }
    if (kind == MSC_REFERENCE_INT && load_integers(buffer->integer, v, offset, stride, n)) {
        return buffer;
    }
    if (kind == MSC_REFERENCE_DOUBLE && load_reals(buffer->real, v, offset, stride, n)) {
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
            buffer->integer[i] = msc_reference__get_i64_at(v, at);
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
    if (kind == MSC_REFERENCE_F32 && v->dtype == MSC_DTYPE_F16) {
        msc_f32_to_f16_run((uint16_t *)v->data + offset, numbers, n);
        return;
    }
    if (kind == MSC_REFERENCE_INT && store_integers(v, offset, numbers, n)) {
        return;
    }
    if (kind == MSC_REFERENCE_DOUBLE && store_reals(v, offset, numbers, n)) {
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
