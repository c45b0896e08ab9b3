// Transposes, changes of layout and blocks of channels laid out in space; joints that only rename
// what is there.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/lowering/movement.h"

#include <string.h>

// ---- Renaming ---------------------------------------------------------------------------------

static bool accepts_computed(const struct msc_graph *g, const struct msc_joint *joint) {
    return msc_lowering_is_computed(g, joint, 0);
}

// Always an alias. Plain in and out; channels stay last where only what is behind the channels is
// reshaped, or where both layouts of the input are the same.
static void rename_layouts(const struct msc_graph *g, const struct msc_step *step,
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

const struct msc_cpu_family msc_cpu_rename = {
    .name = "rename",
    .accepts = accepts_computed,
    .layouts = rename_layouts,
};

// ---- Permuting --------------------------------------------------------------------------------

static bool read_axes(int64_t axes[MSC_MAX_DIMS], const struct msc_joint *joint, int n_dims) {
    if (msc_joint_attr_list(joint, "axes", axes, MSC_MAX_DIMS) != n_dims) {
        return false;
    }
    unsigned seen = 0;
    for (int i = 0; i < n_dims; i++) {
        axes[i] += axes[i] < 0 ? n_dims : 0;
        if (axes[i] < 0 || axes[i] >= n_dims || (seen >> axes[i] & 1u) != 0) {
            return false;
        }
        seen |= 1u << axes[i];
    }
    return true;
}

static bool accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    int64_t axes[MSC_MAX_DIMS];
    return msc_lowering_is_computed(g, joint, 0) &&
           read_axes(axes, joint, msc_lowering_operand(g, joint, 0)->n_dims);
}

// The input's axes in the order in which a tensor with these axes of it lies in memory, without
// those of length 1. Returns how many.
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

// The input stays as it comes. An alias when that is the output's order in one of its layouts.
static void layouts(const struct msc_graph *g, const struct msc_step *step,
                    const enum msc_layout coming[], struct msc_step_layouts *out) {
    static const int64_t same[MSC_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    int32_t input = step->joints[0].operands[0].index;
    int64_t axes[MSC_MAX_DIMS], have[MSC_MAX_DIMS], want[MSC_MAX_DIMS];
    read_axes(axes, joint, x->n_dims);
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

static void release(void *kernel) {
    msc_free(kernel);
}

// A step without joints is a reorder: the same axes in another layout.
static enum msc_status prepare(void **out, struct msc_cpu_backend *b, const struct msc_plan *plan,
                               const struct msc_step *step) {
    (void)b;
    const struct msc_value *x = &plan->values[step->inputs[0]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    int64_t own[MSC_MAX_DIMS], in[MSC_MAX_DIMS], to[MSC_MAX_DIMS];
    int64_t axes[MSC_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct msc_movement *m = msc_alloc(sizeof(*m));
    if (!m) {
        return MSC_FAIL(MSC_E_NOMEM, "cpu: out of memory");
    }
    if (step->n_joints > 0) {
        read_axes(axes, step->joints[0].joint, x->n_dims);
    }
    msc_lowering_strides(own, x->n_dims, x->dims, x->layout);
    msc_lowering_strides(to, y->n_dims, y->dims, y->layout);
    for (int i = 0; i < y->n_dims; i++) {
        in[i] = own[axes[i]];
    }
    msc_movement_set(m, msc_dtype_bytes(y->dtype), y->n_dims, y->dims, y->layout, in, to);
    *out = m;
    return MSC_OK;
}

static enum msc_status run(void *kernel, struct msc_cpu_backend *b, const struct msc_call *call,
                           int thread) {
    (void)b;
    (void)thread;
    struct msc_movement move = *(const struct msc_movement *)kernel;
    move.bytes = msc_dtype_bytes(call->outputs[0].dtype);
    msc_movement_run(&move, call->outputs[0].data, call->inputs[0].data);
    return MSC_OK;
}

static bool moves(const void *kernel) {
    (void)kernel;
    return true;
}

const struct msc_cpu_family msc_cpu_permute = {
    .name = "permute",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = release,
    .run = run,
    .moves = moves,
    .copies = true,
};

// ---- Depth to space and back ------------------------------------------------------------------

static bool depth_space_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    int64_t block;
    return msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_operand(g, joint, 0)->n_dims == 4 &&
           msc_joint_attr_i64(joint, "blocksize", &block) && block > 0;
}

static enum msc_status depth_space_prepare(void **out, struct msc_cpu_backend *b,
                                           const struct msc_plan *plan,
                                           const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    struct msc_movement *m = msc_alloc(sizeof(*m));
    if (!m) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", joint->name);
    }
    msc_movement_set_depth_space(m, joint, x, &plan->values[step->outputs[0]]);
    *out = m;
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_depth_space = {
    .name = "depth to space",
    .accepts = depth_space_accepts,
    .layouts = msc_lowering_keep_layout,
    .prepare = depth_space_prepare,
    .release = release,
    .run = run,
    .moves = moves,
    .copies = true,
};
