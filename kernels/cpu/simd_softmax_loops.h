// Softmax and its logarithm along a row.
#ifndef MSC_KERNELS_CPU_SIMD_SOFTMAX_LOOPS_H
#define MSC_KERNELS_CPU_SIMD_SOFTMAX_LOOPS_H

#include "kernels/cpu/simd_ops.h"

#include "graph/reference/numeric.h"

#include <math.h>

// Gives the same bits as msc_expf for numbers up to 0 and for NaN. The product with the first part
// of ln 2 is exact, so one instruction may multiply and subtract. The final factor is a power of
// two, so it rounds the polynomial only once, as msc_expf does.
VECTOR_INLINE vfloat exp_16(vfloat x) {
    const vfloat rounder = vf_set(0x1.8p23f);
    // If an operand of max is NaN, the result is the second operand.
    x = vf_max(vf_set(-104.0f), x);
    vfloat shifted = vf_add(vf_multiply(x, vf_set(1.44269504f)), rounder);
    vfloat n = vf_subtract(shifted, rounder);
    vfloat r = vf_multiply_subtract_from(n, vf_set(0.693359375f), x);
    r = vf_subtract(r, vf_multiply(n, vf_set(-2.12194440e-4f)));
    static const float coefficients[] = {8.368716e-3f, 4.1668292e-2f, 1.6666521e-1f, 4.9999994e-1f};
    vfloat p = vf_set(1.3818697e-3f);
    UNROLL for (int i = 0; i < 4; i++) {
        p = vf_add(vf_multiply(p, r), vf_set(coefficients[i]));
    }
    p = vf_add(vf_multiply(p, vf_multiply(r, r)), r);
    return vf_scale(vf_add(p, vf_set(1.0f)), n);
}

// The largest number, ignoring NaN.
VECTOR_INLINE float max_of(const float x[], int64_t n) {
    enum { AT_ONCE = 4 };
    const vfloat least = vf_set(-INFINITY);
    vfloat max[AT_ONCE] = {least, least, least, least};
    int64_t i = 0;
    for (; i + AT_ONCE * LANES <= n; i += AT_ONCE * LANES) {
        UNROLL for (int k = 0; k < AT_ONCE; k++) {
            max[k] = vf_max(vf_load(x + i + k * LANES), max[k]);
        }
    }
    for (; i < n; i += LANES) {
        max[0] = vf_max(vf_load_part(least, vmask_of(n - i), x + i), max[0]);
    }
    max[0] = vf_max(vf_max(max[0], max[1]), vf_max(max[2], max[3]));
    return vf_largest(max[0]);
}

// Writes exp(x - max), or only x - max for the logarithm. Returns the sum of the exponentials. The
// elements that do not fill a vector are added one by one first, then the lanes of the vector sum.
VECTOR_INLINE float make_powers(float out[], const float x[], int64_t n, bool is_log) {
    const vfloat max = vf_set(max_of(x, n));
    vfloat sum = vf_set(0.0f);
    float lanes[LANES], rest[LANES], total = 0.0f;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vfloat y = vf_subtract(vf_load(x + i), max), power = exp_16(y);
        vf_store(out + i, is_log ? y : power);
        sum = vf_add(sum, power);
    }
    if (i < n) {
        vmask mask = vmask_of(n - i);
        vfloat y = vf_subtract(vf_load_part(vf_set(0.0f), mask, x + i), max), power = exp_16(y);
        vf_store_part(out + i, mask, is_log ? y : power);
        vf_store(rest, power);
    }
    for (int64_t k = 0; k < n - i; k++) {
        total += rest[k];
    }
    vf_store(lanes, sum);
    UNROLL for (int k = 0; k < LANES; k++) {
        total += lanes[k];
    }
    return total;
}

VECTOR_TARGET static void softmax(float out[], const float x[], int64_t n) {
    const vfloat total = vf_set(make_powers(out, x, n, false));
    for (int64_t i = 0; i < n; i += LANES) {
        vmask mask = vmask_of(n - i);
        vfloat y = vf_load_part(vf_set(0.0f), mask, out + i);
        vf_store_part(out + i, mask, vf_divide(y, total));
    }
}

VECTOR_TARGET static void log_softmax(float out[], const float x[], int64_t n) {
    const vfloat log = vf_set(msc_logf(make_powers(out, x, n, true)));
    for (int64_t i = 0; i < n; i += LANES) {
        vmask mask = vmask_of(n - i);
        vfloat y = vf_load_part(vf_set(0.0f), mask, out + i);
        vf_store_part(out + i, mask, vf_subtract(y, log));
    }
}

#endif
