// Steps that contain only element-wise joints.
#include "kernels/lowering/ewise.h"
#include "kernels/lowering/families_internal.h"

// The output is NHWC if any input of the output's shape comes in NHWC.
static void family_ewise_layouts(const struct msc_graph *g, const struct msc_step *step,
                                 const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_tensor *y = msc_lowering_output(g, step->joints[step->n_joints - 1].joint);
    enum msc_layout layout = MSC_LAYOUT_NCHW;
    for (int32_t k = 0; k < step->n_joints; k++) {
        const struct msc_step_joint *j = &step->joints[k];
        for (int32_t i = 0; i < j->n_operands; i++) {
            if (j->operands[i].kind == MSC_OPERAND_INPUT &&
                coming[j->operands[i].index] == MSC_LAYOUT_NHWC &&
                msc_lowering_same_shape(y, msc_lowering_operand(g, j->joint, i)) &&
                !msc_lowering_layouts_coincide(y->n_dims, y->dims)) {
                layout = MSC_LAYOUT_NHWC;
            }
        }
    }
    out->outputs = layout;
    msc_lowering_follow_layout(g, step, 0, layout, coming, out);
}

const struct msc_family_def msc_family__ewise = {
    .name = "element-wise",
    .accepts = msc_ewise_accepts,
    .has_followers = true,
    .layouts = family_ewise_layouts,
};
