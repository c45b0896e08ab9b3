// Computes how many bits each integer of a weight takes in an exported file
// (graph/onnx/onnx_export_pack.c).
//
// ONNX has integer types of 4, 8 and 16 bits. Integers of 2, 3, 5, 6 and 7 bits are packed, with
// nodes that unpack them when the file is loaded. Usually all such weights are packed, and searches
// count packed bits. If a target requantises (msc_site_scheme.target), a weight is packed only if
// this saves more bytes than the nodes take. Otherwise it is stored in the next larger type, and
// searches count the bits of that type.
#ifndef MSC_GRAPH_PACKING_H
#define MSC_GRAPH_PACKING_H

#include "graph/graph.h"
#include "graph/quant.h"
#include "graph/target.h"

#include <stdint.h>

// A weight has n integers of `bits` bits (2 to 16) and is exported for a target that requantises.
// Returns the number of bits that one integer takes in the file.
int32_t msc_packed_bits(int64_t n, int32_t bits);
// Returns the number of bytes that all n integers of such a weight take in the file.
int64_t msc_packed_bytes(int64_t n, int32_t bits);
// Returns the number of bytes that a quantised weight takes in the file, with its scales and zero
// points. `target` NULL: packed integers, without the nodes that unpack them.
double msc_packed_weight_bytes(const struct msc_graph *g, int32_t weight,
                               const struct msc_quant *quant, const struct msc_target *target);

#endif
