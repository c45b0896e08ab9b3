// Infers the outputs of convolutions and pooling, whose windows slide over spatial axes.
#include "graph/infer/infer_internal.h"

#include <string.h>

#define MAX_SPATIAL 3

// The position of each letter in a layout attribute.
struct axes {
    int first, second;        // positions of the two letters that are not spatial
    int spatial[MAX_SPATIAL]; // positions of D, H, W, in this order
    int n_spatial;
};

static enum msc_status infer_conv_read_axes(struct axes *out, const struct msc_infer *call,
                                            const char *key, const char *pair, int n_spatial) {
    const char *layout = msc_infer__text(call, key);
    const char *first = strchr(layout, pair[0]);
    const char *second = strchr(layout, pair[1]);
    bool fits = first != NULL && second != NULL && strlen(layout) == (size_t)n_spatial + 2;
    out->n_spatial = 0;
    for (const char *letter = "DHW"; *letter != '\0'; letter++) {
        const char *at = strchr(layout, *letter);
        if (at != NULL && out->n_spatial < MAX_SPATIAL) {
            out->spatial[out->n_spatial++] = (int)(at - layout);
        }
    }
    if (!fits || out->n_spatial != n_spatial) {
        return msc_infer__fail(call, "attribute %s is '%s', expected %s and %d spatial letters",
                               key, layout, pair, n_spatial);
    }
    out->first = (int)(first - layout);
    out->second = (int)(second - layout);
    return MSC_OK;
}

static void infer_conv_set_layout(struct msc_infer_tensor *out, const char *layout) {
    size_t n = strlen(layout);
    if (n == (size_t)out->n_dims) {
        memcpy(out->layout, layout, n + 1);
    }
}

struct window {
    int64_t kernel, stride, dilation, begin, end;
};

static enum msc_status check_window(const struct msc_infer *call, const struct window *w) {
    if (w->kernel < 1 || w->stride < 1 || w->dilation < 1) {
        return msc_infer__fail(
            call,
            "window of %lld with stride %lld and dilation %lld, expected positive "
            "numbers",
            (long long)w->kernel, (long long)w->stride, (long long)w->dilation);
    }
    // Larger than in any real network, and small enough that the arithmetic below cannot overflow.
    const int64_t limit = INT64_C(1) << 31;
    if (w->kernel > limit || w->stride > limit || w->dilation > limit || w->begin > limit ||
        w->end > limit || w->begin < -limit || w->end < -limit) {
        return msc_infer__fail(call, "window, stride, dilation or padding is larger than 2^31");
    }
    return MSC_OK;
}

// Computes floor((in + padding - extent) / stride) + 1 as one division.
static enum msc_status window_output(struct msc_dim *out, const struct msc_infer *call,
                                     struct msc_dim in, const struct window *w, bool ceil_mode) {
    MSC_TRY(check_window(call, w));
    struct msc_graph *g = call->graph;
    int64_t extent = (w->kernel - 1) * w->dilation + 1;
    int64_t shift = w->begin + w->end - extent + w->stride + (ceil_mode ? w->stride - 1 : 0);
    struct msc_dim length;
    MSC_TRY(msc_dim_binary(&length, g, "Add", in, msc_infer__number(shift)));
    MSC_TRY(msc_dim_binary(out, g, "FloorDiv", length, msc_infer__number(w->stride)));
    if (ceil_mode) {
        // Each window must begin within the data or the padding before it.
        struct msc_dim most;
        MSC_TRY(msc_dim_binary(&most, g, "Add", in, msc_infer__number(w->begin)));
        MSC_TRY(msc_dim_binary(&most, g, "CeilDiv", most, msc_infer__number(w->stride)));
        MSC_TRY(msc_dim_binary(out, g, "Min", *out, most));
    }
    if (msc_infer__is_number(*out) && out->value < 1) {
        return msc_infer__fail(call, "a window of %lld does not fit in a length of %lld",
                               (long long)extent, (long long)in.value);
    }
    return MSC_OK;
}

static enum msc_status read_windows(struct window w[MAX_SPATIAL], const struct msc_infer *call,
                                    int n) {
    int64_t strides[MAX_SPATIAL], dilation[MAX_SPATIAL], padding[2 * MAX_SPATIAL];
    MSC_TRY(msc_infer__ints(strides, call, "strides", n));
    MSC_TRY(msc_infer__ints(dilation, call, "dilation", n));
    MSC_TRY(msc_infer__ints(padding, call, "padding", 2 * n));
    for (int i = 0; i < n; i++) {
        w[i] = (struct window){1, strides[i], dilation[i], padding[i], padding[n + i]};
    }
    return MSC_OK;
}

static enum msc_status check_channels(const struct msc_infer *call, struct msc_dim in,
                                      struct msc_dim per_group, struct msc_dim out,
                                      int64_t groups) {
    if (groups < 1 || (msc_infer__is_number(per_group) && per_group.value > INT32_MAX)) {
        return msc_infer__fail(call, "%lld groups, expected 1 or more", (long long)groups);
    }
    if (msc_infer__is_number(per_group) && groups <= INT32_MAX &&
        !msc_infer__agree(in, msc_infer__number(per_group.value * groups))) {
        return msc_infer__fail(call, "input has %lld channels, but the weight expects %lld",
                               (long long)in.value, (long long)(per_group.value * groups));
    }
    if (msc_infer__is_number(out) && out.value % groups != 0) {
        return msc_infer__fail(call, "%lld channels are not divisible into %lld groups",
                               (long long)out.value, (long long)groups);
    }
    return MSC_OK;
}

static enum msc_status check_bias(const struct msc_infer *call, int operand,
                                  struct msc_dim channels) {
    if (operand >= call->n_operands || call->operands[operand] == NULL) {
        return MSC_OK;
    }
    MSC_TRY(msc_infer__require_rank(call, operand, 1));
    struct msc_dim n = call->operands[operand]->dims[0];
    if (!msc_infer__agree(channels, n)) {
        return msc_infer__fail(call, "bias has %lld elements, expected %lld", (long long)n.value,
                               (long long)channels.value);
    }
    return MSC_OK;
}

struct conv {
    const struct msc_infer_tensor *x, *w;
    struct axes data, kernel, result;
    struct window windows[MAX_SPATIAL];
    int64_t groups;
    int n;
};

// Number of spatial axes of a convolution; 0 for other operators.
static int spatial_axes(enum msc_op op) {
    static const struct {
        enum msc_op op;
        int n;
    } rows[] = {
        {MSC_OP_CONV1D, 1},           {MSC_OP_CONV1D_BIAS, 1},      {MSC_OP_CONV2D, 2},
        {MSC_OP_CONV2D_BIAS, 2},      {MSC_OP_CONV3D, 3},           {MSC_OP_CONV3D_BIAS, 3},
        {MSC_OP_CONV1D_TRANSPOSE, 1}, {MSC_OP_CONV2D_TRANSPOSE, 2}, {MSC_OP_CONV3D_TRANSPOSE, 3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return rows[i].n;
        }
    }
    return 0;
}

static enum msc_status check_conv_types(const struct msc_infer *call) {
    enum msc_dtype x = call->operands[0]->dtype, w = call->operands[1]->dtype;
    if (x != w || !msc_dtype_is_float(x)) {
        return msc_infer__fail(call, "operands are %s and %s, expected floats of the same type",
                               msc_dtype_name(x), msc_dtype_name(w));
    }
    return MSC_OK;
}

static enum msc_status read_conv(struct conv *c, const struct msc_infer *call) {
    c->x = call->operands[0];
    c->w = call->operands[1];
    c->n = c->x->n_dims - 2;
    int n = spatial_axes(call->joint->op);
    n = n == 0 ? c->n : n;
    if (n < 1 || n > MAX_SPATIAL) {
        return msc_infer__fail(call, "has %d spatial axes, expected 1 to %d", n, MAX_SPATIAL);
    }
    c->n = n;
    MSC_TRY(msc_infer__require_rank(call, 0, n + 2));
    MSC_TRY(msc_infer__require_rank(call, 1, n + 2));
    MSC_TRY(infer_conv_read_axes(&c->data, call, "data_layout", "NC", n));
    MSC_TRY(infer_conv_read_axes(&c->kernel, call, "kernel_layout", "OI", n));
    const char *result = msc_infer__text(call, "out_layout");
    MSC_TRY(infer_conv_read_axes(&c->result, call, result[0] == '\0' ? "data_layout" : "out_layout",
                                 "NC", n));
    MSC_TRY(msc_infer__int(&c->groups, call, "groups"));
    MSC_TRY(read_windows(c->windows, call, n));
    for (int i = 0; i < n; i++) {
        struct msc_dim k = c->w->dims[c->kernel.spatial[i]];
        if (!msc_infer__is_number(k)) {
            return msc_infer__fail(
                call, "the window of the weight has a symbolic length, expected a number");
        }
        c->windows[i].kernel = k.value;
    }
    return MSC_OK;
}

static void finish_conv(const struct conv *c, const struct msc_infer *call,
                        struct msc_dim channels) {
    struct msc_infer_tensor *out = &call->outputs[0];
    out->dtype = c->x->dtype;
    out->n_dims = c->n + 2;
    out->dims[c->result.first] = c->x->dims[c->data.first];
    out->dims[c->result.second] = channels;
    const char *layout = msc_infer__text(call, "out_layout");
    infer_conv_set_layout(out, layout[0] == '\0' ? msc_infer__text(call, "data_layout") : layout);
}

static enum msc_status infer_conv(const struct msc_infer *call) {
    struct conv c;
    MSC_TRY(read_conv(&c, call));
    struct msc_dim channels = c.w->dims[c.kernel.first];
    MSC_TRY(check_channels(call, c.x->dims[c.data.second], c.w->dims[c.kernel.second], channels,
                           c.groups));
    for (int i = 0; i < c.n; i++) {
        MSC_TRY(window_output(&call->outputs[0].dims[c.result.spatial[i]], call,
                              c.x->dims[c.data.spatial[i]], &c.windows[i], false));
    }
    finish_conv(&c, call, channels);
    return MSC_OK;
}

enum msc_status msc_infer__conv(const struct msc_infer *call) {
    MSC_TRY(check_conv_types(call));
    MSC_TRY(infer_conv(call));
    struct axes result;
    const char *key = msc_infer__text(call, "out_layout")[0] == '\0' ? "data_layout" : "out_layout";
    MSC_TRY(infer_conv_read_axes(&result, call, key, "NC", call->outputs[0].n_dims - 2));
    return check_bias(call, 2, call->outputs[0].dims[result.second]);
}

// Infers a convolution from operand 0 and operand `weight`.
static enum msc_status infer_conv_of(const struct msc_infer *call, int weight,
                                     enum msc_dtype dtype) {
    const struct msc_infer_tensor *pair[2] = {call->operands[0], call->operands[weight]};
    struct msc_infer plain = *call;
    plain.operands = pair;
    plain.n_operands = 2;
    MSC_TRY(infer_conv(&plain));
    call->outputs[0].dtype = dtype;
    return MSC_OK;
}

enum msc_status msc_infer__conv_integer(const struct msc_infer *call) {
    MSC_TRY(infer_conv_of(call, 1, MSC_DTYPE_I32));
    MSC_TRY(msc_infer__require_count(call, 2, msc_infer__number(1)));
    return msc_infer__require_count(call, 3, call->operands[1]->dims[0]);
}

enum msc_status msc_infer__qlinear_conv(const struct msc_infer *call) {
    MSC_TRY(infer_conv_of(call, 3, call->operands[7]->dtype));
    for (int i = 1; i < 8; i++) {
        // the scale and zero point of the weight may be per channel, all others have one element
        if (i != 3) {
            MSC_TRY(msc_infer__require_count(
                call, i, i == 4 || i == 5 ? call->operands[3]->dims[0] : msc_infer__number(1)));
        }
    }
    return check_bias(call, 8, call->operands[3]->dims[0]);
}

// Computes stride * (in - 1) + extent - padding + output_padding.
static enum msc_status transposed_output(struct msc_dim *out, const struct msc_infer *call,
                                         struct msc_dim in, const struct window *w,
                                         int64_t output_padding) {
    MSC_TRY(check_window(call, w));
    if (output_padding < 0 || output_padding > (INT64_C(1) << 31)) {
        return msc_infer__fail(call, "output_padding is %lld, expected 0 to 2^31",
                               (long long)output_padding);
    }
    int64_t extent = (w->kernel - 1) * w->dilation + 1;
    int64_t shift = extent - w->begin - w->end + output_padding - w->stride;
    struct msc_dim length;
    MSC_TRY(msc_dim_binary(&length, call->graph, "Mul", in, msc_infer__number(w->stride)));
    MSC_TRY(msc_dim_binary(out, call->graph, "Add", length, msc_infer__number(shift)));
    if (msc_infer__is_number(*out) && out->value < 1) {
        return msc_infer__fail(call, "padding %lld leaves no elements of a length of %lld",
                               (long long)(w->begin + w->end), (long long)in.value);
    }
    return MSC_OK;
}

enum msc_status msc_infer__conv_transpose(const struct msc_infer *call) {
    struct conv c;
    int64_t output_padding[MAX_SPATIAL];
    MSC_TRY(check_conv_types(call));
    MSC_TRY(read_conv(&c, call));
    MSC_TRY(msc_infer__ints(output_padding, call, "output_padding", c.n));
    // The weight's O axis has the output channels of one group; its I axis has the input channels
    // of all groups.
    struct msc_dim inputs = c.w->dims[c.kernel.second];
    struct msc_dim channels;
    MSC_TRY(check_channels(call, c.x->dims[c.data.second], inputs, inputs, 1));
    if (c.groups < 1 || (msc_infer__is_number(inputs) && inputs.value % c.groups != 0)) {
        return msc_infer__fail(call, "%lld channels are not divisible into %lld groups",
                               (long long)inputs.value, (long long)c.groups);
    }
    MSC_TRY(msc_dim_binary(&channels, call->graph, "Mul", c.w->dims[c.kernel.first],
                           msc_infer__number(c.groups)));
    MSC_TRY(check_bias(call, 2, channels));
    for (int i = 0; i < c.n; i++) {
        MSC_TRY(transposed_output(&call->outputs[0].dims[c.result.spatial[i]], call,
                                  c.x->dims[c.data.spatial[i]], &c.windows[i], output_padding[i]));
    }
    finish_conv(&c, call, channels);
    return MSC_OK;
}

// Number of spatial axes of a pool, from the operator (avg_pool2d: 2) or else from the input.
static int pool_axes(const struct msc_infer *call) {
    switch (call->joint->op) {
    case MSC_OP_MAX_POOL1D:
    case MSC_OP_AVG_POOL1D:
        return 1;
    case MSC_OP_MAX_POOL2D:
    case MSC_OP_AVG_POOL2D:
        return 2;
    case MSC_OP_MAX_POOL3D:
    case MSC_OP_AVG_POOL3D:
        return 3;
    default:
        return call->operands[0]->n_dims - 2;
    }
}

enum msc_status msc_infer__pool(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct axes data, result;
    struct window windows[MAX_SPATIAL];
    int64_t sizes[MAX_SPATIAL];
    int n = pool_axes(call);
    if (n < 1 || n > MAX_SPATIAL) {
        return msc_infer__fail(call, "has %d spatial axes, expected 1 to %d", n, MAX_SPATIAL);
    }
    MSC_TRY(msc_infer__require_rank(call, 0, n + 2));
    MSC_TRY(infer_conv_read_axes(&data, call, "layout", "NC", n));
    const char *layout = msc_infer__text(call, "out_layout");
    const char *key = layout[0] == '\0' ? "layout" : "out_layout";
    MSC_TRY(infer_conv_read_axes(&result, call, key, "NC", n));
    MSC_TRY(msc_infer__ints(sizes, call, "pool_size", n));
    MSC_TRY(read_windows(windows, call, n));
    bool ceil_mode = msc_infer__bool(call, "ceil_mode");
    for (int i = 0; i < n; i++) {
        windows[i].kernel = sizes[i];
        MSC_TRY(window_output(&out->dims[result.spatial[i]], call, x->dims[data.spatial[i]],
                              &windows[i], ceil_mode));
    }
    out->dtype = x->dtype;
    out->n_dims = n + 2;
    out->dims[result.first] = x->dims[data.first];
    out->dims[result.second] = x->dims[data.second];
    infer_conv_set_layout(out, msc_infer__text(call, key));
    if (call->n_outputs > 1) {
        msc_infer__copy(&call->outputs[1], out);
        call->outputs[1].dtype = MSC_DTYPE_I64;
    }
    return MSC_OK;
}

enum msc_status msc_infer__global_pool(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    if (x->n_dims < 3) {
        return msc_infer__fail(call, "input has %d dimensions, expected 3 or more", x->n_dims);
    }
    // Without a layout of the input's rank, the order of axes is N, C, spatial axes.
    const char *layout = msc_infer__text(call, "layout");
    bool is_named = strlen(layout) == (size_t)x->n_dims;
    msc_infer__copy(out, x);
    for (int i = 0; i < x->n_dims; i++) {
        bool stays = is_named ? layout[i] == 'N' || layout[i] == 'C' : i < 2;
        if (!stays) {
            out->dims[i] = msc_infer__number(1);
        }
    }
    if (is_named) {
        infer_conv_set_layout(out, layout);
    }
    return MSC_OK;
}
