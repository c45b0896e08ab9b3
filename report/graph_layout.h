// Where the joints of a graph go on a page: in layers, each below all that it reads, those of a layer
// near what they are connected to.
//
//     struct msc_graph_layout layout;
//     MSC_TRY(msc_graph_layout_make(&layout, graph));
//     ... layout.nodes[joint].column, layout.nodes[joint].layer ...
//     msc_graph_layout_finish(&layout);
//
// Layers are longest paths from the inputs; within a layer joints are ordered by the mean place of
// their neighbours, sweep by sweep (Sugiyama, Tagawa and Toda, 1981, "Methods for visual understanding of
// hierarchical system structures"), then moved towards it as far as there is room.
#ifndef MSC_REPORT_GRAPH_LAYOUT_H
#define MSC_REPORT_GRAPH_LAYOUT_H

#include "base/alloc.h"
#include "graph/graph.h"

struct msc_graph_place {
    int32_t layer; // from 0
    double
        column; // of its middle, in widths of a joint; from 0. No two of a layer are nearer than 1
};

struct msc_graph_layout {
    struct msc_graph_place *nodes; // [n_joints]
    int32_t n_layers;
    double n_columns;
    struct msc_arena arena;
};

// Of a finalized graph. MSC_E_NOMEM.
enum msc_status msc_graph_layout_make(struct msc_graph_layout *out, const struct msc_graph *g);
void msc_graph_layout_finish(struct msc_graph_layout *layout); // accepts a zeroed one

#endif
