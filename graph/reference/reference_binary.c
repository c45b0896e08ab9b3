#include "graph/reference/reference_internal.h"

#include "base/platform.h"
#include "graph/reference/numeric.h"

#include <math.h>
#include <string.h>

// True if |a / b| is below 2^29 and b is finite. Then plain_mod computes fmod(a, b) exactly.
static inline bool is_plain_mod(float a, float b) {
    double quotient_limit = 536870912.0 * fabs((double)b);
    return fabs((double)a) < quotient_limit && fabsf(b) < INFINITY;
}

static inline float plain_mod(float a, float b) {
    double x = fabs((double)a), y = fabs((double)b);
    double rest = x - floor(x / y) * y; // exact; below 0 if the quotient was rounded up
    rest = rest < 0 ? rest + y : rest;
    return copysignf((float)rest, a);
}

MSC_SIMD static void run_mod(float *out, const float *a, const float *b, int64_t n) {
    int64_t n_plain = 0;
    for (int64_t i = 0; i < n; i++) {
        n_plain += is_plain_mod(a[i], b[i]);
    }
    if (n_plain < n) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = fmodf(a[i], b[i]);
        }
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = plain_mod(a[i], b[i]);
    }
}

// The remainder of a / b with the sign of b; a remainder of 0 has this sign, too. Exact, except for
// the addition.
static float floor_modf(float a, float b) {
    float rest = fmodf(a, b);
    return rest == 0.0f ? copysignf(0.0f, b) : (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

static double floor_mod(double a, double b) {
    double rest = fmod(a, b);
    return rest == 0 ? copysign(0, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}

// Arithmetic on two contiguous arrays; `out` may be either of them.
MSC_SIMD static void run_float(enum msc_op op, float out[], const float a[], const float b[],
                               int64_t n) {
    switch (op) {
    case MSC_OP_ADD:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] + b[i];
        }
        break;
    case MSC_OP_SUBTRACT:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] - b[i];
        }
        break;
    case MSC_OP_MULTIPLY:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] * b[i];
        }
        break;
    case MSC_OP_DIVIDE:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] / b[i];
        }
        break;
    case MSC_OP_MAXIMUM: // NaN on either side gives NaN
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];
        }
        break;
    case MSC_OP_MINIMUM:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] < b[i] || a[i] != a[i] ? a[i] : b[i];
        }
        break;
    case MSC_OP_PRELU:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] < 0.0f ? a[i] * b[i] : a[i];
        }
        break;
    case MSC_OP_MOD: // exact in any precision
        run_mod(out, a, b, n);
        break;
    case MSC_OP_FLOOR_MOD:
        for (int64_t i = 0; i < n; i++) {
            out[i] = floor_modf(a[i], b[i]);
        }
        break;
    default: // power
        msc_pow_run(out, a, b, n);
        break;
    }
}

static double one_double(enum msc_op op, double a, double b) {
    switch (op) {
    case MSC_OP_ADD:
        return a + b;
    case MSC_OP_SUBTRACT:
        return a - b;
    case MSC_OP_MULTIPLY:
        return a * b;
    case MSC_OP_DIVIDE:
        return a / b;
    case MSC_OP_MAXIMUM:
        return a > b || a != a ? a : b;
    case MSC_OP_MINIMUM:
        return a < b || a != a ? a : b;
    case MSC_OP_PRELU:
        return a < 0 ? a * b : a;
    case MSC_OP_MOD:
        return fmod(a, b);
    case MSC_OP_FLOOR_MOD:
        return floor_mod(a, b);
    default:
        return pow(a, b);
    }
}

// a^b modulo 2^64. For a negative b, the result is 1 / a^-b truncated: 0, except for a = 1 and -1.
static int64_t power_int(int64_t a, int64_t b) {
    if (b < 0) {
        return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    }
    uint64_t result = 1, factor = (uint64_t)a;
    for (; b > 0; b >>= 1) {
        result *= b & 1 ? factor : 1;
        factor *= factor;
    }
    return (int64_t)result;
}

// The remainder of a / b with the sign of b, which is not 0.
static int64_t floor_mod_int(int64_t a, int64_t b) {
    int64_t rest = b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Logical and bit operations. A right shift shifts in copies of the sign bit. A shift by a negative
// number, or by 64 or more, shifts out all bits.
static int64_t one_bitwise(enum msc_op op, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case MSC_OP_LOGICAL_AND:
        return a != 0 && b != 0;
    case MSC_OP_LOGICAL_OR:
        return a != 0 || b != 0;
    case MSC_OP_LOGICAL_XOR:
        return (a != 0) != (b != 0);
    case MSC_OP_BITWISE_AND:
        return a & b;
    case MSC_OP_BITWISE_OR:
        return a | b;
    case MSC_OP_BITWISE_XOR:
        return a ^ b;
    case MSC_OP_LEFT_SHIFT:
        return y > 63 ? 0 : (int64_t)(x << y);
    default:
        return a >> (y > 63 ? 63 : y);
    }
}

static int64_t one_int(enum msc_op op, int64_t a, int64_t b) {
    if (op >= MSC_OP_LOGICAL_AND && op <= MSC_OP_RIGHT_SHIFT) {
        return one_bitwise(op, a, b);
    }
    switch (op) {
    case MSC_OP_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MSC_OP_SUBTRACT:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case MSC_OP_MULTIPLY:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MSC_OP_DIVIDE: // b is not 0; INT64_MIN / -1 does not fit and wraps
        return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    case MSC_OP_MAXIMUM:
        return a > b ? a : b;
    case MSC_OP_MINIMUM:
        return a < b ? a : b;
    case MSC_OP_PRELU:
        return a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a;
    case MSC_OP_MOD:
        return b == -1 ? 0 : a % b;
    case MSC_OP_FLOOR_MOD:
        return floor_mod_int(a, b);
    default:
        return power_int(a, b);
    }
}

// The most common operations on integers, vectorised. False for the others.
MSC_SIMD static bool run_integers(enum msc_op op, int64_t *restrict out, const int64_t *a,
                                  const int64_t *b, int64_t n) {
#define EACH(expression)                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                              \
        out[i] = (int64_t)(expression);                                                            \
    }                                                                                              \
    return true
    switch (op) {
    case MSC_OP_ADD:
        EACH((uint64_t)a[i] + (uint64_t)b[i]);
    case MSC_OP_SUBTRACT:
        EACH((uint64_t)a[i] - (uint64_t)b[i]);
    case MSC_OP_MULTIPLY:
        EACH((uint64_t)a[i] * (uint64_t)b[i]);
    case MSC_OP_MAXIMUM:
        EACH(a[i] > b[i] ? a[i] : b[i]);
    case MSC_OP_MINIMUM:
        EACH(a[i] < b[i] ? a[i] : b[i]);
    default:
        return false;
    }
#undef EACH
}

static void run_kind(enum msc_op op, void *out, const void *a, const void *b, int64_t n,
                     enum msc_reference_kind kind) {
    switch (kind) {
    case MSC_REFERENCE_F32:
        run_float(op, out, a, b, n);
        break;
    case MSC_REFERENCE_DOUBLE:
        for (int64_t i = 0; i < n; i++) {
            ((double *)out)[i] = one_double(op, ((const double *)a)[i], ((const double *)b)[i]);
        }
        break;
    case MSC_REFERENCE_INT:
        if (run_integers(op, out, a, b, n)) {
            break;
        }
        for (int64_t i = 0; i < n; i++) {
            ((int64_t *)out)[i] = one_int(op, ((const int64_t *)a)[i], ((const int64_t *)b)[i]);
        }
        break;
    }
}

// Compares n elements of the operands' kind; results are the bytes 0 and 1.
#define COMPARE(operator)                                                                          \
    do {                                                                                           \
        for (int64_t i = 0; i < n && kind == MSC_REFERENCE_F32; i++) {                             \
            out[i] = ((const float *)a)[i] operator((const float *)b)[i];                          \
        }                                                                                          \
        for (int64_t i = 0; i < n && kind == MSC_REFERENCE_DOUBLE; i++) {                          \
            out[i] = ((const double *)a)[i] operator((const double *)b)[i];                        \
        }                                                                                          \
        for (int64_t i = 0; i < n && kind == MSC_REFERENCE_INT; i++) {                             \
            out[i] = ((const int64_t *)a)[i] operator((const int64_t *)b)[i];                      \
        }                                                                                          \
    } while (0)

MSC_SIMD static void run_compare(enum msc_op op, uint8_t *restrict out, const void *a,
                                 const void *b, int64_t n, enum msc_reference_kind kind) {
    switch (op) {
    case MSC_OP_EQUAL:
        COMPARE(==);
        break;
    case MSC_OP_GREATER:
        COMPARE(>);
        break;
    case MSC_OP_GREATER_EQUAL:
        COMPARE(>=);
        break;
    case MSC_OP_LESS_EQUAL:
        COMPARE(<=);
        break;
    default: // less
        COMPARE(<);
        break;
    }
}

#undef COMPARE

// Logical and bit operations on rows of adjacent bytes. Bools are 0 or 1, so a logical operation is
// the bit operation of the same name. False for other operations.
MSC_SIMD static bool run_bytes(enum msc_op op, uint8_t *restrict out, const uint8_t *restrict a,
                               const uint8_t *restrict b, int64_t n) {
    switch (op) {
    case MSC_OP_LOGICAL_AND:
    case MSC_OP_BITWISE_AND:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] & b[i];
        }
        return true;
    case MSC_OP_LOGICAL_OR:
    case MSC_OP_BITWISE_OR:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] | b[i];
        }
        return true;
    case MSC_OP_LOGICAL_XOR:
    case MSC_OP_BITWISE_XOR:
        for (int64_t i = 0; i < n; i++) {
            out[i] = a[i] ^ b[i];
        }
        return true;
    default:
        return false;
    }
}

// Computes rows of int32 in int32 arithmetic. The results are the low 32 bits of those of int64
// arithmetic. If `is_number`, b[0] is used for all elements. False for other operations.
MSC_SIMD static bool run_int32(enum msc_op op, int32_t *restrict out, const int32_t *restrict a,
                               const int32_t *restrict b, int64_t n, bool is_number) {
#define EACH(expression)                                                                           \
    for (int64_t i = 0; i < n && !is_number; i++) {                                                \
        int32_t x = a[i], y = b[i];                                                                \
        out[i] = (int32_t)(expression);                                                            \
    }                                                                                              \
    for (int64_t i = 0; i < n && is_number; i++) {                                                 \
        int32_t x = a[i], y = b[0];                                                                \
        out[i] = (int32_t)(expression);                                                            \
    }                                                                                              \
    return true
    switch (op) {
    case MSC_OP_ADD:
        EACH((uint32_t)x + (uint32_t)y);
    case MSC_OP_SUBTRACT:
        EACH((uint32_t)x - (uint32_t)y);
    case MSC_OP_MULTIPLY:
        EACH((uint32_t)x * (uint32_t)y);
    case MSC_OP_MAXIMUM:
        EACH(x > y ? x : y);
    case MSC_OP_MINIMUM:
        EACH(x < y ? x : y);
    default:
        return false;
    }
#undef EACH
}

// Computes a row with run_bytes or run_int32. False if neither can compute it.
static bool run_whole_row(enum msc_op op, const struct msc_view *out, const struct msc_view *a,
                          const struct msc_view *b, const struct msc_walk *w) {
    int64_t to = w->offsets[0], x = w->offsets[1], y = w->offsets[2];
    if (w->steps[1] != 1 || a->dtype != b->dtype) {
        return false;
    }
    if (msc_dtype_bytes(a->dtype) == 1 && w->steps[2] == 1) {
        return run_bytes(op, (uint8_t *)out->data + to, (const uint8_t *)a->data + x,
                         (const uint8_t *)b->data + y, w->length);
    }
    if (a->dtype == MSC_DTYPE_I32 && out->dtype == MSC_DTYPE_I32 && w->steps[2] <= 1 && a != out) {
        return run_int32(op, (int32_t *)out->data + to, (const int32_t *)a->data + x,
                         (const int32_t *)b->data + y, w->length, w->steps[2] == 0);
    }
    return false;
}

// Computes a row in chunks that fit the buffers.
static void run_row(enum msc_op op, const struct msc_view *out, const struct msc_view *a,
                    const struct msc_view *b, const struct msc_walk *w,
                    enum msc_reference_kind kind) {
    union msc_reference_chunk from_a, from_b, to;
    bool is_compare = msc_op_is_comparison(op);
    if (run_whole_row(op, out, a, b, w)) {
        return;
    }
    for (int64_t i = 0; i < w->length; i += MSC_REFERENCE_CHUNK) {
        int64_t n = w->length - i < MSC_REFERENCE_CHUNK ? w->length - i : MSC_REFERENCE_CHUNK;
        const void *x = msc_reference__load_chunk(&from_a, a, w->offsets[1] + i * w->steps[1],
                                                  w->steps[1], n, kind);
        const void *y = msc_reference__load_chunk(&from_b, b, w->offsets[2] + i * w->steps[2],
                                                  w->steps[2], n, kind);
        if (is_compare) {
            run_compare(op, (uint8_t *)out->data + w->offsets[0] + i, x, y, n, kind);
            continue;
        }
        run_kind(op, &to, x, y, n, kind);
        msc_reference__store_chunk(out, w->offsets[0] + i, &to, n, kind);
    }
}

// out = a op b with broadcasting; `a` may be `out`.
static void run_broadcast(enum msc_op op, const struct msc_view *out, const struct msc_view *a,
                          const struct msc_view *b, enum msc_reference_kind kind) {
    int64_t strides[MSC_MAX_DIMS];
    struct msc_walk w;
    msc_reference__walk_init(&w, out->n_dims, out->dims);
    msc_reference__strides(strides, out->n_dims, out->dims);
    msc_reference__walk_add(&w, strides);
    msc_reference__broadcast_strides(strides, a, out->n_dims, out->dims);
    msc_reference__walk_add(&w, strides);
    msc_reference__broadcast_strides(strides, b, out->n_dims, out->dims);
    msc_reference__walk_add(&w, strides);
    for (bool more = msc_reference__walk_first(&w); more; more = msc_reference__walk_next(&w)) {
        run_row(op, out, a, b, &w, kind);
    }
}

static enum msc_status check_divisor(const struct msc_reference_call *call) {
    const struct msc_view *v = &call->operands[1];
    int64_t n = msc_view_n_elements(v);
    for (int64_t i = 0; i < n; i++) {
        if (msc_reference__get_i64_at(v, i) == 0) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: integer division by zero", call->joint->name);
        }
    }
    return MSC_OK;
}

// The arithmetic follows from the first operand's type. An integer with a float exponent is
// computed in double.
static enum msc_reference_kind kind_of_call(const struct msc_reference_call *call) {
    enum msc_reference_kind kind = msc_reference__kind(call->operands[0].dtype);
    for (int i = 1; i < call->n_operands; i++) {
        if (kind == MSC_REFERENCE_INT && msc_dtype_is_float(call->operands[i].dtype)) {
            kind = MSC_REFERENCE_DOUBLE;
        }
    }
    return kind;
}

enum msc_status msc_reference__binary(const struct msc_reference_call *call) {
    enum msc_op op = call->joint->op;
    const struct msc_view *out = &call->outputs[0];
    enum msc_reference_kind kind = kind_of_call(call);
    MSC_TRY(msc_reference__check_u64(call));
    bool divides = op == MSC_OP_DIVIDE || op == MSC_OP_MOD || op == MSC_OP_FLOOR_MOD;
    if (divides && kind == MSC_REFERENCE_INT) {
        MSC_TRY(check_divisor(call));
    }
    if (call->n_operands == 1) { // maximum or minimum of a single operand
        return msc_reference__broadcast_to(call);
    }
    run_broadcast(op, out, &call->operands[0], &call->operands[1], kind);
    for (int i = 2; i < call->n_operands; i++) {
        run_broadcast(op, out, out, &call->operands[i], kind);
    }
    return MSC_OK;
}

enum msc_status msc_reference__compare(const struct msc_reference_call *call) {
    MSC_TRY(msc_reference__check_u64(call));
    run_broadcast(call->joint->op, &call->outputs[0], &call->operands[0], &call->operands[1],
                  msc_reference__kind(call->operands[0].dtype));
    return MSC_OK;
}

// Returns n contiguous elements of `bytes` bytes: the source itself if `step` is 1, else a copy in
// `buffer`.
static const void *reference_binary_gather(void *buffer, const void *from, int64_t step, int64_t n,
                                           size_t bytes) {
    if (step == 1) {
        return from;
    }
    msc_reference__copy_row(buffer, 1, from, step, n, bytes);
    return buffer;
}

MSC_SIMD static void select4(uint32_t out[], const uint8_t condition[], const uint32_t a[],
                             const uint32_t b[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = condition[i] ? a[i] : b[i];
    }
}

static void select_any(char *out, const uint8_t condition[], const char *a, const char *b,
                       int64_t n, size_t bytes) {
    for (size_t i = 0; i < (size_t)n * bytes; i += bytes) {
        memcpy(out + i, (condition[i / bytes] ? a : b) + i, bytes);
    }
}

static void select_row(const struct msc_reference_call *call, const struct msc_walk *w) {
    uint64_t buffers[3][MSC_REFERENCE_CHUNK]; // each element has up to 8 bytes
    const struct msc_view *out = &call->outputs[0];
    size_t width = msc_dtype_bytes(out->dtype);
    for (int64_t i = 0; i < w->length; i += MSC_REFERENCE_CHUNK) {
        int64_t n = w->length - i < MSC_REFERENCE_CHUNK ? w->length - i : MSC_REFERENCE_CHUNK;
        const void *from[3];
        for (int k = 0; k < 3; k++) {
            const struct msc_view *v = &call->operands[k];
            size_t bytes = msc_dtype_bytes(v->dtype);
            const char *first =
                (const char *)v->data + (w->offsets[k + 1] + i * w->steps[k + 1]) * (int64_t)bytes;
            from[k] = reference_binary_gather(buffers[k], first, w->steps[k + 1], n, bytes);
        }
        char *to = (char *)out->data + (w->offsets[0] + i) * (int64_t)width;
        if (width == 4) {
            select4((uint32_t *)(void *)to, from[0], from[1], from[2], n);
        } else {
            select_any(to, from[0], from[1], from[2], n, width);
        }
    }
}

// out = condition ? a : b, for elements of any type.
enum msc_status msc_reference__where(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    int64_t strides[MSC_MAX_DIMS];
    struct msc_walk w;
    msc_reference__walk_init(&w, out->n_dims, out->dims);
    msc_reference__strides(strides, out->n_dims, out->dims);
    msc_reference__walk_add(&w, strides);
    for (int i = 0; i < 3; i++) {
        msc_reference__broadcast_strides(strides, &call->operands[i], out->n_dims, out->dims);
        msc_reference__walk_add(&w, strides);
    }
    for (bool more = msc_reference__walk_first(&w); more; more = msc_reference__walk_next(&w)) {
        select_row(call, &w);
    }
    return MSC_OK;
}
