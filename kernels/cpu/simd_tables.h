// The tables of loops of each instruction set, and their products.
#ifndef MSC_KERNELS_CPU_SIMD_TABLES_H
#define MSC_KERNELS_CPU_SIMD_TABLES_H

#include "kernels/cpu/simd_indirect.h"

extern const struct msc_simd msc_simd__avx512, msc_simd__avx2;
extern const struct msc_simd_product msc_simd__avx512_bytes, msc_simd__avx512_floats,
    msc_simd__tiles;
extern const struct msc_simd_product msc_simd__avx2_bytes, msc_simd__avx2_floats;
extern const struct msc_simd_winograd msc_simd__avx512_winograd, msc_simd__avx2_winograd;

// ---- simd_avx2_transpose.c --------------------------------------------------------------------

void msc_simd__avx2_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);
void msc_simd__avx2_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);

#endif
