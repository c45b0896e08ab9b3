// Classes of one call: what several trials have in common, found by hashing.
//
// A class is a piece of work on any batch of one plan: the input batch, a step over given input
// classes with given packed weights, a step's packed weights under an edit, or a value under a
// quantisation. Trials that agree on everything a step depends on share its class.
//
// A value under a quantisation that a moving step makes (msc_backend_def.moves) is that step over
// its inputs under the same quantisation: bytes are moved, and what makes the inputs can write
// them.
#ifndef MSC_KERNELS_ENGINE_CLASSES_H
#define MSC_KERNELS_ENGINE_CLASSES_H

#include "kernels/engine/evaluator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum msc_class_kind {
    MSC_CLASS_INPUT,
    MSC_CLASS_WEIGHTS,
    MSC_CLASS_QUANTIZE,
    MSC_CLASS_STEP,
};

struct msc_class_ref { // one output of a class
    int32_t id;
    int32_t output;
};

struct msc_class {
    struct msc_hash hash;
    enum msc_class_kind kind;
    int32_t index; // graph input, or step; for QUANTIZE the value
    int32_t n_inputs;
    int32_t first_input; // in msc_classes.inputs
    int32_t weights;     // class id, or MSC_NO_ID
    // Borrowed for the call. Of WEIGHTS the trial's edits, by slot; NULL: the float model.
    const struct msc_quant *const *slot_edits;
    const struct msc_quant *edit; // of QUANTIZE; of a STEP that moves integers, theirs
    uint64_t noise_seed;          // of QUANTIZE
};

struct msc_classes {
    const struct msc_plan *plan;
    struct msc_class *items;
    size_t n, capacity;
    struct msc_class_ref *inputs;
    size_t n_inputs, inputs_capacity;
    int32_t *table; // open addressing over hashes: class id + 1, 0 empty
    size_t table_size;
    struct msc_class_ref *values; // [n_values] of the trial at hand
    // What the trial before it had, so that only what differs is hashed anew.
    bool has_previous;
    const struct msc_quant *const *previous_edits;
    uint64_t previous_seed;
    bool *is_changed; // [n_values]
};

enum msc_status msc_classes_init(struct msc_classes *c, const struct msc_plan *plan);
void msc_classes_finish(struct msc_classes *c);
void msc_classes_clear(struct msc_classes *c); // for the next call

// Finds or makes the classes of one trial; afterwards c->values says what each value of the plan is
// for it. `edits` [n_slots], or NULL for the float model, are borrowed until the next clear;
// noise_seed as in msc_eval_trial.
enum msc_status msc_classes_add_trial(struct msc_classes *c, const struct msc_quant *const edits[],
                                      uint64_t noise_seed);

// The quantisation whose integers a class gives; NULL where it gives plain values.
static inline const struct msc_quant *msc_class_integers(const struct msc_classes *c,
                                                         struct msc_class_ref ref) {
    const struct msc_class *k = &c->items[ref.id];
    return k->edit && msc_quant_is_integer(k->edit) ? k->edit : NULL;
}

#ifdef __cplusplus
}
#endif

#endif
