// Applies bias and clip bounds after a product, for routines that do not apply them themselves.
#include "base/platform.h"
#include "kernels/cpu/routine.h"

MSC_SIMD static void add_bias(float *restrict out, const float *restrict bias, int64_t n) {
    for (int64_t c = 0; c < n; c++) {
        out[c] += bias[c];
    }
}

// Limits n floats to low ... high; NaN is kept.
MSC_SIMD static void limit(float *out, int64_t n, float low, float high) {
    for (int64_t i = 0; i < n; i++) {
        float y = out[i] < low ? low : out[i];
        out[i] = y > high ? high : y;
    }
}

void msc_routine_finish(const struct msc_gemm_desc *desc, const float bias[], float out[],
                        int64_t n_positions) {
    for (int64_t i = 0; bias && i < n_positions; i++) {
        add_bias(out + i * desc->out_channels, bias, desc->out_channels);
    }
    if (desc->has_clip) {
        limit(out, n_positions * desc->out_channels, desc->low, desc->high);
    }
}
