// Writes the round to the record and keeps the state of the search up to date.
#include "search/search_internal.h"

#include "base/clock.h"
#include "base/shown.h"
#include "base/str.h"
#include "cluster/pool.h"

#include <math.h>

double msc_search__elapsed_s(const struct msc_search *s) {
    double launch_s = s->live_ns > 0 ? (double)(msc_clock_ns() - s->live_ns) * 1e-9 : 0.0;
    return s->elapsed_before_s + launch_s;
}

bool msc_search__is_time_over(const struct msc_search *s) {
    double limit_s = s->options->budget.seconds;
    return limit_s > 0.0 && msc_search__elapsed_s(s) >= limit_s;
}

static void note_best(struct msc_search *s, const struct msc_trial *trial) {
    if (s->best_id < 0) {
        s->best_id = trial->id;
    } else {
        const struct msc_record_line best = msc_record_trial(s->record, (size_t)s->best_id);
        s->best_id = msc_trial_compare(trial, &best.trial) < 0 ? trial->id : s->best_id;
    }
}

enum msc_status msc_search__note(struct msc_search *s, const struct msc_record_line *line) {
    enum msc_trial_state state = line->trial.outcome.state;
    bool is_budgeted = msc_record_is_budgeted(line);
    s->n_budgeted += is_budgeted;
    s->ends_assembled = line->is_assembled;
    s->n_repeats += line->repeat_of >= 0;
    if (is_budgeted) {
        s->n_repeats_in_row = line->repeat_of >= 0 ? s->n_repeats_in_row + 1 : 0;
    }
    // An early plan must not affect the sequence of proposals, so its point is not marked as
    // settled.
    if (line->repeat_of < 0 && !line->is_assembled &&
        (state != MSC_TRIAL_PRUNED || msc_goal_is_estimate(s->goal, &line->trial))) {
        msc_points_settle(&s->points,
                          msc_point_hash(line->trial.proposal.choices, s->space->n_tasks));
    }
    if (!line->is_assembled) {
        msc_race_note(&s->known, &s->race, s->goal, line);
    }
    if (line->repeat_of < 0 && msc_trial_state_is_result(state)) {
        note_best(s, &line->trial);
    }
    return s->front.n_objectives > 1 ? msc_record_front_offer(&s->front, line) : MSC_OK;
}

static void copy_outcome(struct msc_search *s, struct msc_search_item *item) {
    int64_t id = item->line.repeat_of;
    const struct msc_record_line from = id >= s->round_first
                                            ? s->items[id - s->round_first].line
                                            : msc_record_trial(s->record, (size_t)id);
    item->line.trial.outcome = from.trial.outcome;
    item->line.trial.outcome.time_us = 0;
    item->line.trial.outcome.reuse_ratio = 0.0;
    item->is_done = true;
}

static enum msc_status append_item(struct msc_search *s, struct msc_search_item *item,
                                   double elapsed_s) {
    const struct msc_record_line *line = &item->line;
    item->line.elapsed_s = elapsed_s;
    MSC_TRY(msc_record_append_trial(s->record, line));
    item->is_recorded = true;
    s->n_new++;
    if (msc_record_is_evaluated(line)) {
        s->n_evaluated++;
        s->reuse_sum += line->trial.outcome.reuse_ratio;
    }
    const struct msc_record_line recorded = msc_record_trial(s->record, (size_t)line->trial.id);
    return msc_search__note(s, &recorded);
}

struct msc_agent_left msc_search__left(const struct msc_search *s, double *effort) {
    struct msc_agent_left left = msc_agent_left(s->agent);
    double n_points = s->n_space_points - (double)s->points.n_settled;
    double n_open = 0.0; // proposals without a result
    for (size_t i = s->n_written; i < s->n_items; i++) {
        n_open += msc_record_is_budgeted(&s->items[i].line);
    }
    left.n += n_open;
    left.n_plan += left.n_plan > 0.0 ? n_open : 0.0;
    if (s->options->budget.trials >= 0) {
        left.n = fmin(left.n, (double)s->options->budget.trials - (double)s->n_budgeted -
                                  (double)s->ends_assembled);
    }
    if (n_points < left.n) { // an upper bound, since the agent may skip points
        left.n = n_points;
        left.is_exact = false;
    }
    left.n = fmax(left.n, 0.0);
    left.is_exact |= left.n == 0.0;
    n_open = fmin(n_open, left.n);
    *effort = n_open + msc_agent_effort(s->agent, left.n - n_open);
    return left;
}

static double seconds_left(const struct msc_search *s, double elapsed_s, double effort) {
    const struct msc_budget *budget = &s->options->budget;
    double left_s = isfinite(effort) ? effort * msc_rate_seconds(&s->lines) : NAN;
    if (budget->seconds > 0.0) {
        left_s = fmin(left_s, fmax(0.0, budget->seconds - elapsed_s)); // fmin ignores NaN
    }
    return left_s;
}

size_t msc_search_front_size(const struct msc_search_progress *progress) {
    struct msc_record_front *front = progress->front;
    return front && msc_record_front_settle(front) == MSC_OK ? front->n : 0;
}

static void report_progress(struct msc_search *s, double elapsed_s) {
    const struct msc_search_callbacks *callbacks = &s->options->callbacks;
    if (!callbacks->progress) {
        return;
    }
    double effort;
    const struct msc_agent_left left = msc_search__left(s, &effort);
    struct msc_record_line best;
    if (s->best_id >= 0) {
        best = msc_record_trial(s->record, (size_t)s->best_id);
    }
    struct msc_pool_figures figures = {0};
    if (s->options->pool) {
        figures = msc_pool_figures(s->options->pool);
    }
    const struct msc_search_progress progress = {
        .has_pool = s->options->pool != NULL,
        .n_workers = figures.n_up,
        .n_lost = figures.n_lost,
        .n_refused = figures.n_refused,
        .n_retried = figures.n_retried,
        .n_trials = msc_record_n_trials(s->record),
        .n_budgeted = s->n_budgeted + s->ends_assembled,
        .max_trials = s->options->budget.trials,
        .n_new = s->n_new,
        .n_evaluated = s->n_evaluated,
        .n_repeats = s->n_repeats,
        .best = s->best_id >= 0 ? &best : NULL,
        .record = s->record,
        .front = s->front.n_objectives > 1 ? &s->front : NULL,
        .reuse_ratio = s->n_evaluated > 0 ? s->reuse_sum / (double)s->n_evaluated : 0.0,
        .trials_per_s = 1.0 / msc_rate_seconds(&s->lines),
        .elapsed_s = elapsed_s,
        .n_left = left.n,
        .is_left_exact = left.is_exact,
        .left_s = seconds_left(s, elapsed_s, effort),
    };
    callbacks->progress(callbacks->payload, &progress);
}

enum msc_status msc_search__announce_best(struct msc_search *s) {
    const struct msc_search_callbacks *callbacks = &s->options->callbacks;
    if (!callbacks->best || s->best_id < 0 || s->best_id == s->announced_id) {
        return MSC_OK;
    }
    s->announced_id = s->best_id;
    const struct msc_record_line best = msc_record_trial(s->record, (size_t)s->best_id);
    return callbacks->best(callbacks->payload, &best.trial);
}

static enum msc_status commit_finished(struct msc_search *s) {
    size_t n_before = s->n_new;
    double elapsed_s = msc_search__elapsed_s(s);
    while (s->n_written < s->n_items - s->n_extra) {
        struct msc_search_item *item = &s->items[s->n_written];
        if (!item->is_done && item->line.repeat_of >= 0) {
            copy_outcome(s, item); // the line that it repeats already has its outcome
        }
        if (!item->is_done || item->is_racing) {
            break;
        }
        if (!item->is_recorded) {
            MSC_TRY(append_item(s, item, elapsed_s));
        }
        s->n_written++;
    }
    s->last_commit_ns = msc_clock_ns();
    if (s->n_new > n_before) {
        MSC_TRY(msc_record_commit(s->record));
        msc_worker_add_progress(s->options->worker, s->n_new - n_before);
        msc_attempt_committed(s->attempt, (int64_t)msc_record_n_trials(s->record));
        report_progress(s, elapsed_s);
    }
    return MSC_OK;
}

enum msc_status msc_search__commit(struct msc_search *s, bool is_inside) {
    enum msc_status status = commit_finished(s);
    s->is_commit_failed = status != MSC_OK;
    return status != MSC_OK || is_inside ? status : msc_search__announce_best(s);
}

enum msc_status msc_search__check_record(const struct msc_search *s) {
    struct msc_str path = {0};
    if (!msc_record_is_elsewhere(s->record)) {
        return MSC_OK;
    }
    msc_shown_append_path(&path, msc_record_path(s->record));
    enum msc_status status =
        MSC_FAIL(MSC_E_IO,
                 "%s: another program removed or changed the record during the search; all %zu "
                 "trials are in %s; mscgym resume %s continues the search",
                 s->options->record_path, msc_record_n_trials(s->record),
                 msc_record_path(s->record), msc_str_text(&path));
    msc_str_finish(&path);
    return status;
}
