// Loops for AVX2 with FMA.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_chain_loops.h"

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

VECTOR_INLINE __m128i load_tap(const struct msc_simd_taps *t, int tap, int64_t at, int64_t n) {
    uint8_t part[LANES] = {0};
    const uint8_t *from = t->taps[tap] + at;
    if (n < LANES) {
        memcpy(part, from, (size_t)n);
        from = part;
    }
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm_xor_si128(bytes, _mm_set1_epi8((char)t->flip));
}

// The sums of up to 16 elements. `weights` are those of the first pair.
VECTOR_INLINE vint add_vector(const struct msc_simd_taps *t, int64_t at, int64_t n,
                              const int16_t *weights) {
    vint sums = vi_set(0);
    for (int tap = 0; tap < t->n_taps; tap += PAIR, weights += PAIR * BLOCK) {
        __m128i a = load_tap(t, tap, at, n), b = load_tap(t, tap + 1, at, n);
        vint x = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                  _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b))};
        sums = vi_add_products(sums, x, vi_load(weights));
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
            store_bytes_of(out + i, &y, 1, n, &b);
            at = at + LANES < own.period ? at + LANES : 0;
        }
    }
}

const struct msc_simd msc_simd__avx2 = {
    .isa = "avx2",
    .bytes = &msc_simd__avx2_bytes,
    .floats = &msc_simd__avx2_floats,
    .quantize = quantize,
    .finish = finish,
    .pack_taps = pack_taps,
    .add_taps = add_taps,
    .add_taps_quantize = add_taps_quantize,
    .largest = msc_simd__plain_largest,
    .largest_float = msc_simd__plain_largest_float,
    .mean = msc_simd__plain_mean,
    .softmax = msc_simd__plain_softmax,
    .log_softmax = msc_simd__plain_log_softmax,
    .run_chain = run_chain,
    .transpose4 = msc_simd__avx2_transpose4,
    .transpose1 = msc_simd__avx2_transpose1,
};
