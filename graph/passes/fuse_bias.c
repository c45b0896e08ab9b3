// Fuses a constant that is added to the output channels of a convolution or linear layer into the
// layer as its bias.
#include "graph/passes/fold_internal.h"
#include "graph/passes/fuse_internal.h"

static const char *const patterns[] = {
    "add(y:msc.linear(x, weight), $bias)",          "add(y:nn.conv1d(x, weight), $bias)",
    "add(y:nn.conv2d(x, weight), $bias)",           "add(y:nn.conv3d(x, weight), $bias)",
    "add(y:nn.conv2d_transpose(x, weight), $bias)",
};

static int fuse_bias_channel_axis(const struct msc_joint *layer, const struct msc_tensor *y) {
    return layer->op == MSC_OP_LINEAR ? y->n_dims - 1 : msc_tensor_axis(y, 'C');
}

// True if the constant has one element for each channel, and its other axes have length 1.
static bool is_by_channel(const struct msc_array *bias, const struct msc_tensor *y, int axis) {
    int n_dims = msc_array_n_dims(bias), at = axis - (y->n_dims - n_dims);
    return axis >= 0 && at >= 0 && n_dims <= y->n_dims && y->dims[axis] > 0 &&
           msc_array_dims(bias)[at] == y->dims[axis] && msc_array_n_elements(bias) == y->dims[axis];
}

// The weight that becomes the bias: the constant's own weight if it is 1-D, else a new one.
static enum msc_status make_bias(int32_t *out, struct msc_graph *g, const struct msc_joint *layer,
                                 int32_t constant) {
    int32_t weight;
    const struct msc_array *data = msc_match_constant(&weight, g, constant);
    if (msc_array_n_dims(data) == 1) {
        *out = weight;
        g->tensors[weight]->tensor.layout = "O";
        return MSC_OK;
    }
    struct msc_array *flat;
    int64_t n = msc_array_n_elements(data);
    MSC_TRY(msc_array_create_from(&flat, msc_array_dtype(data), 1, &n, msc_array_data(data)));
    enum msc_status status = msc_fold__add_bias(out, g, layer->name, flat);
    msc_array_release(flat);
    return status;
}

enum msc_status msc_fuse_bias(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    struct msc_graph *g = f->graph;
    if (!msc_fuse__find(&m, f, patterns, sizeof(patterns) / sizeof(patterns[0]), joint)) {
        return MSC_OK;
    }
    int32_t x = msc_match_tensor(&m, "x"), y = msc_match_tensor(&m, "y");
    int32_t weight = msc_match_tensor(&m, "weight"), constant = msc_match_tensor(&m, "bias"), bias;
    const struct msc_joint *layer = msc_match_joint(&m, "y");
    const struct msc_tensor *t = &g->tensors[y]->tensor;
    if (g->tensors[weight]->tensor.producer != MSC_NO_ID || !msc_fuse__same_shape(f, y, joint) ||
        !is_by_channel(msc_match_constant(&bias, g, constant), t,
                       fuse_bias_channel_axis(layer, t))) {
        return MSC_OK;
    }
    MSC_TRY(make_bias(&bias, g, layer, constant));
    struct msc_weight_spec weights[] = {{"weight", weight}, {"bias", bias}};
    struct msc_joint_spec spec = {
        .n_inputs = 1,
        .inputs = &x,
        .n_weights = 2,
        .weights = weights,
        .n_attrs = layer->n_attrs,
        .attrs = layer->attrs,
    };
    msc_fold__with_bias(&spec.op, layer->op);
    *done = true;
    return msc_fuse__replace(f, &m, layer->id, &spec);
}
