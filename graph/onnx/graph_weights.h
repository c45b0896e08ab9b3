// Replaces the weights of a graph that was read from MSCGraph JSON. Internal to graph/.
#ifndef MSC_GRAPH_ONNX_GRAPH_WEIGHTS_H
#define MSC_GRAPH_ONNX_GRAPH_WEIGHTS_H

#include "graph/graph.h"

// Replaces the weights that have the names or aliases in the list, by the rules of
// msc_graph_load_weights (graph/onnx/load.h). After an error some weights may already be replaced.
enum msc_status msc_graph__set_weights(struct msc_graph *g, const struct msc_array_list *weights);

#endif
