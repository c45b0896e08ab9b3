// Transposes for 64-bit Arm, in tiles of registers.
#include "kernels/cpu/simd_neon.h"
#include "kernels/cpu/simd_transpose_loops.h"

enum { SIDE4 = 4, SIDE1 = 16, STRIP4 = 64, STRIP1 = 256 };

// ---- Tiles ------------------------------------------------------------------------------------

// Transposes 4 x 4 elements of 4 bytes. Distances between rows are in bytes.
static void tile4(char *out, int64_t out_row, const char *in, int64_t in_row) {
    uint32x4_t x[SIDE4];
    for (int r = 0; r < SIDE4; r++) {
        x[r] = vreinterpretq_u32_u8(load_16(in + r * in_row));
    }
    for (int half = 0; half < 2; half++) {
        // Columns 2 * half and 2 * half + 1 of rows 0 and 2, and of rows 1 and 3.
        uint32x4_t even = half == 0 ? vzip1q_u32(x[0], x[2]) : vzip2q_u32(x[0], x[2]);
        uint32x4_t odd = half == 0 ? vzip1q_u32(x[1], x[3]) : vzip2q_u32(x[1], x[3]);
        char *to = out + 2 * half * out_row;
        store_16(to, vreinterpretq_u8_u32(vzip1q_u32(even, odd)));
        store_16(to + out_row, vreinterpretq_u8_u32(vzip2q_u32(even, odd)));
    }
}

// Interleaves the bytes of row i with those of row i + 8, for all rows i below 8. Four times in a
// row this transposes 16 x 16 bytes.
static inline void interleave(uint8x16_t y[SIDE1], const uint8x16_t x[SIDE1]) {
    for (int i = 0; i < SIDE1 / 2; i++) {
        y[2 * i] = vzip1q_u8(x[i], x[i + SIDE1 / 2]);
        y[2 * i + 1] = vzip2q_u8(x[i], x[i + SIDE1 / 2]);
    }
}

static void tile1(char *out, int64_t out_row, const char *in, int64_t in_row) {
    uint8x16_t x[SIDE1], y[SIDE1];
    for (int r = 0; r < SIDE1; r++) {
        x[r] = load_16(in + r * in_row);
    }
    interleave(y, x);
    interleave(x, y);
    interleave(y, x);
    interleave(x, y);
    for (int c = 0; c < SIDE1; c++) {
        store_16(out + c * out_row, x[c]);
    }
}

// ---- Planes -----------------------------------------------------------------------------------

void msc_simd__neon_transpose4(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols) {
    transpose(tile4, SIDE4, STRIP4, 4, out, 4 * out_row, in, 4 * in_row, rows, cols);
}

void msc_simd__neon_transpose1(void *out, int64_t out_row, const void *in, int64_t in_row,
                               int64_t rows, int64_t cols) {
    transpose(tile1, SIDE1, STRIP1, 1, out, out_row, in, in_row, rows, cols);
}
