// Finds the edits that joints read, and what these edits mean for forms: whether a joint is
// computed in integer arithmetic, and which tail the pair after the joint replaces.
#include "graph/onnx/onnx_export_form.h"
#include "graph/target.h"

#include <math.h>
#include <string.h>

bool msc_onnx__has_forms(const struct msc_onnx_export *e) {
    const struct msc_sites *sites = e->options->sites;
    return e->options->slot_edits != NULL && sites->scheme.target != NULL &&
           sites->scheme.target->has_forms;
}

enum msc_target_role msc_onnx__role_of(const struct msc_onnx_export *e, const struct msc_joint *j) {
    return msc_target_role(e->options->sites->scheme.target, e->graph, j);
}

const struct msc_edit *msc_onnx__edit_at(const struct msc_onnx_export *e, int32_t joint,
                                         int32_t operand) {
    int32_t slot = msc_sites_find_slot(e->options->sites, joint, operand);
    return slot == MSC_NO_ID ? NULL : e->options->slot_edits[slot];
}

bool msc_onnx__is_byte(const struct msc_edit *edit) {
    return edit != NULL && edit->kind == MSC_EDIT_QUANTIZE && edit->next == NULL &&
           edit->quant.type == MSC_DTYPE_NONE && edit->quant.bits <= 8 &&
           edit->quant.group_size == 0 && !edit->quant.is_dynamic;
}

const struct msc_edit *msc_onnx__byte_edit(const struct msc_onnx_export *e, int32_t joint,
                                           int32_t operand) {
    const struct msc_edit *edit = msc_onnx__edit_at(e, joint, operand);
    return msc_onnx__is_byte(edit) ? edit : NULL;
}

// Stores the edit of one use of a tensor in *all. False if the use has no edit, the edit has one
// scale per channel, or it differs from the edits of earlier uses.
static bool add_use(const struct msc_edit **all, const struct msc_edit *edit) {
    if (edit == NULL || edit->quant.axis >= 0 ||
        (*all != NULL && !msc_hash_equal((*all)->hash, edit->hash))) {
        return false;
    }
    *all = edit;
    return true;
}

const struct msc_edit *msc_onnx__byte_edit_of(const struct msc_onnx_export *e, int32_t tensor) {
    const int32_t *readers;
    const struct msc_edit *edit = NULL;
    int32_t n = msc_graph_consumers(e->graph, tensor, &readers);
    for (int32_t i = 0; i < n; i++) {
        const struct msc_joint *j = msc_graph_joint(e->graph, readers[i]);
        for (int32_t k = 0; k < j->n_operands && j->op != MSC_OP_SHAPE_OF; k++) {
            if (j->operands[k] == tensor && !add_use(&edit, msc_onnx__byte_edit(e, j->id, k))) {
                return NULL;
            }
        }
    }
    for (int32_t i = 0; i < msc_graph_n_outputs(e->graph); i++) {
        if (msc_graph_output(e->graph, i) == tensor &&
            !add_use(&edit, msc_onnx__byte_edit(e, MSC_NO_ID, i))) {
            return NULL;
        }
    }
    return edit;
}

// All operands except attributes and biases must have 8-bit edits. A bias need not: if all other
// operands are integers, it is rounded to an integer.
bool msc_onnx__computes_integers(const struct msc_onnx_export *e, const struct msc_joint *j) {
    if (!msc_onnx__has_forms(e) || !msc_target_is_integer(msc_onnx__role_of(e, j))) {
        return false;
    }
    for (int32_t k = 0; k < j->n_operands; k++) {
        struct msc_op_role role;
        bool is_factor = j->operands[k] != MSC_NO_ID && msc_op_role(j->op, k, &role) &&
                         !role.is_attribute && !role.is_bias_slot;
        if (is_factor && msc_onnx__byte_edit(e, j->id, k) == NULL) {
            return false;
        }
    }
    return true;
}

static bool has_known_dims(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) {
            return false;
        }
    }
    return true;
}

// True if the slot is the bias of a float addition. If the runtime does not know all dims, it does
// not fuse a product and the addition after it into one integer kernel, so the addition remains
// float.
static bool adds_floats(const struct msc_graph *g, const struct msc_slot *slot) {
    const struct msc_joint *j = msc_graph_joint(g, slot->joint);
    return slot->kind == MSC_SITE_BIAS && j->op == MSC_OP_LINEAR_BIAS &&
           msc_graph_tensor(g, j->operands[0])->n_dims != 2 && !has_known_dims(g, j->operands[0]);
}

bool msc_onnx__is_folded(const struct msc_onnx_export *e, int32_t constant) {
    const struct msc_sites *sites = e->options->sites;
    for (int32_t i = 0; msc_onnx__has_forms(e) && i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor != constant || slot->joint == MSC_NO_ID) {
            continue;
        }
        const struct msc_joint *j = msc_graph_joint(e->graph, slot->joint);
        bool is_dynamic = slot->kind == MSC_SITE_WEIGHT && msc_onnx__is_dynamic_product(e, j);
        if (msc_onnx__takes_integers(e, j)) {
            continue;
        }
        if ((!msc_onnx__computes_integers(e, j) && !is_dynamic) || adds_floats(e->graph, slot)) {
            return true;
        }
    }
    return false;
}

const Onnx__NodeProto *msc_onnx__pair_of(const struct msc_onnx_export *e, const char *value) {
    for (size_t i = e->n_nodes; i-- > 0;) {
        if (strcmp(e->nodes[i]->output[0], value) == 0) {
            return strcmp(e->nodes[i]->op_type, "DequantizeLinear") == 0 ? e->nodes[i] : NULL;
        }
    }
    return NULL;
}

static int32_t end_of_tail(const struct msc_onnx_export *e, int32_t tensor) {
    return msc_graph__end_of_tail(e->graph, e->options->sites->scheme.target, tensor);
}

// ---- Tails ------------------------------------------------------------------------------------

// Operands of convolutions.
enum { DATA, WEIGHT, BIAS };

static bool has_bias(const struct msc_joint *j) {
    return j->n_operands > BIAS && j->operands[BIAS] != MSC_NO_ID;
}

float msc_onnx__step_of(const struct msc_onnx_export *e, const struct msc_joint *j, int64_t c) {
    const struct msc_quant *x = &msc_onnx__byte_edit(e, j->id, DATA)->quant;
    const struct msc_quant *w = &msc_onnx__byte_edit(e, j->id, WEIGHT)->quant;
    return x->scales[0] * w->scales[w->n > 1 ? c : 0];
}

static int64_t count_outputs(const struct msc_onnx_export *e, const struct msc_joint *j) {
    return msc_graph_tensor(e->graph, j->operands[WEIGHT])->dims[0];
}

// Largest bias in units of msc_onnx__step_of. It exceeds most_bias (onnx_export_form_conv.c) by the
// rounding error of weights whose scale was increased to limit the bias.
static const float most_sum = 0x1.1p30f;

const struct msc_bias_rounding *msc_onnx__bias_rounding(const struct msc_onnx_export *e,
                                                        const struct msc_joint *j) {
    return has_bias(j) ? msc_edit_rounding(msc_onnx__edit_at(e, j->id, BIAS)) : NULL;
}

// An existing bias must be rounded, and its rounding must already include the tail's shift.
bool msc_onnx__takes_shift(const struct msc_onnx_export *e, const struct msc_tail *tail) {
    const struct msc_joint *j = tail->maker;
    const struct msc_bias_rounding *rounding = msc_onnx__bias_rounding(e, j);
    if (!msc_onnx__computes_integers(e, j)) {
        return false;
    }
    if (has_bias(j)) {
        return rounding != NULL && rounding->shift == msc_tail_bias(tail);
    }
    for (int64_t c = 0; c < count_outputs(e, j); c++) {
        if (!(fabsf(msc_tail_bias(tail) / msc_onnx__step_of(e, j, c)) < most_sum)) {
            return false;
        }
    }
    return true;
}

bool msc_onnx__tail_to(struct msc_tail *out, const struct msc_onnx_export *e, int32_t tensor) {
    return msc_onnx__has_forms(e) && msc_onnx__byte_edit_of(e, tensor) != NULL &&
           msc_graph__find_tail(out, e->graph, e->options->sites->scheme.target, tensor) &&
           out->has_known_limits && (out->shift == 0 || msc_onnx__takes_shift(e, out));
}

bool msc_onnx__tail_behind(struct msc_tail *out, const struct msc_onnx_export *e, int32_t tensor) {
    return msc_onnx__has_forms(e) && msc_onnx__tail_to(out, e, end_of_tail(e, tensor));
}

const struct msc_edit *msc_onnx__edit_behind(const struct msc_onnx_export *e, int32_t tensor) {
    struct msc_tail tail;
    bool has_tail = msc_onnx__tail_behind(&tail, e, tensor);
    return msc_onnx__byte_edit_of(e, has_tail ? end_of_tail(e, tensor) : tensor);
}

bool msc_onnx__is_dropped(const struct msc_onnx_export *e, const struct msc_joint *j) {
    struct msc_tail tail;
    enum msc_target_role role = msc_onnx__has_forms(e) ? msc_onnx__role_of(e, j) : MSC_TARGET_FLOAT;
    bool is_tail = role == MSC_TARGET_SATURATES || role == MSC_TARGET_AFFINE;
    return is_tail && msc_onnx__tail_behind(&tail, e, j->outputs[0]);
}

// For bytes x = (q - z) * s, the hard sigmoid is the sum of (q - z) * (alpha * s) and beta.
bool msc_onnx__is_saturated_sum(const struct msc_onnx_export *e, const struct msc_joint *j) {
    float alpha, beta;
    return j->op == MSC_OP_HARD_SIGMOID && msc_onnx__byte_edit(e, j->id, 0) != NULL &&
           msc_onnx__edit_behind(e, j->outputs[0]) != NULL &&
           msc_joint_attr_float(j, "alpha", &alpha) && msc_joint_attr_float(j, "beta", &beta) &&
           alpha > 0 && beta > 0;
}

bool msc_onnx__limits_of(float limits[2], const struct msc_onnx_export *e, int32_t tensor) {
    int32_t producer = msc_graph_producer(e->graph, tensor);
    const struct msc_joint *j = producer == MSC_NO_ID ? NULL : msc_graph_joint(e->graph, producer);
    if (!msc_onnx__has_forms(e) || j == NULL) {
        return false;
    }
    struct msc_tail tail = {.maker = j, .factor = 1, .low = -INFINITY, .high = INFINITY};
    bool has_tail = msc_onnx__tail_to(&tail, e, tensor);
    bool is_sum = msc_onnx__is_saturated_sum(e, tail.maker);
    if (is_sum) {
        tail.low = fmax(tail.low, fmin(tail.shift, tail.high));
        tail.high = fmin(tail.high, fmax(tail.factor + tail.shift, tail.low));
    }
    limits[0] = (float)tail.low;
    limits[1] = (float)tail.high;
    return is_sum || has_tail;
}
