// The last step of an import: finalizes the graph, and runs the passes that simplify it.
#include "graph/onnx/onnx_import_internal.h"

#include "graph/passes/simplify.h"

static bool is_computed(void *payload, const char *weight) {
    return !msc_onnx__is_initializer(payload, weight);
}

enum msc_status msc_onnx__run_passes(struct msc_onnx_import *im) {
    MSC_TRY(msc_graph_finalize(im->builder.graph));
    const struct msc_simplify_options options = {
        .keep_batch_norm = im->options->keep_batch_norm,
        .keep_joints = im->options->keep_joints,
        .is_computed = is_computed,
        .payload = im,
    };
    return msc_graph_simplify(im->builder.graph, &options);
}
