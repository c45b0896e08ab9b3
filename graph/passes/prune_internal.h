// What the files of pruning share. Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_PASSES_PRUNE_INTERNAL_H
#define MSC_GRAPH_PASSES_PRUNE_INTERNAL_H

#include "graph/builder_internal.h"
#include "graph/passes/prune.h"

struct msc_prune {
    const struct msc_graph *from;
    const struct msc_channels *channels;
    const bool *is_gone;
    const struct msc_array *const *elements; // [n_tensors] in place of weights' own; may be NULL
    struct msc_builder *builder;
    struct msc_value **values; // [n_tensors] by id in `from`
};

// How many of the first `end` indices of an axis are left.
static inline int64_t msc_prune__count(const struct msc_prune *p, int32_t tensor, int axis,
                                       int64_t end) {
    return msc_channels_count(p->channels, tensor, axis, end, p->is_gone);
}
// Lengths that are left; symbols stay -1.
void msc_prune__dims(int64_t dims[MSC_MAX_DIMS], const struct msc_prune *p, int32_t tensor);
bool msc_prune__is_cut(const struct msc_prune *p, int32_t tensor, int axis);

// Sets attributes that tell lengths or places of axes that are cut; takes away operands that did.
enum msc_status msc_prune__attrs(struct msc_builder_copy *copy, struct msc_prune *p,
                                 const struct msc_joint *j);

#endif
