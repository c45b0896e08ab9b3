#include "kernels/cpu/ewise_loops.h"

#include "base/platform.h"
#include "graph/reference/numeric.h"

#include <math.h>
#include <string.h>

// The formulas are those of the reference kernels, operation by operation, so that both give the
// same bits. `omp simd` promises that elements do not depend on each other, which is true when
// `out` is one of the operands, but nothing the compiler could see.

MSC_SIMD static void run_add(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

MSC_SIMD static void run_subtract(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] - b[i];
    }
}

MSC_SIMD static void run_multiply(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] * b[i];
    }
}

MSC_SIMD static void run_divide(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] / b[i];
    }
}

// NaN of either side stays.
MSC_SIMD static void run_maximum(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];
    }
}

MSC_SIMD static void run_minimum(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] < b[i] || a[i] != a[i] ? a[i] : b[i];
    }
}

static void run_power(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    for (int64_t i = 0; i < n; i++) {
        out[i] = msc_powf(x[0][i], x[1][i]);
    }
}

MSC_SIMD static void run_finish_f32(float *out, const float *const x[], const float p[2],
                                    int64_t n) {
    const float *a = x[0], *b = x[1], *c = x[2];
    float low = p[0], high = p[1];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float y = b[i] * a[i];
        y = y + c[i];
        y = y < low ? low : y;
        out[i] = y > high ? high : y;
    }
}

static void run_finish_i32(float *out, const float *const x[], const float p[2], int64_t n) {
    struct msc_simd_finish f = {.sums = (const int32_t *)(const void *)x[0],
                                .scales = x[1],
                                .bias = x[2],
                                .offsets = (const int32_t *)(const void *)x[3],
                                .low = p[0],
                                .high = p[1]};
    msc_simd_best()->finish(out, &f, n);
}

// NaN stays.
MSC_SIMD static void run_relu(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] < 0.0f ? 0.0f : a[i];
    }
}

MSC_SIMD static void run_leaky_relu(float *out, const float *const x[], const float p[2],
                                    int64_t n) {
    const float *a = x[0];
    float slope = p[0];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] < 0.0f ? slope * a[i] : a[i];
    }
}

MSC_SIMD static void run_clip(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    float low = p[0], high = p[1];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float y = a[i] < low ? low : a[i];
        out[i] = y > high ? high : y;
    }
}

MSC_SIMD static void run_hard_sigmoid(float *out, const float *const x[], const float p[2],
                                      int64_t n) {
    const float *a = x[0];
    float alpha = p[0], beta = p[1];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float y = alpha * a[i] + beta;
        y = y < 0.0f ? 0.0f : y;
        out[i] = y > 1.0f ? 1.0f : y;
    }
}

MSC_SIMD static void run_hard_swish(float *out, const float *const x[], const float p[2],
                                    int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float y = 1.0f / 6.0f * a[i] + 0.5f;
        y = y < 0.0f ? 0.0f : y;
        out[i] = a[i] * (y > 1.0f ? 1.0f : y);
    }
}

static void run_sigmoid(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    msc_sigmoid_run(out, x[0], n);
}

static void run_tanh(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    msc_tanh_run(out, x[0], n);
}

static void run_erf(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    msc_erf_run(out, x[0], n);
}

static void run_exp(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    msc_exp_run(out, x[0], n);
}

static void run_log(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    for (int64_t i = 0; i < n; i++) {
        out[i] = msc_logf(x[0][i]);
    }
}

MSC_SIMD static void run_sqrt(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = sqrtf(a[i]);
    }
}

MSC_SIMD static void run_square_root_power(float *out, const float *const x[], const float p[2],
                                           int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        // As msc_powf: the power of -0 is +0, of -inf +inf.
        float y = sqrtf(a[i]) + 0.0f;
        out[i] = a[i] == -INFINITY ? INFINITY : y;
    }
}

MSC_SIMD static void run_abs(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = fabsf(a[i]);
    }
}

MSC_SIMD static void run_negative(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = -a[i];
    }
}

MSC_SIMD static void run_reciprocal(float *out, const float *const x[], const float p[2],
                                    int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = 1.0f / a[i];
    }
}

MSC_SIMD static void run_floor(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = floorf(a[i]);
    }
}

MSC_SIMD static void run_ceil(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = ceilf(a[i]);
    }
}

MSC_SIMD static void run_round(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = rintf(a[i]);
    }
}

MSC_SIMD static void run_elu_tail(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    float alpha = p[0];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] < 0.0f ? alpha * (b[i] - 1.0f) : a[i];
    }
}

MSC_SIMD static void run_gelu_tail(float *out, const float *const x[], const float p[2],
                                   int64_t n) {
    const float *a = x[0], *b = x[1];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0.5f * a[i] * (1.0f + b[i]);
    }
}

MSC_SIMD static void run_tanh_argument(float *out, const float *const x[], const float p[2],
                                       int64_t n) {
    const float *a = x[0];
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0.797884561f * (a[i] + 0.044715f * (a[i] * a[i] * a[i]));
    }
}

MSC_SIMD static void run_scale(float *out, const float *const x[], const float p[2], int64_t n) {
    const float *a = x[0];
    float factor = p[0];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] * factor;
    }
}

static void run_copy(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    memmove(out, x[0], (size_t)n * sizeof(out[0]));
}

static const msc_ewise_fn fns[MSC_EWISE_OP_COUNT] = {
    [MSC_EWISE_ADD] = run_add,
    [MSC_EWISE_SUBTRACT] = run_subtract,
    [MSC_EWISE_MULTIPLY] = run_multiply,
    [MSC_EWISE_DIVIDE] = run_divide,
    [MSC_EWISE_MAXIMUM] = run_maximum,
    [MSC_EWISE_MINIMUM] = run_minimum,
    [MSC_EWISE_POWER] = run_power,
    [MSC_EWISE_FINISH_F32] = run_finish_f32,
    [MSC_EWISE_FINISH_I32] = run_finish_i32,
    [MSC_EWISE_RELU] = run_relu,
    [MSC_EWISE_LEAKY_RELU] = run_leaky_relu,
    [MSC_EWISE_CLIP] = run_clip,
    [MSC_EWISE_HARD_SIGMOID] = run_hard_sigmoid,
    [MSC_EWISE_HARD_SWISH] = run_hard_swish,
    [MSC_EWISE_SIGMOID] = run_sigmoid,
    [MSC_EWISE_TANH] = run_tanh,
    [MSC_EWISE_ERF] = run_erf,
    [MSC_EWISE_EXP] = run_exp,
    [MSC_EWISE_LOG] = run_log,
    [MSC_EWISE_SQRT] = run_sqrt,
    [MSC_EWISE_SQUARE_ROOT_POWER] = run_square_root_power,
    [MSC_EWISE_ABS] = run_abs,
    [MSC_EWISE_NEGATIVE] = run_negative,
    [MSC_EWISE_RECIPROCAL] = run_reciprocal,
    [MSC_EWISE_FLOOR] = run_floor,
    [MSC_EWISE_CEIL] = run_ceil,
    [MSC_EWISE_ROUND] = run_round,
    [MSC_EWISE_ELU_TAIL] = run_elu_tail,
    [MSC_EWISE_GELU_TAIL] = run_gelu_tail,
    [MSC_EWISE_TANH_ARGUMENT] = run_tanh_argument,
    [MSC_EWISE_SCALE] = run_scale,
    [MSC_EWISE_COPY] = run_copy,
};

msc_ewise_fn msc_ewise_op_fn(enum msc_ewise_op op) {
    return fns[op];
}
