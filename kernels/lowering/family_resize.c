// Resizing rows and columns in NHWC; copies of nearest elements also in NCHW.
#include "kernels/lowering/families_internal.h"

#include <string.h>

// Accepts a resize that changes only rows and columns, if every output position has taps.
static bool family_resize_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    const char *layout = msc_joint_attr(joint, "layout");
    const char *mode = msc_joint_attr(joint, "coordinate_transformation_mode");
    float scales[MSC_MAX_DIMS];
    int n_scales = msc_joint_attr_floats(joint, "scales", scales, MSC_MAX_DIMS);
    for (int i = 1; i < joint->n_operands; i++) {
        if (msc_lowering_operand(g, joint, i)) {
            return false; // its parameters are computed at run time
        }
    }
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           x->n_dims == 4 && layout && strcmp(layout, "NCHW") == 0 && mode &&
           strcmp(mode, "tf_crop_and_resize") != 0 && x->dims[0] == y->dims[0] &&
           x->dims[1] == y->dims[1] && msc_dims_product(4, y->dims) > 0 &&
           (n_scales == 0 || (n_scales == 4 && scales[0] == 1.0f && scales[1] == 1.0f));
}

static void family_resize_layouts(const struct msc_graph *g, const struct msc_step *step,
                                  const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_joint *joint = step->joints[0].joint;
    const char *method = msc_joint_attr(joint, "method");
    bool is_nearest = method && strcmp(method, "nearest_neighbor") == 0;
    if (is_nearest && coming[step->joints[0].operands[0].index] == MSC_LAYOUT_NCHW) {
        msc_lowering_keep_layout(g, step, coming, out);
        return;
    }
    msc_lowering_follow_layout(g, step, 0, MSC_LAYOUT_NHWC, coming, out);
    out->outputs = MSC_LAYOUT_NHWC;
}

const struct msc_family_def msc_family__resize = {
    .name = "resize",
    .accepts = family_resize_accepts,
    .layouts = family_resize_layouts,
};
