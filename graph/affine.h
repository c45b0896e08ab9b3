// Sums and products of an activation and a scalar constant. Targets (graph/target.h) fuse them
// into the joint before them, as part of that joint's tail (graph/tail.h).
#ifndef MSC_GRAPH_AFFINE_H
#define MSC_GRAPH_AFFINE_H

#include "graph/graph.h"

// A sum or product of an activation and a scalar constant.
struct msc_affine {
    int32_t activation; // tensor id
    double factor, shift;
};
bool msc_graph__read_affine(struct msc_affine *out, const struct msc_graph *g,
                            const struct msc_joint *j);
// The operand whose elements a joint moves, clips, or combines with a scalar; MSC_NO_ID if none.
int32_t msc_graph__passed_on(const struct msc_graph *g, const struct msc_joint *j);
// Reads a tensor that is a finite scalar constant; false for any other tensor.
bool msc_graph__read_number(double *out, const struct msc_graph *g, int32_t tensor);
// True if the tensor is a float activation that exactly one joint reads.
bool msc_graph__is_between(const struct msc_graph *g, int32_t tensor);

#endif
