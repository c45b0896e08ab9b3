// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear between float32 and bytes, with
// constant scales: one for all elements, or one per position along an axis.
#include "kernels/lowering/families_internal.h"

static bool family_linear_quant_is_byte(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I8;
}

static bool family_linear_quant_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0),
                            *y = msc_lowering_output(g, joint);
    if (!msc_lowering_is_computed(g, joint, 0)) {
        return false;
    }
    if (joint->op == MSC_OP_DYNAMIC_QUANTIZE) {
        return x->dtype == MSC_DTYPE_F32;
    }
    bool is_quantize = joint->op == MSC_OP_QUANTIZE;
    const struct msc_array *scales = msc_lowering_constant(g, joint, 1);
    const char *format = msc_joint_attr(joint, "format");
    int64_t block = 0;
    return scales && msc_array_dtype(scales) == MSC_DTYPE_F32 && msc_array_n_dims(scales) <= 1 &&
           !msc_lowering_is_computed(g, joint, 2) && (!format || format[0] == '\0') &&
           msc_joint_attr_i64(joint, "block_size", &block) &&
           (block == 0 || msc_array_n_elements(scales) == 1) &&
           (is_quantize ? x : y)->dtype == MSC_DTYPE_F32 &&
           family_linear_quant_is_byte((is_quantize ? y : x)->dtype);
}

static void family_linear_quant_layouts(const struct msc_graph *g, const struct msc_step *step,
                                        const enum msc_layout coming[],
                                        struct msc_step_layouts *out) {
    if (step->n_outputs == 1) {
        msc_lowering_keep_layout(g, step, coming, out);
    }
}

const struct msc_family_def msc_family__linear_quant = {
    .name = "linear-quant",
    .accepts = family_linear_quant_accepts,
    .layouts = family_linear_quant_layouts,
};
