// Products of windows with weights, for convolutions and linear layers, with an epilogue that is
// applied before the sums are stored.
//
// A window is one or more runs of input bytes, at the same offsets in all windows. Runs are read in
// groups of four bytes. Each group is multiplied with a group of weights of every channel: four
// uint8 with four int8, added as int32, or one float32 with another. There is one product for
// floats and one for bytes. If the machine multiplies whole tiles, there is a second product for
// bytes, which gives the same bits.
//
//     const struct msc_simd_product *product = msc_simd_best()->bytes;
//     product->pack(packed, weights, channels, n_runs, depth);
//     product->multiply_epilogue(&windows, &epilogue);
#ifndef MSC_KERNELS_CPU_SIMD_INDIRECT_H
#define MSC_KERNELS_CPU_SIMD_INDIRECT_H

#include "kernels/cpu/simd.h"

enum {
    MSC_SIMD_CHANNELS = 16, // channels per vector
    MSC_SIMD_GROUP = 4,     // bytes per group; the last group of a run may read bytes after the
                            // run, which do not affect the result
    MSC_SIMD_MAX_QUANTIZED = 8,
};

struct msc_simd_indirect {
    const void *in;
    const int64_t *at; // [n] offset in bytes of each window from `in`
    int64_t n;
    int64_t n_runs;
    const int64_t *runs; // [n_runs] offset in bytes of each run from the start of its window
    int64_t depth;       // bytes per run
    const void *weights; // packed
    int64_t channels;
    int64_t at_once; // bytes of windows to multiply with all channels before the next windows; 0:
                     // as many as fit a first-level cache. Changes no result
    void *scratch;   // of msc_simd_product.scratch_bytes, aligned to 64 bytes
};

// The epilogue of windows. First `finish` converts sums to y (sums of floats are not scaled). Then
// the instructions of a chain are applied. The chain must not save results, and its arrays have the
// order of the result. The result is stored as floats (unless `out` is NULL) and as bytes of each
// quantised variant.
struct msc_simd_quantized {
    uint8_t *bytes;
    struct msc_simd_bytes q; // must have is_corrected
};
struct msc_simd_epilogue {
    struct msc_simd_finish finish; // arrays of [channels], padded to a multiple of
                                   // MSC_SIMD_CHANNELS; `sums` is not used
    int32_t n_instrs;
    const struct msc_simd_instr *instrs; // of a chain, without its first instruction
    struct msc_simd_arrays arrays;
    float *out;          // may be NULL
    int32_t n_quantized; // up to MSC_SIMD_MAX_QUANTIZED
    const struct msc_simd_quantized *quantized;
    int64_t begin;    // index of the first window's first element in the arrays of `arrays`, in
                      // `out` and in the quantised bytes
    bool has_numbers; // no y is NaN, and each is below 2^31 times the only variant's scale
};

struct msc_simd_product {
    const char *isa;      // instruction set of the loops: "avx2", "avx512_vnni", "amx_int8"
    int64_t weight_bytes; // bytes of a packed weight
    size_t (*packed_bytes)(int64_t channels, int64_t n_runs, int64_t depth);
    // Weights are [channels][n_runs][depth].
    void (*pack)(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                 int64_t depth);
    // Optional: packs the weights of one run from [n_rows][channels], with elements of 1 byte or 4.
    void (*pack_rows)(void *packed, const void *rows, int64_t channels, int64_t n_rows,
                      int64_t element);
    size_t (*scratch_bytes)(int64_t n_runs, int64_t depth);
    // Compute and store one row of channels per window: the sums, or the results of the epilogue.
    void (*multiply)(void *sums, const struct msc_simd_indirect *w);
    void (*multiply_epilogue)(const struct msc_simd_indirect *w,
                              const struct msc_simd_epilogue *epilogue);
};

// Convolutions of 3 x 3 windows with stride 1 by Winograd's algorithm F(4 x 4, 3 x 3), for bytes.
// Each block of 4 x 4 outputs takes 36 products of int16 for each pair of channels in place of 144
// products of bytes. The sums are the same as those of a direct convolution, bit for bit, if each
// of them is below 2^25 (simd_winograd_loops.h).
struct msc_simd_image_windows {
    const uint8_t *in;    // [images][in_height][in_width][in_channels]
    uint8_t flip;         // XORed with each byte: 0x80 converts uint8 to int8 (subtracts 128)
    const uint8_t *blank; // [in_channels] bytes to read outside of the images
    int64_t images, in_height, in_width, in_channels;
    int64_t pad_top, pad_left;
    int64_t out_height, out_width, channels;
    const void *weights; // packed
    void *scratch;       // of scratch_bytes, aligned to 64 bytes
};

struct msc_simd_winograd {
    size_t (*packed_bytes)(int64_t channels, int64_t in_channels);
    // Weights are [channels][in_channels][3][3].
    void (*pack)(void *packed, const int8_t weights[], int64_t channels, int64_t in_channels);
    size_t (*scratch_bytes)(int64_t in_channels);
    // As in msc_simd_product. The bytes count as int8.
    void (*multiply)(int32_t sums[], const struct msc_simd_image_windows *w);
    void (*multiply_epilogue)(const struct msc_simd_image_windows *w,
                              const struct msc_simd_epilogue *epilogue);
    // Products of bytes that a direct convolution computes in the time of one product of int16.
    int64_t bytes_per_pair;
};

// Requests tile registers from the system and tests them. False: the machine has no tiles, the
// system refuses the request, or the sums of tiles are wrong.
bool msc_simd_get_tiles(void);

#endif
