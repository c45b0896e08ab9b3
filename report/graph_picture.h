// The data for a picture of a network: joints, their positions, and a plan's choices at each.
#ifndef MSC_REPORT_GRAPH_PICTURE_H
#define MSC_REPORT_GRAPH_PICTURE_H

#include "graph/graph.h"

struct cJSON;

// {"columns", "layers", "joints": [{"name", "op", "column", "layer", "shape", "details", "tasks"}],
// "edges": [[from, to], ...]}. `shape` is that of the first output, `details` are the shapes of
// weights and the attributes, both as text. `tasks` are indices into `plan`
// (results/plan_layers.h): tasks of the joint's weights, of the activations it computes, and of the
// joint itself. *out is owned by the caller.
enum msc_status msc_graph_picture(struct cJSON **out, const struct msc_graph *g,
                                  const struct cJSON *plan);

#endif
