// Products of windows in tiles of registers.
//
// One instruction multiplies a group of a window with the weights of 16 channels and adds the
// products. A group is four bytes, which are multiplied with four weights of each channel, or one
// float. A tile is several windows times several vectors of channels. Its sums are kept in
// registers over the whole depth, so that each load of weights serves all windows of the tile and
// each load of a group serves all its channels.
//
//     weights   [block][run][depth / 4][vector][channel][4 bytes], the depth padded with zeros
//     loops     outermost first: groups of windows whose bytes fit the first-level cache; blocks of
//               one to four vectors; tiles
//
// While the first block is computed, the windows of the next tile are prefetched. Tiles prefetch
// the memory that epilogues read and write. The addresses are too far apart for the processor to
// predict them.
//
// If windows do not fill the last tile, this tile begins earlier and computes some windows again.
#include "kernels/cpu/simd_avx512_indirect.h"

// ---- Weights ----------------------------------------------------------------------------------

static int64_t avx512_indirect_round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

static size_t avx512_indirect_packed_bytes(int64_t channels, int64_t n_runs, int64_t depth) {
    return (size_t)(avx512_indirect_round_up(channels, LANES) * n_runs *
                    avx512_indirect_round_up(depth, GROUP));
}

static void avx512_indirect_pack(void *packed, const void *weights, int64_t channels,
                                 int64_t n_runs, int64_t depth) {
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

// Packs one run; the result is the same as that of avx512_indirect_pack. A group of floats is one
// row, so the channels of a row are copied together. A group of bytes takes four rows.
static void avx512_indirect_pack_rows(void *packed, const void *rows, int64_t channels,
                                      int64_t n_rows, int64_t element) {
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
            memset(to, 0, (size_t)(width * GROUP));
            for (int64_t i = 0; i < per_group && i < n_rows - row; i++, from += channels) {
                for (int64_t c = 0; c < filled; c++) {
                    to[c * GROUP + i] = from[c];
                }
            }
        }
    }
}

static size_t avx512_indirect_scratch_bytes(int64_t n_runs, int64_t depth) {
    (void)n_runs;
    (void)depth;
    return 0;
}

// ---- Tiles ------------------------------------------------------------------------------------

AVX512 INLINE __m512i avx512_indirect_add_group(enum operands operands, __m512i sum, int32_t group,
                                                __m512i y) {
    __m512i x = _mm512_set1_epi32(group);
    if (operands == OF_BYTES) {
        return _mm512_dpbusd_epi32(sum, x, y);
    }
    return _mm512_castps_si512(
        _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), _mm512_castsi512_ps(sum)));
}

// Adds the products of the bytes [begin, end) of a run. Returns the address of the weights that
// follow.
AVX512 INLINE const char *add_groups(enum operands operands, __m512i s[], int n, int vectors,
                                     const char *const x[], const char *weights, int64_t begin,
                                     int64_t end) {
    for (int64_t k = begin; k < end; k += GROUP) {
        __m512i y[MOST_VECTORS];
        UNROLL for (int c = 0; c < vectors; c++) {
            y[c] = _mm512_loadu_si512(weights + c * VECTOR);
        }
        weights += vectors * VECTOR;
        UNROLL for (int p = 0; p < n; p++) {
            int32_t group;
            memcpy(&group, x[p] + k, sizeof(group));
            UNROLL for (int c = 0; c < vectors; c++) {
                s[p * vectors + c] =
                    avx512_indirect_add_group(operands, s[p * vectors + c], group, y[c]);
            }
        }
    }
    return weights;
}

// Adds the products of n windows. For floats, also prefetches the next tile's windows line by line.
AVX512 INLINE void add_windows(enum operands operands, __m512i s[], int n, int vectors,
                               const struct block *b, int64_t at) {
    const struct msc_simd_indirect *w = b->w;
    const char *weights = b->weights;
    int64_t depth = w->depth, step = operands == OF_FLOATS ? LINE : depth;
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
            weights = add_groups(operands, s, n, vectors, x, weights, k, end);
        }
    }
}

// Multiplies n windows from `at` on with all vectors of a block.
AVX512 INLINE void avx512_indirect_run_tile(enum operands operands, enum kind kind, int n,
                                            int vectors, const struct block *b, int64_t at) {
    __m512i s[MOST_WINDOWS * MOST_VECTORS];
    if (kind == FLOATS || kind == ANY) {
        announce_epilogue(n, vectors, b, at);
    }
    UNROLL for (int c = 0; c < vectors; c++) {
        s[c] = _mm512_setzero_si512();
        if (operands == OF_BYTES && kind != SUMS) {
            s[c] = _mm512_sub_epi32(s[c], _mm512_loadu_si512(b->offsets + c * LANES));
        }
    }
    UNROLL for (int i = vectors; i < n * vectors; i++) {
        s[i] = s[i - vectors];
    }
    add_windows(operands, s, n, vectors, b, at);
    // Makes the compiler load the epilogue's operands only here. If it loaded them earlier, they
    // would take registers from the sums.
    UNROLL for (int i = 0; i < n * vectors; i++) {
        __asm__("" : "+v"(s[i]));
    }
    __asm__("" : "+r"(b), "+r"(at));
    finish_windows(operands, kind, s, n, vectors, b, at);
}

AVX512 INLINE void avx512_indirect_run_block(enum operands operands, enum kind kind, int vectors,
                                             const struct block *given) {
    const struct block own = *given, *b = &own;
    const int tile = MOST_WINDOWS;
    int64_t at = b->begin;
    for (; at + tile <= b->end; at += tile) {
        avx512_indirect_run_tile(operands, kind, tile, vectors, b, at);
    }
    if (at < b->end && b->end >= tile) {
        avx512_indirect_run_tile(operands, kind, tile, vectors, b, b->end - tile);
        return;
    }
    for (; at < b->end; at++) {
        avx512_indirect_run_tile(operands, kind, 1, vectors, b, at);
    }
}

// ---- Entries ----------------------------------------------------------------------------------

typedef void (*block_function)(const struct block *b);

#define DEFINE_BLOCK(operands, kind, vectors)                                                      \
    AVX512 static void operands##_##kind##_##vectors(const struct block *b) {                      \
        avx512_indirect_run_block(operands, kind, vectors, b);                                     \
    }
#define DEFINE_BLOCKS(operands, kind)                                                              \
    DEFINE_BLOCK(operands, kind, 1)                                                                \
    DEFINE_BLOCK(operands, kind, 2)                                                                \
    DEFINE_BLOCK(operands, kind, 3)                                                                \
    DEFINE_BLOCK(operands, kind, 4)                                                                \
    static const block_function operands##_##kind[MOST_VECTORS] = {                                \
        operands##_##kind##_1, operands##_##kind##_2, operands##_##kind##_3,                       \
        operands##_##kind##_4};

DEFINE_BLOCKS(OF_BYTES, SUMS)
DEFINE_BLOCKS(OF_BYTES, FLOATS)
DEFINE_BLOCKS(OF_BYTES, BYTES)
DEFINE_BLOCKS(OF_BYTES, ANY)
DEFINE_BLOCKS(OF_FLOATS, SUMS)
DEFINE_BLOCKS(OF_FLOATS, FLOATS)
DEFINE_BLOCKS(OF_FLOATS, BYTES)
DEFINE_BLOCKS(OF_FLOATS, ANY)

static const block_function *const blocks[][KIND_COUNT] = {
    [OF_BYTES] = {OF_BYTES_SUMS, OF_BYTES_FLOATS, OF_BYTES_BYTES, OF_BYTES_ANY},
    [OF_FLOATS] = {OF_FLOATS_SUMS, OF_FLOATS_FLOATS, OF_FLOATS_BYTES, OF_FLOATS_ANY},
};

// The number of windows whose bytes and results fit the first-level cache. The bytes are read again
// for each block of channels.
static int64_t windows_at_once(const struct msc_simd_indirect *w) {
    const int64_t most = 24 * 1024;
    int64_t n = most / (w->depth + w->channels);
    return n > 48 ? n / 24 * 24 : 48;
}

AVX512 static void avx512_indirect_run_all(enum operands operands, struct block *b, void *sums) {
    const struct msc_simd_indirect *w = b->w;
    int64_t n = count_vectors(w->channels), at_once = windows_at_once(w);
    int64_t vector_bytes = w->n_runs * avx512_indirect_round_up(w->depth, GROUP) / GROUP * VECTOR;
    for (b->begin = 0; b->begin < w->n; b->begin = b->end) {
        b->end = b->begin + at_once < w->n ? b->begin + at_once : w->n;
        for (int64_t v = 0; v < n; v += b->vectors) {
            enter_block(b, v, sums);
            b->weights = (const char *)w->weights + v * vector_bytes;
            b->ahead = v == 0 && w->n > MOST_WINDOWS ? w->at[MOST_WINDOWS] - w->at[0] : 0;
            blocks[operands][b->kind][b->vectors - 1](b);
        }
    }
}

AVX512 static void multiply_bytes(void *sums, const struct msc_simd_indirect *w) {
    struct block b = begin_sums(w);
    avx512_indirect_run_all(OF_BYTES, &b, sums);
}

AVX512 static void multiply_bytes_epilogue(const struct msc_simd_indirect *w,
                                           const struct msc_simd_epilogue *epilogue) {
    struct bytes quantized[MSC_SIMD_MAX_QUANTIZED];
    struct block b = begin_epilogue(w, epilogue, quantized);
    avx512_indirect_run_all(OF_BYTES, &b, NULL);
}

AVX512 static void multiply_floats(void *sums, const struct msc_simd_indirect *w) {
    struct block b = begin_sums(w);
    avx512_indirect_run_all(OF_FLOATS, &b, sums);
}

AVX512 static void multiply_floats_epilogue(const struct msc_simd_indirect *w,
                                            const struct msc_simd_epilogue *epilogue) {
    struct bytes quantized[MSC_SIMD_MAX_QUANTIZED];
    struct block b = begin_epilogue(w, epilogue, quantized);
    avx512_indirect_run_all(OF_FLOATS, &b, NULL);
}

const struct msc_simd_product msc_simd__bytes = {.isa = "avx512_vnni",
                                                 .packed_bytes = avx512_indirect_packed_bytes,
                                                 .pack = avx512_indirect_pack,
                                                 .pack_rows = avx512_indirect_pack_rows,
                                                 .scratch_bytes = avx512_indirect_scratch_bytes,
                                                 .multiply = multiply_bytes,
                                                 .multiply_epilogue = multiply_bytes_epilogue};
const struct msc_simd_product msc_simd__floats = {.isa = "avx512_vnni",
                                                  .packed_bytes = avx512_indirect_packed_bytes,
                                                  .pack = avx512_indirect_pack,
                                                  .pack_rows = avx512_indirect_pack_rows,
                                                  .scratch_bytes = avx512_indirect_scratch_bytes,
                                                  .multiply = multiply_floats,
                                                  .multiply_epilogue = multiply_floats_epilogue};
