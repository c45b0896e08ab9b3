// Element types and their names in numpy, ONNX, safetensors and JSON.
#ifndef MSC_DATA_DTYPE_H
#define MSC_DATA_DTYPE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

enum msc_dtype {
    MSC_DTYPE_NONE,
    MSC_DTYPE_F32,
    MSC_DTYPE_F16,
    MSC_DTYPE_BF16,
    MSC_DTYPE_F64,
    MSC_DTYPE_I8,
    MSC_DTYPE_I16,
    MSC_DTYPE_I32,
    MSC_DTYPE_I64,
    MSC_DTYPE_U8,
    MSC_DTYPE_U16,
    MSC_DTYPE_U32,
    MSC_DTYPE_U64,
    MSC_DTYPE_BOOL, // one byte, 0 or 1
    MSC_DTYPE_COUNT
};

size_t msc_dtype_bytes(enum msc_dtype dtype);     // 0 for NONE
const char *msc_dtype_name(enum msc_dtype dtype); // "float32", "int64", "bool", "bfloat16", ...
enum msc_dtype msc_dtype_find(const char *name);  // MSC_DTYPE_NONE if unknown
bool msc_dtype_is_float(enum msc_dtype dtype);
bool msc_dtype_is_integer(enum msc_dtype dtype); // signed and unsigned; not bool

float msc_f16_to_f32(uint16_t bits);
uint16_t msc_f32_to_f16(float value); // round half to even
float msc_bf16_to_f32(uint16_t bits);
uint16_t msc_f32_to_bf16(float value);
// The same for n elements, several times as fast. `dtype` is MSC_DTYPE_F16 or MSC_DTYPE_BF16.
void msc_f32_narrow(uint16_t out[], enum msc_dtype dtype, const float x[], int64_t n);
void msc_f32_widen(float out[], const uint16_t x[], enum msc_dtype dtype, int64_t n);

MSC_PUBLIC_END

#endif
