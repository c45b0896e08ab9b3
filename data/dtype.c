#include "data/dtype.h"

#include "base/float_bits.h"
#include "base/platform.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

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

// Without branches, so that loops are vectorised.
MSC_INLINE float one_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t magnitude = bits & 0x7fffu;
    // The exponent field counts from another bias: 112 more. Subnormal numbers are exact, too.
    uint32_t value = msc_float_bits(msc_float_of_bits(magnitude << 13) * 0x1p112f);
    return msc_float_of_bits(sign | value | (magnitude >= 0x7c00u ? 0x7f800000u : 0u));
}

MSC_INLINE uint16_t one_f32_to_f16(float value) {
    uint32_t bits = msc_float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t rebiased = magnitude - ((127u - 15u) << 23);
    uint32_t half = (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13;
    // Below 2^-14, the smallest normal half, the sum with 0.5 has the step of subnormal halves.
    uint32_t small = msc_float_bits(msc_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    half = magnitude < 0x38800000u ? small : half;
    // 65520 is halfway between 65504, the largest half, and the next step.
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : half;
    return (uint16_t)(sign | half);
}

float msc_f16_to_f32(uint16_t bits) {
    return one_f16_to_f32(bits);
}

uint16_t msc_f32_to_f16(float value) {
    return one_f32_to_f16(value);
}

MSC_SIMD static void f16_to_f32_clones(float *restrict out, const uint16_t *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = one_f16_to_f32(x[i]);
    }
}

void msc_f16_to_f32_run(float out[], const uint16_t x[], int64_t n) {
    f16_to_f32_clones(out, x, n);
}

#if defined(__x86_64__) && defined(__GNUC__)
// The processor's conversion gives the same bits.
__attribute__((target("avx,f16c"))) static int64_t f32_to_f16_native(uint16_t out[],
                                                                     const float x[], int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + i), halves);
    }
    return i;
}
#endif

MSC_SIMD static void f32_to_f16_clones(uint16_t *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = one_f32_to_f16(x[i]);
    }
}

void msc_f32_to_f16_run(uint16_t out[], const float x[], int64_t n) {
    int64_t at = 0;
#if defined(__x86_64__) && defined(__GNUC__)
    // clang 14 cannot ask for F16C, which all processors with AVX2 have.
    at = __builtin_cpu_supports("avx2") ? f32_to_f16_native(out, x, n) : 0;
#endif
    f32_to_f16_clones(out + at, x + at, n - at);
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

void msc_f32_narrow(uint16_t out[], enum msc_dtype dtype, const float x[], int64_t n) {
    if (dtype == MSC_DTYPE_BF16) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = msc_f32_to_bf16(x[i]);
        }
        return;
    }
    msc_f32_to_f16_run(out, x, n);
}

void msc_f32_widen(float out[], const uint16_t x[], enum msc_dtype dtype, int64_t n) {
    if (dtype == MSC_DTYPE_BF16) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = msc_bf16_to_f32(x[i]);
        }
        return;
    }
    msc_f16_to_f32_run(out, x, n);
}
