#include "graph/constant_internal.h"

#include "graph/graph_internal.h"

#include <string.h>

// Folding must not blow a model up: what a constant grows to by being repeated is left to run time
// beyond this many elements.
#define MAX_GROWN_ELEMENTS (INT64_C(1) << 20)

static const struct rule {
    msc_constant_function function;
    bool may_grow; // has more elements than its operands
} rules[MSC_OP_COUNT] = {
    [MSC_OP_IDENTITY] = {msc_constant__copy, false},
    [MSC_OP_RESHAPE] = {msc_constant__copy, false},
    [MSC_OP_FLATTEN] = {msc_constant__copy, false},
    [MSC_OP_EXPAND_DIMS] = {msc_constant__copy, false},
    [MSC_OP_SQUEEZE] = {msc_constant__copy, false},
    [MSC_OP_PERMUTE_DIMS] = {msc_constant__permute, false},
    [MSC_OP_CONCAT] = {msc_constant__concat, false},
    [MSC_OP_SPLIT] = {msc_constant__split, false},
    [MSC_OP_STRIDED_SLICE] = {msc_constant__slice, false},
    [MSC_OP_TAKE] = {msc_constant__take, true},
    [MSC_OP_BROADCAST_TO] = {msc_constant__broadcast_to, true},
    [MSC_OP_TILE] = {msc_constant__tile, true},
    [MSC_OP_QUANTIZE] = {msc_constant__quantize, false},
    [MSC_OP_DEQUANTIZE] = {msc_constant__dequantize, false},
    [MSC_OP_SQRT] = {msc_constant__unary, false},
    [MSC_OP_ABS] = {msc_constant__unary, false},
    [MSC_OP_NEGATIVE] = {msc_constant__unary, false},
    [MSC_OP_RECIPROCAL] = {msc_constant__unary, false},
    [MSC_OP_FLOOR] = {msc_constant__unary, false},
    [MSC_OP_CEIL] = {msc_constant__unary, false},
    [MSC_OP_ROUND] = {msc_constant__unary, false},
    [MSC_OP_ADD] = {msc_constant__binary, true},
    [MSC_OP_SUBTRACT] = {msc_constant__binary, true},
    [MSC_OP_MULTIPLY] = {msc_constant__binary, true},
    [MSC_OP_DIVIDE] = {msc_constant__binary, true},
    [MSC_OP_MOD] = {msc_constant__binary, true},
    [MSC_OP_FLOOR_MOD] = {msc_constant__binary, true},
    [MSC_OP_POWER] = {msc_constant__binary, true},
    [MSC_OP_MAXIMUM] = {msc_constant__binary, true},
    [MSC_OP_MINIMUM] = {msc_constant__binary, true},
    [MSC_OP_EQUAL] = {msc_constant__binary, true},
    [MSC_OP_GREATER] = {msc_constant__binary, true},
    [MSC_OP_LESS] = {msc_constant__binary, true},
    [MSC_OP_MAX] = {msc_constant__reduce, false},
    [MSC_OP_MIN] = {msc_constant__reduce, false},
    [MSC_OP_SUM] = {msc_constant__reduce, false},
    [MSC_OP_PROD] = {msc_constant__reduce, false},
    [MSC_OP_WHERE] = {msc_constant__where, true},
};

bool msc_constant_is_folded(enum msc_op op) {
    return rules[op].function != NULL || op == MSC_OP_CAST;
}

static void store(char *data, enum msc_dtype dtype, int64_t i, int64_t value) {
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
        store(msc_array_data(*out), t->tensor.dtype, i, t->values[i].value);
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

// A cast makes its own output; everything else fills one of the inferred type and shape.
static enum msc_status cast(struct msc_array *out[], bool *done, const struct msc_graph *g,
                            const struct msc_joint *j, const struct msc_array *operand) {
    const struct msc_tensor *t = &g->tensors[j->outputs[0]]->tensor;
    MSC_TRY(msc_array_convert(&out[0], operand, t->dtype));
    *done = true;
    return MSC_OK;
}

static enum msc_status create_outputs(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = &g->tensors[j->outputs[i]]->tensor;
        int64_t n = msc_tensor_n_elements(t);
        if (n < 0 || (rules[j->op].may_grow && n > MAX_GROWN_ELEMENTS)) {
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

static enum msc_status evaluate(struct msc_array *out[], bool *done, const struct msc_graph *g,
                                const struct msc_joint *j, struct msc_array *operands[]) {
    struct msc_constant_call call = {.graph = g, .joint = j, .outputs = out};
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(msc_constant_of(&operands[i], g, j->operands[i]));
            if (operands[i] == NULL) {
                return MSC_OK;
            }
        }
        call.operands[call.n_operands++] = operands[i];
    }
    if (j->op == MSC_OP_CAST) {
        return cast(out, done, g, j, operands[0]);
    }
    MSC_TRY(create_outputs(out, done, g, j));
    size_t n_bytes = 0;
    for (int32_t i = 0; *done && i < j->n_outputs; i++) {
        n_bytes += msc_array_n_bytes(out[i]);
    }
    *done = *done && (n_bytes == 0 || rules[j->op].function(&call));
    return MSC_OK;
}

enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint) {
    const struct msc_joint *j = &g->joints[joint]->joint;
    *done = false;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        out[i] = NULL;
    }
    enum msc_status status = MSC_OK;
    struct msc_array *operands[MSC_CONSTANT_MAX_OPERANDS] = {NULL};
    bool has_rule = (rules[j->op].function != NULL || j->op == MSC_OP_CAST) && j->n_operands > 0 &&
                    j->n_operands <= MSC_CONSTANT_MAX_OPERANDS;
    if (j->op != MSC_OP_CONSTANT && j->op != MSC_OP_INPUT) {
        status = from_inference(out, done, g, j);
    }
    if (status == MSC_OK && !*done && has_rule) {
        release_all(out, j->n_outputs);
        status = evaluate(out, done, g, j, operands);
    }
    if (status != MSC_OK || !*done) {
        release_all(out, j->n_outputs);
    }
    release_all(operands, MSC_CONSTANT_MAX_OPERANDS);
    return status;
}
