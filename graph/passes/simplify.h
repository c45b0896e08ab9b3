// The end of every reading of a model, whatever its format: checks that weights are finite, then
// runs the passes (fuse_internal.h). Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_SIMPLIFY_H
#define MSC_GRAPH_PASSES_SIMPLIFY_H

#include "graph/graph.h"

struct msc_simplify_options {
    bool keep_batch_norm; // do not fold batch normalisation
    bool keep_joints;     // run no pass; only check weights
    // True for a weight that was computed from other weights: the model file does not contain it.
    // NULL if this is not known.
    bool (*is_computed)(void *payload, const char *weight);
    void *payload;
};

// Constants may be infinite (masks). Computed constants may also be NaN, because a later Where may
// discard the NaN. All other weights of float32 must be finite: MSC_E_INVALID. The graph is
// finalized, before and after the call.
enum msc_status msc_graph_simplify(struct msc_graph *g, const struct msc_simplify_options *options);

#endif
