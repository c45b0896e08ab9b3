// Writes joints that move elements (slices, concatenations, transpositions) so that they move
// integers, for targets that need no QDQ pairs around moves (msc_target.pairs_moves is false). A
// tensor is quantised before the first move and dequantised for each consumer that does not move
// it.
//
// If floats were moved after a pair, a runtime would have to exchange the moves with the
// DequantizeLinear to get integer kernels. OpenVINO 2026.4 does so. In sequences of slices and
// concatenations (shifted windows), however, it loses the zero point and computes the consumers of
// these joints in floats.
#include "graph/onnx/onnx_export_form.h"

struct msc_onnx_moved {
    const char *inputs[3]; // inputs of the DequantizeLinear: integers, scale, zero point
    const char *name; // output name of the DequantizeLinear; NULL: derived from the tensor's name
};

bool msc_onnx__passes_integers(const struct msc_onnx_export *e, int32_t tensor) {
    const struct msc_target *target = e->options->sites->scheme.target;
    return target != NULL && !target->pairs_moves && msc_onnx__byte_edit_of(e, tensor) != NULL;
}

// Quantises a tensor for which msc_onnx__passes_integers holds, unless e->moved[tensor] is set.
static enum msc_status quantize_once(struct msc_onnx_export *e, int32_t tensor) {
    if (e->moved[tensor] != NULL) {
        return MSC_OK;
    }
    const struct msc_edit *edit = msc_onnx__byte_edit_of(e, tensor);
    struct msc_onnx_moved *m = msc_arena_alloc(&e->arena, sizeof(*m));
    MSC_TRY(MSC_ALLOCATED(m));
    MSC_TRY(msc_onnx__value(&m->inputs[0], e, tensor));
    e->moved[tensor] = m;
    return msc_onnx__quantize_integers(m->inputs, e, tensor, &edit->quant);
}

enum msc_status msc_onnx__dequantize_moved(const char **out, struct msc_onnx_export *e,
                                           int32_t tensor) {
    Onnx__NodeProto *node;
    MSC_TRY(quantize_once(e, tensor));
    const struct msc_onnx_moved *m = e->moved[tensor];
    const char *wanted = msc_arena_printf(&e->arena, "%s_dequantized", e->names[tensor]);
    if (m->name == NULL || wanted == NULL) {
        return msc_onnx__add_step(out, e, "DequantizeLinear", wanted, m->inputs, 3);
    }
    *out = m->name;
    return msc_onnx__add_node(&node, e, "DequantizeLinear", wanted, m->inputs, 3, out, 1);
}

// True if the joint moves this operand or output; false for parameters of the move.
static bool is_data(const struct msc_graph *g, int32_t tensor) {
    return tensor != MSC_NO_ID && msc_graph_weight_of(g, tensor) == MSC_NO_ID &&
           msc_dtype_is_float(msc_graph_tensor(g, tensor)->dtype);
}

// Sets *all to the 8-bit edit of a tensor that a joint moves. False if the tensor has no such edit,
// or if the edit differs from the edits of the joint's earlier tensors.
static bool add_moved(const struct msc_edit **all, const struct msc_onnx_export *e,
                      int32_t tensor) {
    const struct msc_edit *edit = msc_onnx__byte_edit_of(e, tensor);
    bool is_same = edit != NULL && (*all == NULL || msc_hash_equal(edit->hash, (*all)->hash));
    *all = edit;
    return is_same;
}

// False for a lookup in a weight (an embedding): it reads no tensor that could be passed on as
// integers, and its outputs are quantised like those of any other joint.
static bool moves_integers(const struct msc_onnx_export *e, const struct msc_joint *j) {
    const struct msc_target *target =
        e->options->slot_edits == NULL ? NULL : e->options->sites->scheme.target;
    const struct msc_edit *edit = NULL;
    if (target == NULL || target->pairs_moves ||
        msc_target_role(target, e->graph, j) != MSC_TARGET_MOVES) {
        return false;
    }
    for (int32_t k = 0; k < j->n_operands; k++) {
        if (is_data(e->graph, j->operands[k]) && !add_moved(&edit, e, j->operands[k])) {
            return false;
        }
    }
    bool has_data = edit != NULL;
    for (int32_t o = 0; has_data && o < j->n_outputs; o++) {
        if (is_data(e->graph, j->outputs[o]) && !add_moved(&edit, e, j->outputs[o])) {
            return false;
        }
    }
    return has_data;
}

// Names the output that holds integers; the tensor's own name is kept for the dequantised value.
static enum msc_status name_moved(struct msc_onnx_export *e, int32_t output,
                                  const struct msc_onnx_moved *from) {
    struct msc_onnx_moved *m = msc_arena_alloc(&e->arena, sizeof(*m));
    const char *own = e->names[output];
    const char *wanted = msc_arena_printf(&e->arena, "%s_quantized", own);
    const char *name = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
    MSC_TRY(MSC_ALLOCATED(m && name));
    *m = (struct msc_onnx_moved){{name, from->inputs[1], from->inputs[2]}, own};
    e->names[output] = name;
    e->moved[output] = m;
    return MSC_OK;
}

enum msc_status msc_onnx__move_integers(struct msc_onnx_joint *j) {
    const struct msc_onnx_moved *from = NULL;
    const struct msc_joint *joint = j->joint;
    if (!moves_integers(j->e, joint)) {
        return MSC_OK;
    }
    for (int32_t k = 0; k < joint->n_operands; k++) {
        if (is_data(j->e->graph, joint->operands[k])) {
            MSC_TRY(quantize_once(j->e, joint->operands[k]));
            from = j->e->moved[joint->operands[k]];
            j->inputs[k] = from->inputs[0];
        }
    }
    for (int32_t o = 0; o < joint->n_outputs; o++) {
        if (is_data(j->e->graph, joint->outputs[o])) {
            MSC_TRY(name_moved(j->e, joint->outputs[o], from));
        }
    }
    return MSC_OK;
}
