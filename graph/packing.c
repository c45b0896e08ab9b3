#include "graph/packing.h"

#include <stdbool.h>

// What the nodes of one weight take in a file, about, with a name of 20 characters.
enum { UNPACKING_BYTES = 320 };

static int32_t type_bits(int32_t bits) {
    return bits <= 4 ? 4 : bits <= 8 ? 8 : 16;
}

// Planes of a bit, each with 4 bits for every 4 integers, what is left at the end included.
static int64_t plane_bytes(int64_t n, int32_t bits) {
    return ((n + 3) / 4 * bits + 1) / 2;
}

static int64_t type_bytes(int64_t n, int32_t bits) {
    return (n * type_bits(bits) + 7) / 8;
}

int32_t msc_packed_bits(int64_t n, int32_t bits) {
    bool is_packed = bits < 8 && plane_bytes(n, bits) + UNPACKING_BYTES < type_bytes(n, bits);
    return is_packed ? bits : type_bits(bits);
}

int64_t msc_packed_bytes(int64_t n, int32_t bits) {
    return msc_packed_bits(n, bits) < type_bits(bits) ? plane_bytes(n, bits) : type_bytes(n, bits);
}
