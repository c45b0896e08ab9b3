#include "graph/narrow_float.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct msc_narrow_float formats[] = {
    {"float8e4m3fn", 0x80, 3, 7, 0x7e, 0x7f, 0, false},
    {"float8e4m3fnuz", 0x80, 3, 8, 0x7f, 0x80, 0, true},
    {"float8e5m2", 0x80, 2, 15, 0x7b, 0x7f, 0x7c, false},
    {"float8e5m2fnuz", 0x80, 2, 16, 0x7f, 0x80, 0, true},
    {"float4e2m1", 0x08, 1, 1, 0x07, 0x07, 0, false}, // NaN becomes the largest number
};

const struct msc_narrow_float *msc_narrow_float_find(const char *name) {
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

float msc_narrow_float_decode(const struct msc_narrow_float *f, uint8_t code) {
    int magnitude = code & (f->sign - 1);
    int fraction = magnitude & ((1 << f->fraction_bits) - 1);
    int exponent = magnitude >> f->fraction_bits;
    float x;
    if (f->infinity != 0 && magnitude == f->infinity) {
        x = INFINITY;
    } else if (magnitude > f->greatest || (f->has_one_zero && code == f->nan)) {
        x = NAN;
    } else if (exponent == 0) {
        x = ldexpf((float)fraction, 1 - f->bias - f->fraction_bits);
    } else {
        int whole = fraction + (1 << f->fraction_bits);
        x = ldexpf((float)whole, exponent - f->bias - f->fraction_bits);
    }
    return (code & f->sign) != 0 ? -x : x;
}

static uint8_t encode_magnitude(const struct msc_narrow_float *f, float x, bool saturates) {
    int least = 1 - f->bias; // exponent of the smallest normal number
    int exponent = x > 0 && isfinite(x) ? ilogbf(x) : least;
    exponent = exponent < least ? least : exponent;
    // |x| in units of the last place. If it rounds up to the next power of two, the sum below
    // carries into the exponent.
    float steps = rintf(ldexpf(x, f->fraction_bits - exponent));
    int normal = 1 << f->fraction_bits;
    float code = isfinite(x) ? steps + (float)((exponent - least) * normal) : INFINITY;
    if (code <= (float)f->greatest) {
        return (uint8_t)code;
    }
    return saturates ? f->greatest : f->infinity != 0 ? f->infinity : f->nan;
}

uint8_t msc_narrow_float_encode(const struct msc_narrow_float *f, float x, bool saturates) {
    if (isnan(x)) {
        return f->nan;
    }
    uint8_t code = encode_magnitude(f, fabsf(x), saturates);
    bool has_sign = signbit(x) && !(f->has_one_zero && (code == 0 || code == f->nan));
    return has_sign ? (uint8_t)(code | f->sign) : code;
}
