// Transposes for AVX2, in tiles of registers.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"
#include "kernels/cpu/simd_transpose_loops.h"

enum { SIDE4 = 8, SIDE1 = 16, STRIP4 = 64, STRIP1 = 256 };

// ---- Tiles ------------------------------------------------------------------------------------

// Transposes 8 x 8 elements of 4 bytes. Distances between rows are in bytes.
VECTOR_INLINE void tile4(char *out, int64_t out_row, const char *in, int64_t in_row) {
    __m256 x[SIDE4], y[SIDE4];
    for (int r = 0; r < SIDE4; r++) {
        x[r] = _mm256_loadu_ps((const float *)(const void *)(in + r * in_row));
    }
    for (int r = 0; r < SIDE4; r += 2) {
        y[r] = _mm256_unpacklo_ps(x[r], x[r + 1]);
        y[r + 1] = _mm256_unpackhi_ps(x[r], x[r + 1]);
    }
    for (int r = 0; r < SIDE4; r += 4) {
        x[r] = _mm256_shuffle_ps(y[r], y[r + 2], _MM_SHUFFLE(1, 0, 1, 0));
        x[r + 1] = _mm256_shuffle_ps(y[r], y[r + 2], _MM_SHUFFLE(3, 2, 3, 2));
        x[r + 2] = _mm256_shuffle_ps(y[r + 1], y[r + 3], _MM_SHUFFLE(1, 0, 1, 0));
        x[r + 3] = _mm256_shuffle_ps(y[r + 1], y[r + 3], _MM_SHUFFLE(3, 2, 3, 2));
    }
    for (int c = 0; c < SIDE4; c++) {
        __m256 a = x[c % 4], b = x[c % 4 + 4];
        __m256 column =
            c < 4 ? _mm256_permute2f128_ps(a, b, 0x20) : _mm256_permute2f128_ps(a, b, 0x31);
        _mm256_storeu_ps((float *)(void *)(out + c * out_row), column);
    }
}

// Interleaves the bytes of row i with those of row i + 8, for all rows i below 8. Four times in a
// row this transposes 16 x 16 bytes.
VECTOR_INLINE void interleave(__m128i y[SIDE1], const __m128i x[SIDE1]) {
    for (int i = 0; i < SIDE1 / 2; i++) {
        y[2 * i] = _mm_unpacklo_epi8(x[i], x[i + SIDE1 / 2]);
        y[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + SIDE1 / 2]);
    }
}

VECTOR_INLINE void tile1(char *out, int64_t out_row, const char *in, int64_t in_row) {
    __m128i x[SIDE1], y[SIDE1];
    for (int r = 0; r < SIDE1; r++) {
        x[r] = _mm_loadu_si128((const __m128i *)(const void *)(in + r * in_row));
    }
    interleave(y, x);
    interleave(x, y);
    interleave(y, x);
    interleave(x, y);
    for (int c = 0; c < SIDE1; c++) {
        _mm_storeu_si128((__m128i *)(void *)(out + c * out_row), x[c]);
    }
}

// ---- Planes -----------------------------------------------------------------------------------

VECTOR_TARGET void msc_simd__avx2_transpose4(void *out, int64_t out_row, const void *in,
                                             int64_t in_row, int64_t rows, int64_t cols) {
    transpose(tile4, SIDE4, STRIP4, 4, out, 4 * out_row, in, 4 * in_row, rows, cols);
}

VECTOR_TARGET void msc_simd__avx2_transpose1(void *out, int64_t out_row, const void *in,
                                             int64_t in_row, int64_t rows, int64_t cols) {
    transpose(tile1, SIDE1, STRIP1, 1, out, out_row, in, in_row, rows, cols);
}
