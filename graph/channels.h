// Coupled channels: the units that pruning can remove.
//
// Every axis of every tensor (weight or activation) has indices. Removing one index requires
// removing others. For example, if a filter of a convolution is removed, so are its bias element,
// its elements in later normalisations, the same channel of every tensor that is added to the
// output, and the columns of the weights that read this channel. A unit is a class of indices
// (tensor, axis, index) that can only be removed together. It is the smallest thing that can be
// pruned: a channel, an attention head, a hidden unit of a recurrent layer. An index that belongs
// to no unit is frozen: it is never removed. The network's inputs and outputs are frozen, and so
// are the axes that a normalisation or softmax sums over and all axes of joints whose coupling is
// unknown. A group consists of the units that have the same number of indices on the same axes. One
// pruning decision is made for each group.
//
// Classes are found by union-find over all joints. The `channels` column of graph/ops.def names
// the rule of each operator. Two kinds of joints leave a choice of what can be removed:
//   - A reshape that splits an axis into factors, such as [heads, size]. Only one factor remains
//     free: the outermost that no rule freezes. If it is `heads`, whole heads are removed, with
//     their products and softmax. A reshape may also merge some axes while it splits others, as
//     from [samples, heads * size] to [samples * heads, size]. Then the factor is chosen among the
//     common factors of input and output: samples, heads, size.
//   - A convolution with groups. Whole groups are removed, with all channels that they read and
//     write. In a depthwise convolution, a group is one channel. If whole groups are frozen, the
//     channels at the same position within every group are removed together.
// Channel shuffles only change the order and couple nothing else. 1-D parameters (biases, shifts)
// that several joints share do not couple these joints: each joint reads its own remaining
// elements.
//
// An axis whose length is a symbol has no indices. An axis whose length is a symbol times a number
// n (such as the heads of all samples of a batch) has n indices: index i means all positions that
// equal i modulo n.
//
// The design follows MSC's weight graph ("main" weights produce channels, others "follow"), but
// couples single indices. Groups of coupled parameters are described in G. Fang et al., DepGraph:
// Towards Any Structural Pruning, CVPR 2023.
//
//     struct msc_channels channels;
//     MSC_TRY(msc_channels_find(&channels, split_graph, &sites));
//     bool *is_gone = ...;                                // [channels.n_units]
//     is_gone[channels.groups[0].first_unit] = true;
//     MSC_TRY(msc_channels_mask(&masks, &channels, g, &sites, is_gone)); // runs as if pruned
//     MSC_TRY(msc_graph_prune(&small, g, &channels, is_gone, NULL)); // graph/passes/prune.h
//     msc_channels_finish(&channels);
#ifndef MSC_GRAPH_CHANNELS_H
#define MSC_GRAPH_CHANNELS_H

#include "graph/edit.h"

MSC_PUBLIC_BEGIN

// How a weight uses the units along one of its axes. A weight with neither role follows other
// weights (a bias, the parameters of a normalisation).
enum msc_channel_role {
    MSC_CHANNEL_MAKES = 1, // the weight produces the units
    MSC_CHANNEL_READS = 2, // the weight's joint sums over the units
};

struct msc_channel_axis {
    int32_t tensor;
    int axis;
    int32_t n;      // number of indices that each unit of the group has on this axis
    unsigned roles; // flags of enum msc_channel_role; 0 for activations
};

struct msc_channel_group {
    // Name of the first weight that produces the units, made unique with _1, _2, ...
    const char *name;
    int32_t first_unit, n_units;
    int32_t n_axes;
    const struct msc_channel_axis *axes; // ordered by tensor, then axis
};

// A slot (graph/site.h) whose joint sums over units, and the axis of these units in the slot's
// tensor.
struct msc_channel_read {
    int32_t slot;
    int axis;
};

// An operand that is not pruned. Instead, the joint reads only some of its elements: those whose
// indices remain on an axis of another tensor. Such operands are parameters that several joints
// share (exporters store equal parameters once), and initial states of recurrent layers that are
// inputs.
struct msc_channel_follower {
    int32_t joint, tensor;
    int axis;
    // The other tensor and its axis: an element is read if its index remains on this axis.
    int32_t of_tensor;
    int of_axis;
};

struct msc_channels {
    int32_t n_units;
    int32_t n_groups;
    // Groups and units are ordered by their first index (by tensor, axis, then index).
    const struct msc_channel_group *groups;
    int32_t n_reads;
    const struct msc_channel_read *reads;
    int32_t n_followers;
    const struct msc_channel_follower *followers;
    int32_t n_tensors;
    // [n_tensors * MSC_MAX_DIMS]: the unit of each index of an axis, or MSC_NO_ID if frozen. NULL
    // if the whole axis is frozen or unknown.
    const int32_t *const *units;
    void *storage;
};

// `sites` are the sites of `g` that msc_sites_find finds without a scheme. A unit is frozen if a
// slot that reads it cannot be masked. Joints that contain graphs are treated as unknown, so split
// the graph first (msc_graph_split). The functions below need the same `g` and `sites`. *out is
// owned by the caller.
enum msc_status msc_channels_find(struct msc_channels *out, const struct msc_graph *g,
                                  const struct msc_sites *sites);
void msc_channels_finish(struct msc_channels *channels); // accepts a zeroed struct

// The unit of an index, or MSC_NO_ID if the index is frozen.
int32_t msc_channels_unit(const struct msc_channels *c, int32_t tensor, int axis, int64_t index);
// Counts how many of the first `end` indices of an axis remain after the units marked in is_gone
// [n_units] are removed.
int64_t msc_channels_count(const struct msc_channels *c, int32_t tensor, int axis, int64_t end,
                           const bool is_gone[]);
// MSC_E_INVALID if a group would lose all its units; the message names the group.
enum msc_status msc_channels_check(const struct msc_channels *c, const bool is_gone[]);

// Cost of the network after the units marked in is_gone are removed: elements of weights, and
// multiply-accumulates (graph/cost.h). A symbolic length counts as 1.
struct msc_channel_cost {
    double parameters, macs;
};
enum msc_status msc_channels_cost(struct msc_channel_cost *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const bool is_gone[]);

// Edits that make the network compute what it would compute without the removed units. If a joint
// sums over a removed unit, the edits zero the unit's elements: in the joint's weight if the weight
// is constant, else in the joint's input. So values that earlier joints add to the unit (a bias, a
// shift, the 1/2 of a sigmoid) have no effect. Remaining channels keep their values; values of
// masked channels are unspecified.
struct msc_channel_masks {
    int32_t n;
    const int32_t *slots;                // [n] each slot once
    struct msc_edit *masks;              // [n], sealed; other edits may follow them
    const struct msc_edit *const *edits; // [n_slots], NULL if nothing is masked
    void *storage;
};
// *out is owned by the caller and borrows nothing.
enum msc_status msc_channels_mask(struct msc_channel_masks *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const struct msc_sites *sites,
                                  const bool is_gone[]);
void msc_channel_masks_finish(struct msc_channel_masks *masks); // accepts a zeroed struct

MSC_PUBLIC_END

#endif
