#include "graph/reference/reference_internal.h"

#include <string.h>

// Positions of the letters of a layout: batch, channels, then spatial axes in order.
struct axes {
    int batch, channels;
    int n_spatial;
    int spatial[3];
};

static enum msc_status read_layout(struct axes *a, const struct msc_reference_call *call,
                                   const char *layout, int n_dims, char batch, char channels) {
    *a = (struct axes){.batch = -1, .channels = -1};
    bool is_good = strlen(layout) == (size_t)n_dims;
    for (int i = 0; is_good && i < n_dims; i++) {
        if (layout[i] == batch) {
            a->batch = i;
        } else if (layout[i] == channels) {
            a->channels = i;
        } else if (a->n_spatial < 3) {
            a->spatial[a->n_spatial++] = i;
        } else {
            is_good = false;
        }
    }
    if (!is_good || a->batch < 0 || a->channels < 0 || a->n_spatial == 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "joint %s: layout '%s' is not supported for %d dimensions",
                        call->joint->name, layout, n_dims);
    }
    return MSC_OK;
}

// Reads a list attribute of exactly n numbers.
static enum msc_status reference_window_read_list(int64_t out[],
                                                  const struct msc_reference_call *call,
                                                  const char *key, int n) {
    int found = msc_joint_attr_list(call->joint, key, out, n);
    if (found != n) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: %s has %d numbers, expected %d",
                        call->joint->name, key, found, n);
    }
    return MSC_OK;
}

enum msc_status msc_reference__window_init(struct msc_window *w,
                                           const struct msc_reference_call *call,
                                           const char *layout, const int64_t kernel[],
                                           int n_kernel) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *out = &call->outputs[0];
    struct axes axes;
    MSC_TRY(read_layout(&axes, call, layout, x->n_dims, 'N', 'C'));
    int n = axes.n_spatial;
    int64_t strides[3], dilation[3], padding[6];
    MSC_TRY(reference_window_read_list(strides, call, "strides", n));
    MSC_TRY(reference_window_read_list(dilation, call, "dilation", n));
    MSC_TRY(reference_window_read_list(padding, call, "padding", 2 * n));
    if (n_kernel != n || out->n_dims != x->n_dims) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: the window has %d axes, but there are %d spatial axes",
                        call->joint->name, n_kernel, n);
    }
    int64_t in_strides[MSC_MAX_DIMS], out_strides[MSC_MAX_DIMS];
    msc_reference__strides(in_strides, x->n_dims, x->dims);
    msc_reference__strides(out_strides, out->n_dims, out->dims);
    *w = (struct msc_window){
        .n_axes = n,
        .in = {1, 1, 1},
        .out = {1, 1, 1},
        .kernel = {1, 1, 1},
        .step = {1, 1, 1},
        .dilation = {1, 1, 1},
        .n_batches = x->dims[axes.batch],
        .in_channels = x->dims[axes.channels],
        .out_channels = out->dims[axes.channels],
        .in_batch_stride = in_strides[axes.batch],
        .in_channel_stride = in_strides[axes.channels],
        .out_batch_stride = out_strides[axes.batch],
        .out_channel_stride = out_strides[axes.channels],
    };
    for (int i = 0; i < n; i++) {
        if (strides[i] < 1 || dilation[i] < 1 || kernel[i] < 1) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s: stride, dilation and kernel must be 1 or more",
                            call->joint->name);
        }
        int a = 3 - n + i;
        int axis = axes.spatial[i];
        w->in[a] = x->dims[axis];
        w->out[a] = out->dims[axis];
        w->kernel[a] = kernel[i];
        w->step[a] = strides[i];
        w->dilation[a] = dilation[i];
        w->pad_begin[a] = padding[i];
        w->pad_end[a] = padding[n + i];
        w->in_strides[a] = in_strides[axis];
        w->out_strides[a] = out_strides[axis];
    }
    return MSC_OK;
}

enum msc_status msc_reference__conv_init(struct msc_conv *c,
                                         const struct msc_reference_call *call) {
    const struct msc_view *weight = &call->operands[1];
    struct axes axes;
    MSC_TRY(read_layout(&axes, call, msc_reference__get_text(call, "kernel_layout"), weight->n_dims,
                        'O', 'I'));
    int64_t kernel[3], strides[MSC_MAX_DIMS];
    for (int i = 0; i < axes.n_spatial; i++) {
        kernel[i] = weight->dims[axes.spatial[i]];
    }
    MSC_TRY(msc_reference__window_init(
        &c->window, call, msc_reference__get_text(call, "data_layout"), kernel, axes.n_spatial));
    MSC_TRY(msc_reference__get_i64(&c->groups, call, "groups"));

    msc_reference__strides(strides, weight->n_dims, weight->dims);
    for (int i = 0; i < axes.n_spatial; i++) {
        c->window.kernel_strides[3 - axes.n_spatial + i] = strides[axes.spatial[i]];
    }
    c->is_transposed = msc_op_is_conv_transpose(call->joint->op);
    c->weight_out_stride = strides[axes.batch];
    c->weight_in_stride = strides[axes.channels];

    // The weight has the output channels of all groups and the input channels of one group. In a
    // transposed convolution, it has the input channels of all groups and the output channels of
    // one group.
    int64_t n_out = weight->dims[axes.batch], n_in = weight->dims[axes.channels];
    int64_t groups = c->groups;
    int64_t whole = c->is_transposed ? n_in : n_out;
    if (groups < 1 || whole % groups != 0 ||
        n_in * (c->is_transposed ? 1 : groups) != c->window.in_channels ||
        n_out * (c->is_transposed ? groups : 1) != c->window.out_channels) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: a weight of %lld output and %lld input channels in %lld groups "
                        "does not fit an input of %lld and an output of %lld channels",
                        call->joint->name, (long long)n_out, (long long)n_in, (long long)groups,
                        (long long)c->window.in_channels, (long long)c->window.out_channels);
    }
    c->weight_group_stride =
        whole / groups * (c->is_transposed ? c->weight_in_stride : c->weight_out_stride);
    return MSC_OK;
}

int64_t msc_reference__conv_source(const struct msc_conv *c, int a, int64_t o, int64_t k) {
    const struct msc_window *w = &c->window;
    int64_t i;
    if (c->is_transposed) {
        // Input i contributes to output i * step - pad + k * dilation; this solves for i.
        int64_t scaled = o + w->pad_begin[a] - k * w->dilation[a];
        if (scaled < 0 || scaled % w->step[a] != 0) {
            return -1;
        }
        i = scaled / w->step[a];
    } else {
        i = o * w->step[a] - w->pad_begin[a] + k * w->dilation[a];
    }
    return i < 0 || i >= w->in[a] ? -1 : i;
}
