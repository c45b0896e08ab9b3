// Matrix products of two operands with any leading axes, one of which may be constant.
#include "kernels/lowering/families_internal.h"
#include "kernels/lowering/gemm.h"

bool msc_gemm_describe_matmul(struct msc_gemm_desc *d, int64_t *n_products,
                              const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *a = msc_lowering_operand(g, joint, 0);
    const struct msc_tensor *b = msc_lowering_operand(g, joint, 1);
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    if (!msc_lowering_is_f32(g, joint) || a->n_dims < 2 || b->n_dims < 2 ||
        msc_dims_product(y->n_dims, y->dims) < 1 || a->dims[a->n_dims - 1] < 1 ||
        (msc_lowering_constant(g, joint, 0) && msc_lowering_constant(g, joint, 1))) {
        return false;
    }
    int64_t lead = msc_dims_product(y->n_dims - 2, y->dims);
    int64_t lead_a = msc_dims_product(a->n_dims - 2, a->dims);
    int64_t lead_b = msc_dims_product(b->n_dims - 2, b->dims);
    *d = (struct msc_gemm_desc){.kind = MSC_GEMM_MATMUL,
                                .batch = 1,
                                .rows = a->dims[a->n_dims - 2],
                                .groups = 1,
                                .in_channels = a->dims[a->n_dims - 1],
                                .out_channels = b->dims[b->n_dims - 1]};
    *n_products = 1;
    if (lead_b == 1 && lead_a == lead) {
        d->rows *= lead;
    } else if (lead_a == lead && lead_b == lead) {
        d->batch = lead;
    } else {
        *n_products = lead;
    }
    return true;
}

static bool family_matmul_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    struct msc_gemm_desc d;
    int64_t n_products;
    return msc_gemm_describe_matmul(&d, &n_products, g, joint);
}

static void family_matmul_layouts(const struct msc_graph *g, const struct msc_step *step,
                                  const enum msc_layout coming[], struct msc_step_layouts *out) {
    msc_lowering_follow_layout(g, step, 0, MSC_LAYOUT_NCHW, coming, out);
}

const struct msc_family_def msc_family__matmul = {
    .name = "matrix product",
    .accepts = family_matmul_accepts,
    .has_followers = true,
    .layouts = family_matmul_layouts,
};
