// Global value numbering for one call of the evaluator: finds by hashing which computations several
// trials share.
//
// An expression is a computation on any batch of one plan: reading a graph input, a step over
// inputs of given value numbers with given packed weights, packing a step's weights under edits, or
// a value under a mask or a quantisation. A value number names one output of an expression. Trials
// that agree on everything a step depends on share its expression, and so the value numbers of its
// outputs.
//
// If a step only moves data (msc_backend_def.is_movement) and its output is to be quantised, its
// inputs are quantised in the same way instead, and the step moves their bytes. The steps that make
// those inputs can then write the integers directly. A step also moves bytes if all its inputs
// already have one common quantisation. A value that is to be quantised twice in the same way is
// quantised once. Neither applies to a dynamic quantisation, whose scale follows from the value
// itself.
//
// If a model quantises values itself, with QuantizeLinear and DequantizeLinear, the output of the
// latter is numbered as the quantised value. So steps read and write integers as they do if a trial
// has the same quantisations as edits.
#ifndef MSC_KERNELS_ENGINE_NUMBERING_H
#define MSC_KERNELS_ENGINE_NUMBERING_H

#include "base/hash_index.h"
#include "kernels/engine/evaluator.h"

enum msc_expr_kind {
    MSC_EXPR_INPUT,
    MSC_EXPR_WEIGHTS,
    MSC_EXPR_MASK,
    MSC_EXPR_QUANTIZE,
    MSC_EXPR_STEP,
};

struct msc_value_number { // one output of an expression
    int32_t expr;
    int32_t output;
};

struct msc_expr {
    struct msc_hash hash;
    enum msc_expr_kind kind;
    int32_t index; // index of the graph input or step; for MASK and QUANTIZE, of the value
    int32_t n_inputs;
    int32_t first_input; // index in msc_numbering.inputs of the first input
    int32_t weights;     // expression id of the packed weights, or MSC_NO_ID
    // For WEIGHTS: the trial's edits by slot, borrowed for the call; NULL: the float model.
    const struct msc_edit *const *slot_edits;
    const struct msc_channel_mask *mask; // for MASK
    // For QUANTIZE, and for a STEP that moves integers: the quantisation of the result.
    const struct msc_quant *edit;
    uint64_t noise_seed; // for QUANTIZE
};

struct msc_numbering {
    const struct msc_plan *plan;
    struct msc_expr *exprs;
    size_t n_exprs, exprs_capacity;
    struct msc_value_number *inputs;
    size_t n_inputs, inputs_capacity;
    struct msc_hash_index index;     // finds `exprs` by hash
    struct msc_value_number *values; // [n_values] of the current trial
    // The edits of the previous trial. A value is hashed again only if its edits or inputs have
    // changed.
    bool has_previous;
    const struct msc_edit *const *previous_edits;
    uint64_t previous_seed;
    bool *is_changed; // [n_values] the value's number differs from the previous trial's
};

enum msc_status msc_numbering_init(struct msc_numbering *num, const struct msc_plan *plan);
void msc_numbering_finish(struct msc_numbering *num);
void msc_numbering_clear(struct msc_numbering *num); // called before the next evaluation

// Numbers the values of one trial: num->values then has the number of each value of the plan.
// `edits` [n_slots], or NULL for the float model, are borrowed until the next clear. For noise_seed
// see msc_eval_trial.
enum msc_status msc_numbering_add_trial(struct msc_numbering *num,
                                        const struct msc_edit *const edits[], uint64_t noise_seed);

// Replaces *number, the number of `value` in the trial added last, by the number of the value under
// one more edit.
enum msc_status msc_numbering_edit(struct msc_numbering *num, int32_t value,
                                   const struct msc_edit *edit, uint64_t noise_seed,
                                   struct msc_value_number *number);

// The edit under which a step's weight slot `i` is packed if a trial has these edits (or NULL, for
// the float model).
static inline const struct msc_edit *
msc_numbering_weight_edit(const struct msc_step *s, int32_t i,
                          const struct msc_edit *const edits[]) {
    const struct msc_edit *edit = edits ? edits[s->weight_slots[i]] : NULL;
    return edit ? edit : s->own_edits[i];
}

// The integer quantisation of the value that a number names; NULL for float32 values.
static inline const struct msc_quant *msc_numbering_integers(const struct msc_numbering *num,
                                                             struct msc_value_number number) {
    const struct msc_expr *expr = &num->exprs[number.expr];
    return expr->edit && msc_quant_is_integer(expr->edit) ? expr->edit : NULL;
}

#endif
