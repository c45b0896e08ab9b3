// Elements of any type except float64. An element is read as its bits (one word, or two for types
// of 64 bits), which are then converted to a float or an integer. Storing a float as an integer
// truncates towards zero and saturates; storing an integer wraps around. Types are numbered as by
// msc_vk_element (vk_joint.h).
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
const uint F32 = 0, I32 = 1, U32 = 2, I64 = 3, I8 = 4, U8 = 5, I16 = 6, U16 = 7, F16 = 8, BF16 = 9,
           BOOL = 10;

bool is_real(uint type) {
    return type == F32 || type == F16 || type == BF16;
}

uint bytes_of(uint type) {
    return type <= U32 ? 4 : type == I64 ? 8 : type == I8 || type == U8 || type == BOOL ? 1 : 2;
}

// Defines a function that reads element i of a buffer, counted from word `begin`.
#define READER(name, words)                                                                        \
    uvec2 name(uint type, uint begin, uint i) {                                                    \
        uint n = bytes_of(type);                                                                   \
        if (n == 8) {                                                                              \
            return uvec2(words[begin + 2 * i], words[begin + 2 * i + 1]);                          \
        }                                                                                          \
        uint value = words[begin + i * n / 4];                                                     \
        return uvec2(n == 4 ? value : bitfieldExtract(value, int(i * n % 4 * 8), int(8 * n)), 0);  \
    }

// Defines a function that writes element i; `bytes` is the same buffer.
#define WRITER(name, words, bytes)                                                                 \
    void name(uint type, uint begin, uint i, uvec2 bits) {                                         \
        uint n = bytes_of(type);                                                                   \
        if (n >= 4) {                                                                              \
            words[begin + i * n / 4] = bits.x;                                                     \
            if (n == 8) {                                                                          \
                words[begin + 2 * i + 1] = bits.y;                                                 \
            }                                                                                      \
        } else {                                                                                   \
            bytes[4 * begin + n * i] = uint8_t(bits.x & 255u);                                     \
            if (n == 2) {                                                                          \
                bytes[4 * begin + n * i + 1] = uint8_t(bits.x >> 8 & 255u);                        \
            }                                                                                      \
        }                                                                                          \
    }

float half_to_float(uint h) {
    uint exponent = h >> 10 & 31u, fraction = h & 1023u, sign = (h & 0x8000u) << 16;
    if (exponent == 0) {
        return uintBitsToFloat(floatBitsToUint(float(fraction) * 5.9604644775390625e-8) | sign);
    }
    return uintBitsToFloat(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

// Rounds to nearest, ties to even.
uint float_to_half(float v) {
    uint bits = floatBitsToUint(v), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return sign | 0x7e00u;
    }
    if (size >= 0x47800000u) {
        return sign | 0x7c00u;
    }
    if (size < 0x38800000u) { // the last bit of the sum is 2^-24
        return sign | (floatBitsToUint(uintBitsToFloat(size) + 0.5) - 0x3f000000u);
    }
    return sign | (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13;
}

uint float_to_bfloat(float v) {
    uint bits = floatBitsToUint(v);
    return isnan(v) ? bits >> 16 | 0x40u : bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}

int64_t whole_of_float(float v) {
    if (isnan(v)) {
        return int64_t(0);
    }
    return v >= 9223372036854775808.0   ? packInt2x32(ivec2(-1, 0x7fffffff))
           : v < -9223372036854775808.0 ? packInt2x32(ivec2(0, 0x80000000))
                                        : int64_t(v);
}

float real_of_bits(uint type, uvec2 bits) {
    return type == F16 ? half_to_float(bits.x) : uintBitsToFloat(type == BF16 ? bits.x << 16 : bits.x);
}

// Used instead of int64_t(v), because some versions of Mesa compare its result as if it had 32
// bits.
int64_t widen(int v) {
    return packInt2x32(ivec2(v, v >> 31));
}

int64_t whole(uint type, uvec2 bits) {
    switch (type) {
    case F32:
    case F16:
    case BF16: return whole_of_float(real_of_bits(type, bits));
    case I64: return packInt2x32(ivec2(bits));
    case I32: return widen(int(bits.x));
    case I16: return widen(bitfieldExtract(int(bits.x), 0, 16));
    case I8: return widen(bitfieldExtract(int(bits.x), 0, 8));
    }
    return packInt2x32(ivec2(bits.x, 0));
}

float real(uint type, uvec2 bits) {
    return is_real(type) ? real_of_bits(type, bits) : float(whole(type, bits));
}

uvec2 bits_of_whole(uint type, int64_t v) {
    switch (type) {
    case F32: return uvec2(floatBitsToUint(float(v)), 0);
    case F16: return uvec2(float_to_half(float(v)), 0);
    case BF16: return uvec2(float_to_bfloat(float(v)), 0);
    case BOOL: return uvec2(v != int64_t(0) ? 1 : 0, 0);
    }
    return uvec2(unpackInt2x32(v));
}

uvec2 bits_of_real(uint type, float v) {
    switch (type) {
    case F32: return uvec2(floatBitsToUint(v), 0);
    case F16: return uvec2(float_to_half(v), 0);
    case BF16: return uvec2(float_to_bfloat(v), 0);
    case BOOL: return uvec2(v != 0.0 ? 1 : 0, 0);
    }
    int64_t low = type == I64   ? packInt2x32(ivec2(0, 0x80000000))
                  : type == I32 ? packInt2x32(ivec2(0x80000000, -1))
                  : type == I16 ? int64_t(-32768)
                  : type == I8  ? int64_t(-128)
                                : int64_t(0);
    int64_t high = type == I64   ? packInt2x32(ivec2(-1, 0x7fffffff))
                   : type == U32 ? packInt2x32(ivec2(-1, 0))
                   : type == I32 ? int64_t(2147483647)
                   : type == U16 ? int64_t(65535)
                   : type == I16 ? int64_t(32767)
                   : type == U8  ? int64_t(255)
                                 : int64_t(127);
    return bits_of_whole(type, clamp(whole_of_float(v), low, high));
}
