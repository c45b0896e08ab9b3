#include "kernels/cpu/ewise_loops.h"

#include "base/platform.h"
#include "graph/reference/numeric.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <string.h>

// ---- By expression ----------------------------------------------------------------------------

// Functions that expressions of ewise.def call in addition to the C library.
static inline float divide(float a, float b) {
    return a / b;
}

static inline float limit(float a, float low, float high) {
    float y = a < low ? low : a;
    return y > high ? high : y;
}

// Evaluates an instruction that has no loop of its own.
MSC_INLINE float evaluate(enum msc_ewise_op op, float a, float b, float p, float q) {
    switch (op) {
#define EWISE(code, name, operands, expression)                                                    \
    case MSC_EWISE_##name:                                                                         \
        return expression;
#include "kernels/lowering/ewise.def"
    default:
        return 0.0f;
    }
}

// Runs an instruction over n elements. `op` is a compile-time constant. `omp simd` states that
// elements are independent. This is true even if `out` is one of the operands, but the compiler
// could not prove it.
MSC_INLINE void loop_over(enum msc_ewise_op op, bool has_b, float *out, const float *const x[],
                          const float p[2], int64_t n) {
    const float *a = x[0], *b = x[1];
    float p0 = p[0], p1 = p[1];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = evaluate(op, a[i], has_b ? b[i] : 0.0f, p0, p1);
    }
}

MSC_SIMD static void run_each(enum msc_ewise_op op, float *out, const float *const x[],
                              const float p[2], int64_t n) {
    switch (op) {
#define EWISE(code, name, operands, expression)                                                    \
    case MSC_EWISE_##name:                                                                         \
        loop_over(MSC_EWISE_##name, (operands) > 1, out, x, p, n);                                 \
        break;
#include "kernels/lowering/ewise.def"
    default:
        break;
    }
}

// ---- Instructions with loops of their own -----------------------------------------------------

static void run_power(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    msc_pow_run(out, x[0], x[1], n);
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
    msc_log_run(out, x[0], n);
}

static void run_copy(float *out, const float *const x[], const float p[2], int64_t n) {
    (void)p;
    memmove(out, x[0], (size_t)n * sizeof(out[0]));
}

void msc_cpu_ewise_loop(enum msc_ewise_op op, float *out, const float *const x[MSC_EWISE_MAX_X],
                        const float p[2], int64_t n) {
    switch (op) {
#define EWISE_LOOP(code, name, operands, loop, expression)                                         \
    case MSC_EWISE_##name:                                                                         \
        loop(out, x, p, n);                                                                        \
        break;
#define EWISE_SUMS(code, name, operands, loop) EWISE_LOOP(code, name, operands, loop, )
#include "kernels/lowering/ewise.def"
    default:
        run_each(op, out, x, p, n);
        break;
    }
}
