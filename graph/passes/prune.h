// Pruning: rebuilds a graph without some channels.
//
//     struct msc_graph *small;
//     MSC_TRY(msc_graph_prune(&small, g, &channels, is_gone, NULL));
#ifndef MSC_GRAPH_PASSES_PRUNE_H
#define MSC_GRAPH_PASSES_PRUNE_H

#include "graph/channels.h"

MSC_PUBLIC_BEGIN

// Makes a copy without the units (coupled channels: graph/channels.h) that are marked in is_gone
// [channels->n_units]. Weights lose the elements of these units. Attributes with lengths or
// positions (groups, shapes, cuts, indices) are adjusted. Names do not change. A channel shuffle
// that loses channels becomes one `take`. Every shape is inferred again and must match the
// remaining lengths. `channels` must have been found in `g`. If `elements` [n_tensors] is not NULL,
// its entries replace the remaining elements of weights; NULL entries replace nothing.
// MSC_E_INVALID if a group would lose all its units, or if new elements have a wrong shape. If `g`
// is wide (graph/wide.h), so is *out, and new elements are rounded to the weight's own type. *out
// is finalized and owned by the caller.
enum msc_status msc_graph_prune(struct msc_graph **out, const struct msc_graph *g,
                                const struct msc_channels *channels, const bool is_gone[],
                                const struct msc_array *const elements[]);
// Removes the elements of removed units from an array that has the shape of `tensor`. *out is a
// reference owned by the caller.
enum msc_status msc_graph_prune_array(struct msc_array **out, const struct msc_array *x,
                                      const struct msc_channels *channels, int32_t tensor,
                                      const bool is_gone[]);

MSC_PUBLIC_END

#endif
