// How many bits an integer of a weight takes in an exported file (graph/onnx/onnx_export_pack.c).
//
// Files have types of 4, 8 and 16 bits. Integers of 2, 3, 5, 6 and 7 bits lie there in as many, with
// nodes that unpack them when the file is loaded. Where sites are all that a target requantises, weights
// for which these nodes take more bytes than they save are of the next type, and searches count so; else
// searches count packed bits, and all are packed.
#ifndef MSC_GRAPH_PACKING_H
#define MSC_GRAPH_PACKING_H

#include <stdint.h>

// Of each of n integers of 2 to 16 bits, where sites are all that a target requantises.
int32_t msc_packed_bits(int64_t n, int32_t bits);
// Of all of them together.
int64_t msc_packed_bytes(int64_t n, int32_t bits);

#endif
