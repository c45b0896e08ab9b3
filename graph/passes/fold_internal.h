// Passes that make a finalized graph smaller without changing what it computes. Each leaves it
// finalized. Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_PASSES_FOLD_INTERNAL_H
#define MSC_GRAPH_PASSES_FOLD_INTERNAL_H

#include "graph/graph.h"

// Joints that hand their input on go, unless the model names their result as an output and the
// source is an input, a constant or an output itself.
enum msc_status msc_fold_identities(struct msc_graph *g);

// A batch normalisation behind a convolution, whose result nobody else reads, becomes part of the
// convolution's weight and bias. Only values change: the weight keeps its name and shape. A bias
// that was not there takes the place of the normalisation's beta.
enum msc_status msc_fold_batch_norms(struct msc_graph *g);

// Layouts that only readers know are carried back to the producers, and from there forwards.
enum msc_status msc_fold_layouts(struct msc_graph *g);

// The same operator with a bias; the operator itself where the bias is optional.
bool msc_fold__with_bias(enum msc_op *out, enum msc_op op);
// A bias under a name made from the joint's.
enum msc_status msc_fold__add_bias(int32_t *out, struct msc_graph *g, const char *joint,
                                   const struct msc_array *data);

#endif
