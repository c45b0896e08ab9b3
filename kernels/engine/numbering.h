// Global value numbering of one call: what several trials have in common, found by hashing.
//
// An expression is a computation on any batch of one plan: the input batch, a step over inputs of
// given value numbers with given packed weights, a step's packed weights under edits, or a value
// under a mask or a quantisation. A value number names an output of one. Trials that agree on
// everything a step depends on share its expression, and with it the value numbers of its outputs.
//
// A value under a quantisation that data movement makes (msc_backend_def.is_movement) is that step
// over its inputs under the same quantisation: bytes are moved, and what makes the inputs can write
// them. Data movement whose inputs all come under one quantisation moves their bytes as well, and a
// value that is quantised twice in the same way is so once.
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
    int32_t index; // graph input, or step; for MASK and QUANTIZE the value
    int32_t n_inputs;
    int32_t first_input; // in msc_numbering.inputs
    int32_t weights;     // expression id, or MSC_NO_ID
    // Borrowed for the call. Of WEIGHTS the trial's edits, by slot; NULL: the float model.
    const struct msc_edit *const *slot_edits;
    const struct msc_channel_mask *mask; // of MASK
    const struct msc_quant *edit;        // of QUANTIZE; of a STEP that moves integers, theirs
    uint64_t noise_seed;                 // of QUANTIZE
};

struct msc_numbering {
    const struct msc_plan *plan;
    struct msc_expr *exprs;
    size_t n_exprs, exprs_capacity;
    struct msc_value_number *inputs;
    size_t n_inputs, inputs_capacity;
    struct msc_hash_index index;     // of `exprs`
    struct msc_value_number *values; // [n_values] of the trial at hand
    // What the trial before it had, so that only what differs is hashed anew.
    bool has_previous;
    const struct msc_edit *const *previous_edits;
    uint64_t previous_seed;
    bool *is_changed; // [n_values]
};

enum msc_status msc_numbering_init(struct msc_numbering *num, const struct msc_plan *plan);
void msc_numbering_finish(struct msc_numbering *num);
void msc_numbering_clear(struct msc_numbering *num); // for the next call

// Numbers the values of one trial: afterwards num->values has the number of each value of the plan.
// `edits` [n_slots], or NULL for the float model, are borrowed until the next clear; noise_seed as
// in msc_eval_trial.
enum msc_status msc_numbering_add_trial(struct msc_numbering *num,
                                        const struct msc_edit *const edits[], uint64_t noise_seed);

// *number, of `value` of the trial that was added last, becomes its number under one more edit.
enum msc_status msc_numbering_edit(struct msc_numbering *num, int32_t value,
                                   const struct msc_edit *edit, uint64_t noise_seed,
                                   struct msc_value_number *number);

// The quantisation whose integers a value number stands for; NULL where it stands for plain values.
static inline const struct msc_quant *msc_numbering_integers(const struct msc_numbering *num,
                                                             struct msc_value_number number) {
    const struct msc_expr *expr = &num->exprs[number.expr];
    return expr->edit && msc_quant_is_integer(expr->edit) ? expr->edit : NULL;
}

#endif
