// Rules of operators that sum products: convolutions, matrix products, recurrent layers.
#include "graph/channels/channels_internal.h"

#include "graph/einsum.h"

#include <string.h>

// ---- Convolutions -----------------------------------------------------------------------------

struct conv {
    int in, out; // channel axes of input and output
    // channel axes of the weight: one has the channels of all groups, the other of one group
    int w_out, w_in;
    int64_t n_in, n_out, groups;
    bool is_turned; // true for a transposed convolution: w_in has the channels of all groups
};

static int letter_axis(const char *layout, char letter, int n_dims) {
    const char *at =
        layout != NULL && strlen(layout) == (size_t)n_dims ? strchr(layout, letter) : NULL;
    return at == NULL ? MSC_NO_ID : (int)(at - layout);
}

static bool read_conv(struct conv *v, const struct msc_channels_call *c, bool is_turned) {
    int n_dims = msc_channels__operand(c, 0)->n_dims;
    const char *layout = msc_joint_attr(c->j, "data_layout");
    const char *result = msc_joint_attr(c->j, "out_layout");
    const char *kernel = msc_joint_attr(c->j, "kernel_layout");
    result = result == NULL || result[0] == '\0' ? layout : result;
    v->in = letter_axis(layout, 'C', n_dims);
    v->out = letter_axis(result, 'C', n_dims);
    v->w_out = letter_axis(kernel, 'O', n_dims);
    v->w_in = letter_axis(kernel, 'I', n_dims);
    v->is_turned = is_turned;
    if (v->in < 0 || v->out < 0 || v->w_out < 0 || v->w_in < 0 ||
        !msc_joint_attr_i64(c->j, "groups", &v->groups) || v->groups < 1) {
        return false;
    }
    v->n_in = msc_channels__length(c, msc_channels__in(c, 0, v->in));
    v->n_out = msc_channels__length(c, msc_channels__out(c, 0, v->out));
    return v->n_in > 0 && v->n_out > 0 && v->n_in % v->groups == 0 && v->n_out % v->groups == 0;
}

// Ties each output channel to its index on the weight's axis O and to its bias element.
static void tie_outputs(struct msc_channels_call *c, const struct conv *v) {
    if (v->groups == 1 || !v->is_turned) {
        msc_channels__tie_axes(c, msc_channels__in(c, 1, v->w_out),
                               msc_channels__out(c, 0, v->out));
    }
    msc_channels__tie_axes(c, msc_channels__in(c, 2, 0), msc_channels__out(c, 0, v->out));
}

// Ties all input and output channels of a group to each other. In a depthwise convolution, each
// channel is a group.
static void tie_groups(struct msc_channels_call *c, const struct conv *v) {
    struct msc_axis in = msc_channels__in(c, 0, v->in), out = msc_channels__out(c, 0, v->out);
    int64_t n_in = v->n_in / v->groups, n_out = v->n_out / v->groups;
    for (int64_t i = 0; i < v->n_in; i++) {
        msc_channels__tie(c, in, i, in, i - i % n_in);
    }
    for (int64_t o = 0; o < v->n_out; o++) {
        msc_channels__tie(c, out, o, in, o / n_out * n_in);
    }
    if (v->is_turned) {
        msc_channels__tie_axes(c, msc_channels__in(c, 1, v->w_in), in);
    }
    msc_channels__freeze(c, msc_channels__in(c, 1, v->is_turned ? v->w_out : v->w_in));
}

// Ties channels with the same position in their group across all groups, separately for inputs and
// outputs.
static void tie_positions(struct msc_channels_call *c, const struct conv *v) {
    struct msc_axis in = msc_channels__in(c, 0, v->in), out = msc_channels__out(c, 0, v->out);
    int64_t n_in = v->n_in / v->groups, n_out = v->n_out / v->groups;
    for (int64_t i = 0; i < v->n_in; i++) {
        msc_channels__tie(c, in, i, in, i % n_in);
    }
    for (int64_t o = 0; o < v->n_out; o++) {
        msc_channels__tie(c, out, o, out, o % n_out);
    }
    for (int64_t i = 0; i < (v->is_turned ? v->n_in : n_in); i++) {
        msc_channels__tie(c, msc_channels__in(c, 1, v->w_in), i, in, i);
    }
    for (int64_t o = 0; v->is_turned && o < n_out; o++) {
        msc_channels__tie(c, msc_channels__in(c, 1, v->w_out), o, out, o);
    }
}

static bool choose_groups(struct msc_channels_call *c, const struct conv *v) {
    const struct msc_axis out = msc_channels__out(c, 0, v->out);
    const struct msc_axis in = msc_channels__in(c, 0, v->in);
    // Choice 0: whole groups can be pruned. Choice 1: input channels at the same position in all
    // groups can be pruned. Choice 2: output channels at the same position in all groups.
    const struct msc_axis choices[] = {in, in, out};
    switch (msc_channels__choose(c, choices, 3)) {
    case 0:
        tie_groups(c, v);
        break;
    case 1:
    case 2:
        tie_positions(c, v);
        break;
    default:
        msc_channels__freeze(c, in);
        msc_channels__freeze(c, out);
        break;
    }
    return true;
}

static bool tie_conv(struct msc_channels_call *c, bool is_turned) {
    struct conv v;
    if (!read_conv(&v, c, is_turned)) {
        return msc_channels__barrier(c);
    }
    if (c->is_late) {
        return choose_groups(c, &v);
    }
    tie_outputs(c, &v);
    if (v.groups == v.n_in && v.groups > 1) {
        tie_groups(c, &v);
        return true;
    }
    msc_channels__set_role(c, 1, v.w_out, MSC_CHANNEL_MAKES);
    if (v.groups == 1) {
        msc_channels__sum(c, 0, v.in, 1, v.w_in);
        return true;
    }
    msc_channels__read(c, 0, v.in, 1, v.w_in);
    return false;
}

bool msc_channels__conv(struct msc_channels_call *c) {
    return tie_conv(c, false);
}

bool msc_channels__conv_transpose(struct msc_channels_call *c) {
    return tie_conv(c, true);
}

// ---- Matrix products --------------------------------------------------------------------------

bool msc_channels__linear(struct msc_channels_call *c) {
    int last = msc_channels__operand(c, 0)->n_dims - 1;
    int out = strcmp(msc_channels__operand(c, 1)->layout, "IO") == 0 ? 1 : 0;
    msc_channels__tie_others(c, 0, 0, last);
    msc_channels__tie_axes(c, msc_channels__in(c, 1, out), msc_channels__out(c, 0, last));
    msc_channels__tie_axes(c, msc_channels__in(c, 2, 0), msc_channels__out(c, 0, last));
    msc_channels__set_role(c, 1, out, MSC_CHANNEL_MAKES);
    msc_channels__sum(c, 0, last, 1, 1 - out);
    return true;
}

bool msc_channels__matmul(struct msc_channels_call *c) {
    int a = msc_channels__operand(c, 0)->n_dims, b = msc_channels__operand(c, 1)->n_dims;
    int y = msc_graph_tensor(c->g, c->j->outputs[0])->n_dims;
    if (a < 2 || b < 2) {
        return msc_channels__barrier(c);
    }
    msc_channels__broadcast(c, 0, 0, 2);
    msc_channels__broadcast(c, 1, 0, 2);
    msc_channels__tie_axes(c, msc_channels__in(c, 0, a - 2), msc_channels__out(c, 0, y - 2));
    msc_channels__tie_axes(c, msc_channels__in(c, 1, b - 1), msc_channels__out(c, 0, y - 1));
    msc_channels__set_role(c, 0, a - 2, MSC_CHANNEL_MAKES);
    msc_channels__set_role(c, 1, b - 1, MSC_CHANNEL_MAKES);
    msc_channels__sum(c, 0, a - 1, 1, b - 2);
    return true;
}

bool msc_channels__gemm(struct msc_channels_call *c) {
    bool trans_a = false, trans_b = false;
    (void)msc_joint_attr_bool(c->j, "trans_a", &trans_a);
    (void)msc_joint_attr_bool(c->j, "trans_b", &trans_b);
    msc_channels__tie_axes(c, msc_channels__in(c, 0, trans_a), msc_channels__out(c, 0, 0));
    msc_channels__tie_axes(c, msc_channels__in(c, 1, !trans_b), msc_channels__out(c, 0, 1));
    if (msc_channels__has(c, 2)) {
        msc_channels__broadcast(c, 2, 0, 0);
    }
    msc_channels__set_role(c, 0, trans_a, MSC_CHANNEL_MAKES);
    msc_channels__set_role(c, 1, !trans_b, MSC_CHANNEL_MAKES);
    msc_channels__sum(c, 0, !trans_a, 1, trans_b);
    return true;
}

// Ties each axis of an operand to the output axis with the same letter. Summed axes are frozen,
// because masks cannot be applied to operands of einsum.
bool msc_channels__einsum(struct msc_channels_call *c) {
    struct msc_einsum e;
    int ranks[MSC_EINSUM_OPERANDS];
    const char *equation = msc_joint_attr(c->j, "equation");
    for (int32_t i = 0; i < c->j->n_operands && i < MSC_EINSUM_OPERANDS; i++) {
        ranks[i] = msc_channels__operand(c, i)->n_dims;
    }
    if (equation == NULL || c->j->n_operands > MSC_EINSUM_OPERANDS ||
        msc_einsum_parse(&e, equation, c->j->n_operands, ranks) != NULL) {
        return msc_channels__barrier(c);
    }
    for (int32_t i = 0; i < c->j->n_operands; i++) {
        for (int k = 0; k < ranks[i]; k++) {
            struct msc_axis in = msc_channels__in(c, i, k);
            if (e.axes[i][k] < e.n_output_axes && msc_channels__length(c, in) != 1) {
                msc_channels__tie_axes(c, in, msc_channels__out(c, 0, e.axes[i][k]));
            }
        }
    }
    return true;
}

// ---- Recurrent layers -------------------------------------------------------------------------

// Ties each index of axis `a` to a hidden unit. The axis repeats the n hidden units, for example
// once per gate, so index i belongs to unit i mod n.
static void tie_hidden(struct msc_channels_call *c, struct msc_axis a, struct msc_axis hidden) {
    if (a.tensor == MSC_NO_ID) {
        return;
    }
    int64_t n = msc_channels__length(c, hidden);
    for (int64_t i = 0; i < msc_channels__length(c, a); i++) {
        msc_channels__tie(c, a, i, hidden, i % n);
    }
}

enum { HIDDEN = 5, CELL = 6 }; // positions of the operands that are initial states

// Follows slices and splits from `state` back to the initial state that it is a part of. Returns
// MSC_NO_ID if this is not an input, a constant or a broadcast scalar.
static int32_t find_start(const struct msc_graph *g, int32_t state) {
    while (state != MSC_NO_ID && msc_graph_tensor(g, state)->producer != MSC_NO_ID) {
        const struct msc_joint *j = msc_graph_joint(g, msc_graph_tensor(g, state)->producer);
        if (j->op == MSC_OP_BROADCAST_TO) {
            const struct msc_tensor *x = msc_graph_tensor(g, j->operands[0]);
            return x->n_dims == 0 || x->dims[x->n_dims - 1] == 1 ? state : MSC_NO_ID;
        }
        if (j->op == MSC_OP_CONSTANT) {
            return state;
        }
        bool is_part = j->op == MSC_OP_STRIDED_SLICE || j->op == MSC_OP_SPLIT;
        state = is_part ? j->operands[0] : MSC_NO_ID;
    }
    return state;
}

static bool is_recurrent(const struct msc_joint *j) {
    return j->op == MSC_OP_RNN || j->op == MSC_OP_GRU || j->op == MSC_OP_LSTM;
}

// True if another layer reads the same initial state. Such a state cannot be pruned, because the
// units of the two layers are independent.
static bool shares_start(const struct msc_channels_call *c, int32_t state) {
    int32_t start = find_start(c->g, state);
    for (int32_t i = 0; start != MSC_NO_ID && i < msc_graph_n_joints(c->g); i++) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        for (int32_t k = HIDDEN; i != c->j->id && is_recurrent(j) && k < j->n_operands; k++) {
            if (k <= CELL && find_start(c->g, j->operands[k]) == start) {
                return true;
            }
        }
    }
    return false;
}

// Chooses whether the initial states are pruned together with the hidden units. If they are not,
// the layer reads only the elements of the remaining units.
static bool choose_states(struct msc_channels_call *c, struct msc_axis hidden,
                          const struct msc_axis states[2]) {
    int32_t first = states[states[0].tensor == MSC_NO_ID].tensor;
    const struct msc_axis state = {first, 2};
    const struct msc_axis choices[] = {shares_start(c, first) ? hidden : state, hidden};
    int choice = msc_channels__choose(c, choices, 2);
    for (int i = 0; i < 2; i++) {
        bool follows = choice == 1 || (choice == 0 && choices[0].tensor == hidden.tensor);
        if (follows && states[i].tensor != MSC_NO_ID) {
            msc_channels__freeze(c, states[i]);
            msc_channels__follow(c, states[i], hidden);
        } else {
            msc_channels__tie_axes(c, states[i], hidden);
        }
    }
    return true;
}

// Pruning a hidden unit removes its row of every gate in both weights and in the biases, the weight
// elements that read it, and its elements of the initial states. Both directions of a layer share
// their hidden units.
bool msc_channels__recurrent(struct msc_channels_call *c) {
    enum { X, W, R, BIAS, PEEPHOLE = CELL + 1 };
    struct msc_axis hidden = msc_channels__in(c, R, 2);
    const struct msc_axis states[] = {msc_channels__in(c, HIDDEN, 2), msc_channels__in(c, CELL, 2)};
    bool has_states = states[0].tensor != MSC_NO_ID || states[1].tensor != MSC_NO_ID;
    if (msc_channels__length(c, hidden) < 1) {
        return msc_channels__barrier(c);
    }
    tie_hidden(c, msc_channels__in(c, W, 1), hidden);
    tie_hidden(c, msc_channels__in(c, R, 1), hidden);
    tie_hidden(c, msc_channels__in(c, BIAS, 1), hidden);
    tie_hidden(c, msc_channels__in(c, PEEPHOLE, 1), hidden);
    for (int32_t i = 0; i < c->j->n_outputs; i++) {
        int last = msc_graph_tensor(c->g, c->j->outputs[i])->n_dims - 1;
        msc_channels__tie_axes(c, msc_channels__out(c, i, last), hidden);
    }
    msc_channels__set_role(c, W, 1, MSC_CHANNEL_MAKES);
    msc_channels__set_role(c, R, 1, MSC_CHANNEL_MAKES);
    msc_channels__tie_axes(c, msc_channels__in(c, X, 2), msc_channels__in(c, W, 2));
    if (c->is_late) {
        return choose_states(c, hidden, states);
    }
    msc_channels__read(c, X, 2, W, 2);
    msc_channels__read(c, R, 2, R, 2);
    return !has_states;
}
