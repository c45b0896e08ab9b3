// Evaluates the open items of a round: together, unless a trial is suspected of crashing, and in
// parts if the round takes long.
#include "search/search_internal.h"

#include "base/clock.h"

#include <stdio.h>

#define DEFAULT_PART_S 60.0

static bool is_open(const struct msc_search_item *item) {
    return !item->is_done && item->line.repeat_of < 0;
}

// A trial whose exact costs break a bound is not measured and takes no time.
static bool is_measured(const struct msc_search *s, const struct msc_search_item *item) {
    const struct msc_proposal *proposal = &item->line.trial.proposal;
    return proposal->probe || msc_goal_exact_violation(s->goal, s->space, proposal->choices) <= 0.0;
}

// The time of all batches relative to the time of the current part of the race.
static double whole_over_part(const struct msc_search *s) {
    return msc_search__is_raced(s)
               ? (double)msc_env_n_batches(s->options->env) / (double)(s->part.end - s->part.first)
               : 1.0;
}

// The number of trials to measure next. `is_timed`: the time budget applies.
static size_t part_size(const struct msc_search *s, bool is_timed) {
    double limit_s = s->options->budget.seconds;
    double part_s = s->options->part_seconds > 0.0 ? s->options->part_seconds : DEFAULT_PART_S;
    double scale = whole_over_part(s);
    size_t n = msc_pace_part(&s->pace, part_s * scale);
    if (is_timed && limit_s > 0.0) {
        size_t n_fit = msc_pace_fit(&s->pace, (limit_s - msc_search__elapsed_s(s)) * scale);
        n = n_fit < n ? n_fit : n;
    }
    return n;
}

// The trials of a round that are collected for one evaluation.
struct part {
    size_t n_lines;    // items examined so far, collected or not
    size_t n;          // trials collected
    size_t n_measured; // collected trials that are measured
    size_t n_most;     // maximum of n_measured
};

static bool is_whole(const struct part *part) {
    return part->n_measured >= part->n_most || part->n == MSC_ATTEMPT_MAX_TRIALS;
}

static void add_to_part(struct msc_search *s, struct part *part, size_t index) {
    part->n_measured += is_measured(s, &s->items[index]);
    s->batch_items[part->n++] = index;
}

static bool is_late(const bool *is_over) {
    return is_over && *is_over;
}

static enum msc_status check_search_cancel(const struct msc_search *s) {
    return msc_cancel_soon(s->options->cancel) ? MSC_FAIL(MSC_E_CANCELLED, "stopped on request")
                                               : MSC_OK;
}

// Notes the time of n lines. A race evaluates its items several times, so their time is noted only
// with the last part of the race.
static void note_lines(struct msc_search *s, size_t n) {
    if (msc_search__is_raced(s) && s->part.end < msc_env_n_batches(s->options->env)) {
        return;
    }
    uint64_t now_ns = msc_clock_ns();
    msc_rate_note(&s->lines, n, (double)(now_ns - s->paced_ns) * 1e-9);
    s->paced_ns = now_ns;
}

// Evaluates the collected trials, unless the time budget is used up. Commits if the last commit was
// long enough ago.
static enum msc_status run_part(struct msc_search *s, struct part *part, bool *is_over) {
    if (part->n == 0) {
        note_lines(s, part->n_lines);
        return MSC_OK;
    }
    MSC_TRY(check_search_cancel(s));
    if (is_over && msc_search__is_time_over(s)) {
        *is_over = true;
        return MSC_OK;
    }
    uint64_t begin_ns = msc_clock_ns();
    MSC_TRY(msc_search__run(s, part->n, false));
    msc_pace_note(&s->pace, part->n_measured,
                  (double)(msc_clock_ns() - begin_ns) * 1e-9 * whole_over_part(s));
    note_lines(s, part->n_lines);
    return msc_search__is_commit_due(s) ? msc_search__commit(s, false) : MSC_OK;
}

// Evaluates items if no trial is suspected, which is the usual case.
static enum msc_status evaluate_together(struct msc_search *s, size_t first, bool *is_over) {
    size_t i = first;
    while (i < s->n_items && !is_late(is_over)) {
        struct part part = {.n_most = part_size(s, is_over != NULL)};
        for (; i < s->n_items && !is_whole(&part); i++) {
            part.n_lines++;
            if (is_open(&s->items[i])) {
                add_to_part(s, &part, i);
            }
        }
        MSC_TRY(run_part(s, &part, is_over));
    }
    return MSC_OK;
}

// Handles a suspected trial: runs it alone or, if it has already failed, marks it as failed.
static enum msc_status settle_suspect(struct msc_search *s, size_t index,
                                      enum msc_attempt_verdict verdict) {
    struct msc_search_item *item = &s->items[index];
    MSC_TRY(msc_search__commit(s, false));
    MSC_TRY(check_search_cancel(s));
    if (verdict == MSC_ATTEMPT_FAILED) {
        msc_goal_judge(s->goal, s->space, &item->line.trial.outcome);
        item->is_done = true;
    } else {
        s->batch_items[0] = index;
        MSC_TRY(msc_search__run(s, 1, true));
    }
    return msc_search__commit(s, false);
}

// Evaluates items in id order and commits each, so that a crash costs at most one trial.
static enum msc_status evaluate_carefully(struct msc_search *s, size_t first, bool *is_over) {
    struct part part = {.n_most = part_size(s, is_over != NULL)};
    for (size_t i = first; i < s->n_items && !is_late(is_over); i++) {
        struct msc_search_item *item = &s->items[i];
        part.n_lines++;
        if (!is_open(item)) {
            continue;
        }
        if (s->part.first == 0) {
            msc_trial_begin(&item->line.trial, s->space);
        }
        enum msc_attempt_verdict verdict = msc_attempt_judge(s->attempt, &item->line.trial);
        if (verdict == MSC_ATTEMPT_FREE) {
            add_to_part(s, &part, i);
        }
        if (verdict != MSC_ATTEMPT_FREE || is_whole(&part)) {
            MSC_TRY(run_part(s, &part, is_over));
            part = (struct part){.n_most = part_size(s, is_over != NULL)};
        }
        if (verdict != MSC_ATTEMPT_FREE && !is_late(is_over)) {
            MSC_TRY(settle_suspect(s, i, verdict));
        }
    }
    return is_late(is_over) ? MSC_OK : run_part(s, &part, is_over);
}

enum msc_status msc_search__evaluate(struct msc_search *s, bool *is_over) {
    bool is_suspicious = msc_attempt_has_suspects(s->attempt);
    char message[512];
    enum msc_status status = is_suspicious ? evaluate_carefully(s, s->n_written, is_over)
                                           : evaluate_together(s, s->n_written, is_over);
    if (status == MSC_OK) {
        return msc_search__commit(s, false);
    }
    // Commits the items that were finished before the failure, unless the record accepts no more
    // lines. Then returns the original failure.
    snprintf(message, sizeof message, "%s", msc_status_message());
    if (!s->is_commit_failed) {
        MSC_TRY(msc_search__commit(s, false));
    }
    return msc_status_restore(status, message);
}
