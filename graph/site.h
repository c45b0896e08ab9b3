// Sites and slots of a graph. A slot is one use of a tensor, which an edit can change. A site is a
// tensor together with its uses; one quantisation is chosen for each site. Sites have names and
// numbers.
//
// A slot is an operand of a joint that the operator table marks as quantisable, or the bias of such
// a joint. The quantisable operands are the activation and the weight of convolutions, linear
// layers and matrix products, the input and both weights of recurrent layers, and embedding tables.
// A site is a weight with all its uses, or an activation with all its quantisable uses (if grouped
// by use, one use of an activation). Biases belong to no site.
//
// For a target that requantises (graph/target.h), every use of a requantised tensor is a slot:
// operands of any joint, and outputs of the graph. A site then consists of all tensors that share
// one scale: a tensor and the tensors that its elements are moved to.
#ifndef MSC_GRAPH_SITE_H
#define MSC_GRAPH_SITE_H

#include "graph/target.h"

MSC_PUBLIC_BEGIN

enum msc_site_kind {
    MSC_SITE_WEIGHT,
    MSC_SITE_ACTIVATION,
    MSC_SITE_BIAS, // a kind of slot; no site has it
};
#define MSC_SITE_KINDS 3

struct msc_slot {
    int32_t joint;   // joint id; MSC_NO_ID if the slot is an output of the graph
    int32_t operand; // position among the joint's operands or the graph's outputs
    // The operand's tensor, or the weight of the `constant` joint that produces it.
    int32_t tensor;
    enum msc_site_kind kind;
    // Axis for per-channel scales; -1: only one scale is possible.
    //   - Weights: the axis of the output channels. In recurrent layers, the axis of the gates'
    //     rows; in embedding tables, the axis of the rows. -1 if the layout does not name the axis,
    //     and in transposed convolutions with groups.
    //   - Activations: 1 if a depthwise convolution with a constant weight reads the tensor and no
    //     target requantises; else -1.
    //   - Biases: the last axis.
    int32_t channel_axis;
    // Weights: the joint sums over `group_axes` axes, beginning with `group_axis`. For scales per
    // group, these axes are merged into one, which is divided into groups. Other kinds: -1 and 0.
    int32_t group_axis, group_axes;
    // Activations: the joint multiplies the operand by a constant matrix, and the target can
    // quantise it dynamically (graph/quant.h).
    bool takes_dynamic;
};

struct msc_site {
    const char *name; // the tensor's name; "<tensor>-c-<joint>" for an activation grouped by use
    enum msc_site_kind kind;
    int32_t tensor;
    int32_t channel_axis;           // channel axis of all its slots; -1 if they differ
    int32_t group_axis, group_axes; // group axes of its first slot
    int32_t n_slots;
    const int32_t *slots; // indices into msc_sites.slots
    // A dynamic quantisation is possible: it applies to the slots that take it, of which there is
    // at least one, and all other slots stay float. No slot is of another product, which would have
    // to compute in float as well.
    bool takes_dynamic;
};

// Decides which uses are slots, and how slots are grouped into sites.
struct msc_site_scheme {
    bool by_use; // one site for each joint that reads an activation; not allowed with a target
    // If the target is NULL or does not requantise, the operator table decides.
    const struct msc_target *target;
};

struct msc_sites {
    struct msc_site_scheme scheme;
    int32_t n_slots;
    // First come the n_site_slots slots that belong to sites, then the slots of biases. Both parts
    // are in the order of joints, then of operands. Slots of the graph's outputs follow those of
    // joints.
    struct msc_slot *slots;
    int32_t n_site_slots;
    int32_t n_sites;
    struct msc_site *sites; // in the order of their first slots
    void *storage;
};

// Finds the sites and slots of a graph; `scheme` NULL means all zero. Graphs inside joints are not
// searched, so split the graph first (msc_graph_split). A bound copy of a graph has other ids, but
// the same slots in the same order. *out is owned by the caller.
enum msc_status msc_sites_find(struct msc_sites *out, const struct msc_graph *g,
                               const struct msc_site_scheme *scheme);
// accepts a zeroed struct
void msc_sites_finish(struct msc_sites *sites);
int32_t msc_sites_find_name(const struct msc_sites *sites, const char *name); // index, or MSC_NO_ID
// Index of the slot with this joint and operand, or MSC_NO_ID.
int32_t msc_sites_find_slot(const struct msc_sites *sites, int32_t joint, int32_t operand);

MSC_PUBLIC_END

#endif
