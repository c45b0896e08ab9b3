// The tile instructions that simd_tiles.c uses (Intel AMX, "AMX-INT8"). There are eight tile
// registers of 16 rows of 64 bytes, in which sums of uint8 x int8 products are added up.
//
// Tiles are given by their number, which must be a literal. A thread must load the tile shapes
// before it uses tiles, and release the tiles afterwards.
#ifndef MSC_KERNELS_CPU_SIMD_TILES_H
#define MSC_KERNELS_CPU_SIMD_TILES_H

#include <immintrin.h>
#include <stdint.h>

#define TILES                                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")))

// The operand of LDTILECFG, for palette 1.
struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

#define TILE_SHAPES(shapes) _tile_loadconfig(shapes)
#define TILE_RELEASE() _tile_release()
#define TILE_ZERO(tile) _tile_zero(tile)
// Loads a tile. The barrier makes earlier writes happen before the load, because not every compiler
// knows that a tile load reads memory.
#define TILE_LOAD(tile, from, stride)                                                              \
    do {                                                                                           \
        __asm__ volatile("" ::: "memory");                                                         \
        _tile_loadd(tile, from, (size_t)(stride));                                                 \
    } while (0)
#define TILE_STORE(tile, to, stride) _tile_stored(tile, to, (size_t)(stride))
// sums[16][16] += a[16][64] times b[64 / 4][16][4]
#define TILE_ADD(sums, a, b) _tile_dpbusd(sums, a, b)

#endif
