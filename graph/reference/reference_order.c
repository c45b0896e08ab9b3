// Cumulative sums and products, reversed sequences, triangles, depth to space, and generators such
// as Range.
#include "graph/reference/reference_internal.h"

#include "base/platform.h"

#include <string.h>

// ---- CumSum and CumProd -----------------------------------------------------------------------

static void sum_line(const struct msc_view *out, const struct msc_view *x, int64_t first,
                     int64_t step, int64_t n, bool is_exclusive, bool is_product) {
    bool is_real = msc_dtype_is_float(x->dtype);
    double real = is_product;
    uint64_t integer = is_product;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = first + i * step;
        double real_before = real;
        uint64_t integer_before = integer;
        if (is_real) {
            double value = msc_reference__get_double_at(x, at);
            real = is_product ? real * value : real + value;
            // Each partial result of float32 numbers is rounded to float32.
            real = x->dtype == MSC_DTYPE_F32 ? (double)(float)real : real;
            msc_reference__set_double_at(out, at, is_exclusive ? real_before : real);
        } else {
            uint64_t value = (uint64_t)msc_reference__get_i64_at(x, at);
            integer = is_product ? integer * value : integer + value;
            msc_reference__set_i64_at(out, at, (int64_t)(is_exclusive ? integer_before : integer));
        }
    }
}

// Cumulative sums of `inner` neighbouring lines of float32, which are computed together. Each
// partial sum is rounded to float32.
MSC_SIMD static void sum_floats(float *restrict out, const float *restrict x, int64_t step,
                                int64_t n, int64_t inner, bool is_exclusive) {
    if (inner == 1) {
        float sum = 0;
        for (int64_t i = 0; i < n; i++) {
            float before = sum;
            sum += x[i * step];
            out[i * step] = is_exclusive ? before : sum;
        }
        return;
    }
    for (int64_t k = 0; k < inner && n > 0; k++) {
        out[k] = is_exclusive ? 0.0f : 0.0f + x[k]; // adding 0 changes -0 to 0
    }
    for (int64_t i = 1; i < n; i++) {
        const float *before = out + (i - 1) * step, *from = x + (is_exclusive ? i - 1 : i) * step;
        float *to = out + i * step;
#pragma omp simd
        for (int64_t k = 0; k < inner; k++) {
            to[k] = before[k] + from[k];
        }
    }
}

enum msc_status msc_reference__cumsum(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t axis[1] = {0};
    int n;
    bool is_exclusive, is_reverse;
    MSC_TRY(msc_reference__param_ints(axis, &n, call, "axis", "axis", 1));
    MSC_TRY(msc_reference__get_bool(&is_exclusive, call, "exclusive"));
    MSC_TRY(msc_reference__get_bool(&is_reverse, call, "reverse"));
    int64_t at = n == 1 && axis[0] < 0 ? axis[0] + x->n_dims : axis[0];
    if (n != 1 || at < 0 || at >= x->n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: its axis is out of range for %d dimensions",
                        call->joint->name, x->n_dims);
    }
    struct msc_reference_lines lines = msc_reference__lines(x, (int)at);
    int64_t block = lines.length * lines.inner;
    int64_t begin = is_reverse ? block - lines.inner : 0;
    bool is_product = call->joint->op == MSC_OP_CUMPROD;
    bool are_sums = x->dtype == MSC_DTYPE_F32 && !is_product;
    for (int64_t o = 0; are_sums && o < lines.outer; o++) {
        sum_floats((float *)call->outputs[0].data + o * block + begin,
                   (const float *)x->data + o * block + begin,
                   is_reverse ? -lines.inner : lines.inner, lines.length, lines.inner,
                   is_exclusive);
    }
    for (int64_t l = 0; !are_sums && l < lines.n; l++) {
        int64_t first = msc_reference__line_first(&lines, l);
        int64_t last = first + (lines.length - 1) * lines.inner;
        sum_line(&call->outputs[0], x, is_reverse ? last : first,
                 is_reverse ? -lines.inner : lines.inner, lines.length, is_exclusive, is_product);
    }
    return MSC_OK;
}

// ---- Elements that change position ------------------------------------------------------------

// Reverses the first `length` elements along the time axis. Each batch has its own length.
enum msc_status msc_reference__reverse_sequence(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *lengths = &call->operands[1];
    int batch_axis, time_axis;
    MSC_TRY(msc_reference__get_axis(&batch_axis, call, "batch_axis", x->n_dims));
    MSC_TRY(msc_reference__get_axis(&time_axis, call, "time_axis", x->n_dims));
    int64_t strides[MSC_MAX_DIMS], n = msc_view_n_elements(x);
    msc_reference__strides(strides, x->n_dims, x->dims);
    // Elements along the axes after both of these axes move together.
    int last = batch_axis > time_axis ? batch_axis : time_axis;
    int64_t block = strides[last];
    size_t bytes = msc_dtype_bytes(x->dtype);
    for (int64_t i = 0; i < n; i += block) {
        int64_t time = i / strides[time_axis] % x->dims[time_axis];
        int64_t batch = i / strides[batch_axis] % x->dims[batch_axis];
        int64_t length = msc_reference__get_i64_at(lengths, batch);
        length = length < 0 ? 0 : length > x->dims[time_axis] ? x->dims[time_axis] : length;
        int64_t from = time < length ? i + (length - 1 - 2 * time) * strides[time_axis] : i;
        memcpy((char *)call->outputs[0].data + (size_t)i * bytes,
               (const char *)x->data + (size_t)from * bytes, (size_t)block * bytes);
    }
    return MSC_OK;
}

// Keeps the upper or lower triangle of the last two axes; all other elements are zero.
enum msc_status msc_reference__triangle(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t k[1] = {0};
    int n_k;
    bool is_upper = call->joint->op == MSC_OP_TRIU;
    MSC_TRY(msc_reference__param_ints(k, &n_k, call, "k", "k", 1));
    MSC_TRY(msc_reference__copy(call));
    int64_t n = msc_view_n_elements(x);
    size_t bytes = msc_dtype_bytes(x->dtype);
    int64_t columns = x->dims[x->n_dims - 1], rows = x->dims[x->n_dims - 2];
    for (int64_t i = 0; i < n; i += columns) {
        int64_t row = i / columns % rows;
        // The first column that is kept (upper triangle) or cleared (lower triangle).
        double edge = (double)row + (double)k[0] + (is_upper ? 0 : 1); // k may be any int64
        int64_t at = edge < 0 ? 0 : edge > (double)columns ? columns : (int64_t)edge;
        int64_t first = is_upper ? 0 : at, end = is_upper ? at : columns;
        memset((char *)call->outputs[0].data + (size_t)(i + first) * bytes, 0,
               (size_t)(end - first) * bytes);
    }
    return MSC_OK;
}

// Moves blocks of the channel axis to the spatial axes, or back. Both directions walk over the
// tensor with the larger spatial axes.
enum msc_status msc_reference__depth_space(const struct msc_reference_call *call) {
    bool is_to_space = call->joint->op == MSC_OP_DEPTH_TO_SPACE;
    const struct msc_view *depth = is_to_space ? &call->operands[0] : &call->outputs[0];
    const struct msc_view *space = is_to_space ? &call->outputs[0] : &call->operands[0];
    bool is_crd = strcmp(msc_reference__get_text(call, "mode"), "CRD") == 0;
    size_t bytes = msc_dtype_bytes(space->dtype);
    int64_t block, n = msc_view_n_elements(space);
    MSC_TRY(msc_reference__get_i64(&block, call, "blocksize"));
    const int64_t *s = space->dims, *d = depth->dims;
    for (int64_t i = 0; i < n; i++) {
        int64_t w = i % s[3], h = i / s[3] % s[2], c = i / (s[3] * s[2]) % s[1];
        int64_t b = i / (s[3] * s[2] * s[1]), at = h % block * block + w % block;
        int64_t channel = is_crd ? c * block * block + at : at * s[1] + c;
        int64_t j = ((b * d[1] + channel) * d[2] + h / block) * d[3] + w / block;
        memcpy((char *)call->outputs[0].data + (size_t)(is_to_space ? i : j) * bytes,
               (const char *)call->operands[0].data + (size_t)(is_to_space ? j : i) * bytes, bytes);
    }
    return MSC_OK;
}

// ---- Generators -------------------------------------------------------------------------------

enum msc_status msc_reference__size(const struct msc_reference_call *call) {
    msc_reference__set_i64_at(&call->outputs[0], 0, msc_view_n_elements(&call->operands[0]));
    return MSC_OK;
}

enum msc_status msc_reference__eye_like(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    int64_t k, n = msc_view_n_elements(out);
    MSC_TRY(msc_reference__get_i64(&k, call, "k"));
    for (int64_t i = 0; i < n; i++) {
        msc_reference__set_i64_at(out, i, i % out->dims[1] - i / out->dims[1] == k);
    }
    return MSC_OK;
}

enum msc_status msc_reference__range(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    const struct msc_view *start = &call->operands[0], *delta = &call->operands[2];
    int64_t n = msc_view_n_elements(out);
    bool is_real = msc_dtype_is_float(out->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (is_real) {
            double first = msc_reference__get_double_at(start, 0);
            msc_reference__set_double_at(
                out, i, first + (double)i * msc_reference__get_double_at(delta, 0));
        } else {
            uint64_t first = (uint64_t)msc_reference__get_i64_at(start, 0);
            uint64_t step = (uint64_t)msc_reference__get_i64_at(delta, 0);
            msc_reference__set_i64_at(out, i, (int64_t)(first + (uint64_t)i * step));
        }
    }
    return MSC_OK;
}
