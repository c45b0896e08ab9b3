// Tests whether tile registers can be used. Linux enables them only for processes that request
// them.

// syscall is not a standard function.
#define _GNU_SOURCE

#include "base/alloc.h"
#include "kernels/cpu/simd_avx512.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Bits of CPUID leaf 7 (AMX-TILE, AMX-INT8). ASK and TILE_DATA are from <asm/prctl.h> of Linux
// 5.16: ARCH_REQ_XCOMP_PERM for state component 18 (XTILEDATA).
enum { LEAF = 7, TILE = 1 << 24, INT8 = 1 << 25, ASK = 0x1023, TILE_DATA = 18 };

static bool simd_tiles_machine_ask(void) {
    unsigned int a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8) &&
           syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

// A test product whose sizes are not multiples of a tile, step or vector.
enum { WINDOWS = 35, CHANNELS = 37, DEPTH = 71 };

static bool tiles_machine_multiply(int32_t sums[], const struct msc_simd_product *product) {
    static const int64_t runs[1] = {0};
    uint8_t in[WINDOWS * DEPTH + MSC_SIMD_GROUP] = {0};
    int8_t weights[CHANNELS * DEPTH];
    int64_t at[WINDOWS];
    void *packed = msc_alloc_aligned(product->packed_bytes(CHANNELS, 1, DEPTH));
    void *scratch = msc_alloc_aligned(product->scratch_bytes(1, DEPTH) + 1);
    for (int i = 0; i < WINDOWS * DEPTH; i++) {
        in[i] = (uint8_t)(i * 7 % 256);
    }
    for (int i = 0; i < CHANNELS * DEPTH; i++) {
        weights[i] = (int8_t)(i * 5 % 256 - 128);
    }
    for (int i = 0; i < WINDOWS; i++) {
        at[i] = i * DEPTH;
    }
    if (packed && scratch) {
        product->pack(packed, weights, CHANNELS, 1, DEPTH);
        product->multiply(sums, &(struct msc_simd_indirect){.in = in,
                                                            .at = at,
                                                            .n = WINDOWS,
                                                            .n_runs = 1,
                                                            .runs = runs,
                                                            .depth = DEPTH,
                                                            .weights = packed,
                                                            .channels = CHANNELS,
                                                            .scratch = scratch});
    }
    msc_free_aligned(packed);
    msc_free_aligned(scratch);
    return packed && scratch;
}

bool msc_simd__agrees(const struct msc_simd_product *tiles) {
    int32_t expected[WINDOWS * CHANNELS], sums[WINDOWS * CHANNELS];
    return tiles_machine_multiply(expected, &msc_simd__avx512_bytes) &&
           tiles_machine_multiply(sums, tiles) && memcmp(sums, expected, sizeof(sums)) == 0;
}

bool msc_simd_get_tiles(void) {
    return simd_tiles_machine_ask() && msc_simd__agrees(&msc_simd__tiles);
}
