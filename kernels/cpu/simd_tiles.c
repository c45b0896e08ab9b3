// Products of windows by tile registers (simd_tiles.h).
//
// A piece is 32 windows (the rows of two tiles) times a block of up to four vectors of channels.
// Two tiles of windows are multiplied with two vectors at once: four tiles are loaded for every
// four tiles of sums. Evenly spaced windows are read in place; other windows are first copied next
// to each other. While the sums of one piece are added up, the sums of the previous piece are
// scaled and stored, because the two use different units of the processor.
//
//     weights   [vector][bytes of a window / 64][64 / 4][channel][4], padded with zeros
//     loops     outermost first: groups of pieces whose copied windows fit the second-level cache;
//               blocks; pieces
//
// If windows do not fill the last piece, this piece begins earlier and computes some windows again.
#include "kernels/cpu/simd_avx512.h"

#include "kernels/cpu/simd_indirect_ends.h"

#include <stdbool.h>
#include <string.h>

#ifndef MSC_TILES_HEADER // tests define their own tiles here
#define MSC_TILES_HEADER "kernels/cpu/simd_tiles.h"
#endif
#include MSC_TILES_HEADER

enum {
    ROWS = 16,
    STEP = 64, // bytes per row of a tile
    TILE_BYTES = ROWS * STEP,
    PIECE = 2 * ROWS,
    COLUMNS = MOST_VECTORS * LANES,
    PART = 4,         // windows whose sums are finished together
    MOST_PIECES = 16, // most pieces whose windows are copied at once
};

// The 16 windows that are the rows of a tile.
struct rows {
    const char *at;
    int64_t stride;
    const int64_t *runs; // NULL: runs are contiguous
};

// How windows are read: as runs whose length is a multiple of STEP.
struct reading {
    const struct msc_simd_indirect *w;
    int64_t bytes; // bytes per window, padded
    int64_t n_runs, n_steps;
    struct rows rows[MOST_PIECES][2];
};

// A piece whose sums are complete, and how many of its windows are finished.
struct ending {
    const struct block *b;
    int64_t at, n, done;
    const int32_t *sums; // [n][COLUMNS]
};

// ---- Weights ----------------------------------------------------------------------------------

static int64_t window_bytes(int64_t n_runs, int64_t depth) {
    return (n_runs * depth + STEP - 1) / STEP * STEP;
}

static size_t tiles_packed_bytes(int64_t channels, int64_t n_runs, int64_t depth) {
    return (size_t)(count_vectors(channels) * LANES * window_bytes(n_runs, depth));
}

static void tiles_pack(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                       int64_t depth) {
    int64_t n = n_runs * depth, n_filled = window_bytes(n_runs, depth);
    const char *from = weights;
    char *to = packed;
    for (int64_t v = 0; v < count_vectors(channels); v++) {
        for (int64_t k = 0; k < n_filled; k += GROUP) {
            int64_t n_bytes = k >= n ? 0 : n - k < GROUP ? n - k : GROUP;
            for (int64_t c = v * LANES; c < (v + 1) * LANES; c++) {
                memset(to, 0, GROUP);
                if (c < channels) {
                    memcpy(to, from + c * n + k, (size_t)n_bytes);
                }
                to += GROUP;
            }
        }
    }
}

// ---- Windows ----------------------------------------------------------------------------------

static int64_t pieces_at_once(int64_t n_bytes) {
    const int64_t most = 256 * 1024;
    int64_t n = most / (PIECE * n_bytes);
    return n < 1 ? 1 : n > MOST_PIECES ? MOST_PIECES : n;
}

static size_t tiles_scratch_bytes(int64_t n_runs, int64_t depth) {
    int64_t n_bytes = window_bytes(n_runs, depth);
    return (size_t)(pieces_at_once(n_bytes) * PIECE * n_bytes);
}

AVX512 static void copy_bytes(char *to, const char *from, int64_t n) {
    int64_t i = 0;
    for (; i + VECTOR <= n; i += VECTOR) {
        _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
    }
    if (i < n) {
        __mmask64 mask = ((__mmask64)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi8(to + i, mask, _mm512_maskz_loadu_epi8(mask, from + i));
    }
}

// Copies n windows; rows without a window are filled with zeros.
static void copy_windows(char *to, const struct reading *r, int64_t at, int64_t n) {
    const struct msc_simd_indirect *w = r->w;
    int64_t used = w->n_runs * w->depth;
    for (int64_t i = 0; i < n; i++, to += r->bytes) {
        const char *from = (const char *)w->in + w->at[at + i];
        for (int64_t run = 0; run < w->n_runs; run++) {
            copy_bytes(to + run * w->depth, from + w->runs[run], w->depth);
        }
        memset(to + used, 0, (size_t)(r->bytes - used));
    }
    memset(to, 0, (size_t)((ROWS - n) * r->bytes));
}

static bool are_even(const int64_t at[], int64_t n) {
    for (int64_t i = 2; i < n; i++) {
        if (at[i] - at[i - 1] != at[1] - at[0]) {
            return false;
        }
    }
    return true;
}

// The n windows from `at` on, in place or copied to `copies`.
static struct rows tiles_take_rows(const struct reading *r, int64_t at, int64_t n, char *copies) {
    const struct msc_simd_indirect *w = r->w;
    const int64_t *first = w->at + at;
    if (n == ROWS && w->depth % STEP == 0 && are_even(first, n)) {
        return (struct rows){(const char *)w->in + first[0], first[1] - first[0], w->runs};
    }
    copy_windows(copies, r, at, n);
    return (struct rows){copies, r->bytes, NULL};
}

// ---- Epilogues --------------------------------------------------------------------------------

AVX512 INLINE void end_part(enum kind kind, int n, int vectors, const struct block *b, int64_t at,
                            const int32_t *sums) {
    __m512i s[MOST_WINDOWS * MOST_VECTORS];
    UNROLL for (int i = 0; i < n * vectors; i++) {
        s[i] = _mm512_load_si512(sums + i / vectors * COLUMNS + i % vectors * LANES);
        if (kind != SUMS) {
            s[i] = _mm512_sub_epi32(s[i], _mm512_loadu_si512(b->offsets + i % vectors * LANES));
        }
    }
    finish_windows(OF_BYTES, kind, s, n, vectors, b, at);
}

typedef void (*finish_function)(const struct block *b, int64_t at, const int32_t *sums);

#define DEFINE_END(kind, vectors)                                                                  \
    AVX512 static void part_##kind##_##vectors(const struct block *b, int64_t at,                  \
                                               const int32_t *sums) {                              \
        end_part(kind, PART, vectors, b, at, sums);                                                \
    }                                                                                              \
    AVX512 static void one_##kind##_##vectors(const struct block *b, int64_t at,                   \
                                              const int32_t *sums) {                               \
        end_part(kind, 1, vectors, b, at, sums);                                                   \
    }
#define DEFINE_ENDS(kind)                                                                          \
    DEFINE_END(kind, 1)                                                                            \
    DEFINE_END(kind, 2)                                                                            \
    DEFINE_END(kind, 3)                                                                            \
    DEFINE_END(kind, 4)                                                                            \
    static const finish_function parts_##kind[] = {part_##kind##_1, part_##kind##_2,               \
                                                   part_##kind##_3, part_##kind##_4};              \
    static const finish_function ones_##kind[] = {one_##kind##_1, one_##kind##_2, one_##kind##_3,  \
                                                  one_##kind##_4};

DEFINE_ENDS(SUMS)
DEFINE_ENDS(FLOATS)
DEFINE_ENDS(BYTES)
DEFINE_ENDS(ANY)

static const finish_function *const parts[KIND_COUNT] = {parts_SUMS, parts_FLOATS, parts_BYTES,
                                                         parts_ANY};
static const finish_function *const ones[KIND_COUNT] = {ones_SUMS, ones_FLOATS, ones_BYTES,
                                                        ones_ANY};

// Finishes the next windows of a piece, if any are left.
static inline void end_next(struct ending *e) {
    int64_t left = e->n - e->done;
    if (left > 0) {
        const finish_function *finishes = (left >= PART ? parts : ones)[e->b->kind];
        finishes[e->b->vectors - 1](e->b, e->at + e->done, e->sums + e->done * COLUMNS);
        e->done += left >= PART ? PART : 1;
    }
}

static void end_rest(struct ending *e) {
    while (e->done < e->n) {
        end_next(e);
    }
}

// ---- Pieces -----------------------------------------------------------------------------------

// Multiplies one or two tiles of windows with one or two vectors of channels, and finishes parts of
// the previous piece in between.
TILES INLINE void add_tiles(int tiles, int vectors, const struct reading *r,
                            const struct rows rows[2], const char *weights, int32_t *sums,
                            struct ending *before) {
    int64_t vector_bytes = LANES * r->bytes;
    int64_t row_bytes = COLUMNS * (int64_t)sizeof(sums[0]);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t run = 0; run < r->n_runs; run++) {
        int64_t behind = run * r->n_steps * STEP;
        const char *x = rows[0].at + (rows[0].runs ? rows[0].runs[run] : behind);
        const char *y = rows[1].at + (rows[1].runs ? rows[1].runs[run] : behind);
        for (int64_t k = 0; k < r->n_steps; k++, x += STEP, y += STEP, weights += TILE_BYTES) {
            TILE_LOAD(4, x, rows[0].stride);
            TILE_LOAD(6, weights, STEP);
            TILE_ADD(0, 4, 6);
            if (tiles > 1) {
                TILE_LOAD(5, y, rows[1].stride);
                TILE_ADD(2, 5, 6);
            }
            if (vectors > 1) {
                TILE_LOAD(7, weights + vector_bytes, STEP);
                TILE_ADD(1, 4, 7);
            }
            if (tiles > 1 && vectors > 1) {
                TILE_ADD(3, 5, 7);
            }
            end_next(before);
        }
    }
    TILE_STORE(0, sums, row_bytes);
    if (vectors > 1) {
        TILE_STORE(1, sums + LANES, row_bytes);
    }
    if (tiles > 1) {
        TILE_STORE(2, sums + ROWS * COLUMNS, row_bytes);
    }
    if (tiles > 1 && vectors > 1) {
        TILE_STORE(3, sums + ROWS * COLUMNS + LANES, row_bytes);
    }
}

AVX512 static void announce(const struct block *b, int64_t at, int64_t n) {
    for (int64_t i = 0; (b->kind == FLOATS || b->kind == ANY) && i < n; i++) {
        announce_epilogue(1, (int)b->vectors, b, at + i);
    }
}

TILES static void tiles_add_piece(const struct reading *r, const struct rows rows[2], int64_t n,
                                  const struct block *b, int32_t *sums, struct ending *before) {
    for (int64_t c = 0; c < b->vectors; c += 2) {
        const char *weights = b->weights + c * LANES * r->bytes;
        int32_t *columns = sums + c * LANES;
        bool is_pair = c + 1 < b->vectors;
        if (n > ROWS && is_pair) {
            add_tiles(2, 2, r, rows, weights, columns, before);
        } else if (n > ROWS) {
            add_tiles(2, 1, r, rows, weights, columns, before);
        } else if (is_pair) {
            add_tiles(1, 2, r, rows, weights, columns, before);
        } else {
            add_tiles(1, 1, r, rows, weights, columns, before);
        }
    }
}

static void take_piece(struct reading *r, int64_t piece, int64_t at, int64_t n) {
    char *copies = (char *)r->w->scratch + piece * PIECE * r->bytes;
    int64_t first = n < ROWS ? n : ROWS;
    r->rows[piece][0] = tiles_take_rows(r, at, first, copies);
    r->rows[piece][1] = n > first
                            ? tiles_take_rows(r, at + first, n - first, copies + ROWS * r->bytes)
                            : r->rows[piece][0];
}

// Multiplies the pieces [first, first + n) with all blocks. The last piece is not finished but left
// in *before.
TILES static void tiles_add_group(struct reading *r, int64_t first, int64_t n,
                                  struct block blocks[2], void *sums,
                                  int32_t places[2][PIECE * COLUMNS], struct ending *before) {
    const struct msc_simd_indirect *w = r->w;
    int64_t n_windows = w->n < PIECE ? w->n : PIECE, n_vectors = count_vectors(w->channels);
    for (int64_t v = 0, vectors; v < n_vectors; v += vectors) {
        struct block *b = before->b == &blocks[0] ? &blocks[1] : &blocks[0];
        enter_block(b, v, sums);
        b->weights = (const char *)w->weights + v * LANES * r->bytes;
        vectors = b->vectors;
        for (int64_t i = 0; i < n; i++) {
            int32_t *place = before->sums == places[0] ? places[1] : places[0];
            int64_t at = (first + i) * PIECE;
            at = at + n_windows > w->n ? w->n - n_windows : at;
            if (v == 0) {
                take_piece(r, i, at, n_windows);
            }
            announce(b, at, n_windows);
            tiles_add_piece(r, r->rows[i], n_windows, b, place, before);
            end_rest(before);
            *before = (struct ending){b, at, n_windows, 0, place};
        }
    }
}

// ---- Entries ----------------------------------------------------------------------------------

TILES static void tiles_run_all(const struct block *all, void *sums) {
    static const struct tile_shapes shapes = {
        .palette = 1,
        .row_bytes = {STEP, STEP, STEP, STEP, STEP, STEP, STEP, STEP},
        .rows = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS},
    };
    const struct msc_simd_indirect *w = all->w;
    struct reading r = {.w = w, .bytes = window_bytes(w->n_runs, w->depth)};
    r.n_runs = w->depth % STEP == 0 ? w->n_runs : 1;
    r.n_steps = r.bytes / STEP / r.n_runs;
    int64_t n_pieces = (w->n + PIECE - 1) / PIECE, at_once = pieces_at_once(r.bytes);
    _Alignas(64) int32_t places[2][PIECE * COLUMNS];
    struct block blocks[2] = {*all, *all};
    struct ending before = {.n = 0};
    TILE_SHAPES(&shapes);
    for (int64_t first = 0; first < n_pieces; first += at_once) {
        int64_t left = n_pieces - first;
        tiles_add_group(&r, first, left < at_once ? left : at_once, blocks, sums, places, &before);
    }
    end_rest(&before);
    TILE_RELEASE();
}

AVX512 static void tiles_multiply(void *sums, const struct msc_simd_indirect *w) {
    struct block b = begin_sums(w);
    tiles_run_all(&b, sums);
}

AVX512 static void multiply_epilogue(const struct msc_simd_indirect *w,
                                     const struct msc_simd_epilogue *epilogue) {
    struct bytes quantized[MSC_SIMD_MAX_QUANTIZED];
    struct block b = begin_epilogue(w, epilogue, quantized);
    tiles_run_all(&b, NULL);
}

const struct msc_simd_product msc_simd__tiles = {.isa = "amx_int8",
                                                 .weight_bytes = 1,
                                                 .packed_bytes = tiles_packed_bytes,
                                                 .pack = tiles_pack,
                                                 .scratch_bytes = tiles_scratch_bytes,
                                                 .multiply = tiles_multiply,
                                                 .multiply_epilogue = multiply_epilogue};
