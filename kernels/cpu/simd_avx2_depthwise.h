// Depthwise convolutions for AVX2, without or with AVX-VNNI.
//
// Bytes of several taps are interleaved, so that each int32 lane has a group of taps of one
// channel. One instruction then multiplies a group with its weights and adds the products: two taps
// as int16 or, with AVX-VNNI, four as bytes. Vectors have 16 elements or, with AVX-VNNI, 32.
// Interleaving works within 128 bits, so the places of 32 elements differ from their order: groups
// of four elements are in the order 0, 4, 1, 5, 2, 6, 3, 7.
//
//     #define NAME(function) msc_simd__avx2_vnni_##function // names of the functions; without
//                                                           // it, msc_simd__avx2_...
//     #include "kernels/cpu/simd_avx2_depthwise.h"
//
// Weights are [block of MSC_SIMD_BLOCK][group of taps][place][4 bytes].
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
    GROUPS = MSC_SIMD_TAPS / TAPS,      // groups per MSC_SIMD_TAPS
    WIDTH = 32 / GROUPS,                // elements per vector
    HALVES = WIDTH / LANES,
    PARTS = GROUPS * HALVES,
    COLUMNS = MSC_SIMD_COLUMNS,
    AT_ONCE = 512 / WIDTH, // vectors computed for one row of windows before the next row
};

// The place of an element among those of its block.
static int64_t place_of_element(int64_t i) {
    return HALVES == 1 ? i : i / 32 * 32 + i % 16 / 4 * 8 + i % 32 / 16 * 4 + i % 4;
}

static int64_t count_tap_groups(int n_taps) {
    return (n_taps + TAPS - 1) / TAPS;
}

void NAME(pack_taps)(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                     int64_t period) {
    char *to = packed;
    for (int64_t block = 0; block < period; block += BLOCK) {
        for (int tap = 0; tap < n_taps; tap += TAPS, to += BLOCK * 4) {
            for (int64_t i = 0; i < BLOCK; i++) {
                const int8_t *from = weights + (block + i) % n_channels * n_taps;
                tap_weight group[TAPS];
                for (int t = 0; t < TAPS; t++) {
                    group[t] = tap + t < n_taps ? from[tap + t] : (tap_weight)0;
                }
                memcpy(to + place_of_element(i) * 4, group, 4);
            }
        }
    }
}

// The weights of a block for the first group. Those of the next group follow BLOCK * 4 bytes later.
static const char *block_weights(const void *weights, int n_taps, int64_t element) {
    return (const char *)weights + element / BLOCK * BLOCK * 4 * count_tap_groups(n_taps);
}

// The bytes of a vector, and the sums of a vector.
#ifdef MSC_VECTOR_AVX2_VNNI
typedef __m256i byte_vector;
#define load_byte_vector load_32_bytes
#else
typedef __m128i byte_vector;
#define load_byte_vector load_16_bytes
#endif
struct sums {
    vint part[HALVES];
};

// Interleaved bytes of four taps. Part i is multiplied with the weights of group i / HALVES and
// added to part i % HALVES of the sums.
struct taps {
    vint part[PARTS];
};

VECTOR_INLINE struct taps interleave_taps(const byte_vector x[MSC_SIMD_TAPS]) {
#ifdef MSC_VECTOR_AVX2_VNNI
    __m256i low[2], high[2];
    UNROLL for (int i = 0; i < 2; i++) {
        low[i] = _mm256_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
        high[i] = _mm256_unpackhi_epi8(x[2 * i], x[2 * i + 1]);
    }
    return (struct taps){
        {{_mm256_unpacklo_epi16(low[0], low[1]), _mm256_unpackhi_epi16(low[0], low[1])},
         {_mm256_unpacklo_epi16(high[0], high[1]), _mm256_unpackhi_epi16(high[0], high[1])}}};
#else
    struct taps taps;
    UNROLL for (int i = 0; i < PARTS; i++) {
        taps.part[i].low = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x[2 * i], x[2 * i + 1]));
        taps.part[i].high = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x[2 * i], x[2 * i + 1]));
    }
    return taps;
#endif
}

VECTOR_INLINE vint add_group_of_taps(vint sums, vint x, vint w) {
#ifdef MSC_VECTOR_AVX2_VNNI
    return vi_add_products(sums, x, w);
#else
    return vi_add_pairs(sums, x, w);
#endif
}

// Sums in the order of elements.
VECTOR_INLINE struct sums in_order(struct sums s) {
#ifdef MSC_VECTOR_AVX2_VNNI
    vint a = s.part[0], b = s.part[1];
    return (struct sums){{{_mm256_permute2x128_si256(a.low, a.high, 0x20),
                           _mm256_permute2x128_si256(b.low, b.high, 0x20)},
                          {_mm256_permute2x128_si256(a.low, a.high, 0x31),
                           _mm256_permute2x128_si256(b.low, b.high, 0x31)}}};
#else
    return s;
#endif
}

// Stores the first n of the sums, which are in the order of elements.
VECTOR_INLINE void store_sums_of(int32_t *out, struct sums s, int64_t n) {
    UNROLL for (int i = 0; i < HALVES; i++) {
        if (n > i * LANES) {
            vi_store_part(out + i * LANES, vmask_of(n - i * LANES), s.part[i]);
        }
    }
}

// ---- Taps -------------------------------------------------------------------------------------

// The sums of up to WIDTH elements.
VECTOR_INLINE struct sums add_vector(const struct msc_simd_taps *t, int64_t at, int64_t n,
                                     const char *weights) {
    struct sums sums;
    UNROLL for (int i = 0; i < HALVES; i++) {
        sums.part[i] = vi_set(0);
    }
    for (int tap = 0; tap < t->n_taps; tap += MSC_SIMD_TAPS) {
        byte_vector x[MSC_SIMD_TAPS];
        UNROLL for (int k = 0; k < MSC_SIMD_TAPS; k++) {
            x[k] = load_byte_vector(t->taps[tap + k] + at, n, t->flip);
        }
        struct taps taps = interleave_taps(x);
        for (int g = 0; g < GROUPS && tap + g * TAPS < t->n_taps; g++, weights += BLOCK * 4) {
            UNROLL for (int i = 0; i < HALVES; i++) {
                vint w = vi_load(weights + i * (int)sizeof(vint));
                sums.part[i] = add_group_of_taps(sums.part[i], taps.part[g * HALVES + i], w);
            }
        }
    }
    return in_order(sums);
}

VECTOR_INLINE struct sums add_element(const struct msc_simd_taps *t, int64_t at, int64_t n,
                                      int64_t element) {
    const char *weights = block_weights(t->weights, t->n_taps, element) + element % BLOCK * 4;
    return n >= WIDTH ? add_vector(t, at, WIDTH, weights) : add_vector(t, at, n, weights);
}

VECTOR_TARGET void NAME(add_taps)(int32_t sums[], const struct msc_simd_taps *t) {
    const struct msc_simd_taps own = *t;
    for (int64_t run = 0; run < own.n_runs; run++, sums += own.n) {
        for (int64_t i = 0, at = 0; i < own.n; i += WIDTH) {
            int64_t n = own.n - i;
            store_sums_of(sums + i, add_element(&own, run * own.step + i, n, at), n);
            at = at + WIDTH < own.period ? at + WIDTH : 0;
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
        for (int64_t i = 0, at = 0; i < own.n; i += WIDTH) {
            int64_t n = own.n - i < WIDTH ? own.n - i : WIDTH;
            struct sums s = add_element(&own, run * own.step + i, n, at);
            vfloat y[HALVES];
            UNROLL for (int k = 0; k < HALVES; k++) {
                vmask mask = vmask_of(n > k * LANES ? n - k * LANES : 0);
                y[k] = finish_sums(s.part[k], &finish_own, at + k * LANES, mask);
            }
            store_bytes_of(out + i, y, HALVES, n, &b);
            at = at + WIDTH < own.period ? at + WIDTH : 0;
        }
    }
}

// ---- Columns ----------------------------------------------------------------------------------

// A column of a window is up to four rows of a vector of channels. Each column is loaded once; it
// is added to the sums of all windows that contain it.

// A vector of channels, and the epilogue of its sums. Arrays are in the order of places.
struct vector {
    const struct msc_simd_columns *c;
    int64_t channel, n; // the first channel, and the number of channels, up to WIDTH
    vint weights[COLUMNS * PARTS];
    struct taps blank;
    struct sums begin; // initial values of the sums
    vfloat scales[HALVES], bias[HALVES];
    struct bytes q;
};

VECTOR_INLINE struct taps load_column(const struct vector *v, int64_t n,
                                      const uint8_t *const rows[], int64_t column) {
    const struct msc_simd_columns *c = v->c;
    if (column < 0 || column >= c->n_in) {
        return v->blank;
    }
    int64_t at = column * c->channels + v->channel;
    byte_vector x[MSC_SIMD_TAPS];
    UNROLL for (int k = 0; k < MSC_SIMD_TAPS; k++) {
        x[k] = load_byte_vector(rows[k] + at, n, c->flip);
    }
    return interleave_taps(x);
}

VECTOR_INLINE struct sums add_column(struct sums sums, const struct taps *x, const struct vector *v,
                                     int k) {
    UNROLL for (int i = 0; i < PARTS; i++) {
        vint *s = &sums.part[i % HALVES];
        *s = add_group_of_taps(*s, x->part[i], v->weights[k * PARTS + i]);
    }
    return sums;
}

VECTOR_INLINE void finish_window(bool is_bytes, char *out, struct sums sums, const struct vector *v,
                                 int64_t n) {
    if (!is_bytes) {
        store_sums_of((int32_t *)(void *)out, in_order(sums), n);
        return;
    }
    vint x[HALVES];
    UNROLL for (int i = 0; i < HALVES; i++) {
        vfloat y = vf_add(vf_multiply(v->scales[i], vf_of_ints(sums.part[i])), v->bias[i]);
        x[i] = vi_of_floats(divided(y, &v->q));
    }
    if (HALVES == 1) {
        vi_store_bytes((uint8_t *)out, x, 1, n, &v->q.limits);
    } else { // packing restores the order of elements
        store_32_bytes((uint8_t *)out, packed_bytes_of_two(x[0], x[HALVES - 1], &v->q.limits), n);
    }
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
VECTOR_INLINE void run_row(bool is_bytes, char *restrict out, const struct vector *restrict v,
                           int64_t n, int64_t y, int overlap) {
    const struct msc_simd_columns *c = v->c;
    const uint8_t *const *rows = c->rows + y * MSC_SIMD_TAPS;
    int64_t element = is_bytes ? 1 : (int64_t)sizeof(int32_t), step = c->channels * element;
    int64_t at = c->first;
    struct sums s[COLUMNS]; // of the windows that contain a column, from the first window on
    out += (y * c->n * c->channels + v->channel) * element;
    s[0] = s[1] = s[2] = v->begin;
    for (int k = 0; overlap > 0 && k < overlap; k++) {
        struct taps x = load_column(v, n, rows, at + k);
        s[0] = add_column(s[0], &x, v, k);
        if (k > 0) {
            s[1] = add_column(v->begin, &x, v, 0);
        }
    }
    for (int64_t i = 0; i < c->n; i++, at += c->stride, out += step) {
        UNROLL for (int k = overlap; k < COLUMNS; k++) {
            struct taps x = load_column(v, n, rows, at + k);
            s[0] = add_column(s[0], &x, v, k);
            if (overlap == 2) {
                s[1] = add_column(s[1], &x, v, 1);
            }
            if (overlap > 0 && k == COLUMNS - 1) {
                s[overlap] = add_column(v->begin, &x, v, 0);
            }
        }
        announce_below(v, y, at + 2);
        finish_window(is_bytes, out, s[0], v, n);
        s[0] = overlap == 0 ? v->begin : s[1];
        s[1] = s[2];
    }
}

VECTOR_INLINE void run_strides(bool is_bytes, void *out, const struct vector *v, int64_t n,
                               int64_t y) {
    switch (v->c->stride) {
    case 1:
        run_row(is_bytes, out, v, n, y, 2);
        break;
    case 2:
        run_row(is_bytes, out, v, n, y, 1);
        break;
    default:
        run_row(is_bytes, out, v, n, y, 0);
        break;
    }
}

VECTOR_INLINE void run_vector(bool is_bytes, void *out, const struct vector *v, int64_t y) {
    if (v->n == WIDTH) {
        run_strides(is_bytes, out, v, WIDTH, y);
    } else {
        run_strides(is_bytes, out, v, v->n, y);
    }
}

// Loads the vector of channels that begins at `channel`. `f` and `q` are NULL if sums are stored.
VECTOR_TARGET static void fill_vector(struct vector *v, const struct msc_simd_columns *c,
                                      int64_t channel, const struct msc_simd_finish *f,
                                      const struct msc_simd_bytes *q) {
    int64_t n = c->channels - channel < WIDTH ? c->channels - channel : WIDTH;
    *v = (struct vector){.c = c, .channel = channel, .n = n};
    for (int64_t i = 0; i < n; i++) {
        int64_t element = channel + i, place = place_of_element(i);
        const char *from = block_weights(c->weights, COLUMNS * MSC_SIMD_TAPS, element) +
                           place_of_element(element % BLOCK) * 4;
        for (int k = 0; k < COLUMNS * GROUPS; k++) {
            memcpy((char *)&v->weights[k * HALVES] + 4 * place, from + k * BLOCK * 4, 4);
        }
        if (f) {
            ((int32_t *)(void *)&v->begin)[place] = (int32_t)(0u - (uint32_t)f->offsets[element]);
            ((float *)(void *)v->scales)[place] = f->scales[element];
            ((float *)(void *)v->bias)[place] = f->bias[element];
        }
    }
    byte_vector blank[MSC_SIMD_TAPS];
    UNROLL for (int k = 0; k < MSC_SIMD_TAPS; k++) {
        blank[k] = load_byte_vector(c->blank + channel, n, c->flip);
    }
    v->blank = interleave_taps(blank);
    if (f) {
        v->q = load_bytes(q);
    }
}

VECTOR_TARGET static void sum_row(void *out, const struct vector *v, int64_t y) {
    run_vector(false, out, v, y);
}

VECTOR_TARGET static void quantize_row(void *out, const struct vector *v, int64_t y) {
    run_vector(true, out, v, y);
}

// Channels of the last vector that is not full are computed again by a full one, if there are
// enough.
static void run_columns(void *out, const struct msc_simd_columns *c,
                        void (*run)(void *out, const struct vector *v, int64_t y),
                        const struct msc_simd_finish *f, const struct msc_simd_bytes *q) {
    struct vector vectors[AT_ONCE];
    int64_t last = c->channels < WIDTH ? 0 : c->channels - WIDTH;
    for (int64_t first = 0; first < c->channels; first += AT_ONCE * WIDTH) {
        int n = 0;
        for (int64_t at = first; at < c->channels && n < AT_ONCE; at += WIDTH) {
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
