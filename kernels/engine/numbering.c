#include "kernels/engine/numbering.h"

#include "base/alloc.h"

#include <string.h>

enum msc_status msc_numbering_init(struct msc_numbering *num, const struct msc_plan *plan) {
    *num = (struct msc_numbering){.plan = plan};
    num->values = msc_alloc_zero((size_t)plan->n_values + 1, sizeof(num->values[0]));
    num->is_changed = msc_alloc_zero((size_t)plan->n_values + 1, sizeof(num->is_changed[0]));
    MSC_TRY(MSC_ALLOCATED(num->values && num->is_changed));
    return MSC_OK;
}

void msc_numbering_finish(struct msc_numbering *num) {
    msc_free(num->exprs);
    msc_free(num->inputs);
    msc_hash_index_finish(&num->index);
    msc_free(num->values);
    msc_free(num->is_changed);
    *num = (struct msc_numbering){0};
}

void msc_numbering_clear(struct msc_numbering *num) {
    num->n_exprs = 0;
    num->n_inputs = 0;
    num->has_previous = false;
    msc_hash_index_clear(&num->index);
}

// Finds the expression with the same hash as `model`. If there is none, adds `model` with these
// inputs.
static enum msc_status numbering_intern(struct msc_numbering *num, const struct msc_expr *model,
                                        const struct msc_value_number inputs[], int32_t *id) {
    *id = msc_hash_index_find(&num->index, model->hash, num->exprs, sizeof(num->exprs[0]));
    if (*id >= 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_hash_index_reserve(&num->index, num->n_exprs + 1));
    MSC_TRY(msc_grow(&num->exprs, &num->exprs_capacity, num->n_exprs + 1, sizeof(num->exprs[0])));
    MSC_TRY(msc_grow(&num->inputs, &num->inputs_capacity, num->n_inputs + (size_t)model->n_inputs,
                     sizeof(num->inputs[0])));
    struct msc_expr *expr = &num->exprs[num->n_exprs];
    *expr = *model;
    expr->first_input = (int32_t)num->n_inputs;
    for (int32_t i = 0; i < model->n_inputs; i++) {
        num->inputs[num->n_inputs++] = inputs[i];
    }
    msc_hash_index_add(&num->index, num->n_exprs, num->exprs, sizeof(num->exprs[0]));
    *id = (int32_t)num->n_exprs++;
    return MSC_OK;
}

static struct msc_hash hash_number(const struct msc_numbering *num, struct msc_hash h,
                                   struct msc_value_number number) {
    h = msc_hash_combine(h, num->exprs[number.expr].hash);
    return number.output > 0 ? msc_hash_add_u64(h, (uint64_t)number.output) : h;
}

static enum msc_status number_inputs(struct msc_numbering *num) {
    for (int32_t v = 0; v < num->plan->n_values; v++) {
        if (num->plan->values[v].input == MSC_NO_ID) {
            continue;
        }
        struct msc_expr expr = {
            .kind = MSC_EXPR_INPUT, .index = num->plan->values[v].input, .weights = MSC_NO_ID};
        expr.hash = msc_hash_bytes("input", 5);
        expr.hash = msc_hash_add_u64(expr.hash, (uint64_t)(uint32_t)expr.index);
        num->values[v].output = 0;
        MSC_TRY(numbering_intern(num, &expr, NULL, &num->values[v].expr));
    }
    return MSC_OK;
}

// Numbers a value under a mask. The hash of an edit covers all parts of the edit, of which the mask
// is only one, so the mask is hashed on its own.
static enum msc_status number_masked(struct msc_numbering *num, int32_t value,
                                     const struct msc_edit *edit, struct msc_value_number *number) {
    struct msc_edit alone = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = edit->mask};
    struct msc_expr expr = {.kind = MSC_EXPR_MASK,
                            .index = value,
                            .n_inputs = 1,
                            .weights = MSC_NO_ID,
                            .mask = &edit->mask};
    struct msc_value_number from = *number;
    msc_edit_seal(&alone);
    expr.hash = hash_number(num, msc_hash_combine(msc_hash_bytes("mask", 4), alone.hash), from);
    number->output = 0;
    return numbering_intern(num, &expr, &from, &number->expr);
}

// Adds the layout and dims of a value to a hash: they determine which bytes belong to a channel.
static struct msc_hash hash_dims(const struct msc_numbering *num, struct msc_hash h,
                                 int32_t value) {
    const struct msc_value *v = &num->plan->values[value];
    h = msc_hash_add_u64(h, (uint64_t)v->layout);
    return msc_hash_add_bytes(h, v->dims, (size_t)v->n_dims * sizeof(v->dims[0]));
}

static enum msc_status number_quantized(struct msc_numbering *num, int32_t value,
                                        const struct msc_quant *edit, uint64_t noise_seed,
                                        struct msc_value_number *number) {
    struct msc_expr expr = {.kind = MSC_EXPR_QUANTIZE,
                            .noise_seed = noise_seed,
                            .index = value,
                            .n_inputs = 1,
                            .weights = MSC_NO_ID,
                            .edit = edit};
    struct msc_value_number from = *number;
    expr.hash = hash_number(num, msc_hash_combine(msc_hash_bytes("quantize", 8), edit->hash), from);
    expr.hash = msc_quant_is_by_channel(edit) ? hash_dims(num, expr.hash, value) : expr.hash;
    expr.hash = noise_seed ? msc_hash_add_u64(expr.hash, noise_seed) : expr.hash;
    number->output = 0;
    return numbering_intern(num, &expr, &from, &number->expr);
}

// A quantisation is moved in front of at most this many consecutive data movement steps. Without a
// limit, every consumer in a long chain of concatenations would walk the whole chain before it.
enum { MOST_MOVES = 4 };
// A quantisation is moved in front of a step only if the step's inputs have at most this many times
// the elements of the output. Otherwise quantising the inputs costs more than it saves.
enum { MOST_INPUTS = 5 };

static bool can_move_integers(const struct msc_numbering *num, const struct msc_step *s) {
    const struct msc_backend *b = num->plan->backend;
    return s->n_outputs == 1 && b->def->is_movement && b->def->is_movement(b, s);
}

// The common quantisation of a step's inputs, if the step moves their integers; otherwise NULL.
static const struct msc_quant *moved_quant(const struct msc_numbering *num,
                                           const struct msc_step *s,
                                           const struct msc_value_number inputs[]) {
    const struct msc_quant *quant = NULL;
    for (int32_t i = 0; i < s->n_inputs; i++) {
        const struct msc_quant *other = msc_numbering_integers(num, inputs[i]);
        if (!other || other->is_dynamic || msc_quant_is_by_channel(other) ||
            (quant && !msc_hash_equal(other->hash, quant->hash))) {
            return NULL;
        }
        quant = other;
    }
    return quant && can_move_integers(num, s) ? quant : NULL;
}

static bool is_data_movement(const struct msc_numbering *num, const struct msc_quant *edit,
                             uint64_t noise_seed, struct msc_value_number number) {
    const struct msc_expr *expr = &num->exprs[number.expr];
    if (expr->kind != MSC_EXPR_STEP || expr->edit || noise_seed != 0 || edit->is_dynamic ||
        !msc_quant_is_integer(edit) || msc_quant_is_by_channel(edit)) {
        return false;
    }
    const struct msc_step *s = &num->plan->steps[expr->index];
    size_t out = num->plan->values[s->outputs[0]].n_bytes, in = 0;
    for (int32_t i = 0; i < s->n_inputs; i++) {
        in += num->plan->values[s->inputs[i]].n_bytes;
        if (num->exprs[num->inputs[expr->first_input + i].expr].edit) {
            return false; // an edit has already quantised this input
        }
    }
    return in <= MOST_INPUTS * out && can_move_integers(num, s);
}

// Replaces *number, a number of `value`, by the number of that value under a quantisation.
static enum msc_status number_under_quant(struct msc_numbering *num, int32_t value,
                                          const struct msc_quant *edit, uint64_t noise_seed,
                                          int n_moves, struct msc_value_number *number) {
    const struct msc_quant *before = num->exprs[number->expr].edit;
    bool is_one = !msc_quant_is_by_channel(edit) && !edit->is_dynamic;
    if (is_one && before && msc_hash_equal(before->hash, edit->hash)) {
        return MSC_OK;
    }
    if (n_moves == MOST_MOVES || !is_data_movement(num, edit, noise_seed, *number)) {
        return number_quantized(num, value, edit, noise_seed, number);
    }
    struct msc_expr expr = num->exprs[number->expr];
    const struct msc_step *s = &num->plan->steps[expr.index];
    struct msc_value_number inputs[MSC_STEP_MAX_INPUTS];
    expr.hash = msc_hash_combine(s->hash, msc_hash_bytes("moved", 5));
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = num->inputs[expr.first_input + i];
        MSC_TRY(number_under_quant(num, s->inputs[i], edit, 0, n_moves + 1, &inputs[i]));
        expr.hash = hash_number(num, expr.hash, inputs[i]);
    }
    if (expr.weights != MSC_NO_ID) {
        expr.hash = msc_hash_combine(expr.hash, num->exprs[expr.weights].hash);
    }
    expr.edit = edit;
    return numbering_intern(num, &expr, inputs, &number->expr);
}

enum msc_status msc_numbering_edit(struct msc_numbering *num, int32_t value,
                                   const struct msc_edit *edit, uint64_t noise_seed,
                                   struct msc_value_number *number) {
    for (; edit; edit = edit->next) {
        MSC_TRY((edit->kind == MSC_EDIT_KEEP_CHANNELS
                     ? number_masked(num, value, edit, number)
                     : number_under_quant(num, value, &edit->quant, noise_seed, 0, number)));
    }
    return MSC_OK;
}

static const struct msc_edit *edit_of(const struct msc_edit *const edits[], int32_t slot) {
    return edits && slot != MSC_NO_ID ? edits[slot] : NULL;
}

static enum msc_status number_weights(struct msc_numbering *num, int32_t step,
                                      const struct msc_edit *const edits[], int32_t *id) {
    const struct msc_step *s = &num->plan->steps[step];
    struct msc_expr expr = {
        .kind = MSC_EXPR_WEIGHTS, .index = step, .weights = MSC_NO_ID, .slot_edits = edits};
    expr.hash = msc_hash_combine(msc_hash_bytes("weights", 7), s->hash);
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        const struct msc_edit *edit = msc_numbering_weight_edit(s, i, edits);
        if (edit) {
            expr.hash = msc_hash_add_u64(msc_hash_combine(expr.hash, edit->hash), (uint64_t)i);
        }
    }
    return numbering_intern(num, &expr, NULL, id);
}

static bool has_weights(const struct msc_step *s) {
    for (int32_t k = 0; k < s->n_joints; k++) {
        for (int32_t i = 0; i < s->joints[k].n_operands; i++) {
            if (s->joints[k].operands[i].kind == MSC_OPERAND_WEIGHT) {
                return true;
            }
        }
    }
    return false;
}

// True if a step reads the same values as in the previous trial, under the same edits.
static bool is_as_before(const struct msc_numbering *num, const struct msc_step *s,
                         const struct msc_edit *const edits[], uint64_t noise_seed) {
    const struct msc_edit *const *before = num->previous_edits;
    if (!num->has_previous || noise_seed != num->previous_seed) {
        return false;
    }
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        if (edit_of(edits, s->weight_slots[i]) != edit_of(before, s->weight_slots[i])) {
            return false;
        }
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        if (num->is_changed[s->inputs[i]] ||
            edit_of(edits, s->slots[i]) != edit_of(before, s->slots[i])) {
            return false;
        }
    }
    return true;
}

static void set_value_number(struct msc_numbering *num, int32_t value,
                             struct msc_value_number number) {
    struct msc_value_number *at = &num->values[value];
    num->is_changed[value] = at->expr != number.expr || at->output != number.output;
    *at = number;
}

// Numbers the output of a DequantizeLinear that undoes a QuantizeLinear: as the value that the
// latter reads, under their quantisation.
static enum msc_status number_undone(struct msc_numbering *num, const struct msc_step *s,
                                     const struct msc_edit *const edits[], uint64_t noise_seed) {
    const struct msc_step *quantize = &num->plan->steps[s->undone];
    int32_t value = quantize->inputs[0];
    struct msc_value_number number = num->values[value];
    MSC_TRY(
        msc_numbering_edit(num, value, edit_of(edits, quantize->slots[0]), noise_seed, &number));
    MSC_TRY(number_under_quant(num, value, s->quant, 0, 0, &number));
    set_value_number(num, s->outputs[0], number);
    return MSC_OK;
}

static enum msc_status number_step(struct msc_numbering *num, int32_t index,
                                   const struct msc_edit *const edits[], uint64_t noise_seed) {
    const struct msc_step *s = &num->plan->steps[index];
    struct msc_value_number inputs[MSC_STEP_MAX_INPUTS];
    struct msc_expr expr = {.kind = MSC_EXPR_STEP,
                            .index = index,
                            .n_inputs = s->n_inputs,
                            .weights = MSC_NO_ID,
                            .hash = s->hash};
    if (s->kind == MSC_STEP_ALIAS) {
        set_value_number(num, s->outputs[0], num->values[s->inputs[0]]);
        return MSC_OK;
    }
    if (s->quant && !edit_of(edits, s->slots[0])) {
        return number_undone(num, s, edits, noise_seed);
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = num->values[s->inputs[i]];
        MSC_TRY(msc_numbering_edit(num, s->inputs[i], edit_of(edits, s->slots[i]), noise_seed,
                                   &inputs[i]));
    }
    expr.edit = moved_quant(num, s, inputs);
    expr.hash = expr.edit ? msc_hash_combine(s->hash, msc_hash_bytes("moved", 5)) : s->hash;
    for (int32_t i = 0; i < s->n_inputs; i++) {
        expr.hash = hash_number(num, expr.hash, inputs[i]);
    }
    if (has_weights(s)) {
        MSC_TRY(number_weights(num, index, edits, &expr.weights));
        expr.hash = msc_hash_combine(expr.hash, num->exprs[expr.weights].hash);
    }
    int32_t id;
    MSC_TRY(numbering_intern(num, &expr, inputs, &id));
    for (int32_t i = 0; i < s->n_outputs; i++) {
        set_value_number(num, s->outputs[i], (struct msc_value_number){id, i});
    }
    return MSC_OK;
}

enum msc_status msc_numbering_add_trial(struct msc_numbering *num,
                                        const struct msc_edit *const edits[], uint64_t noise_seed) {
    if (!num->has_previous) {
        MSC_TRY(number_inputs(num));
    }
    for (int32_t i = 0; i < num->plan->n_steps; i++) {
        const struct msc_step *s = &num->plan->steps[i];
        if (!is_as_before(num, s, edits, noise_seed)) {
            MSC_TRY(number_step(num, i, edits, noise_seed));
            continue;
        }
        for (int32_t k = 0; k < s->n_outputs; k++) {
            num->is_changed[s->outputs[k]] = false;
        }
    }
    num->has_previous = true;
    num->previous_edits = edits;
    num->previous_seed = noise_seed;
    return MSC_OK;
}
