// Internal header of the files that use AVX-512.
#ifndef MSC_KERNELS_CPU_SIMD_AVX512_H
#define MSC_KERNELS_CPU_SIMD_AVX512_H

#include "kernels/cpu/simd_indirect.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 24")

// ---- Quantising -------------------------------------------------------------------------------

struct bytes {
    __m512 scale, reciprocal, low, high;
    __m512i zero_point;
    // Constants for 64 bytes at once, which are computed as int8. For uint8, results are computed
    // 128 too low; `flip` adds 128 at the end.
    __m512i shift, least, most, flip;
};

AVX512 INLINE struct bytes load_bytes(const struct msc_simd_bytes *q) {
    int32_t low = (int32_t)q->low + q->zero_point, high = (int32_t)q->high + q->zero_point;
    int32_t below = high > 127 ? 128 : 0;
    return (struct bytes){_mm512_set1_ps(q->scale), _mm512_set1_ps(q->reciprocal),
                          _mm512_set1_ps(q->x_low), _mm512_set1_ps(q->x_high),
                          // The constant that to_integers adds leaves its exponent bits in the
                          // upper bits; the subtraction removes these bits.
                          _mm512_set1_epi32(q->zero_point - 0x4b400000),
                          _mm512_set1_epi16((short)(q->zero_point - below)),
                          _mm512_set1_epi8((char)(low - below)),
                          _mm512_set1_epi8((char)(high - below)), _mm512_set1_epi8((char)below)};
}

// y / scale of 16 numbers, corrected by the remainder.
AVX512 INLINE __m512 divided(__m512 y, const struct bytes *q) {
    __m512 quotient = _mm512_mul_ps(y, q->reciprocal);
    __m512 rest = _mm512_fnmadd_ps(quotient, q->scale, y);
    return _mm512_fmadd_ps(rest, q->reciprocal, quotient);
}

// Like divided, but y is limited first. NaN becomes the lower limit, because max and min return the
// second operand if an operand is NaN.
AVX512 INLINE __m512 to_quotients(__m512 y, const struct bytes *q) {
    y = _mm512_max_ps(y, q->low);
    return divided(_mm512_min_ps(y, q->high), q);
}

// The bytes of 16 numbers, each in the lowest 8 bits of its lane.
AVX512 INLINE __m512i to_integers(__m512 y, const struct bytes *q) {
    // Adding 1.5 * 2^23 rounds to even; the integer is then the lower bits.
    __m512 rounded = _mm512_add_ps(to_quotients(y, q), _mm512_set1_ps(0x1.8p23f));
    return _mm512_add_epi32(_mm512_castps_si512(rounded), q->zero_point);
}

// The bytes of 64 integers: adds the zero point and limits. Each group of 16 bytes has four bytes
// from each vector.
AVX512 INLINE __m512i interleaved(__m512i x0, __m512i x1, __m512i x2, __m512i x3,
                                  const struct bytes *q) {
    __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(x0, x1), q->shift);
    __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(x2, x3), q->shift);
    __m512i bytes = _mm512_packs_epi16(a, b);
    bytes = _mm512_min_epi8(_mm512_max_epi8(bytes, q->least), q->most);
    return _mm512_xor_si512(bytes, q->flip);
}

// Like interleaved, but in the order of the elements.
AVX512 INLINE __m512i joined(__m512i x0, __m512i x1, __m512i x2, __m512i x3,
                             const struct bytes *q) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, interleaved(x0, x1, x2, x3, q));
}

// The bytes of 64 numbers. The limits are applied after conversion to int32; NaN becomes the lowest
// integer. Only numbers that are too large for int32 are limited before the conversion.
AVX512 INLINE __m512i to_bytes(const __m512 y[4], const struct bytes *q) {
    __m512i x[4];
    for (int k = 0; k < 4; k++) {
        x[k] = _mm512_cvtps_epi32(divided(_mm512_min_ps(q->high, y[k]), q));
    }
    return joined(x[0], x[1], x[2], x[3], q);
}

// ---- Sums -------------------------------------------------------------------------------------

AVX512 INLINE __m512 finish_sums(__m512i sum, const struct msc_simd_finish *f, int64_t i,
                                 __mmask16 mask) {
    __m512i offset = _mm512_maskz_loadu_epi32(mask, f->offsets + i);
    __m512 y = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, offset));
    y = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, f->scales + i), y);
    y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, f->bias + i));
    y = _mm512_max_ps(_mm512_set1_ps(f->low), y);
    return _mm512_min_ps(_mm512_set1_ps(f->high), y);
}

AVX512 INLINE __m512 finish_16(const struct msc_simd_finish *f, int64_t i, __mmask16 mask) {
    return finish_sums(_mm512_maskz_loadu_epi32(mask, f->sums + i), f, i, mask);
}

// Four vectors that have 64 elements in total, in sequential or interleaved order. In interleaved
// order, vector i has the elements 4 * i ... 4 * i + 3 of every 16 elements. `transposed` converts
// either order to the other.
struct quad {
    __m512i part[4];
};

AVX512 INLINE struct quad transposed(struct quad s) {
    __m512i a = _mm512_shuffle_i32x4(s.part[0], s.part[1], 0x44);
    __m512i b = _mm512_shuffle_i32x4(s.part[0], s.part[1], 0xee);
    __m512i c = _mm512_shuffle_i32x4(s.part[2], s.part[3], 0x44);
    __m512i d = _mm512_shuffle_i32x4(s.part[2], s.part[3], 0xee);
    return (struct quad){{_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                          _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)}};
}

// ---- Chains -----------------------------------------------------------------------------------

AVX512 INLINE __m512 load_part(const float *array, int64_t i, __mmask16 mask) {
    return mask == 0xffff ? _mm512_loadu_ps(array + i) : _mm512_maskz_loadu_ps(mask, array + i);
}

// An array of integers that is read as floats. int8 are converted to uint8 by adding 128 to the
// integers and to the zero point.
struct integers {
    const uint8_t *at;
    __m512 scale;
    __m512i zero_point;
    __m128i flip;
};

AVX512 INLINE struct integers load_integers(const float *array, const struct msc_quant *q) {
    bool is_signed = q->low < 0;
    return (struct integers){(const uint8_t *)array, _mm512_set1_ps(q->scales[0]),
                             _mm512_set1_epi32(q->zero_points[0] + (is_signed ? 128 : 0)),
                             _mm_set1_epi8((char)(is_signed ? 0x80 : 0))};
}

AVX512 INLINE __m512 integers_part(const struct integers *x, int64_t i, __mmask16 mask) {
    __m128i bytes = mask == 0xffff ? _mm_loadu_si128((const __m128i *)(const void *)(x->at + i))
                                   : _mm_maskz_loadu_epi8(mask, x->at + i);
    __m512i q = _mm512_cvtepu8_epi32(_mm_xor_si128(bytes, x->flip));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(q, x->zero_point)), x->scale);
}

AVX512 INLINE __m512 clip(__m512 y, __m512 low, __m512 high) {
    return _mm512_min_ps(high, _mm512_max_ps(low, y));
}

AVX512 INLINE __m512 relu(__m512 y) {
    return _mm512_max_ps(_mm512_setzero_ps(), y);
}

AVX512 INLINE __m512 hard_swish(__m512 x) {
    __m512 y = _mm512_mul_ps(_mm512_set1_ps(1.0f / 6.0f), x);
    y = _mm512_add_ps(y, _mm512_set1_ps(0.5f));
    return _mm512_mul_ps(x, clip(y, _mm512_setzero_ps(), _mm512_set1_ps(1.0f)));
}

// The positions of a tile's vectors in arrays. A row has `per_row` contiguous vectors; the next row
// begins `step` elements further on. In the last vector of each row, only the elements in the mask
// are used.
struct tile {
    int per_row;
    int64_t begin, step;
    __mmask16 mask;
};

AVX512 INLINE int64_t tile_at(const struct tile *t, int k) {
    return t->begin + k / t->per_row * t->step + k % t->per_row * 16;
}

AVX512 INLINE __mmask16 tile_mask(const struct tile *t, int k) {
    return k % t->per_row == t->per_row - 1 ? t->mask : (__mmask16)0xffff;
}

#define NUMBER(k) _mm512_set1_ps(instr->p[k])
#define EACH(expression)                                                                           \
    UNROLL for (int k = 0; k < n; k++) {                                                           \
        y[k] = (expression);                                                                       \
    }                                                                                              \
    break
// Calls a function for the array that the instruction reads. The array's type is tested once, not
// for every vector.
#define EACH_ARRAY(function)                                                                       \
    do {                                                                                           \
        const float *array = arrays->at[instr->operands[0]];                                       \
        const struct msc_quant *quant = msc_simd_quant_of(arrays, instr);                          \
        if (quant) {                                                                               \
            const struct integers x = load_integers(array, quant);                                 \
            EACH(function(y[k], integers_part(&x, tile_at(t, k), tile_mask(t, k))));               \
        }                                                                                          \
        EACH(function(y[k], load_part(array, tile_at(t, k), tile_mask(t, k))));                    \
    } while (0);                                                                                   \
    break

// Applies one instruction to n vectors. `saved` is NULL if no result is saved.
AVX512 INLINE void run_instr(__m512 y[], __m512 saved[], int n, const struct msc_simd_instr *instr,
                             const struct msc_simd_arrays *arrays, const struct tile *t) {
    switch (instr->op) {
    case MSC_SIMD_LOAD:
    case MSC_SIMD_FINISH:
        break;
    case MSC_SIMD_SAVE:
        for (int k = 0; saved && k < n; k++) {
            saved[k] = y[k];
        }
        break;
    case MSC_SIMD_ADD:
        EACH_ARRAY(_mm512_add_ps);
    case MSC_SIMD_SUBTRACT:
        EACH_ARRAY(_mm512_sub_ps);
    case MSC_SIMD_MULTIPLY:
        EACH_ARRAY(_mm512_mul_ps);
    case MSC_SIMD_DIVIDE:
        EACH_ARRAY(_mm512_div_ps);
    case MSC_SIMD_ADD_NUMBER:
        EACH(_mm512_add_ps(y[k], NUMBER(0)));
    case MSC_SIMD_SUBTRACT_NUMBER:
        EACH(_mm512_sub_ps(y[k], NUMBER(0)));
    case MSC_SIMD_MULTIPLY_NUMBER:
        EACH(_mm512_mul_ps(y[k], NUMBER(0)));
    case MSC_SIMD_DIVIDE_NUMBER:
        EACH(_mm512_div_ps(y[k], NUMBER(0)));
    case MSC_SIMD_ADD_SAVED:
        EACH(saved ? _mm512_add_ps(y[k], saved[k]) : y[k]);
    case MSC_SIMD_MULTIPLY_SAVED:
        EACH(saved ? _mm512_mul_ps(y[k], saved[k]) : y[k]);
    case MSC_SIMD_RELU:
        EACH(relu(y[k]));
    case MSC_SIMD_CLIP:
        EACH(clip(y[k], NUMBER(0), NUMBER(1)));
    case MSC_SIMD_HARD_SWISH:
        EACH(hard_swish(y[k]));
    }
}

#undef NUMBER
#undef EACH
#undef EACH_ARRAY

// ---- simd_avx512_chain.c ----------------------------------------------------------------------

void msc_simd__run_chain(const struct msc_simd_chain *chain, const struct msc_simd_run *run);

// ---- simd_avx512_pool.c -----------------------------------------------------------------------

void msc_simd__largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                       uint8_t flip);
void msc_simd__largest_float(float out[], const float x[], const struct msc_simd_pool *p);
void msc_simd__mean(float out[], const float x[], const struct msc_simd_pool *p, float divisor);

// ---- simd_avx512_softmax.c --------------------------------------------------------------------

void msc_simd__softmax(float out[], const float x[], int64_t n);
void msc_simd__log_softmax(float out[], const float x[], int64_t n);

// ---- simd_avx512_transpose.c ------------------------------------------------------------------

void msc_simd__transpose4(void *out, int64_t out_row, const void *in, int64_t in_row, int64_t rows,
                          int64_t cols);
void msc_simd__transpose1(void *out, int64_t out_row, const void *in, int64_t in_row, int64_t rows,
                          int64_t cols);

// ---- simd_avx512_columns.c --------------------------------------------------------------------

void msc_simd__add_columns(int32_t sums[], const struct msc_simd_columns *c);
void msc_simd__add_columns_quantize(uint8_t out[], const struct msc_simd_columns *c,
                                    const struct msc_simd_finish *f,
                                    const struct msc_simd_bytes *q);

// Returns a copy of `q` whose integer limits also apply the limits of y (f->low and f->high).
struct msc_simd_bytes msc_simd__limit(const struct msc_simd_finish *f,
                                      const struct msc_simd_bytes *q);

// ---- simd_avx512_indirect.c, simd_tiles.c ------------------------------------------------------

extern const struct msc_simd_product msc_simd__bytes, msc_simd__floats, msc_simd__tiles;

// ---- simd_tiles_machine.c ---------------------------------------------------------------------

// Requests tile registers from the system and tests them. False: the machine has no tiles, the
// system refuses the request, or the sums of tiles are wrong.
bool msc_simd__get_tiles(void);
// True if a product gives the same sums as msc_simd__bytes.
bool msc_simd__agrees(const struct msc_simd_product *tiles);

#endif
