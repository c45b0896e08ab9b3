// Softmax and its logarithm along a row.
#include "kernels/cpu/simd_avx512.h"

#include "graph/reference/numeric.h"

#include <math.h>

enum { LANES = 16 };

// Gives the same bits as msc_expf for numbers up to 0 and for NaN. The product with the first part
// of ln 2 is exact, so one instruction may multiply and subtract. The final factor is a power of
// two, so it rounds the polynomial only once, as msc_expf does.
AVX512 INLINE __m512 exp_16(__m512 x) {
    const __m512 rounder = _mm512_set1_ps(0x1.8p23f);
    // If an operand of max is NaN, the result is the second operand.
    x = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);
    __m512 shifted = _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), rounder);
    __m512 n = _mm512_sub_ps(shifted, rounder);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_sub_ps(r, _mm512_mul_ps(n, _mm512_set1_ps(-2.12194440e-4f)));
    static const float coefficients[] = {8.368716e-3f, 4.1668292e-2f, 1.6666521e-1f, 4.9999994e-1f};
    __m512 p = _mm512_set1_ps(1.3818697e-3f);
    UNROLL for (int i = 0; i < 4; i++) {
        p = _mm512_add_ps(_mm512_mul_ps(p, r), _mm512_set1_ps(coefficients[i]));
    }
    p = _mm512_add_ps(_mm512_mul_ps(p, _mm512_mul_ps(r, r)), r);
    return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), n);
}

static inline __mmask16 avx512_softmax_mask_of(int64_t n_left) {
    return n_left < LANES ? (__mmask16)((1u << n_left) - 1) : (__mmask16)0xffff;
}

// The largest number, ignoring NaN.
AVX512 INLINE float max_of(const float x[], int64_t n) {
    enum { TILE = 4 };
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 max[TILE] = {least, least, least, least};
    int64_t i = 0;
    for (; i + TILE * LANES <= n; i += TILE * LANES) {
        UNROLL for (int k = 0; k < TILE; k++) {
            max[k] = _mm512_max_ps(_mm512_loadu_ps(x + i + k * LANES), max[k]);
        }
    }
    for (; i < n; i += LANES) {
        max[0] = _mm512_max_ps(_mm512_mask_loadu_ps(least, avx512_softmax_mask_of(n - i), x + i),
                               max[0]);
    }
    max[0] = _mm512_max_ps(_mm512_max_ps(max[0], max[1]), _mm512_max_ps(max[2], max[3]));
    return _mm512_reduce_max_ps(max[0]);
}

// Writes exp(x - max), or only x - max for the logarithm. Returns the sum of the exponentials. The
// elements that do not fill a vector are added one by one first, then the lanes of the vector sum.
AVX512 INLINE float make_powers(float out[], const float x[], int64_t n, bool is_log) {
    const __m512 max = _mm512_set1_ps(max_of(x, n));
    __m512 sum = _mm512_setzero_ps();
    float lanes[LANES], rest[LANES], total = 0.0f;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m512 y = _mm512_sub_ps(_mm512_loadu_ps(x + i), max), power = exp_16(y);
        _mm512_storeu_ps(out + i, is_log ? y : power);
        sum = _mm512_add_ps(sum, power);
    }
    if (i < n) {
        __mmask16 mask = avx512_softmax_mask_of(n - i);
        __m512 y = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), max), power = exp_16(y);
        _mm512_mask_storeu_ps(out + i, mask, is_log ? y : power);
        _mm512_storeu_ps(rest, power);
    }
    for (int64_t k = 0; k < n - i; k++) {
        total += rest[k];
    }
    _mm512_storeu_ps(lanes, sum);
    UNROLL for (int k = 0; k < LANES; k++) {
        total += lanes[k];
    }
    return total;
}

AVX512 void msc_simd__softmax(float out[], const float x[], int64_t n) {
    const __m512 total = _mm512_set1_ps(make_powers(out, x, n, false));
    for (int64_t i = 0; i < n; i += LANES) {
        __mmask16 mask = avx512_softmax_mask_of(n - i);
        __m512 y = _mm512_maskz_loadu_ps(mask, out + i);
        _mm512_mask_storeu_ps(out + i, mask, _mm512_div_ps(y, total));
    }
}

AVX512 void msc_simd__log_softmax(float out[], const float x[], int64_t n) {
    const __m512 log = _mm512_set1_ps(msc_logf(make_powers(out, x, n, true)));
    for (int64_t i = 0; i < n; i += LANES) {
        __mmask16 mask = avx512_softmax_mask_of(n - i);
        __m512 y = _mm512_maskz_loadu_ps(mask, out + i);
        _mm512_mask_storeu_ps(out + i, mask, _mm512_sub_ps(y, log));
    }
}
