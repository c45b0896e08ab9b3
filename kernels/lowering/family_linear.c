// Linear layers: [..., in] times a weight [out, in] or [in, out].
#include "kernels/lowering/families_internal.h"
#include "kernels/lowering/gemm.h"

#include <string.h>

bool msc_gemm_describe_linear(struct msc_gemm_spec *out, const struct msc_graph *g,
                              const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    const struct msc_tensor *w = msc_lowering_operand(g, joint, 1);
    if (!msc_lowering_is_f32(g, joint) || !msc_lowering_is_computed(g, joint, 0) || x->n_dims < 1 ||
        w->n_dims != 2 || !msc_lowering_constant(g, joint, 1) ||
        (msc_lowering_operand(g, joint, 2) && !msc_lowering_constant(g, joint, 2))) {
        return false;
    }
    bool is_input_first = strcmp(w->layout, "IO") == 0;
    if (!is_input_first && strcmp(w->layout, "OI") != 0) {
        return false;
    }
    *out = (struct msc_gemm_spec){
        .desc = {.kind = MSC_GEMM_LINEAR,
                 .batch = msc_dims_product(x->n_dims - 1, x->dims),
                 .groups = 1,
                 .in_channels = x->dims[x->n_dims - 1],
                 .out_channels = w->dims[is_input_first ? 1 : 0],
                 .is_input_first = is_input_first},
        .out_axis = is_input_first ? 1 : 0,
        .channel_axis = x->n_dims - 1,
    };
    const struct msc_array *bias = msc_lowering_constant(g, joint, 2);
    return out->desc.batch > 0 && out->desc.in_channels > 0 && out->desc.out_channels > 0 &&
           (!bias || msc_array_n_elements(bias) == out->desc.out_channels);
}

static bool family_linear_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    struct msc_gemm_spec spec;
    return msc_gemm_describe_linear(&spec, g, joint);
}

static void family_linear_layouts(const struct msc_graph *g, const struct msc_step *step,
                                  const enum msc_layout coming[], struct msc_step_layouts *out) {
    int32_t x = step->joints[0].operands[0].index;
    msc_lowering_follow_layout(g, step, 1, MSC_LAYOUT_NCHW, coming, out);
    out->inputs[x] = msc_lowering_ask_layout(msc_lowering_operand(g, step->joints[0].joint, 0),
                                             MSC_LAYOUT_NCHW, coming[x]);
}

const struct msc_family_def msc_family__linear = {
    .name = "linear",
    .accepts = family_linear_accepts,
    .has_followers = true,
    .layouts = family_linear_layouts,
};
