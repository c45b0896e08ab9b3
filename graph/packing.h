// How many bits one integer of a weight takes in an exported file
// (graph/onnx/onnx_export_pack.c).
//
// Files have types of 4, 8 and 16 bits. Integers of 2, 3, 5, 6 and 7 bits are stored in exactly
// that many, with nodes that unpack them when the file is loaded. Usually all such weights are
// packed, and searches count packed bits. Exception: the sites are those of a target that
// requantises (msc_site_scheme.target). Then a weight whose nodes would take more bytes than
// packing saves is stored in the next larger type, and searches count that.
#ifndef MSC_GRAPH_PACKING_H
#define MSC_GRAPH_PACKING_H

#include <stdint.h>

// Bits that each of n integers of `bits` (2 to 16) takes in the file, if the sites are those of a
// target that requantises.
int32_t msc_packed_bits(int64_t n, int32_t bits);
// Bytes that all n integers take.
int64_t msc_packed_bytes(int64_t n, int32_t bits);

#endif
