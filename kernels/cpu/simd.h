// The loops of integer steps that are worth writing for one instruction set: what follows int32
// sums, and what makes bytes of floats.
//
// There is a table of functions in plain C, and where the machine has more, one in its own
// instructions. All give the same bits.
//
//     const struct msc_simd *simd = msc_simd_best();
//     struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
//     simd->quantize(out, x, n, &q);
#ifndef MSC_KERNELS_CPU_SIMD_H
#define MSC_KERNELS_CPU_SIMD_H

#include "graph/edit.h"

#ifdef __cplusplus
extern "C" {
#endif

// How a quantisation of 8 bits or fewer makes a byte, uint8 or int8, of x: divided by the scale in
// float32, rounded to even, limited to low ... high (NaN to low) and moved by the zero point.
//
// Where `is_corrected` there is a way without division: x limited to x_low ... x_high, the integers'
// limits times the scale, is multiplied by the reciprocal and corrected once by its remainder. That
// rounds to the same integers: shown by trying every significand of the scale with all numerators
// near a tie.
struct msc_simd_bytes {
    float scale, low, high;
    int32_t zero_point;
    bool is_corrected;
    float reciprocal, x_low, x_high;
};
struct msc_simd_bytes msc_simd_bytes_of(const struct msc_quant *quant);

// What makes y of int32 sums: y = scale * (float)(sum - offset), + bias, limited to low ... high
// (NaN stays), each rounded. One of everything for each sum.
struct msc_simd_finish {
    const int32_t *sums, *offsets;
    const float *scales, *bias;
    float low, high;
};

struct msc_simd {
    void (*quantize)(uint8_t out[], const float x[], int64_t n, const struct msc_simd_bytes *q);
    void (*finish)(float out[], const struct msc_simd_finish *f, int64_t n);
    // Both at once: without the floats in between.
    void (*finish_quantize)(uint8_t out[], const struct msc_simd_finish *f, int64_t n,
                            const struct msc_simd_bytes *q);
};

// For this machine; never changes.
const struct msc_simd *msc_simd_best(void);
extern const struct msc_simd msc_simd_plain;

#ifdef __cplusplus
}
#endif

#endif
