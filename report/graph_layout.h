// Positions of a graph's joints on a page. Joints are in layers, each below all of its inputs;
// within a layer, each joint is close to its neighbours in the graph.
//
//     struct msc_graph_layout layout;
//     MSC_TRY(msc_graph_layout_make(&layout, graph));
//     ... layout.nodes[joint].column, layout.nodes[joint].layer ...
//     msc_graph_layout_finish(&layout);
//
// A joint's layer is the length of the longest path from an input. Within a layer, sweeps order
// joints by the mean position of their neighbours (Sugiyama, Tagawa and Toda, 1981, "Methods for
// visual understanding of hierarchical system structures"). Then each joint moves towards that mean
// as far as there is room.
#ifndef MSC_REPORT_GRAPH_LAYOUT_H
#define MSC_REPORT_GRAPH_LAYOUT_H

#include "base/alloc.h"
#include "graph/graph.h"

struct msc_graph_place {
    int32_t layer; // number of the layer, from 0
    double column; // centre in joint widths, from 0; at least 1 apart within a layer
};

struct msc_graph_layout {
    struct msc_graph_place *nodes; // [n_joints]
    int32_t n_layers;
    double n_columns;
    struct msc_arena arena;
};

// The graph must be finalized. Fails only with MSC_E_NOMEM.
enum msc_status msc_graph_layout_make(struct msc_graph_layout *out, const struct msc_graph *g);
void msc_graph_layout_finish(struct msc_graph_layout *layout); // accepts a zeroed struct

#endif
