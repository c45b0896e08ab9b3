#include "graph/packing.h"

#include <stdbool.h>

// Approximate bytes of the nodes that unpack one weight with a name of 20 characters: the nodes for
// each part of 4, 2 or 1 bits, and the final nodes.
enum { PART_BYTES = 170, LAST_BYTES = 40 };

static int64_t node_bytes(int32_t bits) {
    int32_t n_parts = (bits >> 2 & 1) + (bits >> 1 & 1) + (bits & 1);
    return n_parts * PART_BYTES + LAST_BYTES;
}

static int32_t type_bits(int32_t bits) {
    return bits <= 4 ? 4 : bits <= 8 ? 8 : 16;
}

// Bytes of n packed integers. Every four integers take `bits` units of 4 bits; the last four are
// padded.
static int64_t parts_bytes(int64_t n, int32_t bits) {
    return ((n + 3) / 4 * bits + 1) / 2;
}

static int64_t type_bytes(int64_t n, int32_t bits) {
    return (n * type_bits(bits) + 7) / 8;
}

int32_t msc_packed_bits(int64_t n, int32_t bits) {
    bool is_packed = bits < 8 && parts_bytes(n, bits) + node_bytes(bits) < type_bytes(n, bits);
    return is_packed ? bits : type_bits(bits);
}

int64_t msc_packed_bytes(int64_t n, int32_t bits) {
    return msc_packed_bits(n, bits) < type_bits(bits) ? parts_bytes(n, bits) : type_bytes(n, bits);
}
