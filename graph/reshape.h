// Maps axes before to axes after joints that keep the order of elements: reshape, flatten,
// squeeze and similar.
#ifndef MSC_GRAPH_RESHAPE_H
#define MSC_GRAPH_RESHAPE_H

#include "graph/graph.h"

// Number of distinct indices of an axis: its length; n if the length is a symbol times n; 0 if the
// length is only a symbol. With n, index i stands for all positions that equal i modulo n.
int64_t msc_reshape_period(const struct msc_graph *g, const struct msc_tensor *t, int axis);

// A part: an axis or, if the axis' length is a symbol times a number, one of these two factors.
// The symbol is the outer factor.
struct msc_reshape_part {
    int axis;
    bool is_symbol;
};
#define MSC_RESHAPE_PARTS (2 * MSC_MAX_DIMS)

// A block: consecutive parts before and consecutive parts after the joint that hold the same
// elements in the same order. Axes of length 1 are in no block.
struct msc_reshape_block {
    int n_in, n_out;
    struct msc_reshape_part in[MSC_RESHAPE_PARTS], out[MSC_RESHAPE_PARTS];
};

// Returns the number of blocks, at most MSC_RESHAPE_PARTS + 1, each as small as possible.
// Symbolic lengths are equal if they are the same prim.
int msc_reshape_blocks(struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1],
                       const struct msc_graph *g, const struct msc_tensor *x,
                       const struct msc_tensor *y);
// Computes the attribute "shape" of a joint `reshape` or `broadcast_to` so that its output has
// `dims` (-1: a symbolic length, unchanged). Returns the length of `out`, or -1 if no such
// attribute exists.
int msc_reshape_shape(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                      const struct msc_joint *j, const int64_t dims[]);
// Like msc_reshape_shape, for a shape that is an operand: out[i] replaces element i of the
// operand, or is 0 if that element is kept.
int msc_reshape_elements(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                         const struct msc_joint *j, const int64_t dims[]);
// True if msc_reshape_shape or msc_reshape_elements succeeds, whatever values the known lengths
// take.
bool msc_reshape_is_writable(const struct msc_graph *g, const struct msc_joint *j);

#endif
