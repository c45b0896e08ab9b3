// Relates the input axes and output axes of joints that keep the order of elements: reshape,
// flatten, squeeze and similar.
#ifndef MSC_GRAPH_RESHAPE_H
#define MSC_GRAPH_RESHAPE_H

#include "graph/graph.h"

// The number of indices that an axis has for pruning: its length; n if the length is a symbol times
// a number n; 0 if it is any other symbolic length. For a symbol times n, index i means all
// positions that equal i modulo n.
int64_t msc_reshape_period(const struct msc_graph *g, const struct msc_tensor *t, int axis);

// A part is an axis. If the axis' length is a symbol times a number, the axis has two parts: the
// symbol (the outer factor) and the number.
struct msc_reshape_part {
    int axis;
    bool is_symbol;
};
#define MSC_RESHAPE_PARTS (2 * MSC_MAX_DIMS)

// A block: consecutive parts of the joint's input (`in`) and consecutive parts of its output
// (`out`) that have the same product. Axes of length 1 are in no block.
struct msc_reshape_block {
    int n_in, n_out;
    struct msc_reshape_part in[MSC_RESHAPE_PARTS], out[MSC_RESHAPE_PARTS];
};

// Splits a reshape from x to y into blocks that are as small as possible. Returns their number, at
// most MSC_RESHAPE_PARTS + 1. Symbolic lengths are equal if they are the same prim.
int msc_reshape_blocks(struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1],
                       const struct msc_graph *g, const struct msc_tensor *x,
                       const struct msc_tensor *y);
// Computes the attribute "shape" that gives the output of a joint `reshape` or `broadcast_to` the
// dimensions `dims` (-1: a symbolic length, unchanged). Returns the number of elements of `out`, or
// -1 if no attribute can express them.
int msc_reshape_shape(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                      const struct msc_joint *j, const int64_t dims[]);
// Like msc_reshape_shape, but for a joint whose shape is an operand: out[i] replaces element i of
// the operand; 0 keeps the element.
int msc_reshape_elements(int64_t out[MSC_MAX_DIMS], const struct msc_graph *g,
                         const struct msc_joint *j, const int64_t dims[]);
// True if msc_reshape_shape or msc_reshape_elements will succeed for all values of the known
// lengths.
bool msc_reshape_is_writable(const struct msc_graph *g, const struct msc_joint *j);

#endif
