// Vectors of 16 lanes for 64-bit Arm's Advanced SIMD (NEON): four registers each. simd_vector.h
// describes the functions. Every processor of the architecture has these instructions.
#ifndef MSC_KERNELS_CPU_SIMD_VECTOR_NEON_H
#define MSC_KERNELS_CPU_SIMD_VECTOR_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VECTOR_TARGET
#define VECTOR_INLINE static inline __attribute__((always_inline))

#define VECTOR_TILE 1  // vectors of channels in a tile of registers
#define VECTOR_CHAIN 4 // vectors that pass through a chain together

enum { PARTS = 4 }; // registers per vector

typedef struct {
    float32x4_t part[PARTS];
} vfloat;
typedef struct {
    int32x4_t part[PARTS];
} vint;
typedef int32_t vmask; // the number of lanes

#define EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < PARTS; i++)

VECTOR_INLINE vmask vmask_of(int64_t n) {
    return n < 16 ? (vmask)n : 16;
}

VECTOR_INLINE bool vmask_is_full(vmask mask) {
    return mask == 16;
}

// ---- float32 ----------------------------------------------------------------------------------

#define DEFINE_FLOAT_2(name, expression)                                                           \
    VECTOR_INLINE vfloat name(vfloat x, vfloat y) {                                                \
        EACH_PART {                                                                                \
            float32x4_t a = x.part[i], b = y.part[i];                                              \
            x.part[i] = (expression);                                                              \
        }                                                                                          \
        return x;                                                                                  \
    }
#define DEFINE_FLOAT_3(name, expression)                                                           \
    VECTOR_INLINE vfloat name(vfloat x, vfloat y, vfloat z) {                                      \
        EACH_PART {                                                                                \
            float32x4_t a = x.part[i], b = y.part[i], c = z.part[i];                               \
            x.part[i] = (expression);                                                              \
        }                                                                                          \
        return x;                                                                                  \
    }

DEFINE_FLOAT_2(vf_add, vaddq_f32(a, b))
DEFINE_FLOAT_2(vf_subtract, vsubq_f32(a, b))
DEFINE_FLOAT_2(vf_multiply, vmulq_f32(a, b))
DEFINE_FLOAT_2(vf_divide, vdivq_f32(a, b))
DEFINE_FLOAT_3(vf_multiply_add, vfmaq_f32(c, a, b))
DEFINE_FLOAT_3(vf_multiply_subtract_from, vfmsq_f32(c, a, b))
// The instructions for the maximum and the minimum would return NaN.
DEFINE_FLOAT_2(vf_max, vbslq_f32(vcgtq_f32(a, b), a, b))
DEFINE_FLOAT_2(vf_min, vbslq_f32(vcltq_f32(a, b), a, b))

VECTOR_INLINE vfloat vf_set(float x) {
    vfloat y;
    EACH_PART {
        y.part[i] = vdupq_n_f32(x);
    }
    return y;
}

// Loads and stores 16 bytes of any type.
VECTOR_INLINE uint8x16_t load_16(const void *from) {
    return vld1q_u8((const uint8_t *)from);
}

VECTOR_INLINE void store_16(void *to, uint8x16_t x) {
    vst1q_u8((uint8_t *)to, x);
}

// The same vector, if all lanes are equal: tells the compiler that one register is enough.
VECTOR_INLINE vfloat vf_of_equal(vfloat x) {
    return (vfloat){{x.part[0], x.part[0], x.part[0], x.part[0]}};
}

VECTOR_INLINE vfloat vf_load(const float *from) {
    vfloat x;
    EACH_PART {
        x.part[i] = vreinterpretq_f32_u8(load_16(from + 4 * i));
    }
    return x;
}

// Loads the first n of four lanes; n may be less than 1 or more than 4.
VECTOR_INLINE float32x4_t load_lanes(float32x4_t rest, int64_t n, const float *from) {
    if (n >= 4) {
        return vreinterpretq_f32_u8(load_16(from));
    }
    for (int64_t lane = 0; lane < n; lane++) {
        memcpy((char *)&rest + lane * 4, from + lane, sizeof(*from));
    }
    return rest;
}

VECTOR_INLINE vfloat vf_load_part(vfloat rest, vmask mask, const float *from) {
    if (vmask_is_full(mask)) {
        return vf_load(from);
    }
    EACH_PART {
        rest.part[i] = load_lanes(rest.part[i], mask - 4 * i, from + 4 * i);
    }
    return rest;
}

VECTOR_INLINE void vf_store(float *to, vfloat x) {
    EACH_PART {
        store_16(to + 4 * i, vreinterpretq_u8_f32(x.part[i]));
    }
}

VECTOR_INLINE void store_lanes(float *to, int64_t n, float32x4_t x) {
    if (n >= 4) {
        store_16(to, vreinterpretq_u8_f32(x));
        return;
    }
    for (int64_t lane = 0; lane < n; lane++) {
        memcpy(to + lane, (const char *)&x + lane * 4, sizeof(*to));
    }
}

VECTOR_INLINE void vf_store_part(float *to, vmask mask, vfloat x) {
    if (vmask_is_full(mask)) {
        vf_store(to, x);
        return;
    }
    EACH_PART {
        store_lanes(to + 4 * i, mask - 4 * i, x.part[i]);
    }
}

VECTOR_INLINE bool vf_has_nan(vfloat x) {
    uint32x4_t is_number = vdupq_n_u32(UINT32_MAX);
    EACH_PART {
        is_number = vandq_u32(is_number, vceqq_f32(x.part[i], x.part[i]));
    }
    return vminvq_u32(is_number) == 0;
}

VECTOR_INLINE float vf_largest(vfloat x) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.part[0], x.part[1]), vmaxq_f32(x.part[2], x.part[3])));
}

// The power is split into two factors, so that the first product is normal and only the second one
// is rounded.
VECTOR_INLINE vfloat vf_scale(vfloat x, vfloat n) {
    const int32x4_t bias = vdupq_n_s32(127);
    EACH_PART {
        int32x4_t power = vcvtnq_s32_f32(n.part[i]), half = vshrq_n_s32(power, 1);
        int32x4_t first = vshlq_n_s32(vaddq_s32(half, bias), 23);
        int32x4_t second = vshlq_n_s32(vaddq_s32(vsubq_s32(power, half), bias), 23);
        float32x4_t y = vmulq_f32(x.part[i], vreinterpretq_f32_s32(first));
        x.part[i] = vmulq_f32(y, vreinterpretq_f32_s32(second));
    }
    return x;
}

// ---- int32 ------------------------------------------------------------------------------------

VECTOR_INLINE vint vi_load(const void *from) {
    vint x;
    EACH_PART {
        x.part[i] = vreinterpretq_s32_u8(load_16((const char *)from + 16 * i));
    }
    return x;
}

VECTOR_INLINE vfloat vf_of_bits(vint x) {
    vfloat y;
    EACH_PART {
        y.part[i] = vreinterpretq_f32_s32(x.part[i]);
    }
    return y;
}

VECTOR_INLINE vint vi_of_bits(vfloat x) {
    vint y;
    EACH_PART {
        y.part[i] = vreinterpretq_s32_f32(x.part[i]);
    }
    return y;
}

VECTOR_INLINE vint vi_load_part(vmask mask, const int32_t *from) {
    return vi_of_bits(vf_load_part(vf_set(0.0f), mask, (const float *)(const void *)from));
}

VECTOR_INLINE void vi_store_part(void *to, vmask mask, vint x) {
    vf_store_part(to, mask, vf_of_bits(x));
}

VECTOR_INLINE vint vi_set(int32_t x) {
    vint y;
    EACH_PART {
        y.part[i] = vdupq_n_s32(x);
    }
    return y;
}

VECTOR_INLINE vint vi_add(vint a, vint b) {
    EACH_PART {
        a.part[i] = vaddq_s32(a.part[i], b.part[i]);
    }
    return a;
}

VECTOR_INLINE vint vi_subtract(vint a, vint b) {
    EACH_PART {
        a.part[i] = vsubq_s32(a.part[i], b.part[i]);
    }
    return a;
}

VECTOR_INLINE vfloat vf_of_ints(vint x) {
    vfloat y;
    EACH_PART {
        y.part[i] = vcvtq_f32_s32(x.part[i]);
    }
    return y;
}

VECTOR_INLINE vint vi_of_numbers(vfloat x) {
    vint y;
    EACH_PART {
        y.part[i] = vcvtnq_s32_f32(x.part[i]);
    }
    return y;
}

// The conversion saturates, so its result for the least number is INT32_MIN.
VECTOR_INLINE vint vi_of_floats(vfloat x) {
    const float32x4_t least = vdupq_n_f32(-0x1p31f);
    vint y;
    EACH_PART {
        y.part[i] = vcvtnq_s32_f32(vmaxnmq_f32(x.part[i], least)); // NaN becomes the least number
    }
    return y;
}

// ---- Bytes ------------------------------------------------------------------------------------

// The first n bytes, at most 8; the others are 0.
static inline uint64_t load_few_bytes(const uint8_t *from, int64_t n) {
    uint64_t x = 0;
    uint32_t first, last;
    if (n >= 8) {
        memcpy(&x, from, sizeof(x));
    } else if (n >= 4) {
        memcpy(&first, from, sizeof(first));
        memcpy(&last, from + n - 4, sizeof(last));
        x = first | (uint64_t)last << 8 * (n - 4);
    } else if (n > 0) {
        x = from[0] | (uint64_t)from[n / 2] << 8 * (n / 2) | (uint64_t)from[n - 1] << 8 * (n - 1);
    }
    return x;
}

// Loads the first n of 16 bytes; the others are 0 before XOR with `flip`.
VECTOR_INLINE uint8x16_t load_16_bytes(const uint8_t *from, int64_t n, uint8_t flip) {
    uint8x16_t x;
    if (n >= 16) {
        x = load_16(from);
    } else {
        uint64_t low = load_few_bytes(from, n), high = n > 8 ? load_few_bytes(from + 8, n - 8) : 0;
        x = vcombine_u8(vcreate_u8(low), vcreate_u8(high));
    }
    return veorq_u8(x, vdupq_n_u8(flip));
}

VECTOR_INLINE vint vi_load_bytes(const uint8_t *from, vmask mask, uint8_t flip) {
    uint8x16_t bytes = load_16_bytes(from, mask, flip);
    uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
    return (vint){{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
                   vreinterpretq_s32_u32(vmovl_high_u16(low)),
                   vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
                   vreinterpretq_s32_u32(vmovl_high_u16(high))}};
}

struct vlimits {
    int16x8_t shift;
    int8x16_t least, most, flip;
};

VECTOR_INLINE struct vlimits vlimits_of(int32_t zero_point, int32_t low, int32_t high,
                                        int32_t below) {
    return (struct vlimits){vdupq_n_s16((int16_t)(zero_point - below)),
                            vdupq_n_s8((int8_t)(low - below)), vdupq_n_s8((int8_t)(high - below)),
                            vdupq_n_s8((int8_t)below)};
}

VECTOR_INLINE void store_16_bytes(uint8_t *to, uint8x16_t bytes, int64_t n) {
    if (n >= 16) {
        store_16(to, bytes);
        return;
    }
    if (n & 8) {
        vst1_u8(to, vget_low_u8(bytes));
        bytes = vextq_u8(bytes, bytes, 8);
        to += 8;
    }
    uint64_t rest = vgetq_lane_u64(vreinterpretq_u64_u8(bytes), 0);
    for (int64_t i = 0; i < (n & 7); i++, rest >>= 8) {
        to[i] = (uint8_t)rest;
    }
}

VECTOR_INLINE void vi_store_bytes(uint8_t *to, const vint x[], int n, int64_t n_lanes,
                                  const struct vlimits *limits) {
    for (int k = 0; k < n; k++) {
        const int32x4_t *part = x[k].part;
        int16x8_t low = vqmovn_high_s32(vqmovn_s32(part[0]), part[1]);
        int16x8_t high = vqmovn_high_s32(vqmovn_s32(part[2]), part[3]);
        low = vqaddq_s16(low, limits->shift);
        high = vqaddq_s16(high, limits->shift);
        int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(low), high);
        bytes = vminq_s8(vmaxq_s8(bytes, limits->least), limits->most);
        bytes = veorq_s8(bytes, limits->flip);
        store_16_bytes(to + 16 * k, vreinterpretq_u8_s8(bytes), n_lanes - 16 * k);
    }
}

VECTOR_INLINE void vi_store_lowest(uint8_t *to, vmask mask, vint x) {
    int16x8_t low = vuzp1q_s16(vreinterpretq_s16_s32(x.part[0]), vreinterpretq_s16_s32(x.part[1]));
    int16x8_t high = vuzp1q_s16(vreinterpretq_s16_s32(x.part[2]), vreinterpretq_s16_s32(x.part[3]));
    uint8x16_t bytes = vuzp1q_u8(vreinterpretq_u8_s16(low), vreinterpretq_u8_s16(high));
    store_16_bytes(to, bytes, mask);
}

// Makes the compiler keep x in registers here.
VECTOR_INLINE void vi_keep(vint *x) {
    EACH_PART {
        __asm__("" : "+w"(x->part[i]));
    }
}

#undef DEFINE_FLOAT_2
#undef DEFINE_FLOAT_3

#endif
