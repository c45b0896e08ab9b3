#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "kernels/engine/remainder.h"

int32_t msc_schedule__target_value(const struct msc_schedule *s, const struct msc_plan *plan,
                                   int32_t i) {
    const struct msc_sink *sink = s->job.sink;
    if (i >= s->n_live_out) {
        int32_t slot = i - s->n_live_out;
        bool is_there = slot < plan->sites.n_slots;
        bool is_wanted = is_there && (!sink->wants_slot ||
                                      sink->wants_slot(sink->payload, plan->slot_ids[slot]));
        return is_wanted ? plan->slot_values[slot] : MSC_NO_ID;
    }
    if (sink->wants_slot && !sink->batch && !msc_remainder_is_asked(plan, sink)) {
        return MSC_NO_ID;
    }
    bool is_asked = i < plan->n_wanted || plan->wants_remainder || sink->slot;
    return is_asked && i < plan->n_live_out ? plan->live_out[i] : MSC_NO_ID;
}

// Sets the numbers of live-out values and of targets to their maxima over the plans.
static void count_targets(struct msc_schedule *s) {
    int32_t n_slots = 0;
    s->n_live_out = 0;
    for (int i = 0; i < s->options.n_plans; i++) {
        const struct msc_plan *plan = s->plans[i].plan;
        s->n_live_out = plan->n_live_out > s->n_live_out ? plan->n_live_out : s->n_live_out;
        n_slots = plan->sites.n_slots > n_slots ? plan->sites.n_slots : n_slots;
    }
    s->n_targets = s->n_live_out + (s->job.sink->slot ? n_slots : 0);
}

// Counts the steps and MACs that the targets need: goes backwards over the plan's steps.
static enum msc_status count_asked(const struct msc_schedule *s, struct msc_scheduled_plan *p) {
    const struct msc_plan *plan = p->plan;
    bool *is_needed = msc_alloc_zero((size_t)plan->n_values + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(is_needed));
    for (int32_t i = 0; i < s->n_targets; i++) {
        int32_t value = msc_schedule__target_value(s, plan, i);
        is_needed[value == MSC_NO_ID ? plan->n_values : value] = true;
    }
    p->n_steps_asked = 0;
    p->macs_asked = 0;
    for (int32_t i = plan->n_steps - 1; i >= 0; i--) {
        const struct msc_step *step = &plan->steps[i];
        bool is_asked = false;
        for (int32_t k = 0; k < step->n_outputs; k++) {
            is_asked = is_asked || is_needed[step->outputs[k]];
        }
        for (int32_t k = 0; is_asked && k < step->n_inputs; k++) {
            is_needed[step->inputs[k]] = true;
        }
        p->n_steps_asked += is_asked && step->kind != MSC_STEP_ALIAS;
        p->macs_asked += is_asked ? step->macs : 0;
    }
    msc_free(is_needed);
    return MSC_OK;
}

// The value number of a trial's target. For wanted tensors, it includes the edits that apply when
// sinks read them.
static enum msc_status number_target(const struct msc_schedule *s, struct msc_scheduled_plan *p,
                                     const struct msc_eval_trial *trial, int32_t i,
                                     struct msc_value_number *number) {
    int32_t value = msc_schedule__target_value(s, p->plan, i);
    int32_t slot =
        i < s->n_live_out && i < p->plan->n_wanted ? p->plan->live_out_slots[i] : MSC_NO_ID;
    *number =
        value == MSC_NO_ID ? (struct msc_value_number){MSC_NO_ID, 0} : p->numbering.values[value];
    return value == MSC_NO_ID || slot == MSC_NO_ID || !trial->edits
               ? MSC_OK
               : msc_numbering_edit(&p->numbering, value, trial->edits[slot], trial->noise_seed,
                                    number);
}

static enum msc_status number_under_plan(struct msc_schedule *s, struct msc_scheduled_plan *p) {
    const struct msc_job *job = &s->job;
    msc_numbering_clear(&p->numbering);
    p->ends.n = 0;
    MSC_TRY(count_asked(s, p));
    MSC_TRY(msc_grow(&p->targets, &p->targets_capacity, job->n_trials * (size_t)s->n_targets + 1,
                     sizeof(p->targets[0])));
    for (size_t t = 0; t < job->n_trials; t++) {
        struct msc_value_number *targets = msc_schedule__targets(s, p, t);
        MSC_TRY(msc_numbering_add_trial(&p->numbering, job->trials[t].edits,
                                        job->trials[t].noise_seed));
        for (int32_t i = 0; i < s->n_targets; i++) {
            MSC_TRY(number_target(s, p, &job->trials[t], i, &targets[i]));
        }
        MSC_TRY(msc_schedule__is_onward(s) ? msc_schedule__list_ends(p, &job->trials[t]) : MSC_OK);
    }
    return MSC_OK;
}

enum msc_status msc_schedule__number_trials(struct msc_schedule *s) {
    count_targets(s);
    for (int i = 0; i < s->options.n_plans; i++) {
        MSC_TRY(number_under_plan(s, &s->plans[i]));
    }
    return MSC_OK;
}
