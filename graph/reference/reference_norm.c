#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "graph/reference/numeric.h"

#include <math.h>

MSC_SIMD static void normalize_run(float out[], const float x[], int64_t n, float mean, float scale,
                                   float beta) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (x[i] - mean) * scale + beta;
    }
}

enum msc_status msc_reference__batch_norm(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__through_f32(call, msc_reference__batch_norm);
    }
    const struct msc_view *x = &call->operands[0];
    const float *gamma = call->operands[1].data, *beta = call->operands[2].data;
    const float *mean = call->operands[3].data, *var = call->operands[4].data;
    int axis;
    float epsilon;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    MSC_TRY(msc_reference__get_float(&epsilon, call, "epsilon"));
    int64_t channels = x->dims[axis];
    int64_t outer = msc_dims_product(axis, x->dims);
    int64_t inner = msc_dims_product(x->n_dims - axis - 1, x->dims + axis + 1);
    for (int64_t i = 0; i < outer * channels; i++) {
        int64_t c = i % channels;
        normalize_run((float *)call->outputs[0].data + i * inner,
                      (const float *)x->data + i * inner, inner, mean[c],
                      gamma[c] / sqrtf(var[c] + epsilon), beta[c]);
    }
    return MSC_OK;
}

// Softmax of one contiguous vector of n elements.
static void softmax_run(float x[], int64_t n, bool is_log) {
    float max = -INFINITY, sum = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        max = x[i] > max ? x[i] : max;
    }
    for (int64_t i = 0; i < n; i++) {
        x[i] -= max;
    }
    if (is_log) {
        for (int64_t i = 0; i < n; i++) {
            sum += msc_expf(x[i]);
        }
        float log_sum = msc_logf(sum);
        for (int64_t i = 0; i < n; i++) {
            x[i] -= log_sum;
        }
        return;
    }
    msc_exp_run(x, x, n);
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    for (int64_t i = 0; i < n; i++) {
        x[i] /= sum;
    }
}

// Softmax and log-softmax along one axis.
enum msc_status msc_reference__softmax(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__through_f32(call, msc_reference__softmax);
    }
    const struct msc_view *x = &call->operands[0];
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    bool is_log = call->joint->op == MSC_OP_LOG_SOFTMAX;
    int64_t n = x->dims[axis];
    int64_t outer = msc_dims_product(axis, x->dims);
    int64_t inner = msc_dims_product(x->n_dims - axis - 1, x->dims + axis + 1);
    float *vector = msc_alloc_aligned(((size_t)n + 1) * sizeof(float));
    MSC_TRY(MSC_ALLOCATED(vector));
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t first = i / inner * n * inner + i % inner;
        msc_reference__copy_row(vector, 1, (const float *)x->data + first, inner, n, sizeof(float));
        softmax_run(vector, n, is_log);
        msc_reference__copy_row((float *)call->outputs[0].data + first, inner, vector, 1, n,
                                sizeof(float));
    }
    msc_free_aligned(vector);
    return MSC_OK;
}
