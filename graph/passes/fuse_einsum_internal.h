// Shared by the files of the pass `einsum`. Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_FUSE_EINSUM_INTERNAL_H
#define MSC_GRAPH_PASSES_FUSE_EINSUM_INTERNAL_H

#include "graph/einsum.h"
#include "graph/passes/fuse_internal.h"

// One operand of an equation with two operands.
struct msc_einsum_factor {
    int32_t tensor;
    // the factor's dimension for each axis of the equation; -1 if it has none
    int at[MSC_EINSUM_AXES];
    // in a matrix product, the axis that only this factor has (row or column)
    int own;
};

// Defined in fuse_einsum_move.c.

// True if the axis has the same length in both factors. Both factors must have the axis.
bool msc_einsum__same_length(const struct msc_graph *g, const struct msc_einsum_factor *a,
                             const struct msc_einsum_factor *b, int axis);
// True if the order is 0, 1, 2, ...
bool msc_einsum__is_in_order(const int64_t order[], int n);
// Adds a joint called "<near>/<what>" with `list` as its attribute ("shape" or "axes"). *tensor is
// the joint's input on entry and the joint's output on return.
enum msc_status msc_einsum__move(int32_t *tensor, struct msc_graph *g, enum msc_op op,
                                 const char *near, const char *what, const int64_t list[], int n);
// Permutes the axes of a tensor that the joint `einsum` reads; other consumers are not affected. A
// constant is permuted in advance, other tensors by a joint.
enum msc_status msc_einsum__permute(int32_t *tensor, struct msc_graph *g, int32_t einsum,
                                    const char *what, const int64_t order[], int n);

// Permutes the elements of a constant with the kernel of permute_dims.
enum msc_status msc_einsum__permute_elements(struct msc_array **out, struct msc_graph *g,
                                             int32_t tensor, const char *near, const char *what,
                                             const int64_t order[], int n);
// Makes a weight with elements `data` in place of the weight of the `constant` joint that produces
// `tensor`. If `reader` is the only consumer, the old weight is removed and the new one takes its
// name.
enum msc_status msc_einsum__replace_weight(int32_t *out, struct msc_graph *g, int32_t tensor,
                                           int32_t reader, const char *layout,
                                           const struct msc_array *data);

// Defined in fuse_einsum_linear.c. Replaces an Einsum of a constant and another factor by a linear
// layer if the two share no axis of the output. Axes may have any order, and any number of axes may
// be summed.
enum msc_status msc_fuse__einsum_linear(bool *done, struct msc_fuse *f, const struct msc_match *m,
                                        int32_t einsum, const struct msc_einsum *e,
                                        const struct msc_einsum_factor *a,
                                        const struct msc_einsum_factor *b);

#endif
