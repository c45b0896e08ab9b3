// MSC's weight graph: the weights of a network and their relations for pruning. It shows which
// weights produce channels, which follow other weights, and which must keep the same channels.
//
// A node is a weight, or the output of a joint that relates weights:
//
//     main           the weight of a convolution or linear layer, or a constant: produces channels
//     follow         a weight with the channels of its parents: biases, normalisations
//     passby         the output of an addition, product or reshape
//     multi_inputs   the output of a concatenation: the channels of its parents, one after another
//
// The parents of a node are the nearest nodes upstream. Nodes that share a consumer other than a
// concatenation are friends, and so are friends of friends: they lose the same channels. The weight
// graph is an overview in MSC's text forms; graph/channels.h has the exact coupling of indices.
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
    const char *type;     // a weight's role ("weight", "bias", ...), or "output"
    const char *producer; // operator of a main node, else NULL
    const char *strategy; // one of the kinds above: "main", ...
    int32_t n_parents;
    int32_t *parents; // indices of the parent nodes, each once, ascending
    int32_t n_friends;
    int32_t *friends; // indices of friends, including this node; n_friends is 0 if it has none
};

struct msc_weight_graph {
    int32_t n;
    struct msc_weight_node *nodes; // parents before children
    void *storage;
};

// The graph is borrowed. *out is owned by the caller. MSC_E_NOMEM.
enum msc_status msc_weight_graph_build(struct msc_weight_graph *out, const struct msc_graph *g);
void msc_weight_graph_finish(struct msc_weight_graph *w); // accepts a zeroed struct

// Text forms like those of graphs (graph/graph.h).
void msc_weight_graph_print(const struct msc_weight_graph *w, const struct msc_graph *g,
                            struct msc_str *out);
void msc_weight_graph_write_prototxt(const struct msc_weight_graph *w, const struct msc_graph *g,
                                     struct msc_str *out);
// *out is owned by the caller (cJSON_Delete).
enum msc_status msc_weight_graph_to_json(struct cJSON **out, const struct msc_weight_graph *w,
                                         const struct msc_graph *g);

#endif
