// Tiles in plain C that replace kernels/cpu/simd_tiles.h, so that the code using them can be
// tested on any machine. They follow Intel's Software Developer's Manual, volume 2 (TILELOADD,
// TILESTORED, TDPBUSD), for tiles of 16 rows of 64 bytes.
#ifndef MSC_TESTS_KERNELS_TILES_EMULATED_H
#define MSC_TESTS_KERNELS_TILES_EMULATED_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TILES __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

enum { N_TILES = 8, TILE_ROWS = 16, ROW_BYTES = 64 };

static struct {
    bool has_shapes;
    uint8_t bytes[N_TILES][TILE_ROWS][ROW_BYTES];
} machine;

static inline void tile_shapes(const struct tile_shapes *shapes) {
    assert(sizeof(*shapes) == 64 && shapes->palette == 1 && shapes->start_row == 0);
    for (int i = 0; i < 16; i++) {
        assert(shapes->rows[i] == (i < N_TILES ? TILE_ROWS : 0));
        assert(shapes->row_bytes[i] == (i < N_TILES ? ROW_BYTES : 0));
    }
    machine.has_shapes = true;
    memset(machine.bytes, 0, sizeof(machine.bytes));
}

static inline void tile_release(void) {
    machine.has_shapes = false;
}

static inline void tile_zero(int tile) {
    assert(machine.has_shapes && tile < N_TILES);
    memset(machine.bytes[tile], 0, sizeof(machine.bytes[tile]));
}

static inline void tile_load(int tile, const void *from, int64_t stride) {
    assert(machine.has_shapes && tile < N_TILES);
    for (int row = 0; row < TILE_ROWS; row++) {
        memcpy(machine.bytes[tile][row], (const char *)from + row * stride, ROW_BYTES);
    }
}

static inline void tile_store(int tile, void *to, int64_t stride) {
    assert(machine.has_shapes && tile < N_TILES);
    for (int row = 0; row < TILE_ROWS; row++) {
        memcpy((char *)to + row * stride, machine.bytes[tile][row], ROW_BYTES);
    }
}

static inline void tile_add(int sums, int a, int b) {
    assert(machine.has_shapes && sums < N_TILES && a < N_TILES && b < N_TILES);
    for (int row = 0; row < TILE_ROWS; row++) {
        for (int column = 0; column < ROW_BYTES / 4; column++) {
            int32_t sum;
            memcpy(&sum, machine.bytes[sums][row] + 4 * column, sizeof(sum));
            for (int k = 0; k < ROW_BYTES; k++) {
                int32_t x = machine.bytes[a][row][k];
                sum += x * (int8_t)machine.bytes[b][k / 4][4 * column + k % 4];
            }
            memcpy(machine.bytes[sums][row] + 4 * column, &sum, sizeof(sum));
        }
    }
}

#define TILE_SHAPES(shapes) tile_shapes(shapes)
#define TILE_RELEASE() tile_release()
#define TILE_ZERO(tile) tile_zero(tile)
#define TILE_LOAD(tile, from, stride) tile_load(tile, from, stride)
#define TILE_STORE(tile, to, stride) tile_store(tile, to, stride)
#define TILE_ADD(sums, a, b) tile_add(sums, a, b)

#endif
