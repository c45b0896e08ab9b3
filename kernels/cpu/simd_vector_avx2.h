// Vectors of 16 lanes for AVX2 with FMA: two registers each. simd_vector.h describes the functions.
//
//     MSC_VECTOR_AVX2_VNNI    products of four bytes and of two int16 with AVX-VNNI. With
//                             MSC_VNNI_OF_AVX512 too, with the same instructions of AVX-512, for
//                             tests and measurements
#ifndef MSC_KERNELS_CPU_SIMD_VECTOR_AVX2_H
#define MSC_KERNELS_CPU_SIMD_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(MSC_VECTOR_AVX2_VNNI) && !defined(MSC_VNNI_OF_AVX512)
#define VECTOR_TARGET __attribute__((target("avx2,fma,avxvnni")))
#else
#define VECTOR_TARGET __attribute__((target("avx2,fma")))
#endif
#define VECTOR_INLINE VECTOR_TARGET static inline __attribute__((always_inline))

#define VECTOR_TILE 1  // vectors of channels in a tile of registers
#define VECTOR_CHAIN 4 // vectors that pass through a chain together

typedef struct {
    __m256 low, high;
} vfloat;
typedef struct {
    __m256i low, high;
} vint;
typedef vint vshort;
typedef int32_t vmask; // the number of lanes

VECTOR_INLINE vmask vmask_of(int64_t n) {
    return n < 16 ? (vmask)n : 16;
}

VECTOR_INLINE bool vmask_is_full(vmask mask) {
    return mask == 16;
}

// The lanes of a mask as integers: -1 in the first `mask` lanes, 0 in the others.
VECTOR_INLINE vint vmask_lanes(vmask mask) {
    const __m256i first = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i n = _mm256_set1_epi32(mask);
    return (vint){_mm256_cmpgt_epi32(n, first),
                  _mm256_cmpgt_epi32(_mm256_sub_epi32(n, _mm256_set1_epi32(8)), first)};
}

// ---- float32 ----------------------------------------------------------------------------------

VECTOR_INLINE vfloat vf_load(const float *from) {
    return (vfloat){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

VECTOR_INLINE vfloat vf_load_part(vfloat rest, vmask mask, const float *from) {
    if (vmask_is_full(mask)) {
        return vf_load(from);
    }
    vint lanes = vmask_lanes(mask);
    __m256 low = _mm256_maskload_ps(from, lanes.low);
    __m256 high = mask > 8 ? _mm256_maskload_ps(from + 8, lanes.high) : _mm256_setzero_ps();
    return (vfloat){_mm256_blendv_ps(rest.low, low, _mm256_castsi256_ps(lanes.low)),
                    _mm256_blendv_ps(rest.high, high, _mm256_castsi256_ps(lanes.high))};
}

VECTOR_INLINE void vf_store(float *to, vfloat x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
}

VECTOR_INLINE void vf_store_part(float *to, vmask mask, vfloat x) {
    if (vmask_is_full(mask)) {
        vf_store(to, x);
        return;
    }
    vint lanes = vmask_lanes(mask);
    _mm256_maskstore_ps(to, lanes.low, x.low);
    if (mask > 8) {
        _mm256_maskstore_ps(to + 8, lanes.high, x.high);
    }
}

VECTOR_INLINE vfloat vf_set(float x) {
    return (vfloat){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

VECTOR_INLINE vfloat vf_add(vfloat a, vfloat b) {
    return (vfloat){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

VECTOR_INLINE vfloat vf_subtract(vfloat a, vfloat b) {
    return (vfloat){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

VECTOR_INLINE vfloat vf_multiply(vfloat a, vfloat b) {
    return (vfloat){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

VECTOR_INLINE vfloat vf_divide(vfloat a, vfloat b) {
    return (vfloat){_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}

VECTOR_INLINE vfloat vf_multiply_add(vfloat a, vfloat b, vfloat c) {
    return (vfloat){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

VECTOR_INLINE vfloat vf_multiply_subtract_from(vfloat a, vfloat b, vfloat c) {
    return (vfloat){_mm256_fnmadd_ps(a.low, b.low, c.low),
                    _mm256_fnmadd_ps(a.high, b.high, c.high)};
}

VECTOR_INLINE vfloat vf_max(vfloat a, vfloat b) {
    return (vfloat){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

VECTOR_INLINE vfloat vf_min(vfloat a, vfloat b) {
    return (vfloat){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

VECTOR_INLINE bool vf_has_nan(vfloat x) {
    return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(x.low, x.low, _CMP_UNORD_Q),
                                           _mm256_cmp_ps(x.high, x.high, _CMP_UNORD_Q))) != 0;
}

VECTOR_INLINE float vf_largest(vfloat x) {
    __m256 y = _mm256_max_ps(x.low, x.high);
    __m128 z = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    z = _mm_max_ps(z, _mm_movehl_ps(z, z));
    return _mm_cvtss_f32(_mm_max_ss(z, _mm_movehdup_ps(z)));
}

// x * 2^n in half a vector. The power is split into two factors, so that the first product is
// normal and only the second one is rounded.
VECTOR_INLINE __m256 scale_half(__m256 x, __m256 n) {
    __m256i power = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(power, 1);
    __m256i bias = _mm256_set1_epi32(127), rest = _mm256_sub_epi32(power, half);
    x = _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(x,
                         _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

VECTOR_INLINE vfloat vf_scale(vfloat x, vfloat n) {
    return (vfloat){scale_half(x.low, n.low), scale_half(x.high, n.high)};
}

// ---- int32 ------------------------------------------------------------------------------------

VECTOR_INLINE __m256i vi_load_half(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

VECTOR_INLINE vint vi_load(const void *from) {
    return (vint){vi_load_half(from), vi_load_half((const char *)from + 32)};
}

VECTOR_INLINE vfloat vf_of_bits(vint x) {
    return (vfloat){_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high)};
}

VECTOR_INLINE vint vi_of_bits(vfloat x) {
    return (vint){_mm256_castps_si256(x.low), _mm256_castps_si256(x.high)};
}

VECTOR_INLINE void vi_store(void *to, vint x) {
    _mm256_storeu_si256((__m256i *)to, x.low);
    _mm256_storeu_si256((__m256i *)((char *)to + 32), x.high);
}

VECTOR_INLINE vint vi_load_part(vmask mask, const int32_t *from) {
    return vi_of_bits(vf_load_part(vf_set(0.0f), mask, (const float *)(const void *)from));
}

VECTOR_INLINE void vi_store_part(void *to, vmask mask, vint x) {
    vf_store_part(to, mask, vf_of_bits(x));
}

VECTOR_INLINE vint vi_set(int32_t x) {
    return (vint){_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}

VECTOR_INLINE vint vi_add(vint a, vint b) {
    return (vint){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

VECTOR_INLINE vint vi_subtract(vint a, vint b) {
    return (vint){_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

VECTOR_INLINE vint vi_multiply(vint a, vint b) {
    return (vint){_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)};
}

VECTOR_INLINE vint vi_twice(vint x) {
    return (vint){_mm256_slli_epi32(x.low, 1), _mm256_slli_epi32(x.high, 1)};
}

VECTOR_INLINE vint vi_four_times(vint x) {
    return (vint){_mm256_slli_epi32(x.low, 2), _mm256_slli_epi32(x.high, 2)};
}

VECTOR_INLINE vint vi_shift_right(vint x, int n) {
    return (vint){_mm256_srai_epi32(x.low, n), _mm256_srai_epi32(x.high, n)};
}

VECTOR_INLINE vfloat vf_of_ints(vint x) {
    return (vfloat){_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)};
}

VECTOR_INLINE vint vi_of_floats(vfloat x) {
    return (vint){_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)};
}

// ---- Bytes ------------------------------------------------------------------------------------

// Loads the first n of 16 bytes; the others are 0 before XOR with `flip`.
VECTOR_INLINE __m128i load_16_bytes(const uint8_t *from, int64_t n, uint8_t flip) {
    uint8_t part[16] = {0};
    if (n < 16) {
        memcpy(part, from, (size_t)n);
        from = part;
    }
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm_xor_si128(bytes, _mm_set1_epi8((char)flip));
}

VECTOR_INLINE __m256i load_32_bytes(const uint8_t *from, int64_t n, uint8_t flip) {
    if (n >= 32) {
        return _mm256_xor_si256(vi_load_half(from), _mm256_set1_epi8((char)flip));
    }
    __m128i low = load_16_bytes(from, n, flip), high = _mm_setzero_si128();
    if (n > 16) {
        high = load_16_bytes(from + 16, n - 16, flip);
    }
    return _mm256_set_m128i(high, low);
}

VECTOR_INLINE vshort vs_load_bytes(const uint8_t *from, int64_t n, uint8_t flip) {
    __m128i low = load_16_bytes(from, n < 16 ? n : 16, flip), high = _mm_setzero_si128();
    if (n > 16) {
        high = load_16_bytes(from + 16, n < 32 ? n - 16 : 16, flip);
    }
    return (vshort){_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high)};
}

VECTOR_INLINE void vs_store(int16_t *to, vshort x) {
    _mm256_storeu_si256((__m256i *)(void *)to, x.low);
    _mm256_storeu_si256((__m256i *)(void *)(to + 16), x.high);
}

VECTOR_INLINE vshort vs_add(vshort a, vshort b) {
    return (vshort){_mm256_add_epi16(a.low, b.low), _mm256_add_epi16(a.high, b.high)};
}

VECTOR_INLINE vshort vs_subtract(vshort a, vshort b) {
    return (vshort){_mm256_sub_epi16(a.low, b.low), _mm256_sub_epi16(a.high, b.high)};
}

VECTOR_INLINE vshort vs_twice(vshort x) {
    return (vshort){_mm256_slli_epi16(x.low, 1), _mm256_slli_epi16(x.high, 1)};
}

VECTOR_INLINE vshort vs_four_times(vshort x) {
    return (vshort){_mm256_slli_epi16(x.low, 2), _mm256_slli_epi16(x.high, 2)};
}

VECTOR_INLINE vint vi_load_bytes(const uint8_t *from, vmask mask, uint8_t flip) {
    __m128i bytes = load_16_bytes(from, mask, flip);
    return (vint){_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}

struct vlimits {
    __m256i shift, least, most, flip;
};

VECTOR_INLINE struct vlimits vlimits_of(int32_t zero_point, int32_t low, int32_t high,
                                        int32_t below) {
    return (struct vlimits){_mm256_set1_epi16((short)(zero_point - below)),
                            _mm256_set1_epi8((char)(low - below)),
                            _mm256_set1_epi8((char)(high - below)), _mm256_set1_epi8((char)below)};
}

VECTOR_INLINE void store_16_bytes(uint8_t *to, __m128i bytes, int64_t n) {
    if (n >= 16) {
        _mm_storeu_si128((__m128i *)(void *)to, bytes);
        return;
    }
    uint8_t part[16];
    _mm_storeu_si128((__m128i *)(void *)part, bytes);
    memcpy(to, part, (size_t)n);
}

VECTOR_INLINE __m256i shifted_words(vint x, const struct vlimits *limits) {
    return _mm256_adds_epi16(_mm256_packs_epi32(x.low, x.high), limits->shift);
}

// The bytes of two vectors. Packing works within 128 bits, so it leaves groups of four lanes in the
// order 0, 8, 16, 24, 4, 12, 20, 28.
VECTOR_INLINE __m256i packed_bytes_of_two(vint a, vint b, const struct vlimits *limits) {
    __m256i bytes = _mm256_packs_epi16(shifted_words(a, limits), shifted_words(b, limits));
    bytes = _mm256_min_epi8(_mm256_max_epi8(bytes, limits->least), limits->most);
    return _mm256_xor_si256(bytes, limits->flip);
}

VECTOR_INLINE __m256i bytes_of_two(vint a, vint b, const struct vlimits *limits) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(packed_bytes_of_two(a, b, limits), order);
}

VECTOR_INLINE void store_32_bytes(uint8_t *to, __m256i bytes, int64_t n) {
    if (n >= 32) {
        _mm256_storeu_si256((__m256i *)(void *)to, bytes);
        return;
    }
    store_16_bytes(to, _mm256_castsi256_si128(bytes), n);
    if (n > 16) {
        store_16_bytes(to + 16, _mm256_extracti128_si256(bytes, 1), n - 16);
    }
}

VECTOR_INLINE void vi_store_bytes(uint8_t *to, const vint x[], int n, int64_t n_lanes,
                                  const struct vlimits *limits) {
    for (int k = 0; k < n; k += 2, to += 32, n_lanes -= 32) {
        bool is_pair = k + 1 < n;
        __m256i bytes = bytes_of_two(x[k], x[is_pair ? k + 1 : k], limits);
        store_32_bytes(to, bytes, is_pair || n_lanes < 16 ? n_lanes : 16);
    }
}

VECTOR_INLINE void vi_store_lowest(uint8_t *to, vmask mask, vint x) {
    const __m256i lowest = _mm256_set1_epi32(0xff);
    __m256i words =
        _mm256_packus_epi32(_mm256_and_si256(x.low, lowest), _mm256_and_si256(x.high, lowest));
    __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    store_16_bytes(to, _mm_shuffle_epi32(bytes, _MM_SHUFFLE(3, 1, 2, 0)), mask);
}

// Makes the compiler keep x in registers here.
VECTOR_INLINE void vi_keep(vint *x) {
    __asm__("" : "+x"(x->low), "+x"(x->high));
}

// ---- Products ---------------------------------------------------------------------------------

// Products of bytes, uint8 with int8; neighbours are added and limited to int16.
VECTOR_INLINE vint vi_multiply_bytes(vint x, vint w) {
    return (vint){_mm256_maddubs_epi16(x.low, w.low), _mm256_maddubs_epi16(x.high, w.high)};
}

VECTOR_INLINE vint vi_add_words(vint a, vint b) {
    return (vint){_mm256_add_epi16(a.low, b.low), _mm256_add_epi16(a.high, b.high)};
}

// Products of int16; neighbours are added as int32.
VECTOR_INLINE vint vi_multiply_words(vint x, vint w) {
    return (vint){_mm256_madd_epi16(x.low, w.low), _mm256_madd_epi16(x.high, w.high)};
}

VECTOR_INLINE vint vi_and(vint a, vint b) {
    return (vint){_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}

// The upper byte of each uint16.
VECTOR_INLINE vint vi_upper_bytes(vint x) {
    return (vint){_mm256_srli_epi16(x.low, 8), _mm256_srli_epi16(x.high, 8)};
}

#ifdef MSC_VECTOR_AVX2_VNNI
#ifdef MSC_VNNI_OF_AVX512
// An assembler chooses the encoding of AVX-512, and the compiler uses nothing else of AVX-512.
VECTOR_INLINE __m256i add_dot_of_bytes(__m256i sum, __m256i x, __m256i w) {
    __asm__("vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "xm"(w));
    return sum;
}

VECTOR_INLINE __m256i add_dot_of_words(__m256i sum, __m256i x, __m256i w) {
    __asm__("vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(x), "xm"(w));
    return sum;
}
#else
#define add_dot_of_bytes _mm256_dpbusd_avx_epi32
#define add_dot_of_words _mm256_dpwssd_avx_epi32
#endif

VECTOR_INLINE vint vi_add_pairs(vint sum, vint x, vint w) {
    return (vint){add_dot_of_words(sum.low, x.low, w.low),
                  add_dot_of_words(sum.high, x.high, w.high)};
}

VECTOR_INLINE vint vi_add_products(vint sum, vint x, vint w) {
    return (vint){add_dot_of_bytes(sum.low, x.low, w.low),
                  add_dot_of_bytes(sum.high, x.high, w.high)};
}
#else
VECTOR_INLINE vint vi_add_pairs(vint sum, vint x, vint w) {
    return (vint){_mm256_add_epi32(sum.low, _mm256_madd_epi16(x.low, w.low)),
                  _mm256_add_epi32(sum.high, _mm256_madd_epi16(x.high, w.high))};
}

// Bytes 0 and 2 of each group as int16 or, with a shift of 0, bytes 1 and 3.
VECTOR_INLINE vint widened(vint group, int shift) {
    return (vint){_mm256_srai_epi16(_mm256_slli_epi16(group.low, shift), 8),
                  _mm256_srai_epi16(_mm256_slli_epi16(group.high, shift), 8)};
}

VECTOR_INLINE vint vi_add_products(vint sum, vint x, vint w) {
    sum = vi_add_pairs(sum, vi_and(x, vi_set(0xff00ff)), widened(w, 8));
    return vi_add_pairs(sum, vi_upper_bytes(x), widened(w, 0));
}
#endif

#endif
