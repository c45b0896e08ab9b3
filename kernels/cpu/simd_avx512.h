// Internal header of the files that use AVX-512.
#ifndef MSC_KERNELS_CPU_SIMD_AVX512_H
#define MSC_KERNELS_CPU_SIMD_AVX512_H

#include "kernels/cpu/simd_ops.h"
#include "kernels/cpu/simd_tables.h"

#define AVX512 VECTOR_TARGET
#define INLINE static inline __attribute__((always_inline))

// Four vectors that have 64 elements in total, in sequential or interleaved order. In interleaved
// order, vector i has the elements 4 * i ... 4 * i + 3 of every 16 elements. `transposed` converts
// either order to the other.
struct quad {
    __m512i part[4];
};

AVX512 INLINE struct quad transposed(struct quad s) {
    __m512i a = _mm512_shuffle_i32x4(s.part[0], s.part[1], 0x44);
    __m512i b = _mm512_shuffle_i32x4(s.part[0], s.part[1], 0xee);
    __m512i c = _mm512_shuffle_i32x4(s.part[2], s.part[3], 0x44);
    __m512i d = _mm512_shuffle_i32x4(s.part[2], s.part[3], 0xee);
    return (struct quad){{_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                          _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)}};
}

// ---- simd_avx512_pool.c -----------------------------------------------------------------------

void msc_simd__avx512_largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                              uint8_t flip);

// ---- simd_avx512_transpose.c ------------------------------------------------------------------

void msc_simd__avx512_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                                 int64_t rows, int64_t cols);
void msc_simd__avx512_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                                 int64_t rows, int64_t cols);

// ---- simd_avx512_columns.c --------------------------------------------------------------------

void msc_simd__avx512_add_columns(int32_t sums[], const struct msc_simd_columns *c);
void msc_simd__avx512_add_columns_quantize(uint8_t out[], const struct msc_simd_columns *c,
                                           const struct msc_simd_finish *f,
                                           const struct msc_simd_bytes *q);

// ---- simd_tiles_machine.c ---------------------------------------------------------------------

// True if a product gives the same sums as msc_simd__avx512_bytes.
bool msc_simd__agrees(const struct msc_simd_product *tiles);

#endif
