// Depthwise convolutions for AVX2, without or with AVX-VNNI.
//
// Bytes of several taps are interleaved, so that each int32 lane has a group of taps of one
// channel. One instruction then multiplies a group with its weights and adds the products: two taps
// as int16 or, with AVX-VNNI, four as bytes.
//
//     #define NAME(function) msc_simd__avx2_vnni_##function // names of the functions; without
//                                                           // it, msc_simd__avx2_...
//     #include "kernels/cpu/simd_avx2_depthwise.h"
//
// Weights are [block of MSC_SIMD_BLOCK][group of taps][element][4 bytes].
#ifndef MSC_KERNELS_CPU_SIMD_AVX2_DEPTHWISE_H
#define MSC_KERNELS_CPU_SIMD_AVX2_DEPTHWISE_H

#ifndef MSC_VECTOR_AVX2
#define MSC_VECTOR_AVX2
#endif
#ifndef NAME
#define NAME(function) msc_simd__avx2_##function
#endif

#include "kernels/cpu/simd_ops.h"
#include "kernels/cpu/simd_tables.h"

#include <string.h>

#ifdef MSC_VECTOR_AVX2_VNNI
typedef int8_t tap_weight;
#else
typedef int16_t tap_weight;
#endif

enum {
    BLOCK = MSC_SIMD_BLOCK,
    TAPS = 4 / (int)sizeof(tap_weight), // taps per group
    PARTS = MSC_SIMD_TAPS / TAPS,       // groups per MSC_SIMD_TAPS
    COLUMNS = MSC_SIMD_COLUMNS,
    AT_ONCE = 32, // vectors of channels computed for one row of windows before the next row
};

static int64_t count_tap_groups(int n_taps) {
    return (n_taps + TAPS - 1) / TAPS;
}

void NAME(pack_taps)(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                     int64_t period) {
    tap_weight *to = packed;
    for (int64_t block = 0; block < period; block += BLOCK) {
        for (int tap = 0; tap < n_taps; tap += TAPS) {
            for (int64_t i = 0; i < BLOCK; i++) {
                const int8_t *from = weights + (block + i) % n_channels * n_taps;
                for (int t = tap; t < tap + TAPS; t++) {
                    *to++ = t < n_taps ? from[t] : (tap_weight)0;
                }
            }
        }
    }
}

// The weights of an element for the first group. Those of the next group follow BLOCK * 4 bytes
// later.
static const char *element_weights(const void *weights, int n_taps, int64_t element) {
    return (const char *)weights + element / BLOCK * BLOCK * 4 * count_tap_groups(n_taps) +
           element % BLOCK * 4;
}

// Interleaves 16 bytes of four taps, as one part or as two.
struct taps {
    vint part[PARTS];
};
VECTOR_INLINE struct taps interleave_taps(__m128i a, __m128i b, __m128i c, __m128i d) {
    __m128i ab[2] = {_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)};
    __m128i cd[2] = {_mm_unpacklo_epi8(c, d), _mm_unpackhi_epi8(c, d)};
#ifdef MSC_VECTOR_AVX2_VNNI
    __m256i half[2];
    UNROLL for (int i = 0; i < 2; i++) {
        half[i] =
            _mm256_set_m128i(_mm_unpackhi_epi16(ab[i], cd[i]), _mm_unpacklo_epi16(ab[i], cd[i]));
    }
    return (struct taps){{{half[0], half[1]}}};
#else
    return (struct taps){{{_mm256_cvtepu8_epi16(ab[0]), _mm256_cvtepu8_epi16(ab[1])},
                          {_mm256_cvtepu8_epi16(cd[0]), _mm256_cvtepu8_epi16(cd[1])}}};
#endif
}

VECTOR_INLINE vint add_group_of_taps(vint sums, vint x, vint w) {
#ifdef MSC_VECTOR_AVX2_VNNI
    return vi_add_products(sums, x, w);
#else
    return vi_add_pairs(sums, x, w);
#endif
}

// ---- Taps -------------------------------------------------------------------------------------

// The sums of up to 16 elements.
VECTOR_INLINE vint add_vector(const struct msc_simd_taps *t, int64_t at, int64_t n,
                              const char *weights) {
    vint sums = vi_set(0);
    for (int tap = 0; tap < t->n_taps; tap += MSC_SIMD_TAPS) {
        __m128i x[MSC_SIMD_TAPS];
        UNROLL for (int k = 0; k < MSC_SIMD_TAPS; k++) {
            x[k] = load_16_bytes(t->taps[tap + k] + at, n, t->flip);
        }
        struct taps taps = interleave_taps(x[0], x[1], x[2], x[3]);
        for (int i = 0; i < PARTS && tap + i * TAPS < t->n_taps; i++, weights += BLOCK * 4) {
            sums = add_group_of_taps(sums, taps.part[i], vi_load(weights));
        }
    }
    return sums;
}

VECTOR_INLINE vint add_element(const struct msc_simd_taps *t, int64_t at, int64_t n,
                               int64_t element) {
    const char *weights = element_weights(t->weights, t->n_taps, element);
    return n >= LANES ? add_vector(t, at, LANES, weights) : add_vector(t, at, n, weights);
}

VECTOR_TARGET void NAME(add_taps)(int32_t sums[], const struct msc_simd_taps *t) {
    const struct msc_simd_taps own = *t;
    for (int64_t run = 0; run < own.n_runs; run++, sums += own.n) {
        for (int64_t i = 0, at = 0; i < own.n; i += LANES) {
            int64_t n = own.n - i;
            vi_store_part(sums + i, vmask_of(n), add_element(&own, run * own.step + i, n, at));
            at = at + LANES < own.period ? at + LANES : 0;
        }
    }
}

VECTOR_TARGET void NAME(add_taps_quantize)(uint8_t out[], const struct msc_simd_taps *t,
                                           const struct msc_simd_finish *f,
                                           const struct msc_simd_bytes *q) {
    const struct msc_simd_taps own = *t;
    const struct msc_simd_finish finish_own = *f;
    struct bytes b = load_bytes(q);
    for (int64_t run = 0; run < own.n_runs; run++, out += own.n) {
        for (int64_t i = 0, at = 0; i < own.n; i += LANES) {
            int64_t n = own.n - i;
            vint s = add_element(&own, run * own.step + i, n, at);
            vfloat y = finish_sums(s, &finish_own, at, vmask_of(n));
            store_bytes_of(out + i, &y, 1, n < LANES ? n : LANES, &b);
            at = at + LANES < own.period ? at + LANES : 0;
        }
    }
}

// ---- Columns ----------------------------------------------------------------------------------

// A column of a window is up to four rows of 16 channels. Each column is loaded once; it is added
// to the sums of all windows that contain it.

// A vector of channels, and the epilogue of its sums.
struct vector {
    const struct msc_simd_columns *c;
    int64_t channel, n; // the first channel, and the number of channels, up to 16
    vint weights[COLUMNS * PARTS];
    struct taps blank;
    vint begin; // initial values of the sums
    vfloat scales, bias;
    struct bytes q;
};

VECTOR_INLINE struct taps load_column(const struct vector *v, const uint8_t *const rows[],
                                      int64_t column) {
    const struct msc_simd_columns *c = v->c;
    if (column < 0 || column >= c->n_in) {
        return v->blank;
    }
    int64_t at = column * c->channels + v->channel;
    __m128i x[MSC_SIMD_TAPS];
    UNROLL for (int k = 0; k < MSC_SIMD_TAPS; k++) {
        x[k] = load_16_bytes(rows[k] + at, v->n, c->flip);
    }
    return interleave_taps(x[0], x[1], x[2], x[3]);
}

VECTOR_INLINE vint add_column(vint sums, const struct taps *x, const struct vector *v, int k) {
    UNROLL for (int i = 0; i < PARTS; i++) {
        sums = add_group_of_taps(sums, x->part[i], v->weights[k * PARTS + i]);
    }
    return sums;
}

VECTOR_INLINE void finish_window(bool is_bytes, char *out, vint sums, const struct vector *v) {
    if (!is_bytes) {
        vi_store_part(out, vmask_of(v->n), sums);
        return;
    }
    vfloat y = vf_add(vf_multiply(v->scales, vf_of_ints(sums)), v->bias);
    vint x = vi_of_floats(divided(y, &v->q));
    vi_store_bytes((uint8_t *)out, &x, 1, v->n, &v->q.limits);
}

VECTOR_INLINE void announce_below(const struct vector *v, int64_t y, int64_t column) {
    const struct msc_simd_columns *c = v->c;
    const uint8_t *const *below = c->rows + (y + 1) * MSC_SIMD_TAPS;
    for (int64_t k = c->n_shared; v->channel % BLOCK == 0 && y + 1 < c->n_rows && k < c->n_used;
         k++) {
        __builtin_prefetch(below[k] + column * c->channels + v->channel);
    }
}

// Runs one vector along a row of windows. `overlap` is the number of columns that a window shares
// with the next one: 2, 1 or 0.
VECTOR_INLINE void run_row(bool is_bytes, char *out, const struct vector *given, int64_t y,
                           int overlap) {
    const struct vector own = *given, *v = &own; // a copy, which cannot alias `out`
    const struct msc_simd_columns *c = v->c;
    const uint8_t *const *rows = c->rows + y * MSC_SIMD_TAPS;
    int64_t element = is_bytes ? 1 : (int64_t)sizeof(int32_t), step = c->channels * element;
    int64_t at = c->first;
    vint s[COLUMNS]; // of the windows that contain a column, from the first window on
    out += (y * c->n * c->channels + v->channel) * element;
    s[0] = s[1] = s[2] = v->begin;
    for (int k = 0; overlap > 0 && k < overlap; k++) {
        struct taps x = load_column(v, rows, at + k);
        s[0] = add_column(s[0], &x, v, k);
        if (k > 0) {
            s[1] = add_column(v->begin, &x, v, 0);
        }
    }
    for (int64_t i = 0; i < c->n; i++, at += c->stride, out += step) {
        UNROLL for (int k = overlap; k < COLUMNS; k++) {
            struct taps x = load_column(v, rows, at + k);
            s[0] = add_column(s[0], &x, v, k);
            if (overlap == 2) {
                s[1] = add_column(s[1], &x, v, 1);
            }
            if (overlap > 0 && k == COLUMNS - 1) {
                s[overlap] = add_column(v->begin, &x, v, 0);
            }
        }
        announce_below(v, y, at + 2);
        finish_window(is_bytes, out, s[0], v);
        s[0] = overlap == 0 ? v->begin : s[1];
        s[1] = s[2];
    }
}

VECTOR_INLINE void run_vector(bool is_bytes, void *out, const struct vector *v, int64_t y) {
    switch (v->c->stride) {
    case 1:
        run_row(is_bytes, out, v, y, 2);
        break;
    case 2:
        run_row(is_bytes, out, v, y, 1);
        break;
    default:
        run_row(is_bytes, out, v, y, 0);
        break;
    }
}

// Loads the vector of channels that begins at `channel`. `f` and `q` are NULL if sums are stored.
VECTOR_TARGET static void fill_vector(struct vector *v, const struct msc_simd_columns *c,
                                      int64_t channel, const struct msc_simd_finish *f,
                                      const struct msc_simd_bytes *q) {
    int64_t n = c->channels - channel < LANES ? c->channels - channel : LANES;
    vmask mask = vmask_of(n);
    *v = (struct vector){.c = c, .channel = channel, .n = n};
    for (int64_t i = 0; i < n; i++) {
        const char *from = element_weights(c->weights, COLUMNS * MSC_SIMD_TAPS, channel + i);
        for (int k = 0; k < COLUMNS * PARTS; k++) {
            memcpy((char *)&v->weights[k] + 4 * i, from + k * BLOCK * 4, 4);
        }
    }
    __m128i blank = load_16_bytes(c->blank + channel, n, c->flip);
    v->blank = interleave_taps(blank, blank, blank, blank);
    v->begin = vi_set(0);
    if (f) {
        v->begin = vi_subtract(v->begin, vi_load_part(mask, f->offsets + channel));
        v->scales = vf_load_part(vf_set(0.0f), mask, f->scales + channel);
        v->bias = vf_load_part(vf_set(0.0f), mask, f->bias + channel);
        v->q = load_bytes(q);
    }
}

VECTOR_TARGET static void sum_row(void *out, const struct vector *v, int64_t y) {
    run_vector(false, out, v, y);
}

VECTOR_TARGET static void quantize_row(void *out, const struct vector *v, int64_t y) {
    run_vector(true, out, v, y);
}

// Channels of the last vector that is not full are computed again by a full one, if there are 16.
static void run_columns(void *out, const struct msc_simd_columns *c,
                        void (*run)(void *out, const struct vector *v, int64_t y),
                        const struct msc_simd_finish *f, const struct msc_simd_bytes *q) {
    struct vector vectors[AT_ONCE];
    int64_t last = c->channels < LANES ? 0 : c->channels - LANES;
    for (int64_t first = 0; first < c->channels; first += AT_ONCE * LANES) {
        int n = 0;
        for (int64_t at = first; at < c->channels && n < AT_ONCE; at += LANES) {
            fill_vector(&vectors[n++], c, at < last ? at : last, f, q);
        }
        for (int64_t y = 0; y < c->n_rows; y++) {
            for (int i = 0; i < n; i++) {
                run(out, &vectors[i], y);
            }
        }
    }
}

void NAME(add_columns)(int32_t sums[], const struct msc_simd_columns *c) {
    run_columns(sums, c, sum_row, NULL, NULL);
}

void NAME(add_columns_quantize)(uint8_t out[], const struct msc_simd_columns *c,
                                const struct msc_simd_finish *f, const struct msc_simd_bytes *q) {
    struct msc_simd_bytes limited = msc_simd_limit(f, q);
    run_columns(out, c, quantize_row, f, &limited);
}

#endif
