// Channel shuffles: reshape, permute_dims, reshape that together only change the order along one
// axis, [groups, size] to [size, groups]. What lies between them is read by them alone.
#ifndef MSC_GRAPH_SHUFFLE_H
#define MSC_GRAPH_SHUFFLE_H

#include "graph/graph.h"

struct msc_shuffle {
    const struct msc_joint *split, *turn, *merge; // in the order they come
    int axis;                                     // of what goes in and of what comes out
    int n_factors;                                // that the axis is cut in
    int64_t factors[MSC_MAX_DIMS];                // as they go in
    int order[MSC_MAX_DIMS];                      // factor k of what comes out is factor order[k]
};

// Is `merge` the last of three? False where they do more than that.
bool msc_shuffle_find(struct msc_shuffle *out, const struct msc_graph *g,
                      const struct msc_joint *merge);
// Is `j` one of the two before?
bool msc_shuffle_around(struct msc_shuffle *out, const struct msc_graph *g,
                        const struct msc_joint *j);
// The index that index `c` of what comes out has in what goes in.
int64_t msc_shuffle_from(const struct msc_shuffle *s, int64_t c);

#endif
