// Pooling windows of bytes over elements with contiguous channels.
#include "kernels/cpu/simd_avx512.h"

enum { BLOCK = MSC_SIMD_BLOCK };

AVX512 INLINE void largest_block(uint8_t *out, const uint8_t *x, const struct msc_simd_pool *p,
                                 __m512i flips, __mmask64 mask) {
    __m512i most = _mm512_setzero_si512();
    for (int64_t t = 0; t < p->n_taps; t++) {
        __m512i value = _mm512_maskz_loadu_epi8(mask, x + p->offsets[t]);
        most = _mm512_max_epu8(most, _mm512_xor_si512(value, flips));
    }
    _mm512_mask_storeu_epi8(out, mask, _mm512_xor_si512(most, flips));
}

AVX512 void msc_simd__avx512_largest(uint8_t out[], const uint8_t x[],
                                     const struct msc_simd_pool *p, uint8_t flip) {
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
