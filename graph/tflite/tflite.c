#include "graph/tflite/tflite.h"

#include "graph/passes/bind.h"
#include "graph/tflite/writer.h"

#include <string.h>

static const msc_tflite_write_fn writes[MSC_OP_COUNT] = {
    [MSC_OP_CONV2D] = msc_tflite__write_conv,
    [MSC_OP_CONV2D_BIAS] = msc_tflite__write_conv,
    [MSC_OP_LINEAR] = msc_tflite__write_linear,
    [MSC_OP_LINEAR_BIAS] = msc_tflite__write_linear,
    [MSC_OP_MATMUL] = msc_tflite__write_matmul,
    [MSC_OP_MAX_POOL2D] = msc_tflite__write_pool,
    [MSC_OP_AVG_POOL2D] = msc_tflite__write_pool,
    [MSC_OP_GLOBAL_AVG_POOL] = msc_tflite__write_mean,
    [MSC_OP_MEAN] = msc_tflite__write_mean,
    [MSC_OP_RESIZE] = msc_tflite__write_resize,
    [MSC_OP_SOFTMAX] = msc_tflite__write_softmax,
    [MSC_OP_SIGMOID] = msc_tflite__write_unary,
    [MSC_OP_TANH] = msc_tflite__write_unary,
    [MSC_OP_HARD_SWISH] = msc_tflite__write_unary,
    [MSC_OP_LEAKY_RELU] = msc_tflite__write_unary,
    [MSC_OP_GELU] = msc_tflite__write_unary,
    [MSC_OP_EXP] = msc_tflite__write_unary,
    [MSC_OP_LOG] = msc_tflite__write_unary,
    [MSC_OP_SQRT] = msc_tflite__write_unary,
    [MSC_OP_ABS] = msc_tflite__write_unary,
    [MSC_OP_NEGATIVE] = msc_tflite__write_unary,
    [MSC_OP_FLOOR] = msc_tflite__write_unary,
    [MSC_OP_CEIL] = msc_tflite__write_unary,
    [MSC_OP_HARD_SIGMOID] = msc_tflite__write_hard_sigmoid,
    [MSC_OP_BATCH_NORM] = msc_tflite__write_batch_norm,
    [MSC_OP_RELU] = msc_tflite__write_clip,
    [MSC_OP_CLIP] = msc_tflite__write_clip,
    [MSC_OP_ADD] = msc_tflite__write_binary,
    [MSC_OP_SUBTRACT] = msc_tflite__write_binary,
    [MSC_OP_MULTIPLY] = msc_tflite__write_binary,
    [MSC_OP_DIVIDE] = msc_tflite__write_binary,
    [MSC_OP_MAXIMUM] = msc_tflite__write_binary,
    [MSC_OP_MINIMUM] = msc_tflite__write_binary,
    [MSC_OP_CONCAT] = msc_tflite__write_concat,
    [MSC_OP_STRIDED_SLICE] = msc_tflite__write_slice,
    [MSC_OP_SPLIT] = msc_tflite__write_split,
    [MSC_OP_PAD] = msc_tflite__write_pad,
    [MSC_OP_RESHAPE] = msc_tflite__write_reshape,
    [MSC_OP_FLATTEN] = msc_tflite__write_reshape,
    [MSC_OP_SQUEEZE] = msc_tflite__write_reshape,
    [MSC_OP_EXPAND_DIMS] = msc_tflite__write_reshape,
    [MSC_OP_PERMUTE_DIMS] = msc_tflite__write_permute,
};

// ---- Quantisations ----------------------------------------------------------------------------

// Converts a quantisation of an activation to int8. An unsigned range is moved by 128; a symmetric
// one may lack the lowest integer.
static enum msc_status convert_quant(const struct msc_tflite_quant **out,
                                     struct msc_tflite_writer *w, const struct msc_quant *q,
                                     const char *tensor) {
    int32_t shift = q->low < 0 ? 0 : INT8_MIN, low = q->low + shift;
    bool is_byte = q->type == MSC_DTYPE_NONE && !q->is_dynamic && q->n == 1 &&
                   (low == INT8_MIN || low == -INT8_MAX) && q->high + shift == INT8_MAX;
    return is_byte ? msc_tflite__quant(out, w, q->scales[0], q->zero_points[0] + shift)
                   : MSC_FAIL(MSC_E_UNSUPPORTED,
                              "tensor %s is not quantised to 8 bits with one scale, as TensorFlow "
                              "Lite needs: search with target tflite, or write an .onnx file",
                              tensor);
}

// Finds the quantisation of each activation: with this target, all uses of a tensor have the same
// one.
static enum msc_status find_quants(struct msc_tflite_writer *w) {
    const struct msc_sites *sites = w->options->sites;
    for (int32_t i = 0; w->options->slot_edits != NULL && i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        const struct msc_edit *e = msc_edit_at_slot(w->options->slot_edits[i], slot);
        if (slot->kind != MSC_SITE_ACTIVATION || e == NULL) {
            continue;
        }
        const char *name = msc_tensor_label(msc_graph_tensor(w->g, slot->tensor));
        if (e->kind != MSC_EDIT_QUANTIZE) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "channels of tensor %s are masked, which a .tflite file cannot express",
                            name);
        }
        if (sites->scheme.target != msc_target_find("tflite")) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "tensors are quantised for another target than tflite: search with "
                            "target tflite, or write an .onnx file");
        }
        if (w->quants[slot->tensor] == NULL) {
            MSC_TRY(convert_quant(&w->quants[slot->tensor], w, &e->quant, name));
        }
    }
    return MSC_OK;
}

// ---- Joints -----------------------------------------------------------------------------------

// The result of an identity is its input, which may have a quantisation of its own.
static enum msc_status pass_on(struct msc_tflite_writer *w, const struct msc_joint *j) {
    int32_t x = j->operands[0], made;
    enum msc_tflite_order order = msc_tflite__order(w, x);
    MSC_TRY(msc_tflite__want(&made, w, x, order, false));
    return msc_tflite__store(w, j->outputs[0], order, made);
}

static enum msc_status write_joint(struct msc_tflite_writer *w, const struct msc_joint *j) {
    if (w->is_done[j->id] || j->op == MSC_OP_CONSTANT) {
        return MSC_OK;
    }
    if (writes[j->op] == NULL) {
        return msc_tflite__refuse(j, "the operator is not supported");
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        if (msc_graph_tensor(w->g, j->outputs[i])->dtype != MSC_DTYPE_F32) {
            return msc_tflite__refuse(j, "its result is not of type float32");
        }
    }
    return writes[j->op](w, j);
}

static enum msc_status write_inputs(struct msc_tflite_writer *w) {
    for (int32_t i = 0; i < msc_graph_n_inputs(w->g); i++) {
        int32_t input = msc_graph_input(w->g, i);
        const struct msc_tensor *x = msc_graph_tensor(w->g, input);
        struct msc_tflite_tensor t = {
            .name = msc_tensor_label(x), .dtype = x->dtype, .n_dims = x->n_dims};
        memcpy(t.dims, x->dims, sizeof(t.dims));
        MSC_TRY(msc_tflite__add(&w->ends[0][i], w, &t));
        MSC_TRY(msc_tflite__store(w, input, MSC_TFLITE_PLAIN, w->ends[0][i]));
    }
    return MSC_OK;
}

// True if the file's tensor is an input or an output before output i, or a constant.
static bool is_taken(const struct msc_tflite_writer *w, int32_t tensor, int32_t i) {
    bool is_taken = w->tensors[tensor].data != NULL;
    for (int32_t k = 0; k < msc_graph_n_inputs(w->g); k++) {
        is_taken |= w->ends[0][k] == tensor;
    }
    for (int32_t k = 0; k < i; k++) {
        is_taken |= w->ends[1][k] == tensor;
    }
    return is_taken;
}

// Each output is a tensor of its own, with the output's name; if it is none, it is copied.
static enum msc_status write_outputs(struct msc_tflite_writer *w) {
    for (int32_t i = 0; i < msc_graph_n_outputs(w->g); i++) {
        int32_t output = msc_graph_output(w->g, i), tensor;
        const struct msc_tensor *y = msc_graph_tensor(w->g, output);
        MSC_TRY(msc_tflite__want(&tensor, w, output, MSC_TFLITE_PLAIN, false));
        if (is_taken(w, tensor, i)) {
            struct msc_tflite_operator op = {
                .op = MSC_TFLITE_RESHAPE, .n_inputs = 2, .inputs = {tensor}};
            MSC_TRY(msc_tflite__integers(&op.inputs[1], w, y->n_dims, y->dims));
            MSC_TRY(msc_tflite__emit_between(&tensor, w, &op, "", y->n_dims, y->dims, NULL));
            w->tensors[tensor].dtype = y->dtype;
        }
        w->ends[1][i] = tensor;
        w->tensors[tensor].name = msc_tensor_label(y);
    }
    return MSC_OK;
}

static enum msc_status write_graph(struct msc_tflite_writer *w) {
    size_t n = (size_t)msc_graph_n_tensors(w->g) + 1;
    w->quants = msc_arena_array(&w->arena, n, sizeof(w->quants[0]));
    w->forms = msc_arena_array(&w->arena, n, sizeof(w->forms[0]));
    w->is_done = msc_arena_array(&w->arena, (size_t)msc_graph_n_joints(w->g) + 1, sizeof(bool));
    w->ends[0] = msc_arena_array(&w->arena, (size_t)msc_graph_n_inputs(w->g) + 1, sizeof(int32_t));
    w->ends[1] = msc_arena_array(&w->arena, (size_t)msc_graph_n_outputs(w->g) + 1, sizeof(int32_t));
    MSC_TRY(msc_arena_status(&w->arena));
    memset(w->forms, 0xff, n * sizeof(w->forms[0])); // MSC_NO_ID
    MSC_TRY(find_quants(w));
    MSC_TRY(write_inputs(w));
    for (int32_t i = 0; i < msc_graph_n_joints(w->g); i++) {
        const struct msc_joint *j = msc_graph_joint(w->g, i);
        if (j->op != MSC_OP_INPUT) {
            MSC_TRY(j->op == MSC_OP_IDENTITY ? pass_on(w, j) : write_joint(w, j));
        }
    }
    return write_outputs(w);
}

// `is_dry`: no file is written; `path` is only for messages.
static enum msc_status save(const struct msc_graph *g, const char *path,
                            const struct msc_onnx_export_options *options, bool is_dry) {
    struct msc_tflite_writer w = {.options = options};
    struct msc_graph *split = NULL;
    MSC_TRY(msc_graph_split(&split, g));
    w.g = split;
    enum msc_status status = write_graph(&w);
    if (status == MSC_OK && !is_dry) {
        status = msc_tflite__write(&w, path);
    }
    msc_free(w.tensors);
    msc_free(w.operators);
    msc_arena_finish(&w.arena);
    msc_graph_destroy(split);
    return status == MSC_OK ? MSC_OK : msc_status_prefix(status, "%s", path);
}

static const struct msc_onnx_export_options no_options = {0};

enum msc_status msc_tflite_save(const struct msc_graph *g, const char *path,
                                const struct msc_onnx_export_options *options) {
    return save(g, path, options == NULL ? &no_options : options, false);
}

enum msc_status msc_tflite_check(const struct msc_graph *g, const char *path) {
    return save(g, path, &no_options, true);
}
