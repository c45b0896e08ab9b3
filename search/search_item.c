// Adds lines to a round, and decides which of them need an evaluation and which are repeats.
#include "search/search_internal.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

// Does an earlier trial answer the proposal of `trial`? A trial that was stopped at its bound
// answers only a proposal with an equal or tighter bound. Within a round, the bounds of both
// proposals decide, not the results, so that an interrupted round continues identically.
static bool does_answer(const struct msc_search *s, int64_t id, const struct msc_trial *trial) {
    bool is_pending = id >= s->round_first;
    const struct msc_record_line line =
        is_pending ? s->items[id - s->round_first].line : msc_record_trial(s->record, (size_t)id);
    const struct msc_trial *earlier = &line.trial;
    const struct msc_proposal *asked = &trial->proposal;
    if ((is_pending || earlier->outcome.state == MSC_TRIAL_PRUNED) &&
        asked->bound > earlier->proposal.bound) {
        return false;
    }
    return !asked->probe || earlier->proposal.probe ||
           msc_goal_exact_violation(s->goal, s->space, asked->choices) <= 0.0;
}

static enum msc_status push_item(struct msc_search *s, const struct msc_search_item *item,
                                 struct msc_hash hash) {
    MSC_TRY(msc_grow(&s->items, &s->items_capacity, s->n_items + 1, sizeof *s->items));
    s->items[s->n_items++] = *item;
    s->next_id++;
    s->n_tried += item->line.warm == MSC_RECORD_WARM_TRIED && item->line.retry_of < 0;
    return item->line.repeat_of < 0 && !item->line.is_assembled
               ? msc_points_set(&s->points, hash, item->line.trial.id)
               : MSC_OK;
}

enum msc_status msc_search__add_recorded(struct msc_search *s, const struct msc_record_line *line) {
    const struct msc_search_item item = {.line = *line, .is_done = true, .is_recorded = true};
    const uint32_t *choices = line->trial.proposal.choices;
    return push_item(s, &item, msc_point_hash(choices, s->space->n_tasks));
}

// Allocates the terms of an item in a race.
static enum msc_status make_terms(struct msc_search *s, struct msc_search_item *item) {
    if (!msc_search__is_raced(s)) {
        return MSC_OK;
    }
    item->terms = msc_arena_array(&s->arena, s->n_terms, sizeof *item->terms);
    return MSC_ALLOCATED(item->terms);
}

// Adds an item for a line that has no id and no outcome yet.
static enum msc_status add_round_item(struct msc_search *s, const struct msc_record_line *line) {
    struct msc_search_item item = {.line = *line};
    struct msc_trial *trial = &item.line.trial;
    struct msc_hash hash = msc_point_hash(trial->proposal.choices, s->space->n_tasks);
    trial->id = s->next_id;
    MSC_TRY(msc_outcome_init(&trial->outcome, &s->arena, s->space));
    MSC_TRY(make_terms(s, &item));
    item.line.repeat_of = -1;
    if (line->retry_of < 0) {
        int64_t earlier = msc_points_find(&s->points, hash);
        // Ids from next_id on belong to items that only took part in a race. New items use these
        // ids again.
        bool is_answered = earlier >= 0 && earlier < s->next_id && does_answer(s, earlier, trial);
        item.line.repeat_of = is_answered ? earlier : -1;
    }
    return push_item(s, &item, hash);
}

enum msc_status msc_search__add_new(struct msc_search *s, const struct msc_proposal *proposal,
                                    enum msc_record_warm warm) {
    const struct msc_record_line line = {
        .trial.proposal = *proposal, .retry_of = -1, .baseline = -1, .warm = warm};
    return add_round_item(s, &line);
}

enum msc_status msc_search__add_assembled(struct msc_search *s,
                                          const struct msc_proposal *proposal) {
    const struct msc_record_line line = {
        .trial.proposal = *proposal, .retry_of = -1, .baseline = -1, .is_assembled = true};
    return add_round_item(s, &line);
}

// Adds a line with a copy of the choices.
static enum msc_status add_round_point(struct msc_search *s, struct msc_record_line *line,
                                       const uint32_t choices[]) {
    size_t n_bytes = s->space->n_tasks * sizeof *choices;
    uint32_t *copy = msc_arena_alloc(&s->arena, n_bytes);
    MSC_TRY(MSC_ALLOCATED(copy));
    memcpy(copy, choices, n_bytes);
    line->trial.proposal = (struct msc_proposal){
        .choices = copy, .parent = -1, .bound = INFINITY, .probe = line->trial.proposal.probe};
    line->retry_of = -1;
    return add_round_item(s, line);
}

enum msc_status msc_search__add_baseline(struct msc_search *s, size_t index) {
    struct msc_record_line line = {.trial.proposal.probe = true, .baseline = (int64_t)index};
    return add_round_point(s, &line, s->space->baselines[index].choices);
}

enum msc_status msc_search__add_told(struct msc_search *s, size_t index) {
    const struct msc_warm_point *point = &s->warm.points[index];
    struct msc_record_line line = {.baseline = -1, .warm = MSC_RECORD_WARM_TOLD};
    // The other record has measured the point, but the point may break a bound of this search. If
    // it does, the line is marked as a probe, so that it answers proposals that are probes.
    line.trial.proposal.probe = msc_goal_exact_violation(s->goal, s->space, point->choices) > 0.0;
    MSC_TRY(add_round_point(s, &line, point->choices));
    struct msc_search_item *item = &s->items[s->n_items - 1];
    struct msc_trial *trial = &item->line.trial;
    msc_trial_begin(trial, s->space);
    for (size_t i = 0; i < s->space->n_metrics; i++) {
        if (!s->space->metrics[i].is_exact) {
            trial->outcome.metrics[i] = point->metrics[i];
        }
    }
    msc_goal_judge(s->goal, s->space, &trial->outcome);
    item->is_done = true;
    return MSC_OK;
}

enum msc_status msc_search__add_retry(struct msc_search *s, const struct msc_record_line *failed) {
    const struct msc_record_line line = {
        .trial.proposal = failed->trial.proposal,
        .retry_of = failed->trial.id,
        .baseline = failed->baseline,
    };
    return add_round_item(s, &line);
}

// An agent may take long to observe trials, so a stop may end this loop early. The remaining trials
// are observed when the search continues.
enum msc_status msc_search__tell(struct msc_search *s, size_t n) {
    for (; s->n_told < n; s->n_told++) {
        const struct msc_record_line *line = &s->items[s->n_told].line;
        if (msc_cancel_now(s->options->cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
        }
        if (!line->is_assembled) {
            const struct msc_trial told = msc_race_told_of(&s->known, s->record, line);
            MSC_TRY(msc_agent_tell(s->agent, &told));
        }
    }
    return MSC_OK;
}
