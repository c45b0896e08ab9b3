// ONNX's floats of 8 and 4 bits. A code is a byte with sign, exponent and fraction; the code of a
// 4-bit float is below 16.
//
//     const struct msc_narrow_float *f = msc_narrow_float_find("float8e4m3fn");
//     uint8_t code = msc_narrow_float_encode(f, 0.3f, true);
#ifndef MSC_GRAPH_NARROW_FLOAT_H
#define MSC_GRAPH_NARROW_FLOAT_H

#include <stdbool.h>
#include <stdint.h>

struct msc_narrow_float {
    const char *name;
    uint8_t sign; // the bit of the sign
    int fraction_bits, bias;
    uint8_t greatest; // code of the largest finite number
    uint8_t nan;
    uint8_t infinity;  // code of infinity; 0 if the format has no infinity
    bool has_one_zero; // the code of -0 represents NaN
};

// Finds a format by name: "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz" or
// "float4e2m1". NULL for any other name.
const struct msc_narrow_float *msc_narrow_float_find(const char *name);
float msc_narrow_float_decode(const struct msc_narrow_float *f, uint8_t code);
// Rounds to nearest, ties to even. Numbers beyond the largest finite one become that number if
// `saturates`, else infinity (NaN if the format has no infinity). 4-bit floats always saturate.
uint8_t msc_narrow_float_encode(const struct msc_narrow_float *f, float x, bool saturates);

#endif
