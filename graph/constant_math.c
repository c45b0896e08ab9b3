// Arithmetic on constants: float32 in float32 as a kernel would, integers in 64 bits.
#include "graph/constant_internal.h"

#include <math.h>
#include <string.h>

// How a type is computed.
enum kind { KIND_NONE, KIND_FLOAT, KIND_INTEGER };

static enum kind kind_of(enum msc_dtype dtype) {
    switch (dtype) {
    case MSC_DTYPE_F32:
        return KIND_FLOAT;
    case MSC_DTYPE_I64:
    case MSC_DTYPE_I32:
        return KIND_INTEGER;
    default:
        return KIND_NONE;
    }
}

static void store_integer(struct msc_array *out, int64_t i, int64_t value) {
    switch (msc_array_dtype(out)) {
    case MSC_DTYPE_I32:
        ((int32_t *)msc_array_data(out))[i] = (int32_t)value;
        break;
    case MSC_DTYPE_BOOL:
        ((uint8_t *)msc_array_data(out))[i] = value != 0;
        break;
    default:
        ((int64_t *)msc_array_data(out))[i] = value;
        break;
    }
}

static float unary_float(enum msc_op op, float x) {
    switch (op) {
    case MSC_OP_SQRT:
        return sqrtf(x);
    case MSC_OP_ABS:
        return fabsf(x);
    case MSC_OP_NEGATIVE:
        return -x;
    case MSC_OP_RECIPROCAL:
        return 1.0f / x;
    case MSC_OP_FLOOR:
        return floorf(x);
    case MSC_OP_CEIL:
        return ceilf(x);
    default:
        return rintf(x); // half to even, as ONNX rounds
    }
}

static bool unary_integer(int64_t *out, enum msc_op op, int64_t x) {
    bool changes = op == MSC_OP_NEGATIVE || (op == MSC_OP_ABS && x < 0);
    *out = changes && x != INT64_MIN ? -x : x;
    return op == MSC_OP_NEGATIVE || op == MSC_OP_ABS;
}

bool msc_constant__unary(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    struct msc_array *out = call->outputs[0];
    enum msc_op op = call->joint->op;
    enum kind kind = kind_of(msc_array_dtype(in));
    int64_t n = msc_array_n_elements(in);
    if (kind == KIND_FLOAT) {
        const float *x = msc_array_data(in);
        float *y = msc_array_data(out);
        for (int64_t i = 0; i < n; i++) {
            y[i] = unary_float(op, x[i]);
        }
        return true;
    }
    for (int64_t i = 0; kind == KIND_INTEGER && i < n; i++) {
        int64_t value;
        if (!unary_integer(&value, op, msc_array_get_i64(in, i))) {
            return false;
        }
        store_integer(out, i, value);
    }
    return kind == KIND_INTEGER;
}

static float binary_float(enum msc_op op, float a, float b) {
    switch (op) {
    case MSC_OP_ADD:
        return a + b;
    case MSC_OP_SUBTRACT:
        return a - b;
    case MSC_OP_MULTIPLY:
        return a * b;
    case MSC_OP_DIVIDE:
        return a / b;
    case MSC_OP_POWER:
        return powf(a, b);
    case MSC_OP_MAXIMUM:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

// False: overflow, division by zero, or a power with a negative exponent.
static bool binary_integer(int64_t *out, enum msc_op op, int64_t a, int64_t b) {
    switch (op) {
    case MSC_OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case MSC_OP_SUBTRACT:
        return !__builtin_sub_overflow(a, b, out);
    case MSC_OP_MULTIPLY:
        return !__builtin_mul_overflow(a, b, out);
    case MSC_OP_DIVIDE:
        if (b == 0 || (a == INT64_MIN && b == -1)) {
            return false;
        }
        *out = a / b;
        return true;
    case MSC_OP_MOD:
    case MSC_OP_FLOOR_MOD:
        if (b == 0 || b == -1) {
            *out = 0;
            return b != 0;
        }
        *out = a % b;
        *out += op == MSC_OP_FLOOR_MOD && *out != 0 && (*out < 0) != (b < 0) ? b : 0;
        return true;
    case MSC_OP_MAXIMUM:
        *out = a > b ? a : b;
        return true;
    case MSC_OP_MINIMUM:
        *out = a < b ? a : b;
        return true;
    default:
        return false;
    }
}

static bool compare(enum msc_op op, double a, double b) {
    return op == MSC_OP_EQUAL ? a == b : op == MSC_OP_GREATER ? a > b : a < b;
}

// Element `index` of the output reads this element of `in`, by broadcasting.
static int64_t broadcast_index(const struct msc_array *in, const struct msc_array *out,
                               int64_t index) {
    int64_t at = 0, stride = 1;
    int offset = msc_array_n_dims(out) - msc_array_n_dims(in);
    for (int i = msc_array_n_dims(out) - 1; i >= 0; i--) {
        int64_t position = index % msc_array_dim(out, i);
        index /= msc_array_dim(out, i);
        if (i >= offset) {
            int64_t length = msc_array_dim(in, i - offset);
            at += length == 1 ? 0 : position * stride;
            stride *= length;
        }
    }
    return at;
}

static bool is_comparison(enum msc_op op) {
    return op == MSC_OP_EQUAL || op == MSC_OP_GREATER || op == MSC_OP_LESS;
}

static bool binary_element(const struct msc_constant_call *call, enum kind kind, int64_t i) {
    const struct msc_array *a = call->operands[0], *b = call->operands[1];
    struct msc_array *out = call->outputs[0];
    enum msc_op op = call->joint->op;
    int64_t at_a = broadcast_index(a, out, i), at_b = broadcast_index(b, out, i);
    if (is_comparison(op)) {
        store_integer(out, i,
                      compare(op, msc_array_get_double(a, at_a), msc_array_get_double(b, at_b)));
        return true;
    }
    if (kind == KIND_FLOAT) {
        float y = (float)msc_array_get_double(b, at_b);
        ((float *)msc_array_data(out))[i] = binary_float(op, ((float *)msc_array_data(a))[at_a], y);
        return true;
    }
    int64_t value;
    if (!binary_integer(&value, op, msc_array_get_i64(a, at_a), msc_array_get_i64(b, at_b))) {
        return false;
    }
    store_integer(out, i, value);
    return true;
}

bool msc_constant__binary(const struct msc_constant_call *call) {
    enum kind kind = kind_of(msc_array_dtype(call->operands[0]));
    bool is_remainder = call->joint->op == MSC_OP_MOD || call->joint->op == MSC_OP_FLOOR_MOD;
    if (call->n_operands != 2 || kind == KIND_NONE || (kind == KIND_FLOAT && is_remainder)) {
        return false;
    }
    for (int64_t i = 0; i < msc_array_n_elements(call->outputs[0]); i++) {
        if (!binary_element(call, kind, i)) {
            return false;
        }
    }
    return true;
}

bool msc_constant__where(const struct msc_constant_call *call) {
    struct msc_array *out = call->outputs[0];
    size_t bytes = msc_dtype_bytes(msc_array_dtype(out));
    for (int64_t i = 0; i < msc_array_n_elements(out); i++) {
        const struct msc_array *condition = call->operands[0];
        bool takes = msc_array_get_i64(condition, broadcast_index(condition, out, i)) != 0;
        const struct msc_array *from = call->operands[takes ? 1 : 2];
        int64_t at = broadcast_index(from, out, i);
        memcpy((char *)msc_array_data(out) + i * (int64_t)bytes,
               (const char *)msc_array_data(from) + at * (int64_t)bytes, bytes);
    }
    return true;
}

// ---- Reductions -------------------------------------------------------------------------------

// The axes along which elements are combined, all without any; false: not a list of axes.
static bool reduced_axes(bool is_reduced[MSC_MAX_DIMS], const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    const struct msc_array *list = call->n_operands > 1 ? call->operands[1] : NULL;
    int64_t axes[MSC_MAX_DIMS];
    int rank = msc_array_n_dims(in);
    int n = list ? (int)msc_array_n_elements(list)
                 : msc_joint_attr_list(call->joint, "axis", axes, MSC_MAX_DIMS);
    for (int i = 0; i < rank; i++) {
        is_reduced[i] = n == 0;
    }
    for (int i = 0; i < n && i < MSC_MAX_DIMS; i++) {
        int64_t axis = list ? msc_array_get_i64(list, i) : axes[i];
        axis = axis < 0 ? axis + rank : axis;
        if (axis < 0 || axis >= rank) {
            return false;
        }
        is_reduced[axis] = true;
    }
    return n >= 0 && n <= MSC_MAX_DIMS;
}

// Where element `index` of `in` goes; `is_first` of those that go there?
static int64_t reduced_index(bool *is_first, const struct msc_array *in, const bool is_reduced[],
                             int64_t index) {
    int64_t at = 0, stride = 1;
    *is_first = true;
    for (int i = msc_array_n_dims(in) - 1; i >= 0; i--) {
        int64_t length = msc_array_dim(in, i), position = index % length;
        index /= length;
        if (is_reduced[i]) {
            *is_first = *is_first && position == 0;
        } else {
            at += position * stride;
            stride *= length;
        }
    }
    return at;
}

// Combining elements in any order gives the same: sums and products only of whole numbers.
static enum msc_op combining_op(enum msc_op op) {
    return op == MSC_OP_MAX   ? MSC_OP_MAXIMUM
           : op == MSC_OP_MIN ? MSC_OP_MINIMUM
           : op == MSC_OP_SUM ? MSC_OP_ADD
                              : MSC_OP_MULTIPLY;
}

static bool reduce_element(struct msc_array *out, int64_t at, bool is_first, enum msc_op op,
                           const struct msc_array *in, int64_t i) {
    if (kind_of(msc_array_dtype(in)) == KIND_FLOAT) {
        float *y = (float *)msc_array_data(out) + at, x = ((const float *)msc_array_data(in))[i];
        *y = is_first ? x : binary_float(op, *y, x);
        return !isnan(x);
    }
    int64_t value = msc_array_get_i64(in, i);
    if (!is_first && !binary_integer(&value, op, msc_array_get_i64(out, at), value)) {
        return false;
    }
    store_integer(out, at, value);
    return true;
}

bool msc_constant__reduce(const struct msc_constant_call *call) {
    const struct msc_array *in = call->operands[0];
    enum msc_op op = combining_op(call->joint->op);
    enum kind kind = kind_of(msc_array_dtype(in));
    bool is_exact = op == MSC_OP_MAXIMUM || op == MSC_OP_MINIMUM || kind == KIND_INTEGER;
    bool is_reduced[MSC_MAX_DIMS];
    int64_t n = msc_array_n_elements(in);
    if (kind == KIND_NONE || !is_exact || n == 0 || !reduced_axes(is_reduced, call)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        bool is_first;
        int64_t at = reduced_index(&is_first, in, is_reduced, i);
        if (!reduce_element(call->outputs[0], at, is_first, op, in, i)) {
            return false;
        }
    }
    return true;
}
