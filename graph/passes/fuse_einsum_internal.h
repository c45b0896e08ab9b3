// Shared by the files of the pass `einsum`. Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_FUSE_EINSUM_INTERNAL_H
#define MSC_GRAPH_PASSES_FUSE_EINSUM_INTERNAL_H

#include "graph/einsum.h"
#include "graph/passes/fuse_internal.h"

// One operand of an equation with two operands.
struct msc_einsum_factor {
    int32_t tensor;
    int at[MSC_EINSUM_AXES]; // dimension of each axis of the equation, or -1
    int own;                 // in a product, the factor's row or column axis that is not summed
};

// fuse_einsum_move.c. True if both have the axis, with the same length.
bool msc_einsum__same_length(const struct msc_graph *g, const struct msc_einsum_factor *a,
                             const struct msc_einsum_factor *b, int axis);
// True if the order is 0, 1, 2, ...
bool msc_einsum__is_in_order(const int64_t order[], int n);
// Adds a joint "near/what" with `list` as its attribute. *tensor is its input on entry and its
// output on return.
enum msc_status msc_einsum__move(int32_t *tensor, struct msc_graph *g, enum msc_op op,
                                 const char *near, const char *what, const int64_t list[], int n);
// Permutes the axes of a tensor for the joint `einsum` only. A constant is permuted in advance,
// without a joint.
enum msc_status msc_einsum__permute(int32_t *tensor, struct msc_graph *g, int32_t einsum,
                                    const char *what, const int64_t order[], int n);

// Permutes the elements of a constant, computed as the joint would do it.
enum msc_status msc_einsum__permute_elements(struct msc_array **out, struct msc_graph *g,
                                             int32_t tensor, const char *near, const char *what,
                                             const int64_t order[], int n);
// Replaces the weight of the `constant` joint that produces `tensor`. It keeps the weight's name
// if `reader` is its only consumer.
enum msc_status msc_einsum__replace_weight(int32_t *out, struct msc_graph *g, int32_t tensor,
                                           int32_t reader, const char *layout,
                                           const struct msc_array *data);

// fuse_einsum_linear.c. Handles an equation of a constant and another factor that share no axis
// of the output, as a linear layer. Any order of axes and any number of summed axes is
// supported.
enum msc_status msc_fuse__einsum_linear(bool *done, struct msc_fuse *f, const struct msc_match *m,
                                        int32_t einsum, const struct msc_einsum *e,
                                        const struct msc_einsum_factor *a,
                                        const struct msc_einsum_factor *b);

#endif
