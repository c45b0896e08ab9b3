// Shared by the files of graph/channels/: the classes while they are being merged (classes.c),
// and one rule for each operator family, msc_channels__<name>, which ops.def names.
//
// A rule ties indices that must be removed together and freezes those that must remain. Axes of
// operands and outputs that the rule does not mention are frozen after it. Weights that come from
// a `constant` joint are tied to that joint's output by its own rule.
//
// Some joints leave a choice (factors of an axis, groups of a convolution). Their rules are
// called twice. The first call handles what holds in any case and returns false. The second
// (`is_late`), after all other rules, makes the choice with msc_channels__choose. If another rule
// later freezes the axis that the choice left free, the choice is refused and all rules are
// called again.
#ifndef MSC_GRAPH_CHANNELS_CHANNELS_INTERNAL_H
#define MSC_GRAPH_CHANNELS_CHANNELS_INTERNAL_H

#include "base/alloc.h"
#include "graph/channels.h"

struct msc_axis {
    int32_t tensor; // MSC_NO_ID: the operand is absent
    int axis;
};

struct msc_channels_finder {
    const struct msc_graph *g;
    const struct msc_sites *sites;
    struct msc_arena *arena;
    // [n_tensors * MSC_MAX_DIMS]: the node of index 0, and the number of indices; MSC_NO_ID and 0
    // if unknown.
    int32_t *first, *periods;
    int32_t n_nodes;
    int32_t *parents; // [n_nodes]
    bool *is_frozen;  // [n_nodes], valid at roots
    int64_t *places;  // [n_nodes], valid at roots (msc_channels__is_one)
    // [n_tensors * MSC_MAX_DIMS]
    uint8_t *roles;
    int32_t *told; // the last joint whose rule handled the axis
    struct msc_channel_read *reads;
    int32_t n_reads;
    bool *is_shared; // [n_tensors] parameters that several joints read
    struct msc_channel_follower *followers;
    int32_t n_followers;
    // [n_joints]: number of leading choices that are not offered again; the choice that was made;
    // the axis that it leaves free.
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
// -1 if symbolic.
static inline int64_t msc_channels__length(const struct msc_channels_call *c, struct msc_axis a) {
    return msc_graph_tensor(c->g, a.tensor)->dims[a.axis];
}
// Number of indices to tie: the length, or n if the length is a symbol times n (graph/reshape.h),
// else 0.
static inline int64_t msc_channels__period(const struct msc_channels_call *c, struct msc_axis a) {
    return c->f->periods[a.tensor * MSC_MAX_DIMS + a.axis];
}
// Resolves an axis that counts from the end if negative; MSC_NO_ID if out of range.
static inline int msc_channels__check_axis(int64_t axis, int n_dims) {
    axis += axis < 0 ? n_dims : 0;
    return axis >= 0 && axis < n_dims ? (int)axis : MSC_NO_ID;
}

// Ignores indices of absent operands. An index out of range is a programming error.
void msc_channels__tie(struct msc_channels_call *c, struct msc_axis a, int64_t i, struct msc_axis b,
                       int64_t k);
// Ties index by index; axes of different lengths, or of different symbols, are frozen.
void msc_channels__tie_axes(struct msc_channels_call *c, struct msc_axis a, struct msc_axis b);
// Axis `a` of an operand is not pruned; the joint reads the elements whose indices remain on
// `of`.
void msc_channels__follow(struct msc_channels_call *c, struct msc_axis a, struct msc_axis of);
void msc_channels__freeze(struct msc_channels_call *c, struct msc_axis a);
void msc_channels__freeze_index(struct msc_channels_call *c, struct msc_axis a, int64_t i);
void msc_channels__freeze_all(struct msc_channels_call *c); // operands and outputs
// Freezes the axes of operands and outputs that the rule of the joint did not mention.
void msc_channels__freeze_rest(struct msc_channels_call *c);
// Marks the axis as handled, so that it is not frozen after the rule.
void msc_channels__tell(struct msc_channels_call *c, struct msc_axis a);
bool msc_channels__is_frozen(const struct msc_channels_call *c, struct msc_axis a, int64_t i);
// True if any index of the axis is free.
bool msc_channels__has_free(const struct msc_channels_call *c, struct msc_axis a);

// True if all indices of the class seen since msc_channels__forget were at the same place.
bool msc_channels__is_one(struct msc_channels_call *c, struct msc_axis a, int64_t i, int64_t place);
// Resets the places of the classes of all indices.
void msc_channels__forget(struct msc_channels_call *c, struct msc_axis a);

// The joint sums products of operand `a` along `axis` and operand `b` along `other`. Masks apply
// to one of the two; if neither can be masked, both are frozen. This also ties the axes. Call
// once for each sum, in the first call of the rule.
void msc_channels__sum(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other);
void msc_channels__read(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other);
// Sets how the operand's weight uses the units along the axis; no effect if it is not a weight.
void msc_channels__set_role(struct msc_channels_call *c, int32_t operand, int axis,
                            enum msc_channel_role role);

// Picks the first possible of n choices. A choice is the axis that it leaves free, and is
// possible if part of that axis is not frozen; a choice without a tensor is not offered.
// MSC_NO_ID if none is possible.
int msc_channels__choose(struct msc_channels_call *c, const struct msc_axis choices[], int n);

// Ties all axes of one operand and one output, index by index; the shapes are equal.
void msc_channels__tie_tensors(struct msc_channels_call *c, int32_t operand, int32_t output);
// Like msc_channels__tie_tensors, for all axes except one.
void msc_channels__tie_others(struct msc_channels_call *c, int32_t operand, int32_t output,
                              int axis);
// Ties axes that align when tensors are broadcast; ignores lengths of 1 and the `skipped`
// trailing axes.
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
