// Joints over constants that are left to run time.
//
//     MSC_TRY(msc_graph_tell_unfolded(graph, "model.onnx", log));
#ifndef MSC_GRAPH_PASSES_CONSTANT_H
#define MSC_GRAPH_PASSES_CONSTANT_H

#include "base/log.h"
#include "graph/graph.h"

// An importer computes joints over constants in advance, unless their outputs would have too many
// elements. Warns of each such joint, since its output is not a weight. `path` begins the line.
enum msc_status msc_graph_tell_unfolded(const struct msc_graph *g, const char *path,
                                        const struct msc_log *log);

#endif
