// Pooling windows of floats over elements with contiguous channels.
#ifndef MSC_KERNELS_CPU_SIMD_POOL_LOOPS_H
#define MSC_KERNELS_CPU_SIMD_POOL_LOOPS_H

#include "kernels/cpu/simd_ops.h"

#include <math.h>

enum { WIDTH = 4 }; // vectors of channels that are pooled together

// Computes the largest taps of a tile. False if a tap may be NaN: the sum of taps is tested, so
// opposite infinities also give false.
VECTOR_INLINE bool largest_tile(float *out, const float *x, const struct msc_simd_pool *p, int n,
                                vmask mask) {
    vfloat most[WIDTH], sums[WIDTH];
    for (int k = 0; k < n; k++) {
        most[k] = sums[k] = load_part(x, p->offsets[0] + LANES * k, mask);
    }
    for (int64_t t = 1; t < p->n_taps; t++) {
        for (int k = 0; k < n; k++) {
            vfloat value = load_part(x, p->offsets[t] + LANES * k, mask);
            most[k] = vf_max(value, most[k]); // keeps the first of +0 and -0
            sums[k] = vf_add(sums[k], value);
        }
    }
    bool has_nan = false;
    for (int k = 0; k < n; k++) {
        store_part(out + LANES * k, most[k], mask);
        has_nan |= vf_has_nan(sums[k]);
    }
    return !has_nan;
}

VECTOR_INLINE bool largest_window(float *out, const float *x, const struct msc_simd_pool *p,
                                  vmask rest) {
    int64_t i = 0;
    bool is_done = true;
    for (; i + WIDTH * LANES <= p->channels; i += WIDTH * LANES) {
        is_done &= largest_tile(out + i, x + i, p, WIDTH, vmask_of(LANES));
    }
    for (; i + LANES <= p->channels; i += LANES) {
        is_done &= largest_tile(out + i, x + i, p, 1, vmask_of(LANES));
    }
    return rest == 0 ? is_done : largest_tile(out + i, x + i, p, 1, rest) && is_done;
}

VECTOR_TARGET static void largest_float(float out[], const float x[],
                                        const struct msc_simd_pool *p) {
    const struct msc_simd_pool own = *p;
    struct msc_simd_pool one = *p;
    one.n_windows = 1;
    for (int64_t w = 0; w < own.n_windows; w++) {
        if (!largest_window(out, x, &own, vmask_of(own.channels % LANES))) {
            msc_simd_plain.largest_float(out, x, &one);
        }
        out += own.channels;
        x += own.step;
    }
}

// Computes the means of a tile. If `factor` is not 0, multiplies by it instead of dividing: the
// divisor is then a power of two, so both give the same bits.
VECTOR_INLINE void mean_tile(float *out, const float *x, const struct msc_simd_pool *p, int n,
                             vmask mask, float divisor, float factor) {
    vfloat sums[WIDTH];
    for (int k = 0; k < n; k++) {
        sums[k] = vf_set(0.0f);
    }
    for (int64_t t = 0; t < p->n_taps; t++) {
        for (int k = 0; k < n; k++) {
            sums[k] = vf_add(sums[k], load_part(x, p->offsets[t] + LANES * k, mask));
        }
    }
    for (int k = 0; k < n; k++) {
        sums[k] = factor != 0.0f ? vf_multiply(sums[k], vf_set(factor))
                                 : vf_divide(sums[k], vf_set(divisor));
        store_part(out + LANES * k, sums[k], mask);
    }
}

VECTOR_TARGET static void mean(float out[], const float x[], const struct msc_simd_pool *p,
                               float divisor) {
    const struct msc_simd_pool own = *p;
    int exponent;
    float factor = frexpf(divisor, &exponent) == 0.5f ? 1.0f / divisor : 0.0f;
    vmask rest = vmask_of(own.channels % LANES);
    for (int64_t w = 0; w < own.n_windows; w++) {
        int64_t i = 0;
        for (; i + WIDTH * LANES <= own.channels; i += WIDTH * LANES) {
            mean_tile(out + i, x + i, &own, WIDTH, vmask_of(LANES), divisor, factor);
        }
        for (; i + LANES <= own.channels; i += LANES) {
            mean_tile(out + i, x + i, &own, 1, vmask_of(LANES), divisor, factor);
        }
        if (rest != 0) {
            mean_tile(out + i, x + i, &own, 1, rest, divisor, factor);
        }
        out += own.channels;
        x += own.step;
    }
}

#endif
