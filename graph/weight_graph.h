// MSC's weight graph: the weights of a network, and what is between them, as pruning sees it: who makes
// channels, who follows, who has to keep the same ones.
//
// A node is a weight, or the output of a joint that is a relation:
//
//     main       the weight of a convolution or linear layer, or a constant: makes channels
//     follow     a weight that has those of its parents: biases, normalisations
//     passby     the output of an addition, product or reshape
//     multi_inputs   that of a concatenation, which puts channels of its parents one behind the other
//
// Its parents are the next such nodes upwards; main nodes read what they give. Nodes that meet in one
// that does not put them one behind the other are friends: they lose the same channels. What goes
// together to the index is graph/channels.h; this is its outline, in the forms that MSC had. Other than
// there, friends of friends are friends.
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
    const char *type;     // "weight", "bias", ... as its joint calls it, or "output"
    const char *producer; // operator of a main node; NULL
    const char *strategy; // as above
    int32_t n_parents;
    int32_t *parents; // indices of nodes, once each, rising
    int32_t n_friends;
    int32_t *friends; // this one among them, the first of all leads; none: 0
};

struct msc_weight_graph {
    int32_t n;
    struct msc_weight_node *nodes; // parents before children
    void *storage;
};

// The graph is borrowed. *out is owned by the caller. MSC_E_NOMEM.
enum msc_status msc_weight_graph_build(struct msc_weight_graph *out, const struct msc_graph *g);
void msc_weight_graph_finish(struct msc_weight_graph *w); // accepts zeroed

// Forms, as those of graphs (graph/graph.h).
void msc_weight_graph_print(const struct msc_weight_graph *w, const struct msc_graph *g,
                            struct msc_str *out);
void msc_weight_graph_write_prototxt(const struct msc_weight_graph *w, const struct msc_graph *g,
                                     struct msc_str *out);
// *out is the caller's (cJSON_Delete).
enum msc_status msc_weight_graph_to_json(struct cJSON **out, const struct msc_weight_graph *w,
                                         const struct msc_graph *g);

#endif
