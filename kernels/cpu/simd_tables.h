// The tables of loops of each instruction set, and their products.
#ifndef MSC_KERNELS_CPU_SIMD_TABLES_H
#define MSC_KERNELS_CPU_SIMD_TABLES_H

#include "kernels/cpu/simd_indirect.h"

extern const struct msc_simd msc_simd__avx512, msc_simd__avx2;
extern const struct msc_simd_product msc_simd__bytes, msc_simd__floats, msc_simd__tiles;
extern const struct msc_simd_product msc_simd__avx2_bytes, msc_simd__avx2_floats;

// ---- simd_avx2_transpose.c --------------------------------------------------------------------

void msc_simd__avx2_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);
void msc_simd__avx2_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);

// ---- simd.c -----------------------------------------------------------------------------------

// The loops in plain C that other tables use, too.
void msc_simd__plain_largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                             uint8_t flip);
void msc_simd__plain_largest_float(float out[], const float x[], const struct msc_simd_pool *p);
void msc_simd__plain_mean(float out[], const float x[], const struct msc_simd_pool *p,
                          float divisor);
void msc_simd__plain_softmax(float out[], const float x[], int64_t n);
void msc_simd__plain_log_softmax(float out[], const float x[], int64_t n);

#endif
