// Evaluating the open items of a round, together where nothing speaks against it, in parts where
// the round takes long.
#include "search/search_internal.h"

#include "base/clock.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_COMMIT_S 10.0
#define DEFAULT_PART_S 60.0
// So many trials in a row failed for want of memory or a device, and the search stops: it would
// only burn its budget.
#define MAX_ENVIRONMENT_FAILURES 32

static double commit_seconds(const struct msc_search *s) {
    return s->options->commit_seconds > 0.0 ? s->options->commit_seconds : DEFAULT_COMMIT_S;
}

static bool is_commit_due(const struct msc_search *s) {
    double since_s = (double)(msc_clock_ns() - s->last_commit_ns) * 1e-9;
    return since_s >= commit_seconds(s);
}

static bool is_for_want(const struct msc_outcome *outcome) {
    return outcome->state == MSC_TRIAL_FAILED && outcome->cause == MSC_CAUSE_ENVIRONMENT;
}

// What failed for want of memory or of a device is not done before it was tried alone.
static void finish_item(void *payload, size_t index) {
    struct msc_search *s = payload;
    struct msc_search_item *item = &s->items[s->batch_items[index]];
    item->outcome = s->batch_outcomes[index];
    item->is_done = !is_for_want(&item->outcome);
    msc_attempt_finished(s->attempt, index);
    msc_worker_add_trial(s->options->worker, item->outcome.time_us);
    msc_cancel_beat(s->options->cancel);
    if (is_commit_due(s) && s->batch_status == MSC_OK) {
        s->batch_status = msc_search__commit(s, true);
        // The text belongs to this thread, which may be another than the one that reports it.
        snprintf(s->batch_message, sizeof s->batch_message, "%s", msc_status_message());
    }
}

static enum msc_status run_batch(struct msc_search *s, size_t n, bool is_alone) {
    const struct msc_evaluation evaluation = {
        .trials = s->batch_trials,
        .n = n,
        .outcomes = s->batch_outcomes,
        .finished = finish_item,
        .payload = s,
    };
    s->batch_status = MSC_OK;
    msc_attempt_begin(s->attempt, s->batch_trials, n, is_alone);
    enum msc_status status = msc_env_evaluate(s->options->env, s->goal, &evaluation);
    msc_attempt_end(s->attempt);
    return s->batch_status != MSC_OK ? msc_status_restore(s->batch_status, s->batch_message)
                                     : status;
}

static void add_to_batch(struct msc_search *s, size_t *n, size_t index) {
    s->batch_trials[*n] = s->items[index].trial;
    s->batch_items[*n] = index;
    (*n)++;
}

static void fill_exact_costs(const struct msc_search *s, struct msc_search_item *item) {
    for (size_t i = 0; i < s->space->n_costs; i++) {
        int metric = msc_space_find_metric(s->space, s->space->costs[i].metric);
        item->outcome.metrics[metric] = msc_cost_value(&s->space->costs[i], item->trial.choices);
    }
    item->outcome.violation = msc_goal_violation(s->goal, item->outcome.metrics);
}

static bool is_environments_fault(enum msc_status status) {
    return status == MSC_E_NOMEM || status == MSC_E_DEVICE;
}

// A trial that was evaluated before, as one to be evaluated; NULL choices: there is none.
static struct msc_trial find_witness(const struct msc_search *s) {
    struct msc_trial witness = {.id = -1, .choices = NULL};
    if (s->best_id >= 0) {
        witness = msc_record_as_trial(msc_record_trial(s->record, (size_t)s->best_id));
    }
    for (size_t i = 0; !witness.choices && i < s->n_items; i++) {
        const struct msc_search_item *item = &s->items[i];
        if (item->is_done && item->outcome.state == MSC_TRIAL_COMPLETE) {
            witness = item->trial;
        }
    }
    witness.bound = INFINITY;
    witness.probe = true;
    return witness;
}

// A trial did not run for want of memory or of a device, says the error text. Is it the trial? Not
// where nothing else runs any more.
static enum msc_status check_machine(struct msc_search *s) {
    char reason[MSC_REASON_BYTES];
    struct msc_outcome outcome;
    const struct msc_trial witness = find_witness(s);
    const struct msc_evaluation evaluation = {.trials = &witness, .n = 1, .outcomes = &outcome};
    snprintf(reason, sizeof reason, "%s", msc_status_message());
    if (!witness.choices) {
        return MSC_FAIL(MSC_E_NOMEM, "%s; no trial could be evaluated yet", reason);
    }
    enum msc_status status = msc_env_evaluate(s->options->env, s->goal, &evaluation);
    if (is_environments_fault(status) || (status == MSC_OK && is_for_want(&outcome))) {
        return MSC_FAIL(MSC_E_NOMEM,
                        "%s; trial %lld, which was evaluated before, does not run any more either",
                        reason, (long long)witness.id);
    }
    return status;
}

static enum msc_status try_alone(struct msc_search *s, size_t index) {
    const struct msc_outcome *outcome = &s->items[index].outcome;
    size_t n = 0;
    add_to_batch(s, &n, index);
    MSC_TRY(run_batch(s, n, true));
    return is_for_want(outcome) ? MSC_FAIL(MSC_E_NOMEM, "%s", outcome->reason) : MSC_OK;
}

// A trial that does not even run alone, twice, while others do has failed; the search goes on.
static enum msc_status run_alone(struct msc_search *s, size_t index) {
    struct msc_search_item *item = &s->items[index];
    enum msc_status status = try_alone(s, index);
    if (is_environments_fault(status) && s->batch_status == MSC_OK) {
        MSC_TRY(check_machine(s));
        status = try_alone(s, index);
    }
    if (!is_environments_fault(status) || s->batch_status != MSC_OK) {
        return status;
    }
    if (++s->n_environment_failures > MAX_ENVIRONMENT_FAILURES) {
        return msc_status_prefix(status, "%d trials in a row could not run",
                                 s->n_environment_failures);
    }
    msc_outcome_init(&item->outcome);
    fill_exact_costs(s, item);
    item->outcome.state = MSC_TRIAL_FAILED;
    item->outcome.cause = MSC_CAUSE_ENVIRONMENT;
    snprintf(item->outcome.reason, sizeof item->outcome.reason, "%s", msc_status_message());
    item->is_done = true;
    return MSC_OK;
}

// Evaluates the gathered batch, and alone the trials that memory or the device did not suffice for.
static enum msc_status run_together(struct msc_search *s, size_t n) {
    enum msc_status status = n > 0 ? run_batch(s, n, false) : MSC_OK;
    bool is_too_large = is_environments_fault(status) && s->batch_status == MSC_OK;
    if (status != MSC_OK && !is_too_large) {
        return status;
    }
    if (is_too_large) {
        msc_log(s->options->log, MSC_LOG_WARNING, "%s; trying %zu trials one by one",
                msc_status_message(), n);
    }
    size_t open[MSC_ATTEMPT_MAX_TRIALS];
    memcpy(open, s->batch_items, n * sizeof *open);
    for (size_t i = 0; i < n; i++) {
        if (!s->items[open[i]].is_done) {
            MSC_TRY(run_alone(s, open[i]));
        }
        s->n_environment_failures = s->items[open[i]].outcome.cause == MSC_CAUSE_ENVIRONMENT
                                        ? s->n_environment_failures
                                        : 0;
    }
    return MSC_OK;
}

static bool is_open(const struct msc_search_item *item) {
    return !item->is_done && item->repeat_of < 0;
}

// What breaks a bound by its exact costs takes no time.
static bool is_measured(const struct msc_search *s, const struct msc_search_item *item) {
    return item->trial.probe ||
           msc_goal_exact_violation(s->goal, s->space, item->trial.choices) <= 0.0;
}

// How many trials to measure next. `is_timed`: the budget of time counts.
static size_t part_size(const struct msc_search *s, bool is_timed) {
    double limit_s = s->options->budget.seconds;
    double part_s = s->options->part_seconds > 0.0 ? s->options->part_seconds : DEFAULT_PART_S;
    size_t n = msc_pace_part(&s->pace, part_s);
    if (is_timed && limit_s > 0.0) {
        size_t n_fit = msc_pace_fit(&s->pace, limit_s - msc_search__elapsed_s(s));
        n = n_fit < n ? n_fit : n;
    }
    return n;
}

// What is gathered of a round, to be evaluated together.
struct part {
    size_t n_lines;    // gone over
    size_t n;          // in the batch
    size_t n_measured; // of them
    size_t n_most;     // to measure
};

static bool is_whole(const struct part *part) {
    return part->n_measured >= part->n_most || part->n == MSC_ATTEMPT_MAX_TRIALS;
}

static void add_to_part(struct msc_search *s, struct part *part, size_t index) {
    part->n_measured += is_measured(s, &s->items[index]);
    add_to_batch(s, &part->n, index);
}

static bool is_late(const bool *is_over) {
    return is_over && *is_over;
}

static enum msc_status check_cancel(const struct msc_search *s) {
    return msc_cancel_soon(s->options->cancel) ? MSC_FAIL(MSC_E_CANCELLED, "stopped on request")
                                               : MSC_OK;
}

static void note_lines(struct msc_search *s, size_t n) {
    uint64_t now_ns = msc_clock_ns();
    msc_rate_note(&s->lines, n, (double)(now_ns - s->paced_ns) * 1e-9);
    s->paced_ns = now_ns;
}

// Evaluates what was gathered unless it is too late, and writes it if the last commit was a while
// ago.
static enum msc_status run_part(struct msc_search *s, struct part *part, bool *is_over) {
    if (part->n == 0) {
        note_lines(s, part->n_lines);
        return MSC_OK;
    }
    MSC_TRY(check_cancel(s));
    if (is_over && msc_search__is_time_over(s)) {
        *is_over = true;
        return MSC_OK;
    }
    uint64_t begin_ns = msc_clock_ns();
    MSC_TRY(run_together(s, part->n));
    msc_pace_note(&s->pace, part->n_measured, (double)(msc_clock_ns() - begin_ns) * 1e-9);
    note_lines(s, part->n_lines);
    return is_commit_due(s) ? msc_search__commit(s, false) : MSC_OK;
}

// The usual case: nothing is suspected.
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

// A suspect: alone, or failed without being run once more.
static enum msc_status settle(struct msc_search *s, size_t index,
                              enum msc_attempt_verdict verdict) {
    struct msc_search_item *item = &s->items[index];
    MSC_TRY(msc_search__commit(s, false));
    MSC_TRY(check_cancel(s));
    if (verdict == MSC_ATTEMPT_FAILED) {
        fill_exact_costs(s, item);
        item->is_done = true;
    } else {
        MSC_TRY(run_alone(s, index));
    }
    return msc_search__commit(s, false);
}

// In id order, and committed as it goes, so that a crash costs no more than one trial.
static enum msc_status evaluate_carefully(struct msc_search *s, size_t first, bool *is_over) {
    struct part part = {.n_most = part_size(s, is_over != NULL)};
    for (size_t i = first; i < s->n_items && !is_late(is_over); i++) {
        struct msc_search_item *item = &s->items[i];
        part.n_lines++;
        if (!is_open(item)) {
            continue;
        }
        msc_outcome_init(&item->outcome);
        enum msc_attempt_verdict verdict =
            msc_attempt_judge(s->attempt, item->trial.id, &item->outcome);
        if (verdict == MSC_ATTEMPT_FREE) {
            add_to_part(s, &part, i);
        }
        if (verdict != MSC_ATTEMPT_FREE || is_whole(&part)) {
            MSC_TRY(run_part(s, &part, is_over));
            part = (struct part){.n_most = part_size(s, is_over != NULL)};
        }
        if (verdict != MSC_ATTEMPT_FREE && !is_late(is_over)) {
            MSC_TRY(settle(s, i, verdict));
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
    // What was finished before the failure is kept; the failure is what gets reported.
    snprintf(message, sizeof message, "%s", msc_status_message());
    if (s->batch_status == MSC_OK) {
        MSC_TRY(msc_search__commit(s, false));
    }
    return msc_status_restore(status, message);
}
