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
// running it would have. *done is false, and nothing is made, when an operand is not a constant, a
// shape is symbolic, the kernel fails, the output would grow beyond a limit, or the operator is not
// folded. Otherwise out[i] [n_outputs] are owned by the caller. For binding: arithmetic of shapes
// only, so that sites do not depend on what lengths are bound to.
enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint);
// The same for importing: every operator that gives the same result on every run.
enum msc_status msc_constant_evaluate_all(struct msc_array *out[], bool *done,
                                          const struct msc_graph *g, int32_t joint);

// Is it an operator of shape arithmetic, which binding folds given constant operands?
bool msc_constant_is_folded(enum msc_op op);

#endif
