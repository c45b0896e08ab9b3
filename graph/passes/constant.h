// Warns of joints that are computed at run time although their operands are constant.
//
//     MSC_TRY(msc_graph_tell_unfolded(graph, "model.onnx", log));
#ifndef MSC_GRAPH_PASSES_CONSTANT_H
#define MSC_GRAPH_PASSES_CONSTANT_H

#include "base/log.h"
#include "graph/graph.h"

// Importers compute joints with constant operands in advance, unless an output has too many
// elements. For each joint with such an output, logs a warning that the output is not a weight. The
// message begins with `path`.
enum msc_status msc_graph_tell_unfolded(const struct msc_graph *g, const char *path,
                                        const struct msc_log *log);

#endif
