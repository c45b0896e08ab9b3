#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <math.h>

enum { LANES = 16 };

// The product of n elements. Accumulates LANES products in parallel and multiplies them at the end.
MSC_INLINE float product_of(const float x[], int64_t n) {
    float lanes[LANES], product = 1;
    int64_t i = 0;
    for (int k = 0; k < LANES; k++) {
        lanes[k] = 1;
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] *= x[i + k];
        }
    }
    for (int k = 0; k < LANES; k++) {
        product *= lanes[k];
    }
    for (; i < n; i++) {
        product *= x[i];
    }
    return product;
}

// Accumulates n elements of the input. If `step` is 0, all go to one accumulator; if it is 1, each
// element has its own.
MSC_SIMD static void add_float(enum msc_op op, float acc[], int64_t step, const float x[],
                               int64_t n) {
    switch (op) {
    case MSC_OP_MAX: // NaN on either side gives NaN
        for (int64_t i = 0; i < n; i++) {
            float a = acc[i * step];
            acc[i * step] = x[i] > a || x[i] != x[i] ? x[i] : a;
        }
        break;
    case MSC_OP_MIN:
        for (int64_t i = 0; i < n; i++) {
            float a = acc[i * step];
            acc[i * step] = x[i] < a || x[i] != x[i] ? x[i] : a;
        }
        break;
    case MSC_OP_PROD:
        if (step == 0) {
            acc[0] *= product_of(x, n);
            break;
        }
        for (int64_t i = 0; i < n; i++) {
            acc[i * step] *= x[i];
        }
        break;
    default: // sum, mean
        for (int64_t i = 0; i < n; i++) {
            acc[i * step] += x[i];
        }
        break;
    }
}

static void add_double(enum msc_op op, double acc[], int64_t step, const double x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double a = acc[i * step];
        if (op == MSC_OP_MAX) {
            a = x[i] > a || x[i] != x[i] ? x[i] : a;
        } else if (op == MSC_OP_MIN) {
            a = x[i] < a || x[i] != x[i] ? x[i] : a;
        } else if (op == MSC_OP_PROD) {
            a *= x[i];
        } else {
            a += x[i];
        }
        acc[i * step] = a;
    }
}

static void add_int(enum msc_op op, int64_t acc[], int64_t step, const int64_t x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t a = acc[i * step];
        if (op == MSC_OP_MAX) {
            a = x[i] > a ? x[i] : a;
        } else if (op == MSC_OP_MIN) {
            a = x[i] < a ? x[i] : a;
        } else if (op == MSC_OP_PROD) {
            a = (int64_t)((uint64_t)a * (uint64_t)x[i]);
        } else {
            a = (int64_t)((uint64_t)a + (uint64_t)x[i]);
        }
        acc[i * step] = a;
    }
}

// [n] accumulators, all of one kind.
struct accumulators {
    enum msc_reference_kind kind;
    int64_t n;
    float *f32;
    double *real;
    int64_t *integer;
};

// The neutral element of the operation.
static double neutral(enum msc_op op) {
    return op == MSC_OP_MAX    ? (double)-INFINITY
           : op == MSC_OP_MIN  ? (double)INFINITY
           : op == MSC_OP_PROD ? 1
                               : 0;
}

static int64_t neutral_int(enum msc_op op) {
    return op == MSC_OP_MAX ? INT64_MIN : op == MSC_OP_MIN ? INT64_MAX : op == MSC_OP_PROD;
}

// The result for an empty set: the least or the greatest number of the type, 0 or 1.
static int64_t result_of_none(enum msc_op op, enum msc_dtype dtype) {
    int64_t half = (int64_t)(UINT64_MAX >> (65 - 8 * msc_dtype_bytes(dtype)));
    bool is_signed = dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_I16 || dtype == MSC_DTYPE_I32 ||
                     dtype == MSC_DTYPE_I64;
    if (op == MSC_OP_MAX) {
        return is_signed ? -half - 1 : 0;
    }
    return op != MSC_OP_MIN          ? op == MSC_OP_PROD
           : dtype == MSC_DTYPE_BOOL ? 1
           : is_signed               ? half
                                     : -1;
}

static void reference_reduce_fill(struct accumulators *acc, enum msc_op op) {
    for (int64_t i = 0; i < acc->n; i++) {
        switch (acc->kind) {
        case MSC_REFERENCE_F32:
            acc->f32[i] = (float)neutral(op);
            break;
        case MSC_REFERENCE_DOUBLE:
            acc->real[i] = neutral(op);
            break;
        case MSC_REFERENCE_INT:
            acc->integer[i] = neutral_int(op);
            break;
        }
    }
}

static void reference_reduce_add_row(struct accumulators *acc, enum msc_op op,
                                     const struct msc_view *x, const struct msc_walk *w) {
    int64_t to = w->offsets[0], step = w->steps[0];
    if (acc->kind == MSC_REFERENCE_F32) {
        add_float(op, acc->f32 + to, step, (const float *)x->data + w->offsets[1], w->length);
        return;
    }
    union msc_reference_chunk buffer;
    for (int64_t i = 0; i < w->length; i += MSC_REFERENCE_CHUNK) {
        int64_t n = w->length - i < MSC_REFERENCE_CHUNK ? w->length - i : MSC_REFERENCE_CHUNK;
        const void *numbers =
            msc_reference__load_chunk(&buffer, x, w->offsets[1] + i, 1, n, acc->kind);
        if (acc->kind == MSC_REFERENCE_DOUBLE) {
            add_double(op, acc->real + to + i * step, step, numbers, n);
        } else {
            add_int(op, acc->integer + to + i * step, step, numbers, n);
        }
    }
}

// Divides by the count for a mean, and stores the results. Float32 results are already in the
// output, because they are accumulated there.
static void reference_reduce_finish(const struct accumulators *acc, const struct msc_view *out,
                                    enum msc_op op, int64_t count) {
    int64_t divisor = op == MSC_OP_MEAN && count > 0 ? count : 1;
    for (int64_t i = 0; i < acc->n; i++) {
        switch (acc->kind) {
        case MSC_REFERENCE_F32:
            acc->f32[i] = op == MSC_OP_MEAN ? acc->f32[i] / (float)count : acc->f32[i];
            break;
        case MSC_REFERENCE_DOUBLE:
            msc_reference__set_double_at(out, i, acc->real[i] / (double)divisor);
            break;
        case MSC_REFERENCE_INT:
            msc_reference__set_i64_at(
                out, i, count > 0 ? acc->integer[i] / divisor : result_of_none(op, out->dtype));
            break;
        }
    }
}

// Marks the reduced axes, which are in the attribute or operand `axis`. If `axis` is empty, marks
// all axes.
static enum msc_status reduced_axes(bool is_reduced[], const struct msc_reference_call *call) {
    int n_dims = call->operands[0].n_dims;
    int64_t axes[MSC_MAX_DIMS];
    int n;
    MSC_TRY(msc_reference__param_ints(axes, &n, call, "axis", "axis", MSC_MAX_DIMS));
    for (int i = 0; i < n_dims; i++) {
        is_reduced[i] = n == 0;
    }
    for (int i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + n_dims : axes[i];
        if (axis < 0 || axis >= n_dims) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: axis %lld is out of range for %d dimensions",
                            call->joint->name, (long long)axes[i], n_dims);
        }
        is_reduced[axis] = true;
    }
    return MSC_OK;
}

enum msc_status msc_reference__reduce(const struct msc_reference_call *call) {
    enum msc_op op = call->joint->op;
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *out = &call->outputs[0];
    MSC_TRY(msc_reference__check_u64(call));

    bool is_reduced[MSC_MAX_DIMS];
    MSC_TRY(reduced_axes(is_reduced, call));
    int64_t to[MSC_MAX_DIMS], from[MSC_MAX_DIMS], stride = 1, count = 1;
    for (int i = x->n_dims - 1; i >= 0; i--) {
        to[i] = is_reduced[i] ? 0 : stride;
        stride *= is_reduced[i] ? 1 : x->dims[i];
        count *= is_reduced[i] ? x->dims[i] : 1;
    }
    msc_reference__strides(from, x->n_dims, x->dims);

    struct accumulators acc = {.kind = msc_reference__kind(x->dtype),
                               .n = msc_view_n_elements(out)};
    void *memory = NULL;
    if (acc.kind == MSC_REFERENCE_F32) {
        acc.f32 = out->data;
    } else {
        memory = msc_alloc_zero((size_t)acc.n + 1, sizeof(double));
        MSC_TRY(MSC_ALLOCATED(memory));
        acc.real = memory;
        acc.integer = memory;
    }
    reference_reduce_fill(&acc, op);
    struct msc_walk w;
    msc_reference__walk_init(&w, x->n_dims, x->dims);
    msc_reference__walk_add(&w, to);
    msc_reference__walk_add(&w, from);
    for (bool more = msc_reference__walk_first(&w); more; more = msc_reference__walk_next(&w)) {
        reference_reduce_add_row(&acc, op, x, &w);
    }
    reference_reduce_finish(&acc, out, op, count);
    msc_free(memory);
    return MSC_OK;
}
