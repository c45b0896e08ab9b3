// Transposes in registers: 16 x 16 elements of 4 bytes, or 64 x 16 of one byte.
#include "kernels/cpu/simd_avx512.h"

// A strip of columns is transposed for all rows before the next strip. STRIP4 (elements of 4 bytes)
// and STRIP1 (1 byte) are the columns per strip: a few cache lines of each row, and as much of the
// output as fits a first-level cache.
enum { SIDE = 16, STRIP4 = 64, STRIP1 = 128, ROWS1 = 64 };

AVX512 INLINE __mmask16 avx512_transpose_mask_of(int64_t n) {
    return n >= SIDE ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

// ---- Four bytes -------------------------------------------------------------------------------

// Transposes the 4 x 4 elements in each 128-bit part of rows 4 * k ... 4 * k + 3. Afterwards,
// vector 4 * k + i has column i of each of the four parts.
AVX512 INLINE void transpose_parts(__m512i x[SIDE]) {
    for (int k = 0; k < SIDE; k += 4) {
        __m512i ab = _mm512_unpacklo_epi32(x[k], x[k + 1]);
        __m512i AB = _mm512_unpackhi_epi32(x[k], x[k + 1]);
        __m512i cd = _mm512_unpacklo_epi32(x[k + 2], x[k + 3]);
        __m512i CD = _mm512_unpackhi_epi32(x[k + 2], x[k + 3]);
        x[k] = _mm512_unpacklo_epi64(ab, cd);
        x[k + 1] = _mm512_unpackhi_epi64(ab, cd);
        x[k + 2] = _mm512_unpacklo_epi64(AB, CD);
        x[k + 3] = _mm512_unpackhi_epi64(AB, CD);
    }
}

// Transposes the four 128-bit parts of the vectors i, i + 4, i + 8, i + 12.
AVX512 INLINE void transpose_wholes(__m512i y[SIDE], const __m512i x[SIDE]) {
    for (int i = 0; i < 4; i++) {
        __m512i a = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
        __m512i b = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
        __m512i c = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
        __m512i d = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
        y[i] = _mm512_shuffle_i32x4(a, b, 0x88);
        y[i + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
        y[i + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
        y[i + 12] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
}

AVX512 INLINE void tile4(uint32_t *out, int64_t out_row, const uint32_t *in, int64_t in_row,
                         int64_t rows, int64_t cols) {
    __m512i x[SIDE], y[SIDE];
    __mmask16 of_rows = avx512_transpose_mask_of(rows), of_cols = avx512_transpose_mask_of(cols);
    for (int r = 0; r < SIDE; r++) {
        x[r] =
            r < rows ? _mm512_maskz_loadu_epi32(of_cols, in + r * in_row) : _mm512_setzero_si512();
    }
    transpose_parts(x);
    transpose_wholes(y, x);
    for (int c = 0; c < SIDE; c++) {
        if (c < cols) {
            _mm512_mask_storeu_epi32(out + c * out_row, of_rows, y[c]);
        }
    }
}

// Prefetches the rows of the tile that follows the one at row r and column c: the tile below it or,
// after the last, the first of the next strip. The rows are too far apart for the processor to
// predict them.
AVX512 INLINE void prefetch_tile4(const uint32_t *in, int64_t in_row, int64_t r, int64_t c,
                                  int64_t rows) {
    const uint32_t *next = r + SIDE < rows ? in + (r + SIDE) * in_row + c : in + c + STRIP4;
    for (int i = 0; i < SIDE; i++) {
        _mm_prefetch((const char *)(next + i * in_row), _MM_HINT_T0);
    }
}

AVX512 void msc_simd__avx512_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                                        int64_t rows, int64_t cols) {
    for (int64_t strip = 0; strip < cols; strip += STRIP4) {
        int64_t end = strip + STRIP4 < cols ? strip + STRIP4 : cols;
        for (int64_t r = 0; r < rows; r += SIDE) {
            for (int64_t c = strip; c < end; c += SIDE) {
                uint32_t *to = (uint32_t *)out + c * out_row + r;
                const uint32_t *from = (const uint32_t *)in + r * in_row + c;
                prefetch_tile4(in, in_row, r, c, rows);
                if (rows - r >= SIDE && cols - c >= SIDE) {
                    tile4(to, out_row, from, in_row, SIDE, SIDE);
                } else {
                    tile4(to, out_row, from, in_row, rows - r, cols - c);
                }
            }
        }
    }
}

// ---- One byte ---------------------------------------------------------------------------------

// Transposes the 16 x 16 bytes in each of the four 128-bit parts of the vectors.
AVX512 INLINE void transpose_bytes(__m512i x[SIDE]) {
    __m512i y[SIDE];
    for (int i = 0; i < 8; i++) {
        y[2 * i] = _mm512_unpacklo_epi8(x[i], x[i + 8]);
        y[2 * i + 1] = _mm512_unpackhi_epi8(x[i], x[i + 8]);
    }
    for (int i = 0; i < 8; i++) {
        x[2 * i] = _mm512_unpacklo_epi8(y[i], y[i + 8]);
        x[2 * i + 1] = _mm512_unpackhi_epi8(y[i], y[i + 8]);
    }
    for (int i = 0; i < 8; i++) {
        y[2 * i] = _mm512_unpacklo_epi8(x[i], x[i + 8]);
        y[2 * i + 1] = _mm512_unpackhi_epi8(x[i], x[i + 8]);
    }
    for (int i = 0; i < 8; i++) {
        x[2 * i] = _mm512_unpacklo_epi8(y[i], y[i + 8]);
        x[2 * i + 1] = _mm512_unpackhi_epi8(y[i], y[i + 8]);
    }
}

// Transposes up to 64 x 16 bytes. Rows r, r + 16, r + 32 and r + 48 are loaded as the four parts of
// vector r.
AVX512 INLINE void tile1(uint8_t *out, int64_t out_row, const uint8_t *in, int64_t in_row,
                         int64_t rows, int64_t cols) {
    __m512i x[SIDE];
    __mmask16 of_cols = avx512_transpose_mask_of(cols);
    __mmask64 of_rows = rows >= ROWS1 ? ~(__mmask64)0 : ((__mmask64)1 << rows) - 1;
    for (int r = 0; r < SIDE; r++) {
        x[r] = _mm512_setzero_si512();
        for (int part = 0; part < 4; part++) {
            int64_t row = r + SIDE * part;
            if (row < rows) {
                __m128i bytes = _mm_maskz_loadu_epi8(of_cols, in + row * in_row);
                x[r] = _mm512_mask_broadcast_i32x4(x[r], (__mmask16)(0xf << 4 * part), bytes);
            }
        }
    }
    transpose_bytes(x);
    for (int c = 0; c < SIDE; c++) {
        if (c < cols) {
            _mm512_mask_storeu_epi8(out + c * out_row, of_rows, x[c]);
        }
    }
}

AVX512 void msc_simd__avx512_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                                        int64_t rows, int64_t cols) {
    for (int64_t strip = 0; strip < cols; strip += STRIP1) {
        int64_t end = strip + STRIP1 < cols ? strip + STRIP1 : cols;
        for (int64_t r = 0; r < rows; r += ROWS1) {
            for (int64_t c = strip; c < end; c += SIDE) {
                uint8_t *to = (uint8_t *)out + c * out_row + r;
                const uint8_t *from = (const uint8_t *)in + r * in_row + c;
                if (rows - r >= ROWS1 && cols - c >= SIDE) {
                    tile1(to, out_row, from, in_row, ROWS1, SIDE);
                } else {
                    tile1(to, out_row, from, in_row, rows - r, cols - c);
                }
            }
        }
    }
}
