// Max and average pooling in NHWC.
#include "kernels/lowering/families_internal.h"
#include "kernels/lowering/pool.h"

#include <string.h>

// Kernels list the taps of a window. Larger windows are left to the reference kernels.
#define MOST_TAPS ((int64_t)1 << 20)

static bool family_pool_read_axes(struct msc_pool_axis axes[3], const struct msc_joint *joint,
                                  const struct msc_tensor *x, const struct msc_tensor *y) {
    int n = x->n_dims - 2;
    int64_t kernel[3], strides[3], dilation[3], padding[6];
    if (msc_joint_attr_list(joint, "pool_size", kernel, 3) != n ||
        msc_joint_attr_list(joint, "strides", strides, 3) != n ||
        msc_joint_attr_list(joint, "dilation", dilation, 3) != n ||
        msc_joint_attr_list(joint, "padding", padding, 6) != 2 * n) {
        return false;
    }
    axes[0] = axes[1] = (struct msc_pool_axis){1, 1, 1, 1, 1, 0, 0};
    for (int i = 0; i < n; i++) {
        struct msc_pool_axis *a = &axes[3 - n + i];
        *a = (struct msc_pool_axis){x->dims[2 + i], y->dims[2 + i], kernel[i],     strides[i],
                                    dilation[i],    padding[i],     padding[n + i]};
        if (a->kernel < 1 || a->stride < 1 || a->dilation < 1 || a->pad_begin < 0 ||
            a->pad_end < 0 || a->in < 1) {
            return false;
        }
    }
    int64_t taps = msc_dims_product(n, kernel); // -1: it overflows
    return taps > 0 && taps <= MOST_TAPS;
}

bool msc_pool_describe(struct msc_pool *out, const struct msc_graph *g,
                       const struct msc_joint *joint) {
    static const char *const layouts[] = {"NCW", "NCHW", "NCDHW"};
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    const char *layout = msc_joint_attr(joint, "layout");
    out->is_max = joint->op == MSC_OP_MAX_POOL1D || joint->op == MSC_OP_MAX_POOL2D ||
                  joint->op == MSC_OP_MAX_POOL3D;
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) && layout &&
           x->n_dims >= 3 && x->n_dims <= 5 && strcmp(layout, layouts[x->n_dims - 3]) == 0 &&
           msc_joint_attr_bool(joint, "count_include_pad", &out->counts_padding) &&
           family_pool_read_axes(out->axes, joint, x, msc_lowering_output(g, joint));
}

static bool family_pool_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    struct msc_pool pool;
    return msc_pool_describe(&pool, g, joint);
}

static void family_pool_layouts(const struct msc_graph *g, const struct msc_step *step,
                                const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_tensor *y = msc_lowering_output(g, step->joints[0].joint);
    msc_lowering_follow_layout(g, step, 0, MSC_LAYOUT_NHWC, coming, out);
    out->outputs =
        msc_lowering_layouts_coincide(y->n_dims, y->dims) ? MSC_LAYOUT_NCHW : MSC_LAYOUT_NHWC;
}

const struct msc_family_def msc_family__pool = {
    .name = "pooling",
    .accepts = family_pool_accepts,
    .layouts = family_pool_layouts,
};
