// Which axes of a tensor become which when its elements are only counted anew: reshape, flatten,
// squeeze and their kin.
#ifndef MSC_GRAPH_RESHAPE_H
#define MSC_GRAPH_RESHAPE_H

#include "graph/graph.h"

// Axes that together hold the same elements before and behind, in order. Axes of length 1 are in
// none.
struct msc_reshape_block {
    int n_in, n_out;
    int in[MSC_MAX_DIMS], out[MSC_MAX_DIMS];
};

// Returns how many there are, at most MSC_MAX_DIMS + 1, each as small as can be. Symbols are the same
// length where they are the same prim.
int msc_reshape_blocks(struct msc_reshape_block blocks[MSC_MAX_DIMS + 1],
                       const struct msc_tensor *x, const struct msc_tensor *y);
// The attribute "shape" of a joint `reshape` or `broadcast_to` whose output has `dims` in place of
// its own (-1: as before, a symbol). Returns how many numbers it is; -1: there is none that says so.
int msc_reshape_shape(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                      const struct msc_joint *j, const int64_t dims[]);

#endif
