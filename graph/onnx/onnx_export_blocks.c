// Stores weights in 4 bits. There are two kinds:
//
//     blocks  weights that a plan quantises to 4 bits in groups and that multiply float activations
//     codes   4-bit integers that the model itself dequantises; a graph stores them as bytes
//
// A weight in blocks becomes a DequantizeLinear with `block_size` right before a MatMul or Gemm, of
// a matrix [I,O] with groups along I. ONNX Runtime makes a MatMulNBits only of this pattern and
// orientation, and only for groups of 16, 32, 64, ... elements.
#include "graph/onnx/onnx_export_form.h"

#include "graph/block_weights.h"
#include "graph/requantised.h"

#include <string.h>

enum { LEAST_GROUP = 16 };

// True if the joint multiplies float activations by the weight under this edit.
static bool multiplies_floats(const struct msc_onnx_export *e, const struct msc_joint *j,
                              const struct msc_edit *edit) {
    const struct msc_edit *weight = msc_onnx__edit_at(e, j->id, 1);
    const struct msc_edit *input = msc_onnx__edit_at(e, j->id, 0);
    return (j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS) && weight != NULL &&
           msc_hash_equal(weight->hash, edit->hash) && msc_edit_quant(input) == NULL;
}

static bool is_read_so(const struct msc_onnx_export *e, int32_t weight,
                       const struct msc_edit *edit) {
    const struct msc_graph *g = e->graph;
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_operands; k++) {
            bool reads =
                j->operands[k] != MSC_NO_ID && msc_graph_weight_of(g, j->operands[k]) == weight;
            if (reads && (k != 1 || !multiplies_floats(e, j, edit))) {
                return false;
            }
        }
    }
    return true;
}

bool msc_onnx__is_blocks(const struct msc_onnx_export *e, int32_t weight,
                         const struct msc_edit *edit) {
    const struct msc_quant *q = msc_edit_quant(edit);
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    bool fits = q != NULL && q->type == MSC_DTYPE_NONE && q->blocks == NULL && q->bits == 4 &&
                q->group_axes == 1 && q->group_size >= LEAST_GROUP &&
                (q->group_size & (q->group_size - 1)) == 0;
    return fits && t->n_dims == 2 && msc_block_weight_is_summed(t, q->axis) &&
           is_read_so(e, weight, edit);
}

// The quantisation of a joint's weight if it is stored in blocks; else NULL.
static const struct msc_quant *blocks_of(const struct msc_onnx_export *e,
                                         const struct msc_joint *j) {
    bool is_linear = j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS;
    if (!is_linear || e->options->slot_edits == NULL) {
        return NULL;
    }
    const struct msc_edit *edit = msc_onnx__edit_at(e, j->id, 1);
    int32_t weight = msc_graph_weight_of(e->graph, j->operands[1]);
    bool is_so = edit != NULL && weight != MSC_NO_ID && msc_onnx__is_blocks(e, weight, edit);
    return is_so ? msc_edit_quant(edit) : NULL;
}

bool msc_onnx__is_turned(const struct msc_onnx_export *e, const struct msc_joint *j) {
    const struct msc_quant *q = blocks_of(e, j);
    return q != NULL && q->axis == 1;
}

bool msc_onnx__has_limited_blocks(const struct msc_onnx_export *e, const struct msc_joint *j) {
    const struct msc_graph_tensor *t = e->graph->tensors[j->outputs[0]];
    bool is_stored = msc_onnx__has_forms(e) && msc_graph__has_stored_factor(e->graph, j);
    if (is_stored && msc_onnx__byte_edit_of(e, j->outputs[0]) != NULL) {
        return true;
    }
    for (int32_t i = 0; i < t->n_consumers; i++) {
        const struct msc_joint *reader = &e->graph->joints[t->consumers[i]]->joint;
        if (reader->op == MSC_OP_RELU || reader->op == MSC_OP_CLIP) {
            return is_stored ? msc_onnx__byte_edit_of(e, reader->outputs[0]) != NULL
                             : blocks_of(e, j) != NULL;
        }
    }
    return false;
}

// Transposes a matrix of 4-byte elements.
static void *turn(struct msc_onnx_export *e, const void *elements, int64_t rows, int64_t columns) {
    const uint32_t *from = elements;
    uint32_t *to = msc_arena_array(&e->arena, (size_t)(rows * columns) + 1, sizeof(to[0]));
    for (int64_t r = 0; to != NULL && r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[c * rows + r] = from[r * columns + c];
        }
    }
    return to;
}

static enum msc_status turn_quant(struct msc_quant *q, struct msc_onnx_export *e, int64_t n_out) {
    q->scales = turn(e, q->scales, n_out, q->n / n_out);
    q->zero_points = turn(e, q->zero_points, n_out, q->n / n_out);
    return q->scales == NULL || q->zero_points == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                                       : MSC_OK;
}

enum msc_status msc_onnx__store_blocks(const char *result, struct msc_onnx_export *e,
                                       int32_t weight, const struct msc_array *elements,
                                       const struct msc_quant *q) {
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    const char *base = e->names[weight], *inputs[3];
    const char *name = msc_arena_printf(&e->arena, "%s_dequantized", base);
    int64_t n_in = t->dims[q->axis], n_out = t->dims[1 - q->axis];
    const int64_t dims[2] = {n_in, n_out};
    struct msc_quant as_stored = *q;
    struct msc_onnx_integers type;
    struct msc_array *integers = NULL;
    Onnx__NodeProto *node;
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_onnx__pick_integers(&type, q, true));
    MSC_TRY(msc_quantize_array(&integers, elements, q));
    const void *values = msc_array_data(integers);
    enum msc_status status = MSC_OK;
    if (q->axis == 1 && n_out > 0) {
        values = turn(e, values, n_out, n_in);
        MSC_TRY_OUT(values == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                   : turn_quant(&as_stored, e, n_out));
    }
    MSC_TRY_OUT(msc_onnx__put_packed(&inputs[0], e, base, &type, q->bits, 2, dims, values,
                                     (size_t)(n_in * n_out)));
    const int64_t scale_dims[2] = {(n_in + q->group_size - 1) / q->group_size, n_out};
    MSC_TRY_OUT(msc_onnx__add_parameters(&inputs[1], e, base, &as_stored, &type, 2, scale_dims));
    MSC_TRY_OUT(msc_onnx__add_node(&node, e, "DequantizeLinear", name, inputs, 3, &result, 1));
    MSC_TRY_OUT(msc_onnx__put_int(e, node, "block_size", q->group_size));
    status = msc_onnx__put_int(e, node, "axis", 0);
out:
    msc_array_release(integers);
    return status;
}

// ---- Weights that the model itself stores in 4 bits ------------------------------------------

// The type of 4-bit codes that the joint dequantises, or NULL.
static const struct msc_onnx_integers *codes_of(const struct msc_joint *j) {
    static const struct msc_onnx_integers types[] = {{MSC_ONNX_INT4, -8, 7, 4},
                                                     {MSC_ONNX_UINT4, 0, 15, 4}};
    const char *format = j->op == MSC_OP_DEQUANTIZE ? msc_joint_attr(j, "format") : NULL;
    return format == NULL                 ? NULL
           : strcmp(format, "int4") == 0  ? &types[0]
           : strcmp(format, "uint4") == 0 ? &types[1]
                                          : NULL;
}

// The type of a weight's codes, if all consumers dequantise the weight from the same 4-bit type;
// else NULL.
static const struct msc_onnx_integers *stored_type(const struct msc_onnx_export *e,
                                                   int32_t weight) {
    const struct msc_onnx_integers *type = NULL;
    for (int32_t i = 0; i < e->graph->n_joints; i++) {
        const struct msc_joint *j = &e->graph->joints[i]->joint;
        for (int32_t k = 0; k < j->n_operands && j->op != MSC_OP_CONSTANT; k++) {
            if (j->operands[k] == MSC_NO_ID ||
                msc_graph_weight_of(e->graph, j->operands[k]) != weight) {
                continue;
            }
            const struct msc_onnx_integers *found = k == 1 ? NULL : codes_of(j);
            if (found == NULL || (type != NULL && type != found)) {
                return NULL;
            }
            type = found;
        }
    }
    return type;
}

// Packs the weight's codes, one per byte in the graph, into a 4-bit initialiser of the same name.
static enum msc_status store_codes(struct msc_onnx_export *e, int32_t weight,
                                   const struct msc_onnx_integers *type) {
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    size_t n = (size_t)msc_array_n_elements(t->data);
    uint8_t *data = msc_arena_alloc(&e->arena, (n + 1) / 2 + 1);
    const uint8_t *codes = msc_array_data(t->data);
    MSC_TRY(MSC_ALLOCATED(data));
    for (size_t i = 0; i < n; i++) {
        data[i / 2] |= (uint8_t)((codes[i] & 15) << (i % 2 == 0 ? 0 : 4));
    }
    e->is_written[weight] = true;
    return msc_onnx__put_initializer(e, e->names[weight], type->onnx, t->n_dims, t->dims, data,
                                     (n + 1) / 2);
}

bool msc_onnx__has_codes(const struct msc_onnx_joint *j) {
    const struct msc_onnx_integers *type = codes_of(j->joint);
    for (int32_t i = 0; type != NULL && i < j->joint->n_operands; i += 2) {
        int32_t operand = j->joint->operands[i];
        if (operand == MSC_NO_ID) {
            continue;
        }
        int32_t weight = msc_graph_weight_of(j->e->graph, operand);
        type = weight != MSC_NO_ID && stored_type(j->e, weight) == type ? type : NULL;
    }
    return type != NULL;
}

enum msc_status msc_onnx__store_codes(struct msc_onnx_joint *j) {
    for (int32_t i = 0; msc_onnx__has_codes(j) && i < j->joint->n_operands; i += 2) {
        int32_t operand = j->joint->operands[i];
        if (operand == MSC_NO_ID) {
            continue;
        }
        int32_t weight = msc_graph_weight_of(j->e->graph, operand);
        if (!j->e->is_written[weight]) {
            MSC_TRY(store_codes(j->e, weight, codes_of(j->joint)));
        }
        j->inputs[i] = j->e->names[weight];
    }
    return MSC_OK;
}
