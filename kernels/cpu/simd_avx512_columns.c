// Depthwise convolutions column by column.
//
// A column of a window is up to four rows of 64 channels. The bytes of the rows are interleaved, so
// that one instruction multiplies and adds the bytes of 16 channels. Neighbouring windows share
// columns, which are kept in registers: a window loads only as many new columns as the stride. The
// epilogue works on interleaved sums, so its arrays are interleaved too. Input rows that only the
// next row of windows needs are prefetched, because the processor does not predict them.
#include "kernels/cpu/simd_avx512.h"

enum { BLOCK = MSC_SIMD_BLOCK, PARTS = 4, COLUMNS = MSC_SIMD_COLUMNS, ROWS = MSC_SIMD_TAPS };
enum { AT_ONCE = 8 }; // blocks of channels computed for one row of windows before the next row

// A block of channels, and the epilogue of its sums.
struct block {
    const struct msc_simd_columns *c;
    int64_t channel;
    struct quad blank;
    __m512i flip;
    __mmask64 lanes; // lanes that hold channels
    const int8_t *weights;
    __m512i begin[PARTS]; // initial values of the sums
    __m512 scales[PARTS], bias[PARTS];
    struct bytes q;
};

// ---- Columns ----------------------------------------------------------------------------------

AVX512 INLINE __m512i load_row(const struct block *b, const uint8_t *x) {
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(b->lanes, x), b->flip);
}

AVX512 INLINE struct quad mixed(__m512i r0, __m512i r1, __m512i r2, __m512i r3) {
    __m512i low = _mm512_unpacklo_epi8(r0, r1), high = _mm512_unpackhi_epi8(r0, r1);
    __m512i low2 = _mm512_unpacklo_epi8(r2, r3), high2 = _mm512_unpackhi_epi8(r2, r3);
    return (struct quad){{_mm512_unpacklo_epi16(low, low2), _mm512_unpackhi_epi16(low, low2),
                          _mm512_unpacklo_epi16(high, high2), _mm512_unpackhi_epi16(high, high2)}};
}

AVX512 INLINE struct quad load_column(const struct block *b, const uint8_t *const rows[ROWS],
                                      int64_t column) {
    if (column < 0 || column >= b->c->n_in) {
        return b->blank;
    }
    int64_t at = column * b->c->channels + b->channel;
    return mixed(load_row(b, rows[0] + at), load_row(b, rows[1] + at), load_row(b, rows[2] + at),
                 load_row(b, rows[3] + at));
}

AVX512 INLINE struct quad add_column(struct quad sums, struct quad x, const int8_t *weights) {
    UNROLL for (int i = 0; i < PARTS; i++) {
        __m512i w = _mm512_loadu_si512(weights + i * BLOCK);
        sums.part[i] = _mm512_dpbusd_epi32(sums.part[i], x.part[i], w);
    }
    return sums;
}

AVX512 INLINE void write_sums(int32_t *out, struct quad sums, const struct block *b) {
    struct quad s = transposed(sums);
    UNROLL for (int i = 0; i < PARTS; i++) {
        _mm512_mask_storeu_epi32(out + 16 * i, (__mmask16)(b->lanes >> 16 * i), s.part[i]);
    }
}

AVX512 INLINE void write_bytes(uint8_t *out, struct quad sums, const struct block *b) {
    UNROLL for (int i = 0; i < PARTS; i++) {
        __m512 y = _mm512_mul_ps(b->scales[i], _mm512_cvtepi32_ps(sums.part[i]));
        sums.part[i] = _mm512_cvtps_epi32(divided(_mm512_add_ps(y, b->bias[i]), &b->q));
    }
    __m512i bytes =
        interleaved(sums.part[0], sums.part[1], sums.part[2], sums.part[3], &b->q.limits);
    _mm512_mask_storeu_epi8(out, b->lanes, bytes);
}

// ---- Rows -------------------------------------------------------------------------------------

// Runs one block along a row of windows.
AVX512 INLINE void avx512_columns_run_row(bool is_bytes, void *out, const struct block *given,
                                          int64_t y, int64_t stride) {
    const struct block own = *given, *b = &own; // a copy, which cannot alias `out`
    const struct msc_simd_columns *c = b->c;
    const uint8_t *const *rows = c->rows + y * ROWS;
    const uint8_t *const *below = y + 1 < c->n_rows ? rows + ROWS : rows;
    int64_t n_shared = c->n_shared, n_used = c->n_used, n = c->n, step = c->channels;
    struct quad x[COLUMNS];
    int64_t at = c->first, to = y * c->n * c->channels + b->channel;
    x[1] = load_column(b, rows, at);
    x[2] = load_column(b, rows, at + 1);
    for (int64_t i = 0; i < n; i++) {
        if (stride == 1 || i == 0) {
            x[0] = x[1];
            x[1] = x[2];
        } else {
            x[0] = stride == 2 ? x[2] : load_column(b, rows, at);
            x[1] = load_column(b, rows, at + 1);
        }
        x[2] = load_column(b, rows, at + 2);
        for (int64_t k = n_shared; k < n_used; k++) {
            const uint8_t *soon = below[k] + (at + 2) * step + b->channel;
            _mm_prefetch((const char *)soon, _MM_HINT_T0);
        }
        struct quad s = {{b->begin[0], b->begin[1], b->begin[2], b->begin[3]}};
        for (int k = 0; k < COLUMNS; k++) {
            s = add_column(s, x[k], b->weights + k * PARTS * BLOCK);
        }
        if (is_bytes) {
            write_bytes((uint8_t *)out + to, s, b);
        } else {
            write_sums((int32_t *)out + to, s, b);
        }
        at += stride;
        to += step;
    }
}

typedef void (*run_fn)(void *out, const struct block *b, int64_t y);

AVX512 static void sum_row_1(void *out, const struct block *b, int64_t y) {
    avx512_columns_run_row(false, out, b, y, 1);
}

AVX512 static void avx512_columns_sum_row(void *out, const struct block *b, int64_t y) {
    avx512_columns_run_row(false, out, b, y, b->c->stride);
}

AVX512 static void quantize_row_1(void *out, const struct block *b, int64_t y) {
    avx512_columns_run_row(true, out, b, y, 1);
}

AVX512 static void quantize_row(void *out, const struct block *b, int64_t y) {
    avx512_columns_run_row(true, out, b, y, b->c->stride);
}

// ---- Blocks -----------------------------------------------------------------------------------

AVX512 static struct quad load_array(const void *array, int64_t channel, __mmask64 lanes) {
    const int32_t *from = (const int32_t *)array + channel;
    struct quad x;
    for (int i = 0; i < PARTS; i++) {
        x.part[i] = _mm512_maskz_loadu_epi32((__mmask16)(lanes >> 16 * i), from + 16 * i);
    }
    return transposed(x);
}

// Loads the block of channels that begins at `channel`. `f` and `q` are NULL if sums are stored.
AVX512 static void fill_block(struct block *b, const struct msc_simd_columns *c, int64_t channel,
                              const struct msc_simd_finish *f, const struct msc_simd_bytes *q) {
    int64_t n = c->channels - channel;
    *b = (struct block){.c = c,
                        .channel = channel,
                        .flip = _mm512_set1_epi8((char)c->flip),
                        .lanes = ~(__mmask64)0 >> (n < BLOCK ? BLOCK - n : 0),
                        .weights = (const int8_t *)c->weights + channel * ROWS * COLUMNS};
    __m512i blank = load_row(b, c->blank + channel);
    b->blank = mixed(blank, blank, blank, blank);
    if (!f) {
        return;
    }
    struct quad offsets = load_array(f->offsets, channel, b->lanes);
    struct quad scales = load_array(f->scales, channel, b->lanes);
    struct quad bias = load_array(f->bias, channel, b->lanes);
    for (int i = 0; i < PARTS; i++) {
        b->begin[i] = _mm512_sub_epi32(_mm512_setzero_si512(), offsets.part[i]);
        b->scales[i] = _mm512_castsi512_ps(scales.part[i]);
        b->bias[i] = _mm512_castsi512_ps(bias.part[i]);
    }
    b->q = load_bytes(q);
}

static void avx512_columns_run_all(void *out, const struct msc_simd_columns *c, run_fn run,
                                   const struct msc_simd_finish *f,
                                   const struct msc_simd_bytes *q) {
    struct block blocks[AT_ONCE];
    for (int64_t first = 0; first < c->channels; first += AT_ONCE * BLOCK) {
        int n = 0;
        for (int64_t at = first; at < c->channels && n < AT_ONCE; at += BLOCK) {
            fill_block(&blocks[n++], c, at, f, q);
        }
        for (int64_t y = 0; y < c->n_rows; y++) {
            for (int i = 0; i < n; i++) {
                run(out, &blocks[i], y);
            }
        }
    }
}

void msc_simd__avx512_add_columns(int32_t sums[], const struct msc_simd_columns *c) {
    avx512_columns_run_all(sums, c, c->stride == 1 ? sum_row_1 : avx512_columns_sum_row, NULL,
                           NULL);
}

void msc_simd__avx512_add_columns_quantize(uint8_t out[], const struct msc_simd_columns *c,
                                           const struct msc_simd_finish *f,
                                           const struct msc_simd_bytes *q) {
    struct msc_simd_bytes limited = msc_simd_limit(f, q);
    avx512_columns_run_all(out, c, c->stride == 1 ? quantize_row_1 : quantize_row, f, &limited);
}
