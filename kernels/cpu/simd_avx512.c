// AVX-512 with the integer instructions of Cascade Lake, Zen 4 and later.
#include "kernels/cpu/simd.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

// ---- Quantising -------------------------------------------------------------------------------

struct bytes {
    __m512 scale, reciprocal, low, high;
    __m512i zero_point;
};

AVX512 static struct bytes load_bytes(const struct msc_simd_bytes *q) {
    return (struct bytes){_mm512_set1_ps(q->scale), _mm512_set1_ps(q->reciprocal),
                          _mm512_set1_ps(q->x_low), _mm512_set1_ps(q->x_high),
                          // What the sum that rounds leaves in the upper bits goes with it.
                          _mm512_set1_epi32(q->zero_point - 0x4b400000)};
}

// The integers of 16 numbers. Where an operand is NaN the second one is the result.
AVX512 static inline __m512i to_integers(__m512 y, const struct bytes *q) {
    y = _mm512_max_ps(y, q->low);
    y = _mm512_min_ps(y, q->high);
    __m512 quotient = _mm512_mul_ps(y, q->reciprocal);
    __m512 rest = _mm512_fnmadd_ps(quotient, q->scale, y);
    quotient = _mm512_fmadd_ps(rest, q->reciprocal, quotient);
    // Adding 1.5 * 2^23 rounds to even; the integer is then the lower bits.
    __m512 rounded = _mm512_add_ps(quotient, _mm512_set1_ps(0x1.8p23f));
    return _mm512_add_epi32(_mm512_castps_si512(rounded), q->zero_point);
}

AVX512 static void quantize(uint8_t out[], const float x[], int64_t n,
                            const struct msc_simd_bytes *q) {
    if (!q->is_corrected) {
        msc_simd_plain.quantize(out, x, n, q);
        return;
    }
    struct bytes b = load_bytes(q);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i y = to_integers(_mm512_loadu_ps(x + i), &b);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm512_cvtepi32_epi8(y));
    }
    if (i < n) {
        __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);
        __m512i y = to_integers(_mm512_maskz_loadu_ps(mask, x + i), &b);
        _mm512_mask_cvtepi32_storeu_epi8(out + i, mask, y);
    }
}

// ---- Sums -------------------------------------------------------------------------------------

AVX512 static inline __m512 finish_sums(__m512i sum, const struct msc_simd_finish *f, int64_t i,
                                        __mmask16 mask) {
    __m512i offset = _mm512_maskz_loadu_epi32(mask, f->offsets + i);
    __m512 y = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, offset));
    y = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, f->scales + i), y);
    y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, f->bias + i));
    y = _mm512_max_ps(_mm512_set1_ps(f->low), y);
    return _mm512_min_ps(_mm512_set1_ps(f->high), y);
}

AVX512 static inline __m512 finish_16(const struct msc_simd_finish *f, int64_t i, __mmask16 mask) {
    return finish_sums(_mm512_maskz_loadu_epi32(mask, f->sums + i), f, i, mask);
}

AVX512 static void finish(float out[], const struct msc_simd_finish *f, int64_t n) {
    const struct msc_simd_finish own = *f;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm512_storeu_ps(out + i, finish_16(&own, i, 0xffff));
    }
    if (i < n) {
        __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);
        _mm512_mask_storeu_ps(out + i, mask, finish_16(&own, i, mask));
    }
}

// ---- Depthwise --------------------------------------------------------------------------------

// Bytes of four taps are interleaved, so that one instruction multiplies and adds up those of 16
// elements. Interleaving works inside 128 bits: of block's elements, vector i has 4 * i ... 4 * i + 3
// of every 16.
enum { BLOCK = MSC_SIMD_BLOCK, TAPS = MSC_SIMD_TAPS };

static void pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                      int64_t period) {
    int8_t *to = packed;
    for (int64_t block = 0; block < period; block += BLOCK) {
        for (int tap = 0; tap < n_taps; tap += TAPS) {
            for (int i = 0; i < 4; i++) {
                for (int k = 0; k < 16; k++) {
                    int64_t channel = (block + k / 4 * 16 + i * 4 + k % 4) % n_channels;
                    for (int t = tap; t < tap + TAPS; t++) {
                        *to++ = t < n_taps ? weights[channel * n_taps + t] : (int8_t)0;
                    }
                }
            }
        }
    }
}

struct sums {
    __m512i part[4];
};

AVX512 static inline __m512i load_tap(const struct msc_simd_taps *t, int tap, int64_t at,
                                      __mmask64 mask, __m512i flip) {
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, t->taps[tap] + at), flip);
}

AVX512 static inline struct sums add_four(struct sums s, const struct msc_simd_taps *t, int tap,
                                          int64_t at, __mmask64 mask, __m512i flip,
                                          const int8_t *weights) {
    __m512i a = load_tap(t, tap, at, mask, flip), b = load_tap(t, tap + 1, at, mask, flip);
    __m512i c = load_tap(t, tap + 2, at, mask, flip), d = load_tap(t, tap + 3, at, mask, flip);
    __m512i ab[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};
    __m512i cd[2] = {_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)};
    for (int i = 0; i < 4; i++) {
        __m512i x = i % 2 == 0 ? _mm512_unpacklo_epi16(ab[i / 2], cd[i / 2])
                               : _mm512_unpackhi_epi16(ab[i / 2], cd[i / 2]);
        s.part[i] = _mm512_dpbusd_epi32(s.part[i], x, _mm512_loadu_si512(weights + i * BLOCK));
    }
    return s;
}

// The sums of a block, in order.
AVX512 static inline struct sums add_block(const struct msc_simd_taps *t, int64_t at,
                                           __mmask64 mask, const int8_t *weights) {
    __m512i flip = _mm512_set1_epi8((char)t->flip);
    struct sums s = {{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                      _mm512_setzero_si512()}};
    for (int tap = 0; tap < t->n_taps; tap += TAPS) {
        s = add_four(s, t, tap, at, mask, flip, weights + tap * BLOCK);
    }
    __m512i a = _mm512_shuffle_i32x4(s.part[0], s.part[1], 0x44);
    __m512i b = _mm512_shuffle_i32x4(s.part[0], s.part[1], 0xee);
    __m512i c = _mm512_shuffle_i32x4(s.part[2], s.part[3], 0x44);
    __m512i d = _mm512_shuffle_i32x4(s.part[2], s.part[3], 0xee);
    return (struct sums){{_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                          _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)}};
}

AVX512 static inline void store_block(int32_t sums[], struct sums s, __mmask64 mask) {
    for (int k = 0; k < 4; k++) {
        _mm512_mask_storeu_epi32(sums + 16 * k, (__mmask16)(mask >> 16 * k), s.part[k]);
    }
}

AVX512 static inline __m512i quantize_block(struct sums s, const struct msc_simd_finish *f,
                                            int64_t at, __mmask64 mask, const struct bytes *b) {
    __m128i y[4];
    for (int k = 0; k < 4; k++) {
        __m512 x = finish_sums(s.part[k], f, at + 16 * k, (__mmask16)(mask >> 16 * k));
        y[k] = _mm512_cvtepi32_epi8(to_integers(x, b));
    }
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(y[0]), y[1], 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(y[2]), y[3], 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static const __mmask64 all = ~(__mmask64)0;

static inline const int8_t *block_weights(const struct msc_simd_taps *t, int64_t at) {
    return (const int8_t *)t->weights + at * ((t->n_taps + TAPS - 1) / TAPS * TAPS);
}

AVX512 static void add_run(int32_t sums[], const struct msc_simd_taps *t, int64_t first) {
    int64_t i = 0, at = 0;
    for (; i + BLOCK <= t->n; i += BLOCK) {
        store_block(sums + i, add_block(t, first + i, all, block_weights(t, at)), all);
        at = at + BLOCK < t->period ? at + BLOCK : 0;
    }
    if (i < t->n) {
        __mmask64 mask = ((__mmask64)1 << (t->n - i)) - 1;
        store_block(sums + i, add_block(t, first + i, mask, block_weights(t, at)), mask);
    }
}

AVX512 static void add_taps(int32_t sums[], const struct msc_simd_taps *t) {
    const struct msc_simd_taps own = *t;
    for (int64_t run = 0; run < own.n_runs; run++) {
        add_run(sums + run * own.n, &own, run * own.step);
    }
}

AVX512 static void quantize_run(uint8_t out[], const struct msc_simd_taps *t, int64_t first,
                                const struct msc_simd_finish *f, const struct bytes *b) {
    int64_t i = 0, at = 0;
    for (; i + BLOCK <= t->n; i += BLOCK) {
        struct sums s = add_block(t, first + i, all, block_weights(t, at));
        _mm512_storeu_si512(out + i, quantize_block(s, f, at, all, b));
        at = at + BLOCK < t->period ? at + BLOCK : 0;
    }
    if (i < t->n) {
        __mmask64 mask = ((__mmask64)1 << (t->n - i)) - 1;
        struct sums s = add_block(t, first + i, mask, block_weights(t, at));
        _mm512_mask_storeu_epi8(out + i, mask, quantize_block(s, f, at, mask, b));
    }
}

AVX512 static void add_taps_quantize(uint8_t out[], const struct msc_simd_taps *t,
                                     const struct msc_simd_finish *f,
                                     const struct msc_simd_bytes *q) {
    const struct msc_simd_taps own = *t;
    const struct msc_simd_finish finish_own = *f;
    struct bytes b = load_bytes(q);
    for (int64_t run = 0; run < own.n_runs; run++) {
        quantize_run(out + run * own.n, &own, run * own.step, &finish_own, &b);
    }
}

// ---- Pooling ----------------------------------------------------------------------------------

AVX512 static void largest(uint8_t out[], const uint8_t x[], const int64_t offsets[],
                           int64_t n_offsets, int64_t n, uint8_t flip) {
    __m512i flips = _mm512_set1_epi8((char)flip);
    for (int64_t i = 0; i < n; i += BLOCK) {
        __mmask64 mask = n - i < BLOCK ? ((__mmask64)1 << (n - i)) - 1 : all;
        __m512i most = _mm512_setzero_si512();
        for (int64_t k = 0; k < n_offsets; k++) {
            __m512i value = _mm512_maskz_loadu_epi8(mask, x + offsets[k] + i);
            most = _mm512_max_epu8(most, _mm512_xor_si512(value, flips));
        }
        _mm512_mask_storeu_epi8(out + i, mask, _mm512_xor_si512(most, flips));
    }
}

// ---- Chains -----------------------------------------------------------------------------------

// A tile of vectors goes through all links; the last, of one vector, may be a part of it.
enum { LANES = 16, TILE = 4 };

#define INLINE static inline __attribute__((always_inline))

AVX512 INLINE __m512 load_part(const float *array, int64_t i, __mmask16 mask) {
    return mask == 0xffff ? _mm512_loadu_ps(array + i) : _mm512_maskz_loadu_ps(mask, array + i);
}

AVX512 INLINE void store_part(float *array, __m512 y, __mmask16 mask) {
    if (mask == 0xffff) {
        _mm512_storeu_ps(array, y);
    } else {
        _mm512_mask_storeu_ps(array, mask, y);
    }
}

AVX512 INLINE void store_bytes(uint8_t *array, __m128i bytes, __mmask16 mask) {
    if (mask == 0xffff) {
        _mm_storeu_si128((__m128i *)(void *)array, bytes);
    } else {
        _mm_mask_storeu_epi8(array, mask, bytes);
    }
}

AVX512 INLINE __m512 clip(__m512 y, __m512 low, __m512 high) {
    return _mm512_min_ps(high, _mm512_max_ps(low, y));
}

AVX512 INLINE __m512 hard_swish(__m512 x) {
    __m512 y = _mm512_mul_ps(_mm512_set1_ps(1.0f / 6.0f), x);
    y = _mm512_add_ps(y, _mm512_set1_ps(0.5f));
    return _mm512_mul_ps(x, clip(y, _mm512_setzero_ps(), _mm512_set1_ps(1.0f)));
}

static struct msc_simd_finish finish_of(const struct msc_simd_link *link,
                                        const float *const *arrays) {
    return (struct msc_simd_finish){
        .sums = (const int32_t *)(const void *)arrays[link->operands[0]],
        .scales = arrays[link->operands[1]],
        .bias = arrays[link->operands[2]],
        .offsets = (const int32_t *)(const void *)arrays[link->operands[3]],
        .low = link->p[0],
        .high = link->p[1]};
}

// The first link.
AVX512 INLINE void begin_tile(__m512 y[], int n, const struct msc_simd_link *link,
                              const struct msc_simd_run *run, int64_t i, __mmask16 mask) {
    const float *const *arrays = run->arrays;
    if (link->op == MSC_SIMD_LOAD) {
        for (int k = 0; k < n; k++) {
            y[k] = load_part(arrays[link->operands[0]], i + LANES * k, mask);
        }
        return;
    }
    const struct msc_simd_finish f = finish_of(link, arrays);
    for (int k = 0; k < n; k++) {
        y[k] = finish_16(&f, i + LANES * k, mask);
    }
}

#define EACH(expression)                                                                           \
    for (int k = 0; k < n; k++) {                                                                  \
        y[k] = (expression);                                                                       \
    }                                                                                              \
    break

AVX512 INLINE void run_link(__m512 y[], __m512 saved[], int n, const struct msc_simd_link *link,
                            const float *const *arrays, int64_t i, __mmask16 mask) {
    const float *array = arrays[link->operands[0]];
    __m512 p = _mm512_set1_ps(link->p[0]), p1 = _mm512_set1_ps(link->p[1]);
    switch (link->op) {
    case MSC_SIMD_LOAD:
    case MSC_SIMD_FINISH:
        break;
    case MSC_SIMD_SAVE:
        for (int k = 0; k < n; k++) {
            saved[k] = y[k];
        }
        break;
    case MSC_SIMD_ADD:
        EACH(_mm512_add_ps(y[k], load_part(array, i + LANES * k, mask)));
    case MSC_SIMD_SUBTRACT:
        EACH(_mm512_sub_ps(y[k], load_part(array, i + LANES * k, mask)));
    case MSC_SIMD_MULTIPLY:
        EACH(_mm512_mul_ps(y[k], load_part(array, i + LANES * k, mask)));
    case MSC_SIMD_DIVIDE:
        EACH(_mm512_div_ps(y[k], load_part(array, i + LANES * k, mask)));
    case MSC_SIMD_ADD_NUMBER:
        EACH(_mm512_add_ps(y[k], p));
    case MSC_SIMD_SUBTRACT_NUMBER:
        EACH(_mm512_sub_ps(y[k], p));
    case MSC_SIMD_MULTIPLY_NUMBER:
        EACH(_mm512_mul_ps(y[k], p));
    case MSC_SIMD_DIVIDE_NUMBER:
        EACH(_mm512_div_ps(y[k], p));
    case MSC_SIMD_ADD_SAVED:
        EACH(_mm512_add_ps(y[k], saved[k]));
    case MSC_SIMD_MULTIPLY_SAVED:
        EACH(_mm512_mul_ps(y[k], saved[k]));
    case MSC_SIMD_RELU:
        EACH(_mm512_max_ps(_mm512_setzero_ps(), y[k]));
    case MSC_SIMD_CLIP:
        EACH(clip(y[k], p, p1));
    case MSC_SIMD_HARD_SWISH:
        EACH(hard_swish(y[k]));
    }
}

AVX512 INLINE void run_tile(int n, const struct msc_simd_chain *chain,
                            const struct msc_simd_run *run, const struct bytes *b, int64_t i,
                            __mmask16 mask) {
    __m512 y[TILE], saved[TILE];
    begin_tile(y, n, &chain->links[0], run, i, mask);
    for (int k = 0; k < n; k++) {
        saved[k] = y[k];
    }
    for (int32_t l = 1; l < chain->n_links; l++) {
        run_link(y, saved, n, &chain->links[l], run->arrays, i, mask);
    }
    for (int k = 0; run->out && k < n; k++) {
        store_part(run->out + i + LANES * k, y[k], mask);
    }
    for (int k = 0; run->bytes && k < n; k++) {
        store_bytes(run->bytes + i + LANES * k, _mm512_cvtepi32_epi8(to_integers(y[k], b)), mask);
    }
}

// Sums to bytes and nothing else: most chains.
AVX512 static void finish_bytes(uint8_t out[], const struct msc_simd_finish *f, int64_t n,
                                const struct bytes *b) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m512i y = to_integers(finish_16(f, i, 0xffff), b);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm512_cvtepi32_epi8(y));
    }
    if (i < n) {
        __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);
        store_bytes(out + i, _mm512_cvtepi32_epi8(to_integers(finish_16(f, i, mask), b)), mask);
    }
}

AVX512 static void run_chain(const struct msc_simd_chain *chain, const struct msc_simd_run *run) {
    static const struct msc_simd_bytes none = {.scale = 1.0f};
    struct bytes b = load_bytes(run->bytes ? run->q : &none);
    if (chain->n_links == 1 && chain->links[0].op == MSC_SIMD_FINISH && !run->out) {
        struct msc_simd_finish f = finish_of(&chain->links[0], run->arrays);
        finish_bytes(run->bytes, &f, run->n, &b);
        return;
    }
    int64_t i = 0;
    for (; i + TILE * LANES <= run->n; i += TILE * LANES) {
        run_tile(TILE, chain, run, &b, i, 0xffff);
    }
    for (; i < run->n; i += LANES) {
        int64_t left = run->n - i;
        run_tile(1, chain, run, &b, i,
                 left < LANES ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff);
    }
}

// ---- Tables -----------------------------------------------------------------------------------

static const struct msc_simd avx512_vnni = {
    .quantize = quantize,
    .finish = finish,
    .pack_taps = pack_taps,
    .add_taps = add_taps,
    .add_taps_quantize = add_taps_quantize,
    .largest = largest,
    .run_chain = run_chain,
};

const struct msc_simd *msc_simd_best(void) {
    bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vnni");
    return has ? &avx512_vnni : &msc_simd_plain;
}
