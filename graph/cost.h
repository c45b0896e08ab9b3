// What a joint costs, from its shapes alone.
#ifndef MSC_GRAPH_COST_H
#define MSC_GRAPH_COST_H

#include "graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// Multiply-accumulates of convolutions, linear layers and matrix products; 0 for all else. The
// joint's shapes must be bound.
double msc_joint_macs(const struct msc_graph *g, const struct msc_joint *j);

#ifdef __cplusplus
}
#endif

#endif
