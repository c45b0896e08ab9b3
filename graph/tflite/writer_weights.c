// Weights and biases in TensorFlow Lite's order of axes.
#include "graph/tflite/writer.h"

#include <string.h>

enum { WEIGHT_BITS = 8 };

static const struct msc_edit *edit_of(const struct msc_tflite_writer *w, const struct msc_joint *j,
                                      int32_t operand) {
    int32_t slot = w->options->sites == NULL
                       ? MSC_NO_ID
                       : msc_sites_find_slot(w->options->sites, j->id, operand);
    return slot == MSC_NO_ID || w->options->slot_edits == NULL ? NULL
                                                               : w->options->slot_edits[slot];
}

static const struct msc_array *elements_of(const struct msc_tflite_writer *w,
                                           const struct msc_joint *j, int32_t operand) {
    return msc_graph_tensor(w->g, msc_graph_weight_of(w->g, j->operands[operand]))->data;
}

// The quantisation of a weight to int8; NULL if it has none.
static const struct msc_quant *int8_quant(const struct msc_tflite_writer *w,
                                          const struct msc_joint *j, int32_t operand) {
    const struct msc_quant *q = msc_edit_quant(edit_of(w, j, operand));
    bool fits = q != NULL && q->type == MSC_DTYPE_NONE && !q->is_dynamic &&
                q->bits <= WEIGHT_BITS && q->group_size == 0 && q->low >= INT8_MIN &&
                q->high <= INT8_MAX;
    for (int32_t i = 0; fits && i < q->n; i++) {
        fits = q->zero_points[i] == 0;
    }
    return fits ? q : NULL;
}

bool msc_tflite__is_int8_weight(const struct msc_tflite_writer *w, const struct msc_joint *j,
                                int32_t operand) {
    return int8_quant(w, j, operand) != NULL;
}

static enum msc_status set_quant(const struct msc_tflite_quant **out, struct msc_tflite_writer *w,
                                 const struct msc_quant *q, int n_dims, const int perm[]) {
    struct msc_tflite_quant *to = msc_arena_alloc(&w->arena, sizeof(*to));
    float *scales = msc_arena_array(&w->arena, (size_t)q->n, sizeof(scales[0]));
    int64_t *zero_points = msc_arena_array(&w->arena, (size_t)q->n, sizeof(zero_points[0]));
    MSC_TRY(MSC_ALLOCATED(to && scales && zero_points));
    memcpy(scales, q->scales, (size_t)q->n * sizeof(scales[0]));
    *to = (struct msc_tflite_quant){.n = q->n, .scales = scales, .zero_points = zero_points};
    for (int i = 0; i < n_dims; i++) {
        to->axis = perm[i] == q->axis ? i : to->axis;
    }
    *out = to;
    return MSC_OK;
}

// Quantises the elements to int8.
static enum msc_status make_int8(const void **out, struct msc_tflite_writer *w,
                                 const struct msc_array *elements, const struct msc_quant *q,
                                 const int perm[]) {
    struct msc_array *integers;
    MSC_TRY(msc_quantize_array(&integers, elements, q));
    const int32_t *from = msc_array_data(integers);
    size_t n = (size_t)msc_array_n_elements(integers);
    int8_t *bytes = msc_arena_array(&w->arena, n + 1, 1);
    enum msc_status status = MSC_ALLOCATED(bytes);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        bytes[i] = (int8_t)from[i];
    }
    if (status == MSC_OK) {
        status = msc_tflite__permute(out, w, bytes, 1, msc_array_n_dims(elements),
                                     msc_array_dims(elements), perm);
    }
    msc_array_release(integers);
    return status;
}

static enum msc_status add_dequantized(int32_t *x, struct msc_tflite_writer *w) {
    const struct msc_tflite_tensor t = w->tensors[*x];
    struct msc_tflite_operator op = {
        .op = MSC_TFLITE_DEQUANTIZE, .is_integer = true, .n_inputs = 1, .inputs = {*x}};
    return msc_tflite__emit_between(x, w, &op, t.name, t.n_dims, t.dims, NULL);
}

enum msc_status msc_tflite__weight(int32_t *out, struct msc_tflite_writer *w,
                                   const struct msc_joint *j, int32_t operand, const int perm[],
                                   bool is_integer) {
    const struct msc_edit *edit = edit_of(w, j, operand);
    const struct msc_array *data = elements_of(w, j, operand);
    const struct msc_quant *q = int8_quant(w, j, operand);
    struct msc_array *edited;
    if (data == NULL || msc_array_dtype(data) != MSC_DTYPE_F32) {
        return msc_tflite__refuse(j, "its weight is not of type float32");
    }
    struct msc_tflite_tensor t = {
        .name = msc_tensor_label(msc_graph_tensor(w->g, j->operands[operand])),
        .dtype = q != NULL ? MSC_DTYPE_I8 : MSC_DTYPE_F32,
        .n_dims = msc_array_n_dims(data),
        .n_bytes = (size_t)msc_array_n_elements(data) * (q != NULL ? 1 : sizeof(float))};
    for (int i = 0; i < t.n_dims; i++) {
        t.dims[i] = msc_array_dim(data, perm[i]);
    }
    if (q != NULL) {
        MSC_TRY(msc_edit_elements(&edited, data, edit));
        enum msc_status status = make_int8(&t.data, w, edited, q, perm);
        msc_array_release(edited);
        MSC_TRY(status);
        MSC_TRY(set_quant(&t.quant, w, q, t.n_dims, perm));
    } else {
        MSC_TRY(msc_edit_apply(&edited, data, edit));
        enum msc_status status =
            msc_tflite__permute(&t.data, w, msc_array_data(edited), sizeof(float), t.n_dims,
                                msc_array_dims(edited), perm);
        msc_array_release(edited);
        MSC_TRY(status);
    }
    MSC_TRY(msc_tflite__add(out, w, &t));
    return q != NULL && !is_integer ? add_dequantized(out, w) : MSC_OK;
}

// ---- Biases -----------------------------------------------------------------------------------

static enum msc_status round_bias(struct msc_tflite_tensor *t, struct msc_tflite_writer *w,
                                  const float bias[], int64_t n, int32_t input, int32_t weight) {
    const struct msc_tflite_quant *x = w->tensors[input].quant, *y = w->tensors[weight].quant;
    struct msc_tflite_quant *q = msc_arena_alloc(&w->arena, sizeof(*q));
    float *steps = msc_arena_array(&w->arena, (size_t)y->n, sizeof(steps[0]));
    int64_t *zero_points = msc_arena_array(&w->arena, (size_t)y->n, sizeof(zero_points[0]));
    int32_t *integers = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(integers[0]));
    MSC_TRY(MSC_ALLOCATED(q && steps && zero_points && integers));
    for (int32_t i = 0; i < y->n; i++) {
        steps[i] = x->scales[0] * y->scales[i];
    }
    for (int64_t i = 0; i < n; i++) {
        integers[i] = msc_bias_round(bias == NULL ? 0 : bias[i], steps[y->n > 1 ? i : 0]);
    }
    *q = (struct msc_tflite_quant){.n = y->n, .scales = steps, .zero_points = zero_points};
    t->quant = q;
    t->dtype = MSC_DTYPE_I32;
    t->data = integers;
    return MSC_OK;
}

enum msc_status msc_tflite__bias(int32_t *out, struct msc_tflite_writer *w,
                                 const struct msc_joint *j, int32_t operand, int64_t n,
                                 int32_t input, int32_t weight, bool is_integer) {
    struct msc_tflite_tensor t = {.name = "bias",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 1,
                                  .dims = {n},
                                  .n_bytes = (size_t)n * sizeof(float)};
    struct msc_array *edited = NULL;
    float *bias = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(bias[0]));
    MSC_TRY(MSC_ALLOCATED(bias));
    if (operand < j->n_operands && j->operands[operand] != MSC_NO_ID) {
        int32_t tensor = msc_graph_weight_of(w->g, j->operands[operand]);
        const struct msc_array *data = tensor == MSC_NO_ID ? NULL : elements_of(w, j, operand);
        if (data == NULL || msc_array_dtype(data) != MSC_DTYPE_F32 ||
            msc_array_n_elements(data) != n) {
            return msc_tflite__refuse(j, "its bias is not %lld constant floats", (long long)n);
        }
        const struct msc_edit *edit = edit_of(w, j, operand);
        MSC_TRY(is_integer ? msc_edit_elements(&edited, data, edit)
                           : msc_edit_apply(&edited, data, edit));
        memcpy(bias, msc_array_data(edited), t.n_bytes);
        msc_array_release(edited);
        t.name = msc_tensor_label(msc_graph_tensor(w->g, tensor));
    }
    t.data = bias;
    if (is_integer) {
        MSC_TRY(round_bias(&t, w, bias, n, input, weight));
    }
    return msc_tflite__add(out, w, &t);
}
