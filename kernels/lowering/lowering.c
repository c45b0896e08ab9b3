#include "kernels/lowering/lowering.h"

#include <string.h>

const struct msc_tensor *msc_lowering_operand(const struct msc_graph *g,
                                              const struct msc_joint *joint, int position) {
    if (position < 0 || position >= joint->n_operands || joint->operands[position] == MSC_NO_ID) {
        return NULL;
    }
    return msc_graph_tensor(g, joint->operands[position]);
}

const struct msc_array *msc_lowering_constant(const struct msc_graph *g,
                                              const struct msc_joint *joint, int position) {
    if (!msc_lowering_operand(g, joint, position)) {
        return NULL;
    }
    int32_t weight = msc_graph_weight_of(g, joint->operands[position]);
    return weight != MSC_NO_ID ? msc_graph_tensor(g, weight)->data : NULL;
}

bool msc_lowering_is_computed(const struct msc_graph *g, const struct msc_joint *joint,
                              int position) {
    return msc_lowering_operand(g, joint, position) && !msc_lowering_constant(g, joint, position);
}

const struct msc_tensor *msc_lowering_output(const struct msc_graph *g,
                                             const struct msc_joint *joint) {
    return msc_graph_tensor(g, joint->outputs[0]);
}

bool msc_lowering_is_f32(const struct msc_graph *g, const struct msc_joint *joint) {
    for (int i = 0; i < joint->n_operands; i++) {
        const struct msc_tensor *t = msc_lowering_operand(g, joint, i);
        if (t && t->dtype != MSC_DTYPE_F32) {
            return false;
        }
    }
    return msc_lowering_output(g, joint)->dtype == MSC_DTYPE_F32;
}

int msc_lowering_axis(const struct msc_joint *joint, const char *key, int n_dims) {
    int64_t axis;
    if (!msc_joint_attr_i64(joint, key, &axis)) {
        return -1;
    }
    axis += axis < 0 ? n_dims : 0;
    return axis >= 0 && axis < n_dims ? (int)axis : -1;
}

static enum msc_reduction_kind reduction_kind(enum msc_op op) {
    switch (op) {
    case MSC_OP_MAX:
    case MSC_OP_GLOBAL_MAX_POOL:
        return MSC_REDUCTION_MAX;
    case MSC_OP_MIN:
        return MSC_REDUCTION_MIN;
    default:
        return MSC_REDUCTION_SUM;
    }
}

bool msc_lowering_describe_reduction(struct msc_reduction *out, const struct msc_joint *joint,
                                     int n_dims) {
    enum msc_op op = joint->op;
    int64_t axes[MSC_MAX_DIMS];
    bool is_global = op == MSC_OP_GLOBAL_AVG_POOL || op == MSC_OP_GLOBAL_MAX_POOL;
    out->kind = reduction_kind(op);
    out->is_mean = op == MSC_OP_MEAN || op == MSC_OP_GLOBAL_AVG_POOL;
    int n = is_global ? 0 : msc_joint_attr_list(joint, "axis", axes, MSC_MAX_DIMS);
    for (int i = 0; i < n_dims; i++) {
        out->is_reduced[i] = n == 0 && (!is_global || i >= 2);
    }
    if (is_global) {
        const char *layout = msc_joint_attr(joint, "layout");
        return layout && strncmp(layout, "NC", 2) == 0 && n_dims >= 3;
    }
    for (int i = 0; i < n && i < MSC_MAX_DIMS; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + n_dims : axes[i];
        if (axis < 0 || axis >= n_dims) {
            return false;
        }
        out->is_reduced[axis] = true;
    }
    return n >= 0 && n <= MSC_MAX_DIMS;
}

bool msc_lowering_same_shape(const struct msc_tensor *a, const struct msc_tensor *b) {
    return a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, sizeof(a->dims[0]) * (size_t)a->n_dims) == 0;
}

bool msc_lowering_layouts_coincide(int n_dims, const int64_t dims[]) {
    return n_dims < 3 || dims[1] == 1 || msc_dims_product(n_dims - 2, dims + 2) == 1;
}

enum msc_layout msc_lowering_ask_layout(const struct msc_tensor *t, enum msc_layout wanted,
                                        enum msc_layout coming) {
    if (t->n_dims < 3) {
        return MSC_LAYOUT_NCHW;
    }
    return msc_lowering_layouts_coincide(t->n_dims, t->dims) ? coming : wanted;
}

void msc_lowering_follow_layout(const struct msc_graph *g, const struct msc_step *step,
                                int32_t first, enum msc_layout layout,
                                const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_tensor *y = msc_lowering_output(g, step->joints[0].joint);
    for (int32_t k = first; k < step->n_joints; k++) {
        const struct msc_step_joint *j = &step->joints[k];
        for (int32_t i = 0; i < j->n_operands; i++) {
            if (j->operands[i].kind == MSC_OPERAND_INPUT) {
                const struct msc_tensor *t = msc_lowering_operand(g, j->joint, i);
                int32_t input = j->operands[i].index;
                // A tensor of lower rank is NCHW, because its axes do not match the axes of the
                // output.
                enum msc_layout wanted = t->n_dims == y->n_dims ? layout : MSC_LAYOUT_NCHW;
                out->inputs[input] = msc_lowering_ask_layout(t, wanted, coming[input]);
            }
        }
    }
}

void msc_lowering_keep_layout(const struct msc_graph *g, const struct msc_step *step,
                              const enum msc_layout coming[], struct msc_step_layouts *out) {
    int32_t input = step->joints[0].operands[0].index;
    out->inputs[input] = coming[input];
    // If there is one position or one channel, both layouts have the same order of elements. NCHW
    // then saves a later reorder.
    const struct msc_tensor *y = msc_lowering_output(g, step->joints[0].joint);
    if (step->n_outputs > 1 || !msc_lowering_layouts_coincide(y->n_dims, y->dims)) {
        out->outputs = coming[input];
    }
}

void msc_lowering_positions(int positions[MSC_MAX_DIMS], int n_dims, enum msc_layout layout) {
    for (int axis = 0; axis < n_dims; axis++) {
        positions[axis] = axis;
        if (layout == MSC_LAYOUT_NHWC && axis > 0) {
            positions[axis] = axis == 1 ? n_dims - 1 : axis - 1;
        }
    }
}

void msc_lowering_strides(int64_t strides[MSC_MAX_DIMS], int n_dims, const int64_t dims[],
                          enum msc_layout layout) {
    int positions[MSC_MAX_DIMS], axes[MSC_MAX_DIMS];
    msc_lowering_positions(positions, n_dims, layout);
    for (int axis = 0; axis < n_dims; axis++) {
        axes[positions[axis]] = axis;
    }
    int64_t stride = 1;
    for (int i = n_dims - 1; i >= 0; i--) {
        strides[axes[i]] = stride;
        stride *= dims[axes[i]];
    }
}
