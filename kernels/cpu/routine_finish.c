// Bias and limits behind a product, for routines that do not do these themselves.
#include "base/platform.h"
#include "kernels/cpu/routine.h"

MSC_SIMD static void finish_position(const struct msc_gemm_desc *d, const float *bias,
                                     float *restrict out) {
    for (int64_t c = 0; bias && c < d->out_channels; c++) {
        out[c] += bias[c];
    }
    for (int64_t c = 0; d->has_clip && c < d->out_channels; c++) {
        float y = out[c] < d->low ? d->low : out[c];
        out[c] = y > d->high ? d->high : y;
    }
}

void msc_routine_finish(const struct msc_gemm_desc *desc, const float bias[], float out[],
                        int64_t n_positions) {
    for (int64_t i = 0; i < n_positions; i++) {
        finish_position(desc, bias, out + i * desc->out_channels);
    }
}
