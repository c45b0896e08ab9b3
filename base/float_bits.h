// The bits of a float32 as a number, and back.
#ifndef MSC_BASE_FLOAT_BITS_H
#define MSC_BASE_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t msc_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float msc_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

#endif
