// Products of bytes with weights in tiles of registers.
//
// One instruction multiplies four bytes of a window with four weights of each of 16 channels and
// adds them up. A tile is some windows times some vectors of channels: that many sums stay in
// registers over the whole depth, so that every load of weights serves all windows of the tile and
// every load of bytes all its channels. What follows the sums happens in registers, too: for the
// two most frequent ends by loops of their own, for any other link by link over the whole tile.
//
//     weights   [block][run][depth / 4][vector][channel][4], the depth filled up with zeros
//     loops     some windows, whose bytes stay in the first-level cache > blocks of one to four
//               vectors > tiles
//
// Where windows do not fill a tile, the last one reaches back and does some again.
#include "kernels/cpu/simd_avx512.h"

#include <string.h>

enum { LANES = MSC_SIMD_CHANNELS, VECTOR = 64, MOST_VECTORS = 4, TILE = 6, GROUP = MSC_SIMD_GROUP };

// What becomes of the sums: they are stored, or y or its bytes alone, or any end is.
enum kind { SUMS, FLOATS, BYTES, ANY, KIND_COUNT };

// A block of channels over some windows. Arrays and results begin at the block's first channel.
struct block {
    const struct msc_simd_windows *w;
    const int8_t *weights;
    const int32_t *offsets;
    const float *scales, *bias;
    __m512 low, high; // of y
    struct bytes q;   // of bytes, limited as y is
    const struct msc_simd_end *after;
    const struct bytes *forms; // of any end
    int64_t first;             // element of any end
    __mmask64 lanes;           // that are channels
    char *out;
    int64_t out_step;   // bytes from window to window
    int64_t begin, end; // windows
};

// ---- Blocks of channels -----------------------------------------------------------------------

// Vectors of the block that begins at vector `at`, of n: as few blocks as possible, none much
// smaller than others.
static int64_t block_vectors(int64_t at, int64_t n) {
    int64_t left = n - at;
    int64_t n_blocks = (left + MOST_VECTORS - 1) / MOST_VECTORS;
    return (left + n_blocks - 1) / n_blocks;
}

static int64_t count_vectors(int64_t channels) {
    return (channels + LANES - 1) / LANES;
}

void msc_simd__pack_windows(void *packed, const int8_t weights[], int64_t channels, int64_t n_runs,
                            int64_t depth) {
    int64_t n = count_vectors(channels), vectors;
    int8_t *to = packed;
    for (int64_t v = 0; v < n; v += vectors) {
        vectors = block_vectors(v, n);
        for (int64_t run = 0; run < n_runs; run++) {
            for (int64_t k = 0; k < depth; k += GROUP) {
                int64_t n_bytes = depth - k < GROUP ? depth - k : GROUP;
                for (int64_t c = v * LANES; c < (v + vectors) * LANES; c++) {
                    memset(to, 0, GROUP);
                    if (c < channels) {
                        memcpy(to, weights + (c * n_runs + run) * depth + k, (size_t)n_bytes);
                    }
                    to += GROUP;
                }
            }
        }
    }
}

// ---- Tiles ------------------------------------------------------------------------------------

AVX512 INLINE void add_windows(__m512i s[], int n, int vectors, const struct block *b, int64_t at) {
    const struct msc_simd_windows *w = b->w;
    const int8_t *weights = b->weights;
    const uint8_t *x[TILE];
    int64_t depth = w->depth;
    UNROLL for (int p = 0; p < n; p++) {
        x[p] = w->in + w->at[at + p];
    }
    for (int64_t run = 0; run < w->n_runs; run++) {
        for (int64_t k = 0; k < depth; k += GROUP) {
            __m512i y[MOST_VECTORS];
            UNROLL for (int c = 0; c < vectors; c++) {
                y[c] = _mm512_loadu_si512(weights + c * VECTOR);
            }
            weights += vectors * VECTOR;
            UNROLL for (int p = 0; p < n; p++) {
                int32_t group;
                memcpy(&group, x[p] + k, sizeof(group));
                __m512i bytes = _mm512_set1_epi32(group);
                UNROLL for (int c = 0; c < vectors; c++) {
                    s[p * vectors + c] = _mm512_dpbusd_epi32(s[p * vectors + c], bytes, y[c]);
                }
            }
        }
        UNROLL for (int p = 0; p < n; p++) {
            x[p] += w->run_step;
        }
    }
}

// y of the sums of n windows and a vector of channels.
AVX512 INLINE void scale_column(__m512i s[], int n, int vectors, const struct block *b, int c) {
    __m512 scale = _mm512_loadu_ps(b->scales + c * LANES);
    __m512 bias = _mm512_loadu_ps(b->bias + c * LANES);
    UNROLL for (int i = c; i < n * vectors; i += vectors) {
        __m512 y = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(s[i]));
        s[i] = _mm512_castps_si512(_mm512_add_ps(y, bias));
    }
}

AVX512 INLINE void store_sums(char *out, const __m512i s[], int n, int vectors,
                              const struct block *b) {
    __mmask64 lanes = b->lanes;
    int64_t step = b->out_step;
    UNROLL for (int p = 0; p < n; p++) {
        UNROLL for (int c = 0; c < vectors; c++) {
            _mm512_mask_storeu_epi32(out + p * step + c * VECTOR, (__mmask16)(lanes >> c * LANES),
                                     s[p * vectors + c]);
        }
    }
}

AVX512 INLINE void store_floats(char *out, __m512i s[], int n, int vectors, const struct block *b) {
    __m512 low = b->low, high = b->high;
    UNROLL for (int c = 0; c < vectors; c++) {
        scale_column(s, n, vectors, b, c);
    }
    UNROLL for (int i = 0; i < n * vectors; i++) {
        __m512 y = _mm512_min_ps(high, _mm512_max_ps(low, _mm512_castsi512_ps(s[i])));
        s[i] = _mm512_castps_si512(y);
    }
    store_sums(out, s, n, vectors, b);
}

// No y is so large that its quotient were no int32.
AVX512 INLINE void store_bytes(char *out, __m512i s[], int n, int vectors, const struct block *b) {
    const __m512i none = _mm512_setzero_si512();
    __mmask64 lanes = b->lanes;
    int64_t step = b->out_step;
    UNROLL for (int c = 0; c < vectors; c++) {
        scale_column(s, n, vectors, b, c);
    }
    const struct bytes q = b->q;
    UNROLL for (int i = 0; i < n * vectors; i++) {
        s[i] = _mm512_cvtps_epi32(divided(_mm512_castsi512_ps(s[i]), &q));
    }
    UNROLL for (int p = 0; p < n; p++) {
        const __m512i *y = s + p * vectors;
        __m512i bytes = joined(y[0], vectors > 1 ? y[1] : none, vectors > 2 ? y[2] : none,
                               vectors > 3 ? y[3] : none, &q);
        _mm512_mask_storeu_epi8(out + p * step, lanes, bytes);
    }
}

// The bytes of every form.
AVX512 INLINE void store_forms(const __m512 y[], int n, int vectors, const struct block *b,
                               const struct tile *t) {
    const struct msc_simd_end *end = b->after;
    __mmask64 lanes = b->lanes;
    for (int32_t f = 0; f < end->n_forms; f++) {
        const struct bytes *q = &b->forms[f];
        uint8_t *bytes = end->forms[f].bytes;
        UNROLL for (int p = 0; p < n; p++) {
            __m512 row[MOST_VECTORS];
            UNROLL for (int c = 0; c < MOST_VECTORS; c++) {
                row[c] = c < vectors ? y[p * vectors + c] : _mm512_setzero_ps();
            }
            _mm512_mask_storeu_epi8(bytes + tile_at(t, p * vectors), lanes, to_bytes(row, q));
        }
    }
}

AVX512 INLINE struct tile tile_of(int vectors, const struct block *b, int64_t at) {
    return (struct tile){.per_row = vectors,
                         .begin = b->first + at * b->w->channels,
                         .step = b->w->channels,
                         .mask = (__mmask16)(b->lanes >> (vectors - 1) * LANES)};
}

// Asks for what the end will read and write while sums are added up: rows of a tile lie too far
// apart for the machine to guess them.
AVX512 INLINE void announce_end(int n, int vectors, const struct block *b, int64_t at) {
    const struct msc_simd_end *end = b->after;
    const struct tile t = tile_of(vectors, b, at);
    for (int32_t l = 0; l < end->n_links; l++) {
        if (msc_simd_reads_array(end->links[l].op)) {
            const float *array = end->arrays[end->links[l].operands[0]];
            UNROLL for (int i = 0; i < n * vectors; i++) {
                __builtin_prefetch(array + tile_at(&t, i));
            }
        }
    }
    if (end->out) {
        UNROLL for (int i = 0; i < n * vectors; i++) {
            __builtin_prefetch(end->out + tile_at(&t, i), 1);
        }
    }
    for (int32_t f = 0; f < end->n_forms; f++) {
        UNROLL for (int p = 0; p < n; p++) {
            __builtin_prefetch(end->forms[f].bytes + tile_at(&t, p * vectors), 1);
        }
    }
}

// Any end.
AVX512 INLINE void end_tile(__m512i s[], int n, int vectors, const struct block *b, int64_t at) {
    const struct msc_simd_end *end = b->after;
    const struct tile t = tile_of(vectors, b, at);
    __m512 y[TILE * MOST_VECTORS], low = b->low, high = b->high;
    UNROLL for (int c = 0; c < vectors; c++) {
        scale_column(s, n, vectors, b, c);
    }
    UNROLL for (int i = 0; i < n * vectors; i++) {
        y[i] = clip(_mm512_castsi512_ps(s[i]), low, high);
    }
    for (int32_t l = 0; l < end->n_links; l++) {
        run_link(y, NULL, n * vectors, &end->links[l], end->arrays, &t);
    }
    if (end->out) {
        UNROLL for (int i = 0; i < n * vectors; i++) {
            _mm512_mask_storeu_ps(end->out + tile_at(&t, i), tile_mask(&t, i), y[i]);
        }
    }
    store_forms(y, n, vectors, b, &t);
}

// n windows from `at` on times all vectors of a block.
AVX512 INLINE void run_tile(enum kind kind, int n, int vectors, const struct block *b, int64_t at) {
    __m512i s[TILE * MOST_VECTORS];
    if (kind == ANY) {
        announce_end(n, vectors, b, at);
    }
    UNROLL for (int c = 0; c < vectors; c++) {
        s[c] = _mm512_setzero_si512();
        if (kind != SUMS) {
            s[c] = _mm512_sub_epi32(s[c], _mm512_loadu_si512(b->offsets + c * LANES));
        }
    }
    UNROLL for (int i = vectors; i < n * vectors; i++) {
        s[i] = s[i - vectors];
    }
    add_windows(s, n, vectors, b, at);
    // What follows is read from memory then: before, it would take registers from the sums.
    UNROLL for (int i = 0; i < n * vectors; i++) {
        __asm__("" : "+v"(s[i]));
    }
    __asm__("" : "+r"(b), "+r"(at));
    if (kind == ANY) {
        end_tile(s, n, vectors, b, at);
        return;
    }
    char *out = b->out + at * b->out_step;
    if (kind == SUMS) {
        store_sums(out, s, n, vectors, b);
    } else if (kind == FLOATS) {
        store_floats(out, s, n, vectors, b);
    } else {
        store_bytes(out, s, n, vectors, b);
    }
}

AVX512 INLINE void run_block(enum kind kind, int vectors, const struct block *given) {
    const struct block own = *given, *b = &own;
    const int tile = TILE;
    int64_t at = b->begin;
    for (; at + tile <= b->end; at += tile) {
        run_tile(kind, tile, vectors, b, at);
    }
    if (at < b->end && b->end >= tile) {
        run_tile(kind, tile, vectors, b, b->end - tile);
        return;
    }
    for (; at < b->end; at++) {
        run_tile(kind, 1, vectors, b, at);
    }
}

// ---- Entries ----------------------------------------------------------------------------------

#define DEFINE_BLOCK(kind, name, vectors)                                                          \
    AVX512 static void name##vectors(const struct block *b) {                                      \
        run_block(kind, vectors, b);                                                               \
    }
#define DEFINE_BLOCKS(kind, name)                                                                  \
    DEFINE_BLOCK(kind, name, 1)                                                                    \
    DEFINE_BLOCK(kind, name, 2)                                                                    \
    DEFINE_BLOCK(kind, name, 3)                                                                    \
    DEFINE_BLOCK(kind, name, 4)

DEFINE_BLOCKS(SUMS, sums_)
DEFINE_BLOCKS(FLOATS, floats_)
DEFINE_BLOCKS(BYTES, bytes_)
DEFINE_BLOCKS(ANY, any_)

static void (*const blocks[KIND_COUNT][MOST_VECTORS])(const struct block *b) = {
    {sums_1, sums_2, sums_3, sums_4},
    {floats_1, floats_2, floats_3, floats_4},
    {bytes_1, bytes_2, bytes_3, bytes_4},
    {any_1, any_2, any_3, any_4},
};

// Windows whose bytes, read anew for each block of channels, and results stay in the cache.
static int64_t windows_at_once(const struct msc_simd_windows *w) {
    const int64_t most = 24 * 1024;
    int64_t n = most / (w->depth + w->channels);
    return n > 48 ? n / 24 * 24 : 48;
}

AVX512 static void run_all(struct block *b, enum kind kind, void *out,
                           const struct msc_simd_finish *f) {
    const struct msc_simd_windows *w = b->w;
    int64_t n = count_vectors(w->channels), at_once = windows_at_once(w), vectors;
    int64_t vector_bytes = w->n_runs * ((w->depth + GROUP - 1) / GROUP) * VECTOR;
    int64_t element = kind == BYTES ? 1 : (int64_t)sizeof(float);
    b->out_step = w->channels * element;
    for (b->begin = 0; b->begin < w->n; b->begin = b->end) {
        b->end = b->begin + at_once < w->n ? b->begin + at_once : w->n;
        for (int64_t v = 0; v < n; v += vectors) {
            int64_t channel = v * LANES, left = w->channels - channel;
            vectors = block_vectors(v, n);
            b->weights = (const int8_t *)w->weights + v * vector_bytes;
            b->out = out ? (char *)out + channel * element : NULL;
            b->first = b->after ? b->after->begin + channel : 0;
            b->lanes = left < VECTOR ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
            b->lanes &= ~(__mmask64)0 >> (VECTOR - vectors * LANES);
            if (f) {
                b->offsets = f->offsets + channel;
                b->scales = f->scales + channel;
                b->bias = f->bias + channel;
            }
            blocks[kind][vectors - 1](b);
        }
    }
}

AVX512 void msc_simd__multiply(int32_t sums[], const struct msc_simd_windows *w) {
    struct block b = {.w = w};
    run_all(&b, SUMS, sums, NULL);
}

AVX512 void msc_simd__multiply_end(const struct msc_simd_windows *w,
                                   const struct msc_simd_end *end) {
    const struct msc_simd_finish *f = &end->finish;
    struct bytes forms[MSC_SIMD_FORMS];
    struct block b = {.w = w,
                      .low = _mm512_set1_ps(f->low),
                      .high = _mm512_set1_ps(f->high),
                      .after = end,
                      .forms = forms};
    bool is_short = end->n_links == 0;
    if (is_short && end->out && end->n_forms == 0) {
        run_all(&b, FLOATS, end->out + end->begin, f);
        return;
    }
    if (is_short && !end->out && end->n_forms == 1 && end->has_numbers) {
        struct msc_simd_bytes limited = msc_simd__limit(f, &end->forms[0].q);
        b.q = load_bytes(&limited);
        run_all(&b, BYTES, end->forms[0].bytes + end->begin, f);
        return;
    }
    for (int32_t i = 0; i < end->n_forms; i++) {
        forms[i] = load_bytes(&end->forms[i].q);
    }
    run_all(&b, ANY, NULL, f);
}
