// Quantised joints in integer arithmetic: the ground truth for the integer kernels of every
// backend, which must give the same bits.
//
// With q the stored integers, z zero points and s scales, for output channel c:
//
//     sum = sum over k of (q_x - z_x) * (q_w - z_w[c])      exactly, in integers
//     t   = s_x * s_w[c]                                    from here on, each line is rounded
//     y   = t * (float)sum                                  to float32
//     y   = y + b[c]
//
// Padding is q = z and adds nothing. Activation functions, residual additions and the quantisation
// of consumers follow as float32 joints.
//
//     struct msc_view operands[3] = {x, w, bias};  // x.quant and w.quant set; bias float32
//     struct msc_reference_call call = {.graph = graph, .joint = joint, .n_operands = 3, ...};
//     MSC_TRY(msc_reference_quantized_conv(&call));
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_QUANT_H
#define MSC_GRAPH_REFERENCE_REFERENCE_QUANT_H

#include "graph/reference/reference.h"

// Operands 0 and 1 are plain views of integers (uint8, int8 or wider) with `quant`. The input has a
// single scale, or one per channel if each sum is over a single channel (depthwise). The weight has
// a single scale, or one per output channel. Operand 2, if present, is a float32 bias. Output 0 is
// float32. MSC_E_UNSUPPORTED if scales are along another axis.
enum msc_status msc_reference_quantized_conv(const struct msc_reference_call *call);

// Like msc_reference_quantized_conv, for linear layers and matrix products. The factors may also be
// two activations with one scale each.
enum msc_status msc_reference_quantized_linear(const struct msc_reference_call *call);

#endif
