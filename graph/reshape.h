// Which axes of a tensor become which when its elements are only counted anew: reshape, flatten,
// squeeze and their kin.
#ifndef MSC_GRAPH_RESHAPE_H
#define MSC_GRAPH_RESHAPE_H

#include "graph/graph.h"

// How many indices of an axis can be told apart: its length; of a symbol times a number that number,
// where index i is i modulo that; 0 where all that is known is a symbol.
int64_t msc_reshape_period(const struct msc_graph *g, const struct msc_tensor *t, int axis);

// An axis, or of a length that is a symbol times a number one of the two, the symbol counting slower.
struct msc_reshape_part {
    int axis;
    bool is_symbol;
};
#define MSC_RESHAPE_PARTS (2 * MSC_MAX_DIMS)

// Parts that together hold the same elements before and behind, in order. Axes of length 1 are in
// none.
struct msc_reshape_block {
    int n_in, n_out;
    struct msc_reshape_part in[MSC_RESHAPE_PARTS], out[MSC_RESHAPE_PARTS];
};

// Returns how many there are, at most MSC_RESHAPE_PARTS + 1, each as small as can be. Symbols are the
// same length where they are the same prim.
int msc_reshape_blocks(struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1],
                       const struct msc_graph *g, const struct msc_tensor *x,
                       const struct msc_tensor *y);
// The attribute "shape" of a joint `reshape` or `broadcast_to` whose output has `dims` in place of
// its own (-1: as before, a symbol). Returns how many numbers it is; -1: there is none that says so.
int msc_reshape_shape(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                      const struct msc_joint *j, const int64_t dims[]);
// The same where the shape is an operand: numbers to put in its elements' place; 0 where they stay.
int msc_reshape_elements(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                         const struct msc_joint *j, const int64_t dims[]);
// Is there one of the two, whatever becomes of lengths that are known?
bool msc_reshape_is_writable(const struct msc_graph *g, const struct msc_joint *j);

#endif
