// What the files of the pass `einsum` share. Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_PASSES_FUSE_EINSUM_INTERNAL_H
#define MSC_GRAPH_PASSES_FUSE_EINSUM_INTERNAL_H

#include "graph/einsum.h"
#include "graph/passes/fuse_internal.h"

// One operand of an equation of two.
struct msc_einsum_factor {
    int32_t tensor;
    int at[MSC_EINSUM_AXES]; // dimension of each axis of the equation, or -1
    int own;                 // of a product: the axis that stands next to the one summed over
};

// Do both have it, and equally long?
bool msc_einsum__same_length(const struct msc_graph *g, const struct msc_einsum_factor *a,
                             const struct msc_einsum_factor *b, int axis);
// Does nothing move?
bool msc_einsum__is_in_order(const int64_t order[], int n);
// Adds a joint "near/what" with a list for its attribute; *tensor is what it reads, then what it
// makes.
enum msc_status msc_einsum__move(int32_t *tensor, struct msc_graph *g, enum msc_op op,
                                 const char *near, const char *what, const int64_t list[], int n);
// Puts the axes of a tensor in this order, for `einsum` alone. A constant becomes another: no joint
// does it.
enum msc_status msc_einsum__permute(int32_t *tensor, struct msc_graph *g, int32_t einsum,
                                    const char *what, const int64_t order[], int n);

// An equation of a constant and something else that share no axis of the output: a linear layer,
// whatever the order of axes and however many are summed over.
enum msc_status msc_fuse__einsum_linear(bool *done, struct msc_fuse *f, const struct msc_match *m,
                                        int32_t einsum, const struct msc_einsum *e,
                                        const struct msc_einsum_factor *a,
                                        const struct msc_einsum_factor *b);

#endif
