// Rules of operators that keep the axes of their input: element-wise, broadcasting or per-channel
// operators.
#include "graph/channels/channels_internal.h"

#include <string.h>

// ---- All axes ---------------------------------------------------------------------------------

void msc_channels__tie_tensors(struct msc_channels_call *c, int32_t operand, int32_t output) {
    msc_channels__tie_others(c, operand, output, MSC_NO_ID);
}

void msc_channels__tie_others(struct msc_channels_call *c, int32_t operand, int32_t output,
                              int axis) {
    const struct msc_tensor *x = msc_channels__operand(c, operand);
    const struct msc_tensor *y = msc_graph_tensor(c->g, c->j->outputs[output]);
    for (int i = 0; x->n_dims == y->n_dims && i < x->n_dims; i++) {
        if (i != axis) {
            msc_channels__tie_axes(c, msc_channels__in(c, operand, i),
                                   msc_channels__out(c, output, i));
        }
    }
}

void msc_channels__broadcast(struct msc_channels_call *c, int32_t operand, int32_t output,
                             int skipped) {
    const struct msc_tensor *x = msc_channels__operand(c, operand);
    const struct msc_tensor *y = msc_graph_tensor(c->g, c->j->outputs[output]);
    for (int i = 0; i < x->n_dims - skipped; i++) {
        struct msc_axis to = msc_channels__out(c, output, i + y->n_dims - x->n_dims);
        if (x->dims[i] != 1) {
            msc_channels__tie_axes(c, msc_channels__in(c, operand, i), to);
        } else {
            msc_channels__tell(c, to); // the operand with the full length ties this axis
        }
    }
}

bool msc_channels__barrier(struct msc_channels_call *c) {
    msc_channels__freeze_all(c);
    return true;
}

// Ties only the first operand: the others are parameters that apply to all elements, such as clip
// bounds.
bool msc_channels__pass(struct msc_channels_call *c) {
    for (int32_t i = 0; i < c->j->n_outputs; i++) {
        msc_channels__tie_tensors(c, 0, i);
    }
    return true;
}

bool msc_channels__join(struct msc_channels_call *c) {
    for (int32_t i = 0; i < c->j->n_operands; i++) {
        if (msc_channels__has(c, i)) {
            msc_channels__broadcast(c, i, 0, 0);
        }
    }
    return true;
}

bool msc_channels__constant(struct msc_channels_call *c) {
    if (msc_channels__has(c, 0)) {
        msc_channels__tie_tensors(c, 0, 0);
    }
    return true;
}

// ---- All axes except one ----------------------------------------------------------------------

// For softmax, cumulative sums, argmax: the axis is frozen, because results depend on all its
// elements.
bool msc_channels__along_axis(struct msc_channels_call *c) {
    int64_t number;
    if (!msc_joint_attr_i64(c->j, "axis", &number)) {
        return msc_channels__barrier(c);
    }
    int axis = msc_channels__check_axis(number, msc_channels__operand(c, 0)->n_dims);
    for (int32_t i = 0; axis != MSC_NO_ID && i < c->j->n_outputs; i++) {
        msc_channels__tie_others(c, 0, i, axis);
    }
    return true;
}

bool msc_channels__layer_norm(struct msc_channels_call *c) {
    int64_t axes[MSC_MAX_DIMS];
    int n_dims = msc_channels__operand(c, 0)->n_dims;
    int n = msc_joint_attr_list(c->j, "axes", axes, MSC_MAX_DIMS);
    for (int i = 0; i < n_dims; i++) {
        bool is_apart = n > 0 && n <= MSC_MAX_DIMS;
        for (int k = 0; is_apart && k < n; k++) {
            is_apart = msc_channels__check_axis(axes[k], n_dims) != i;
        }
        if (is_apart) {
            msc_channels__tie_axes(c, msc_channels__in(c, 0, i), msc_channels__out(c, 0, i));
        }
    }
    return true;
}

// Freezes the channel axis, because each channel is normalised by its neighbours.
bool msc_channels__lrn(struct msc_channels_call *c) {
    msc_channels__tie_others(c, 0, 0, 1);
    return true;
}

// Freezes reduced axes. Without keepdims, reduced axes are removed, so later axes have lower
// numbers in the output.
bool msc_channels__reduce(struct msc_channels_call *c) {
    const struct msc_tensor *x = msc_channels__operand(c, 0);
    int64_t axes[MSC_MAX_DIMS];
    bool keeps = false, is_reduced[MSC_MAX_DIMS] = {false};
    int n = msc_joint_attr_list(c->j, "axis", axes, MSC_MAX_DIMS);
    if (n <= 0 || n > MSC_MAX_DIMS || msc_channels__has(c, 1)) {
        return msc_channels__barrier(c); // all axes are reduced, or the axes are unknown
    }
    (void)msc_joint_attr_bool(c->j, "keepdims", &keeps);
    for (int k = 0; k < n; k++) {
        int axis = msc_channels__check_axis(axes[k], x->n_dims);
        if (axis != MSC_NO_ID) {
            is_reduced[axis] = true;
        }
    }
    for (int i = 0, o = 0; i < x->n_dims; i++) {
        if (!is_reduced[i]) {
            msc_channels__tie_axes(c, msc_channels__in(c, 0, i), msc_channels__out(c, 0, o));
        }
        o += keeps || !is_reduced[i];
    }
    return true;
}

// ---- Independent channels ---------------------------------------------------------------------

// Ties the axes N and C of the first operand to those of the output. `from` and `to` are their
// layouts.
static void tie_letters(struct msc_channels_call *c, const char *from, const char *to) {
    for (const char *letter = "NC"; *letter != '\0'; letter++) {
        const char *a = strchr(from, *letter), *b = strchr(to, *letter);
        if (a != NULL && b != NULL) {
            msc_channels__tie_axes(c, msc_channels__in(c, 0, (int)(a - from)),
                                   msc_channels__out(c, 0, (int)(b - to)));
        }
    }
}

bool msc_channels__pool(struct msc_channels_call *c) {
    const char *from = msc_joint_attr(c->j, "layout"), *to = msc_joint_attr(c->j, "out_layout");
    size_t n_dims = (size_t)msc_channels__operand(c, 0)->n_dims;
    from = from != NULL && strlen(from) == n_dims ? from : "NC";
    to = to != NULL && strlen(to) == n_dims ? to : from;
    tie_letters(c, from, to);
    return true;
}

// Spatial sampling computes each image and each channel separately. Coordinates are frozen.
bool msc_channels__sample(struct msc_channels_call *c) {
    tie_letters(c, "NC", "NC");
    return true;
}

bool msc_channels__regions(struct msc_channels_call *c) {
    tie_letters(c, "-C", "-C");
    return true;
}

// Ties only axes that keep their length, because these are not resampled.
bool msc_channels__resize(struct msc_channels_call *c) {
    const struct msc_tensor *x = msc_channels__operand(c, 0);
    const struct msc_tensor *y = msc_graph_tensor(c->g, c->j->outputs[0]);
    const char *roi = msc_joint_attr(c->j, "roi");
    const char *policy = msc_joint_attr(c->j, "keep_aspect_ratio_policy");
    bool is_plain = (roi == NULL || roi[0] == '\0') && (policy == NULL || policy[0] == '\0');
    float scales[MSC_MAX_DIMS];
    int n = msc_joint_attr_floats(c->j, "scales", scales, MSC_MAX_DIMS);
    for (int32_t i = 1; i < c->j->n_operands; i++) {
        is_plain = is_plain && !msc_channels__has(c, i);
    }
    for (int i = 0; is_plain && i < x->n_dims; i++) {
        bool is_kept = x->dims[i] == y->dims[i] && x->prims[i] == y->prims[i] &&
                       (n != x->n_dims || scales[i] == 1.0f);
        if (is_kept) {
            msc_channels__tie_axes(c, msc_channels__in(c, 0, i), msc_channels__out(c, 0, i));
        }
    }
    return true;
}

// ---- Per-channel parameters -------------------------------------------------------------------

// Ties the operands after the first, which have one element for each index of the axis, or one
// element for all indices.
static void tie_numbers(struct msc_channels_call *c, int axis) {
    for (int32_t i = 1; i < c->j->n_operands; i++) {
        bool is_list = msc_channels__has(c, i) && msc_channels__operand(c, i)->n_dims == 1 &&
                       msc_channels__operand(c, i)->dims[0] != 1;
        if (is_list) {
            msc_channels__tie_axes(c, msc_channels__in(c, i, 0), msc_channels__in(c, 0, axis));
        }
    }
}

bool msc_channels__batch_norm(struct msc_channels_call *c) {
    int64_t number = 1;
    (void)msc_joint_attr_i64(c->j, "axis", &number);
    int axis = msc_channels__check_axis(number, msc_channels__operand(c, 0)->n_dims);
    msc_channels__tie_tensors(c, 0, 0);
    if (axis != MSC_NO_ID) {
        tie_numbers(c, axis);
    }
    return true;
}

bool msc_channels__instance_norm(struct msc_channels_call *c) {
    tie_letters(c, "NC", "NC");
    tie_numbers(c, 1);
    return true;
}

bool msc_channels__quantize(struct msc_channels_call *c) {
    int64_t number = 1, block = 0;
    (void)msc_joint_attr_i64(c->j, "axis", &number);
    (void)msc_joint_attr_i64(c->j, "block_size", &block);
    int n_dims = msc_channels__operand(c, 0)->n_dims;
    int axis = msc_channels__check_axis(number, n_dims);
    if (block != 0) {
        return msc_channels__barrier(c);
    }
    msc_channels__tie_tensors(c, 0, 0);
    if (axis != MSC_NO_ID) {
        tie_numbers(c, axis);
    }
    return true;
}
