// Loops for AVX2 with FMA.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_chain_loops.h"
#include "kernels/cpu/simd_pool_loops.h"
#include "kernels/cpu/simd_softmax_loops.h"

// ---- Depthwise --------------------------------------------------------------------------------

// Two taps are multiplied and added at once: the bytes of both are interleaved and widened to
// int16. Weights are [block][pair of taps][element][2] as int16.
enum { BLOCK = MSC_SIMD_BLOCK, PAIR = 2, VECTORS = BLOCK / LANES };

static int64_t count_pairs(int n_taps) {
    return (n_taps + PAIR - 1) / PAIR;
}

static void pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                      int64_t period) {
    int16_t *to = packed;
    for (int64_t block = 0; block < period; block += BLOCK) {
        for (int tap = 0; tap < n_taps; tap += PAIR) {
            for (int64_t i = 0; i < BLOCK; i++) {
                const int8_t *from = weights + (block + i) % n_channels * n_taps;
                *to++ = from[tap];
                *to++ = tap + 1 < n_taps ? from[tap + 1] : (int16_t)0;
            }
        }
    }
}

// The sums of up to 16 elements. `weights` are those of the first pair.
VECTOR_INLINE vint add_vector(const struct msc_simd_taps *t, int64_t at, int64_t n,
                              const int16_t *weights) {
    vint sums = vi_set(0);
    for (int tap = 0; tap < t->n_taps; tap += PAIR, weights += PAIR * BLOCK) {
        __m128i a = load_16_bytes(t->taps[tap] + at, n, t->flip);
        __m128i b = load_16_bytes(t->taps[tap + 1] + at, n, t->flip);
        vint x = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                  _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b))};
        sums = vi_add(sums, vi_multiply_words(x, vi_load(weights)));
    }
    return sums;
}

// The weights of element `at` of a period, for the first pair of taps.
static const int16_t *element_weights(const struct msc_simd_taps *t, int64_t at) {
    const int16_t *block =
        (const int16_t *)t->weights + at / BLOCK * BLOCK * PAIR * count_pairs(t->n_taps);
    return block + at % BLOCK * PAIR;
}

VECTOR_TARGET static void add_taps(int32_t sums[], const struct msc_simd_taps *t) {
    const struct msc_simd_taps own = *t;
    for (int64_t run = 0; run < own.n_runs; run++, sums += own.n) {
        for (int64_t i = 0, at = 0; i < own.n; i += LANES) {
            int64_t n = own.n - i;
            vint s = add_vector(&own, run * own.step + i, n, element_weights(&own, at));
            vi_store_part(sums + i, vmask_of(n), s);
            at = at + LANES < own.period ? at + LANES : 0;
        }
    }
}

VECTOR_TARGET static void add_taps_quantize(uint8_t out[], const struct msc_simd_taps *t,
                                            const struct msc_simd_finish *f,
                                            const struct msc_simd_bytes *q) {
    const struct msc_simd_taps own = *t;
    const struct msc_simd_finish finish_own = *f;
    struct bytes b = load_bytes(q);
    for (int64_t run = 0; run < own.n_runs; run++, out += own.n) {
        for (int64_t i = 0, at = 0; i < own.n; i += LANES) {
            int64_t n = own.n - i;
            vint s = add_vector(&own, run * own.step + i, n, element_weights(&own, at));
            vfloat y = finish_sums(s, &finish_own, at, vmask_of(n));
            store_bytes_of(out + i, &y, 1, n < LANES ? n : LANES, &b);
            at = at + LANES < own.period ? at + LANES : 0;
        }
    }
}

// ---- Pooling of bytes -------------------------------------------------------------------------

enum { HALF_BLOCK = 32 };

VECTOR_INLINE void largest_window_of_bytes(uint8_t *out, const uint8_t *x,
                                           const struct msc_simd_pool *p, uint8_t flip) {
    const __m256i flips = _mm256_set1_epi8((char)flip);
    int64_t i = 0;
    for (; i + HALF_BLOCK <= p->channels; i += HALF_BLOCK) {
        __m256i most = _mm256_setzero_si256();
        for (int64_t t = 0; t < p->n_taps; t++) {
            most =
                _mm256_max_epu8(most, _mm256_xor_si256(vi_load_half(x + p->offsets[t] + i), flips));
        }
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_xor_si256(most, flips));
    }
    for (; i < p->channels; i++) {
        uint8_t most = 0;
        for (int64_t t = 0; t < p->n_taps; t++) {
            uint8_t value = x[p->offsets[t] + i] ^ flip;
            most = value > most ? value : most;
        }
        out[i] = most ^ flip;
    }
}

VECTOR_TARGET static void largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                                  uint8_t flip) {
    const struct msc_simd_pool own = *p;
    for (int64_t w = 0; w < own.n_windows; w++) {
        largest_window_of_bytes(out + w * own.channels, x + w * own.step, &own, flip);
    }
}

// ---- Table ------------------------------------------------------------------------------------

const struct msc_simd msc_simd__avx2 = {
    .isa = "avx2",
    .bytes = &msc_simd__avx2_bytes,
    .floats = &msc_simd__avx2_floats,
    .quantize = quantize,
    .finish = finish,
    .pack_taps = pack_taps,
    .add_taps = add_taps,
    .add_taps_quantize = add_taps_quantize,
    .largest = largest,
    .largest_float = largest_float,
    .mean = mean,
    .softmax = softmax,
    .log_softmax = log_softmax,
    .run_chain = run_chain,
    .transpose4 = msc_simd__avx2_transpose4,
    .transpose1 = msc_simd__avx2_transpose1,
};
