// Infers the outputs of unary and binary arithmetic, including the elements of small integer
// tensors.
#include "graph/infer/infer_internal.h"

#include <inttypes.h>
#include <string.h>

static bool is_one(struct msc_dim d) {
    return msc_infer__is_number(d) && d.value == 1;
}

// Broadcasts one axis of two shapes; false if the lengths do not fit. For a symbol and a number
// above 1, the result is the number, because the symbol must be that number or 1.
static bool broadcast_dim(struct msc_dim *out, bool *needs_max, struct msc_dim a,
                          struct msc_dim b) {
    *needs_max = false;
    if (msc_infer__same_dim(a, b) || is_one(b)) {
        *out = a;
        return true;
    }
    if (is_one(a)) {
        *out = b;
        return true;
    }
    if (msc_infer__is_number(a) || msc_infer__is_number(b)) {
        *out = msc_infer__is_number(a) ? a : b;
        return !(msc_infer__is_number(a) && msc_infer__is_number(b));
    }
    *needs_max = true;
    return true;
}

enum msc_status msc_infer__broadcast(struct msc_infer_tensor *out, const struct msc_infer *call,
                                     const struct msc_infer_tensor *a,
                                     const struct msc_infer_tensor *b) {
    const struct msc_infer_tensor *longest = b->n_dims > a->n_dims ? b : a;
    const struct msc_infer_tensor *other = longest == a ? b : a;
    int offset = longest->n_dims - other->n_dims;
    msc_infer__copy(out, longest);
    if (out->layout[0] == '\0' && offset == 0) {
        memcpy(out->layout, other->layout, sizeof(out->layout));
    }
    for (int i = offset; i < longest->n_dims; i++) {
        struct msc_dim x = longest->dims[i], y = other->dims[i - offset];
        bool needs_max;
        if (!broadcast_dim(&out->dims[i], &needs_max, x, y)) {
            char text_a[MSC_INFER_TEXT_BYTES], text_b[MSC_INFER_TEXT_BYTES];
            return msc_infer__fail(call, "shapes %s and %s cannot be broadcast",
                                   msc_infer__shape_text(text_a, call, a),
                                   msc_infer__shape_text(text_b, call, b));
        }
        if (needs_max) {
            MSC_TRY(msc_dim_binary(&out->dims[i], call->graph, "Max", x, y));
        }
    }
    return MSC_OK;
}

// Number of elements, if it is known and at most MSC_INFER_MAX_VALUES; else -1.
static int count_values(const struct msc_infer_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) {
        if (!msc_infer__is_number(t->dims[i]) || t->dims[i].value > MSC_INFER_MAX_VALUES) {
            return -1;
        }
        n *= t->dims[i].value;
        if (n > MSC_INFER_MAX_VALUES) {
            return -1;
        }
    }
    return (int)n;
}

// The element of `in` that is broadcast to element `index` of `out`.
static struct msc_dim broadcast_value(const struct msc_infer_tensor *in,
                                      const struct msc_infer_tensor *out, int index) {
    int position = 0, stride = 1;
    for (int i = out->n_dims - 1; i >= 0; i--) {
        int length = (int)out->dims[i].value;
        int at = index % length;
        int axis = i - (out->n_dims - in->n_dims);
        index /= length;
        if (axis >= 0) {
            int in_length = (int)in->dims[axis].value;
            position += in_length == 1 ? 0 : at * stride;
            stride *= in_length;
        }
    }
    return in->values[position];
}

// True if a cast to `dtype` preserves the integer.
static bool survives(int64_t value, enum msc_dtype dtype) {
    switch (dtype) {
    case MSC_DTYPE_I64:
    case MSC_DTYPE_F64:
        return value >= -(INT64_C(1) << 53) && value <= INT64_C(1) << 53;
    case MSC_DTYPE_I32:
        return value >= INT32_MIN && value <= INT32_MAX;
    case MSC_DTYPE_U32:
        return value >= 0 && value <= UINT32_MAX;
    case MSC_DTYPE_F32:
        return value >= -(INT64_C(1) << 24) && value <= INT64_C(1) << 24;
    default:
        return value >= 0 && value <= 127;
    }
}

// True if arithmetic in `dtype` can have this integer as a result without wrapping or rounding.
static bool fits(int64_t value, enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_I64 || survives(value, dtype);
}

static bool divide_numbers(int64_t *out, int64_t a, int64_t b, bool is_float) {
    if (b == 0 || (a == INT64_MIN && b == -1) || (is_float && a % b != 0)) {
        return false;
    }
    *out = a / b;
    return true;
}

static bool floor_mod(int64_t *out, int64_t a, int64_t b) {
    if (b == 0 || b == -1) {
        *out = 0;
        return b == -1;
    }
    int64_t rest = a % b;
    *out = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return true;
}

static bool power(int64_t *out, int64_t a, int64_t b) {
    *out = 1;
    for (int64_t i = 0; i < b; i++) {
        if (i == 63 || __builtin_mul_overflow(*out, a, out)) {
            return false;
        }
    }
    return b >= 0;
}

// Computes an operation on two integers; false if the result is not an integer or overflows.
static bool binary_numbers(int64_t *out, enum msc_op op, int64_t a, int64_t b, bool is_float) {
    switch (op) {
    case MSC_OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case MSC_OP_SUBTRACT:
        return !__builtin_sub_overflow(a, b, out);
    case MSC_OP_MULTIPLY:
        return !__builtin_mul_overflow(a, b, out);
    case MSC_OP_MAXIMUM:
        *out = a > b ? a : b;
        return true;
    case MSC_OP_MINIMUM:
        *out = a < b ? a : b;
        return true;
    case MSC_OP_FLOOR_MOD:
        return floor_mod(out, a, b);
    case MSC_OP_DIVIDE:
        return divide_numbers(out, a, b, is_float);
    case MSC_OP_POWER:
        return power(out, a, b);
    case MSC_OP_EQUAL:
        *out = a == b;
        return true;
    case MSC_OP_GREATER:
        *out = a > b;
        return true;
    case MSC_OP_LESS:
        *out = a < b;
        return true;
    case MSC_OP_GREATER_EQUAL:
        *out = a >= b;
        return true;
    case MSC_OP_LESS_EQUAL:
        *out = a <= b;
        return true;
    case MSC_OP_LOGICAL_AND:
        *out = a != 0 && b != 0;
        return true;
    case MSC_OP_LOGICAL_OR:
        *out = a != 0 || b != 0;
        return true;
    default:
        return false;
    }
}

// The name of the operator for msc_dim_binary; NULL if there is none.
static const char *dim_operator(enum msc_op op, bool is_float) {
    switch (op) {
    case MSC_OP_ADD:
        return "Add";
    case MSC_OP_SUBTRACT:
        return "Sub";
    case MSC_OP_MULTIPLY:
        return "Mul";
    case MSC_OP_DIVIDE:
        return is_float ? NULL : "FloorDiv"; // equals truncation: lengths are not negative
    case MSC_OP_FLOOR_MOD:
        return is_float ? NULL : "FloorMod";
    case MSC_OP_MAXIMUM:
        return "Max";
    case MSC_OP_MINIMUM:
        return "Min";
    default:
        return NULL;
    }
}

// Computes one element of the result. *known is false if the element cannot be tracked.
static enum msc_status binary_value(struct msc_dim *out, bool *known, const struct msc_infer *call,
                                    struct msc_dim a, struct msc_dim b, enum msc_dtype dtype) {
    enum msc_op op = call->joint->op;
    bool is_float = msc_dtype_is_float(dtype);
    if (msc_infer__is_number(a) && msc_infer__is_number(b)) {
        out->prim = MSC_NO_ID;
        *known = binary_numbers(&out->value, op, a.value, b.value, is_float) &&
                 fits(out->value, msc_op_is_comparison(op) ? MSC_DTYPE_BOOL : dtype);
        return MSC_OK;
    }
    *known = true;
    if (op == MSC_OP_EQUAL && msc_infer__same_dim(a, b)) {
        *out = msc_infer__number(1);
        return MSC_OK;
    }
    const char *name = dim_operator(op, is_float);
    *known = name != NULL && !(op == MSC_OP_DIVIDE && msc_infer__is_number(b) && b.value < 1);
    return *known ? msc_dim_binary(out, call->graph, name, a, b) : MSC_OK;
}

static enum msc_status binary_values(const struct msc_infer *call, const struct msc_infer_tensor *a,
                                     const struct msc_infer_tensor *b) {
    struct msc_infer_tensor *out = &call->outputs[0];
    int n = count_values(out);
    if (n < 0 || a->n_values < 0 || b->n_values < 0) {
        return MSC_OK;
    }
    for (int i = 0; i < n; i++) {
        bool known;
        MSC_TRY(binary_value(&out->values[i], &known, call, broadcast_value(a, out, i),
                             broadcast_value(b, out, i), a->dtype));
        if (!known) {
            return MSC_OK;
        }
    }
    out->n_values = n;
    return MSC_OK;
}

static enum msc_status check_types(const struct msc_infer *call, int first) {
    for (int i = first + 1; i < call->n_operands; i++) {
        enum msc_dtype a = call->operands[first]->dtype, b = call->operands[i]->dtype;
        if (a != b) {
            return msc_infer__fail(call, "operands are %s and %s, expected the same type",
                                   msc_dtype_name(a), msc_dtype_name(b));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__binary(const struct msc_infer *call) {
    const struct msc_infer_tensor *a = call->operands[0], *b = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    enum msc_op op = call->joint->op;
    if (op != MSC_OP_POWER) {
        MSC_TRY(check_types(call, 0));
    }
    MSC_TRY(msc_infer__broadcast(out, call, a, b));
    out->dtype = msc_op_is_comparison(op) ? MSC_DTYPE_BOOL : a->dtype;
    return binary_values(call, a, b);
}

enum msc_status msc_infer__extremum(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_tensor before = *call->operands[0];
    MSC_TRY(check_types(call, 0));
    msc_infer__copy_all(out, &before);
    for (int i = 1; i < call->n_operands; i++) {
        MSC_TRY(msc_infer__broadcast(out, call, &before, call->operands[i]));
        out->n_values = -1;
        MSC_TRY(binary_values(call, &before, call->operands[i]));
        before = *out;
    }
    return MSC_OK;
}

enum msc_status msc_infer__where(const struct msc_infer *call) {
    const struct msc_infer_tensor *condition = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_tensor both;
    MSC_TRY(check_types(call, 1));
    if (condition->dtype != MSC_DTYPE_BOOL) {
        return msc_infer__fail(call, "condition is %s, expected bool",
                               msc_dtype_name(condition->dtype));
    }
    MSC_TRY(msc_infer__broadcast(&both, call, call->operands[1], call->operands[2]));
    MSC_TRY(msc_infer__broadcast(out, call, &both, condition));
    out->dtype = call->operands[1]->dtype;
    int n = count_values(out);
    if (n < 0 || condition->n_values < 0 || call->operands[1]->n_values < 0 ||
        call->operands[2]->n_values < 0) {
        return MSC_OK;
    }
    for (int i = 0; i < n; i++) {
        struct msc_dim c = broadcast_value(condition, out, i);
        if (!msc_infer__is_number(c)) {
            return MSC_OK;
        }
        out->values[i] = broadcast_value(call->operands[c.value != 0 ? 1 : 2], out, i);
    }
    out->n_values = n;
    return MSC_OK;
}

// Elements of integer tensors are tracked through operators that do not change integers, and
// through negation, logical not and absolute value.
enum msc_status msc_infer__unary(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    enum msc_op op = call->joint->op;
    bool keeps =
        op == MSC_OP_IDENTITY || op == MSC_OP_FLOOR || op == MSC_OP_CEIL || op == MSC_OP_ROUND;
    msc_infer__copy(out, x);
    if (keeps) {
        msc_infer__copy_all(out, x);
    } else if (op == MSC_OP_LOGICAL_NOT && x->n_values >= 0) {
        for (int i = 0; i < x->n_values; i++) {
            if (!msc_infer__is_number(x->values[i])) {
                return MSC_OK;
            }
            out->values[i] = msc_infer__number(x->values[i].value == 0);
        }
        out->n_values = x->n_values;
    } else if ((op == MSC_OP_NEGATIVE || op == MSC_OP_ABS) && x->n_values >= 0) {
        for (int i = 0; i < x->n_values; i++) {
            if (!msc_infer__is_number(x->values[i]) || x->values[i].value == INT64_MIN) {
                return MSC_OK;
            }
            int64_t value = x->values[i].value;
            value = op == MSC_OP_NEGATIVE || value < 0 ? -value : value;
            if (!fits(value, x->dtype)) {
                return MSC_OK;
            }
            out->values[i] = msc_infer__number(value);
        }
        out->n_values = x->n_values;
    }
    return MSC_OK;
}

enum msc_status msc_infer__test(const struct msc_infer *call) {
    msc_infer__copy(&call->outputs[0], call->operands[0]);
    call->outputs[0].dtype = MSC_DTYPE_BOOL;
    return MSC_OK;
}

// The slope is broadcast to the shape of the input, which is the shape of the output.
enum msc_status msc_infer__prelu(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    MSC_TRY(check_types(call, 0));
    MSC_TRY(msc_infer__broadcast(out, call, call->operands[0], call->operands[1]));
    if (out->n_dims != call->operands[0]->n_dims) {
        return msc_infer__fail(call, "the slope has %d dimensions, but the input only %d",
                               call->operands[1]->n_dims, call->operands[0]->n_dims);
    }
    for (int i = 0; i < out->n_dims; i++) {
        struct msc_dim in = call->operands[0]->dims[i], both = out->dims[i];
        if (!msc_infer__agree(in, both)) {
            return msc_infer__fail(
                call, "the slope has length %lld along axis %d, but the input has %lld",
                (long long)both.value, i, (long long)in.value);
        }
    }
    msc_infer__copy(out, call->operands[0]);
    return MSC_OK;
}

enum msc_status msc_infer__clip(const struct msc_infer *call) {
    for (int i = 1; i < call->n_operands; i++) {
        if (call->operands[i] != NULL && call->operands[i]->n_dims != 0 &&
            !(call->operands[i]->n_dims == 1 && is_one(call->operands[i]->dims[0]))) {
            return msc_infer__fail(call, "a clip bound has %d dimensions, expected a scalar",
                                   call->operands[i]->n_dims);
        }
    }
    msc_infer__copy(&call->outputs[0], call->operands[0]);
    return MSC_OK;
}

enum msc_status msc_infer__cast(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    const char *name = msc_infer__text(call, "dtype");
    msc_infer__copy(out, x);
    out->dtype = msc_dtype_find(name);
    if (out->dtype == MSC_DTYPE_NONE) {
        return msc_infer__fail(call, "unknown element type '%s'", name);
    }
    for (int i = 0; i < x->n_values; i++) {
        struct msc_dim v = x->values[i];
        if (out->dtype == MSC_DTYPE_BOOL) {
            if (!msc_infer__is_number(v)) {
                return MSC_OK;
            }
            v.value = v.value != 0;
        } else if (msc_infer__is_number(v) && !survives(v.value, out->dtype) &&
                   out->dtype != x->dtype) {
            return MSC_OK;
        }
        out->values[i] = v;
    }
    out->n_values = x->n_values;
    return MSC_OK;
}

enum msc_status msc_infer__bit_cast(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    const char *name = msc_infer__text(call, "dtype");
    enum msc_dtype dtype = msc_dtype_find(name);
    if (dtype == MSC_DTYPE_NONE || msc_dtype_bytes(dtype) != msc_dtype_bytes(x->dtype)) {
        return msc_infer__fail(call,
                               "the bits of %s cannot become '%s', expected a type of %zu bits",
                               msc_dtype_name(x->dtype), name, 8 * msc_dtype_bytes(x->dtype));
    }
    msc_infer__copy(&call->outputs[0], x);
    call->outputs[0].dtype = dtype;
    return MSC_OK;
}
