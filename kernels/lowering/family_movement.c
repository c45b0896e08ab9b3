// Data movement: renaming, transposes, depth to space and back, joining and splitting, slices and
// padding.
#include "kernels/lowering/families_internal.h"
#include "kernels/lowering/movement.h"

#include <string.h>

// ---- Renaming ---------------------------------------------------------------------------------

static bool family_accepts_computed(const struct msc_graph *g, const struct msc_joint *joint) {
    return msc_lowering_is_computed(g, joint, 0);
}

// The step is always an alias. Input and output are NCHW, with an exception: an NHWC input keeps
// its layout if only the axes after the channels are reshaped, or if both layouts of the input have
// the same order of elements.
static void family_rename_layouts(const struct msc_graph *g, const struct msc_step *step,
                                  const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    int32_t i = step->joints[0].operands[0].index;
    out->is_alias = true;
    if (coming[i] == MSC_LAYOUT_NCHW) {
        return;
    }
    if (msc_lowering_layouts_coincide(x->n_dims, x->dims)) {
        out->inputs[i] = MSC_LAYOUT_NHWC;
    } else if (y->n_dims >= 3 && memcmp(x->dims, y->dims, 2 * sizeof(x->dims[0])) == 0) {
        out->inputs[i] = MSC_LAYOUT_NHWC;
        out->outputs = MSC_LAYOUT_NHWC;
    }
}

const struct msc_family_def msc_family__rename = {
    .name = "rename",
    .accepts = family_accepts_computed,
    .layouts = family_rename_layouts,
};

// ---- Permuting --------------------------------------------------------------------------------

static bool family_permute_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    int64_t axes[MSC_MAX_DIMS];
    return msc_lowering_is_computed(g, joint, 0) &&
           msc_movement_read_axes(axes, joint, msc_lowering_operand(g, joint, 0)->n_dims);
}

// Lists the axes of x in memory order after a transpose by `axes` whose result is stored in
// `layout`. Leaves out axes of length 1. Returns the number of axes.
static int order_in_memory(int64_t order[MSC_MAX_DIMS], const struct msc_tensor *x,
                           const int64_t axes[], enum msc_layout layout) {
    int positions[MSC_MAX_DIMS], n = 0;
    int64_t by_position[MSC_MAX_DIMS];
    msc_lowering_positions(positions, x->n_dims, layout);
    for (int i = 0; i < x->n_dims; i++) {
        by_position[positions[i]] = axes[i];
    }
    for (int i = 0; i < x->n_dims; i++) {
        if (x->dims[by_position[i]] != 1) {
            order[n++] = by_position[i];
        }
    }
    return n;
}

// The input keeps its layout. The step is an alias if the output, in NCHW or NHWC, has the same
// order of elements as the input.
static void family_permute_layouts(const struct msc_graph *g, const struct msc_step *step,
                                   const enum msc_layout coming[], struct msc_step_layouts *out) {
    static const int64_t same[MSC_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    int32_t input = step->joints[0].operands[0].index;
    int64_t axes[MSC_MAX_DIMS], have[MSC_MAX_DIMS], want[MSC_MAX_DIMS];
    msc_movement_read_axes(axes, joint, x->n_dims);
    out->inputs[input] = coming[input];
    int n = order_in_memory(have, x, same, coming[input]);
    for (int layout = MSC_LAYOUT_NCHW; layout <= MSC_LAYOUT_NHWC; layout++) {
        if (layout == MSC_LAYOUT_NHWC && x->n_dims < 3) {
            return;
        }
        order_in_memory(want, x, axes, (enum msc_layout)layout);
        if (memcmp(have, want, (size_t)n * sizeof(have[0])) == 0) {
            out->outputs = (enum msc_layout)layout;
            out->is_alias = true;
            return;
        }
    }
}

const struct msc_family_def msc_family__permute = {
    .name = "permute",
    .accepts = family_permute_accepts,
    .layouts = family_permute_layouts,
};

static bool family_depth_space_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    int64_t block;
    return msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_operand(g, joint, 0)->n_dims == 4 &&
           msc_joint_attr_i64(joint, "blocksize", &block) && block > 0;
}

const struct msc_family_def msc_family__depth_space = {
    .name = "depth to space",
    .accepts = family_depth_space_accepts,
    .layouts = msc_lowering_keep_layout,
};

// ---- Joining and splitting --------------------------------------------------------------------

static bool family_concat_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    for (int i = 0; i < joint->n_operands; i++) {
        const struct msc_tensor *t = msc_lowering_operand(g, joint, i);
        if (!t || t->dtype != y->dtype || t->n_dims != y->n_dims) {
            return false;
        }
    }
    return joint->n_operands > 0 && joint->n_operands <= MSC_STEP_MAX_INPUTS &&
           msc_lowering_axis(joint, "axis", y->n_dims) >= 0;
}

static void family_concat_layouts(const struct msc_graph *g, const struct msc_step *step,
                                  const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_step_joint *j = &step->joints[0];
    enum msc_layout layout = MSC_LAYOUT_NCHW;
    for (int32_t i = 0; i < j->n_operands; i++) {
        const struct msc_tensor *t = msc_lowering_operand(g, j->joint, i);
        if (j->operands[i].kind == MSC_OPERAND_INPUT &&
            coming[j->operands[i].index] == MSC_LAYOUT_NHWC &&
            !msc_lowering_layouts_coincide(t->n_dims, t->dims)) {
            layout = MSC_LAYOUT_NHWC;
        }
    }
    msc_lowering_follow_layout(g, step, 0, layout, coming, out);
    out->outputs = layout;
}

const struct msc_family_def msc_family__concat = {
    .name = "concat",
    .accepts = family_concat_accepts,
    .layouts = family_concat_layouts,
};

static bool family_split_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    return msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_axis(joint, "axis", x->n_dims) >= 0;
}

const struct msc_family_def msc_family__split = {
    .name = "split",
    .accepts = family_split_accepts,
    .layouts = msc_lowering_keep_layout,
};

// ---- Slices and padding -----------------------------------------------------------------------

static bool family_slice_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    struct msc_slice s;
    for (int i = 1; i < joint->n_operands; i++) {
        if (msc_lowering_is_computed(g, joint, i)) {
            return false;
        }
    }
    return msc_lowering_is_computed(g, joint, 0) &&
           msc_movement_read_slice(&s, joint, msc_lowering_operand(g, joint, 0)->n_dims);
}

const struct msc_family_def msc_family__slice = {
    .name = "slice",
    .accepts = family_slice_accepts,
    .layouts = msc_lowering_keep_layout,
};

static bool family_pad_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    int64_t widths[2 * MSC_MAX_DIMS];
    float value;
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           !msc_lowering_operand(g, joint, 1) && !msc_lowering_operand(g, joint, 2) &&
           msc_movement_read_pad(widths, &value, joint, msc_lowering_operand(g, joint, 0)->n_dims);
}

const struct msc_family_def msc_family__pad = {
    .name = "pad",
    .accepts = family_pad_accepts,
    .layouts = msc_lowering_keep_layout,
};
