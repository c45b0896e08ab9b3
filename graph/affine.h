// Joints that add a scalar constant to an activation or multiply it by one. Targets
// (graph/target.h) fuse them into the joint that produces the activation, as part of its tail
// (epilogue: graph/tail.h).
#ifndef MSC_GRAPH_AFFINE_H
#define MSC_GRAPH_AFFINE_H

#include "graph/graph.h"

// A joint that computes activation * factor + shift (the factor is 1 or the shift is 0).
struct msc_affine {
    int32_t activation; // tensor id
    double factor, shift;
};
bool msc_graph__read_affine(struct msc_affine *out, const struct msc_graph *g,
                            const struct msc_joint *j);
// The operand whose elements the joint moves, clips, or combines with a scalar; MSC_NO_ID if the
// joint does none of these.
int32_t msc_graph__passed_on(const struct msc_graph *g, const struct msc_joint *j);
// Reads a tensor that is a finite scalar constant; false for any other tensor.
bool msc_graph__read_number(double *out, const struct msc_graph *g, int32_t tensor);
// True if the tensor is a float activation that exactly one joint reads.
bool msc_graph__is_between(const struct msc_graph *g, int32_t tensor);

#endif
