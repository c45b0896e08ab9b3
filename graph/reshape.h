// Maps axes before to axes after joints that keep the order of elements: reshape, flatten,
// squeeze and similar.
#ifndef MSC_GRAPH_RESHAPE_H
#define MSC_GRAPH_RESHAPE_H

#include "graph/graph.h"

// Number of distinct indices of an axis: its length; n if the length is a symbol times n; 0 if the
// length is only a symbol. With n, index i stands for all positions that equal i modulo n.
int64_t msc_reshape_period(const struct msc_graph *g, const struct msc_tensor *t, int axis);

// An axis. If its length is a symbol times a number, one of these two factors; the symbol is the
// outer one.
struct msc_reshape_part {
    int axis;
    bool is_symbol;
};
#define MSC_RESHAPE_PARTS (2 * MSC_MAX_DIMS)

// Parts that together hold the same elements before and after, in order. Axes of length 1 are in
// no block.
struct msc_reshape_block {
    int n_in, n_out;
    struct msc_reshape_part in[MSC_RESHAPE_PARTS], out[MSC_RESHAPE_PARTS];
};

// Returns the number of blocks, at most MSC_RESHAPE_PARTS + 1, each as small as possible.
// Symbolic lengths are equal if they are the same prim.
int msc_reshape_blocks(struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1],
                       const struct msc_graph *g, const struct msc_tensor *x,
                       const struct msc_tensor *y);
// The attribute "shape" of a joint `reshape` or `broadcast_to` whose output is to have `dims`
// (-1: unchanged, a symbol). Returns the number of elements, or -1 if no such attribute exists.
int msc_reshape_shape(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                      const struct msc_joint *j, const int64_t dims[]);
// The same if the shape is an operand: the numbers that replace its elements; 0 if an element is
// kept.
int msc_reshape_elements(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                         const struct msc_joint *j, const int64_t dims[]);
// True if one of the two exists, whatever the known lengths become.
bool msc_reshape_is_writable(const struct msc_graph *g, const struct msc_joint *j);

#endif
