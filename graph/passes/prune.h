// Pruning: a graph made anew without channels, by surgery.
//
//     struct msc_graph *small;
//     MSC_TRY(msc_graph_prune(&small, g, &channels, is_gone, NULL));
#ifndef MSC_GRAPH_PASSES_PRUNE_H
#define MSC_GRAPH_PASSES_PRUNE_H

#include "graph/channels.h"

MSC_PUBLIC_BEGIN

// A copy without the units for which is_gone [channels->n_units]: weights lose their elements there,
// and attributes that tell lengths or places (groups, shapes, cuts, indices) say what is left. Names
// stay. A channel shuffle that loses channels becomes one `take`. Every shape is inferred anew, and
// must be what is left of the old one. `channels` are those of `g`. elements [n_tensors], where given
// and not NULL, are what is left of weights in place of their own. MSC_E_INVALID: nothing would be left
// of a group, or elements have another shape than is left. *out is finalized and owned by the caller.
enum msc_status msc_graph_prune(struct msc_graph **out, const struct msc_graph *g,
                                const struct msc_channels *channels, const bool is_gone[],
                                const struct msc_array *const elements[]);
// What is left of an array of a tensor's shape. *out is one reference, the caller's.
enum msc_status msc_graph_prune_array(struct msc_array **out, const struct msc_array *x,
                                      const struct msc_channels *channels, int32_t tensor,
                                      const bool is_gone[]);

MSC_PUBLIC_END

#endif
