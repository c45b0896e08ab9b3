// Quantised joints computed over integers: the truth for every backend's integer kernels, which
// must give the same bits.
//
// With q the stored integers, z zero points and s scales, for output channel c:
//
//     sum = sum over k of (q_x - z_x) * (q_w - z_w[c])      exactly, in integers
//     t   = s_x * s_w[c]                                    each line one float32 rounding
//     y   = t * (float)sum
//     y   = y + b[c]
//
// Padding is q = z and adds nothing. Activations, residual adds and the consumers' own quantising
// follow as float32 joints.
//
//     struct msc_view operands[3] = {x, w, bias};  // x.quant and w.quant set; bias float32
//     struct msc_reference_call call = {.graph = graph, .joint = joint, .n_operands = 3, ...};
//     MSC_TRY(msc_reference_quantized_conv(&call));
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_QUANT_H
#define MSC_GRAPH_REFERENCE_REFERENCE_QUANT_H

#include "graph/reference/reference.h"

// Operands 0 and 1 are plain views of integers (uint8, int8 or wider) with `quant`: the input of
// one scale, or of one for each of its channels where each has sums of its own (as many groups), the
// weight of one scale or one for each of its output channels. Operand 2, when the joint has one, is
// a float32 bias, and output 0 is float32. MSC_E_UNSUPPORTED: scales along another axis.
enum msc_status msc_reference_quantized_conv(const struct msc_reference_call *call);

// The same for linear layers and matrix products (of two activations, say, each of one scale).
enum msc_status msc_reference_quantized_linear(const struct msc_reference_call *call);

#endif
