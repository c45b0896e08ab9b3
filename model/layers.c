#include "model/layers.h"

#include "base/alloc.h"
#include "base/json.h"
#include "graph/packing.h"
#include "graph/wide.h"
#include "model/layers_internal.h"
#include "model/track.h"

#include <math.h>

enum { RUNS = 5 };

// What is measured of the joints of the unmodified graph. NaN: nothing.
struct measured {
    double *errors, *float_us; // [n_joints]
};

struct layers {
    struct msc_model *model;
    const struct msc_strategy *strategy;
    struct msc_dataset *sample;      // that the sides run
    struct msc_layers_side sides[2]; // unmodified, and under the strategy
    struct measured of_joints;
    const int32_t *slot_of_tensor; // [n_tensors] of the second side's graph; MSC_NO_ID: none
    bool *is_counted;              // [n_tensors] weights whose bytes an earlier layer has
    struct msc_arena arena;
};

// ---- Measuring ----------------------------------------------------------------------------------

static double *unknown(struct msc_arena *arena, size_t n) {
    double *list = msc_arena_array(arena, n + 1, sizeof list[0]);
    for (size_t i = 0; list && i < n; i++) {
        list[i] = NAN;
    }
    return list;
}

static enum msc_status measure_errors(struct layers *l) {
    const struct msc_track_side sides[2] = {{.model = l->model},
                                            {.model = l->model, .strategy = l->strategy}};
    struct msc_track *track = NULL;
    MSC_TRY(msc_track_make(&track, sides));
    for (size_t i = track->n_rows; i-- > 0;) { // the first output of a joint counts
        const struct msc_track_row *row = &track->rows[i];
        double error = row->snr_db == INFINITY ? 0.0 : pow(10.0, -row->snr_db / 20.0);
        int32_t joint = msc_graph_tensor(l->model->graph, row->tensor)->producer;
        l->of_joints.errors[joint] = row->n > 0 && isfinite(error) ? error : NAN;
    }
    msc_track_destroy(track);
    return MSC_OK;
}

static void take_float_times(struct layers *l) {
    const struct msc_plan *plan = l->sides[0].plan;
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *step = &plan->steps[i];
        int32_t joint = step->n_joints > 0
                            ? msc_graph_find_joint(l->model->graph, step->joints[0].joint->name)
                            : MSC_NO_ID;
        if (joint != MSC_NO_ID) {
            double before = l->of_joints.float_us[joint];
            l->of_joints.float_us[joint] = (isnan(before) ? 0.0 : before) + l->sides[0].least_us[i];
        }
    }
}

static enum msc_status measure_times(struct layers *l) {
    const struct msc_dataset *data = l->model->dataset;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_dataset_create_part(&l->sample, data, 0, msc_dataset_batch_samples(data, 0)));
    for (int k = 0; status == MSC_OK && k < 2; k++) {
        status = msc_layers__measure(&l->sides[k], l->model, k == 0 ? NULL : l->strategy, l->sample,
                                     RUNS, &l->arena);
    }
    return status;
}

// ---- Describing ---------------------------------------------------------------------------------

static enum msc_status find_slots(struct layers *l) {
    const struct msc_graph *g = l->sides[1].graph;
    const struct msc_sites *sites = msc_evaluator_sites(l->sides[1].runner.ev);
    size_t n = (size_t)msc_graph_n_tensors(g);
    int32_t *slots = msc_arena_array(&l->arena, n + 1, sizeof slots[0]);
    l->is_counted = msc_arena_array(&l->arena, n + 1, sizeof l->is_counted[0]);
    MSC_TRY(MSC_ALLOCATED(slots && l->is_counted));
    for (size_t i = 0; i < n; i++) {
        slots[i] = MSC_NO_ID;
    }
    for (int32_t slot = sites->n_site_slots; slot-- > 0;) {
        if (sites->slots[slot].kind == MSC_SITE_WEIGHT) {
            slots[sites->slots[slot].tensor] = slot;
        }
    }
    l->slot_of_tensor = slots;
    return MSC_OK;
}

// Adds the bytes of a joint's weights that no earlier layer has counted.
static void add_bytes(double *bytes, double *float_bytes, struct layers *l, int32_t joint) {
    const struct msc_graph *g = l->sides[1].graph, *whole = l->model->graph;
    const struct msc_target *target = msc_strategy_scheme(l->strategy).target;
    const struct msc_joint *j = msc_graph_joint(g, joint);
    for (int32_t i = 0; i < j->n_weights; i++) {
        int32_t tensor = j->weights[i].tensor;
        const struct msc_tensor *t = msc_graph_tensor(g, tensor);
        int32_t before = msc_graph_find_tensor(whole, t->name);
        int64_t n = msc_tensor_n_elements(t);
        const struct msc_quant *q =
            msc_edit_quant(msc_layers__edit(&l->sides[1], l->slot_of_tensor[tensor]));
        if (!l->is_counted[tensor]) {
            *bytes += q ? msc_packed_weight_bytes(g, tensor, q, target)
                        : (double)n * (double)msc_graph_own_bytes(g, tensor);
            *float_bytes += before == MSC_NO_ID
                                ? 0.0
                                : (double)msc_tensor_n_elements(msc_graph_tensor(whole, before)) *
                                      (double)msc_graph_own_bytes(whole, before);
            l->is_counted[tensor] = true;
        }
    }
}

static double bits_of(const struct msc_quant *q) {
    return !q                          ? NAN
           : q->type == MSC_DTYPE_NONE ? (double)q->bits
                                       : 8.0 * (double)msc_dtype_bytes(q->type);
}

// Bits of the first quantised operand of a kind.
static double operand_bits(const struct layers *l, int32_t joint, enum msc_site_kind kind) {
    const struct msc_sites *sites = msc_evaluator_sites(l->sides[1].runner.ev);
    double bits = NAN;
    for (int32_t slot = 0; isnan(bits) && slot < sites->n_site_slots; slot++) {
        if (sites->slots[slot].joint == joint && sites->slots[slot].kind == kind) {
            bits = bits_of(msc_edit_quant(msc_layers__edit(&l->sides[1], slot)));
        }
    }
    return bits;
}

static enum msc_status add_known(cJSON *object, const char *key, double value) {
    return isfinite(value) ? msc_json_add_number(object, key, value) : MSC_OK;
}

static enum msc_status describe(cJSON *object, struct layers *l, const struct msc_step *step,
                                double us) {
    const struct msc_graph *g = l->sides[1].graph;
    const struct msc_joint *anchor = step->joints[0].joint;
    int32_t own = msc_graph_find_joint(g, anchor->name);
    int32_t whole = msc_graph_find_joint(l->model->graph, anchor->name);
    double bytes = 0.0, float_bytes = 0.0;
    for (int32_t i = 0; i < step->n_joints; i++) {
        int32_t joint = msc_graph_find_joint(g, step->joints[i].joint->name);
        if (joint != MSC_NO_ID) {
            add_bytes(&bytes, &float_bytes, l, joint);
        }
    }
    MSC_TRY(msc_json_add_text(object, "joint", anchor->name));
    MSC_TRY(msc_json_add_text(object, "op", msc_op_info(anchor->op)->name));
    if (own != MSC_NO_ID) {
        MSC_TRY(add_known(object, "weight_bits", operand_bits(l, own, MSC_SITE_WEIGHT)));
        MSC_TRY(add_known(object, "activation_bits", operand_bits(l, own, MSC_SITE_ACTIVATION)));
    }
    MSC_TRY(msc_json_add_number(object, "bytes", bytes));
    MSC_TRY(msc_json_add_number(object, "float_bytes", float_bytes));
    MSC_TRY(msc_json_add_number(object, "us", us));
    if (whole != MSC_NO_ID) {
        MSC_TRY(add_known(object, "error", l->of_joints.errors[whole]));
        MSC_TRY(add_known(object, "float_us", l->of_joints.float_us[whole]));
    }
    return MSC_OK;
}

static enum msc_status add_layers(cJSON *list, struct layers *l) {
    const struct msc_plan *plan = l->sides[1].plan;
    for (int32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].n_joints > 0) {
            cJSON *object = cJSON_CreateObject();
            MSC_TRY(msc_json_push(list, object));
            MSC_TRY(describe(object, l, &plan->steps[i], l->sides[1].least_us[i]));
        }
    }
    return MSC_OK;
}

static enum msc_status fill(cJSON *object, struct layers *l) {
    cJSON *layers = cJSON_CreateArray(), *list;
    MSC_TRY(msc_json_add(object, "layers", layers));
    MSC_TRY(
        msc_json_add_number(object, "samples", (double)msc_dataset_n_samples(l->model->dataset)));
    MSC_TRY(msc_json_add_number(object, "runs", RUNS));
    MSC_TRY(msc_json_add_number(object, "other_us", l->sides[1].least_other_us));
    MSC_TRY(msc_json_add_number(object, "float_other_us", l->sides[0].least_other_us));
    MSC_TRY(find_slots(l));
    MSC_TRY(add_layers(layers, l));
    MSC_TRY(msc_json_add(object, "weights", list = cJSON_CreateArray()));
    MSC_TRY(msc_layers__weights(list, &l->sides[1]));
    MSC_TRY(msc_json_add(object, "activations", list = cJSON_CreateArray()));
    return msc_layers__activations(list, l->model, l->strategy, &l->sides[1]);
}

enum msc_status msc_model_layers(struct cJSON **out, struct msc_model *model,
                                 const struct msc_strategy *strategy) {
    struct layers l = {.model = model, .strategy = strategy};
    size_t n = (size_t)msc_graph_n_joints(model->graph);
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    l.of_joints =
        (struct measured){.errors = unknown(&l.arena, n), .float_us = unknown(&l.arena, n)};
    MSC_TRY_OUT(MSC_ALLOCATED(object && l.of_joints.errors && l.of_joints.float_us));
    MSC_TRY_OUT(measure_errors(&l));
    MSC_TRY_OUT(measure_times(&l));
    take_float_times(&l);
    MSC_TRY_OUT(fill(object, &l));
    *out = object;
    object = NULL;
out:
    cJSON_Delete(object);
    msc_layers__finish(&l.sides[0]);
    msc_layers__finish(&l.sides[1]);
    msc_dataset_destroy(l.sample);
    msc_arena_finish(&l.arena);
    return status;
}
