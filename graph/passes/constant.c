#include "graph/passes/constant_internal.h"

#include "graph/graph_internal.h"
#include "graph/reference/reference.h"

// Folding must not blow a model up: what constants grow to by being repeated is left to run time
// beyond this many elements; but integers in no more bytes than these, as of weights that are
// unpacked, have not grown.
#define MAX_GROWN_ELEMENTS (INT64_C(1) << 20)
#define MAX_OPERANDS 64

// All but the operators that the table folds run when the network does, so that sites and steps are
// found where the model has them.
bool msc_constant_is_folded(enum msc_op op) {
    return msc_op_info(op)->folding != MSC_FOLDING_KEPT;
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

// From the contents that inference followed, when all of them are numbers.
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

static bool grows_too_far(const struct msc_tensor *out, const struct msc_joint *j,
                          struct msc_array *const operands[]) {
    int64_t n = msc_tensor_n_elements(out);
    size_t n_bytes = 0;
    for (int32_t i = 0; i < j->n_operands; i++) {
        n_bytes += operands[i] == NULL ? 0 : msc_array_n_bytes(operands[i]);
    }
    bool is_grown =
        msc_dtype_is_float(out->dtype) || (size_t)n > n_bytes / msc_dtype_bytes(out->dtype);
    return msc_op_info(j->op)->folding == MSC_FOLDING_GROWN && n > MAX_GROWN_ELEMENTS && is_grown;
}

static enum msc_status create_outputs(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, const struct msc_joint *j,
                                      struct msc_array *const operands[]) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = &g->tensors[j->outputs[i]]->tensor;
        if (msc_tensor_n_elements(t) < 0 || grows_too_far(t, j, operands)) {
            return MSC_OK;
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = &g->tensors[j->outputs[i]]->tensor;
        MSC_TRY(msc_array_create(&out[i], t->dtype, t->n_dims, t->dims));
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

// Contents known without looking at operands: a shape, say.
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

// What cannot be computed (an integer divided by 0) stays, for running it to say why.
static enum msc_status run_kernel(bool *done, struct msc_array *out[], const struct msc_graph *g,
                                  const struct msc_joint *j, struct msc_array *const operands[]) {
    struct msc_view inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
    for (int32_t i = 0; i < j->n_operands; i++) {
        inputs[i] = operands[i] == NULL ? (struct msc_view){.dtype = MSC_DTYPE_NONE}
                                        : msc_view_of_array(operands[i]);
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        outputs[i] = msc_view_of_array(out[i]);
    }
    const struct msc_reference_call call = {.graph = g,
                                            .joint = j,
                                            .n_operands = j->n_operands,
                                            .operands = inputs,
                                            .n_outputs = j->n_outputs,
                                            .outputs = outputs};
    enum msc_status status = msc_reference_find(j->op)(&call);
    *done = status == MSC_OK;
    return status == MSC_E_NOMEM ? status : MSC_OK;
}

static enum msc_status constant_evaluate(struct msc_array *out[], bool *done,
                                         const struct msc_graph *g, const struct msc_joint *j,
                                         struct msc_array *operands[]) {
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(msc_constant_of(&operands[i], g, j->operands[i]));
            if (operands[i] == NULL) {
                return MSC_OK;
            }
        }
    }
    MSC_TRY(create_outputs(out, done, g, j, operands));
    return *done ? run_kernel(done, out, g, j, operands) : MSC_OK;
}

enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint) {
    const struct msc_joint *j = &g->joints[joint]->joint;
    *done = false;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        out[i] = NULL;
    }
    enum msc_status status = MSC_OK;
    struct msc_array *operands[MAX_OPERANDS] = {NULL};
    if (msc_constant_is_folded(j->op) && j->n_operands > 0 && j->n_operands <= MAX_OPERANDS &&
        j->n_outputs <= MAX_OPERANDS) {
        status = constant_evaluate(out, done, g, j, operands);
    }
    if (status == MSC_OK && !*done && j->op != MSC_OP_CONSTANT && j->op != MSC_OP_INPUT) {
        release_all(out, j->n_outputs);
        status = from_inference(out, done, g, j);
    }
    if (status != MSC_OK || !*done) {
        release_all(out, j->n_outputs);
    }
    release_all(operands, MAX_OPERANDS);
    return status;
}
