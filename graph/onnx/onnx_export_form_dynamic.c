// Writes activations that are quantised dynamically (graph/quant.h), and the products of such an
// activation with a matrix of bytes:
//
//     q, s_x, z_x = DynamicQuantizeLinear(x)
//     y = Cast(MatMulInteger(q, w, z_x, z_w)) * (s_x * s_w) + bias
//
// ONNX Runtime 1.32 fuses these nodes into one DynamicQuantizeMatMul or, if several products read
// the activation, into one MatMulIntegerToFloat for each. Both compute the same bits as
// kernels/backend.h describes for integer arithmetic. Other joints read the activation through a
// DequantizeLinear.
#include "graph/onnx/onnx_export_form.h"

#include <string.h>

enum { DATA, WEIGHT, BIAS };

static bool is_dynamic(const struct msc_edit *edit) {
    const struct msc_quant *q = msc_edit_quant(edit);
    return q != NULL && q->is_dynamic;
}

// Targets without forms store integers of up to 4 bits in types that MatMulInteger does not read.
static bool is_stored_as_byte(const struct msc_onnx_export *e, const struct msc_edit *edit) {
    return msc_onnx__is_byte(edit) && (msc_onnx__has_forms(e) || edit->quant.bits > 4);
}

bool msc_onnx__is_dynamic_product(const struct msc_onnx_export *e, const struct msc_joint *j) {
    bool is_linear = j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS;
    if (e->options->slot_edits == NULL || !is_linear ||
        !is_dynamic(msc_onnx__edit_at(e, j->id, DATA))) {
        return false;
    }
    const struct msc_edit *weight = msc_onnx__edit_at(e, j->id, WEIGHT);
    int32_t tensor = msc_graph_weight_of(e->graph, j->operands[WEIGHT]);
    return is_stored_as_byte(e, weight) && tensor != MSC_NO_ID &&
           (weight->quant.n == 1 ||
            weight->quant.axis == msc_tensor_axis(msc_graph_tensor(e->graph, tensor), 'O'));
}

enum msc_status msc_onnx__quantize_dynamically(const char **value, struct msc_onnx_export *e,
                                               int32_t tensor) {
    static const char *const whats[] = {"quantized", "scale", "zero_point"};
    const char *base = e->names[tensor], *input = *value, *parts[3];
    const char *wanted = msc_arena_printf(&e->arena, "%s_quantized", base);
    Onnx__NodeProto *node;
    for (int i = 0; i < 3; i++) {
        const char *name = msc_arena_printf(&e->arena, "%s_%s", base, whats[i]);
        parts[i] = name == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, name);
        MSC_TRY(MSC_ALLOCATED(parts[i]));
    }
    MSC_TRY(MSC_ALLOCATED(wanted));
    MSC_TRY(msc_onnx__add_node(&node, e, "DynamicQuantizeLinear", wanted, &input, 1, parts, 3));
    return msc_onnx__add_step(value, e, "DequantizeLinear",
                              msc_arena_printf(&e->arena, "%s_dequantized", base), parts, 3);
}

static enum msc_status add_part(const char **out, struct msc_onnx_joint *j, const char *op_type,
                                const char *what, const char *const inputs[], size_t n) {
    return msc_onnx__add_step(out, j->e, op_type,
                              msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, what), inputs,
                              n);
}

// The integers, scale and zero point ("" if there is none) of an operand that is written through a
// DequantizeLinear. False: it is not.
static enum msc_status find_parts(bool *is_found, const char *parts[3], struct msc_onnx_joint *j,
                                  int32_t operand) {
    const char *value;
    MSC_TRY(msc_onnx__operand(&value, j->e, j->joint, operand));
    const Onnx__NodeProto *pair = msc_onnx__pair_of(j->e, value);
    *is_found = pair != NULL;
    for (size_t i = 0; *is_found && i < 3; i++) {
        parts[i] = i < pair->n_input ? pair->input[i] : "";
    }
    return MSC_OK;
}

// A weight is stored as in the model; the runtime transposes integers at load.
static enum msc_status turn_weight(const char **integers, struct msc_onnx_joint *j) {
    static const int64_t swapped[] = {1, 0};
    int32_t weight = msc_graph_weight_of(j->e->graph, j->joint->operands[WEIGHT]);
    if (strcmp(msc_graph_tensor(j->e->graph, weight)->layout, "IO") == 0) {
        return MSC_OK;
    }
    const char *input = *integers;
    MSC_TRY(add_part(integers, j, "Transpose", "weight", &input, 1));
    return msc_onnx__put_ints(j->e, j->e->nodes[j->e->n_nodes - 1], "perm", swapped, 2);
}

// Adds the node that writes the joint's output.
static enum msc_status add_last(struct msc_onnx_joint *j, const char *op_type, const char *name,
                                const char *const inputs[2]) {
    const char *output = j->e->names[j->joint->outputs[0]];
    return msc_onnx__add_node(&j->node, j->e, op_type, name, inputs, 2, &output, 1);
}

// True if the weight is stored with zero points of 0, which MatMulInteger takes if there are none.
static bool is_symmetric(const struct msc_onnx_export *e, const struct msc_joint *j) {
    const struct msc_target *target = e->options->sites->scheme.target;
    const struct msc_quant *q = &msc_onnx__byte_edit(e, j->id, WEIGHT)->quant;
    for (int32_t c = 0; c < q->n; c++) {
        if (q->zero_points[c] != 0) {
            return false;
        }
    }
    return q->low < 0 && (target == NULL || !target->stores_unsigned || q->bits != 8);
}

static enum msc_status write_product(struct msc_onnx_joint *j, const char *const x[3],
                                     const char *const w[3]) {
    const char *factors[4] = {x[0], w[0], x[2], w[2]}, *scales[2] = {x[1], w[1]};
    const char *sums, *terms[2], *scaled[2];
    const char *sum = msc_arena_printf(&j->e->arena, "%s.sum", j->joint->name);
    MSC_TRY(MSC_ALLOCATED(sum));
    MSC_TRY(turn_weight(&factors[1], j));
    MSC_TRY(add_part(&sums, j, "MatMulInteger", "integers", factors, w[2][0] == '\0' ? 3 : 4));
    MSC_TRY(add_part(&scaled[0], j, "Cast", "sums", &sums, 1));
    MSC_TRY(msc_onnx__put_int(j->e, j->e->nodes[j->e->n_nodes - 1], "to", MSC_ONNX_FLOAT));
    MSC_TRY(add_part(&scaled[1], j, "Mul", "scale", scales, 2));
    if (j->joint->op == MSC_OP_LINEAR) {
        return add_last(j, "Mul", j->joint->name, scaled);
    }
    MSC_TRY(add_part(&terms[0], j, "Mul", "product", scaled, 2));
    MSC_TRY(msc_onnx__operand(&terms[1], j->e, j->joint, BIAS));
    return add_last(j, "Add", sum, terms);
}

enum msc_status msc_onnx__form_dynamic(bool *is_written, struct msc_onnx_joint *j) {
    const char *x[3], *w[3] = {NULL};
    bool has_x = false, has_w = false;
    if (!msc_onnx__is_dynamic_product(j->e, j->joint)) {
        return MSC_OK;
    }
    MSC_TRY(find_parts(&has_w, w, j, WEIGHT));
    MSC_TRY(has_w ? find_parts(&has_x, x, j, DATA) : MSC_OK);
    w[2] = has_w && is_symmetric(j->e, j->joint) ? "" : w[2];
    *is_written = has_x;
    return *is_written ? write_product(j, x, w) : MSC_OK;
}
