// Vectors of 16 lanes for AVX-512 with VNNI: one register each. simd_vector.h describes the
// functions.
#ifndef MSC_KERNELS_CPU_SIMD_VECTOR_AVX512_H
#define MSC_KERNELS_CPU_SIMD_VECTOR_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VECTOR_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define VECTOR_INLINE VECTOR_TARGET static inline __attribute__((always_inline))

#define VECTOR_TILE 4  // vectors of channels in a tile of registers
#define VECTOR_CHAIN 8 // vectors that pass through a chain together

typedef __m512 vfloat;
typedef __m512i vint, vshort;
typedef __mmask16 vmask;

VECTOR_INLINE vmask vmask_of(int64_t n) {
    return n < 16 ? (vmask)((1u << n) - 1) : (vmask)0xffff;
}

VECTOR_INLINE bool vmask_is_full(vmask mask) {
    return mask == 0xffff;
}

// ---- float32 ----------------------------------------------------------------------------------

VECTOR_INLINE vfloat vf_load(const float *from) {
    return _mm512_loadu_ps(from);
}

VECTOR_INLINE vfloat vf_load_part(vfloat rest, vmask mask, const float *from) {
    return _mm512_mask_loadu_ps(rest, mask, from);
}

VECTOR_INLINE void vf_store(float *to, vfloat x) {
    _mm512_storeu_ps(to, x);
}

VECTOR_INLINE void vf_store_part(float *to, vmask mask, vfloat x) {
    _mm512_mask_storeu_ps(to, mask, x);
}

VECTOR_INLINE vfloat vf_set(float x) {
    return _mm512_set1_ps(x);
}

VECTOR_INLINE vfloat vf_add(vfloat a, vfloat b) {
    return _mm512_add_ps(a, b);
}

VECTOR_INLINE vfloat vf_subtract(vfloat a, vfloat b) {
    return _mm512_sub_ps(a, b);
}

VECTOR_INLINE vfloat vf_multiply(vfloat a, vfloat b) {
    return _mm512_mul_ps(a, b);
}

VECTOR_INLINE vfloat vf_divide(vfloat a, vfloat b) {
    return _mm512_div_ps(a, b);
}

VECTOR_INLINE vfloat vf_multiply_add(vfloat a, vfloat b, vfloat c) {
    return _mm512_fmadd_ps(a, b, c);
}

VECTOR_INLINE vfloat vf_multiply_subtract_from(vfloat a, vfloat b, vfloat c) {
    return _mm512_fnmadd_ps(a, b, c);
}

VECTOR_INLINE vfloat vf_max(vfloat a, vfloat b) {
    return _mm512_max_ps(a, b);
}

VECTOR_INLINE vfloat vf_min(vfloat a, vfloat b) {
    return _mm512_min_ps(a, b);
}

VECTOR_INLINE vfloat vf_scale(vfloat x, vfloat n) {
    return _mm512_scalef_ps(x, n);
}

VECTOR_INLINE bool vf_has_nan(vfloat x) {
    return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) != 0;
}

VECTOR_INLINE float vf_largest(vfloat x) {
    return _mm512_reduce_max_ps(x);
}

// ---- int32 ------------------------------------------------------------------------------------

VECTOR_INLINE vint vi_load(const void *from) {
    return _mm512_loadu_si512(from);
}

VECTOR_INLINE vint vi_load_part(vmask mask, const int32_t *from) {
    return _mm512_maskz_loadu_epi32(mask, from);
}

VECTOR_INLINE void vi_store_part(void *to, vmask mask, vint x) {
    _mm512_mask_storeu_epi32(to, mask, x);
}

VECTOR_INLINE vint vi_set(int32_t x) {
    return _mm512_set1_epi32(x);
}

VECTOR_INLINE vint vi_add(vint a, vint b) {
    return _mm512_add_epi32(a, b);
}

VECTOR_INLINE vint vi_subtract(vint a, vint b) {
    return _mm512_sub_epi32(a, b);
}

VECTOR_INLINE vint vi_multiply(vint a, vint b) {
    return _mm512_mullo_epi32(a, b);
}

VECTOR_INLINE vint vi_twice(vint x) {
    return _mm512_slli_epi32(x, 1);
}

VECTOR_INLINE vint vi_four_times(vint x) {
    return _mm512_slli_epi32(x, 2);
}

VECTOR_INLINE vint vi_shift_right(vint x, int n) {
    return _mm512_srav_epi32(x, _mm512_set1_epi32(n));
}

VECTOR_INLINE vfloat vf_of_ints(vint x) {
    return _mm512_cvtepi32_ps(x);
}

VECTOR_INLINE vint vi_of_floats(vfloat x) {
    return _mm512_cvtps_epi32(x);
}

VECTOR_INLINE vfloat vf_of_bits(vint x) {
    return _mm512_castsi512_ps(x);
}

VECTOR_INLINE vint vi_of_bits(vfloat x) {
    return _mm512_castps_si512(x);
}

// ---- int16 ------------------------------------------------------------------------------------

VECTOR_INLINE vshort vs_load_bytes(const uint8_t *from, int64_t n, uint8_t flip) {
    __m256i bytes = n < 32 ? _mm256_maskz_loadu_epi8((__mmask32)((1u << n) - 1), from)
                           : _mm256_loadu_si256((const __m256i *)(const void *)from);
    return _mm512_cvtepi8_epi16(_mm256_xor_si256(bytes, _mm256_set1_epi8((char)flip)));
}

VECTOR_INLINE void vs_store(int16_t *to, vshort x) {
    _mm512_storeu_si512(to, x);
}

VECTOR_INLINE vshort vs_add(vshort a, vshort b) {
    return _mm512_add_epi16(a, b);
}

VECTOR_INLINE vshort vs_subtract(vshort a, vshort b) {
    return _mm512_sub_epi16(a, b);
}

VECTOR_INLINE vshort vs_twice(vshort x) {
    return _mm512_slli_epi16(x, 1);
}

VECTOR_INLINE vshort vs_four_times(vshort x) {
    return _mm512_slli_epi16(x, 2);
}

// ---- Bytes ------------------------------------------------------------------------------------

VECTOR_INLINE vint vi_load_bytes(const uint8_t *from, vmask mask, uint8_t flip) {
    __m128i bytes = vmask_is_full(mask) ? _mm_loadu_si128((const __m128i *)(const void *)from)
                                        : _mm_maskz_loadu_epi8(mask, from);
    return _mm512_cvtepu8_epi32(_mm_xor_si128(bytes, _mm_set1_epi8((char)flip)));
}

struct vlimits {
    __m512i shift, least, most, flip;
};

VECTOR_INLINE struct vlimits vlimits_of(int32_t zero_point, int32_t low, int32_t high,
                                        int32_t below) {
    return (struct vlimits){_mm512_set1_epi16((short)(zero_point - below)),
                            _mm512_set1_epi8((char)(low - below)),
                            _mm512_set1_epi8((char)(high - below)), _mm512_set1_epi8((char)below)};
}

// The bytes of 64 integers. Each group of 16 bytes has four bytes from each vector.
VECTOR_INLINE __m512i interleaved(__m512i x0, __m512i x1, __m512i x2, __m512i x3,
                                  const struct vlimits *limits) {
    __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(x0, x1), limits->shift);
    __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(x2, x3), limits->shift);
    __m512i bytes = _mm512_packs_epi16(a, b);
    bytes = _mm512_min_epi8(_mm512_max_epi8(bytes, limits->least), limits->most);
    return _mm512_xor_si512(bytes, limits->flip);
}

VECTOR_INLINE void vi_store_bytes(uint8_t *to, const vint x[], int n, int64_t n_lanes,
                                  const struct vlimits *limits) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const vint none = _mm512_setzero_si512();
    __m512i bytes =
        interleaved(x[0], n > 1 ? x[1] : none, n > 2 ? x[2] : none, n > 3 ? x[3] : none, limits);
    bytes = _mm512_permutexvar_epi32(order, bytes);
    if (n_lanes == 64) {
        _mm512_storeu_si512(to, bytes);
    } else {
        _mm512_mask_storeu_epi8(to, ((__mmask64)1 << n_lanes) - 1, bytes);
    }
}

VECTOR_INLINE void vi_store_lowest(uint8_t *to, vmask mask, vint x) {
    _mm512_mask_cvtepi32_storeu_epi8(to, mask, x);
}

// Makes the compiler keep x in registers here.
VECTOR_INLINE void vi_keep(vint *x) {
    __asm__("" : "+v"(*x));
}

// ---- Products ---------------------------------------------------------------------------------

VECTOR_INLINE vint vi_add_products(vint sum, vint x, vint w) {
    return _mm512_dpbusd_epi32(sum, x, w);
}

VECTOR_INLINE vint vi_add_pairs(vint sum, vint x, vint w) {
    return _mm512_dpwssd_epi32(sum, x, w);
}

#endif
