// Products of windows with weights: what convolutions and linear layers add up, and what becomes of
// their sums before they are stored.
//
// A window is one or some runs of bytes of the input, which lie alike in all windows. They are read in groups of four bytes, each
// times a group of weights of every channel: four uint8 times four int8, added up as int32, or one
// float32 times another. There is a way for each, and for bytes a second one where the machine
// multiplies whole tiles; both ways give the same bits.
//
//     const struct msc_simd_product *product = msc_simd_product(MSC_SIMD_BYTES);
//     product->pack(packed, weights, channels, n_runs, depth);
//     product->multiply_epilogue(&windows, &epilogue);
#ifndef MSC_KERNELS_CPU_SIMD_INDIRECT_H
#define MSC_KERNELS_CPU_SIMD_INDIRECT_H

#include "kernels/cpu/simd.h"

enum {
    MSC_SIMD_CHANNELS = 16, // of a vector
    MSC_SIMD_GROUP = 4,     // bytes; those behind a run that are read with it do not count
    MSC_SIMD_MAX_QUANTIZED = 8,
};

struct msc_simd_indirect {
    const void *in;
    const int64_t *at; // [n] bytes behind `in`, where each window begins
    int64_t n;
    int64_t n_runs;
    const int64_t *runs; // [n_runs] bytes from a window's beginning to that of each run
    int64_t depth;       // bytes of a run
    const void *weights; // packed
    int64_t channels;
    void *scratch; // scratch_bytes, aligned to 64 bytes
};

// What becomes of the sums of windows: y as `finish` says, where sums of floats are not scaled,
// then the instructions of a chain that saves nothing, whose arrays lie as the result does, then floats
// and bytes in any quantised variants.
struct msc_simd_quantized {
    uint8_t *bytes;
    struct msc_simd_bytes q; // corrected
};
struct msc_simd_epilogue {
    struct msc_simd_finish finish; // arrays of [channels] up to a multiple of MSC_SIMD_CHANNELS;
                                   // without sums
    int32_t n_instrs;
    const struct msc_simd_instr *instrs; // behind the first one of a chain
    struct msc_simd_arrays arrays;
    float *out;          // may be NULL
    int32_t n_quantized; // up to MSC_SIMD_MAX_QUANTIZED
    const struct msc_simd_quantized *quantized;
    int64_t begin;    // element of arrays, `out` and bytes that the first window begins at
    bool has_numbers; // y is always a number of less than 2^31 times the scale of the only variant
};

struct msc_simd_product {
    const char *isa; // instruction set of the loops: "avx512_vnni", "amx_int8"
    size_t (*packed_bytes)(int64_t channels, int64_t n_runs, int64_t depth);
    // Weights are [channels][n_runs][depth].
    void (*pack)(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                 int64_t depth);
    size_t (*scratch_bytes)(int64_t n_runs, int64_t depth);
    // Rows of channels: the sums, or what becomes of them.
    void (*multiply)(void *sums, const struct msc_simd_indirect *w);
    void (*multiply_epilogue)(const struct msc_simd_indirect *w,
                              const struct msc_simd_epilogue *epilogue);
};

enum msc_simd_operands {
    MSC_SIMD_BYTES, // uint8 with int8
    MSC_SIMD_TILES, // the same, tile by tile
    MSC_SIMD_FLOATS,
};

// NULL where there is nothing that a library would not do better. Never changes.
const struct msc_simd_product *msc_simd_product(enum msc_simd_operands operands);

#endif
