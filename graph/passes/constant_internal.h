// Constants: tensors whose contents do not depend on inputs, and joints that are computed in
// advance from constants. Import and binding use this to fold shape arithmetic, and weights that
// models compute (by transposing, reshaping, casting or scaling).
#ifndef MSC_GRAPH_PASSES_CONSTANT_INTERNAL_H
#define MSC_GRAPH_PASSES_CONSTANT_INTERNAL_H

#include "graph/graph.h"

// The elements of a weight, of a `constant` joint's output, or of a small integer tensor whose
// contents inference knows. *out is a reference owned by the caller, or NULL if the tensor is not
// constant.
enum msc_status msc_constant_of(struct msc_array **out, const struct msc_graph *g, int32_t tensor);

// Computes a joint from constant operands with its reference kernel, so the result is bitwise the
// same as at run time. *done is false, and there is no result, if an operand is not constant, a
// shape is symbolic, the kernel fails, the output would be too large, or the operator is not
// folded. Otherwise out[i] [n_outputs] are owned by the caller. This variant is for binding: it
// folds only shape arithmetic, so that sites do not depend on the bound lengths.
enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint);
// Like msc_constant_evaluate, for import: folds every operator that gives the same result in
// every run.
enum msc_status msc_constant_evaluate_all(struct msc_array *out[], bool *done,
                                          const struct msc_graph *g, int32_t joint);

// True for operators of shape arithmetic, which binding folds if the operands are constant.
bool msc_constant_is_folded(enum msc_op op);

#endif
