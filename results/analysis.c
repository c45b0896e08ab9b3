#include "results/analysis.h"

#include "base/heap.h"

#include <math.h>
#include <string.h>

// The reference is a baseline or one of the first CANDIDATES trials after the baselines.
#define CANDIDATES 256
// In longer records, neighbours are counted in a sample of about this many trials.
#define COUNTED 20000

// The metric of the first objective, or NaN if the trial lacks it.
static double value_of(const struct msc_analysis *a, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    enum msc_trial_state state = outcome->state;
    bool is_result = msc_trial_state_is_result(state);
    double value = outcome->metrics[msc_record_goal(a->record)->objectives[0].metric];
    return is_result && line->repeat_of < 0 && isfinite(value) ? value : NAN;
}

// Counts the tasks in which two trials differ, up to `most` + 1. Lists the first `most` of these
// tasks in `tasks`.
static size_t count_changes(const struct msc_record *record, const struct msc_record_line *a,
                            const struct msc_record_line *b, size_t tasks[], size_t most) {
    const uint32_t *left = a->trial.proposal.choices, *right = b->trial.proposal.choices;
    size_t n_tasks = msc_record_space(record)->n_tasks, n = 0;
    for (size_t t = 0; t < n_tasks && n <= most; t++) {
        if (left[t] != right[t]) {
            if (n < most) {
                tasks[n] = t;
            }
            n++;
        }
    }
    return n;
}

// Counts the trials that differ from the candidate `of` in exactly one task.
static size_t count_neighbours(const struct msc_analysis *a, const struct msc_record_line *of) {
    size_t n = 0, task, each = 1 + msc_record_n_trials(a->record) / COUNTED;
    for (size_t i = 0; i < msc_record_n_trials(a->record); i += each) {
        const struct msc_record_line line = msc_record_trial(a->record, i);
        n += !isnan(value_of(a, &line)) && count_changes(a->record, of, &line, &task, 1) == 1;
    }
    return n;
}

static enum msc_status find_reference(struct msc_analysis *a) {
    size_t n = msc_record_space(a->record)->n_baselines + CANDIDATES, most = 0;
    n = n < msc_record_n_trials(a->record) ? n : msc_record_n_trials(a->record);
    size_t *counts = msc_arena_array(&a->arena, n + 1, sizeof *counts);
    MSC_TRY(MSC_ALLOCATED(counts));
    for (size_t i = 0; i < n; i++) {
        const struct msc_record_line line = msc_record_trial(a->record, i);
        counts[i] = isnan(value_of(a, &line)) ? 0 : 1 + count_neighbours(a, &line);
        most = counts[i] > most ? counts[i] : most;
    }
    for (size_t i = 0; i < n && !a->has_reference; i++) {
        if (counts[i] > 0 && 2 * counts[i] >= most) {
            a->has_reference = true;
            a->reference = msc_record_trial(a->record, i);
            a->reference_value = value_of(a, &a->reference);
        }
    }
    return MSC_OK;
}

// ---- Lists ------------------------------------------------------------------------------------

static bool is_greater_alone(const void *context, const void *x, const void *y) {
    const struct msc_analysis_alone *a = x, *b = y;
    double sign = *(const double *)context;
    return a->difference != b->difference ? sign * a->difference > sign * b->difference
                                          : a->id < b->id;
}

static bool is_greater_pair(const void *context, const void *x, const void *y) {
    const struct msc_analysis_pair *a = x, *b = y;
    (void)context;
    return fabs(a->interaction) != fabs(b->interaction)
               ? fabs(a->interaction) > fabs(b->interaction)
               : a->id < b->id;
}

static enum msc_status list_alone(struct msc_analysis *a) {
    struct msc_analysis_alone spare;
    double sign = msc_record_goal(a->record)->objectives[0].is_maximised ? -1.0 : 1.0;
    for (size_t i = 0; i < msc_record_n_trials(a->record); i++) {
        const struct msc_record_line line = msc_record_trial(a->record, i);
        double value = value_of(a, &line);
        size_t task = 0;
        if (!isnan(value) && count_changes(a->record, &a->reference, &line, &task, 1) == 1) {
            MSC_TRY(msc_grow(&a->alone, &a->alone_capacity, a->n_alone + 1, sizeof *a->alone));
            a->alone[a->n_alone++] =
                (struct msc_analysis_alone){.task = task,
                                            .choice = line.trial.proposal.choices[task],
                                            .id = line.trial.id,
                                            .value = value,
                                            .difference = value - a->reference_value};
        }
    }
    const struct msc_heap heap = {.elements = a->alone,
                                  .element_bytes = sizeof *a->alone,
                                  .spare = &spare,
                                  .is_before = is_greater_alone,
                                  .context = &sign};
    msc_heap_sort(&heap, a->n_alone);
    return MSC_OK;
}

// places[offsets[task] + choice] is the index in `alone` of the choice's effect. SIZE_MAX: the
// effect is unknown.
struct alone_places {
    size_t *offsets, *places;
};

static enum msc_status index_alone(struct alone_places *out, struct msc_analysis *a) {
    const struct msc_space *space = msc_record_space(a->record);
    size_t n = 0;
    out->offsets = msc_arena_array(&a->arena, space->n_tasks, sizeof *out->offsets);
    for (size_t t = 0; out->offsets && t < space->n_tasks; t++) {
        out->offsets[t] = n;
        n += space->tasks[t].n_choices;
    }
    out->places = msc_arena_array(&a->arena, n, sizeof *out->places);
    MSC_TRY(MSC_ALLOCATED(out->offsets && out->places));
    for (size_t i = 0; i < n; i++) {
        out->places[i] = SIZE_MAX;
    }
    for (size_t i = 0; i < a->n_alone; i++) {
        out->places[out->offsets[a->alone[i].task] + a->alone[i].choice] = i;
    }
    return MSC_OK;
}

static enum msc_status list_pairs(struct msc_analysis *a) {
    struct alone_places of;
    struct msc_analysis_pair spare;
    MSC_TRY(index_alone(&of, a));
    for (size_t i = 0; i < msc_record_n_trials(a->record); i++) {
        const struct msc_record_line line = msc_record_trial(a->record, i);
        const uint32_t *choices = line.trial.proposal.choices;
        double value = value_of(a, &line);
        size_t tasks[2], alone[2];
        if (isnan(value) || count_changes(a->record, &a->reference, &line, tasks, 2) != 2) {
            continue;
        }
        for (size_t k = 0; k < 2; k++) {
            alone[k] = of.places[of.offsets[tasks[k]] + choices[tasks[k]]];
        }
        if (alone[0] == SIZE_MAX || alone[1] == SIZE_MAX) {
            continue;
        }
        MSC_TRY(msc_grow(&a->pairs, &a->pairs_capacity, a->n_pairs + 1, sizeof *a->pairs));
        double difference = value - a->reference_value;
        double sum = a->alone[alone[0]].difference + a->alone[alone[1]].difference;
        a->pairs[a->n_pairs++] = (struct msc_analysis_pair){.alone = {alone[0], alone[1]},
                                                            .id = line.trial.id,
                                                            .value = value,
                                                            .difference = difference,
                                                            .sum = sum,
                                                            .interaction = difference - sum};
    }
    const struct msc_heap heap = {.elements = a->pairs,
                                  .element_bytes = sizeof *a->pairs,
                                  .spare = &spare,
                                  .is_before = is_greater_pair};
    msc_heap_sort(&heap, a->n_pairs);
    return MSC_OK;
}

enum msc_status msc_analysis_make(struct msc_analysis *out, const struct msc_record *record) {
    const struct msc_space *space = msc_record_space(record);
    *out = (struct msc_analysis){
        .record = record,
        .metric = space->metrics[msc_record_goal(record)->objectives[0].metric].name,
    };
    for (size_t t = 0; t < space->n_tasks; t++) {
        out->n_choices += space->tasks[t].n_choices - 1;
    }
    enum msc_status status = find_reference(out);
    if (status == MSC_OK && out->has_reference) {
        status = list_alone(out);
    }
    if (status == MSC_OK && out->has_reference) {
        status = list_pairs(out);
    }
    if (status != MSC_OK) {
        msc_analysis_finish(out);
    }
    return status;
}

void msc_analysis_finish(struct msc_analysis *analysis) {
    msc_free(analysis->alone);
    msc_free(analysis->pairs);
    msc_arena_finish(&analysis->arena);
    *analysis = (struct msc_analysis){0};
}
