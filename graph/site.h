// Sites: the places of a graph that quantisation can act on, each named and numbered once. Slots:
// the places that edits apply to.
//
// A slot is one use of a tensor: an operand of a joint that the operator table marks as
// quantisable, or the bias of such a joint. These operands are quantisable: the activation and
// the weight of convolutions, linear layers and matrix products, the input and both weights of
// recurrent layers, and embedding tables. A site is the unit of one choice: a weight with all its
// uses, or an activation with all its quantisable uses (if grouped by use, one use of an
// activation). Biases belong to no site.
//
// For a target that requantises (graph/target.h), every use of a tensor that passes as integers
// is a slot: operands of any joint, and outputs of the graph. A site is then all tensors that
// share one scale: a tensor and those that its elements are moved to.
#ifndef MSC_GRAPH_SITE_H
#define MSC_GRAPH_SITE_H

#include "graph/target.h"

MSC_PUBLIC_BEGIN

enum msc_site_kind {
    MSC_SITE_WEIGHT,
    MSC_SITE_ACTIVATION,
    MSC_SITE_BIAS, // only slots have this kind
};
#define MSC_SITE_KINDS 3

struct msc_slot {
    int32_t joint;   // joint id; MSC_NO_ID if the slot is an output of the graph
    int32_t operand; // position in msc_joint.operands, or among the outputs
    // The operand's tensor, or the weight held by the `constant` joint that produces it.
    int32_t tensor;
    enum msc_site_kind kind;
    // Weights: axis of the output channels in the tensor's own shape; for recurrent layers, of
    // the gate rows; for tables, of the rows. -1 if the layout names none, or for a transposed
    // convolution with groups (which has one scale). Activations: 1 if a depthwise convolution
    // with constant weights reads it, so that every sum has only one channel; -1 otherwise and if
    // a target requantises. Biases: their last axis.
    int32_t channel_axis;
    // Weights: the axes that outputs sum over, along which groups of elements are formed:
    // `group_axes` axes from `group_axis` on, merged into one. -1 and 0 for others.
    int32_t group_axis, group_axes;
};

struct msc_site {
    const char *name; // the tensor's name; "<tensor>-c-<joint>" when grouped by use
    enum msc_site_kind kind;
    int32_t tensor;
    int32_t channel_axis;           // the axis of all its slots, or -1 if they differ
    int32_t group_axis, group_axes; // those of its first slot
    int32_t n_slots;
    const int32_t *slots; // indices into msc_sites.slots
};

// Which uses are slots, and how slots are grouped into sites.
struct msc_site_scheme {
    bool by_use; // each joint that uses an activation has its own site; not with a target
    // A target that requantises. For any other, and for NULL, the operator table decides.
    const struct msc_target *target;
};

struct msc_sites {
    struct msc_site_scheme scheme;
    int32_t n_slots;
    // In topological order of joints, then operand order, then outputs of the graph. The
    // n_site_slots slots that belong to sites come first, then biases.
    struct msc_slot *slots;
    int32_t n_site_slots;
    int32_t n_sites;
    struct msc_site *sites; // ordered by their first slot
    void *storage;
};

// `scheme` NULL: all zero. Joints that contain graphs have no sites inside, so split the graph
// first (msc_graph_split). *out is owned by the caller. Binding a graph keeps joint names, not
// ids; bound copies have the same slots in the same order.
enum msc_status msc_sites_find(struct msc_sites *out, const struct msc_graph *g,
                               const struct msc_site_scheme *scheme);
void msc_sites_finish(struct msc_sites *sites);                               // accepts zeroed
int32_t msc_sites_find_name(const struct msc_sites *sites, const char *name); // index, or MSC_NO_ID
// Index of the slot of (joint, operand), or MSC_NO_ID.
int32_t msc_sites_find_slot(const struct msc_sites *sites, int32_t joint, int32_t operand);

MSC_PUBLIC_END

#endif
