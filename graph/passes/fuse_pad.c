// Fuses a pad with zeros into the padding of a convolution, and a pad with the lowest number into
// the padding of a max pool.
#include "graph/passes/fuse_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"

#include <string.h>

#define ZEROS "p:nn.pad[pad_mode=constant pad_value=0](x)"
#define LEAST "p:nn.pad[pad_mode=constant pad_value=-inf](x)"

static const char *const convolutions[] = {
    "y:nn.conv1d(" ZEROS ", weight)", "y:msc.conv1d_bias(" ZEROS ", weight, bias)",
    "y:nn.conv2d(" ZEROS ", weight)", "y:msc.conv2d_bias(" ZEROS ", weight, bias)",
    "y:nn.conv3d(" ZEROS ", weight)", "y:msc.conv3d_bias(" ZEROS ", weight, bias)",
};
static const char *const pools[] = {
    "y:nn.max_pool1d(" LEAST ")",
    "y:nn.max_pool2d(" LEAST ")",
    "y:nn.max_pool3d(" LEAST ")",
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// The layout has the axes N and C, which are not padded, then at most three spatial axes.
enum { FIRST = 2, MOST_AXES = 3 };
// Maximum numbers of attributes and weights of a joint.
enum { MOST_ATTRS = 16, MOST_WEIGHTS = 2 };

// The window that slides over the data.
struct window {
    const char *layout;         // layout of the data
    int n;                      // number of spatial axes
    int64_t lengths[MOST_AXES]; // extent of the window minus 1, including dilation
};

static bool read_convolution(struct window *w, const struct msc_joint *conv,
                             const struct msc_tensor *weight) {
    int64_t dilation[MOST_AXES];
    const char *layout = msc_joint_attr(conv, "kernel_layout");
    w->layout = msc_joint_attr(conv, "data_layout");
    w->n = weight->n_dims - FIRST;
    if (w->n < 1 || w->n > MOST_AXES || !layout || strncmp(layout, "OI", FIRST) != 0 ||
        msc_joint_attr_list(conv, "dilation", dilation, w->n) != w->n) {
        return false;
    }
    for (int i = 0; i < w->n; i++) {
        w->lengths[i] = (weight->dims[FIRST + i] - 1) * dilation[i];
    }
    return true;
}

// Reads a pool's window. False if it has dilation, or if ceil_mode allows windows that begin after
// the data.
static bool read_pool(struct window *w, const struct msc_joint *pool) {
    int64_t dilation[MOST_AXES];
    bool ceil_mode;
    w->layout = msc_joint_attr(pool, "layout");
    w->n = msc_joint_attr_list(pool, "pool_size", w->lengths, MOST_AXES);
    if (w->n < 1 || w->n > MOST_AXES || !msc_joint_attr_bool(pool, "ceil_mode", &ceil_mode) ||
        ceil_mode || msc_joint_attr_list(pool, "dilation", dilation, w->n) != w->n) {
        return false;
    }
    for (int i = 0; i < w->n; i++) {
        if (dilation[i] != 1) {
            return false;
        }
        w->lengths[i]--;
    }
    return true;
}

// Adds the padding of the joint and the widths of the pad: first the amounts before all spatial
// axes, then the amounts after them. False if the pad cannot be fused.
static bool add_padding(int64_t padding[], const struct window *w, const struct msc_joint *joint,
                        const struct msc_joint *pad) {
    const int n = w->n, n_dims = FIRST + n;
    int64_t width[2 * (FIRST + MOST_AXES)];
    if (!w->layout || strncmp(w->layout, "NC", FIRST) != 0 || msc_joint_attr(pad, "axes") ||
        msc_joint_attr_list(joint, "padding", padding, 2 * n) != 2 * n ||
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

// True if every window contains an element of the data. If not, the pad remains a separate joint.
static bool reaches_data(const int64_t padding[], const struct window *w) {
    for (int i = 0; i < 2 * w->n; i++) {
        if (padding[i] < 0 || padding[i] > w->lengths[i % w->n]) {
            return false;
        }
    }
    return true;
}

static enum msc_status fuse_pad_replace(struct msc_fuse *f, const struct msc_match *m,
                                        int32_t joint, const int64_t padding[], int n) {
    const struct msc_joint *old = &f->graph->joints[joint]->joint;
    int32_t x = msc_match_tensor(m, "x");
    struct msc_attr attrs[MOST_ATTRS];
    struct msc_weight_spec weights[MOST_WEIGHTS];
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    msc_attr_write_ints(&text, padding, (size_t)(2 * n));
    MSC_TRY_OUT(msc_str_status(&text));
    for (int32_t i = 0; i < old->n_attrs; i++) {
        bool is_padding = strcmp(old->attrs[i].key, "padding") == 0;
        attrs[i] = old->attrs[i];
        attrs[i].value = is_padding ? msc_str_text(&text) : attrs[i].value;
    }
    for (int32_t i = 0; i < old->n_weights; i++) {
        weights[i] = (struct msc_weight_spec){old->weights[i].role, old->weights[i].tensor};
    }
    struct msc_joint_spec spec = {.op = old->op,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = old->n_weights,
                                  .weights = weights,
                                  .n_attrs = old->n_attrs,
                                  .attrs = attrs};
    status = msc_fuse__replace(f, m, joint, &spec);
out:
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_fuse_pad(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    struct window w;
    int64_t padding[2 * MOST_AXES];
    bool is_conv = msc_fuse__find(&m, f, convolutions, COUNT(convolutions), joint);
    if (!is_conv && !msc_fuse__find(&m, f, pools, COUNT(pools), joint)) {
        return MSC_OK;
    }
    const struct msc_joint *old = msc_match_joint(&m, "y"), *pad = msc_match_joint(&m, "p");
    bool is_read =
        is_conv
            ? read_convolution(&w, old, &f->graph->tensors[msc_match_tensor(&m, "weight")]->tensor)
            : read_pool(&w, old);
    if (!is_read || old->n_inputs != 1 || old->n_weights > MOST_WEIGHTS ||
        old->n_attrs > MOST_ATTRS || !add_padding(padding, &w, old, pad) ||
        !reaches_data(padding, &w)) {
        return MSC_OK;
    }
    *done = true;
    return fuse_pad_replace(f, &m, joint, padding, w.n);
}
