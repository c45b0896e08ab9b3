// AVX-512 with the integer instructions of Cascade Lake, Zen 4 and later.
#include "kernels/cpu/simd_avx512.h"

#include "kernels/cpu/simd_chain_loops.h"
#include "kernels/cpu/simd_pool_loops.h"
#include "kernels/cpu/simd_softmax_loops.h"

// ---- Depthwise --------------------------------------------------------------------------------

// The bytes of four taps are interleaved, so that one instruction multiplies and adds four taps of
// 16 elements. Interleaving works within 128 bits: vector i has the elements 4 * i ... 4 * i + 3 of
// every 16 elements of a block.
enum { BLOCK = MSC_SIMD_BLOCK, TAPS = MSC_SIMD_TAPS };

static void avx512_pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
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

AVX512 static inline __m512i load_tap(const struct msc_simd_taps *t, int tap, int64_t at,
                                      __mmask64 mask, __m512i flip) {
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, t->taps[tap] + at), flip);
}

AVX512 static inline struct quad add_four(struct quad s, const struct msc_simd_taps *t, int tap,
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

// The sums of a block, with elements in sequential order.
AVX512 static inline struct quad avx512_add_block(const struct msc_simd_taps *t, int64_t at,
                                                  __mmask64 mask, const int8_t *weights) {
    __m512i flip = _mm512_set1_epi8((char)t->flip);
    struct quad s = {{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                      _mm512_setzero_si512()}};
    for (int tap = 0; tap < t->n_taps; tap += TAPS) {
        s = add_four(s, t, tap, at, mask, flip, weights + tap * BLOCK);
    }
    return transposed(s);
}

AVX512 static inline void store_block(int32_t sums[], struct quad s, __mmask64 mask) {
    for (int k = 0; k < 4; k++) {
        _mm512_mask_storeu_epi32(sums + 16 * k, (__mmask16)(mask >> 16 * k), s.part[k]);
    }
}

AVX512 static inline void store_quantized(uint8_t *out, struct quad s,
                                          const struct msc_simd_finish *f, int64_t at, int64_t n,
                                          const struct bytes *b) {
    vfloat y[4];
    for (int k = 0; k < 4; k++) {
        y[k] = finish_sums(s.part[k], f, at + 16 * k, vmask_of(n > 16 * k ? n - 16 * k : 0));
    }
    store_bytes_of(out, y, 4, n, b); // with AVX-512, n may be any number from 1 to 64
}

static const __mmask64 all = ~(__mmask64)0;

static inline const int8_t *avx512_block_weights(const struct msc_simd_taps *t, int64_t at) {
    return (const int8_t *)t->weights + at * ((t->n_taps + TAPS - 1) / TAPS * TAPS);
}

AVX512 static void add_run(int32_t sums[], const struct msc_simd_taps *t, int64_t first) {
    int64_t i = 0, at = 0;
    for (; i + BLOCK <= t->n; i += BLOCK) {
        store_block(sums + i, avx512_add_block(t, first + i, all, avx512_block_weights(t, at)),
                    all);
        at = at + BLOCK < t->period ? at + BLOCK : 0;
    }
    if (i < t->n) {
        __mmask64 mask = ((__mmask64)1 << (t->n - i)) - 1;
        store_block(sums + i, avx512_add_block(t, first + i, mask, avx512_block_weights(t, at)),
                    mask);
    }
}

AVX512 static void avx512_add_taps(int32_t sums[], const struct msc_simd_taps *t) {
    const struct msc_simd_taps own = *t;
    for (int64_t run = 0; run < own.n_runs; run++) {
        add_run(sums + run * own.n, &own, run * own.step);
    }
}

AVX512 static void avx512_quantize_run(uint8_t out[], const struct msc_simd_taps *t, int64_t first,
                                       const struct msc_simd_finish *f, const struct bytes *b) {
    int64_t i = 0, at = 0;
    for (; i + BLOCK <= t->n; i += BLOCK) {
        struct quad s = avx512_add_block(t, first + i, all, avx512_block_weights(t, at));
        store_quantized(out + i, s, f, at, BLOCK, b);
        at = at + BLOCK < t->period ? at + BLOCK : 0;
    }
    if (i < t->n) {
        __mmask64 mask = ((__mmask64)1 << (t->n - i)) - 1;
        struct quad s = avx512_add_block(t, first + i, mask, avx512_block_weights(t, at));
        store_quantized(out + i, s, f, at, t->n - i, b);
    }
}

AVX512 static void avx512_add_taps_quantize(uint8_t out[], const struct msc_simd_taps *t,
                                            const struct msc_simd_finish *f,
                                            const struct msc_simd_bytes *q) {
    const struct msc_simd_taps own = *t;
    const struct msc_simd_finish finish_own = *f;
    struct bytes b = load_bytes(q);
    for (int64_t run = 0; run < own.n_runs; run++) {
        avx512_quantize_run(out + run * own.n, &own, run * own.step, &finish_own, &b);
    }
}

// ---- Tables -----------------------------------------------------------------------------------

const struct msc_simd msc_simd__avx512 = {
    .isa = "avx512_vnni",
    .bytes = &msc_simd__avx512_bytes,
    .tiles = &msc_simd__tiles,
    .floats = &msc_simd__avx512_floats,
    .winograd = &msc_simd__avx512_winograd,
    .quantize = quantize,
    .finish = finish,
    .pack_taps = avx512_pack_taps,
    .add_taps = avx512_add_taps,
    .add_taps_quantize = avx512_add_taps_quantize,
    .add_columns = msc_simd__avx512_add_columns,
    .add_columns_quantize = msc_simd__avx512_add_columns_quantize,
    .largest = msc_simd__avx512_largest,
    .largest_float = largest_float,
    .mean = mean,
    .softmax = softmax,
    .log_softmax = log_softmax,
    .run_chain = run_chain,
    .transpose4 = msc_simd__avx512_transpose4,
    .transpose1 = msc_simd__avx512_transpose1,
};
