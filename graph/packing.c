#include "graph/packing.h"

#include "graph/block_weights.h"

#include <math.h>
#include <stdbool.h>

// Approximate size in the file of the nodes that unpack a weight with a name of 20 characters. The
// bits of an integer are split into parts of 4, 2 and 1 bits (5 = 4 + 1), which are stored
// separately. PART_BYTES is for the nodes that unpack one part, LAST_BYTES for the nodes that join
// the parts.
enum { PART_BYTES = 170, LAST_BYTES = 40 };

static int64_t node_bytes(int32_t bits) {
    int32_t n_parts = (bits >> 2 & 1) + (bits >> 1 & 1) + (bits & 1);
    return n_parts * PART_BYTES + LAST_BYTES;
}

static int32_t type_bits(int32_t bits) {
    return bits <= 4 ? 4 : bits <= 8 ? 8 : 16;
}

// Bytes of n packed integers. Four integers take 4 * `bits` bits; n is rounded up to a multiple of
// 4.
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

// Zero points have the integers' type. Weights in groups are converted to floats when they are
// loaded; their zero points, if any, take 4 bytes. Without a target, zero points take 4 bytes if
// any of them may differ from 0.
double msc_packed_weight_bytes(const struct msc_graph *g, int32_t weight,
                               const struct msc_quant *quant, const struct msc_target *target) {
    int64_t n = msc_tensor_n_elements(msc_graph_tensor(g, weight));
    bool is_symmetric = quant->low < 0;
    struct msc_block_weight block;
    if (msc_block_weight_describe(&block, g, weight, quant, target)) {
        return (double)msc_block_weight_bytes(&block);
    }
    if (quant->type != MSC_DTYPE_NONE) {
        return (double)n * (double)msc_dtype_bytes(quant->type);
    }
    if (quant->blocks) {
        return (double)n / quant->blocks->n * quant->blocks->n_bytes;
    }
    if (!target) {
        return ceil((double)n * quant->bits / 8) + (double)quant->n * (is_symmetric ? 4 : 8);
    }
    int32_t zero_point = quant->group_size == 0 ? quant->bits <= 8 ? 1 : 2 : is_symmetric ? 0 : 4;
    return (double)msc_packed_bytes(n, quant->bits) + (4.0 + zero_point) * quant->n;
}
