// Operations on vectors (simd_vector.h) that the loops share: quantising, the epilogue of sums, and
// the instructions of element-wise chains.
#ifndef MSC_KERNELS_CPU_SIMD_OPS_H
#define MSC_KERNELS_CPU_SIMD_OPS_H

#include "kernels/cpu/simd_indirect.h"
#include "kernels/cpu/simd_vector.h"

// Without optimisation GCC unrolls nothing, and warns where it cannot.
#ifdef __OPTIMIZE__
#define UNROLL _Pragma("GCC unroll 24")
#else
#define UNROLL
#endif

enum { LANES = MSC_SIMD_CHANNELS };

// ---- Quantising -------------------------------------------------------------------------------

struct bytes {
    vfloat scale, reciprocal, low, high;
    vint zero_point;
    struct vlimits limits;
};

VECTOR_INLINE struct bytes load_bytes(const struct msc_simd_bytes *q) {
    int32_t low = (int32_t)q->low + q->zero_point, high = (int32_t)q->high + q->zero_point;
    return (struct bytes){vf_set(q->scale), vf_set(q->reciprocal), vf_set(q->x_low),
                          vf_set(q->x_high),
                          // The constant that to_integers adds leaves its exponent bits in the
                          // upper bits; the subtraction removes these bits.
                          vi_set(q->zero_point - 0x4b400000),
                          vlimits_of(q->zero_point, low, high, high > 127 ? 128 : 0)};
}

// y / scale of 16 numbers, corrected by the remainder.
VECTOR_INLINE vfloat divided(vfloat y, const struct bytes *q) {
    vfloat quotient = vf_multiply(y, q->reciprocal);
    vfloat rest = vf_multiply_subtract_from(quotient, q->scale, y);
    return vf_multiply_add(rest, q->reciprocal, quotient);
}

// Like divided, but y is limited first. NaN becomes the lower limit, because max and min return the
// second operand if an operand is NaN.
VECTOR_INLINE vfloat to_quotients(vfloat y, const struct bytes *q) {
    y = vf_max(y, q->low);
    return divided(vf_min(y, q->high), q);
}

// The bytes of 16 numbers, each in the lowest 8 bits of its lane.
VECTOR_INLINE vint to_integers(vfloat y, const struct bytes *q) {
    // Adding 1.5 * 2^23 rounds to even; the integer is then the lower bits.
    vfloat rounded = vf_add(to_quotients(y, q), vf_set(0x1.8p23f));
    return vi_add(vi_of_bits(rounded), q->zero_point);
}

// Stores the bytes of n * 16 numbers, of which only the first n_lanes are in use; n is at most 4.
// The limits are applied after conversion to int32; NaN becomes the lowest integer. Only numbers
// that are too large for int32 are limited before the conversion.
VECTOR_INLINE void store_bytes_of(uint8_t *to, const vfloat y[], int n, int64_t n_lanes,
                                  const struct bytes *q) {
    vint x[4];
    UNROLL for (int k = 0; k < n; k++) {
        x[k] = vi_of_floats(divided(vf_min(q->high, y[k]), q));
    }
    vi_store_bytes(to, x, n, n_lanes, &q->limits);
}

// ---- Sums -------------------------------------------------------------------------------------

VECTOR_INLINE vfloat finish_sums(vint sum, const struct msc_simd_finish *f, int64_t i, vmask mask) {
    vint offset = vi_load_part(mask, f->offsets + i);
    vfloat y = vf_of_ints(vi_subtract(sum, offset));
    y = vf_multiply(vf_load_part(vf_set(0.0f), mask, f->scales + i), y);
    y = vf_add(y, vf_load_part(vf_set(0.0f), mask, f->bias + i));
    y = vf_max(vf_set(f->low), y);
    return vf_min(vf_set(f->high), y);
}

VECTOR_INLINE vfloat finish_16(const struct msc_simd_finish *f, int64_t i, vmask mask) {
    return finish_sums(vi_load_part(mask, f->sums + i), f, i, mask);
}

// ---- Chains -----------------------------------------------------------------------------------

VECTOR_INLINE vfloat load_part(const float *array, int64_t i, vmask mask) {
    return vmask_is_full(mask) ? vf_load(array + i) : vf_load_part(vf_set(0.0f), mask, array + i);
}

VECTOR_INLINE void store_part(float *out, vfloat y, vmask mask) {
    if (vmask_is_full(mask)) {
        vf_store(out, y);
    } else {
        vf_store_part(out, mask, y);
    }
}

// An array of integers that is read as floats. int8 are converted to uint8 by adding 128 to the
// integers and to the zero point.
struct integers {
    const uint8_t *at;
    vfloat scale;
    vint zero_point;
    uint8_t flip;
};

VECTOR_INLINE struct integers load_integers(const float *array, const struct msc_quant *q) {
    bool is_signed = q->low < 0;
    return (struct integers){(const uint8_t *)array, vf_set(q->scales[0]),
                             vi_set(q->zero_points[0] + (is_signed ? 128 : 0)),
                             is_signed ? 0x80 : 0};
}

VECTOR_INLINE vfloat integers_part(const struct integers *x, int64_t i, vmask mask) {
    vint q = vi_load_bytes(x->at + i, mask, x->flip);
    return vf_multiply(vf_of_ints(vi_subtract(q, x->zero_point)), x->scale);
}

VECTOR_INLINE vfloat clip(vfloat y, vfloat low, vfloat high) {
    return vf_min(high, vf_max(low, y));
}

VECTOR_INLINE vfloat relu(vfloat y) {
    return vf_max(vf_set(0.0f), y);
}

VECTOR_INLINE vfloat hard_swish(vfloat x) {
    vfloat y = vf_multiply(vf_set(1.0f / 6.0f), x);
    y = vf_add(y, vf_set(0.5f));
    return vf_multiply(x, clip(y, vf_set(0.0f), vf_set(1.0f)));
}

// The positions of a tile's vectors in arrays. A row has `per_row` contiguous vectors; the next row
// begins `step` elements further on. In the last vector of each row, only the elements in the mask
// are used.
struct tile {
    int per_row;
    int64_t begin, step;
    vmask mask;
};

VECTOR_INLINE int64_t tile_at(const struct tile *t, int k) {
    return t->begin + k / t->per_row * t->step + k % t->per_row * 16;
}

VECTOR_INLINE vmask tile_mask(const struct tile *t, int k) {
    return k % t->per_row == t->per_row - 1 ? t->mask : vmask_of(LANES);
}

#define NUMBER(k) vf_set(instr->p[k])
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
VECTOR_INLINE void run_instr(vfloat y[], vfloat saved[], int n, const struct msc_simd_instr *instr,
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
        EACH_ARRAY(vf_add);
    case MSC_SIMD_SUBTRACT:
        EACH_ARRAY(vf_subtract);
    case MSC_SIMD_MULTIPLY:
        EACH_ARRAY(vf_multiply);
    case MSC_SIMD_DIVIDE:
        EACH_ARRAY(vf_divide);
    case MSC_SIMD_ADD_NUMBER:
        EACH(vf_add(y[k], NUMBER(0)));
    case MSC_SIMD_SUBTRACT_NUMBER:
        EACH(vf_subtract(y[k], NUMBER(0)));
    case MSC_SIMD_MULTIPLY_NUMBER:
        EACH(vf_multiply(y[k], NUMBER(0)));
    case MSC_SIMD_DIVIDE_NUMBER:
        EACH(vf_divide(y[k], NUMBER(0)));
    case MSC_SIMD_ADD_SAVED:
        EACH(saved ? vf_add(y[k], saved[k]) : y[k]);
    case MSC_SIMD_MULTIPLY_SAVED:
        EACH(saved ? vf_multiply(y[k], saved[k]) : y[k]);
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

#endif
