// Warns of joints with constant operands that are computed at run time.
//
//     MSC_TRY(msc_graph_tell_unfolded(graph, "model.onnx", log));
#ifndef MSC_GRAPH_PASSES_CONSTANT_H
#define MSC_GRAPH_PASSES_CONSTANT_H

#include "base/log.h"
#include "graph/graph.h"

// An importer computes joints with constant operands in advance, unless their outputs would have
// too many elements. Logs a warning for each such joint, because its output is not a weight. The
// message begins with `path`.
enum msc_status msc_graph_tell_unfolded(const struct msc_graph *g, const char *path,
                                        const struct msc_log *log);

#endif
