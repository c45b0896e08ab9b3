// Other weights in place of those of a graph that is read as it is (MSCGraph JSON).
// Internal to graph/.
#ifndef MSC_GRAPH_ONNX_GRAPH_WEIGHTS_H
#define MSC_GRAPH_ONNX_GRAPH_WEIGHTS_H

#include "graph/graph.h"

// By name or alias, as msc_graph_load_weights has it (graph/onnx/load.h). After an error some may be new.
enum msc_status msc_graph__set_weights(struct msc_graph *g, const struct msc_array_list *weights);

#endif
