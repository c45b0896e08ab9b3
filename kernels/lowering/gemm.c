#include "kernels/lowering/gemm.h"

#include "kernels/backend.h"
#include "kernels/lowering/families.h"

#include <math.h>

bool msc_gemm_describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                       const struct msc_joint *joint) {
    switch (msc_family_of(g, joint)) {
    case MSC_FAMILY_CONV:
        return msc_gemm_describe_conv(out, g, joint);
    case MSC_FAMILY_LINEAR:
        return msc_gemm_describe_linear(out, g, joint);
    default:
        return false;
    }
}

bool msc_gemm_is_integer(const struct msc_quant *weight, int out_axis) {
    return msc_quant_is_integer(weight) && (weight->n == 1 || weight->axis == out_axis);
}

bool msc_gemm_reads_channels(const struct msc_gemm_desc *d, const struct msc_quant *input) {
    return d->kind == MSC_GEMM_CONV && d->groups == d->in_channels && d->groups > 1 &&
           input->axis == 1 && input->n == d->in_channels;
}

int32_t msc_gemm_limits(float *low, float *high, const struct msc_step *step) {
    *low = -INFINITY;
    *high = INFINITY;
    if (step->n_joints < 2 ||
        (step->joints[1].joint->op != MSC_OP_CLIP && step->joints[1].joint->op != MSC_OP_RELU)) {
        return 1;
    }
    for (int32_t j = 2; j < step->n_joints; j++) {
        for (int32_t i = 0; i < step->joints[j].n_operands; i++) {
            const struct msc_operand *o = &step->joints[j].operands[i];
            if (o->kind == MSC_OPERAND_INNER && o->index == 0) {
                return 1;
            }
        }
    }
    if (step->joints[1].joint->op == MSC_OP_RELU) {
        *low = 0.0f;
    } else {
        msc_joint_attr_float(step->joints[1].joint, "min", low);
        msc_joint_attr_float(step->joints[1].joint, "max", high);
    }
    return 2;
}
