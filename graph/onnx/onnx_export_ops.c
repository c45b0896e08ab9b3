// Writers of operators whose inputs or attributes in opset 21 differ from their row in ops.def.
// Each writer has a row in the table below. msc_onnx__write_direct writes all other operators.
#include "base/str.h"
#include "graph/onnx/onnx_export_form.h"
#include "graph/onnx/onnx_export_internal.h"
#include "graph/op_attrs.h"

#include <stdlib.h>
#include <string.h>

static enum msc_status unsupported(const struct msc_onnx_joint *j, const char *key) {
    const char *value = msc_joint_attr(j->joint, key);
    return MSC_FAIL(MSC_E_UNSUPPORTED, "ONNX has no equivalent of %s with %s '%s'",
                    msc_op_info(j->joint->op)->name, key, value == NULL ? "" : value);
}

// Writes all operands, then the attributes with these keys, in this order.
static enum msc_status write_with(struct msc_onnx_joint *j, const char *keys) {
    MSC_TRY(msc_onnx__add_own(j, j->inputs, j->n_inputs));
    return msc_onnx__put_attrs(j, keys);
}

static enum msc_status write_identity(struct msc_onnx_joint *j) {
    bool is_repeated = j->e->names[j->joint->outputs[0]] == j->inputs[0];
    return is_repeated ? MSC_OK : msc_onnx__write_direct(j);
}

static bool is_layout(const struct msc_onnx_joint *j, const char *key, const char *usual) {
    const char *layout = msc_joint_attr(j->joint, key);
    return layout == NULL || layout[0] == '\0' || strcmp(layout, usual) == 0;
}

static enum msc_status check_layouts(const struct msc_onnx_joint *j, const char *data,
                                     const char *kernel) {
    const char *const keys[] = {"data_layout", "layout", "out_layout", "kernel_layout"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!is_layout(j, keys[i], i == 3 ? kernel : data)) {
            return unsupported(j, keys[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status write_conv(struct msc_onnx_joint *j) {
    static const char *const data[] = {"NCW", "NCHW", "NCDHW"};
    static const char *const kernels[] = {"OIW", "OIHW", "OIDHW"};
    static const char *const transposed[] = {"IOW", "IOHW", "IODHW"};
    int weight = j->joint->op == MSC_OP_QLINEAR_CONV ? 3 : 1;
    const struct msc_tensor *w = msc_graph_tensor(j->e->graph, j->joint->operands[weight]);
    int n = w->n_dims - 2;
    bool is_transposed = msc_op_is_conv_transpose(j->joint->op);
    MSC_TRY(check_layouts(j, data[n - 1], is_transposed ? transposed[n - 1] : kernels[n - 1]));
    MSC_TRY(write_with(j, "strides padding dilation groups output_padding"));
    return msc_onnx__put_ints(j->e, j->node, "kernel_shape", w->dims + 2, (size_t)n);
}

// True if the pool has dilations. ONNX Runtime fuses a pool between pairs into an average of bytes,
// which ignores dilations.
static bool is_dilated(const struct msc_onnx_joint *j) {
    int64_t dilations[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(j->joint, "dilation", dilations, MSC_MAX_DIMS);
    for (int i = 0; i < n && i < MSC_MAX_DIMS; i++) {
        if (dilations[i] != 1) {
            return true;
        }
    }
    return false;
}

static enum msc_status write_pool(struct msc_onnx_joint *j) {
    static const char *const layouts[] = {"NCW", "NCHW", "NCDHW"};
    int rank = msc_graph_tensor(j->e->graph, j->joint->operands[0])->n_dims;
    MSC_TRY(check_layouts(j, rank >= 3 && rank <= 5 ? layouts[rank - 3] : "", ""));
    MSC_TRY(write_with(j, "strides padding ceil_mode pool_size count_include_pad p "
                          "storage_order"));
    return is_dilated(j) ? msc_onnx__put_attrs(j, "dilation") : MSC_OK;
}

static enum msc_status write_global_pool(struct msc_onnx_joint *j) {
    static const char *const layouts[] = {"NCW", "NCHW", "NCDHW"};
    int rank = msc_graph_tensor(j->e->graph, j->joint->operands[0])->n_dims;
    const char *layout = msc_joint_attr(j->joint, "layout");
    bool fits = layout == NULL || strlen(layout) != (size_t)rank ||
                (rank >= 3 && rank <= 5 && strcmp(layout, layouts[rank - 3]) == 0);
    return fits ? msc_onnx__write_direct(j) : unsupported(j, "layout");
}

static enum msc_status new_value(const char **out, struct msc_onnx_joint *j, const char *what) {
    const char *wanted = msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, what);
    *out = wanted == NULL ? NULL : msc_onnx__free_name(j->e, &j->e->value_names, wanted);
    return MSC_ALLOCATED(*out);
}

// Adds a node with one output before the joint's own node.
static enum msc_status onnx_export_ops_add_step(const char **out, Onnx__NodeProto **node,
                                                struct msc_onnx_joint *j, const char *op_type,
                                                const char *what, const char *const inputs[],
                                                size_t n_inputs) {
    const char *name = msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, what);
    MSC_TRY(new_value(out, j, what));
    MSC_TRY(MSC_ALLOCATED(name));
    return msc_onnx__add_node(node, j->e, op_type, name, inputs, n_inputs, out, 1);
}

// MatMul for any number of dimensions; a weight [O,I] is transposed first.
static enum msc_status write_product(struct msc_onnx_joint *j, bool is_oi) {
    struct msc_onnx_export *e = j->e;
    const char *inputs[2] = {j->inputs[0], j->inputs[1]};
    const char *output = e->names[j->joint->outputs[0]];
    bool has_bias = j->joint->op == MSC_OP_LINEAR_BIAS;
    Onnx__NodeProto *node;
    if (is_oi) {
        static const int64_t swapped[] = {1, 0};
        const char *turned;
        MSC_TRY(onnx_export_ops_add_step(&turned, &node, j, "Transpose", "weight", &inputs[1], 1));
        MSC_TRY(msc_onnx__put_ints(e, node, "perm", swapped, 2));
        inputs[1] = turned;
    }
    if (!has_bias) {
        return msc_onnx__add_node(&j->node, e, "MatMul", j->joint->name, inputs, 2, &output, 1);
    }
    // When the file is read, the layer takes the name of its product.
    const char *product, *sum = msc_arena_printf(&e->arena, "%s.sum", j->joint->name);
    MSC_TRY(new_value(&product, j, "product"));
    MSC_TRY(MSC_ALLOCATED(sum));
    MSC_TRY(msc_onnx__add_node(&node, e, "MatMul", j->joint->name, inputs, 2, &product, 1));
    const char *operands[2] = {product, j->inputs[2]};
    return msc_onnx__add_node(&j->node, e, "Add", sum, operands, 2, &output, 1);
}

static enum msc_status write_linear(struct msc_onnx_joint *j) {
    const struct msc_graph *g = j->e->graph;
    int rank = msc_graph_tensor(g, j->joint->operands[0])->n_dims;
    bool is_oi = strcmp(msc_graph_tensor(g, j->joint->operands[1])->layout, "IO") != 0 &&
                 !msc_onnx__is_turned(j->e, j->joint);
    if (rank != 2 || (!is_oi && j->joint->op == MSC_OP_LINEAR)) {
        return write_product(j, is_oi);
    }
    const char *output = j->e->names[j->joint->outputs[0]];
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, "Gemm", j->joint->name, j->inputs,
                               (size_t)j->joint->n_operands, &output, 1));
    return is_oi ? msc_onnx__put_int(j->e, j->node, "transB", 1) : MSC_OK;
}

static enum msc_status write_pad(struct msc_onnx_joint *j) {
    const char *inputs[4] = {j->inputs[0], "", "", ""};
    const char *mode = msc_joint_attr(j->joint, "pad_mode");
    MSC_TRY(msc_onnx__list_input(&inputs[1], j, "pad_width"));
    if (mode != NULL && strcmp(mode, "constant") == 0) {
        MSC_TRY(msc_onnx__real_input(&inputs[2], j, "pad_value"));
    }
    MSC_TRY(msc_onnx__list_input(&inputs[3], j, "axes"));
    MSC_TRY(msc_onnx__add_own(j, inputs, 4));
    return msc_onnx__put_attrs(j, "pad_mode");
}

// Lengths of the parts are the lengths of the outputs. If these are symbolic, only equal parts can
// be written.
static enum msc_status write_split(struct msc_onnx_joint *j) {
    const char *inputs[2] = {j->inputs[0], ""};
    int64_t axis, n = j->joint->n_outputs;
    bool is_known = true;
    inputs[1] = j->joint->n_operands > 1 ? j->inputs[1] : "";
    int64_t *sizes = msc_arena_array(&j->e->arena, (size_t)n, sizeof(sizes[0]));
    if (sizes == NULL || !msc_joint_attr_i64(j->joint, "axis", &axis)) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    for (int64_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(j->e->graph, j->joint->outputs[i]);
        sizes[i] = t->dims[axis < 0 ? axis + t->n_dims : axis];
        is_known = is_known && sizes[i] >= 0;
    }
    const char *text = msc_joint_attr(j->joint, "indices_or_sections");
    bool is_given = inputs[1][0] != '\0';
    if (!is_given && is_known) {
        MSC_TRY(msc_onnx__int64s(&inputs[1], j, "split", sizes, (size_t)n));
    } else if (!is_given && strchr(text, ',') != NULL) {
        return unsupported(j, "indices_or_sections");
    }
    MSC_TRY(msc_onnx__add_own(j, inputs, 2));
    MSC_TRY(msc_onnx__put_attrs(j, "axis"));
    return inputs[1][0] != '\0' ? MSC_OK : msc_onnx__put_int(j->e, j->node, "num_outputs", n);
}

static enum msc_status write_quantize(struct msc_onnx_joint *j) {
    const char *format = msc_joint_attr(j->joint, "format");
    if (format != NULL && format[0] != '\0' && !msc_onnx__has_codes(j)) {
        return unsupported(j, "format"); // the graph holds encoded bytes, not elements of the type
    }
    MSC_TRY(write_with(j, "axis block_size"));
    enum msc_dtype dtype = msc_graph_tensor(j->e->graph, j->joint->outputs[0])->dtype;
    bool has_zero_point = j->joint->n_operands > 2 && j->joint->operands[2] != MSC_NO_ID;
    return has_zero_point || j->joint->op == MSC_OP_DEQUANTIZE
               ? MSC_OK
               : msc_onnx__put_int(j->e, j->node, "output_dtype", msc_onnx_type(dtype));
}

static enum msc_status write_layer_norm(struct msc_onnx_joint *j) {
    int64_t axes[MSC_MAX_DIMS];
    if (msc_joint_attr_list(j->joint, "axes", axes, MSC_MAX_DIMS) < 1) {
        return unsupported(j, "axes");
    }
    MSC_TRY(msc_onnx__write_direct(j));
    return msc_onnx__put_int(j->e, j->node, "axis", axes[0]);
}

// Expands *value from one number per group to one per channel.
static enum msc_status spread_groups(const char **value, struct msc_onnx_joint *j, const char *what,
                                     int64_t n_groups, int64_t n_channels) {
    const int64_t columns[] = {1}, pairs[] = {n_groups, n_channels / n_groups}, flat[] = {-1};
    static const char *const steps[] = {"Unsqueeze", "Expand", "Reshape"};
    const int64_t *const lists[] = {columns, pairs, flat};
    for (int i = 0; i < 3; i++) {
        const char *inputs[2] = {*value};
        Onnx__NodeProto *node;
        MSC_TRY(msc_onnx__int64s(&inputs[1], j, what, lists[i], i == 1 ? 2 : 1));
        MSC_TRY(onnx_export_ops_add_step(value, &node, j, steps[i], what, inputs, 2));
    }
    return MSC_OK;
}

// Opsets 18 to 20 have one scale and bias per group; these are expanded to channels.
static enum msc_status write_group_norm(struct msc_onnx_joint *j) {
    static const char *const whats[] = {"", "scale", "bias"};
    const struct msc_graph *g = j->e->graph;
    const struct msc_tensor *x = msc_graph_tensor(g, j->joint->operands[0]);
    int64_t n_groups;
    if (!msc_joint_attr_i64(j->joint, "num_groups", &n_groups)) {
        return unsupported(j, "num_groups");
    }
    for (int i = 1; i < 3; i++) {
        int64_t length = msc_graph_tensor(g, j->joint->operands[i])->dims[0];
        if (length != n_groups || length == x->dims[1]) {
            continue;
        }
        if (x->dims[1] < 0) {
            return MSC_FAIL(MSC_E_UNSUPPORTED, "scale and bias are per group, but the number of "
                                               "channels is unknown; bind it");
        }
        MSC_TRY(spread_groups(&j->inputs[i], j, whats[i], n_groups, x->dims[1]));
    }
    return msc_onnx__write_direct(j);
}

// Uses the names of modes that opset 20 introduced.
static enum msc_status write_grid_sample(struct msc_onnx_joint *j) {
    static const char *const newer[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};
    const char *mode = msc_joint_attr(j->joint, "mode");
    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
        mode = strcmp(mode, newer[i][0]) == 0 ? newer[i][1] : mode;
    }
    MSC_TRY(write_with(j, "align_corners"));
    MSC_TRY(msc_onnx__put_text(j->e, j->node, "mode", mode));
    return msc_onnx__put_attrs(j, "padding_mode");
}

// Writes random numbers of a constant shape. A computed shape cannot be written, because the graph
// does not have the input that the shape was computed from.
static enum msc_status write_random(struct msc_onnx_joint *j) {
    int64_t shape[MSC_MAX_DIMS];
    const char *distribution = msc_joint_attr(j->joint, "distribution");
    bool is_normal = distribution != NULL && strcmp(distribution, "normal") == 0;
    int n = msc_joint_attr_list(j->joint, "shape", shape, MSC_MAX_DIMS);
    float first, second;
    if (n < 0 || !msc_joint_attr_float(j->joint, "first", &first) ||
        !msc_joint_attr_float(j->joint, "second", &second)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "random numbers need a constant shape, but the shape is computed");
    }
    const char *output = j->e->names[j->joint->outputs[0]];
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, is_normal ? "RandomNormal" : "RandomUniform",
                               j->joint->name, NULL, 0, &output, 1));
    MSC_TRY(msc_onnx__put_ints(j->e, j->node, "shape", shape, (size_t)n));
    MSC_TRY(msc_onnx__put_attrs(j, "dtype"));
    MSC_TRY(msc_onnx__put_float(j->e, j->node, is_normal ? "mean" : "low", first));
    MSC_TRY(msc_onnx__put_float(j->e, j->node, is_normal ? "scale" : "high", second));
    return msc_onnx__put_attrs(j, "seed");
}

static const msc_onnx_writer writers[MSC_OP_COUNT] = {
    [MSC_OP_CONV1D] = write_conv,
    [MSC_OP_CONV2D] = write_conv,
    [MSC_OP_CONV3D] = write_conv,
    [MSC_OP_CONV1D_BIAS] = write_conv,
    [MSC_OP_CONV2D_BIAS] = write_conv,
    [MSC_OP_CONV3D_BIAS] = write_conv,
    [MSC_OP_CONV2D_TRANSPOSE] = write_conv,
    [MSC_OP_CONV1D_TRANSPOSE] = write_conv,
    [MSC_OP_CONV3D_TRANSPOSE] = write_conv,
    [MSC_OP_CONV_INTEGER] = write_conv,
    [MSC_OP_QLINEAR_CONV] = write_conv,
    [MSC_OP_LINEAR] = write_linear,
    [MSC_OP_LINEAR_BIAS] = write_linear,
    [MSC_OP_MAX_POOL2D] = write_pool,
    [MSC_OP_AVG_POOL2D] = write_pool,
    [MSC_OP_MAX_POOL1D] = write_pool,
    [MSC_OP_AVG_POOL1D] = write_pool,
    [MSC_OP_MAX_POOL3D] = write_pool,
    [MSC_OP_AVG_POOL3D] = write_pool,
    [MSC_OP_MAX_POOL_INDICES] = write_pool,
    [MSC_OP_LP_POOL] = write_pool,
    [MSC_OP_GLOBAL_AVG_POOL] = write_global_pool,
    [MSC_OP_GLOBAL_MAX_POOL] = write_global_pool,
    [MSC_OP_RESIZE] = msc_onnx__write_resize,
    [MSC_OP_RESIZE_ANTIALIAS] = msc_onnx__write_resize,
    [MSC_OP_GELU] = msc_onnx__write_gelu,
    [MSC_OP_GRID_SAMPLE] = write_grid_sample,
    [MSC_OP_GROUP_NORM] = write_group_norm,
    [MSC_OP_LAYER_NORM] = write_layer_norm,
    [MSC_OP_IDENTITY] = write_identity,
    [MSC_OP_MOD] = msc_onnx__write_implied,
    [MSC_OP_LEFT_SHIFT] = msc_onnx__write_implied,
    [MSC_OP_RIGHT_SHIFT] = msc_onnx__write_implied,
    [MSC_OP_SPLIT] = write_split,
    [MSC_OP_PAD] = write_pad,
    [MSC_OP_QUANTIZE] = write_quantize,
    [MSC_OP_DEQUANTIZE] = write_quantize,
    [MSC_OP_TRIL] = msc_onnx__write_implied,
    [MSC_OP_RANDOM] = write_random,
    [MSC_OP_EXTERNAL] = msc_onnx__write_external,
    [MSC_OP_IF] = msc_onnx__write_if,
    [MSC_OP_LOOP] = msc_onnx__write_loop,
    [MSC_OP_SCAN] = msc_onnx__write_scan,
};

msc_onnx_writer msc_onnx__find_writer(enum msc_op op) {
    bool has_form = msc_op_info(op)->onnx[0] != '\0';
    return writers[op] != NULL || !has_form ? writers[op] : msc_onnx__write_direct;
}
