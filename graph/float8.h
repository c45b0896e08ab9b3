// The 8-bit floats of ONNX, which consist of a sign, an exponent and a fraction.
//
//     const struct msc_float8 *f = msc_float8_find("float8e4m3fn");
//     uint8_t code = msc_float8_encode(f, 0.3f, true);
#ifndef MSC_GRAPH_FLOAT8_H
#define MSC_GRAPH_FLOAT8_H

#include <stdbool.h>
#include <stdint.h>

struct msc_float8 {
    const char *name;
    int fraction_bits, bias;
    uint8_t greatest; // code of the largest finite number
    uint8_t nan;
    uint8_t infinity;  // code of infinity; 0 if the format has no infinity
    bool has_one_zero; // the code of -0 represents NaN
};

// Finds a format by name: "float8e4m3fn", "float8e4m3fnuz", "float8e5m2" or "float8e5m2fnuz". NULL
// for any other name.
const struct msc_float8 *msc_float8_find(const char *name);
float msc_float8_decode(const struct msc_float8 *f, uint8_t code);
// Rounds to nearest, ties to even. Numbers beyond the largest finite one become that number if
// `saturates`, else infinity (NaN if the format has no infinity).
uint8_t msc_float8_encode(const struct msc_float8 *f, float x, bool saturates);

#endif
