#include "data/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct msc_number real(double value) {
    return (struct msc_number){.kind = MSC_NUMBER_REAL, .real = value};
}

static struct msc_number of_signed(int64_t value) {
    return (struct msc_number){.kind = MSC_NUMBER_SIGNED, .i = value};
}

static struct msc_number of_unsigned(uint64_t value) {
    return (struct msc_number){.kind = MSC_NUMBER_UNSIGNED, .u = value};
}

struct msc_number msc_number__load(const void *data, enum msc_dtype dtype, int64_t index) {
    switch (dtype) {
    case MSC_DTYPE_F32:
        return real((double)((const float *)data)[index]);
    case MSC_DTYPE_F16:
        return real((double)msc_f16_to_f32(((const uint16_t *)data)[index]));
    case MSC_DTYPE_BF16:
        return real((double)msc_bf16_to_f32(((const uint16_t *)data)[index]));
    case MSC_DTYPE_F64:
        return real(((const double *)data)[index]);
    case MSC_DTYPE_I8:
        return of_signed(((const int8_t *)data)[index]);
    case MSC_DTYPE_I16:
        return of_signed(((const int16_t *)data)[index]);
    case MSC_DTYPE_I32:
        return of_signed(((const int32_t *)data)[index]);
    case MSC_DTYPE_I64:
        return of_signed(((const int64_t *)data)[index]);
    case MSC_DTYPE_U8:
        return of_unsigned(((const uint8_t *)data)[index]);
    case MSC_DTYPE_U16:
        return of_unsigned(((const uint16_t *)data)[index]);
    case MSC_DTYPE_U32:
        return of_unsigned(((const uint32_t *)data)[index]);
    case MSC_DTYPE_U64:
        return of_unsigned(((const uint64_t *)data)[index]);
    case MSC_DTYPE_BOOL:
        return of_unsigned(((const uint8_t *)data)[index] != 0);
    case MSC_DTYPE_NONE:
    case MSC_DTYPE_COUNT:
        break;
    }
    assert(!"an array has an element type");
    return real(0.0);
}

double msc_number__to_double(struct msc_number number) {
    switch (number.kind) {
    case MSC_NUMBER_SIGNED:
        return (double)number.i;
    case MSC_NUMBER_UNSIGNED:
        return (double)number.u;
    case MSC_NUMBER_REAL:
        break;
    }
    return number.real;
}

int64_t msc_number__to_i64(struct msc_number number, int64_t low, int64_t high) {
    int64_t value = 0;
    switch (number.kind) {
    case MSC_NUMBER_SIGNED:
        value = number.i;
        break;
    case MSC_NUMBER_UNSIGNED:
        value = number.u > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)number.u;
        break;
    case MSC_NUMBER_REAL:
        if (number.real >= 0x1p63) {
            value = INT64_MAX;
        } else if (number.real < -0x1p63) {
            value = INT64_MIN;
        } else if (!isnan(number.real)) {
            value = (int64_t)number.real;
        }
        break;
    }
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

static uint64_t to_u64(struct msc_number number) {
    switch (number.kind) {
    case MSC_NUMBER_SIGNED:
        return number.i > 0 ? (uint64_t)number.i : 0;
    case MSC_NUMBER_UNSIGNED:
        return number.u;
    case MSC_NUMBER_REAL:
        break;
    }
    if (number.real >= 0x1p64) {
        return UINT64_MAX;
    }
    return number.real > 0.0 ? (uint64_t)number.real : 0;
}

static float to_float(struct msc_number number) {
    switch (number.kind) {
    case MSC_NUMBER_SIGNED:
        return (float)number.i;
    case MSC_NUMBER_UNSIGNED:
        return (float)number.u;
    case MSC_NUMBER_REAL:
        break;
    }
    return (float)number.real;
}

// Rounds to odd, so that rounding the result to a narrower format equals rounding the double
// directly.
static float to_float_odd(double value) {
    float rounded = (float)value;
    if ((double)rounded == value || !isfinite(value) || !isfinite(rounded)) {
        return rounded;
    }
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (!(bits & 1u)) {
        bool is_too_large = fabs((double)rounded) > fabs(value);
        bits = is_too_large ? bits - 1u : bits + 1u;
        memcpy(&rounded, &bits, sizeof bits);
    }
    return rounded;
}

static bool is_true(struct msc_number number) {
    switch (number.kind) {
    case MSC_NUMBER_SIGNED:
        return number.i != 0;
    case MSC_NUMBER_UNSIGNED:
        return number.u != 0;
    case MSC_NUMBER_REAL:
        break;
    }
    return number.real != 0.0;
}

void msc_number__store(void *data, enum msc_dtype dtype, int64_t index, struct msc_number number) {
    switch (dtype) {
    case MSC_DTYPE_F32:
        ((float *)data)[index] = to_float(number);
        return;
    case MSC_DTYPE_F16:
        ((uint16_t *)data)[index] = msc_f32_to_f16(to_float_odd(msc_number__to_double(number)));
        return;
    case MSC_DTYPE_BF16:
        ((uint16_t *)data)[index] = msc_f32_to_bf16(to_float_odd(msc_number__to_double(number)));
        return;
    case MSC_DTYPE_F64:
        ((double *)data)[index] = msc_number__to_double(number);
        return;
    case MSC_DTYPE_I8:
        ((int8_t *)data)[index] = (int8_t)msc_number__to_i64(number, INT8_MIN, INT8_MAX);
        return;
    case MSC_DTYPE_I16:
        ((int16_t *)data)[index] = (int16_t)msc_number__to_i64(number, INT16_MIN, INT16_MAX);
        return;
    case MSC_DTYPE_I32:
        ((int32_t *)data)[index] = (int32_t)msc_number__to_i64(number, INT32_MIN, INT32_MAX);
        return;
    case MSC_DTYPE_I64:
        ((int64_t *)data)[index] = msc_number__to_i64(number, INT64_MIN, INT64_MAX);
        return;
    case MSC_DTYPE_U8:
        ((uint8_t *)data)[index] = (uint8_t)msc_number__to_i64(number, 0, UINT8_MAX);
        return;
    case MSC_DTYPE_U16:
        ((uint16_t *)data)[index] = (uint16_t)msc_number__to_i64(number, 0, UINT16_MAX);
        return;
    case MSC_DTYPE_U32:
        ((uint32_t *)data)[index] = (uint32_t)msc_number__to_i64(number, 0, UINT32_MAX);
        return;
    case MSC_DTYPE_U64:
        ((uint64_t *)data)[index] = to_u64(number);
        return;
    case MSC_DTYPE_BOOL:
        ((uint8_t *)data)[index] = is_true(number);
        return;
    case MSC_DTYPE_NONE:
    case MSC_DTYPE_COUNT:
        break;
    }
    assert(!"an array has an element type");
}
