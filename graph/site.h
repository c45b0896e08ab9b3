// Sites: the places of a graph where quantisation can act, named and numbered once; and slots, the
// places that edits are for.
//
// A slot is one use: an operand of one joint that the operator table marks as quantisable (the
// activation and the weight of convolutions, linear layers and matrix products, both weights and
// the input of recurrent layers, tables of embeddings), or the bias of such a joint. A site is what
// a choice is made for: a weight with all its uses, an activation with all its quantisable uses, or,
// when grouped by site, one use of an activation. Biases belong to none.
//
// For a target that requantises (graph/target.h) every use of a tensor that it passes on as
// integers is a slot: operands of any joint, and outputs of the graph. A site then is all that has
// one scale there: a tensor, with those that it is moved to.
#ifndef MSC_GRAPH_SITE_H
#define MSC_GRAPH_SITE_H

#include "graph/target.h"

MSC_PUBLIC_BEGIN

enum msc_site_kind {
    MSC_SITE_WEIGHT,
    MSC_SITE_ACTIVATION,
    MSC_SITE_BIAS, // of slots alone
};
#define MSC_SITE_KINDS 3

struct msc_slot {
    int32_t joint;   // joint id; MSC_NO_ID: the slot is an output of the graph
    int32_t operand; // position in msc_joint.operands, or among the outputs
    // The operand's tensor; where a `constant` joint makes that, the weight which it holds.
    int32_t tensor;
    enum msc_site_kind kind;
    // Weights: axis of output channels in the tensor's own shape, of the gates' rows in a recurrent
    // layer, of the rows in a table. -1: the layout names none, or a transposed convolution has
    // groups (one scale for all then). Activations: 1 where a convolution with constant weights
    // keeps each channel to itself (depthwise), so that every sum is of one channel; -1 for others, and
    // where a target requantises. Biases: their last axis.
    int32_t channel_axis;
    // Weights: the axes that outputs sum over, which groups of elements lie along: `group_axes` of
    // them from `group_axis` on, taken as one. -1 and 0 for others.
    int32_t group_axis, group_axes;
};

struct msc_site {
    const char *name; // the tensor's name; "<tensor>-c-<joint>" when grouped by site
    enum msc_site_kind kind;
    int32_t tensor;
    int32_t channel_axis;           // that of all its slots, or -1 when they differ
    int32_t group_axis, group_axes; // those of its first slot
    int32_t n_slots;
    const int32_t *slots; // indices into msc_sites.slots
};

// Which uses are slots, and what they have in common.
struct msc_site_scheme {
    bool by_use; // every joint that uses an activation has a site of its own; not with a target
    // One that requantises; others, and NULL, leave it to the operator table.
    const struct msc_target *target;
};

struct msc_sites {
    struct msc_site_scheme scheme;
    int32_t n_slots;
    // In topological order of joints, then operand order, outputs of the graph behind them:
    // n_site_slots that belong to sites, then biases.
    struct msc_slot *slots;
    int32_t n_site_slots;
    int32_t n_sites;
    struct msc_site *sites; // in order of their first slot
    void *storage;
};

// `scheme` NULL: all zero. Inside joints that hold others there are no sites: the graph should be
// split (msc_graph_split). *out is owned by the caller. Joint names, not ids, are what stays when a
// graph is bound: bound copies have the same slots in the same order.
enum msc_status msc_sites_find(struct msc_sites *out, const struct msc_graph *g,
                               const struct msc_site_scheme *scheme);
void msc_sites_finish(struct msc_sites *sites);                               // accepts zeroed
int32_t msc_sites_find_name(const struct msc_sites *sites, const char *name); // or MSC_NO_ID
// Index of the slot of (joint, operand), or MSC_NO_ID.
int32_t msc_sites_find_slot(const struct msc_sites *sites, int32_t joint, int32_t operand);

MSC_PUBLIC_END

#endif
