// Softmax and normalisations.
#include "kernels/lowering/families_internal.h"

static bool family_softmax_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_axis(joint, "axis", x->n_dims) >= 0;
}

const struct msc_family_def msc_family__softmax = {
    .name = "softmax",
    .accepts = family_softmax_accepts,
    .layouts = msc_lowering_keep_layout,
};

static bool family_layer_norm_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    float epsilon;
    bool has_beta = msc_lowering_operand(g, joint, 2) != NULL;
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_constant(g, joint, 1) &&
           (!has_beta || msc_lowering_constant(g, joint, 2)) &&
           msc_array_n_elements(msc_lowering_constant(g, joint, 1)) > 0 &&
           msc_joint_attr_float(joint, "epsilon", &epsilon);
}

const struct msc_family_def msc_family__layer_norm = {
    .name = "layer_norm",
    .accepts = family_layer_norm_accepts,
};

static bool family_group_norm_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    int64_t n_groups;
    float epsilon;
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_constant(g, joint, 1) && msc_lowering_constant(g, joint, 2) &&
           msc_dims_product(x->n_dims, x->dims) > 0 &&
           msc_joint_attr_float(joint, "epsilon", &epsilon) &&
           (joint->op == MSC_OP_INSTANCE_NORM ||
            msc_joint_attr_i64(joint, "num_groups", &n_groups));
}

const struct msc_family_def msc_family__group_norm = {
    .name = "group normalisation",
    .accepts = family_group_norm_accepts,
    .layouts = msc_lowering_keep_layout,
};
