// Loops for AVX2 with FMA.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_chain_loops.h"
#include "kernels/cpu/simd_pool_loops.h"
#include "kernels/cpu/simd_softmax_loops.h"

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

// ---- Tables -----------------------------------------------------------------------------------

// Functions that begin with `prefix` differ by the instructions that multiply bytes.
#define TABLE(name, prefix)                                                                        \
    {                                                                                              \
        .isa = (name), .bytes = &prefix##_bytes, .winograd = &prefix##_winograd,                   \
        .floats = &msc_simd__avx2_floats, .quantize = quantize, .finish = finish,                  \
        .pack_taps = prefix##_pack_taps, .add_taps = prefix##_add_taps,                            \
        .add_taps_quantize = prefix##_add_taps_quantize, .add_columns = prefix##_add_columns,      \
        .add_columns_quantize = prefix##_add_columns_quantize, .largest = largest,                 \
        .largest_float = largest_float, .mean = mean, .softmax = softmax,                          \
        .log_softmax = log_softmax, .run_chain = run_chain,                                        \
        .transpose4 = msc_simd__avx2_transpose4, .transpose1 = msc_simd__avx2_transpose1,          \
    }

const struct msc_simd msc_simd__avx2 = TABLE("avx2", msc_simd__avx2);
const struct msc_simd msc_simd__avx2_vnni = TABLE("avx2_vnni", msc_simd__avx2_vnni);
