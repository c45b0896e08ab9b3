// A network as a picture of it needs it: joints with their places and what a plan does at each.
#ifndef MSC_REPORT_GRAPH_PICTURE_H
#define MSC_REPORT_GRAPH_PICTURE_H

#include "graph/graph.h"

struct cJSON;

// {"columns", "layers", "joints": [{"name", "op", "column", "layer", "shape", "tasks"}], "edges": [[from,
// to], ...]}: `tasks` are places in `plan` (report/plan_layers.h) of what the joint reads as a weight,
// makes as an activation, or is itself. *out is owned by the caller.
enum msc_status msc_graph_picture(struct cJSON **out, const struct msc_graph *g,
                                  const struct cJSON *plan);

#endif
