// What graph/channels*.c share: the classes as they come together, and one rule for each family of
// operators, msc_channels__<name>, which ops.def names.
//
// A rule ties indices that go together and freezes those that may not go. Axes of its operands and
// outputs that it says nothing of are frozen behind it. Weights that come from a `constant` joint
// are tied to its output by that joint's own rule.
//
// Where a joint leaves a choice (factors of an axis, groups of a convolution) its rule is asked
// twice: first for what holds in any case, when it returns false; then, `is_late`, once all others
// have said theirs, for the choice, in msc_channels__choose. A choice that something freezes later
// is not offered again, when all begins anew.
#ifndef MSC_GRAPH_CHANNELS_INTERNAL_H
#define MSC_GRAPH_CHANNELS_INTERNAL_H

#include "base/alloc.h"
#include "graph/channels.h"

struct msc_axis {
    int32_t tensor; // MSC_NO_ID: an operand that is absent
    int axis;
};

struct msc_channels_finder {
    const struct msc_graph *g;
    const struct msc_sites *sites;
    struct msc_arena *arena;
    // [n_tensors * MSC_MAX_DIMS]: the node of index 0, and how many there are; MSC_NO_ID and 0 where
    // nothing is known.
    int32_t *first, *periods;
    int32_t n_nodes;
    int32_t *parents; // [n_nodes]
    bool *is_frozen;  // [n_nodes], of roots
    int64_t *places;  // [n_nodes], of roots (msc_channels__is_one)
    // [n_tensors * MSC_MAX_DIMS]
    uint8_t *roles;
    int32_t *told; // the last joint whose rule said something of the axis
    struct msc_channel_read *reads;
    int32_t n_reads;
    bool *is_shared; // [n_tensors] numbers that several joints read
    struct msc_channel_follower *followers;
    int32_t n_followers;
    // [n_joints]: choices that are not offered again; the choice that was made, and what it leaves
    // free.
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
// -1: a symbol.
static inline int64_t msc_channels__length(const struct msc_channels_call *c, struct msc_axis a) {
    return msc_graph_tensor(c->g, a.tensor)->dims[a.axis];
}
// How many indices there are to tie: the length; of a symbol times a number that number (see
// graph/reshape.h), else 0.
static inline int64_t msc_channels__period(const struct msc_channels_call *c, struct msc_axis a) {
    return c->f->periods[a.tensor * MSC_MAX_DIMS + a.axis];
}
// An axis that counts from the end when negative; MSC_NO_ID out of range.
static inline int msc_channels__check_axis(int64_t axis, int n_dims) {
    axis += axis < 0 ? n_dims : 0;
    return axis >= 0 && axis < n_dims ? (int)axis : MSC_NO_ID;
}

// Indices of absent operands are left alone. An index out of range is a programming error.
void msc_channels__tie(struct msc_channels_call *c, struct msc_axis a, int64_t i, struct msc_axis b,
                       int64_t k);
// Index by index; axes of different lengths, or of different symbols, are frozen.
void msc_channels__tie_axes(struct msc_channels_call *c, struct msc_axis a, struct msc_axis b);
// Axis `a` of an operand stays whole, and the joint reads of it what is left of `of`.
void msc_channels__follow(struct msc_channels_call *c, struct msc_axis a, struct msc_axis of);
void msc_channels__freeze(struct msc_channels_call *c, struct msc_axis a);
void msc_channels__freeze_index(struct msc_channels_call *c, struct msc_axis a, int64_t i);
void msc_channels__freeze_all(struct msc_channels_call *c); // operands and outputs
// The axis is not to be frozen behind the rule: what there was to say of it is said.
void msc_channels__tell(struct msc_channels_call *c, struct msc_axis a);
bool msc_channels__is_frozen(const struct msc_channels_call *c, struct msc_axis a, int64_t i);
bool msc_channels__has_free(const struct msc_channels_call *c, struct msc_axis a); // any index

// Is the class of an index at this place, as those of its indices before, since it was forgotten?
bool msc_channels__is_one(struct msc_channels_call *c, struct msc_axis a, int64_t i, int64_t place);
void msc_channels__forget(struct msc_channels_call *c,
                          struct msc_axis a); // places of all its classes

// The joint sums products of operand `a` along `axis` and operand `b` along `other`: one of the two is
// where masks go, and both are frozen where neither can be masked. `sum` ties them, too. Once for
// each sum, when the rule is first asked.
void msc_channels__sum(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other);
void msc_channels__read(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other);
// What the weight of an operand is for the units along the axis; nothing where it is no weight.
void msc_channels__set_role(struct msc_channels_call *c, int32_t operand, int axis,
                            enum msc_channel_role role);

// The first of n choices that can be made, each told by the axis that it leaves free (no tensor: it is
// not offered): not all of that is frozen. MSC_NO_ID: none can.
int msc_channels__choose(struct msc_channels_call *c, const struct msc_axis choices[], int n);

// All axes of one operand and one output, index by index; shapes are the same.
void msc_channels__tie_tensors(struct msc_channels_call *c, int32_t operand, int32_t output);
// The same but for one axis.
void msc_channels__tie_others(struct msc_channels_call *c, int32_t operand, int32_t output,
                              int axis);
// Axes that lie over each other when tensors are broadcast; lengths of 1 are left alone. `skipped`
// trailing axes are not looked at.
void msc_channels__broadcast(struct msc_channels_call *c, int32_t operand, int32_t output,
                             int skipped);

#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    bool msc_channels__##channels(struct msc_channels_call *c);
#include "graph/ops.def"
#undef MSC_OP

// Classes as units and groups of them (graph/channels_group.c).
enum msc_status msc_channels__group(struct msc_channels *out, struct msc_channels_finder *f);

#endif
