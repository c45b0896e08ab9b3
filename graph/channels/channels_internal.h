// Shared by the files of graph/channels/: the classes of coupled indices while they are merged
// (classes.c), and the rules. ops.def names a rule, msc_channels__<name>, for each operator.
//
// A rule ties indices that must be removed together, and freezes indices that must remain. Axes of
// operands and outputs that a rule does not handle are frozen after the rule was called. If an
// operand comes from a `constant` joint, the rule of that joint ties the operand to the weight.
//
// For some joints there is a choice (factors of an axis, groups of a convolution). Their rules are
// called twice. The first call ties what must be tied whatever is chosen, and returns false. The
// second call (`is_late`), after all other rules, makes the choice with msc_channels__choose. If
// another rule then freezes the axis that the choice left free, the choice is refused and all rules
// are called again.
#ifndef MSC_GRAPH_CHANNELS_CHANNELS_INTERNAL_H
#define MSC_GRAPH_CHANNELS_CHANNELS_INTERNAL_H

#include "base/alloc.h"
#include "graph/channels.h"

struct msc_axis {
    int32_t tensor; // MSC_NO_ID if the operand is absent
    int axis;
};

struct msc_channels_finder {
    const struct msc_graph *g;
    const struct msc_sites *sites;
    struct msc_arena *arena;
    // For each axis [n_tensors * MSC_MAX_DIMS]: the node of its index 0 (the nodes of an axis are
    // contiguous), and its number of indices. MSC_NO_ID and 0 if the number is unknown.
    int32_t *first, *periods;
    int32_t n_nodes;
    int32_t *parents; // [n_nodes]
    bool *is_frozen;  // [n_nodes], valid at roots
    int64_t *places;  // [n_nodes], valid at roots; see msc_channels__is_one
    // [n_tensors * MSC_MAX_DIMS]
    uint8_t *roles;
    int32_t *told; // [n_tensors * MSC_MAX_DIMS] last joint whose rule handled the axis
    struct msc_channel_read *reads;
    int32_t n_reads;
    bool *is_shared; // [n_tensors] parameters that several joints read
    struct msc_channel_follower *followers;
    int32_t n_followers;
    // For each joint [n_joints]: the number of its first choices that were refused, the choice
    // made, and the axis that this choice leaves free.
    int *n_refused, *chosen;
    struct msc_axis *freed;
};

struct msc_channels_call {
    struct msc_channels_finder *f;
    const struct msc_graph *g;
    const struct msc_joint *j;
    bool is_late;
};

static inline struct msc_axis msc_channels__in(const struct msc_channels_call *c, int32_t operand,
                                               int axis) {
    bool is_there = operand < c->j->n_operands;
    return (struct msc_axis){is_there ? c->j->operands[operand] : MSC_NO_ID, axis};
}
static inline struct msc_axis msc_channels__out(const struct msc_channels_call *c, int32_t output,
                                                int axis) {
    return (struct msc_axis){c->j->outputs[output], axis};
}
static inline const struct msc_tensor *msc_channels__operand(const struct msc_channels_call *c,
                                                             int32_t operand) {
    return msc_graph_tensor(c->g, c->j->operands[operand]);
}
static inline bool msc_channels__has(const struct msc_channels_call *c, int32_t operand) {
    return operand < c->j->n_operands && c->j->operands[operand] != MSC_NO_ID;
}
// Length of an axis; -1 if symbolic.
static inline int64_t msc_channels__length(const struct msc_channels_call *c, struct msc_axis a) {
    return msc_graph_tensor(c->g, a.tensor)->dims[a.axis];
}
// Number of indices of an axis: its length; n if the length is a symbol times n (graph/reshape.h);
// 0 if it is another symbolic length.
static inline int64_t msc_channels__period(const struct msc_channels_call *c, struct msc_axis a) {
    return c->f->periods[a.tensor * MSC_MAX_DIMS + a.axis];
}
// Converts a negative axis, which counts from the end; MSC_NO_ID if the axis is out of range.
static inline int msc_channels__check_axis(int64_t axis, int n_dims) {
    axis += axis < 0 ? n_dims : 0;
    return axis >= 0 && axis < n_dims ? (int)axis : MSC_NO_ID;
}

// Ties index i of axis a to index k of axis b. Does nothing if an operand is absent. An index out
// of range is a programming error.
void msc_channels__tie(struct msc_channels_call *c, struct msc_axis a, int64_t i, struct msc_axis b,
                       int64_t k);
// Ties each index of `a` to the same index of `b`. Freezes both axes if their lengths differ.
void msc_channels__tie_axes(struct msc_channels_call *c, struct msc_axis a, struct msc_axis b);
// Records that axis `a` of an operand is not pruned: the joint reads the elements whose indices
// remain on the axis `of` (struct msc_channel_follower).
void msc_channels__follow(struct msc_channels_call *c, struct msc_axis a, struct msc_axis of);
void msc_channels__freeze(struct msc_channels_call *c, struct msc_axis a);
void msc_channels__freeze_index(struct msc_channels_call *c, struct msc_axis a, int64_t i);
void msc_channels__freeze_all(struct msc_channels_call *c); // all axes of operands and outputs
// Freezes the axes of operands and outputs that the joint's rule did not handle.
void msc_channels__freeze_rest(struct msc_channels_call *c);
// Marks the axis as handled, so that it is not frozen after the rule.
void msc_channels__tell(struct msc_channels_call *c, struct msc_axis a);
bool msc_channels__is_frozen(const struct msc_channels_call *c, struct msc_axis a, int64_t i);
// True if an index of the axis is not frozen.
bool msc_channels__has_free(const struct msc_channels_call *c, struct msc_axis a);

// Checks that all indices of a class have the same position along a factor of their axes. `place`
// is the position of index i of axis `a`. True if all calls since msc_channels__forget gave the
// same place for indices of this class.
bool msc_channels__is_one(struct msc_channels_call *c, struct msc_axis a, int64_t i, int64_t place);
// Forgets the places of the classes of all indices of the axis.
void msc_channels__forget(struct msc_channels_call *c, struct msc_axis a);

// For a joint that multiplies operand `a` along `axis` with operand `b` along `other` and sums:
// msc_channels__read records the operand to which masks apply, and freezes both axes if neither
// operand can be masked. msc_channels__sum also ties the axes. Call one of the two functions for
// each sum, in the first call of the rule.
void msc_channels__sum(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other);
void msc_channels__read(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other);
// Sets how a weight uses the units along its axis. No effect if the operand is not a weight.
void msc_channels__set_role(struct msc_channels_call *c, int32_t operand, int axis,
                            enum msc_channel_role role);

// Picks the first possible of n choices; MSC_NO_ID if none is possible. A choice is given as the
// axis that it leaves free. It is possible if the axis has a tensor and an index that is not
// frozen, and the choice was not refused.
int msc_channels__choose(struct msc_channels_call *c, const struct msc_axis choices[], int n);

// Ties all axes of an operand to the same axes of an output, index by index. The operand and the
// output must have the same shape.
void msc_channels__tie_tensors(struct msc_channels_call *c, int32_t operand, int32_t output);
// Like msc_channels__tie_tensors, but for all axes except `axis`.
void msc_channels__tie_others(struct msc_channels_call *c, int32_t operand, int32_t output,
                              int axis);
// Ties each axis of an operand to the output axis that it is broadcast to, except axes of length 1
// and the last `skipped` axes.
void msc_channels__broadcast(struct msc_channels_call *c, int32_t operand, int32_t output,
                             int skipped);

#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    bool msc_channels__##channels(struct msc_channels_call *c);
#include "graph/ops.def"
#undef MSC_OP

// The root of the class that a node belongs to.
int32_t msc_channels__find_root(struct msc_channels_finder *f, int32_t node);
// Turns the classes into units and groups (graph/channels/group.c).
enum msc_status msc_channels__group(struct msc_channels *out, struct msc_channels_finder *f);

#endif
