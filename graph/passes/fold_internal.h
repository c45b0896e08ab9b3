// Passes that simplify a finalized graph without changing its results, and finalize it again. Only
// graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_FOLD_INTERNAL_H
#define MSC_GRAPH_PASSES_FOLD_INTERNAL_H

#include "graph/graph.h"

// Removes joints that return their input. A joint is kept if its result is a named output of the
// model and its input is an input of the model, a constant or another output.
enum msc_status msc_fold_identities(struct msc_graph *g);

// Folds a batch normalisation into the weight and bias of the convolution or linear layer that
// produces its input, if this output has no other consumer. The weight keeps its name and shape. If
// there is no bias, the normalisation's beta becomes the bias.
enum msc_status msc_fold_batch_norms(struct msc_graph *g);

// Propagates layouts that are known only from consumers: upstream to the producers, and from there
// downstream.
enum msc_status msc_fold_layouts(struct msc_graph *g);

// Finds the operator's variant with a bias. If the operator has an optional bias, this is the
// operator itself.
bool msc_fold__with_bias(enum msc_op *out, enum msc_op op);
// Adds a bias weight with these elements, named after the joint.
enum msc_status msc_fold__add_bias(int32_t *out, struct msc_graph *g, const char *joint,
                                   const struct msc_array *data);

#endif
