// Measures the time of each step of a network.
#include "model/layers_internal.h"

#include "base/alloc.h"

static void note_time(void *payload, const struct msc_plan *plan, int32_t step, int32_t value,
                      uint64_t ns) {
    struct msc_layers_side *side = payload;
    (void)value;
    bool is_layer = step != MSC_NO_ID && plan->steps[step].n_joints > 0;
    *(is_layer ? &side->now_us[step] : &side->now_other_us) += (double)ns / 1000.0;
}

static double lesser(double least, double now, bool is_first) {
    return is_first || now < least ? now : least;
}

static enum msc_status run_once(struct msc_layers_side *side, bool is_first) {
    double whole_us = 0.0;
    for (int32_t i = 0; i < side->plan->n_steps; i++) {
        side->now_us[i] = 0.0;
    }
    side->now_other_us = 0.0;
    MSC_TRY(msc_model__runner_run(&side->runner, &whole_us));
    for (int32_t i = 0; i < side->plan->n_steps; i++) {
        side->least_us[i] = lesser(side->least_us[i], side->now_us[i], is_first);
    }
    side->least_other_us = lesser(side->least_other_us, side->now_other_us, is_first);
    return MSC_OK;
}

enum msc_status msc_layers__measure(struct msc_layers_side *side, const struct msc_model *model,
                                    const struct msc_strategy *strategy,
                                    const struct msc_dataset *sample, int n_runs,
                                    struct msc_arena *arena) {
    *side = (struct msc_layers_side){.timer = {.ran = note_time, .payload = side}};
    side->run = (struct msc_model_run){.strategy = strategy, .timer = &side->timer};
    MSC_TRY(msc_model__find_wanted(model, &side->run));
    MSC_TRY(msc_model__runner_open(&side->runner, model, sample, &side->run));
    side->graph = side->runner.pruned ? side->runner.pruned : model->graph;
    side->plan = msc_evaluator_plan(side->runner.ev, 0);
    side->now_us = msc_arena_array(arena, (size_t)side->plan->n_steps + 1, sizeof(double));
    side->least_us = msc_arena_array(arena, (size_t)side->plan->n_steps + 1, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(side->now_us && side->least_us));
    MSC_TRY(run_once(side, true)); // packs the weights
    for (int i = 0; i < n_runs; i++) {
        MSC_TRY(run_once(side, i == 0));
    }
    return MSC_OK;
}

void msc_layers__finish(struct msc_layers_side *side) {
    msc_model__runner_close(&side->runner);
    msc_model_run_finish(&side->run);
}

const struct msc_edit *msc_layers__edit(const struct msc_layers_side *side, int32_t slot) {
    const struct msc_sites *sites = msc_evaluator_sites(side->runner.ev);
    return slot == MSC_NO_ID ? NULL
                             : msc_edit_at_slot(side->runner.edits[slot], &sites->slots[slot]);
}
