#include "kernels/engine/classes.h"

#include "base/alloc.h"

#include <string.h>

enum { FIRST_TABLE = 1024 };

enum msc_status msc_classes_init(struct msc_classes *c, const struct msc_plan *plan) {
    *c = (struct msc_classes){.plan = plan, .table_size = FIRST_TABLE};
    c->table = msc_alloc_zero(FIRST_TABLE, sizeof(c->table[0]));
    c->values = msc_alloc_zero((size_t)plan->n_values + 1, sizeof(c->values[0]));
    c->is_changed = msc_alloc_zero((size_t)plan->n_values + 1, sizeof(c->is_changed[0]));
    if (!c->table || !c->values || !c->is_changed) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluation");
    }
    return MSC_OK;
}

void msc_classes_finish(struct msc_classes *c) {
    msc_free(c->items);
    msc_free(c->inputs);
    msc_free(c->table);
    msc_free(c->values);
    msc_free(c->is_changed);
    *c = (struct msc_classes){0};
}

void msc_classes_clear(struct msc_classes *c) {
    c->n = 0;
    c->n_inputs = 0;
    c->has_previous = false;
    memset(c->table, 0, c->table_size * sizeof(c->table[0]));
}

static size_t find_place(const struct msc_classes *c, struct msc_hash hash) {
    size_t at = hash.low & (c->table_size - 1);
    while (c->table[at] != 0 && !msc_hash_equal(c->items[c->table[at] - 1].hash, hash)) {
        at = (at + 1) & (c->table_size - 1);
    }
    return at;
}

static enum msc_status grow_table(struct msc_classes *c) {
    int32_t *table = msc_alloc_zero(c->table_size * 2, sizeof(table[0]));
    if (!table) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluation");
    }
    msc_free(c->table);
    c->table = table;
    c->table_size *= 2;
    for (size_t i = 0; i < c->n; i++) {
        c->table[find_place(c, c->items[i].hash)] = (int32_t)i + 1;
    }
    return MSC_OK;
}

// The class with this hash, made from `model` and its inputs when it is new.
static enum msc_status intern(struct msc_classes *c, const struct msc_class *model,
                              const struct msc_class_ref inputs[], int32_t *id) {
    size_t place = find_place(c, model->hash);
    if (c->table[place] != 0) {
        *id = c->table[place] - 1;
        return MSC_OK;
    }
    MSC_TRY(msc_grow(&c->items, &c->capacity, c->n + 1, sizeof(c->items[0])));
    MSC_TRY(msc_grow(&c->inputs, &c->inputs_capacity, c->n_inputs + (size_t)model->n_inputs,
                     sizeof(c->inputs[0])));
    struct msc_class *k = &c->items[c->n];
    *k = *model;
    k->first_input = (int32_t)c->n_inputs;
    for (int32_t i = 0; i < model->n_inputs; i++) {
        c->inputs[c->n_inputs++] = inputs[i];
    }
    *id = (int32_t)c->n++;
    c->table[place] = *id + 1;
    return c->n * 2 > c->table_size ? grow_table(c) : MSC_OK;
}

static struct msc_hash hash_ref(const struct msc_classes *c, struct msc_hash h,
                                struct msc_class_ref ref) {
    h = msc_hash_combine(h, c->items[ref.id].hash);
    return ref.output > 0 ? msc_hash_add_u64(h, (uint64_t)ref.output) : h;
}

static enum msc_status add_inputs(struct msc_classes *c) {
    for (int32_t v = 0; v < c->plan->n_values; v++) {
        if (c->plan->values[v].input == MSC_NO_ID) {
            continue;
        }
        struct msc_class k = {
            .kind = MSC_CLASS_INPUT, .index = c->plan->values[v].input, .weights = MSC_NO_ID};
        k.hash = msc_hash_bytes("input", 5);
        k.hash = msc_hash_add_u64(k.hash, (uint64_t)(uint32_t)k.index);
        c->values[v].output = 0;
        MSC_TRY(intern(c, &k, NULL, &c->values[v].id));
    }
    return MSC_OK;
}

static enum msc_status quantize(struct msc_classes *c, int32_t value, const struct msc_quant *edit,
                                uint64_t noise_seed, struct msc_class_ref *ref) {
    struct msc_class k = {.kind = MSC_CLASS_QUANTIZE,
                          .noise_seed = noise_seed,
                          .index = value,
                          .n_inputs = 1,
                          .weights = MSC_NO_ID,
                          .edit = edit};
    struct msc_class_ref from = *ref;
    k.hash = hash_ref(c, msc_hash_combine(msc_hash_bytes("quantize", 8), edit->hash), from);
    k.hash = noise_seed ? msc_hash_add_u64(k.hash, noise_seed) : k.hash;
    ref->output = 0;
    return intern(c, &k, &from, &ref->id);
}

// Moving steps in a row that integers are led through. A long row of them (each joining something
// to the last) would else be walked again by every reader.
enum { MOST_MOVES = 4 };
// Inputs may have so many times the elements of the output: more are not worth quantising for it.
enum { MOST_INPUTS = 5 };

static bool is_moved(const struct msc_classes *c, const struct msc_quant *edit, uint64_t noise_seed,
                     struct msc_class_ref ref) {
    const struct msc_class *k = &c->items[ref.id];
    const struct msc_backend *b = c->plan->backend;
    if (k->kind != MSC_CLASS_STEP || k->edit || noise_seed != 0 || !msc_quant_is_integer(edit) ||
        !b->def->moves) {
        return false;
    }
    const struct msc_step *s = &c->plan->steps[k->index];
    size_t out = c->plan->values[s->outputs[0]].n_bytes, in = 0;
    for (int32_t i = 0; i < s->n_inputs; i++) {
        in += c->plan->values[s->inputs[i]].n_bytes;
        if (c->items[c->inputs[k->first_input + i].id].edit) {
            return false; // it is quantised for this step already
        }
    }
    return s->n_outputs == 1 && in <= MOST_INPUTS * out && b->def->moves(b, s);
}

// What `ref` gives for `value`, under an edit.
static enum msc_status add_quantize(struct msc_classes *c, int32_t value,
                                    const struct msc_quant *edit, uint64_t noise_seed, int n_moves,
                                    struct msc_class_ref *ref) {
    if (n_moves == MOST_MOVES || !is_moved(c, edit, noise_seed, *ref)) {
        return quantize(c, value, edit, noise_seed, ref);
    }
    struct msc_class k = c->items[ref->id];
    const struct msc_step *s = &c->plan->steps[k.index];
    struct msc_class_ref inputs[MSC_STEP_MAX_INPUTS];
    k.hash = msc_hash_combine(s->hash, msc_hash_bytes("moved", 5));
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = c->inputs[k.first_input + i];
        MSC_TRY(add_quantize(c, s->inputs[i], edit, 0, n_moves + 1, &inputs[i]));
        k.hash = hash_ref(c, k.hash, inputs[i]);
    }
    if (k.weights != MSC_NO_ID) {
        k.hash = msc_hash_combine(k.hash, c->items[k.weights].hash);
    }
    k.edit = edit;
    return intern(c, &k, inputs, &ref->id);
}

static const struct msc_quant *edit_of(const struct msc_quant *const edits[], int32_t slot) {
    return edits && slot != MSC_NO_ID ? edits[slot] : NULL;
}

static enum msc_status add_weights(struct msc_classes *c, int32_t step,
                                   const struct msc_quant *const edits[], int32_t *id) {
    const struct msc_step *s = &c->plan->steps[step];
    struct msc_class k = {
        .kind = MSC_CLASS_WEIGHTS, .index = step, .weights = MSC_NO_ID, .slot_edits = edits};
    k.hash = msc_hash_combine(msc_hash_bytes("weights", 7), s->hash);
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        const struct msc_quant *edit = edit_of(edits, s->weight_slots[i]);
        if (edit) {
            k.hash = msc_hash_add_u64(msc_hash_combine(k.hash, edit->hash), (uint64_t)i);
        }
    }
    return intern(c, &k, NULL, id);
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

// Whether a step reads just what it read in the previous trial, under the same edits.
static bool is_as_before(const struct msc_classes *c, const struct msc_step *s,
                         const struct msc_quant *const edits[], uint64_t noise_seed) {
    const struct msc_quant *const *before = c->previous_edits;
    if (!c->has_previous || noise_seed != c->previous_seed) {
        return false;
    }
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        if (edit_of(edits, s->weight_slots[i]) != edit_of(before, s->weight_slots[i])) {
            return false;
        }
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        if (c->is_changed[s->inputs[i]] ||
            edit_of(edits, s->slots[i]) != edit_of(before, s->slots[i])) {
            return false;
        }
    }
    return true;
}

static void set_value(struct msc_classes *c, int32_t value, struct msc_class_ref ref) {
    struct msc_class_ref *at = &c->values[value];
    c->is_changed[value] = at->id != ref.id || at->output != ref.output;
    *at = ref;
}

static enum msc_status add_step(struct msc_classes *c, int32_t index,
                                const struct msc_quant *const edits[], uint64_t noise_seed) {
    const struct msc_step *s = &c->plan->steps[index];
    struct msc_class_ref inputs[MSC_STEP_MAX_INPUTS];
    struct msc_class k = {.kind = MSC_CLASS_STEP,
                          .index = index,
                          .n_inputs = s->n_inputs,
                          .weights = MSC_NO_ID,
                          .hash = s->hash};
    if (s->kind == MSC_STEP_ALIAS) {
        set_value(c, s->outputs[0], c->values[s->inputs[0]]);
        return MSC_OK;
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = c->values[s->inputs[i]];
        const struct msc_quant *edit = edit_of(edits, s->slots[i]);
        if (edit) {
            MSC_TRY(add_quantize(c, s->inputs[i], edit, noise_seed, 0, &inputs[i]));
        }
        k.hash = hash_ref(c, k.hash, inputs[i]);
    }
    if (has_weights(s)) {
        MSC_TRY(add_weights(c, index, edits, &k.weights));
        k.hash = msc_hash_combine(k.hash, c->items[k.weights].hash);
    }
    int32_t id;
    MSC_TRY(intern(c, &k, inputs, &id));
    for (int32_t i = 0; i < s->n_outputs; i++) {
        set_value(c, s->outputs[i], (struct msc_class_ref){id, i});
    }
    return MSC_OK;
}

enum msc_status msc_classes_add_trial(struct msc_classes *c, const struct msc_quant *const edits[],
                                      uint64_t noise_seed) {
    if (!c->has_previous) {
        MSC_TRY(add_inputs(c));
    }
    for (int32_t i = 0; i < c->plan->n_steps; i++) {
        const struct msc_step *s = &c->plan->steps[i];
        if (!is_as_before(c, s, edits, noise_seed)) {
            MSC_TRY(add_step(c, i, edits, noise_seed));
            continue;
        }
        for (int32_t k = 0; k < s->n_outputs; k++) {
            c->is_changed[s->outputs[k]] = false;
        }
    }
    c->has_previous = true;
    c->previous_edits = edits;
    c->previous_seed = noise_seed;
    return MSC_OK;
}
