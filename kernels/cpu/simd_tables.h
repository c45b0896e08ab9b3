// The tables of loops of each instruction set, and their products.
#ifndef MSC_KERNELS_CPU_SIMD_TABLES_H
#define MSC_KERNELS_CPU_SIMD_TABLES_H

#include "kernels/cpu/simd_indirect.h"

extern const struct msc_simd msc_simd__avx512, msc_simd__avx2, msc_simd__avx2_vnni;
extern const struct msc_simd_product msc_simd__avx512_bytes, msc_simd__avx512_floats,
    msc_simd__tiles;
extern const struct msc_simd_product msc_simd__avx2_bytes, msc_simd__avx2_floats,
    msc_simd__avx2_vnni_bytes;
extern const struct msc_simd_winograd msc_simd__avx512_winograd, msc_simd__avx2_winograd,
    msc_simd__avx2_vnni_winograd;
extern const struct msc_simd msc_simd__neon, msc_simd__neon_dotprod, msc_simd__neon_i8mm;
extern const struct msc_simd_product msc_simd__neon_bytes, msc_simd__neon_floats;

// ---- simd_avx2_depthwise.c, simd_avx2_vnni.c --------------------------------------------------

#define MSC_SIMD_DEPTHWISE(name)                                                                   \
    void name##_pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,    \
                          int64_t period);                                                         \
    void name##_add_taps(int32_t sums[], const struct msc_simd_taps *t);                           \
    void name##_add_taps_quantize(uint8_t out[], const struct msc_simd_taps *t,                    \
                                  const struct msc_simd_finish *f,                                 \
                                  const struct msc_simd_bytes *q);                                 \
    void name##_add_columns(int32_t sums[], const struct msc_simd_columns *c);                     \
    void name##_add_columns_quantize(uint8_t out[], const struct msc_simd_columns *c,              \
                                     const struct msc_simd_finish *f,                              \
                                     const struct msc_simd_bytes *q);
MSC_SIMD_DEPTHWISE(msc_simd__avx2)
MSC_SIMD_DEPTHWISE(msc_simd__avx2_vnni)

// ---- simd_avx2_vnni.c -------------------------------------------------------------------------

struct block;
// Sums of products of int16 (simd_indirect_tiles.h), for one vector of channels.
void msc_simd__avx2_vnni_multiply_pairs(const struct block *b);

// ---- simd_avx2_transpose.c --------------------------------------------------------------------

void msc_simd__avx2_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);
void msc_simd__avx2_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols);

#endif
