// Wide graphs: copies of graphs with float16 or bfloat16 tensors, in which these tensors are
// float32. They are needed because compression computes in float32.
//
// A graph and its wide copy have the same ids, names and joints, so sites, edits and strategies fit
// both. The wide graph holds the original, which has the model's own types. The original is used
// for sizes, for exports and for the reference of the distill loss.
//
//     struct msc_graph *wide;
//     MSC_TRY(msc_graph_widen(&wide, g));
//     const struct msc_graph *own = msc_graph_own(wide);   // g
//
// A tensor between two Casts remains narrow, because the model rounds there on purpose. If input
// and output of a Cast are both float32 in the wide graph, the Cast is an `identity` joint there.
#ifndef MSC_GRAPH_WIDE_H
#define MSC_GRAPH_WIDE_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// *out is owned by the caller; it is `g` itself if g has no tensor to widen or is wide already. `g`
// must be finalized.
enum msc_status msc_graph_widen(struct msc_graph **out, const struct msc_graph *g);
// The graph in the model's own types: the graph that a wide graph was made from, else `g`.
// Borrowed from `g`.
const struct msc_graph *msc_graph_own(const struct msc_graph *g);
// True if a wide graph has the tensor in another type than the model.
bool msc_graph_is_widened(const struct msc_graph *g, int32_t tensor);
// Bytes of one element in the model's own type.
size_t msc_graph_own_bytes(const struct msc_graph *g, int32_t tensor);

// Makes a float32 graph that computes as the model does in its own types: the result of every joint
// of the wide graph `g` is rounded to the tensor's own type. map [n_tensors of g] receives, for
// each tensor of `g`, the tensor of *out with the rounded value. *out is owned by the caller.
enum msc_status msc_graph_round(struct msc_graph **out, int32_t map[], const struct msc_graph *g);

MSC_PUBLIC_END

#endif
