// Weights that ONNX Runtime's operators MatMulNBits and GatherBlockQuantized read: rows of codes of
// 2, 4 or 8 bits, divided into blocks that share a scale. Exports for targets with
// `has_block_operators` (graph/target.h) store such weights, and searches count their bytes.
//
// A row has the codes of an output of a product, or of an entry of a table. If a product reads the
// weight, the last block of a row is filled up with codes. Codes are unsigned. Without stored zero
// points, all zero points are 2^(bits - 1).
#ifndef MSC_GRAPH_BLOCK_WEIGHTS_H
#define MSC_GRAPH_BLOCK_WEIGHTS_H

#include "graph/graph.h"
#include "graph/quant.h"
#include "graph/target.h"

struct msc_block_weight {
    int64_t n_rows, n_columns;    // columns are summed over, or are the elements of an entry
    int64_t block_size, n_blocks; // columns per block; blocks per row
    int32_t bits;                 // of a stored code, at least those of the quantisation
    int32_t offset;               // added to integers and zero points, so that they are codes
    bool has_zero_points;         // stored, because they differ from 2^(bits - 1)
    bool has_products;            // products read the weight, and maybe lookups as well
};

// Is this the axis of a linear layer's weight that the layer sums over?
bool msc_block_weight_is_summed(const struct msc_tensor *weight, int32_t axis);
// Can all joints that read the weight be such operators under this quantisation? These are linear
// layers, and joints that take rows of a matrix. The group size must be a power of 2 from 16 to
// 256.
bool msc_block_weight_describe(struct msc_block_weight *out, const struct msc_graph *g,
                               int32_t weight, const struct msc_quant *q,
                               const struct msc_target *target);
// Codes of a row in the file.
int64_t msc_block_weight_row(const struct msc_block_weight *b);
// Bytes of n codes or zero points of a row.
int64_t msc_block_weight_row_bytes(const struct msc_block_weight *b, int64_t n);
// Bytes of codes, scales and zero points.
int64_t msc_block_weight_bytes(const struct msc_block_weight *b);

#endif
