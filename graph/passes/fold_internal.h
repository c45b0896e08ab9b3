// Passes that simplify a finalized graph without changing what it computes. Each leaves the graph
// finalized. Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_FOLD_INTERNAL_H
#define MSC_GRAPH_PASSES_FOLD_INTERNAL_H

#include "graph/graph.h"

// Removes joints that return their input, unless the result is a named output of the model and
// the source is an input, a constant or itself an output.
enum msc_status msc_fold_identities(struct msc_graph *g);

// Folds a batch normalisation into the weight and bias of the convolution before it, if the
// convolution has no other consumer. Only values change: the weight keeps its name and shape. A
// new bias replaces the normalisation's beta.
enum msc_status msc_fold_batch_norms(struct msc_graph *g);

// Propagates layouts that are known only from consumers back to producers, and forward from
// these.
enum msc_status msc_fold_layouts(struct msc_graph *g);

// Finds the variant of the operator with a bias; the operator itself if its bias is optional.
bool msc_fold__with_bias(enum msc_op *out, enum msc_op op);
// Adds a bias named after the joint.
enum msc_status msc_fold__add_bias(int32_t *out, struct msc_graph *g, const char *joint,
                                   const struct msc_array *data);

#endif
