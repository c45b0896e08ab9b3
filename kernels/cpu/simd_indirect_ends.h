// Finishes the sums of windows. Only files that compute such sums include this file.
//
// Sums come as vectors of 16 channels, several vectors for each of several windows, as int32 or as
// float32 in the same registers. The epilogue runs in these registers too. The two most frequent
// epilogues have special loops. Any other epilogue runs instruction by instruction over all
// vectors.
#ifndef MSC_KERNELS_CPU_SIMD_INDIRECT_ENDS_H
#define MSC_KERNELS_CPU_SIMD_INDIRECT_ENDS_H

#include "kernels/cpu/simd_ops.h"

#include <string.h>

enum {
    VECTOR = 64, // bytes per vector
    LINE = 64,
    MOST_VECTORS = VECTOR_TILE,
    MOST_WINDOWS = 6,
    GROUP = MSC_SIMD_GROUP,
};

enum operands { OF_BYTES, OF_PAIRS, OF_FLOATS };

// How sums are finished: stored, scaled to y, quantised to bytes, or by any epilogue.
enum kind { SUMS, FLOATS, BYTES, ANY, KIND_COUNT };

// A block of up to MOST_VECTORS vectors of channels. Arrays and results begin at its first channel.
struct block {
    const struct msc_simd_indirect *w;
    enum kind kind;
    int64_t vectors;
    const char *weights;
    const int32_t *places; // for lists (simd_avx2_lists.h)
    const int32_t *offsets;
    const float *scales, *bias;
    vfloat low, high; // limits of y
    struct bytes q;   // for BYTES; includes the limits of y
    const struct msc_simd_epilogue *epilogue;
    const struct bytes *quantized; // for ANY
    int64_t first;                 // for ANY: index of the first element
    int64_t n_lanes;               // channels of the block
    char *out;
    int64_t out_step;   // bytes from one window to the next
    int64_t begin, end; // windows to compute
    int64_t ahead;      // bytes from a tile's windows to the windows of the next tile
};

// ---- Blocks -----------------------------------------------------------------------------------

static inline int64_t count_vectors(int64_t channels) {
    return (channels + LANES - 1) / LANES;
}

// The number of vectors in the block that begins at vector `at` of n. There are as few blocks as
// possible, of similar size.
static inline int64_t block_vectors(int64_t at, int64_t n) {
    int64_t left = n - at;
    int64_t n_blocks = (left + MOST_VECTORS - 1) / MOST_VECTORS;
    return (left + n_blocks - 1) / n_blocks;
}

static inline int64_t element_bytes(enum kind kind) {
    return kind == BYTES ? 1 : (int64_t)sizeof(float);
}

// For a product whose sums are stored: sets the members that are the same in all blocks.
VECTOR_INLINE struct block begin_sums(const struct msc_simd_indirect *w) {
    struct block b;
    memset(&b, 0, sizeof(b));
    b.w = w;
    b.kind = SUMS;
    b.out_step = w->channels * element_bytes(SUMS);
    return b;
}

// Like begin_sums, but for a product with an epilogue. Loads the quantised variants of the epilogue
// into `quantized`.
VECTOR_INLINE struct block begin_epilogue(const struct msc_simd_indirect *w,
                                          const struct msc_simd_epilogue *epilogue,
                                          struct bytes quantized[MSC_SIMD_MAX_QUANTIZED]) {
    const struct msc_simd_finish *f = &epilogue->finish;
    struct block b = begin_sums(w);
    b.kind = ANY;
    b.low = vf_set(f->low);
    b.high = vf_set(f->high);
    b.epilogue = epilogue;
    b.quantized = quantized;
    bool is_short = epilogue->n_instrs == 0;
    if (is_short && epilogue->out && epilogue->n_quantized == 0) {
        b.kind = FLOATS;
    } else if (is_short && !epilogue->out && epilogue->n_quantized == 1 && epilogue->has_numbers) {
        struct msc_simd_bytes limited = msc_simd_limit(f, &epilogue->quantized[0].q);
        b.kind = BYTES;
        b.q = load_bytes(&limited);
    }
    for (int32_t i = 0; b.kind == ANY && i < epilogue->n_quantized; i++) {
        quantized[i] = load_bytes(&epilogue->quantized[i].q);
    }
    b.out_step = w->channels * element_bytes(b.kind);
    return b;
}

// Changes *b to the block that begins at vector v. `sums` is the array in which sums are stored.
VECTOR_INLINE void enter_block(struct block *b, int64_t v, void *sums) {
    int64_t channel = v * LANES, left = b->w->channels - channel;
    const struct msc_simd_epilogue *epilogue = b->epilogue;
    b->vectors = block_vectors(v, count_vectors(b->w->channels));
    b->n_lanes = left < b->vectors * LANES ? left : b->vectors * LANES;
    if (b->kind == SUMS) {
        b->out = (char *)sums + channel * element_bytes(SUMS);
        return;
    }
    b->first = epilogue->begin + channel;
    b->out = b->kind == FLOATS  ? (char *)(epilogue->out + b->first)
             : b->kind == BYTES ? (char *)(epilogue->quantized[0].bytes + b->first)
                                : NULL;
    b->offsets = epilogue->finish.offsets ? epilogue->finish.offsets + channel : NULL;
    b->scales = epilogue->finish.scales ? epilogue->finish.scales + channel : NULL;
    b->bias = epilogue->finish.bias + channel;
}

// ---- Ends -------------------------------------------------------------------------------------

// Converts the sums of n windows, in one vector of channels, to y.
VECTOR_INLINE void scale_column(enum operands operands, vint s[], int n, int vectors,
                                const struct block *b, int c) {
    vfloat bias = vf_load(b->bias + c * LANES);
    if (operands == OF_FLOATS) {
        UNROLL for (int i = c; i < n * vectors; i += vectors) {
            s[i] = vi_of_bits(vf_add(vf_of_bits(s[i]), bias));
        }
        return;
    }
    vfloat scale = vf_load(b->scales + c * LANES);
    UNROLL for (int i = c; i < n * vectors; i += vectors) {
        vfloat y = vf_multiply(scale, vf_of_ints(s[i]));
        s[i] = vi_of_bits(vf_add(y, bias));
    }
}

VECTOR_INLINE void store_sums(char *out, const vint s[], int n, int vectors,
                              const struct block *b) {
    int64_t n_lanes = b->n_lanes, step = b->out_step;
    UNROLL for (int p = 0; p < n; p++) {
        UNROLL for (int c = 0; c < vectors; c++) {
            vi_store_part(out + p * step + c * VECTOR, vmask_of(n_lanes - c * LANES),
                          s[p * vectors + c]);
        }
    }
}

VECTOR_INLINE void store_floats(char *out, vint s[], int n, int vectors, const struct block *b) {
    vfloat low = b->low, high = b->high;
    UNROLL for (int i = 0; i < n * vectors; i++) {
        s[i] = vi_of_bits(clip(vf_of_bits(s[i]), low, high));
    }
    store_sums(out, s, n, vectors, b);
}

// Stores the bytes of every y. Requires every y / scale to fit int32.
VECTOR_INLINE void store_bytes(char *out, vint s[], int n, int vectors, const struct block *b) {
    const struct bytes q = b->q;
    int64_t n_lanes = b->n_lanes, step = b->out_step;
    UNROLL for (int i = 0; i < n * vectors; i++) {
        s[i] = vi_of_floats(divided(vf_of_bits(s[i]), &q));
    }
    UNROLL for (int p = 0; p < n; p++) {
        vi_store_bytes((uint8_t *)out + p * step, s + p * vectors, vectors, n_lanes, &q.limits);
    }
}

// Stores the bytes of every quantised variant.
VECTOR_INLINE void store_forms(const vfloat y[], int n, int vectors, const struct block *b,
                               const struct tile *t) {
    const struct msc_simd_epilogue *epilogue = b->epilogue;
    for (int32_t f = 0; f < epilogue->n_quantized; f++) {
        const struct bytes *q = &b->quantized[f];
        uint8_t *bytes = epilogue->quantized[f].bytes;
        UNROLL for (int p = 0; p < n; p++) {
            store_bytes_of(bytes + tile_at(t, p * vectors), y + p * vectors, vectors, b->n_lanes,
                           q);
        }
    }
}

VECTOR_INLINE struct tile tile_of(int vectors, const struct block *b, int64_t at) {
    return (struct tile){.per_row = vectors,
                         .begin = b->first + at * b->w->channels,
                         .step = b->w->channels,
                         .mask = vmask_of(b->n_lanes - (vectors - 1) * LANES)};
}

// Prefetches the memory that the epilogue will read and write. Called before sums are added up.
VECTOR_INLINE void announce_epilogue(int n, int vectors, const struct block *b, int64_t at) {
    const struct msc_simd_epilogue *epilogue = b->epilogue;
    const struct tile t = tile_of(vectors, b, at);
    for (int32_t l = 0; l < epilogue->n_instrs; l++) {
        if (msc_simd_reads_array(epilogue->instrs[l].op)) {
            const struct msc_simd_instr *instr = &epilogue->instrs[l];
            const char *array = (const char *)epilogue->arrays.at[instr->operands[0]];
            int64_t bytes = msc_simd_quant_of(&epilogue->arrays, instr) ? 1 : sizeof(float);
            UNROLL for (int i = 0; i < n * vectors; i++) {
                __builtin_prefetch(array + tile_at(&t, i) * bytes);
            }
        }
    }
    if (epilogue->out) {
        UNROLL for (int i = 0; i < n * vectors; i++) {
            __builtin_prefetch(epilogue->out + tile_at(&t, i), 1);
        }
    }
    for (int32_t f = 0; f < epilogue->n_quantized; f++) {
        UNROLL for (int p = 0; p < n; p++) {
            __builtin_prefetch(epilogue->quantized[f].bytes + tile_at(&t, p * vectors), 1);
        }
    }
}

VECTOR_INLINE void run_instrs(vint s[], int n, int vectors, const struct block *b, int64_t at) {
    const struct msc_simd_epilogue *epilogue = b->epilogue;
    const struct tile t = tile_of(vectors, b, at);
    vfloat y[MOST_WINDOWS * MOST_VECTORS], low = b->low, high = b->high;
    UNROLL for (int i = 0; i < n * vectors; i++) {
        y[i] = clip(vf_of_bits(s[i]), low, high);
    }
    for (int32_t l = 0; l < epilogue->n_instrs; l++) {
        run_instr(y, NULL, n * vectors, &epilogue->instrs[l], &epilogue->arrays, &t);
    }
    if (epilogue->out) {
        UNROLL for (int i = 0; i < n * vectors; i++) {
            vf_store_part(epilogue->out + tile_at(&t, i), tile_mask(&t, i), y[i]);
        }
    }
    store_forms(y, n, vectors, b, &t);
}

// Finishes the sums of n windows from `at` on.
VECTOR_INLINE void finish_windows(enum operands operands, enum kind kind, vint s[], int n,
                                  int vectors, const struct block *b, int64_t at) {
    char *out = b->out + at * b->out_step;
    UNROLL for (int c = 0; kind != SUMS && c < vectors; c++) {
        scale_column(operands, s, n, vectors, b, c);
    }
    switch (kind) {
    case SUMS:
        store_sums(out, s, n, vectors, b);
        break;
    case FLOATS:
        store_floats(out, s, n, vectors, b);
        break;
    case BYTES:
        store_bytes(out, s, n, vectors, b);
        break;
    default:
        run_instrs(s, n, vectors, b, at);
        break;
    }
}

#endif
