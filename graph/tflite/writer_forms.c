// The forms that a tensor of the graph has in the file, and the results of operators.
#include "graph/tflite/writer.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IMAGE_DIMS = 4, MESSAGE_BYTES = 256 };

const int msc_tflite__nhwc[] = {0, 2, 3, 1};
// Axis i of the graph is axis nchw_axes[i] of NHWC.
static const int nchw_axes[IMAGE_DIMS] = {0, 3, 1, 2};

enum msc_status msc_tflite__refuse(const struct msc_joint *j, const char *format, ...) {
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return MSC_FAIL(MSC_E_UNSUPPORTED,
                    "joint %s (%s) cannot be written for TensorFlow Lite: %s; write an .onnx file",
                    j->name, msc_op_info(j->op)->name, text);
}

enum msc_status msc_tflite__permute(const void **out, struct msc_tflite_writer *w, const void *data,
                                    size_t element_bytes, int n_dims, const int64_t dims[],
                                    const int perm[]) {
    int64_t n = msc_dims_product(n_dims, dims), strides[MSC_MAX_DIMS], at[MSC_MAX_DIMS] = {0};
    unsigned char *to = msc_arena_alloc(&w->arena, (size_t)n * element_bytes + 1);
    MSC_TRY(MSC_ALLOCATED(to));
    int64_t stride = 1;
    for (int i = n_dims; i-- > 0;) {
        strides[i] = stride;
        stride *= dims[i];
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t from = 0;
        for (int i = 0; i < n_dims; i++) {
            from += at[i] * strides[perm[i]];
        }
        memcpy(to + (size_t)k * element_bytes,
               (const unsigned char *)data + (size_t)from * element_bytes, element_bytes);
        for (int i = n_dims; i-- > 0;) {
            if (++at[i] < dims[perm[i]]) {
                break;
            }
            at[i] = 0;
        }
    }
    *out = to;
    return MSC_OK;
}

// ---- Forms ------------------------------------------------------------------------------------

static bool has_order(const struct msc_tflite_writer *w, int32_t tensor,
                      enum msc_tflite_order order) {
    return w->forms[tensor][order][0] != MSC_NO_ID || w->forms[tensor][order][1] != MSC_NO_ID;
}

enum msc_tflite_order msc_tflite__order(const struct msc_tflite_writer *w, int32_t tensor) {
    return has_order(w, tensor, MSC_TFLITE_NHWC) ? MSC_TFLITE_NHWC : MSC_TFLITE_PLAIN;
}

int msc_tflite__axis(const struct msc_tensor *t, int64_t axis, enum msc_tflite_order order) {
    axis += axis < 0 ? t->n_dims : 0;
    return order == MSC_TFLITE_NHWC ? nchw_axes[axis] : (int)axis;
}

bool msc_tflite__is_flat(const struct msc_tensor *t) {
    return t->n_dims == IMAGE_DIMS && (t->dims[1] == 1 || (t->dims[2] == 1 && t->dims[3] == 1));
}

static void order_dims(int64_t out[], const struct msc_tensor *t, enum msc_tflite_order order) {
    for (int i = 0; i < t->n_dims; i++) {
        out[i] = t->dims[order == MSC_TFLITE_NHWC ? msc_tflite__nhwc[i] : i];
    }
}

// The label of a tensor, for a form other than the model's own with a suffix.
static enum msc_status name_form(const char **out, struct msc_tflite_writer *w,
                                 const struct msc_tensor *t, enum msc_tflite_order order,
                                 bool is_integer) {
    *out = msc_arena_printf(&w->arena, "%s%s%s", msc_tensor_label(t),
                            order == MSC_TFLITE_NHWC ? ":nhwc" : "", is_integer ? ":int8" : "");
    return MSC_ALLOCATED(*out);
}

static enum msc_status add_form(int32_t *out, struct msc_tflite_writer *w, int32_t tensor,
                                enum msc_tflite_order order, bool is_integer) {
    const struct msc_tensor *t = msc_graph_tensor(w->g, tensor);
    struct msc_tflite_tensor f = {.dtype = is_integer ? MSC_DTYPE_I8 : t->dtype,
                                  .n_dims = t->n_dims,
                                  .quant = is_integer ? w->quants[tensor] : NULL};
    order_dims(f.dims, t, order);
    MSC_TRY(name_form(&f.name, w, t, order, is_integer));
    MSC_TRY(msc_tflite__add(out, w, &f));
    w->forms[tensor][order][is_integer] = *out;
    return MSC_OK;
}

static enum msc_status add_constant(int32_t *out, struct msc_tflite_writer *w, int32_t tensor,
                                    enum msc_tflite_order order) {
    const struct msc_tensor *t = msc_graph_tensor(w->g, tensor);
    const struct msc_array *data = msc_graph_tensor(w->g, msc_graph_weight_of(w->g, tensor))->data;
    if (data == NULL) {
        return MSC_FAIL(MSC_E_STATE, "weight %s has no elements", t->name);
    }
    MSC_TRY(add_form(out, w, tensor, order, false));
    struct msc_tflite_tensor *f = &w->tensors[*out];
    f->data = msc_array_data(data);
    f->n_bytes = msc_array_n_bytes(data);
    f->dtype = msc_array_dtype(data);
    return order == MSC_TFLITE_PLAIN
               ? MSC_OK
               : msc_tflite__permute(&w->tensors[*out].data, w, msc_array_data(data),
                                     msc_dtype_bytes(f->dtype), t->n_dims, t->dims,
                                     msc_tflite__nhwc);
}

static enum msc_status add_transpose(int32_t *out, struct msc_tflite_writer *w, int32_t tensor,
                                     enum msc_tflite_order order, bool is_integer) {
    struct msc_tflite_operator op = {
        .op = MSC_TFLITE_TRANSPOSE,
        .is_integer = is_integer,
        .n_inputs = 2,
        .inputs = {w->forms[tensor][order == MSC_TFLITE_PLAIN][is_integer]}};
    int64_t perm[IMAGE_DIMS];
    for (int i = 0; i < IMAGE_DIMS; i++) {
        perm[i] = (order == MSC_TFLITE_NHWC ? msc_tflite__nhwc : nchw_axes)[i];
    }
    MSC_TRY(msc_tflite__integers(&op.inputs[1], w, IMAGE_DIMS, perm));
    MSC_TRY(add_form(out, w, tensor, order, is_integer));
    op.output = *out;
    return msc_tflite__push(w, &op);
}

static enum msc_status add_dequantized(int32_t *out, struct msc_tflite_writer *w, int32_t tensor,
                                       enum msc_tflite_order order) {
    struct msc_tflite_operator op = {
        .op = MSC_TFLITE_DEQUANTIZE, .n_inputs = 1, .inputs = {w->forms[tensor][order][1]}};
    MSC_TRY(add_form(out, w, tensor, order, false));
    op.output = *out;
    return msc_tflite__push(w, &op);
}

enum msc_status msc_tflite__store(struct msc_tflite_writer *w, int32_t tensor,
                                  enum msc_tflite_order order, int32_t made) {
    struct msc_tflite_operator op = {.op = MSC_TFLITE_QUANTIZE, .n_inputs = 1, .inputs = {made}};
    if (w->quants[tensor] == NULL) {
        w->forms[tensor][order][0] = made;
        return MSC_OK;
    }
    MSC_TRY(add_form(&op.output, w, tensor, order, true));
    return msc_tflite__push(w, &op);
}

enum msc_status msc_tflite__want(int32_t *out, struct msc_tflite_writer *w, int32_t tensor,
                                 enum msc_tflite_order order, bool is_integer) {
    *out = w->forms[tensor][order][is_integer];
    if (*out != MSC_NO_ID) {
        return MSC_OK;
    }
    if (msc_graph_weight_of(w->g, tensor) != MSC_NO_ID) {
        return add_constant(out, w, tensor, order);
    }
    // Bytes are transposed in place of floats.
    bool is_stored_integer = w->quants[tensor] != NULL;
    assert(is_stored_integer || !is_integer);
    if (!has_order(w, tensor, order)) {
        MSC_TRY(add_transpose(out, w, tensor, order, is_stored_integer));
    }
    return is_stored_integer == is_integer ? MSC_OK : add_dequantized(out, w, tensor, order);
}

// ---- Results ----------------------------------------------------------------------------------

bool msc_tflite__has_one_operand(const struct msc_joint *j) {
    for (int32_t i = 1; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            return false;
        }
    }
    return true;
}

bool msc_tflite__bounds(const struct msc_joint *j, float *low, float *high) {
    *low = j->op == MSC_OP_RELU ? 0 : -INFINITY;
    *high = INFINITY;
    (void)msc_joint_attr_float(j, "min", low);
    (void)msc_joint_attr_float(j, "max", high);
    return msc_tflite__has_one_operand(j);
}

// Follows the clips after a tensor that are fused into its producer: to the first tensor that is
// quantised or has other consumers. Narrows the bounds. If `done` is not NULL, marks the clips.
static int32_t end_of_clips(const struct msc_tflite_writer *w, int32_t tensor, float *low,
                            float *high, bool done[]) {
    const int32_t *consumers;
    while (w->quants[tensor] == NULL && !msc_graph_is_output(w->g, tensor) &&
           msc_graph_consumers(w->g, tensor, &consumers) == 1) {
        const struct msc_joint *c = msc_graph_joint(w->g, consumers[0]);
        float min, max;
        bool is_clip = c->op == MSC_OP_RELU || c->op == MSC_OP_CLIP;
        if (!is_clip || !msc_tflite__bounds(c, &min, &max) || min > *high || max < *low) {
            break;
        }
        *low = min > *low ? min : *low;
        *high = max < *high ? max : *high;
        if (done != NULL) {
            done[c->id] = true;
        }
        tensor = c->outputs[0];
    }
    return tensor;
}

static bool is_same_quant(const struct msc_tflite_quant *a, const struct msc_tflite_quant *b) {
    return a == b || (a != NULL && b != NULL && a->scales[0] == b->scales[0] &&
                      a->zero_points[0] == b->zero_points[0]);
}

// The quantisation of an output, after the clips that are fused into the joint.
static const struct msc_tflite_quant *output_quant(const struct msc_tflite_writer *w,
                                                   int32_t output) {
    float low = -INFINITY, high = INFINITY;
    return w->quants[end_of_clips(w, output, &low, &high, NULL)];
}

// True for an operand that is neither absent nor a weight.
static bool is_activation(const struct msc_tflite_writer *w, int32_t operand) {
    return operand != MSC_NO_ID && msc_graph_tensor(w->g, operand)->producer != MSC_NO_ID;
}

bool msc_tflite__is_integer(const struct msc_tflite_writer *w, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (is_activation(w, j->operands[i]) && w->quants[j->operands[i]] == NULL) {
            return false;
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        if (output_quant(w, j->outputs[i]) == NULL) {
            return false;
        }
    }
    return true;
}

bool msc_tflite__is_moved_integer(const struct msc_tflite_writer *w, const struct msc_joint *j) {
    const struct msc_tflite_quant *q = w->quants[j->operands[0]];
    for (int32_t i = 1; i < j->n_operands; i++) {
        if (is_activation(w, j->operands[i]) && !is_same_quant(q, w->quants[j->operands[i]])) {
            return false;
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        if (!is_same_quant(q, output_quant(w, j->outputs[i]))) {
            return false;
        }
    }
    return q != NULL;
}

bool msc_tflite__activation(enum msc_tflite_activation *out, float low, float high) {
    static const struct {
        float low, high;
        enum msc_tflite_activation activation;
    } rows[] = {
        {-INFINITY, INFINITY, MSC_TFLITE_NO_ACTIVATION},
        {0, INFINITY, MSC_TFLITE_TO_RELU},
        {-1, 1, MSC_TFLITE_TO_RELU_N1_TO_1},
        {0, 6, MSC_TFLITE_TO_RELU6},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].low == low && rows[i].high == high) {
            *out = rows[i].activation;
            return true;
        }
    }
    return false;
}

enum msc_status msc_tflite__emit_between(int32_t *out, struct msc_tflite_writer *w,
                                         struct msc_tflite_operator *op, const char *name,
                                         int n_dims, const int64_t dims[],
                                         const struct msc_tflite_quant *quant) {
    struct msc_tflite_tensor t = {.name = name,
                                  .dtype = quant != NULL ? MSC_DTYPE_I8 : MSC_DTYPE_F32,
                                  .n_dims = n_dims,
                                  .quant = quant};
    memcpy(t.dims, dims, (size_t)n_dims * sizeof(dims[0]));
    MSC_TRY(msc_tflite__add(out, w, &t));
    op->output = *out;
    return msc_tflite__push(w, op);
}

static int8_t quantize(float x, const struct msc_tflite_quant *q) {
    return (int8_t)msc_quantize_value(x, q->scales[0], (int32_t)q->zero_points[0], INT8_MIN,
                                      INT8_MAX);
}

enum msc_status msc_tflite__scalar(int32_t *out, struct msc_tflite_writer *w, float value,
                                   const struct msc_tflite_quant *quant) {
    struct msc_tflite_tensor t = {.name = "number",
                                  .dtype = quant != NULL ? MSC_DTYPE_I8 : MSC_DTYPE_F32,
                                  .n_dims = 1,
                                  .dims = {1},
                                  .quant = quant};
    void *data = msc_arena_alloc(&w->arena, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(data));
    if (quant != NULL) {
        *(int8_t *)data = quantize(value, quant);
    } else {
        *(float *)data = value;
    }
    t.data = data;
    t.n_bytes = msc_dtype_bytes(t.dtype);
    return msc_tflite__add(out, w, &t);
}

static enum msc_status add_limit(int32_t *x, struct msc_tflite_writer *w, enum msc_tflite_op op,
                                 float limit) {
    struct msc_tflite_tensor t = w->tensors[*x];
    struct msc_tflite_operator o = {
        .op = op, .is_integer = t.quant != NULL, .n_inputs = 2, .inputs = {*x}};
    MSC_TRY(msc_tflite__scalar(&o.inputs[1], w, limit, t.quant));
    return msc_tflite__emit_between(x, w, &o, t.name, t.n_dims, t.dims, t.quant);
}

enum msc_status msc_tflite__clip(int32_t *x, struct msc_tflite_writer *w, float low, float high) {
    if (low > -INFINITY) {
        MSC_TRY(add_limit(x, w, MSC_TFLITE_MAXIMUM, low));
    }
    return high < INFINITY ? add_limit(x, w, MSC_TFLITE_MINIMUM, high) : MSC_OK;
}

// True if no int8 represents a number outside the bounds.
static bool is_within(const struct msc_tflite_quant *q, float low, float high) {
    return (float)(INT8_MIN - q->zero_points[0]) * q->scales[0] >= low &&
           (float)(INT8_MAX - q->zero_points[0]) * q->scales[0] <= high;
}

enum msc_status msc_tflite__emit(struct msc_tflite_writer *w, struct msc_tflite_operator *op,
                                 const struct msc_tflite_result *r) {
    float low = -INFINITY, high = INFINITY;
    int32_t tensor = end_of_clips(w, r->joint->outputs[r->output], &low, &high, w->is_done);
    const struct msc_tensor *t = msc_graph_tensor(w->g, tensor);
    const struct msc_tflite_quant *wanted = r->is_integer ? w->quants[tensor] : NULL;
    const struct msc_tflite_quant *quant = r->is_integer && r->own != NULL ? r->own : wanted;
    int32_t field = msc_tflite__info(op->op)->activation, made;
    enum msc_tflite_activation activation = MSC_TFLITE_NO_ACTIVATION;
    const char *name;
    int64_t dims[MSC_MAX_DIMS];
    op->is_integer = r->is_integer;
    if (wanted != NULL && is_within(wanted, low, high)) {
        low = -INFINITY;
        high = INFINITY;
    }
    bool is_fused = msc_tflite__activation(&activation, low, high) &&
                    (field >= 0 || activation == MSC_TFLITE_NO_ACTIVATION);
    if (field >= 0 && is_fused) {
        msc_tflite__byte(op, field, (int32_t)activation);
    }
    order_dims(dims, t, r->order);
    MSC_TRY(name_form(&name, w, t, r->order, r->is_integer));
    MSC_TRY(msc_tflite__emit_between(&made, w, op, name, t->n_dims, dims, quant));
    w->tensors[made].dtype = quant != NULL ? MSC_DTYPE_I8 : t->dtype;
    if (!is_fused) {
        MSC_TRY(msc_tflite__clip(&made, w, low, high));
    }
    if (!is_same_quant(quant, wanted)) {
        struct msc_tflite_operator requantize = {
            .op = MSC_TFLITE_QUANTIZE, .is_integer = true, .n_inputs = 1, .inputs = {made}};
        MSC_TRY(msc_tflite__emit_between(&made, w, &requantize, name, t->n_dims, dims, wanted));
    }
    if (!r->is_integer) {
        return msc_tflite__store(w, tensor, r->order, made);
    }
    w->forms[tensor][r->order][1] = made;
    return MSC_OK;
}
