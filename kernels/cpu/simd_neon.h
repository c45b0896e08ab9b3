// Internal header of the files for 64-bit Arm: loops of the baseline (NEON) that the tables of
// other levels also use.
#ifndef MSC_KERNELS_CPU_SIMD_NEON_H
#define MSC_KERNELS_CPU_SIMD_NEON_H

#include "kernels/cpu/simd_tables.h"

// The members that all tables of 64-bit Arm have in common.
#define NEON_COMMON                                                                                \
    .floats = &msc_simd__neon_floats, .quantize = msc_simd__neon_quantize,                         \
    .finish = msc_simd__neon_finish, .largest = msc_simd__neon_largest,                            \
    .largest_float = msc_simd__neon_largest_float, .mean = msc_simd__neon_mean,                    \
    .softmax = msc_simd__neon_softmax, .log_softmax = msc_simd__neon_log_softmax,                  \
    .run_chain = msc_simd__neon_run_chain, .transpose4 = msc_simd__neon_transpose4,                \
    .transpose1 = msc_simd__neon_transpose1

// ---- simd_neon.c ------------------------------------------------------------------------------

void msc_simd__neon_quantize(uint8_t out[], const float x[], int64_t n,
                             const struct msc_simd_bytes *q);
void msc_simd__neon_finish(float out[], const struct msc_simd_finish *f, int64_t n);
void msc_simd__neon_largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                            uint8_t flip);
void msc_simd__neon_largest_float(float out[], const float x[], const struct msc_simd_pool *p);
void msc_simd__neon_mean(float out[], const float x[], const struct msc_simd_pool *p,
                         float divisor);
void msc_simd__neon_softmax(float out[], const float x[], int64_t n);
void msc_simd__neon_log_softmax(float out[], const float x[], int64_t n);
void msc_simd__neon_run_chain(const struct msc_simd_chain *chain, const struct msc_simd_run *run);

// ---- simd_neon_transpose.c --------------------------------------------------------------------

void msc_simd__neon_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);
void msc_simd__neon_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);

#endif
