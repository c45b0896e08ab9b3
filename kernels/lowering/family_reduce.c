// Sums, means, maxima and minima over any axes in either layout, and global pools.
#include "kernels/lowering/families_internal.h"

static bool family_reduce_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    struct msc_reduction r;
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           !msc_lowering_operand(g, joint, 1) && msc_dims_product(x->n_dims, x->dims) > 0 &&
           msc_lowering_describe_reduction(&r, joint, x->n_dims);
}

void msc_lowering_map_axes(int to[MSC_MAX_DIMS], int n_dims, const bool is_reduced[], int n_out) {
    bool keeps = n_out == n_dims;
    int next = 0;
    for (int i = 0; i < n_dims; i++) {
        to[i] = is_reduced[i] ? -1 : next;
        next += !is_reduced[i] || keeps ? 1 : 0;
    }
}

// True if the kept axes have the same memory order in the input and in the output.
static bool is_same_order(const struct msc_tensor *x, enum msc_layout in, int n_out,
                          enum msc_layout out, const int to[]) {
    int at[MSC_MAX_DIMS], out_at[MSC_MAX_DIMS];
    msc_lowering_positions(at, x->n_dims, in);
    msc_lowering_positions(out_at, n_out, out);
    for (int i = 0; i < x->n_dims; i++) {
        for (int k = 0; k < x->n_dims; k++) {
            bool both = to[i] >= 0 && to[k] >= 0 && x->dims[i] != 1 && x->dims[k] != 1;
            if (both && at[i] < at[k] && out_at[to[i]] > out_at[to[k]]) {
                return false;
            }
        }
    }
    return true;
}

static void family_reduce_layouts(const struct msc_graph *g, const struct msc_step *step,
                                  const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    int32_t input = step->joints[0].operands[0].index;
    struct msc_reduction r;
    int to[MSC_MAX_DIMS];
    msc_lowering_describe_reduction(&r, joint, x->n_dims);
    msc_lowering_map_axes(to, x->n_dims, r.is_reduced, y->n_dims);
    for (int layout = MSC_LAYOUT_NCHW; layout <= MSC_LAYOUT_NHWC; layout++) {
        if (layout == MSC_LAYOUT_NHWC && y->n_dims < 3) {
            return;
        }
        if (is_same_order(x, coming[input], y->n_dims, (enum msc_layout)layout, to)) {
            out->inputs[input] = coming[input];
            out->outputs = (enum msc_layout)layout;
            return;
        }
    }
}

const struct msc_family_def msc_family__reduce = {
    .name = "reduction",
    .accepts = family_reduce_accepts,
    .layouts = family_reduce_layouts,
};
