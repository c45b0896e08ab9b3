// State and functions shared by the files of pruning. Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_PRUNE_INTERNAL_H
#define MSC_GRAPH_PASSES_PRUNE_INTERNAL_H

#include "graph/builder_internal.h"
#include "graph/passes/prune.h"

struct msc_prune {
    const struct msc_graph *from;
    const struct msc_channels *channels;
    const bool *is_gone;
    const struct msc_array *const *elements; // [n_tensors] new elements of weights; may be NULL
    struct msc_builder *builder;
    struct msc_value **values; // [n_tensors] new value of each tensor of `from`
};

// Counts the remaining indices among the first `end` of an axis.
static inline int64_t msc_prune__count(const struct msc_prune *p, int32_t tensor, int axis,
                                       int64_t end) {
    return msc_channels_count(p->channels, tensor, axis, end, p->is_gone);
}
// Defined in prune_elements.c.

// Remaining lengths of a tensor; -1 for symbolic lengths.
void msc_prune__dims(int64_t dims[MSC_MAX_DIMS], const struct msc_prune *p, int32_t tensor);
bool msc_prune__is_cut(const struct msc_prune *p, int32_t tensor, int axis);
// Copies x with only some of the indices along `axis`: those that remain on axis `of_axis` of
// `tensor`.
enum msc_status msc_prune__cut_axis(struct msc_array **out, const struct msc_channels *channels,
                                    const bool is_gone[], int32_t tensor, int of_axis,
                                    const struct msc_array *x, int axis);

// Defined in prune_attrs.c. Adjusts attributes with lengths or positions on pruned axes. Removes
// operands that these attributes replace.
enum msc_status msc_prune__attrs(struct msc_builder_copy *copy, struct msc_prune *p,
                                 const struct msc_joint *j);

#endif
