// Channels that go together: what pruning can take away.
//
// Every axis of every tensor, of weights and activations alike, has indices. Where one of them goes,
// others have to go with it: the filter of a convolution takes along its bias, what stands behind
// it in normalisations, the channel of every tensor that it is added to, and the columns of the
// weights that read it. A unit is such a class of (tensor, axis, index), the smallest thing that can
// go: a channel, a head of an attention, a hidden unit of a recurrent layer. What is in no unit is
// frozen: lengths of inputs and outputs of the network, what a normalisation or a softmax adds up,
// and all that no rule knows. Units with as many indices of the same axes are a group: what one
// decision is about.
//
// Classes are found by union-find over all joints, each by the rule that the operator table names
// (graph/ops.def, the column of channels). Where an axis is cut in factors (heads of an attention)
// or a convolution has groups, one of two things can stay free:
//   - of an axis of [heads, size] the outermost factor that nothing else freezes, so heads as a
//     whole: a head takes its products and its softmax along, and the sizes that are left are those
//     that kernels know. The next factor where the first is frozen. Axes that are put together and cut
//     elsewhere at once ([samples, heads, size] from [samples, both] to [samples and heads, size]) have
//     the factors of both sides.
//   - of a convolution's groups whole groups, with all that they read and make; depthwise ones are
//     groups of one. Where that is frozen, the same position of all groups.
// Channel shuffles only change the order, and tie nothing that was not tied. Neither do numbers of one
// axis (biases, shifts) that several joints share: each of these reads what is left for it.
//
// An axis whose length is a symbol has no indices to speak of. One whose length is a symbol times a
// number (the heads of all samples of a batch) has that number of them: each stands for all that are
// as far behind a multiple of it.
//
// After: MSC's weight graph ("main" weights make, others "follow"), exact where that was not, and
// G. Fang et al., DepGraph: Towards Any Structural Pruning, CVPR 2023 (groups of coupled
// parameters).
//
//     struct msc_channels channels;
//     MSC_TRY(msc_channels_find(&channels, split_graph, &sites));
//     bool *is_gone = ...;                                // [channels.n_units]
//     is_gone[channels.groups[0].first_unit] = true;
//     MSC_TRY(msc_channels_mask(&masks, &channels, g, &sites, is_gone)); // run as if they were gone
//     MSC_TRY(msc_graph_prune(&small, g, &channels, is_gone, NULL)); // graph/passes/prune.h: really gone
//     msc_channels_finish(&channels);
#ifndef MSC_GRAPH_CHANNELS_H
#define MSC_GRAPH_CHANNELS_H

#include "graph/edit.h"

MSC_PUBLIC_BEGIN

// What a weight does along an axis for the units on it; one that does neither follows (a bias, the
// numbers of a normalisation).
enum msc_channel_role {
    MSC_CHANNEL_MAKES = 1, // they are its outputs
    MSC_CHANNEL_READS = 2, // it sums over them
};

struct msc_channel_axis {
    int32_t tensor;
    int axis;
    int32_t n;      // indices that each unit of the group has there
    unsigned roles; // of enum msc_channel_role, joined; 0 for activations
};

struct msc_channel_group {
    const char *name; // of the first weight that makes them; made unique with _1, _2, ...
    int32_t first_unit, n_units;
    int32_t n_axes;
    const struct msc_channel_axis *axes; // in order of tensors, then axes
};

// Where a joint sums over units: its slot, and the axis of the slot's tensor.
struct msc_channel_read {
    int32_t slot;
    int axis;
};

// A joint reads an operand that stays whole without what goes of another axis: numbers that joints
// share (exporters write equal ones once), and a state that a recurrent layer is given from outside.
struct msc_channel_follower {
    int32_t joint, tensor;
    int axis;
    int32_t of_tensor; // whose indices, along of_axis, say which of the operand's are read
    int of_axis;
};

struct msc_channels {
    int32_t n_units;
    int32_t n_groups;
    const struct msc_channel_group *groups; // in order of their first index; units are numbered so
    int32_t n_reads;
    const struct msc_channel_read *reads;
    int32_t n_followers;
    const struct msc_channel_follower *followers;
    int32_t n_tensors;
    // [n_tensors * MSC_MAX_DIMS]: the unit of each index of an axis, MSC_NO_ID where frozen; NULL
    // where the whole axis is, or nothing is known of it.
    const int32_t *const *units;
    void *storage;
};

// `sites` are those of `g` that the operator table marks (scheme NULL): where their slots cannot be
// masked, nothing goes. Joints that hold others are read as if nothing were known of them: the graph
// should be split (msc_graph_split). Both are needed again below. *out is owned by the caller.
enum msc_status msc_channels_find(struct msc_channels *out, const struct msc_graph *g,
                                  const struct msc_sites *sites);
void msc_channels_finish(struct msc_channels *channels); // accepts zeroed

// The unit of an index, or MSC_NO_ID.
int32_t msc_channels_unit(const struct msc_channels *c, int32_t tensor, int axis, int64_t index);
// How many of the first `end` indices of an axis stay, where units with is_gone [n_units] go.
int64_t msc_channels_count(const struct msc_channels *c, int32_t tensor, int axis, int64_t end,
                           const bool is_gone[]);
// MSC_E_INVALID where nothing would be left of a group: it names that.
enum msc_status msc_channels_check(const struct msc_channels *c, const bool is_gone[]);

// What a network without these units would cost: elements of weights, and multiply-accumulates
// (graph/cost.h). What is a symbol counts as 1.
struct msc_channel_cost {
    double parameters, macs;
};
enum msc_status msc_channels_cost(struct msc_channel_cost *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const bool is_gone[]);

// Edits under which the network gives what it gives without the units: each joint that would sum
// over one of them reads 0 there (of its weight, where that is constant), so that nothing which is
// made for it on the way, such as a bias, a shift or the 1/2 of a sigmoid, reaches anything. Other
// channels keep their values; the masked ones have whatever they have.
struct msc_channel_masks {
    int32_t n;
    const int32_t *slots;                // [n], once each
    struct msc_edit *masks;              // [n], sealed; others may go behind them
    const struct msc_edit *const *edits; // [n_slots], NULL where nothing is masked
    void *storage;
};
// *out is owned by the caller, and borrows nothing.
enum msc_status msc_channels_mask(struct msc_channel_masks *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const struct msc_sites *sites,
                                  const bool is_gone[]);
void msc_channel_masks_finish(struct msc_channel_masks *masks); // accepts zeroed

MSC_PUBLIC_END

#endif
