// Reads constant tensors, and computes joints with constant operands in advance. Import and binding
// use this to fold shape arithmetic; import also folds weights that a model computes (by
// transposing, reshaping, casting or scaling).
#ifndef MSC_GRAPH_PASSES_CONSTANT_INTERNAL_H
#define MSC_GRAPH_PASSES_CONSTANT_INTERNAL_H

#include "graph/graph.h"

// The elements of a weight, of a `constant` joint's output, or of a small integer tensor whose
// elements inference knows. *out is a reference owned by the caller, or NULL if the tensor is none
// of these.
enum msc_status msc_constant_of(struct msc_array **out, const struct msc_graph *g, int32_t tensor);

// Computes the result of a joint, for binding. If *done is true, the caller owns the result, `out`
// [n_outputs]. The result comes from the joint's reference kernel, so that it is bitwise the same
// as at run time. The kernel runs only if
//   - the operator is shape arithmetic, so that sites do not depend on the bound lengths
//   - all operands are constant and all shapes are numbers
//   - no output would be too large
// If the kernel does not run or fails, the result is taken from inference. *done is false if
// inference does not know the result either.
enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint);
// Like msc_constant_evaluate, but for import: computes all operators that give the same result in
// every run.
enum msc_status msc_constant_evaluate_all(struct msc_array *out[], bool *done,
                                          const struct msc_graph *g, int32_t joint);

// True for operators of shape arithmetic: binding computes them if their operands are constant.
bool msc_constant_is_folded(enum msc_op op);

#endif
