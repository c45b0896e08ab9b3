// Writes the values that edited slots read: replaced elements of a weight, masked values, quantised
// values. Each (tensor, edit) pair is written once.
#include "graph/onnx/onnx_export_form.h"

#include <string.h>

struct msc_onnx_pair {
    int32_t tensor;
    struct msc_hash hash;
    const char *value;
};

// True if every use of the weight has this edit. The model's own elements are then not needed, and
// the edited value takes the weight's name.
static bool is_all_edited(const struct msc_onnx_export *e, int32_t weight,
                          const struct msc_edit *edit) {
    const struct msc_graph *g = e->graph;
    const struct msc_sites *sites = e->options->sites;
    int32_t n_uses = 0, n_edited = 0;
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_operands && j->op != MSC_OP_CONSTANT; k++) {
            n_uses +=
                j->operands[k] != MSC_NO_ID && msc_graph_weight_of(g, j->operands[k]) == weight;
        }
        bool is_output = j->op == MSC_OP_CONSTANT && j->operands[0] == weight &&
                         msc_graph_is_output(g, j->outputs[0]);
        n_uses += is_output;
    }
    for (int32_t i = 0; i < sites->n_slots; i++) {
        const struct msc_edit *other = e->options->slot_edits[i];
        n_edited += sites->slots[i].tensor == weight && other != NULL &&
                    msc_hash_equal(other->hash, edit->hash);
    }
    return n_uses == n_edited;
}

// The name of a weight's value under an edit.
static enum msc_status name_result(const char **out, struct msc_onnx_export *e, int32_t weight,
                                   const struct msc_edit *edit) {
    const char *base = e->names[weight];
    if (!e->is_written[weight] && is_all_edited(e, weight, edit)) {
        *out = base;
        return MSC_OK;
    }
    bool is_rounded = msc_edit_quant(edit) != NULL || msc_edit_rounding(edit) != NULL;
    const char *suffix = is_rounded ? "dequantized" : "edited";
    const char *wanted = msc_arena_printf(&e->arena, "%s_%s", base, suffix);
    *out = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
    return MSC_ALLOCATED(*out);
}

static enum msc_status put_elements(const char *result, struct msc_onnx_export *e,
                                    const struct msc_array *a) {
    size_t n_bytes = msc_array_n_bytes(a);
    void *copy = msc_arena_alloc(&e->arena, n_bytes + 1);
    MSC_TRY(MSC_ALLOCATED(copy));
    memcpy(copy, msc_array_data(a), n_bytes);
    return msc_onnx__put_initializer(e, result, MSC_ONNX_FLOAT, msc_array_n_dims(a),
                                     msc_array_dims(a), copy, n_bytes);
}

// ONNX has no blocks of GGUF: the model gets the floats that they stand for.
static enum msc_status put_decoded(const char *result, struct msc_onnx_export *e,
                                   const struct msc_array *elements, const struct msc_quant *q) {
    struct msc_array *decoded;
    MSC_TRY(msc_fake_quantize_array(&decoded, elements, q));
    enum msc_status status = put_elements(result, e, decoded);
    msc_array_release(decoded);
    return status;
}

// Applies the last step of the edit, a quantisation or rounding, and writes the result. All earlier
// steps are already applied to `elements`. A bias with a shift is not rounded here but in
// msc_onnx__shift_bias, which includes the shift.
static enum msc_status put_edited(const char *result, struct msc_onnx_export *e, int32_t weight,
                                  const struct msc_array *elements, const struct msc_edit *edit) {
    const struct msc_quant *quant = msc_edit_quant(edit);
    if (quant != NULL && quant->blocks != NULL) {
        return put_decoded(result, e, elements, quant);
    }
    if (quant != NULL) {
        return msc_onnx__is_blocks(e, weight, edit)
                   ? msc_onnx__store_blocks(result, e, weight, elements, quant)
                   : msc_onnx__quantize_weight(result, e, weight, elements, quant);
    }
    const struct msc_bias_rounding *rounding = msc_edit_rounding(edit);
    return rounding != NULL && rounding->shift == 0
               ? msc_onnx__round_bias(result, e, weight, elements, rounding)
               : put_elements(result, e, elements);
}

// Writes a weight or bias under an edit.
static enum msc_status edit_constant(const char **out, struct msc_onnx_export *e, int32_t weight,
                                     const struct msc_edit *edit) {
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    struct msc_array *elements;
    if (t->data == NULL) {
        return MSC_FAIL(MSC_E_STATE, "weight '%s' has no elements", t->name);
    }
    const struct msc_bias_rounding *rounding = msc_edit_rounding(edit);
    bool is_float = rounding != NULL && rounding->shift != 0;
    MSC_TRY(name_result(out, e, weight, edit));
    MSC_TRY(is_float ? msc_edit_apply(&elements, t->data, edit)
                     : msc_edit_elements(&elements, t->data, edit));
    enum msc_status status = put_edited(*out, e, weight, elements, edit);
    msc_array_release(elements);
    return status;
}

// Multiplies kept channels by 1 and removed channels by 0.
static enum msc_status mask_activation(const char **value, struct msc_onnx_export *e,
                                       int32_t tensor, const struct msc_channel_mask *mask) {
    const char *base = e->names[tensor], *inputs[2] = {*value};
    int64_t dims[MSC_MAX_DIMS] = {mask->n};
    int n_dims = e->graph->tensors[tensor]->tensor.n_dims - mask->axis;
    Onnx__NodeProto *node;
    float *factors = msc_arena_array(&e->arena, (size_t)mask->n + 1, sizeof(factors[0]));
    const char *name = msc_arena_printf(&e->arena, "%s_mask", base);
    const char *wanted = msc_arena_printf(&e->arena, "%s_masked", base);
    const char *result = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
    MSC_TRY(MSC_ALLOCATED(factors && name && result));
    for (int32_t c = 0; c < mask->n; c++) {
        factors[c] = mask->is_kept[c] ? 1.0f : 0.0f;
    }
    for (int i = 1; i < n_dims; i++) {
        dims[i] = 1;
    }
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, name, MSC_ONNX_FLOAT, n_dims, dims, factors,
                                      (size_t)mask->n * sizeof(factors[0])));
    *value = result;
    return msc_onnx__add_node(&node, e, "Mul", wanted, inputs, 2, value, 1);
}

static enum msc_status edit_activation(const char **out, struct msc_onnx_export *e, int32_t tensor,
                                       const struct msc_edit *edit) {
    if (msc_onnx__passes_integers(e, tensor)) {
        return msc_onnx__dequantize_moved(out, e, tensor);
    }
    MSC_TRY(msc_onnx__value(out, e, tensor));
    if (msc_onnx__has_forms(e) && msc_onnx__is_byte(edit) && edit->quant.axis < 0) {
        return msc_onnx__quantize_bytes(out, e, tensor, edit);
    }
    for (; edit != NULL; edit = edit->next) {
        MSC_TRY(edit->kind == MSC_EDIT_KEEP_CHANNELS ? mask_activation(out, e, tensor, &edit->mask)
                : edit->quant.is_dynamic
                    ? msc_onnx__quantize_dynamically(out, e, tensor)
                    : msc_onnx__quantize_activation(out, e, tensor, &edit->quant));
    }
    return MSC_OK;
}

// If the tensor is an output of the model, gives its final value the public name.
static enum msc_status take_output_name(const char **value, struct msc_onnx_export *e,
                                        int32_t tensor, const struct msc_edit *edit) {
    const struct msc_sites *sites = e->options->sites;
    bool is_cast = false;
    for (int32_t i = 0; i < sites->n_site_slots && !is_cast; i++) {
        const struct msc_edit *other = e->options->slot_edits[i];
        if (sites->slots[i].joint != MSC_NO_ID || sites->slots[i].tensor != tensor ||
            other == NULL || !msc_hash_equal(other->hash, edit->hash)) {
            continue;
        }
        MSC_TRY(msc_onnx__cast_edited_output(&is_cast, e, tensor, *value));
        if (!is_cast) {
            *value = e->outputs_seen[tensor];
            e->nodes[e->n_nodes - 1]->output[0] = (char *)*value;
        }
    }
    return MSC_OK;
}

static enum msc_status edit_slot(const char **out, struct msc_onnx_export *e, int32_t slot) {
    const struct msc_edit *edit = e->options->slot_edits[slot];
    const struct msc_slot *s = &e->options->sites->slots[slot];
    for (size_t i = 0; i < e->n_pairs; i++) {
        if (e->pairs[i].tensor == s->tensor && msc_hash_equal(e->pairs[i].hash, edit->hash)) {
            *out = e->pairs[i].value;
            return MSC_OK;
        }
    }
    MSC_TRY(msc_edit_check(edit, e->graph, s));
    if (s->kind == MSC_SITE_ACTIVATION) {
        MSC_TRY(edit_activation(out, e, s->tensor, edit));
        MSC_TRY(take_output_name(out, e, s->tensor, edit));
    } else {
        MSC_TRY(edit_constant(out, e, s->tensor, edit));
    }
    MSC_TRY(msc_grow(&e->pairs, &e->pairs_capacity, e->n_pairs + 1, sizeof(e->pairs[0])));
    e->pairs[e->n_pairs++] = (struct msc_onnx_pair){s->tensor, edit->hash, *out};
    return MSC_OK;
}

enum msc_status msc_onnx__edited_input(const char **out, struct msc_onnx_export *e,
                                       const struct msc_joint *joint, int32_t operand) {
    *out = "";
    if (e->options->slot_edits == NULL) {
        return MSC_OK;
    }
    int32_t slot = msc_sites_find_slot(e->options->sites, joint->id, operand);
    if (slot == MSC_NO_ID || e->options->slot_edits[slot] == NULL) {
        return MSC_OK;
    }
    const struct msc_graph *before = msc_onnx__widen_types(e);
    enum msc_status status = edit_slot(out, e, slot);
    e->graph = before;
    return status == MSC_OK ? msc_onnx__typed_edit(out, e, joint->operands[operand]) : status;
}

enum msc_status msc_onnx__edit_outputs(struct msc_onnx_export *e) {
    const struct msc_sites *sites = e->options->sites;
    const struct msc_graph *before = msc_onnx__widen_types(e);
    const char *value;
    for (int32_t i = 0; e->options->slot_edits != NULL && i < sites->n_site_slots; i++) {
        if (sites->slots[i].joint == MSC_NO_ID && e->options->slot_edits[i] != NULL) {
            MSC_TRY(edit_slot(&value, e, i));
        }
    }
    e->graph = before;
    return MSC_OK;
}

enum msc_status msc_onnx__operand(const char **out, struct msc_onnx_export *e,
                                  const struct msc_joint *joint, int32_t operand) {
    *out = "";
    if (joint->operands[operand] == MSC_NO_ID) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__edited_input(out, e, joint, operand));
    return (*out)[0] != '\0' ? MSC_OK : msc_onnx__value(out, e, joint->operands[operand]);
}
