// Calls the environment and handles failures: trials are evaluated together, and then one by one if
// memory or the device was insufficient. Evaluating them one by one helps if an environment fails
// as a whole or a device refuses work. The evaluator (kernels/engine/evaluator.c) reports a lack of
// memory only after it freed the results that it kept for reuse. A lost device, MSC_E_LOST, ends
// the search at once: no trial is to blame, and the parent starts another process
// (supervise/supervise.h).
#include "search/search_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cluster/pool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_COMMIT_S 10.0
// After more than this many consecutive trials that failed for lack of memory or a device, the
// search stops instead of wasting its budget.
#define MAX_ENVIRONMENT_FAILURES 32

bool msc_search__is_commit_due(const struct msc_search *s) {
    double wanted_s = s->options->commit_seconds;
    double since_s = (double)(msc_clock_ns() - s->last_commit_ns) * 1e-9;
    return since_s >= (wanted_s > 0.0 ? wanted_s : DEFAULT_COMMIT_S);
}

// Stores an item's losses at the rungs within the part that was evaluated.
static void note_rungs(const struct msc_search *s, struct msc_search_item *item) {
    const struct msc_trial *trial = &item->line.trial;
    bool is_sound =
        msc_trial_state_is_result(trial->outcome.state) || msc_goal_is_estimate(s->goal, trial);
    bool is_measured = !isnan(trial->outcome.metrics[s->goal->objectives[0].metric]);
    for (size_t i = item->line.n_rungs; is_sound && is_measured && i < s->race.n_rungs; i++) {
        if (s->race.rungs[i] <= s->part.end) {
            item->line.rungs[i] =
                msc_env_partial_loss(s->options->env, item->terms, s->race.rungs[i]);
            item->line.n_rungs = i + 1;
        }
    }
}

// An item that failed for lack of memory or a device is not done until it has been tried alone.
static void finish_item(void *payload, size_t index) {
    struct msc_search *s = payload;
    struct msc_search_item *item = &s->items[s->batch_items[index]];
    const struct msc_outcome *outcome = &item->line.trial.outcome;
    item->is_done = !msc_search__may_succeed_later(outcome);
    note_rungs(s, item);
    msc_attempt_finished(s->attempt, index);
    msc_worker_add_trial(s->options->worker, outcome->time_us);
    msc_cancel_beat(s->options->cancel);
    if (msc_search__is_commit_due(s) && s->batch_status == MSC_OK) {
        s->batch_status = msc_search__commit(s, true);
        // The error text belongs to this thread, but another thread may report the error.
        snprintf(s->batch_message, sizeof s->batch_message, "%s", msc_status_message());
    }
}

static enum msc_status run_items(struct msc_search *s, size_t n, bool is_alone) {
    const struct msc_evaluation evaluation = {
        .trials = s->batch_trials,
        .n = n,
        .finished = finish_item,
        .payload = s,
    };
    for (size_t i = 0; i < n; i++) {
        s->batch_trials[i] = &s->items[s->batch_items[i]].line.trial;
        if (msc_search__is_raced(s)) {
            s->batch_terms[i] = s->items[s->batch_items[i]].terms;
        }
    }
    s->batch_status = MSC_OK;
    msc_attempt_begin(s->attempt, s->batch_trials, n, is_alone);
    if (s->options->pool) {
        msc_worker_begin(s->options->worker, 0.0); // a pool's workers enforce their own time limits
    }
    enum msc_status status =
        msc_search__is_raced(s)
            ? msc_env_evaluate_part(s->options->env, s->goal, &evaluation, &s->part)
            : msc_env_evaluate(s->options->env, s->goal, &evaluation);
    msc_attempt_end(s->attempt);
    return s->batch_status != MSC_OK ? msc_status_restore(s->batch_status, s->batch_message)
                                     : status;
}

// True if the environment failed for lack of memory or a device. False for errors of commits during
// the evaluation.
static bool is_environments_fault(const struct msc_search *s, enum msc_status status) {
    return s->batch_status == MSC_OK && (status == MSC_E_NOMEM || status == MSC_E_DEVICE);
}

// Finds a trial that was evaluated before; false if there is none.
static bool find_witness(struct msc_trial *out, const struct msc_search *s) {
    if (s->best_id >= 0) {
        *out = msc_record_trial(s->record, (size_t)s->best_id).trial;
        return true;
    }
    for (size_t i = 0; i < s->n_items; i++) {
        *out = s->items[i].line.trial;
        if (s->items[i].is_done && out->outcome.state == MSC_TRIAL_COMPLETE) {
            return true;
        }
    }
    return false;
}

// Called if a trial did not run for lack of memory or a device. Runs an earlier trial again; if the
// earlier trial fails too, the machine is at fault, not the new trial.
static enum msc_status check_machine(struct msc_search *s) {
    char reason[MSC_REASON_BYTES];
    struct msc_trial witness;
    bool has_witness = find_witness(&witness, s);
    snprintf(reason, sizeof reason, "%s", msc_status_message());
    if (!has_witness) {
        return MSC_FAIL(MSC_E_NOMEM, "%s; no trial could be evaluated yet", reason);
    }
    struct msc_trial again = {.id = witness.id, .proposal = witness.proposal};
    struct msc_trial *trial = &again;
    const struct msc_evaluation evaluation = {.trials = &trial, .n = 1};
    again.proposal.bound = INFINITY;
    again.proposal.probe = true;
    MSC_TRY(msc_outcome_init(&again.outcome, &s->arena, s->space));
    enum msc_status status = msc_env_evaluate(s->options->env, s->goal, &evaluation);
    if (is_environments_fault(s, status) ||
        (status == MSC_OK && msc_search__may_succeed_later(&again.outcome))) {
        return MSC_FAIL(MSC_E_NOMEM,
                        "%s; trial %lld, which was evaluated before, no longer runs either", reason,
                        (long long)again.id);
    }
    return status;
}

static enum msc_status try_item_alone(struct msc_search *s, size_t index) {
    const struct msc_outcome *outcome = &s->items[index].line.trial.outcome;
    s->batch_items[0] = index;
    MSC_TRY(run_items(s, 1, true));
    return msc_search__may_succeed_later(outcome) ? MSC_FAIL(MSC_E_NOMEM, "%s", outcome->reason)
                                                  : MSC_OK;
}

// Runs a trial alone, at most twice. If the trial does not run, but an earlier trial still does,
// the trial has failed and the search continues.
static enum msc_status run_item_alone(struct msc_search *s, size_t index) {
    struct msc_search_item *item = &s->items[index];
    struct msc_trial *trial = &item->line.trial;
    enum msc_status status = try_item_alone(s, index);
    if (is_environments_fault(s, status)) {
        MSC_TRY(check_machine(s));
        status = try_item_alone(s, index);
    }
    if (!is_environments_fault(s, status)) {
        return status;
    }
    if (++s->n_environment_failures > MAX_ENVIRONMENT_FAILURES) {
        return msc_status_prefix(status, "%d trials in a row could not run",
                                 s->n_environment_failures);
    }
    msc_trial_begin(trial, s->space);
    msc_outcome_fail(&trial->outcome, MSC_CAUSE_ENVIRONMENT, "%s", msc_status_message());
    msc_goal_judge(s->goal, s->space, &trial->outcome);
    item->is_done = true;
    return MSC_OK;
}

// ---- Trials that died elsewhere ---------------------------------------------------------------

// Blames trials for deaths of the pool's workers, as for deaths of this process. Sets *n to the
// number of deaths.
static enum msc_status blame_deaths(struct msc_search *s, size_t *n) {
    struct msc_pool_death *deaths = msc_alloc_zero(MSC_ATTEMPT_MAX_TRIALS, sizeof *deaths);
    MSC_TRY(MSC_ALLOCATED(deaths));
    *n = msc_pool_take_deaths(s->options->pool, deaths, MSC_ATTEMPT_MAX_TRIALS);
    for (size_t i = 0; i < *n; i++) {
        msc_attempt_blame(s->attempt, &deaths[i].id, 1, deaths[i].was_alone, deaths[i].death,
                          deaths[i].signal_number);
    }
    msc_free(deaths);
    return MSC_OK;
}

// Runs a suspect alone, repeatedly, until it has a result or has failed. If it only lacked memory
// or a device, it remains open.
static enum msc_status run_suspect(struct msc_search *s, size_t index) {
    struct msc_search_item *item = &s->items[index];
    struct msc_trial *trial = &item->line.trial;
    size_t n_deaths = 1;
    while (n_deaths > 0 && !item->is_done) {
        if (s->part.first == 0) {
            msc_trial_begin(trial, s->space);
        }
        enum msc_attempt_verdict verdict = msc_attempt_judge(s->attempt, trial);
        if (verdict == MSC_ATTEMPT_FREE) {
            return MSC_OK;
        }
        if (verdict == MSC_ATTEMPT_FAILED) {
            msc_goal_judge(s->goal, s->space, &trial->outcome);
            item->is_done = true;
            return MSC_OK;
        }
        s->batch_items[0] = index;
        MSC_TRY(run_items(s, 1, true));
        MSC_TRY(blame_deaths(s, &n_deaths));
    }
    return MSC_OK;
}

static enum msc_status run_suspects(struct msc_search *s, const size_t open[], size_t n) {
    size_t n_deaths = 0;
    MSC_TRY(blame_deaths(s, &n_deaths));
    for (size_t i = 0; i < n && msc_attempt_has_suspects(s->attempt); i++) {
        MSC_TRY(s->items[open[i]].is_done ? MSC_OK : run_suspect(s, open[i]));
    }
    return MSC_OK;
}

enum msc_status msc_search__run(struct msc_search *s, size_t n, bool one_by_one) {
    size_t open[MSC_ATTEMPT_MAX_TRIALS];
    memcpy(open, s->batch_items, n * sizeof *open);
    enum msc_status status = one_by_one ? MSC_OK : run_items(s, n, false);
    if (is_environments_fault(s, status)) {
        msc_log(s->options->log, MSC_LOG_WARNING, "%s; trying %zu trials one by one",
                msc_status_message(), n);
    } else {
        MSC_TRY(status);
    }
    if (s->options->pool) {
        MSC_TRY(run_suspects(s, open, n));
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_search_item *item = &s->items[open[i]];
        MSC_TRY(item->is_done ? MSC_OK : run_item_alone(s, open[i]));
        if (item->line.trial.outcome.cause != MSC_CAUSE_ENVIRONMENT) {
            s->n_environment_failures = 0;
        }
    }
    return MSC_OK;
}
