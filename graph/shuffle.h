// Finds channel shuffles: three joints (reshape, permute_dims, reshape) that together only reorder
// one axis, for example from [groups, size] to [size, groups]. The tensors between them have no
// other consumers.
#ifndef MSC_GRAPH_SHUFFLE_H
#define MSC_GRAPH_SHUFFLE_H

#include "graph/graph.h"

struct msc_shuffle {
    const struct msc_joint *split, *turn, *merge; // the three joints, in topological order
    int axis;                                     // the reordered axis, in the input and the output
    int n_factors;                                // number of factors of the axis
    // lengths of the factors, in the order of the input
    int64_t factors[MSC_MAX_DIMS];
    // factor k of the output is factor order[k] of the input
    int order[MSC_MAX_DIMS];
};

// True if `merge` is the last of the three joints and they form a channel shuffle.
bool msc_shuffle_find(struct msc_shuffle *out, const struct msc_graph *g,
                      const struct msc_joint *merge);
// True if `j` is one of the first two joints of a channel shuffle.
bool msc_shuffle_around(struct msc_shuffle *out, const struct msc_graph *g,
                        const struct msc_joint *j);
// The input index of the element at output index `c` of the axis.
int64_t msc_shuffle_from(const struct msc_shuffle *s, int64_t c);

#endif
