// Pooling windows over elements with contiguous channels.
#include "kernels/cpu/simd_avx512.h"

#include <math.h>

enum { TILE = 4, BLOCK = MSC_SIMD_BLOCK };

// ---- Bytes ------------------------------------------------------------------------------------

AVX512 INLINE void largest_block(uint8_t *out, const uint8_t *x, const struct msc_simd_pool *p,
                                 __m512i flips, __mmask64 mask) {
    __m512i most = _mm512_setzero_si512();
    for (int64_t t = 0; t < p->n_taps; t++) {
        __m512i value = _mm512_maskz_loadu_epi8(mask, x + p->offsets[t]);
        most = _mm512_max_epu8(most, _mm512_xor_si512(value, flips));
    }
    _mm512_mask_storeu_epi8(out, mask, _mm512_xor_si512(most, flips));
}

AVX512 void msc_simd__largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                              uint8_t flip) {
    const struct msc_simd_pool own = *p;
    __m512i flips = _mm512_set1_epi8((char)flip);
    __mmask64 rest = ((__mmask64)1 << own.channels % BLOCK) - 1;
    for (int64_t w = 0; w < own.n_windows; w++) {
        int64_t i = 0;
        for (; i + BLOCK <= own.channels; i += BLOCK) {
            largest_block(out + i, x + i, &own, flips, ~(__mmask64)0);
        }
        if (rest != 0) {
            largest_block(out + i, x + i, &own, flips, rest);
        }
        out += own.channels;
        x += own.step;
    }
}

// ---- Floats -----------------------------------------------------------------------------------

AVX512 INLINE __m512 load(const float *x, __mmask16 mask) {
    return mask == 0xffff ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(mask, x);
}

AVX512 INLINE void avx512_pool_store(float *out, __m512 y, __mmask16 mask) {
    if (mask == 0xffff) {
        _mm512_storeu_ps(out, y);
    } else {
        _mm512_mask_storeu_ps(out, mask, y);
    }
}

// Computes the largest taps of a tile. False if a tap may be NaN: the sum of taps is tested, so
// opposite infinities also give false.
AVX512 INLINE bool largest_tile(float *out, const float *x, const struct msc_simd_pool *p, int n,
                                __mmask16 mask) {
    __m512 most[TILE], sums[TILE];
    for (int k = 0; k < n; k++) {
        most[k] = sums[k] = load(x + p->offsets[0] + LANES * k, mask);
    }
    for (int64_t t = 1; t < p->n_taps; t++) {
        for (int k = 0; k < n; k++) {
            __m512 value = load(x + p->offsets[t] + LANES * k, mask);
            most[k] = _mm512_max_ps(value, most[k]); // keeps the first of +0 and -0
            sums[k] = _mm512_add_ps(sums[k], value);
        }
    }
    __mmask16 is_nan = 0;
    for (int k = 0; k < n; k++) {
        avx512_pool_store(out + LANES * k, most[k], mask);
        is_nan |= _mm512_cmp_ps_mask(sums[k], sums[k], _CMP_UNORD_Q);
    }
    return is_nan == 0;
}

AVX512 INLINE bool largest_window(float *out, const float *x, const struct msc_simd_pool *p,
                                  __mmask16 rest) {
    int64_t i = 0;
    bool is_done = true;
    for (; i + TILE * LANES <= p->channels; i += TILE * LANES) {
        is_done &= largest_tile(out + i, x + i, p, TILE, 0xffff);
    }
    for (; i + LANES <= p->channels; i += LANES) {
        is_done &= largest_tile(out + i, x + i, p, 1, 0xffff);
    }
    return rest == 0 ? is_done : largest_tile(out + i, x + i, p, 1, rest) && is_done;
}

AVX512 void msc_simd__largest_float(float out[], const float x[], const struct msc_simd_pool *p) {
    const struct msc_simd_pool own = *p;
    struct msc_simd_pool one = *p;
    one.n_windows = 1;
    for (int64_t w = 0; w < own.n_windows; w++) {
        if (!largest_window(out, x, &own, (__mmask16)((1u << own.channels % LANES) - 1))) {
            msc_simd_plain.largest_float(out, x, &one);
        }
        out += own.channels;
        x += own.step;
    }
}

// Computes the means of a tile. If `factor` is not 0, multiplies by it instead of dividing: the
// divisor is then a power of two, so both give the same bits.
AVX512 INLINE void mean_tile(float *out, const float *x, const struct msc_simd_pool *p, int n,
                             __mmask16 mask, float divisor, float factor) {
    __m512 sums[TILE];
    for (int k = 0; k < n; k++) {
        sums[k] = _mm512_setzero_ps();
    }
    for (int64_t t = 0; t < p->n_taps; t++) {
        for (int k = 0; k < n; k++) {
            sums[k] = _mm512_add_ps(sums[k], load(x + p->offsets[t] + LANES * k, mask));
        }
    }
    for (int k = 0; k < n; k++) {
        sums[k] = factor != 0.0f ? _mm512_mul_ps(sums[k], _mm512_set1_ps(factor))
                                 : _mm512_div_ps(sums[k], _mm512_set1_ps(divisor));
        avx512_pool_store(out + LANES * k, sums[k], mask);
    }
}

AVX512 void msc_simd__mean(float out[], const float x[], const struct msc_simd_pool *p,
                           float divisor) {
    const struct msc_simd_pool own = *p;
    int exponent;
    float factor = frexpf(divisor, &exponent) == 0.5f ? 1.0f / divisor : 0.0f;
    __mmask16 rest = (__mmask16)((1u << own.channels % LANES) - 1);
    for (int64_t w = 0; w < own.n_windows; w++) {
        int64_t i = 0;
        for (; i + TILE * LANES <= own.channels; i += TILE * LANES) {
            mean_tile(out + i, x + i, &own, TILE, 0xffff, divisor, factor);
        }
        for (; i + LANES <= own.channels; i += LANES) {
            mean_tile(out + i, x + i, &own, 1, 0xffff, divisor, factor);
        }
        if (rest != 0) {
            mean_tile(out + i, x + i, &own, 1, rest, divisor, factor);
        }
        out += own.channels;
        x += own.step;
    }
}
