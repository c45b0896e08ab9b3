// Tiles of registers, which multiply windows with weights.
//
// One instruction multiplies a group of a window with the weights of 16 channels and adds the
// products. A group is four bytes, which are multiplied with four weights of each channel, or two
// int16 with two weights, or one float. A tile is several windows times several vectors of
// channels. Its sums are kept in registers over the whole depth, so that each load of weights
// serves all windows of the tile and each load of a group serves all its channels.
//
//     run_block(OF_BYTES, BYTES, vectors, &block);
//
// While the first block is computed, the windows of the next tile are prefetched. Tiles prefetch
// the memory that epilogues read and write. The addresses are too far apart for the processor to
// predict them.
//
// If windows do not fill the last tile, this tile begins earlier and computes some windows again.
#ifndef MSC_KERNELS_CPU_SIMD_INDIRECT_TILES_H
#define MSC_KERNELS_CPU_SIMD_INDIRECT_TILES_H

#include "kernels/cpu/simd_indirect_ends.h"

#ifdef MSC_VECTOR_LISTS // products of bytes for AVX2
#include "kernels/cpu/simd_avx2_lists.h"
#endif

static inline int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

#ifdef __aarch64__
#include "kernels/cpu/simd_neon_windows.h"
#else

// The bytes of a vector of channels in packed weights.
static inline int64_t vector_bytes(enum operands operands, int64_t n_runs, int64_t depth) {
#ifdef MSC_VECTOR_LISTS
    if (operands == OF_BYTES) {
        return lists_bytes(n_runs, depth);
    }
#endif
    (void)operands;
    return n_runs * round_up(depth, GROUP) / GROUP * VECTOR;
}

// What sums begin with.
VECTOR_INLINE vint first_sums(enum operands operands, const struct block *b) {
    (void)operands;
    (void)b;
    return vi_set(0);
}

VECTOR_INLINE vint add_group(enum operands operands, vint sum, int32_t group, vint y) {
    vint x = vi_set(group);
    if (operands == OF_BYTES) {
        return vi_add_products(sum, x, y);
    }
    if (operands == OF_PAIRS) {
        return vi_add_pairs(sum, x, y);
    }
    return vi_of_bits(vf_multiply_add(vf_of_bits(x), vf_of_bits(y), vf_of_bits(sum)));
}

// Adds the products of the bytes [begin, end) of a run. Returns the address of the weights that
// follow. For pairs, also prefetches weights `ahead` bytes further on into the second-level cache:
// Winograd's algorithm reads weights that exceed it, a short product each.
VECTOR_INLINE const char *add_groups(enum operands operands, vint s[], int n, int vectors,
                                     const char *const x[], const char *weights, int64_t begin,
                                     int64_t end, int64_t ahead) {
    for (int64_t k = begin; k < end; k += GROUP) {
        vint y[MOST_VECTORS];
        UNROLL for (int c = 0; c < vectors; c++) {
            y[c] = vi_load(weights + c * VECTOR);
        }
        UNROLL for (int c = 0; operands == OF_PAIRS && c < vectors; c++) {
            __builtin_prefetch(weights + c * VECTOR + ahead, 0, 2);
        }
        weights += vectors * VECTOR;
        UNROLL for (int p = 0; p < n; p++) {
            int32_t group;
            memcpy(&group, x[p] + k, sizeof(group));
            UNROLL for (int c = 0; c < vectors; c++) {
                s[p * vectors + c] = add_group(operands, s[p * vectors + c], group, y[c]);
            }
        }
    }
    return weights;
}

// Adds the products of n windows. For floats, also prefetches the next tile's windows line by line.
VECTOR_INLINE void add_windows(enum operands operands, vint s[], int n, int vectors,
                               const struct block *b, int64_t at) {
#ifdef MSC_VECTOR_LISTS
    if (operands == OF_BYTES) {
        add_lists(s, n, b, at);
        return;
    }
#endif
    const struct msc_simd_indirect *w = b->w;
    const char *weights = b->weights;
    int64_t depth = w->depth, step = operands == OF_FLOATS ? LINE : depth;
    int64_t ahead = depth / GROUP * vectors * VECTOR; // the weights of the next product
    for (int64_t run = 0; run < w->n_runs; run++) {
        const char *in = (const char *)w->in + w->runs[run], *x[MOST_WINDOWS];
        UNROLL for (int p = 0; p < n; p++) {
            x[p] = in + w->at[at + p];
        }
        for (int64_t k = 0; k < depth; k += step) {
            int64_t end = k + step < depth ? k + step : depth;
            UNROLL for (int p = 0; operands == OF_FLOATS && p < n; p++) {
                __builtin_prefetch(x[p] + k + b->ahead);
            }
            weights = add_groups(operands, s, n, vectors, x, weights, k, end, ahead);
        }
    }
}

#endif

// Multiplies n windows from `at` on with all vectors of a block.
VECTOR_INLINE void run_tile(enum operands operands, enum kind kind, int n, int vectors,
                            const struct block *b, int64_t at) {
    vint s[MOST_WINDOWS * MOST_VECTORS];
    if (kind == FLOATS || kind == ANY) {
        announce_epilogue(n, vectors, b, at);
    }
    UNROLL for (int c = 0; c < vectors; c++) {
        s[c] = first_sums(operands, b);
        if (operands == OF_BYTES && kind != SUMS) {
            s[c] = vi_subtract(s[c], vi_load(b->offsets + c * LANES));
        }
    }
    UNROLL for (int i = vectors; i < n * vectors; i++) {
        s[i] = s[i - vectors];
    }
    add_windows(operands, s, n, vectors, b, at);
    // Makes the compiler load the epilogue's operands only here. If it loaded them earlier, they
    // would take registers from the sums.
    UNROLL for (int i = 0; i < n * vectors; i++) {
        vi_keep(&s[i]);
    }
    __asm__("" : "+r"(b), "+r"(at));
#ifdef __aarch64__
    if (kind == BYTES) {
        quantize_windows(operands, s, n, b, at);
        return;
    }
#endif
    finish_windows(operands, kind, s, n, vectors, b, at);
}

VECTOR_INLINE void run_block(enum operands operands, enum kind kind, int vectors,
                             const struct block *given) {
    const struct block own = *given, *b = &own;
    const int tile = MOST_WINDOWS;
    int64_t at = b->begin;
    for (; at + tile <= b->end; at += tile) {
        run_tile(operands, kind, tile, vectors, b, at);
    }
    if (at < b->end && b->end >= tile) {
        run_tile(operands, kind, tile, vectors, b, b->end - tile);
        return;
    }
    for (; at < b->end; at++) {
        run_tile(operands, kind, 1, vectors, b, at);
    }
}

#endif
