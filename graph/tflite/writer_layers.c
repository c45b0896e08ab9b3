// Convolutions, pooling, matrix products, resizing.
#include "graph/tflite/writer.h"

#include <math.h>
#include <string.h>

enum { IMAGE_DIMS = 4 };

// ---- Windows ----------------------------------------------------------------------------------

// A window over the two spatial axes: height, then width.
struct window {
    int64_t size[2], strides[2], dilation[2], before[2], after[2];
    enum msc_tflite_padding padding;
};

// Without the padding that no window reaches. Symbolic lengths keep the padding as it is.
static void trim_padding(struct window *v, const struct msc_tensor *x, const struct msc_tensor *y) {
    for (int i = 0; i < 2; i++) {
        int64_t in = x->dims[2 + i], out = y->dims[2 + i];
        if (in > 0 && out > 0) {
            int64_t reach = (out - 1) * v->strides[i] + (v->size[i] - 1) * v->dilation[i] + 1;
            int64_t after = reach - in - v->before[i];
            v->after[i] = after > 0 ? after : 0;
        }
    }
}

// True if TensorFlow's padding SAME pads as much.
static bool is_same(const struct window *v, const struct msc_tensor *x) {
    for (int i = 0; i < 2; i++) {
        int64_t in = x->dims[2 + i], extent = (v->size[i] - 1) * v->dilation[i] + 1;
        int64_t out = (in + v->strides[i] - 1) / v->strides[i];
        int64_t total = (out - 1) * v->strides[i] + extent - in;
        total = total > 0 ? total : 0;
        if (in < 1 || v->before[i] != total / 2 || v->after[i] != total - total / 2) {
            return false;
        }
    }
    return true;
}

static bool is_padded(const struct window *v) {
    return v->before[0] + v->before[1] + v->after[0] + v->after[1] > 0;
}

static enum msc_status read_window(struct window *v, const struct msc_tflite_writer *w,
                                   const struct msc_joint *j, const char *layout_key) {
    int64_t padding[4] = {0};
    const char *layout = msc_joint_attr(j, layout_key);
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    if (x->n_dims != IMAGE_DIMS || (layout != NULL && strcmp(layout, "NCHW") != 0)) {
        return msc_tflite__refuse(j, "its input is not of layout NCHW");
    }
    for (int i = 0; i < 2; i++) {
        v->strides[i] = v->dilation[i] = 1;
    }
    (void)msc_joint_attr_list(j, "strides", v->strides, 2);
    (void)msc_joint_attr_list(j, "dilation", v->dilation, 2);
    (void)msc_joint_attr_list(j, "padding", padding, 4);
    for (int i = 0; i < 2; i++) {
        v->before[i] = padding[i];
        v->after[i] = padding[2 + i];
    }
    trim_padding(v, x, msc_graph_tensor(w->g, j->outputs[0]));
    v->padding = is_padded(v) && is_same(v, x) ? MSC_TFLITE_SAME : MSC_TFLITE_VALID;
    return MSC_OK;
}

// Pads the NHWC image `x` unless the operator pads it itself. `is_lowest`: with the lowest number
// in place of 0.
static enum msc_status pad_image(int32_t *x, struct msc_tflite_writer *w, const struct window *v,
                                 bool is_lowest) {
    if (!is_padded(v) || v->padding == MSC_TFLITE_SAME) {
        return MSC_OK;
    }
    struct msc_tflite_tensor t = w->tensors[*x];
    struct msc_tflite_operator op = {.op = is_lowest ? MSC_TFLITE_PADV2 : MSC_TFLITE_PAD,
                                     .is_integer = t.quant != NULL,
                                     .n_inputs = is_lowest ? 3 : 2,
                                     .inputs = {*x}};
    const int64_t amounts[2 * IMAGE_DIMS] = {
        0, 0, v->before[0], v->after[0], v->before[1], v->after[1], 0, 0,
    };
    MSC_TRY(msc_tflite__pairs(&op.inputs[1], w, IMAGE_DIMS, amounts));
    if (is_lowest) {
        MSC_TRY(msc_tflite__scalar(&op.inputs[2], w, -INFINITY, t.quant));
    }
    for (int i = 0; i < 2; i++) {
        t.dims[1 + i] += t.dims[1 + i] < 0 ? 0 : v->before[i] + v->after[i];
    }
    return msc_tflite__emit_between(x, w, &op, "padded", IMAGE_DIMS, t.dims, t.quant);
}

// ---- Convolutions -----------------------------------------------------------------------------

enum msc_status msc_tflite__write_conv(struct msc_tflite_writer *w, const struct msc_joint *j) {
    static const int plain[] = {0, 2, 3, 1}, depthwise[] = {1, 2, 3, 0};
    struct window v = {0};
    int64_t groups = 1;
    MSC_TRY(read_window(&v, w, j, "data_layout"));
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    const struct msc_tensor *weight = msc_graph_tensor(w->g, j->operands[1]);
    const char *layout = msc_joint_attr(j, "kernel_layout");
    (void)msc_joint_attr_i64(j, "groups", &groups);
    if (weight->producer != MSC_NO_ID || (layout != NULL && strcmp(layout, "OIHW") != 0)) {
        return msc_tflite__refuse(j, "its weight is not a constant of layout OIHW");
    }
    for (int i = 0; i < 2; i++) {
        v.size[i] = weight->dims[2 + i];
    }
    MSC_TRY(read_window(&v, w, j, "data_layout"));
    bool is_depthwise = groups == x->dims[1] && weight->dims[1] == 1 && groups > 1;
    bool is_integer = msc_tflite__is_integer(w, j) && msc_tflite__is_int8_weight(w, j, 1);
    struct msc_tflite_operator op = {
        .op = is_depthwise ? MSC_TFLITE_DEPTHWISE_CONV_2D : MSC_TFLITE_CONV_2D, .n_inputs = 3};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], MSC_TFLITE_NHWC, is_integer));
    MSC_TRY(
        msc_tflite__weight(&op.inputs[1], w, j, 1, is_depthwise ? depthwise : plain, is_integer));
    MSC_TRY(msc_tflite__bias(&op.inputs[2], w, j, 2, weight->dims[0], op.inputs[0], op.inputs[1],
                             is_integer));
    MSC_TRY(pad_image(&op.inputs[0], w, &v, false));
    msc_tflite__byte(&op, 0, (int32_t)v.padding);
    msc_tflite__int(&op, 1, v.strides[1]);
    msc_tflite__int(&op, 2, v.strides[0]);
    if (is_depthwise) {
        msc_tflite__int(&op, 3, weight->dims[0] / groups);
    }
    msc_tflite__int(&op, is_depthwise ? 5 : 4, v.dilation[1]);
    msc_tflite__int(&op, is_depthwise ? 6 : 5, v.dilation[0]);
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){
                                .joint = j, .order = MSC_TFLITE_NHWC, .is_integer = is_integer});
}

// ---- Pooling ----------------------------------------------------------------------------------

enum msc_status msc_tflite__write_pool(struct msc_tflite_writer *w, const struct msc_joint *j) {
    struct window v = {0};
    bool is_max = j->op == MSC_OP_MAX_POOL2D, is_counted = false, is_ceil = false;
    (void)msc_joint_attr_list(j, "pool_size", v.size, 2);
    (void)msc_joint_attr_bool(j, "count_include_pad", &is_counted);
    (void)msc_joint_attr_bool(j, "ceil_mode", &is_ceil);
    MSC_TRY(read_window(&v, w, j, "layout"));
    if (v.dilation[0] != 1 || v.dilation[1] != 1) {
        return msc_tflite__refuse(j, "its window is dilated");
    }
    if (!is_max && is_padded(&v)) {
        bool is_own = v.padding == MSC_TFLITE_SAME && !is_counted;
        if (!is_own && (!is_counted || is_ceil)) {
            return msc_tflite__refuse(j, "its mean leaves out a padding other than SAME");
        }
        v.padding = is_own ? MSC_TFLITE_SAME : MSC_TFLITE_VALID;
    }
    bool is_integer = msc_tflite__is_moved_integer(w, j);
    struct msc_tflite_operator op = {
        .op = is_max ? MSC_TFLITE_MAX_POOL_2D : MSC_TFLITE_AVERAGE_POOL_2D, .n_inputs = 1};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], MSC_TFLITE_NHWC, is_integer));
    MSC_TRY(pad_image(&op.inputs[0], w, &v, is_max));
    msc_tflite__byte(&op, 0, (int32_t)v.padding);
    msc_tflite__int(&op, 1, v.strides[1]);
    msc_tflite__int(&op, 2, v.strides[0]);
    msc_tflite__int(&op, 3, v.size[1]);
    msc_tflite__int(&op, 4, v.size[0]);
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){
                                .joint = j, .order = MSC_TFLITE_NHWC, .is_integer = is_integer});
}

// The axes of a reduction; all of them if the list is empty. Returns their number.
static int read_axes(int64_t axes[], const struct msc_joint *j, const struct msc_tensor *x) {
    if (j->op == MSC_OP_GLOBAL_AVG_POOL) {
        for (int i = 2; i < x->n_dims; i++) {
            axes[i - 2] = i;
        }
        return x->n_dims - 2;
    }
    int n = msc_joint_attr_list(j, "axis", axes, MSC_MAX_DIMS);
    for (int i = 0; n <= 0 && i < x->n_dims; i++) {
        axes[i] = i;
    }
    return n > 0 ? n : x->n_dims;
}

enum msc_status msc_tflite__write_mean(struct msc_tflite_writer *w, const struct msc_joint *j) {
    int64_t axes[MSC_MAX_DIMS];
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    bool keeps = j->op == MSC_OP_GLOBAL_AVG_POOL, is_reduced[MSC_MAX_DIMS] = {false};
    (void)msc_joint_attr_bool(j, "keepdims", &keeps);
    if (!msc_tflite__has_one_operand(j)) {
        return msc_tflite__refuse(j, "its axes are not constant");
    }
    int n = read_axes(axes, j, x);
    for (int i = 0; i < n; i++) {
        is_reduced[msc_tflite__axis(x, axes[i], MSC_TFLITE_PLAIN)] = true;
    }
    // Without the reduced axes, NHWC has the graph's order if the channels or both H and W are
    // gone.
    enum msc_tflite_order order = msc_tflite__order(w, j->operands[0]);
    bool is_in_order = keeps || is_reduced[1] || (is_reduced[2] && is_reduced[3]);
    order = is_in_order ? order : MSC_TFLITE_PLAIN;
    bool is_integer = msc_tflite__is_integer(w, j);
    struct msc_tflite_operator op = {.op = MSC_TFLITE_MEAN, .n_inputs = 2};
    for (int i = 0; i < n; i++) {
        axes[i] = msc_tflite__axis(x, axes[i], order);
    }
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], order, is_integer));
    MSC_TRY(msc_tflite__integers(&op.inputs[1], w, n, axes));
    msc_tflite__byte(&op, 0, keeps);
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){.joint = j,
                                                        .order = keeps ? order : MSC_TFLITE_PLAIN,
                                                        .is_integer = is_integer});
}

// ---- Matrix products --------------------------------------------------------------------------

enum msc_status msc_tflite__write_linear(struct msc_tflite_writer *w, const struct msc_joint *j) {
    static const int as_is[] = {0, 1}, turned[] = {1, 0};
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    const struct msc_tensor *weight = msc_graph_tensor(w->g, j->operands[1]);
    int out_axis = msc_tensor_axis(weight, 'O');
    if (weight->producer != MSC_NO_ID || weight->n_dims != 2 || out_axis < 0 || x->n_dims < 2) {
        return msc_tflite__refuse(j, "its weight is not a constant of layout OI or IO");
    }
    bool is_integer = msc_tflite__is_integer(w, j) && msc_tflite__is_int8_weight(w, j, 1);
    struct msc_tflite_operator op = {.op = MSC_TFLITE_FULLY_CONNECTED, .n_inputs = 3};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], MSC_TFLITE_PLAIN, is_integer));
    MSC_TRY(msc_tflite__weight(&op.inputs[1], w, j, 1, out_axis == 0 ? as_is : turned, is_integer));
    MSC_TRY(msc_tflite__bias(&op.inputs[2], w, j, 2, weight->dims[out_axis], op.inputs[0],
                             op.inputs[1], is_integer));
    msc_tflite__byte(&op, 1, 0);
    msc_tflite__byte(&op, 2, x->n_dims > 2); // keep_num_dims
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){.joint = j, .is_integer = is_integer});
}

enum msc_status msc_tflite__write_matmul(struct msc_tflite_writer *w, const struct msc_joint *j) {
    bool is_integer = msc_tflite__is_integer(w, j);
    struct msc_tflite_operator op = {.op = MSC_TFLITE_BATCH_MATMUL, .n_inputs = 2};
    for (int i = 0; i < 2; i++) {
        if (msc_graph_tensor(w->g, j->operands[i])->n_dims < 2) {
            return msc_tflite__refuse(j, "it multiplies a vector");
        }
        MSC_TRY(msc_tflite__want(&op.inputs[i], w, j->operands[i], MSC_TFLITE_PLAIN, is_integer));
    }
    msc_tflite__byte(&op, 0, 0);
    msc_tflite__byte(&op, 1, 0);
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){.joint = j, .is_integer = is_integer});
}

// ---- Resizing ---------------------------------------------------------------------------------

// TensorFlow Lite's two flags of a resize.
struct resize_mode {
    bool aligns_corners, has_half_pixels;
};

// Finds the mode whose kernel reads the same elements; false if there is none.
static bool find_mode(struct resize_mode *out, const struct msc_joint *j, bool is_nearest,
                      bool grows_by_whole) {
    const char *transform = msc_joint_attr(j, "coordinate_transformation_mode");
    const char *rounding = msc_joint_attr(j, "rounding_method");
    bool is_floor = rounding != NULL && strcmp(rounding, "floor") == 0;
    *out = (struct resize_mode){0};
    if (transform == NULL || strcmp(transform, "half_pixel") == 0 ||
        strcmp(transform, "pytorch_half_pixel") == 0) {
        out->has_half_pixels = true;
        return !is_nearest || (grows_by_whole && !is_floor);
    }
    if (strcmp(transform, "align_corners") == 0) {
        out->aligns_corners = true;
        return !is_nearest;
    }
    return strcmp(transform, "asymmetric") == 0 && (!is_nearest || (grows_by_whole && is_floor));
}

enum msc_status msc_tflite__write_resize(struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(w->g, j->operands[0]);
    const struct msc_tensor *y = msc_graph_tensor(w->g, j->outputs[0]);
    const char *method = msc_joint_attr(j, "method");
    bool is_nearest = method != NULL && strncmp(method, "nearest", strlen("nearest")) == 0;
    bool is_image = x->n_dims == IMAGE_DIMS && x->dims[1] == y->dims[1];
    for (int i = 2; is_image && i < IMAGE_DIMS; i++) {
        is_image = x->dims[i] > 0 && y->dims[i] > 0;
    }
    if (!is_image || (!is_nearest && method != NULL && strcmp(method, "linear") != 0)) {
        return msc_tflite__refuse(
            j, "it is not a nearest or linear resize of images with known height and width");
    }
    bool grows = y->dims[2] % x->dims[2] == 0 && y->dims[3] % x->dims[3] == 0;
    struct resize_mode mode;
    if (!find_mode(&mode, j, is_nearest, grows)) {
        return msc_tflite__refuse(j, "its coordinates are rounded in another way");
    }
    bool is_integer = msc_tflite__is_moved_integer(w, j);
    struct msc_tflite_operator op = {.op = is_nearest ? MSC_TFLITE_RESIZE_NEAREST_NEIGHBOR
                                                      : MSC_TFLITE_RESIZE_BILINEAR,
                                     .n_inputs = 2};
    MSC_TRY(msc_tflite__want(&op.inputs[0], w, j->operands[0], MSC_TFLITE_NHWC, is_integer));
    MSC_TRY(msc_tflite__integers(&op.inputs[1], w, 2, &y->dims[2]));
    msc_tflite__byte(&op, is_nearest ? 0 : 2, mode.aligns_corners);
    msc_tflite__byte(&op, is_nearest ? 1 : 3, mode.has_half_pixels);
    return msc_tflite__emit(w, &op,
                            &(struct msc_tflite_result){
                                .joint = j, .order = MSC_TFLITE_NHWC, .is_integer = is_integer});
}
