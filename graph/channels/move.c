// Rules of operators that move, join, split or repeat elements.
#include "graph/channels/channels_internal.h"

#include "graph/infer.h"
#include "graph/reshape.h"
#include "graph/shuffle.h"

#include <string.h>

// ---- Reshape ----------------------------------------------------------------------------------

// A factor of an axis of the input or output of a reshape. The factor's index is (index of the
// axis) / inner % (length of the factor).
struct part {
    struct msc_axis axis;
    int64_t inner;
};

// The common factors of the axes of input and output, as few as possible. The last factor is
// innermost.
struct factors {
    int n;
    int64_t length[MSC_RESHAPE_PARTS];
    struct part in[MSC_RESHAPE_PARTS], out[MSC_RESHAPE_PARTS];
};

// The state of one side (input or output) while its factors are split off, starting with the
// innermost.
struct cutting {
    const struct msc_reshape_part *parts;
    int n; // number of parts not yet used up
    int64_t left, inner;
};

static struct msc_axis cut_axis(const struct msc_channels_call *c, const struct cutting *at,
                                bool is_in) {
    int axis = at->parts[at->n - 1].axis;
    return is_in ? msc_channels__in(c, 0, axis) : msc_channels__out(c, 0, axis);
}

// Goes to the next axis if the current one is used up. False if no axis is left or the next axis'
// length is a symbol.
static bool cut_next(struct cutting *at, const struct msc_channels_call *c, bool is_in) {
    if (at->left > 1) {
        return true;
    }
    at->n -= at->left == 1;
    at->inner = 1;
    if (at->n < 1 || at->parts[at->n - 1].is_symbol) {
        return false;
    }
    at->left = msc_channels__period(c, cut_axis(c, at, is_in));
    return at->left > 1;
}

static bool find_factors(struct factors *f, const struct msc_channels_call *c,
                         const struct msc_reshape_block *b) {
    struct cutting in = {.parts = b->in, .n = b->n_in}, out = {.parts = b->out, .n = b->n_out};
    struct factors reversed = {.n = 0};
    while (cut_next(&in, c, true) && cut_next(&out, c, false)) {
        int64_t length = in.left < out.left ? in.left : out.left;
        if (in.left % length != 0 || out.left % length != 0 || reversed.n == MSC_RESHAPE_PARTS) {
            return false;
        }
        reversed.length[reversed.n] = length;
        reversed.in[reversed.n] = (struct part){cut_axis(c, &in, true), in.inner};
        reversed.out[reversed.n++] = (struct part){cut_axis(c, &out, false), out.inner};
        in.left /= length;
        in.inner *= length;
        out.left /= length;
        out.inner *= length;
    }
    f->n = reversed.n;
    for (int k = 0; k < f->n; k++) {
        f->length[k] = reversed.length[f->n - 1 - k];
        f->in[k] = reversed.in[f->n - 1 - k];
        f->out[k] = reversed.out[f->n - 1 - k];
    }
    return in.n < 1 && out.n - (out.left == 1) < 1;
}

static void tie_part(struct msc_channels_call *c, const struct part *p, int64_t length,
                     struct msc_axis to, int64_t to_inner) {
    for (int64_t i = 0; i < msc_channels__period(c, p->axis); i++) {
        msc_channels__tie(c, p->axis, i, to, i / p->inner % length * to_inner);
    }
}

// True if indices that are already tied to each other have the same position along the factor.
static bool fits(struct msc_channels_call *c, const struct part *p, int64_t length) {
    int64_t n = msc_channels__period(c, p->axis);
    bool fits = true;
    msc_channels__forget(c, p->axis);
    for (int64_t i = 0; i < n && fits; i++) {
        fits = msc_channels__is_one(c, p->axis, i, i / p->inner % length);
    }
    return fits;
}

// Lists one choice per factor: the axis that remains free if the factor is chosen. If some factors
// fit the existing ties and are free in input and output, the other factors are not choices.
static void list_choices(struct msc_axis choices[], struct msc_channels_call *c,
                         const struct factors *f) {
    bool is_fit[MSC_RESHAPE_PARTS], is_any = false;
    for (int i = 0; i < f->n; i++) {
        bool has_free = msc_channels__has_free(c, f->in[i].axis);
        choices[i] = has_free ? f->out[i].axis : f->in[i].axis;
        is_fit[i] = fits(c, &f->in[i], f->length[i]) && fits(c, &f->out[i], f->length[i]);
        is_any = is_any || (is_fit[i] && has_free && msc_channels__has_free(c, choices[i]));
    }
    for (int i = 0; i < f->n; i++) {
        choices[i].tensor = is_any && !is_fit[i] ? MSC_NO_ID : choices[i].tensor;
    }
}

// Lets one factor remain free and freezes the others.
static void choose_factor(struct msc_channels_call *c, const struct factors *f) {
    struct msc_axis choices[MSC_RESHAPE_PARTS];
    list_choices(choices, c, f);
    int k = msc_channels__choose(c, choices, f->n);
    for (int i = 0; i < f->n; i++) {
        const struct part *sides[] = {&f->in[i], &f->out[i]};
        for (int side = 0; side < 2; side++) {
            const struct part *chosen = k == MSC_NO_ID ? NULL : side == 0 ? &f->in[k] : &f->out[k];
            if (chosen == NULL || chosen->axis.axis != sides[side]->axis.axis) {
                msc_channels__freeze(c, sides[side]->axis);
            }
        }
    }
    if (k != MSC_NO_ID) {
        tie_part(c, &f->in[k], f->length[k], f->in[k].axis, f->in[k].inner);
        tie_part(c, &f->out[k], f->length[k], f->in[k].axis, f->in[k].inner);
    }
}

static bool tie_shuffle(struct msc_channels_call *c, const struct msc_shuffle *s) {
    int32_t from = s->split->operands[0];
    for (int i = 0; i < msc_graph_tensor(c->g, from)->n_dims; i++) {
        struct msc_axis in = {from, i}, out = msc_channels__out(c, 0, i);
        for (int64_t k = 0; k < msc_channels__period(c, out); k++) {
            msc_channels__tie(c, in, i == s->axis ? msc_shuffle_from(s, k) : k, out, k);
        }
        msc_channels__tell(c, out);
    }
    return true;
}

// For a joint inside a channel shuffle: marks the axes of its operand as handled, so that they are
// not frozen. The tensors inside a shuffle are pruned together with its input and output.
static bool skip_inside(struct msc_channels_call *c) {
    for (int i = 0; i < msc_channels__operand(c, 0)->n_dims; i++) {
        msc_channels__tell(c, msc_channels__in(c, 0, i));
    }
    return true;
}

static bool is_writable(const struct msc_channels_call *c) {
    bool has_shape = c->j->op == MSC_OP_RESHAPE || c->j->op == MSC_OP_BROADCAST_TO;
    return !has_shape || msc_reshape_is_writable(c->g, c->j);
}

// Ties two parts. A part that is a symbol has no indices to tie, because a number that multiplies
// the symbol is a part of its own.
static void tie_parts(struct msc_channels_call *c, const struct msc_reshape_part *in,
                      const struct msc_reshape_part *out) {
    struct msc_axis from = msc_channels__in(c, 0, in->axis);
    struct msc_axis to = msc_channels__out(c, 0, out->axis);
    for (int64_t i = 0; !in->is_symbol && i < msc_channels__period(c, from); i++) {
        msc_channels__tie(c, from, i, to, i);
    }
}

bool msc_channels__reshape(struct msc_channels_call *c) {
    struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1];
    struct msc_shuffle shuffle;
    if (msc_shuffle_find(&shuffle, c->g, c->j)) {
        return tie_shuffle(c, &shuffle);
    }
    if (msc_shuffle_around(&shuffle, c->g, c->j)) {
        return skip_inside(c);
    }
    int n = msc_reshape_blocks(blocks, c->g, msc_channels__operand(c, 0),
                               msc_graph_tensor(c->g, c->j->outputs[0]));
    if (!is_writable(c)) {
        return msc_channels__barrier(c);
    }
    for (int i = 0; i < n; i++) {
        struct factors f;
        const struct msc_reshape_block *b = &blocks[i];
        if (b->n_in == 1 && b->n_out == 1) {
            tie_parts(c, &b->in[0], &b->out[0]);
        } else if (c->is_late && find_factors(&f, c, b)) {
            choose_factor(c, &f);
        }
    }
    return c->is_late;
}

bool msc_channels__permute(struct msc_channels_call *c) {
    int64_t axes[MSC_MAX_DIMS];
    int n_dims = msc_channels__operand(c, 0)->n_dims;
    struct msc_shuffle shuffle;
    if (msc_shuffle_around(&shuffle, c->g, c->j)) {
        return skip_inside(c);
    }
    if (msc_joint_attr_list(c->j, "axes", axes, MSC_MAX_DIMS) != n_dims) {
        return msc_channels__barrier(c);
    }
    for (int i = 0; i < n_dims; i++) {
        int from = msc_channels__check_axis(axes[i], n_dims);
        msc_channels__tie_axes(c, msc_channels__in(c, 0, from), msc_channels__out(c, 0, i));
    }
    return true;
}

// ---- Parts of an axis -------------------------------------------------------------------------

// Ties n indices of axis `a`, starting at `first`, to n indices of axis `b`, starting at `other`.
static void tie_range(struct msc_channels_call *c, struct msc_axis a, int64_t first,
                      struct msc_axis b, int64_t other, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        msc_channels__tie(c, a, first + i, b, other + i);
    }
}

static int read_axis(const struct msc_channels_call *c, int n_dims) {
    int64_t axis;
    return msc_joint_attr_i64(c->j, "axis", &axis) ? msc_channels__check_axis(axis, n_dims)
                                                   : MSC_NO_ID;
}

bool msc_channels__concat(struct msc_channels_call *c) {
    int axis = read_axis(c, msc_graph_tensor(c->g, c->j->outputs[0])->n_dims);
    struct msc_axis out = msc_channels__out(c, 0, axis);
    if (axis == MSC_NO_ID) {
        return msc_channels__barrier(c);
    }
    bool is_known = msc_channels__length(c, out) >= 0;
    int64_t first = 0;
    for (int32_t i = 0; i < c->j->n_operands; i++) {
        is_known = is_known && msc_channels__length(c, msc_channels__in(c, i, axis)) >= 0;
    }
    for (int32_t i = 0; i < c->j->n_operands; i++) {
        struct msc_axis in = msc_channels__in(c, i, axis);
        msc_channels__tie_others(c, i, 0, axis);
        if (is_known) {
            tie_range(c, in, 0, out, first, msc_channels__length(c, in));
            first += msc_channels__length(c, in);
        }
    }
    return true;
}

bool msc_channels__split(struct msc_channels_call *c) {
    int axis = read_axis(c, msc_channels__operand(c, 0)->n_dims);
    if (axis == MSC_NO_ID) {
        return msc_channels__barrier(c);
    }
    struct msc_axis in = msc_channels__in(c, 0, axis);
    bool is_known = !msc_channels__has(c, 1) && msc_channels__length(c, in) >= 0;
    int64_t first = 0;
    for (int32_t i = 0; i < c->j->n_outputs; i++) {
        struct msc_axis out = msc_channels__out(c, i, axis);
        msc_channels__tie_others(c, 0, i, axis);
        if (is_known) {
            tie_range(c, in, first, out, 0, msc_channels__length(c, out));
            first += msc_channels__length(c, out);
        }
    }
    return true;
}

// Ties the indices of axis `axis` that a slice keeps. Entry `i` of the attributes begin, end and
// strides slices this axis.
static void tie_slice(struct msc_channels_call *c, int axis, int i) {
    int64_t begin[MSC_MAX_DIMS], end[MSC_MAX_DIMS], strides[MSC_MAX_DIMS], count;
    int n_begin = msc_joint_attr_list(c->j, "begin", begin, MSC_MAX_DIMS);
    int n_end = msc_joint_attr_list(c->j, "end", end, MSC_MAX_DIMS);
    int n_strides = msc_joint_attr_list(c->j, "strides", strides, MSC_MAX_DIMS);
    struct msc_axis in = msc_channels__in(c, 0, axis), out = msc_channels__out(c, 0, axis);
    int64_t length = msc_channels__length(c, in);
    if (n_begin <= i || n_end <= i || length < 0 || (n_strides > i && strides[i] != 1)) {
        return;
    }
    msc_infer_slice_range(&begin[i], &count, length, end[i], 1);
    if (count == msc_channels__length(c, out)) {
        tie_range(c, in, begin[i], out, 0, count);
        msc_channels__tell(c, in);
    }
}

bool msc_channels__slice(struct msc_channels_call *c) {
    enum { BEGIN = 1, END, AXES, STRIDES };
    int64_t axes[MSC_MAX_DIMS], begin[MSC_MAX_DIMS];
    int n_dims = msc_channels__operand(c, 0)->n_dims, at[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(c->j, "axes", axes, MSC_MAX_DIMS);
    bool is_known = !msc_channels__has(c, BEGIN) && !msc_channels__has(c, END) &&
                    !msc_channels__has(c, STRIDES);
    if (msc_channels__has(c, AXES) || (n <= 0 && !is_known)) {
        return msc_channels__barrier(c);
    }
    for (int i = 0; n <= 0 && i < n_dims; i++) {
        axes[i] = i;
    }
    n = n > 0 ? n : msc_joint_attr_list(c->j, "begin", begin, MSC_MAX_DIMS);
    memset(at, 0xff, sizeof(at));
    for (int i = 0; i < n && i < n_dims; i++) {
        at[msc_channels__check_axis(axes[i], n_dims)] = i;
    }
    for (int i = 0; i < n_dims; i++) {
        if (at[i] < 0) {
            msc_channels__tie_axes(c, msc_channels__in(c, 0, i), msc_channels__out(c, 0, i));
        } else if (is_known) {
            tie_slice(c, i, at[i]);
        }
    }
    return true;
}

// Constant padding adds new channels to an axis. Other modes copy existing channels, so a padded
// axis is frozen.
bool msc_channels__pad(struct msc_channels_call *c) {
    enum { WIDTHS = 1, AXES = 3 };
    int64_t widths[2 * MSC_MAX_DIMS];
    int n_dims = msc_channels__operand(c, 0)->n_dims;
    const char *mode = msc_joint_attr(c->j, "pad_mode"), *axes = msc_joint_attr(c->j, "axes");
    bool is_constant = mode == NULL || strcmp(mode, "constant") == 0;
    if (msc_channels__has(c, WIDTHS) || msc_channels__has(c, AXES) ||
        (axes != NULL && axes[0] != '\0') ||
        msc_joint_attr_list(c->j, "pad_width", widths, 2 * MSC_MAX_DIMS) != 2 * n_dims) {
        return msc_channels__barrier(c);
    }
    for (int i = 0; i < n_dims; i++) {
        struct msc_axis in = msc_channels__in(c, 0, i), out = msc_channels__out(c, 0, i);
        int64_t begin = widths[i], end = widths[n_dims + i], n = msc_channels__length(c, in);
        if (begin == 0 && end == 0) {
            msc_channels__tie_axes(c, in, out);
        } else if (is_constant && begin >= 0 && end >= 0 && n >= 0) {
            tie_range(c, in, 0, out, begin, n);
        }
    }
    return true;
}

// ---- Indexing ---------------------------------------------------------------------------------

// Applies constant indices. If they are a list, each of its elements is tied to the channel that it
// selects. A scalar removes the axis, so its channel is frozen.
static void take_indices(struct msc_channels_call *c, const struct msc_array *indices, int axis) {
    struct msc_axis in = msc_channels__in(c, 0, axis);
    int64_t length = msc_channels__length(c, in);
    int n_dims = msc_array_n_dims(indices);
    for (int64_t i = 0; i < msc_array_n_elements(indices); i++) {
        int64_t from = msc_array_get_i64(indices, i);
        from += from < 0 ? length : 0;
        if (n_dims == 1) {
            msc_channels__tie(c, in, from, msc_channels__out(c, 0, axis), i);
            msc_channels__tie(c, in, from, msc_channels__in(c, 1, 0), i);
        } else {
            msc_channels__freeze_index(c, in, from);
        }
    }
}

static bool is_in_range(const struct msc_array *indices, int64_t length) {
    for (int64_t i = 0; i < msc_array_n_elements(indices); i++) {
        int64_t from = msc_array_get_i64(indices, i);
        if (from < -length || from >= length) {
            return false;
        }
    }
    return true;
}

bool msc_channels__take(struct msc_channels_call *c) {
    const struct msc_tensor *x = msc_channels__operand(c, 0);
    int axis = read_axis(c, x->n_dims);
    int n_new = msc_channels__operand(c, 1)->n_dims;
    if (axis == MSC_NO_ID) {
        return msc_channels__barrier(c);
    }
    for (int i = 0; i < x->n_dims; i++) {
        if (i != axis) {
            msc_channels__tie_axes(c, msc_channels__in(c, 0, i),
                                   msc_channels__out(c, 0, i < axis ? i : i + n_new - 1));
            msc_channels__set_role(c, 0, i, MSC_CHANNEL_MAKES);
        }
    }
    int32_t weight = msc_graph_weight_of(c->g, c->j->operands[1]);
    const struct msc_array *indices =
        weight == MSC_NO_ID ? NULL : msc_graph_tensor(c->g, weight)->data;
    if (indices != NULL && n_new < 2 && is_in_range(indices, x->dims[axis])) {
        take_indices(c, indices, axis);
    }
    return true;
}

// ---- Repetition -------------------------------------------------------------------------------

bool msc_channels__broadcast_to(struct msc_channels_call *c) {
    if (!is_writable(c)) {
        return msc_channels__barrier(c);
    }
    const struct msc_tensor *y = msc_graph_tensor(c->g, c->j->outputs[0]);
    msc_channels__broadcast(c, 0, 0, 0);
    for (int i = 0; i < y->n_dims; i++) {
        if (y->dims[i] >= 0) {
            // a broadcast axis may have any length
            msc_channels__tell(c, msc_channels__out(c, 0, i));
        }
    }
    return true;
}

bool msc_channels__tile(struct msc_channels_call *c) {
    int n_dims = msc_channels__operand(c, 0)->n_dims;
    for (int i = 0; !msc_channels__has(c, 1) && i < n_dims; i++) {
        struct msc_axis in = msc_channels__in(c, 0, i), out = msc_channels__out(c, 0, i);
        int64_t n = msc_channels__length(c, in);
        if (n > 1) {
            for (int64_t k = 0; k < msc_channels__length(c, out); k++) {
                msc_channels__tie(c, in, k % n, out, k);
            }
        }
    }
    return true;
}

// The side with more channels (`deep`) has, for each channel of the other side (`flat`), one
// channel for each position in a block.
bool msc_channels__depth_space(struct msc_channels_call *c) {
    const char *mode = msc_joint_attr(c->j, "mode");
    bool is_to_space = c->j->op == MSC_OP_DEPTH_TO_SPACE;
    bool is_inner = mode != NULL && strcmp(mode, "CRD") == 0;
    struct msc_axis in = msc_channels__in(c, 0, 1), out = msc_channels__out(c, 0, 1);
    struct msc_axis deep = is_to_space ? in : out, flat = is_to_space ? out : in;
    int64_t n = msc_channels__length(c, flat), n_deep = msc_channels__length(c, deep);
    msc_channels__tie_axes(c, msc_channels__in(c, 0, 0), msc_channels__out(c, 0, 0));
    for (int64_t i = 0; n > 0 && i < n_deep; i++) {
        msc_channels__tie(c, deep, i, flat, is_inner ? i / (n_deep / n) : i % n);
    }
    return true;
}

// ---- Lengths ----------------------------------------------------------------------------------

// True if the joint `reader` may read this element of a shape of n elements.
static bool is_read(const struct msc_graph *g, const struct msc_joint *reader, int64_t element,
                    int64_t n) {
    int32_t weight =
        reader->op == MSC_OP_TAKE ? msc_graph_weight_of(g, reader->operands[1]) : MSC_NO_ID;
    const struct msc_array *indices =
        weight == MSC_NO_ID ? NULL : msc_graph_tensor(g, weight)->data;
    for (int64_t i = 0; indices != NULL && i < msc_array_n_elements(indices); i++) {
        int64_t index = msc_array_get_i64(indices, i);
        if (element == (index < 0 ? index + n : index)) {
            return true;
        }
    }
    int64_t begin, end, count;
    const char *strides = msc_joint_attr(reader, "strides");
    bool is_slice = reader->op == MSC_OP_STRIDED_SLICE &&
                    msc_joint_attr_list(reader, "begin", &begin, 1) == 1 &&
                    msc_joint_attr_list(reader, "end", &end, 1) == 1 && strides != NULL &&
                    (strides[0] == '\0' || strcmp(strides, "1,") == 0);
    if (is_slice) {
        msc_infer_slice_range(&begin, &count, n, end, 1);
        return element >= begin && element < begin + count;
    }
    return indices == NULL;
}

// maximum number of joints from shape_of to the joint that uses the length
enum { MAX_MOVES = 16 };

// True if all consumers only move the lengths to joints whose shape operand is rewritten when
// channels are pruned.
static bool is_rewritten(const struct msc_graph *g, int32_t tensor, int n_moves) {
    const int32_t *readers;
    int32_t n = msc_graph_consumers(g, tensor, &readers);
    bool is_moved = n_moves < MAX_MOVES && !msc_graph_is_output(g, tensor);
    for (int32_t r = 0; is_moved && r < n; r++) {
        const struct msc_joint *j = msc_graph_joint(g, readers[r]);
        bool is_first = j->operands[0] == tensor;
        switch (j->op) {
        case MSC_OP_RESHAPE:
        case MSC_OP_BROADCAST_TO:
            is_moved = is_first ? is_rewritten(g, j->outputs[0], n_moves + 1)
                                : msc_reshape_is_writable(g, j);
            break;
        case MSC_OP_TAKE:
        case MSC_OP_STRIDED_SLICE:
            is_moved = is_first && is_rewritten(g, j->outputs[0], n_moves + 1);
            break;
        case MSC_OP_CONCAT:
        case MSC_OP_EXPAND_DIMS:
        case MSC_OP_SQUEEZE:
            is_moved = is_rewritten(g, j->outputs[0], n_moves + 1);
            break;
        default:
            is_moved = false;
            break;
        }
    }
    return is_moved;
}

// Freezes axes whose lengths are read, because a consumer may use a length for any purpose. Most
// lengths are not read.
bool msc_channels__shape_of(struct msc_channels_call *c) {
    const struct msc_tensor *x = msc_channels__operand(c, 0);
    const int32_t *readers;
    int32_t n_readers = msc_graph_consumers(c->g, c->j->outputs[0], &readers);
    int64_t first = 0, n = msc_channels__length(c, msc_channels__out(c, 0, 0));
    (void)msc_joint_attr_i64(c->j, "start", &first);
    first += first < 0 ? x->n_dims : 0;
    if (msc_graph_is_output(c->g, c->j->outputs[0])) {
        return msc_channels__barrier(c);
    }
    for (int i = 0; i < x->n_dims; i++) {
        bool is_asked = false;
        for (int32_t r = 0; i >= first && i < first + n && r < n_readers; r++) {
            is_asked = is_asked || is_read(c->g, msc_graph_joint(c->g, readers[r]), i - first, n);
        }
        is_asked = is_asked && !is_rewritten(c->g, c->j->outputs[0], 0);
        if (!is_asked) {
            msc_channels__tell(c, msc_channels__in(c, 0, i));
        }
    }
    return true;
}
