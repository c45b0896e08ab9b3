// Convolutions of one to three spatial axes, grouped, dilated, transposed, in NHWC.
#include "kernels/lowering/families_internal.h"
#include "kernels/lowering/gemm.h"

#include <string.h>

// True if the joint's data and kernel have axis orders that are supported.
static bool has_known_layouts(const struct msc_joint *joint, int n_spatial, bool is_transposed) {
    static const char *const data[] = {"NCW", "NCHW", "NCDHW"};
    static const char *const kernels[2][3] = {{"OIW", "OIHW", "OIDHW"}, {"IOW", "IOHW", "IODHW"}};
    const char *data_layout = msc_joint_attr(joint, "data_layout");
    const char *kernel_layout = msc_joint_attr(joint, "kernel_layout");
    return data_layout && kernel_layout && strcmp(data_layout, data[n_spatial - 1]) == 0 &&
           strcmp(kernel_layout, kernels[is_transposed ? 1 : 0][n_spatial - 1]) == 0;
}

// Reads the window's attributes. False if the attributes do not fit the shapes, or if only the
// reference kernels support such attributes.
static bool read_window(struct msc_gemm_desc *d, const struct msc_joint *joint,
                        const struct msc_tensor *x, const struct msc_tensor *w,
                        const struct msc_tensor *y) {
    int n = d->n_spatial;
    int64_t padding[6];
    if (msc_joint_attr_list(joint, "strides", d->strides, 3) != n ||
        msc_joint_attr_list(joint, "dilation", d->dilation, 3) != n ||
        msc_joint_attr_list(joint, "padding", padding, 6) != 2 * n) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        d->in[i] = x->dims[2 + i];
        d->out[i] = y->dims[2 + i];
        d->kernel[i] = w->dims[2 + i];
        d->pad_begin[i] = padding[i];
        d->pad_end[i] = padding[n + i];
        int64_t reach = (d->kernel[i] - 1) * d->dilation[i] + 1;
        if (d->strides[i] < 1 || d->dilation[i] < 1 || padding[i] < 0 || padding[n + i] < 0 ||
            d->in[i] < 1 || d->out[i] < 1 || d->kernel[i] < 1) {
            return false;
        }
        if (d->kind == MSC_GEMM_CONV_TRANSPOSE) {
            // Computed from the output size, because output padding reduces the end padding.
            d->pad_end[i] = (d->in[i] - 1) * d->strides[i] + reach - d->pad_begin[i] - d->out[i];
            // oneDNN does not support outputs that extend a whole stride beyond the last window.
            if (d->pad_end[i] + d->strides[i] <= 0) {
                return false;
            }
        } else if ((d->in[i] + padding[i] + padding[n + i] - reach) / d->strides[i] + 1 !=
                   d->out[i]) {
            return false;
        }
    }
    return true;
}

static bool family_conv_is_pointwise(const struct msc_gemm_desc *d) {
    bool is = d->kind == MSC_GEMM_CONV && d->groups == 1;
    for (int i = 0; i < d->n_spatial; i++) {
        is = is && d->kernel[i] == 1 && d->strides[i] == 1 && d->pad_begin[i] == 0 &&
             d->pad_end[i] == 0;
    }
    return is;
}

bool msc_gemm_describe_window(struct msc_gemm_spec *out, const struct msc_joint *joint,
                              const struct msc_tensor *x, const struct msc_tensor *w,
                              const struct msc_tensor *y) {
    bool is_transposed = joint->op == MSC_OP_CONV1D_TRANSPOSE ||
                         joint->op == MSC_OP_CONV2D_TRANSPOSE ||
                         joint->op == MSC_OP_CONV3D_TRANSPOSE;
    int64_t groups;
    if (x->n_dims < 3 || x->n_dims > 5 || w->n_dims != x->n_dims ||
        !has_known_layouts(joint, x->n_dims - 2, is_transposed) ||
        !msc_joint_attr_i64(joint, "groups", &groups) || groups < 1) {
        return false;
    }
    *out = (struct msc_gemm_spec){
        .desc = {.kind = is_transposed ? MSC_GEMM_CONV_TRANSPOSE : MSC_GEMM_CONV,
                 .n_spatial = x->n_dims - 2,
                 .batch = x->dims[0],
                 .groups = groups,
                 .in_channels = x->dims[1],
                 .out_channels = y->dims[1],
                 .strides = {1, 1, 1},
                 .dilation = {1, 1, 1}},
        .out_axis = is_transposed ? 1 : 0,
        .channel_axis = 1,
    };
    struct msc_gemm_desc *d = &out->desc;
    int64_t whole = is_transposed ? d->in_channels : d->out_channels;
    int64_t part = (is_transposed ? d->out_channels : d->in_channels) / groups;
    if (d->batch < 1 || d->in_channels % groups != 0 || d->out_channels % groups != 0 ||
        w->dims[0] != whole || w->dims[1] != part || part < 1 || !read_window(d, joint, x, w, y)) {
        return false;
    }
    out->is_pointwise = family_conv_is_pointwise(d);
    return true;
}

bool msc_gemm_describe_conv(struct msc_gemm_spec *out, const struct msc_graph *g,
                            const struct msc_joint *joint) {
    const struct msc_array *bias = msc_lowering_constant(g, joint, 2);
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_constant(g, joint, 1) && !msc_lowering_is_computed(g, joint, 2) &&
           msc_gemm_describe_window(out, joint, msc_lowering_operand(g, joint, 0),
                                    msc_lowering_operand(g, joint, 1),
                                    msc_lowering_output(g, joint)) &&
           (!bias || msc_array_n_elements(bias) == out->desc.out_channels);
}

static bool family_conv_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    struct msc_gemm_spec spec;
    return msc_gemm_describe_conv(&spec, g, joint);
}

void msc_family__conv_layouts(const struct msc_graph *g, const struct msc_step *step,
                              const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_joint *anchor = step->joints[0].joint;
    const struct msc_tensor *y = msc_lowering_output(g, anchor);
    int32_t x = step->joints[0].operands[0].index;
    // If the output has a single position, both layouts have the same order of elements. NCHW then
    // saves consumers a reorder.
    out->outputs =
        msc_lowering_layouts_coincide(y->n_dims, y->dims) ? MSC_LAYOUT_NCHW : MSC_LAYOUT_NHWC;
    msc_lowering_follow_layout(g, step, 1, MSC_LAYOUT_NHWC, coming, out);
    out->inputs[x] =
        msc_lowering_ask_layout(msc_lowering_operand(g, anchor, 0), MSC_LAYOUT_NHWC, coming[x]);
}

const struct msc_family_def msc_family__conv = {
    .name = "convolution",
    .accepts = family_conv_accepts,
    .has_followers = true,
    .layouts = msc_family__conv_layouts,
};
