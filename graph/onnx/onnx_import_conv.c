// Translates convolutions and pooling.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

#define MAX_SPATIAL 3

// Window parameters of a node, with automatic padding resolved.
struct windows {
    int n;                   // number of spatial axes
    int64_t in[MAX_SPATIAL]; // input lengths, -1 if symbolic
    int64_t kernel[MAX_SPATIAL], strides[MAX_SPATIAL], dilations[MAX_SPATIAL];
    int64_t pads[2 * MAX_SPATIAL];
};

static const char *const data_layouts[] = {"", "NCW", "NCHW", "NCDHW"};

static enum msc_status check_numbers(const struct windows *w) {
    for (int i = 0; i < w->n; i++) {
        if (w->kernel[i] < 1 || w->strides[i] < 1 || w->dilations[i] < 1 ||
            w->kernel[i] > INT32_MAX || w->strides[i] > INT32_MAX || w->dilations[i] > INT32_MAX) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "windows, strides and dilations must be from 1 to 2^31 - 1");
        }
    }
    return MSC_OK;
}

// Pads so that the output has ceil(in / stride) elements. If the padding is odd, the extra element
// is at the end (`is_upper`) or at the beginning.
static enum msc_status pad_same(struct windows *w, bool is_upper) {
    for (int i = 0; i < w->n; i++) {
        int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1;
        int64_t total = extent - 1;
        if (w->in[i] >= 0) {
            int64_t out = (w->in[i] + w->strides[i] - 1) / w->strides[i];
            total = (out - 1) * w->strides[i] + extent - w->in[i];
        } else if (w->strides[i] != 1) {
            return MSC_ONNX_UNSUPPORTED(
                "auto_pad with strides needs a known length of the dimension: "
                "bind its symbol");
        }
        total = total < 0 ? 0 : total;
        w->pads[i] = is_upper ? total / 2 : total - total / 2;
        w->pads[w->n + i] = total - w->pads[i];
    }
    return MSC_OK;
}

static enum msc_status read_windows(struct windows *w, struct msc_onnx_node *n,
                                    const char **auto_pad) {
    struct msc_onnx_shape x = msc_onnx__shape(n, n->inputs[0]);
    if (x.n_dims < 3 || x.n_dims > 2 + MAX_SPATIAL) {
        return MSC_ONNX_UNSUPPORTED("the input has %d dimensions, expected 3 to 5", x.n_dims);
    }
    w->n = x.n_dims - 2;
    for (int i = 0; i < w->n; i++) {
        w->in[i] = x.dims[i + 2];
    }
    MSC_TRY(msc_onnx__ints_of(w->strides, n, "strides", w->n, 1));
    MSC_TRY(msc_onnx__ints_of(w->dilations, n, "dilations", w->n, 1));
    MSC_TRY(msc_onnx__ints_of(w->pads, n, "pads", 2 * w->n, 0));
    return msc_onnx__text(auto_pad, n, "auto_pad", "NOTSET");
}

static enum msc_status apply_auto_pad(struct windows *w, const char *auto_pad) {
    MSC_TRY(check_numbers(w));
    if (strcmp(auto_pad, "SAME_UPPER") == 0 || strcmp(auto_pad, "SAME_LOWER") == 0) {
        return pad_same(w, auto_pad[5] == 'U');
    }
    if (strcmp(auto_pad, "VALID") == 0) {
        memset(w->pads, 0, sizeof(w->pads));
    } else if (strcmp(auto_pad, "NOTSET") != 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "auto_pad is '%s', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER",
                        auto_pad);
    }
    return MSC_OK;
}

static enum msc_status set_windows(struct msc_onnx_node *n, const struct windows *w) {
    msc_onnx__set_ints(n, "strides", w->strides, w->n);
    msc_onnx__set_ints(n, "dilation", w->dilations, w->n);
    msc_onnx__set_ints(n, "padding", w->pads, 2 * w->n);
    return MSC_OK;
}

static enum msc_status read_kernel(struct windows *w, const struct msc_onnx_node *n, int weight) {
    struct msc_onnx_shape k = msc_onnx__shape(n, n->inputs[weight]);
    int64_t declared[MAX_SPATIAL];
    if (k.n_dims != w->n + 2) {
        return MSC_FAIL(MSC_E_FORMAT, "the weight has %d dimensions, expected %d", k.n_dims,
                        w->n + 2);
    }
    MSC_TRY(msc_onnx__ints_of(declared, n, "kernel_shape", w->n, -1));
    for (int i = 0; i < w->n; i++) {
        w->kernel[i] = k.dims[i + 2];
        if (declared[i] >= 0 && declared[i] != w->kernel[i]) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "kernel_shape has a length of %lld, but the weight's kernel has %lld",
                            (long long)declared[i], (long long)w->kernel[i]);
        }
    }
    return MSC_OK;
}

// Reads the attributes that all convolutions have: windows, groups and layouts. `weight` is the
// input index of the weight.
static enum msc_status read_conv(struct windows *w, struct msc_onnx_node *n, int weight) {
    static const char *const kernel_layouts[] = {"", "OIW", "OIHW", "OIDHW"};
    const char *auto_pad;
    int64_t groups;
    MSC_TRY(read_windows(w, n, &auto_pad));
    MSC_TRY(read_kernel(w, n, weight));
    MSC_TRY(apply_auto_pad(w, auto_pad));
    MSC_TRY(msc_onnx__int(&groups, n, "group", 1));
    MSC_TRY(set_windows(n, w));
    msc_onnx__set_int(n, "groups", groups);
    msc_onnx__set(n, "data_layout", data_layouts[w->n]);
    msc_onnx__set(n, "out_layout", data_layouts[w->n]);
    msc_onnx__set(n, "kernel_layout", kernel_layouts[w->n]);
    return MSC_OK;
}

enum msc_status msc_onnx__conv(struct msc_onnx_node *n) {
    static const enum msc_op ops[][2] = {
        {MSC_OP_CONV2D, MSC_OP_CONV2D_BIAS},
        {MSC_OP_CONV1D, MSC_OP_CONV1D_BIAS},
        {MSC_OP_CONV2D, MSC_OP_CONV2D_BIAS},
        {MSC_OP_CONV3D, MSC_OP_CONV3D_BIAS},
    };
    struct windows w;
    MSC_TRY(read_conv(&w, n, 1));
    bool has_bias = msc_onnx__input(n, 2) != NULL;
    return msc_onnx__add_last(n, ops[w.n][has_bias], n->inputs, has_bias ? 3 : 2);
}

// ConvInteger and QLinearConv.
enum msc_status msc_onnx__conv_integer(struct msc_onnx_node *n) {
    struct windows w;
    MSC_TRY(read_conv(&w, n, n->rule.op == MSC_OP_QLINEAR_CONV ? 3 : 1));
    return msc_onnx__add_last(n, n->rule.op, n->inputs, n->n_inputs);
}

// Computes padding from the requested output lengths. If a length exceeds the output without
// padding, the excess becomes output padding.
static enum msc_status pads_from_shape(struct windows *w, int64_t output_padding[],
                                       const int64_t wanted[], bool is_upper) {
    for (int i = 0; i < w->n; i++) {
        int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1;
        if (w->in[i] < 0) {
            return MSC_ONNX_UNSUPPORTED("output_shape or auto_pad needs a known length of the "
                                        "dimension: bind its symbol");
        }
        int64_t total = (w->in[i] - 1) * w->strides[i] + output_padding[i] + extent - wanted[i];
        if (total < 0) {
            output_padding[i] -= total;
            total = 0;
        }
        w->pads[i] = is_upper ? total / 2 : total - total / 2;
        w->pads[w->n + i] = total - w->pads[i];
    }
    return MSC_OK;
}

static enum msc_status transpose_pads(struct windows *w, int64_t output_padding[],
                                      const struct msc_onnx_node *n, const char *auto_pad) {
    const int64_t *shape;
    int64_t wanted[MAX_SPATIAL];
    int n_shape;
    bool is_upper = strcmp(auto_pad, "SAME_UPPER") == 0;
    MSC_TRY(msc_onnx__ints(&shape, &n_shape, n, "output_shape"));
    if (n_shape > 0) {
        // Some models give the whole output shape, including batch and channels.
        if (n_shape != w->n && n_shape != w->n + 2) {
            return MSC_FAIL(MSC_E_FORMAT, "output_shape has %d numbers, expected %d", n_shape,
                            w->n);
        }
        for (int i = 0; i < w->n; i++) {
            wanted[i] = shape[n_shape - w->n + i];
            if (wanted[i] < 1 || wanted[i] > INT32_MAX) {
                return MSC_FAIL(MSC_E_FORMAT, "output_shape has length %lld, expected 1 or more",
                                (long long)wanted[i]);
            }
        }
        return pads_from_shape(w, output_padding, wanted, is_upper);
    }
    if (is_upper || strcmp(auto_pad, "SAME_LOWER") == 0) {
        for (int i = 0; i < w->n; i++) {
            wanted[i] = w->in[i] < 0 ? -1 : w->in[i] * w->strides[i];
        }
        return pads_from_shape(w, output_padding, wanted, is_upper);
    }
    return apply_auto_pad(w, auto_pad);
}

enum msc_status msc_onnx__conv_transpose(struct msc_onnx_node *n) {
    static const char *const kernel_layouts[] = {"", "IOW", "IOHW", "IODHW"};
    static const enum msc_op ops[] = {MSC_OP_CONV2D_TRANSPOSE, MSC_OP_CONV1D_TRANSPOSE,
                                      MSC_OP_CONV2D_TRANSPOSE, MSC_OP_CONV3D_TRANSPOSE};
    struct windows w;
    const char *auto_pad;
    int64_t groups, output_padding[MAX_SPATIAL];
    MSC_TRY(read_windows(&w, n, &auto_pad));
    MSC_TRY(read_kernel(&w, n, 1));
    MSC_TRY(check_numbers(&w));
    MSC_TRY(msc_onnx__ints_of(output_padding, n, "output_padding", w.n, 0));
    MSC_TRY(transpose_pads(&w, output_padding, n, auto_pad));
    MSC_TRY(msc_onnx__int(&groups, n, "group", 1));
    MSC_TRY(set_windows(n, &w));
    msc_onnx__set_ints(n, "output_padding", output_padding, w.n);
    msc_onnx__set_int(n, "groups", groups);
    msc_onnx__set(n, "data_layout", data_layouts[w.n]);
    msc_onnx__set(n, "out_layout", data_layouts[w.n]);
    msc_onnx__set(n, "kernel_layout", kernel_layouts[w.n]);
    return msc_onnx__add_last(n, ops[w.n], n->inputs, n->n_inputs);
}

// The operator for a pool over `n` spatial axes.
static enum msc_op pool_op(const struct msc_onnx_node *node, int n) {
    static const enum msc_op max[] = {MSC_OP_MAX_POOL2D, MSC_OP_MAX_POOL1D, MSC_OP_MAX_POOL2D,
                                      MSC_OP_MAX_POOL3D};
    static const enum msc_op average[] = {MSC_OP_AVG_POOL2D, MSC_OP_AVG_POOL1D, MSC_OP_AVG_POOL2D,
                                          MSC_OP_AVG_POOL3D};
    bool has_indices = node->proto->n_output > 1 && node->proto->output[1][0] != '\0';
    switch (node->rule.op) {
    case MSC_OP_MAX_POOL2D:
        return has_indices ? MSC_OP_MAX_POOL_INDICES : max[n];
    case MSC_OP_AVG_POOL2D:
        return average[n];
    default:
        return node->rule.op;
    }
}

enum msc_status msc_onnx__pool(struct msc_onnx_node *n) {
    struct windows w;
    const char *auto_pad;
    MSC_TRY(read_windows(&w, n, &auto_pad));
    MSC_TRY(msc_onnx__ints_of(w.kernel, n, "kernel_shape", w.n, -1));
    MSC_TRY(apply_auto_pad(&w, auto_pad));
    enum msc_op op = pool_op(n, w.n);
    MSC_TRY(set_windows(n, &w));
    msc_onnx__set_ints(n, "pool_size", w.kernel, w.n);
    msc_onnx__set(n, "layout", data_layouts[w.n]);
    msc_onnx__set(n, "out_layout", data_layouts[w.n]);
    if (strcmp(auto_pad, "NOTSET") != 0) {
        // Automatic padding already determines the output length; rounding up would increase it.
        msc_onnx__set_bool(n, "ceil_mode", false);
    }
    MSC_TRY(msc_onnx__copy_attrs(n, op));
    return msc_onnx__add_some(n, op, n->inputs, 1, op == MSC_OP_MAX_POOL_INDICES ? 2 : 1);
}

enum msc_status msc_onnx__max_unpool(struct msc_onnx_node *n) {
    struct windows w;
    const char *auto_pad;
    MSC_TRY(read_windows(&w, n, &auto_pad));
    MSC_TRY(msc_onnx__ints_of(w.kernel, n, "kernel_shape", w.n, -1));
    MSC_TRY(check_numbers(&w));
    msc_onnx__set_ints(n, "kernel_shape", w.kernel, w.n);
    msc_onnx__set_ints(n, "strides", w.strides, w.n);
    msc_onnx__set_ints(n, "pads", w.pads, 2 * w.n);
    return msc_onnx__add_last(n, MSC_OP_MAX_UNPOOL, n->inputs, n->n_inputs);
}

enum msc_status msc_onnx__global_pool(struct msc_onnx_node *n) {
    struct msc_onnx_shape x = msc_onnx__shape(n, n->inputs[0]);
    if (x.n_dims >= 3 && x.n_dims <= 5) {
        msc_onnx__set(n, "layout", data_layouts[x.n_dims - 2]);
    }
    return msc_onnx__add_last(n, n->rule.op, n->inputs, 1);
}
