// MSC's weight graph: the weights of a network and their relations, as pruning sees them: which
// weights produce channels, which follow, and which must keep the same channels.
//
// A node is a weight, or the output of a joint that relates weights:
//
//     main           the weight of a convolution or linear layer, or a constant: produces channels
//     follow         a weight with the channels of its parents: biases, normalisations
//     passby         the output of an addition, product or reshape
//     multi_inputs   the output of a concatenation: the channels of its parents, one after another
//
// The parents of a node are the nearest such nodes upstream; a main node reads their output.
// Nodes that share a consumer other than a concatenation are friends: they lose the same
// channels, and friends of friends are friends. This is an outline in MSC's forms;
// graph/channels.h has the exact coupling of indices.
//
//     struct msc_weight_graph w;
//     MSC_TRY(msc_weight_graph_build(&w, g));
//     msc_weight_graph_print(&w, g, &text);
//     msc_weight_graph_finish(&w);
#ifndef MSC_GRAPH_WEIGHT_GRAPH_H
#define MSC_GRAPH_WEIGHT_GRAPH_H

#include "graph/graph.h"

struct msc_weight_node {
    int32_t tensor;
    const char *type;     // "weight", "bias", ... as its joint names it, or "output"
    const char *producer; // operator of a main node, else NULL
    const char *strategy; // one of the kinds above
    int32_t n_parents;
    int32_t *parents; // indices of nodes, each once, ascending
    int32_t n_friends;
    int32_t *friends; // includes this node; the first one leads; n_friends is 0 if there are none
};

struct msc_weight_graph {
    int32_t n;
    struct msc_weight_node *nodes; // parents before children
    void *storage;
};

// The graph is borrowed. *out is owned by the caller. MSC_E_NOMEM.
enum msc_status msc_weight_graph_build(struct msc_weight_graph *out, const struct msc_graph *g);
void msc_weight_graph_finish(struct msc_weight_graph *w); // accepts zeroed

// Text forms, as for graphs (graph/graph.h).
void msc_weight_graph_print(const struct msc_weight_graph *w, const struct msc_graph *g,
                            struct msc_str *out);
void msc_weight_graph_write_prototxt(const struct msc_weight_graph *w, const struct msc_graph *g,
                                     struct msc_str *out);
// *out is owned by the caller (cJSON_Delete).
enum msc_status msc_weight_graph_to_json(struct cJSON **out, const struct msc_weight_graph *w,
                                         const struct msc_graph *g);

#endif
