// AVX-512 of Skylake's kind and later.
#include "kernels/cpu/simd.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

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

AVX512 static inline __m512 finish_16(const struct msc_simd_finish *f, int64_t i, __mmask16 mask) {
    __m512i sum = _mm512_maskz_loadu_epi32(mask, f->sums + i);
    __m512i offset = _mm512_maskz_loadu_epi32(mask, f->offsets + i);
    __m512 y = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, offset));
    y = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, f->scales + i), y);
    y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, f->bias + i));
    y = _mm512_max_ps(_mm512_set1_ps(f->low), y);
    return _mm512_min_ps(_mm512_set1_ps(f->high), y);
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

AVX512 static void finish_quantize(uint8_t out[], const struct msc_simd_finish *f, int64_t n,
                                   const struct msc_simd_bytes *q) {
    if (!q->is_corrected) {
        msc_simd_plain.finish_quantize(out, f, n, q);
        return;
    }
    const struct msc_simd_finish own = *f;
    struct bytes b = load_bytes(q);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i y = to_integers(finish_16(&own, i, 0xffff), &b);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm512_cvtepi32_epi8(y));
    }
    if (i < n) {
        __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);
        __m512i y = to_integers(finish_16(&own, i, mask), &b);
        _mm512_mask_cvtepi32_storeu_epi8(out + i, mask, y);
    }
}

static const struct msc_simd avx512 = {
    .quantize = quantize,
    .finish = finish,
    .finish_quantize = finish_quantize,
};

const struct msc_simd *msc_simd_best(void) {
    bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return has ? &avx512 : &msc_simd_plain;
}
