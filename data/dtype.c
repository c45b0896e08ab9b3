#include "data/dtype.h"

#include "base/float_bits.h"

#include <assert.h>
#include <string.h>

struct dtype_row {
    const char *name;
    size_t n_bytes;
    bool is_float;
    bool is_integer;
};

static const struct dtype_row dtypes[MSC_DTYPE_COUNT] = {
    [MSC_DTYPE_NONE] = {"none", 0, false, false},  [MSC_DTYPE_F32] = {"float32", 4, true, false},
    [MSC_DTYPE_F16] = {"float16", 2, true, false}, [MSC_DTYPE_BF16] = {"bfloat16", 2, true, false},
    [MSC_DTYPE_F64] = {"float64", 8, true, false}, [MSC_DTYPE_I8] = {"int8", 1, false, true},
    [MSC_DTYPE_I16] = {"int16", 2, false, true},   [MSC_DTYPE_I32] = {"int32", 4, false, true},
    [MSC_DTYPE_I64] = {"int64", 8, false, true},   [MSC_DTYPE_U8] = {"uint8", 1, false, true},
    [MSC_DTYPE_U16] = {"uint16", 2, false, true},  [MSC_DTYPE_U32] = {"uint32", 4, false, true},
    [MSC_DTYPE_U64] = {"uint64", 8, false, true},  [MSC_DTYPE_BOOL] = {"bool", 1, false, false},
};

static const struct dtype_row *row_of(enum msc_dtype dtype) {
    assert((unsigned)dtype < MSC_DTYPE_COUNT);
    return &dtypes[dtype];
}

size_t msc_dtype_bytes(enum msc_dtype dtype) {
    return row_of(dtype)->n_bytes;
}

const char *msc_dtype_name(enum msc_dtype dtype) {
    return row_of(dtype)->name;
}

enum msc_dtype msc_dtype_find(const char *name) {
    for (int i = MSC_DTYPE_NONE + 1; i < MSC_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            return (enum msc_dtype)i;
        }
    }
    return MSC_DTYPE_NONE;
}

bool msc_dtype_is_float(enum msc_dtype dtype) {
    return row_of(dtype)->is_float;
}

bool msc_dtype_is_integer(enum msc_dtype dtype) {
    return row_of(dtype)->is_integer;
}

float msc_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu;
    uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) {
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    if (exponent == 31) {
        return msc_float_of_bits(sign | 0x7f800000u | fraction << 13);
    }
    return msc_float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

uint16_t msc_f32_to_f16(float value) {
    uint32_t bits = msc_float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    }
    // 65520 is halfway between 65504, the largest half, and the next step
    if (magnitude >= 0x477ff000u) {
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude >= 0x38800000u) { // 2^-14, the smallest normal half
        uint32_t rebiased = magnitude - ((127u - 15u) << 23);
        return (uint16_t)(sign | (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13);
    }
    if (magnitude <= 0x33000000u) { // 2^-25, half of the smallest subnormal, rounds to even: zero
        return (uint16_t)sign;
    }
    uint32_t shift = 126u - (magnitude >> 23);
    uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t quotient = significand >> shift;
    uint32_t rest = significand & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);
    if (rest > half || (rest == half && (quotient & 1u))) {
        quotient++;
    }
    return (uint16_t)(sign | quotient);
}

float msc_bf16_to_f32(uint16_t bits) {
    return msc_float_of_bits((uint32_t)bits << 16);
}

uint16_t msc_f32_to_bf16(float value) {
    uint32_t bits = msc_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Without branches, so that compilers vectorise loops over it. Adding 0.5 rounds a subnormal half
// to a multiple of 2^-24, the last place of 0.5.
static inline uint16_t narrow_half(float value) {
    uint32_t bits = msc_float_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t tiny = msc_float_bits(msc_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = (int32_t)magnitude < 0x38800000 ? tiny : normal;
    half = (int32_t)magnitude >= 0x477ff000 ? 0x7c00u : half;
    half = (int32_t)magnitude > 0x7f800000 ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

static inline float widen_half(uint16_t bits) {
    uint32_t magnitude = bits & 0x7fffu, sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t tiny = msc_float_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t wide = (int32_t)magnitude < 0x400 ? tiny : (magnitude << 13) + (112u << 23);
    wide = (int32_t)magnitude >= 0x7c00 ? (magnitude << 13) + (224u << 23) : wide;
    return msc_float_of_bits(wide | sign);
}

void msc_f32_narrow(uint16_t out[], enum msc_dtype dtype, const float x[], int64_t n) {
    if (dtype == MSC_DTYPE_BF16) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = msc_f32_to_bf16(x[i]);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = narrow_half(x[i]);
    }
}

void msc_f32_widen(float out[], const uint16_t x[], enum msc_dtype dtype, int64_t n) {
    if (dtype == MSC_DTYPE_BF16) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = msc_bf16_to_f32(x[i]);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = widen_half(x[i]);
    }
}
