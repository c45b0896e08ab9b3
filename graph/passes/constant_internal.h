// Constants: what a tensor holds whatever the network is fed, and joints over constants computed at
// once. Import and binding use this to fold shape arithmetic and weights that models compute
// (transposed, reshaped, cast, scaled).
#ifndef MSC_GRAPH_PASSES_CONSTANT_INTERNAL_H
#define MSC_GRAPH_PASSES_CONSTANT_INTERNAL_H

#include "graph/graph.h"

// The elements of a weight, of a `constant` joint's output, or of a small integer tensor whose
// contents inference knows as numbers. *out has a reference owned by the caller, or is NULL when
// the tensor is no constant.
enum msc_status msc_constant_of(struct msc_array **out, const struct msc_graph *g, int32_t tensor);

// Computes a joint from constant operands, by its reference kernel: what is folded has the bits that
// running it would have. *done is false, and nothing is made, when an operand is no constant, a
// shape is symbolic, the kernel refuses, or the operator is not one that is folded. Otherwise out[i]
// [n_outputs] are owned by the caller.
enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint);

// Is it one of the operators that are computed at once, given constant operands?
bool msc_constant_is_folded(enum msc_op op);

#endif
