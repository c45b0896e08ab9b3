// Softmax and its logarithm along any axis, in either layout.
#include "base/alloc.h"
#include "base/platform.h"
#include "graph/reference/numeric.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

#include <math.h>

struct kernel {
    bool is_log;
    int64_t outer, n, inner; // the axis has n elements with stride `inner`
};

// Columns processed together if the axis is not the innermost.
enum { COLUMNS = 128 };

static void cpu_softmax_release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status cpu_softmax_prepare(void **out, struct msc_cpu_backend *b,
                                           const struct msc_plan *plan,
                                           const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    struct msc_view x = msc_plan_view(plan, step->inputs[step->joints[0].operands[0].index], NULL);
    int axis = msc_lowering_axis(joint, "axis", x.n_dims);
    int64_t dims[MSC_MAX_DIMS];
    int axes[MSC_MAX_DIMS];
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    *k = (struct kernel){
        .is_log = joint->op == MSC_OP_LOG_SOFTMAX, .outer = 1, .n = x.dims[axis], .inner = 1};
    msc_view_physical(&x, dims, axes);
    bool is_behind = false;
    for (int i = 0; i < x.n_dims; i++) {
        if (axes[i] == axis) {
            is_behind = true;
        } else {
            *(is_behind ? &k->inner : &k->outer) *= dims[i];
        }
    }
    *out = k;
    return MSC_OK;
}

// ---- Across rows ------------------------------------------------------------------------------

MSC_SIMD static void cpu_softmax_max_into(float *restrict max, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        max[i] = x[i] > max[i] ? x[i] : max[i];
    }
}

MSC_SIMD static void cpu_softmax_add_into(float *restrict sum, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        sum[i] += x[i];
    }
}

// out[i] = x[i] - value[i]; `out` may equal `x`.
MSC_SIMD static void subtract_each(float *out, const float *x, const float *value, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] - value[i];
    }
}

MSC_SIMD static void divide_each(float *restrict out, const float *restrict value, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] /= value[i];
    }
}

static void cpu_softmax_run_columns(const struct kernel *k, float out[], const float x[],
                                    int64_t width) {
    float max[COLUMNS], sum[COLUMNS], exponentials[COLUMNS];
    for (int64_t i = 0; i < width; i++) {
        max[i] = -INFINITY;
        sum[i] = 0.0f;
    }
    for (int64_t r = 0; r < k->n; r++) {
        cpu_softmax_max_into(max, x + r * k->inner, width);
    }
    for (int64_t r = 0; r < k->n; r++) {
        float *to = out + r * k->inner;
        subtract_each(to, x + r * k->inner, max, width);
        msc_exp_run(k->is_log ? exponentials : to, to, width);
        cpu_softmax_add_into(sum, k->is_log ? exponentials : to, width);
    }
    for (int64_t i = 0; k->is_log && i < width; i++) {
        sum[i] = msc_logf(sum[i]);
    }
    for (int64_t r = 0; r < k->n; r++) {
        float *to = out + r * k->inner;
        if (k->is_log) {
            subtract_each(to, to, sum, width);
        } else {
            divide_each(to, sum, width);
        }
    }
}

static enum msc_status cpu_softmax_run(void *kernel, struct msc_cpu_backend *b,
                                       const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    const struct msc_simd *simd = msc_simd_best();
    const float *x = call->inputs[0].data;
    int64_t n = k->n * k->inner;
    void *scratch; // memory for the floats, if only quantised variants are written
    MSC_TRY(msc_cpu_get_scratch(&scratch, b, thread,
                                call->outputs[0].data ? 0 : (size_t)n * sizeof(float)));
    for (int64_t at = 0; at < k->outer * n; at += n) {
        float *out = call->outputs[0].data ? (float *)call->outputs[0].data + at : scratch;
        if (k->inner == 1 && k->n > 0) {
            (k->is_log ? simd->log_softmax : simd->softmax)(out, x + at, k->n);
        }
        for (int64_t c = 0; k->inner > 1 && c < k->inner; c += COLUMNS) {
            int64_t width = k->inner - c < COLUMNS ? k->inner - c : COLUMNS;
            cpu_softmax_run_columns(k, out + c, x + at + c, width);
        }
        msc_cpu_write_quantized(call->quantized, call->n_quantized, at, out, n);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_softmax = {
    .prepare = cpu_softmax_prepare,
    .release = cpu_softmax_release,
    .run = cpu_softmax_run,
    .quantizes = true,
};
