// Zeros laid around the data of a convolution are its padding.
#include "graph/passes/fuse_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"

#include <string.h>

#define ZEROS "p:nn.pad[pad_mode=constant pad_value=0](x)"

static const char *const patterns[] = {
    "y:nn.conv1d(" ZEROS ", weight)", "y:msc.conv1d_bias(" ZEROS ", weight, bias)",
    "y:nn.conv2d(" ZEROS ", weight)", "y:msc.conv2d_bias(" ZEROS ", weight, bias)",
    "y:nn.conv3d(" ZEROS ", weight)", "y:msc.conv3d_bias(" ZEROS ", weight, bias)",
};

// The axes N and C, which are not padded, then at most three.
enum { FIRST = 2, MOST_AXES = 3 };
// Of a convolution.
enum { MOST_ATTRS = 16, MOST_WEIGHTS = 2 };

// Begins, then ends, of n axes: what the convolution has and what is laid around its data.
static bool add_padding(int64_t padding[], int n, const struct msc_joint *conv,
                        const struct msc_joint *pad) {
    const int n_dims = FIRST + n;
    int64_t width[2 * (FIRST + MOST_AXES)];
    const char *layout = msc_joint_attr(conv, "data_layout");
    if (!layout || strncmp(layout, "NC", FIRST) != 0 || msc_joint_attr(pad, "axes") ||
        msc_joint_attr_list(conv, "padding", padding, 2 * n) != 2 * n ||
        msc_joint_attr_list(pad, "pad_width", width, 2 * n_dims) != 2 * n_dims) {
        return false;
    }
    for (int i = 0; i < 2 * n_dims; i++) {
        int axis = i % n_dims - FIRST, at = i / n_dims * n + axis;
        if (width[i] < 0 || width[i] > INT32_MAX || (axis < 0 && width[i] != 0)) {
            return false;
        }
        if (axis >= 0) {
            padding[at] += width[i];
        }
    }
    return true;
}

// Does every window reach some of the data? Others are left to joints that say what they read.
static bool reaches_data(const int64_t padding[], int n, const struct msc_joint *conv,
                         const struct msc_tensor *weight) {
    int64_t dilation[MOST_AXES];
    const char *layout = msc_joint_attr(conv, "kernel_layout");
    bool fits = layout && strncmp(layout, "OI", FIRST) == 0 && weight->n_dims == FIRST + n &&
                msc_joint_attr_list(conv, "dilation", dilation, n) == n;
    for (int i = 0; fits && i < n; i++) {
        int64_t most = (weight->dims[FIRST + i] - 1) * dilation[i];
        fits =
            padding[i] >= 0 && padding[i] <= most && padding[n + i] >= 0 && padding[n + i] <= most;
    }
    return fits;
}

static enum msc_status fuse_pad_replace(struct msc_fuse *f, const struct msc_match *m,
                                        int32_t joint, const int64_t padding[], int n) {
    const struct msc_joint *conv = &f->graph->joints[joint]->joint;
    int32_t x = msc_match_tensor(m, "x");
    struct msc_attr attrs[MOST_ATTRS];
    struct msc_weight_spec weights[MOST_WEIGHTS];
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    msc_attr_write_ints(&text, padding, (size_t)(2 * n));
    MSC_TRY_OUT(msc_str_status(&text));
    for (int32_t i = 0; i < conv->n_attrs; i++) {
        bool is_padding = strcmp(conv->attrs[i].key, "padding") == 0;
        attrs[i] = conv->attrs[i];
        attrs[i].value = is_padding ? msc_str_text(&text) : attrs[i].value;
    }
    for (int32_t i = 0; i < conv->n_weights; i++) {
        weights[i] = (struct msc_weight_spec){conv->weights[i].role, conv->weights[i].tensor};
    }
    struct msc_joint_spec spec = {.op = conv->op,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = conv->n_weights,
                                  .weights = weights,
                                  .n_attrs = conv->n_attrs,
                                  .attrs = attrs};
    status = msc_fuse__replace(f, m, joint, &spec);
out:
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_fuse_pad(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    if (!msc_fuse__find(&m, f, patterns, sizeof(patterns) / sizeof(patterns[0]), joint)) {
        return MSC_OK;
    }
    const struct msc_joint *conv = msc_match_joint(&m, "y"), *pad = msc_match_joint(&m, "p");
    const struct msc_tensor *weight = &f->graph->tensors[msc_match_tensor(&m, "weight")]->tensor;
    int64_t padding[2 * MOST_AXES];
    int n = weight->n_dims - FIRST;
    if (conv->n_inputs != 1 || conv->n_weights > MOST_WEIGHTS || conv->n_attrs > MOST_ATTRS ||
        n < 1 || n > MOST_AXES || !add_padding(padding, n, conv, pad) ||
        !reaches_data(padding, n, conv, weight)) {
        return MSC_OK;
    }
    *done = true;
    return fuse_pad_replace(f, &m, joint, padding, n);
}
