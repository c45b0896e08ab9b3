// Products of windows (simd_indirect_tiles.h).
//
//     weights   [block][run][depth / 4][vector][channel][4 bytes], the depth padded with zeros
//     loops     outermost first: groups of windows whose bytes fit the first-level cache; blocks of
//               one to four vectors; tiles
#ifndef MSC_KERNELS_CPU_SIMD_INDIRECT_LOOPS_H
#define MSC_KERNELS_CPU_SIMD_INDIRECT_LOOPS_H

#include "kernels/cpu/simd_indirect_tiles.h"

// ---- Weights ----------------------------------------------------------------------------------

// Products of bytes for 64-bit Arm have other packed weights (simd_neon_products.h).
#if !(defined(__aarch64__) && defined(MSC_VECTOR_BYTES_ONLY))

static size_t packed_bytes(int64_t channels, int64_t n_runs, int64_t depth) {
    return (size_t)(round_up(channels, LANES) * n_runs * round_up(depth, GROUP));
}

static void pack(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                 int64_t depth) {
    int64_t n = count_vectors(channels), vectors;
    const char *from = weights;
    char *to = packed;
    for (int64_t v = 0; v < n; v += vectors) {
        vectors = block_vectors(v, n);
        for (int64_t run = 0; run < n_runs; run++) {
            for (int64_t k = 0; k < depth; k += GROUP) {
                int64_t n_bytes = depth - k < GROUP ? depth - k : GROUP;
                for (int64_t c = v * LANES; c < (v + vectors) * LANES; c++) {
                    memset(to, 0, GROUP);
                    if (c < channels) {
                        memcpy(to, from + (c * n_runs + run) * depth + k, (size_t)n_bytes);
                    }
                    to += GROUP;
                }
            }
        }
    }
}

// Interleaves the bytes of GROUP rows that are `row` bytes apart.
static void interleave(char *to, const char *from, int64_t row, int64_t n) {
    for (int64_t c = 0; c < n; c++) {
        uint32_t bytes[GROUP], group = 0;
        for (int i = 0; i < GROUP; i++) {
            bytes[i] = (uint8_t)from[i * row + c];
            group |= bytes[i] << 8 * i;
        }
        memcpy(to + c * GROUP, &group, GROUP);
    }
}

// Packs one run; the result is the same as that of pack. A group of floats is one
// row, so the channels of a row are copied together. A group of bytes takes four rows.
static void pack_rows(void *packed, const void *rows, int64_t channels, int64_t n_rows,
                      int64_t element) {
    int64_t n = count_vectors(channels), per_group = GROUP / element, vectors;
    char *to = packed;
    for (int64_t v = 0; v < n; v += vectors) {
        vectors = block_vectors(v, n);
        int64_t width = vectors * LANES, left = channels - v * LANES;
        int64_t filled = left < width ? left : width;
        for (int64_t row = 0; row < n_rows; row += per_group, to += width * GROUP) {
            const char *from = (const char *)rows + (row * channels + v * LANES) * element;
            if (element == GROUP) {
                memcpy(to, from, (size_t)(filled * GROUP));
                memset(to + filled * GROUP, 0, (size_t)((width - filled) * GROUP));
                continue;
            }
            if (n_rows - row >= GROUP) {
                interleave(to, from, channels, filled);
                memset(to + filled * GROUP, 0, (size_t)((width - filled) * GROUP));
                continue;
            }
            memset(to, 0, (size_t)(width * GROUP));
            for (int64_t i = 0; i < per_group && i < n_rows - row; i++, from += channels) {
                for (int64_t c = 0; c < filled; c++) {
                    to[c * GROUP + i] = from[c];
                }
            }
        }
    }
}

#endif

static size_t scratch_bytes(int64_t n_runs, int64_t depth) {
    (void)n_runs;
    (void)depth;
    return 0;
}

// ---- Entries ----------------------------------------------------------------------------------

typedef void (*block_function)(const struct block *b);

#define DEFINE_BLOCK(operands, kind, vectors)                                                      \
    VECTOR_TARGET static void operands##_##kind##_##vectors(const struct block *b) {               \
        run_block(operands, kind, vectors, b);                                                     \
    }
#if VECTOR_TILE == 1
#define DEFINE_BLOCKS(operands, kind)                                                              \
    DEFINE_BLOCK(operands, kind, 1)                                                                \
    static const block_function operands##_##kind[MOST_VECTORS] = {operands##_##kind##_1};
#else
#define DEFINE_BLOCKS(operands, kind)                                                              \
    DEFINE_BLOCK(operands, kind, 1)                                                                \
    DEFINE_BLOCK(operands, kind, 2)                                                                \
    DEFINE_BLOCK(operands, kind, 3)                                                                \
    DEFINE_BLOCK(operands, kind, 4)                                                                \
    static const block_function operands##_##kind[MOST_VECTORS] = {                                \
        operands##_##kind##_1, operands##_##kind##_2, operands##_##kind##_3,                       \
        operands##_##kind##_4};
#endif

DEFINE_BLOCKS(OF_BYTES, SUMS)
DEFINE_BLOCKS(OF_BYTES, FLOATS)
DEFINE_BLOCKS(OF_BYTES, BYTES)
DEFINE_BLOCKS(OF_BYTES, ANY)
#ifndef MSC_VECTOR_BYTES_ONLY
DEFINE_BLOCKS(OF_FLOATS, SUMS)
DEFINE_BLOCKS(OF_FLOATS, FLOATS)
DEFINE_BLOCKS(OF_FLOATS, BYTES)
DEFINE_BLOCKS(OF_FLOATS, ANY)
#endif

static const block_function *const blocks[][KIND_COUNT] = {
    [OF_BYTES] = {OF_BYTES_SUMS, OF_BYTES_FLOATS, OF_BYTES_BYTES, OF_BYTES_ANY},
#ifndef MSC_VECTOR_BYTES_ONLY
    [OF_FLOATS] = {OF_FLOATS_SUMS, OF_FLOATS_FLOATS, OF_FLOATS_BYTES, OF_FLOATS_ANY},
#endif
};

// The number of windows whose bytes fit w->at_once or the first-level cache, with the line of
// results that a block writes. The bytes are read again for each block of channels.
static int64_t windows_at_once(const struct msc_simd_indirect *w) {
    const int64_t most = w->at_once > 0 ? w->at_once : 24 * 1024;
    const int64_t line = w->channels < LINE ? w->channels : LINE;
    int64_t n = most / (w->depth + line);
    return n > 48 ? n / 24 * 24 : 48;
}

VECTOR_TARGET static void run_all(enum operands operands, struct block *b, void *sums) {
    const struct msc_simd_indirect *w = b->w;
    int64_t n = count_vectors(w->channels), at_once = windows_at_once(w);
    int64_t step = vector_bytes(operands, w->n_runs, w->depth);
    for (b->begin = 0; b->begin < w->n; b->begin = b->end) {
        b->end = b->begin + at_once < w->n ? b->begin + at_once : w->n;
        for (int64_t v = 0; v < n; v += b->vectors) {
            enter_block(b, v, sums);
            b->weights = (const char *)w->weights + v * step;
#ifdef MSC_VECTOR_LISTS
            if (operands == OF_BYTES) {
                enter_lists(b);
            }
#endif
            b->ahead = v == 0 && w->n > MOST_WINDOWS ? w->at[MOST_WINDOWS] - w->at[0] : 0;
            blocks[operands][b->kind][b->vectors - 1](b);
        }
    }
}

// Multiplies all windows and stores the sums (if `epilogue` is NULL) or the epilogue's results.
VECTOR_TARGET static void multiply(enum operands operands, void *sums,
                                   const struct msc_simd_indirect *w,
                                   const struct msc_simd_epilogue *epilogue) {
    struct bytes quantized[MSC_SIMD_MAX_QUANTIZED];
    struct block b = epilogue ? begin_epilogue(w, epilogue, quantized) : begin_sums(w);
    run_all(operands, &b, sums);
}

static void multiply_bytes(void *sums, const struct msc_simd_indirect *w) {
    multiply(OF_BYTES, sums, w, NULL);
}

static void multiply_bytes_epilogue(const struct msc_simd_indirect *w,
                                    const struct msc_simd_epilogue *epilogue) {
    multiply(OF_BYTES, NULL, w, epilogue);
}

#ifndef MSC_VECTOR_BYTES_ONLY
static void multiply_floats(void *sums, const struct msc_simd_indirect *w) {
    multiply(OF_FLOATS, sums, w, NULL);
}

static void multiply_floats_epilogue(const struct msc_simd_indirect *w,
                                     const struct msc_simd_epilogue *epilogue) {
    multiply(OF_FLOATS, NULL, w, epilogue);
}
#endif

#endif
