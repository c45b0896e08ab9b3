#include "graph/passes/constant_internal.h"

#include "data/array_codes.h"
#include "graph/graph_internal.h"
#include "graph/linear_quant.h"
#include "graph/passes/constant.h"
#include "graph/reference/reference.h"

// Limits of folding, so that a model does not grow too much. If an output has more elements than
// all operands together and more than the limit, it is computed at run time. The limit is lower for
// operators that repeat elements. There is no limit for an integer output that takes no more bytes
// than the operands, such as unpacked integers.
#define MAX_ELEMENTS (INT64_C(1) << 24)
#define MAX_REPEATED_ELEMENTS (INT64_C(1) << 20)
#define MAX_OPERANDS 64

bool msc_constant_is_folded(enum msc_op op) {
    enum msc_folding folding = msc_op_info(op)->folding;
    return folding == MSC_FOLDING_FOLDED || folding == MSC_FOLDING_GROWN;
}

static void constant_store(char *data, enum msc_dtype dtype, int64_t i, int64_t value) {
    switch (dtype) {
    case MSC_DTYPE_I64:
        ((int64_t *)(void *)data)[i] = value;
        break;
    case MSC_DTYPE_I32:
        ((int32_t *)(void *)data)[i] = (int32_t)value;
        break;
    case MSC_DTYPE_F32:
        ((float *)(void *)data)[i] = (float)value;
        break;
    default:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    }
}

static bool can_store(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_I64 || dtype == MSC_DTYPE_I32 || dtype == MSC_DTYPE_F32 ||
           dtype == MSC_DTYPE_BOOL;
}

// The elements that inference tracked, if all of them are numbers; else *out is unchanged.
static enum msc_status from_values(struct msc_array **out, const struct msc_graph_tensor *t) {
    int64_t n = msc_tensor_n_elements(&t->tensor);
    if (t->n_values < 0 || n != t->n_values || !can_store(t->tensor.dtype)) {
        return MSC_OK;
    }
    for (int32_t i = 0; i < t->n_values; i++) {
        if (t->values[i].prim != MSC_NO_ID) {
            return MSC_OK;
        }
    }
    MSC_TRY(msc_array_create(out, t->tensor.dtype, t->tensor.n_dims, t->tensor.dims));
    for (int64_t i = 0; i < n; i++) {
        constant_store(msc_array_data(*out), t->tensor.dtype, i, t->values[i].value);
    }
    return MSC_OK;
}

enum msc_status msc_constant_of(struct msc_array **out, const struct msc_graph *g, int32_t tensor) {
    int32_t weight = msc_graph_weight_of(g, tensor);
    *out = NULL;
    if (weight == MSC_NO_ID) {
        return from_values(out, g->tensors[tensor]);
    }
    const struct msc_tensor *t = &g->tensors[weight]->tensor;
    *out = t->data == NULL ? NULL : msc_array_retain(t->data);
    return MSC_OK;
}

static int64_t most_elements(enum msc_op op) {
    bool is_repeating = msc_op_info(op)->folding == MSC_FOLDING_GROWN;
    return is_repeating ? MAX_REPEATED_ELEMENTS : MAX_ELEMENTS;
}

static bool grows_too_far(enum msc_dtype dtype, int64_t n, const struct msc_joint *j,
                          struct msc_array *const operands[]) {
    size_t n_bytes = 0;
    int64_t n_read = 0;
    for (int32_t i = 0; i < j->n_operands; i++) {
        n_bytes += operands[i] == NULL ? 0 : msc_array_n_bytes(operands[i]);
        n_read += operands[i] == NULL ? 0 : msc_array_n_elements(operands[i]);
    }
    bool is_unpacked = !msc_dtype_is_float(dtype) && (size_t)n <= n_bytes / msc_dtype_bytes(dtype);
    return n > most_elements(j->op) && n > n_read && !is_unpacked;
}

// The state while a joint with constant operands is computed.
struct evaluation {
    const struct msc_graph *g;
    const struct msc_joint *j;
    struct msc_array **operands; // [n_operands], NULL if absent
    struct msc_array **out;      // [n_outputs]
    struct msc_view outputs[MAX_OPERANDS];
};

static enum msc_status make_output(void *payload, int output, int n_dims, const int64_t dims[]) {
    struct evaluation *e = payload;
    const struct msc_tensor *t = &e->g->tensors[e->j->outputs[output]]->tensor;
    int64_t n = 1;
    for (int i = 0; i < n_dims; i++) {
        n = dims[i] > 0 && n > INT64_MAX / dims[i] ? INT64_MAX : n * dims[i];
    }
    if (grows_too_far(t->dtype, n, e->j, e->operands)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "joint '%s': its %lld elements are too many to compute in advance",
                        e->j->name, (long long)n);
    }
    msc_array_release(e->out[output]);
    e->out[output] = NULL;
    MSC_TRY(msc_array_create(&e->out[output], t->dtype, n_dims, dims));
    e->outputs[output] = msc_view_of_array(e->out[output]);
    return MSC_OK;
}

// Creates the outputs whose lengths are known. Sets *is_late to true if there are other outputs,
// which the kernel must create, and *done to true if the kernel can run.
static enum msc_status create_outputs(bool *done, bool *is_late, struct evaluation *e) {
    const struct msc_joint *j = e->j;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = &e->g->tensors[j->outputs[i]]->tensor;
        int64_t n = msc_tensor_n_elements(t);
        *is_late = *is_late || n < 0;
        if (n < 0 ? !msc_op_has_trait(j->op, MSC_TRAIT_LATE)
                  : grows_too_far(t->dtype, n, j, e->operands)) {
            return MSC_OK;
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = &e->g->tensors[j->outputs[i]]->tensor;
        if (msc_tensor_n_elements(t) >= 0) {
            MSC_TRY(make_output(e, i, t->n_dims, t->dims));
        }
    }
    *done = true;
    return MSC_OK;
}

static void release_all(struct msc_array *arrays[], int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        msc_array_release(arrays[i]);
        arrays[i] = NULL;
    }
}

// Takes the outputs' elements from inference. Inference may know an output's elements even if the
// operands' elements are unknown: the output of shape_of, for example.
static enum msc_status from_inference(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        MSC_TRY(from_values(&out[i], g->tensors[j->outputs[i]]));
        if (out[i] == NULL) {
            return MSC_OK;
        }
    }
    *done = true;
    return MSC_OK;
}

// Runs the kernel of a joint. If the joint cannot be computed (division of an integer by 0), this
// is not an error here: the joint is kept, and the error is reported when the joint runs.
static enum msc_status run_kernel(bool *done, struct evaluation *e, bool is_late) {
    struct msc_view inputs[MAX_OPERANDS];
    for (int32_t i = 0; i < e->j->n_operands; i++) {
        inputs[i] = e->operands[i] == NULL ? (struct msc_view){.dtype = MSC_DTYPE_NONE}
                                           : msc_view_of_array(e->operands[i]);
    }
    const struct msc_reference_call call = {.graph = e->g,
                                            .joint = e->j,
                                            .n_operands = e->j->n_operands,
                                            .operands = inputs,
                                            .n_outputs = e->j->n_outputs,
                                            .outputs = e->outputs,
                                            .allocate = is_late ? make_output : NULL,
                                            .payload = e};
    enum msc_status status = msc_reference_find(e->j->op)(&call);
    *done = status == MSC_OK;
    for (int32_t i = 0; i < e->j->n_outputs; i++) {
        *done = *done && e->out[i] != NULL;
    }
    return status == MSC_E_NOMEM ? status : MSC_OK;
}

// Reads the elements of all operands. *is_constant is false if one is not constant. The caller
// releases `operands` [n_operands] in any case.
static enum msc_status take_operands(struct msc_array *operands[], bool *is_constant,
                                     const struct msc_graph *g, const struct msc_joint *j) {
    *is_constant = j->n_operands > 0 && j->n_operands <= MAX_OPERANDS;
    for (int32_t i = 0; *is_constant && i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(msc_constant_of(&operands[i], g, j->operands[i]));
            *is_constant = operands[i] != NULL;
        }
    }
    return MSC_OK;
}

// Stores in the result of a DequantizeLinear which codes it was computed from, if these are bytes
// or narrower integers without blocks.
static enum msc_status keep_codes(const struct evaluation *e) {
    const struct msc_array *x = e->operands[0], *scales = e->operands[1];
    const struct msc_array *zeros = e->j->n_operands > 2 ? e->operands[2] : NULL;
    struct msc_quant_format format;
    int64_t axis = 0, block = 0;
    bool is_byte = msc_array_dtype(x) == MSC_DTYPE_U8 || msc_array_dtype(x) == MSC_DTYPE_I8;
    msc_joint_attr_i64(e->j, "axis", &axis);
    msc_joint_attr_i64(e->j, "block_size", &block);
    msc_quant_format_init(&format, e->j, msc_array_dtype(x));
    if (format.narrow || !is_byte || block != 0 || msc_array_n_dims(scales) > 1 ||
        msc_array_dtype(scales) != MSC_DTYPE_F32 || msc_array_dtype(e->out[0]) != MSC_DTYPE_F32) {
        return MSC_OK;
    }
    struct msc_array_codes codes = {.low = INT32_MAX,
                                    .high = INT32_MIN,
                                    .axis = (int)(axis < 0 ? axis + msc_array_n_dims(x) : axis),
                                    .scales = scales,
                                    .zero_points = zeros};
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        int32_t code = (int32_t)msc_array_get_i64(x, i);
        codes.low = code < codes.low ? code : codes.low;
        codes.high = code > codes.high ? code : codes.high;
    }
    return msc_array_set_codes(e->out[0], &codes);
}

static enum msc_status constant_evaluate(struct msc_array *out[], bool *done,
                                         const struct msc_graph *g, const struct msc_joint *j,
                                         struct msc_array *operands[]) {
    struct evaluation e = {.g = g, .j = j, .operands = operands, .out = out};
    bool is_constant, is_late = false;
    MSC_TRY(take_operands(operands, &is_constant, g, j));
    if (is_constant) {
        MSC_TRY(create_outputs(done, &is_late, &e));
    }
    if (*done) {
        MSC_TRY(run_kernel(done, &e, is_late));
    }
    return *done && j->op == MSC_OP_DEQUANTIZE ? keep_codes(&e) : MSC_OK;
}

static bool is_deterministic(const struct msc_graph *g);

// True if the joint, including its bodies, gives the same result in every run.
static bool repeats(const struct msc_joint *j) {
    bool is_source = j->op == MSC_OP_INPUT || j->op == MSC_OP_CONSTANT;
    bool same = is_source || msc_op_info(j->op)->folding != MSC_FOLDING_KEPT;
    for (int32_t i = 0; same && i < j->n_graphs; i++) {
        same = is_deterministic(j->graphs[i]);
    }
    return same;
}

static bool is_deterministic(const struct msc_graph *g) {
    bool same = true;
    for (int32_t i = 0; same && i < g->n_joints; i++) {
        same = repeats(&g->joints[i]->joint);
    }
    return same;
}

// True if the joint dequantises a matrix of weights that has one scale for each block of elements.
// Such a matrix remains quantised. As floats it would take several times the memory, and the
// model's own integers could not be exported.
static bool is_stored_in_blocks(const struct msc_graph *g, const struct msc_joint *j) {
    int64_t block = 0;
    return j->op == MSC_OP_DEQUANTIZE && msc_joint_attr_i64(j, "block_size", &block) && block > 0 &&
           g->tensors[j->operands[0]]->tensor.n_dims == 2;
}

static enum msc_status evaluate(struct msc_array *out[], bool *done, const struct msc_graph *g,
                                const struct msc_joint *j, bool is_folded) {
    *done = false;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        out[i] = NULL;
    }
    bool is_source = j->op == MSC_OP_INPUT || j->op == MSC_OP_CONSTANT;
    enum msc_status status = MSC_OK;
    struct msc_array *operands[MAX_OPERANDS] = {NULL};
    is_folded = is_folded && !is_source && !is_stored_in_blocks(g, j);
    if (is_folded && j->n_outputs <= MAX_OPERANDS) {
        status = constant_evaluate(out, done, g, j, operands);
    }
    if (status == MSC_OK && !*done && !is_source) {
        release_all(out, j->n_outputs);
        status = from_inference(out, done, g, j);
    }
    if (status != MSC_OK || !*done) {
        release_all(out, j->n_outputs);
    }
    release_all(operands, MAX_OPERANDS);
    return status;
}

enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint) {
    const struct msc_joint *j = &g->joints[joint]->joint;
    return evaluate(out, done, g, j, msc_constant_is_folded(j->op));
}

enum msc_status msc_constant_evaluate_all(struct msc_array *out[], bool *done,
                                          const struct msc_graph *g, int32_t joint) {
    const struct msc_joint *j = &g->joints[joint]->joint;
    return evaluate(out, done, g, j, repeats(j));
}

// The number of elements of the joint's output, if the operands are constant and the output is too
// large to fold; else 0.
static enum msc_status n_unfolded(int64_t *out, const struct msc_graph *g,
                                  const struct msc_joint *j) {
    struct msc_array *operands[MAX_OPERANDS] = {NULL};
    const struct msc_tensor *t = &g->tensors[j->outputs[0]]->tensor;
    int64_t n = msc_tensor_n_elements(t);
    bool is_constant = false;
    *out = 0;
    if (j->op == MSC_OP_CONSTANT || !msc_dtype_is_float(t->dtype) || !repeats(j)) {
        return MSC_OK;
    }
    enum msc_status status = take_operands(operands, &is_constant, g, j);
    if (status == MSC_OK && is_constant && n >= 0 && grows_too_far(t->dtype, n, j, operands)) {
        *out = n;
    }
    release_all(operands, MAX_OPERANDS);
    return status;
}

enum msc_status msc_graph_tell_unfolded(const struct msc_graph *g, const char *path,
                                        const struct msc_log *log) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        int64_t n;
        MSC_TRY(n_unfolded(&n, g, j));
        if (n > 0) {
            msc_log(log, MSC_LOG_WARNING,
                    "%s: joint %s (%s) has constant operands, but its %lld elements exceed the "
                    "limit of %lld for computing them in advance, so they are not a weight and "
                    "remain float; store them in the model as an initialiser to compress them",
                    path, j->name, msc_op_info(j->op)->name, (long long)n,
                    (long long)most_elements(j->op));
        }
    }
    return MSC_OK;
}
