#include "search/search_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "search/estimate.h"
#include "cluster/pool.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *msc_search_end_name(enum msc_search_end end) {
    static const char *const names[MSC_SEARCH_END_COUNT] = {
        [MSC_SEARCH_END_AGENT] = "agent",   [MSC_SEARCH_END_EXHAUSTED] = "exhausted",
        [MSC_SEARCH_END_TRIALS] = "trials", [MSC_SEARCH_END_TIME] = "time",
        [MSC_SEARCH_END_TARGET] = "target", [MSC_SEARCH_END_CANCELLED] = "cancelled",
    };
    return names[end];
}

const char *msc_search_end_text(enum msc_search_end end) {
    static const char *const texts[MSC_SEARCH_END_COUNT] = {
        [MSC_SEARCH_END_AGENT] = "the agent has nothing left to try",
        [MSC_SEARCH_END_EXHAUSTED] = "every point was tried, or the agent only repeats itself",
        [MSC_SEARCH_END_TRIALS] = "the trial budget is used up",
        [MSC_SEARCH_END_TIME] = "the time budget is used up",
        [MSC_SEARCH_END_TARGET] = "the target is reached",
        [MSC_SEARCH_END_CANCELLED] = "stopped on request; mscgym resume continues it",
    };
    return texts[end];
}

static bool is_replaying(const struct msc_search *s) {
    return s->next_id < (int64_t)s->n_recorded;
}

// The number of baselines and of trials from other records.
static int64_t beginning_end(const struct msc_search *s) {
    return (int64_t)(s->space->n_baselines + s->warm.n_told);
}

static bool is_at_beginning(const struct msc_search *s) {
    return s->next_id < beginning_end(s);
}

static void begin_round(struct msc_search *s) {
    s->n_items = 0;
    s->n_extra = 0;
    s->n_written = 0;
    s->n_told = 0;
    s->round_first = s->next_id;
    s->known_before = s->known;
    msc_arena_reset(&s->arena);
}

static enum msc_status tell_round(struct msc_search *s) {
    return msc_search__tell(s, s->n_items);
}

// The next line of the record to replay.
static struct msc_record_line next_recorded(const struct msc_search *s) {
    return msc_record_trial(s->record, (size_t)s->next_id);
}

static enum msc_status take_recorded(struct msc_search *s, const struct msc_record_line *line) {
    MSC_TRY(msc_search__add_recorded(s, line));
    return msc_search__note(s, line);
}

static enum msc_status take_next_recorded(struct msc_search *s) {
    const struct msc_record_line line = next_recorded(s);
    return take_recorded(s, &line);
}

// True if the trial failed because of the environment. False for a line that is itself a retry:
// only the original trial is retried.
static bool wants_retry(const struct msc_record_line *line) {
    return msc_search__may_succeed_later(&line->trial.outcome) && line->repeat_of < 0 &&
           line->retry_of < 0 && !line->is_assembled;
}

// Marks failed trials for which a later retry succeeded.
static void mark_settled(bool is_settled[], const struct msc_search *s) {
    for (size_t i = 0; i < s->n_recorded; i++) {
        const struct msc_record_line line = msc_record_trial(s->record, i);
        if (line.retry_of >= 0 && !msc_search__may_succeed_later(&line.trial.outcome)) {
            is_settled[line.retry_of] = true;
        }
    }
}

static enum msc_status add_retries(struct msc_search *s) {
    enum msc_status status = MSC_OK;
    bool *is_settled = msc_alloc_zero(s->n_recorded + 1, sizeof *is_settled);
    MSC_TRY(MSC_ALLOCATED(is_settled));
    mark_settled(is_settled, s);
    for (size_t id = 0; id < s->n_recorded; id++) {
        const struct msc_record_line line = msc_record_trial(s->record, id);
        if (wants_retry(&line) && !is_settled[id]) {
            MSC_TRY_OUT(msc_search__add_retry(s, &line));
        }
    }
out:
    msc_free(is_settled);
    return status;
}

// Adds retries of failed trials to the round, if requested, and evaluates the round.
static enum msc_status retry_failed(struct msc_search *s) {
    s->is_retried = true;
    MSC_TRY(s->options->retry_failed ? add_retries(s) : MSC_OK);
    return msc_search__evaluate(s, NULL);
}

static enum msc_status fail_replay(const struct msc_search *s, const char *what) {
    return MSC_FAIL(MSC_E_STATE,
                    "%s: trial %lld does not replay: %s; --warm-start continues with a fresh agent "
                    "that first observes all %zu trials",
                    s->options->record_path, (long long)s->next_id, what, s->n_recorded);
}

static enum msc_status check_replay(const struct msc_search *s, const struct msc_proposal *recorded,
                                    const struct msc_proposal *proposal) {
    size_t n_bytes = s->space->n_tasks * sizeof *proposal->choices;
    if (memcmp(recorded->choices, proposal->choices, n_bytes) != 0) {
        return fail_replay(s, "the agent proposes other choices than the record has");
    }
    if (recorded->parent != proposal->parent || recorded->bound != proposal->bound ||
        recorded->probe != proposal->probe) {
        return fail_replay(s, "the agent proposes another parent, bound or probe than the record "
                              "has");
    }
    return MSC_OK;
}

// Ends the replay and begins this launch's own work.
static enum msc_status go_live(struct msc_search *s) {
    if (s->is_live) {
        return MSC_OK;
    }
    s->is_live = true;
    s->live_ns = msc_clock_ns();
    s->last_commit_ns = s->live_ns;
    s->paced_ns = s->live_ns;
    if (s->n_recorded > 0) {
        msc_log(s->options->log, MSC_LOG_INFO, "%s: continuing after %zu trial%s",
                s->options->record_path, s->n_recorded, s->n_recorded == 1 ? "" : "s");
    }
    return msc_search__announce_best(s);
}

static bool is_target_reached(const struct msc_search *s) {
    const struct msc_budget *budget = &s->options->budget;
    if (!budget->has_target || s->best_id < 0) {
        return false;
    }
    const struct msc_record_line line = msc_record_trial(s->record, (size_t)s->best_id);
    const struct msc_outcome *best = &line.trial.outcome;
    double target = s->goal->objectives[0].is_maximised ? -budget->target : budget->target;
    return best->state == MSC_TRIAL_COMPLETE && best->objectives[0] <= target;
}

// True if the search is at its end. Called between rounds, after everything was observed. The
// baselines are always completed first.
static bool is_at_end(const struct msc_search *s, enum msc_search_end *end) {
    const struct {
        bool is_reached;
        enum msc_search_end end;
    } checks[] = {
        {is_target_reached(s), MSC_SEARCH_END_TARGET},
        {s->n_repeats_in_row >= MSC_SEARCH_MAX_REPEATS ||
             (double)s->points.n_settled >= s->n_space_points,
         MSC_SEARCH_END_EXHAUSTED},
        {msc_agent_is_done(s->agent), MSC_SEARCH_END_AGENT},
        {msc_search__trials_allowed(s, 0) <= 0, MSC_SEARCH_END_TRIALS},
        {msc_search__is_time_over(s), MSC_SEARCH_END_TIME},
    };
    if (msc_cancel_soon(s->options->cancel)) {
        *end = MSC_SEARCH_END_CANCELLED;
        return true;
    }
    for (size_t i = 0; !is_at_beginning(s) && i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].is_reached) {
            *end = checks[i].end;
            return true;
        }
    }
    return false;
}

static enum msc_status add_beginning(struct msc_search *s) {
    size_t i = (size_t)s->next_id;
    size_t n_baselines = s->space->n_baselines;
    return i < n_baselines ? msc_search__add_baseline(s, i)
                           : msc_search__add_told(s, i - n_baselines);
}

// Runs the baselines and the trials of other records, `parallel` at a time.
static enum msc_status run_beginning(struct msc_search *s) {
    int64_t end = s->next_id + s->options->parallel;
    end = end < beginning_end(s) ? end : beginning_end(s);
    while (s->next_id < end) {
        MSC_TRY(is_replaying(s) ? take_next_recorded(s) : add_beginning(s));
    }
    return is_replaying(s) ? MSC_OK : msc_search__evaluate(s, NULL);
}

// Fills a round with points of `warm` that are tried before the agent is asked.
static size_t fill_round_with_tried(struct msc_search *s) {
    size_t n = s->warm.n_tried - s->n_tried;
    n = n < s->options->parallel ? n : s->options->parallel;
    for (size_t i = 0; i < n; i++) {
        const struct msc_warm_point *point = &s->warm.points[s->warm.n_told + s->n_tried + i];
        memcpy(s->proposals[i].choices, point->choices, s->space->n_tasks * sizeof *point->choices);
        s->proposals[i].parent = -1;
        s->proposals[i].bound = INFINITY;
        s->proposals[i].probe = false;
        s->proposals[i].origin = NULL;
    }
    return n;
}

static enum msc_status ask_agent_for_round(struct msc_search *s, size_t *n) {
    *n = 0;
    MSC_TRY(msc_agent_ask(s->agent, s->proposals, s->options->parallel, n));
    assert(*n <= s->options->parallel);
    for (size_t i = 0; i < *n; i++) {
        if (s->proposals[i].parent >= s->next_id) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "the agent names trial %lld as a parent, but only trials below %lld exist",
                (long long)s->proposals[i].parent, (long long)s->next_id);
        }
    }
    if (*n == 0 && is_replaying(s)) {
        return fail_replay(s, "the agent has nothing left to try");
    }
    return MSC_OK;
}

// Replays the record's lines of this round. Sets *n_taken to the number of proposals that they
// answer.
static enum msc_status replay_round(struct msc_search *s, size_t n, size_t *n_taken) {
    *n_taken = 0;
    while (*n_taken < n && is_replaying(s)) {
        const struct msc_record_line line = next_recorded(s);
        if (line.retry_of < 0 && !line.is_assembled) {
            MSC_TRY(check_replay(s, &line.trial.proposal, &s->proposals[*n_taken]));
            (*n_taken)++;
        }
        MSC_TRY(take_recorded(s, &line));
    }
    s->n_written = s->n_items;
    return MSC_OK;
}

// Replays and evaluates a round's n proposals. Sets *is_cut if the round ended before its last
// proposal; *end says why.
static enum msc_status run_proposals(struct msc_search *s, size_t n, enum msc_record_warm warm,
                                     bool *is_cut, enum msc_search_end *end) {
    size_t n_taken = 0;
    MSC_TRY(replay_round(s, n, &n_taken));
    if (n_taken == n) {
        return MSC_OK;
    }
    MSC_TRY(go_live(s));
    if (!s->is_retried) {
        MSC_TRY(retry_failed(s));
    }
    *is_cut = true;
    if (msc_cancel_soon(s->options->cancel)) {
        *end = MSC_SEARCH_END_CANCELLED;
        return MSC_OK;
    }
    if (msc_search__is_time_over(s)) {
        *end = MSC_SEARCH_END_TIME;
        return MSC_OK;
    }
    size_t n_open = n - n_taken;
    int64_t n_allowed = msc_search__trials_allowed(s, n_open);
    size_t n_run = n_allowed < 0 ? 0 : (uint64_t)n_allowed < n_open ? (size_t)n_allowed : n_open;
    bool is_late = false;
    size_t n_added = msc_search__is_raced(s) && n_run > 0 ? n_open : n_run;
    for (size_t i = n_taken; i < n_taken + n_added; i++) {
        MSC_TRY(msc_search__add_new(s, &s->proposals[i], warm));
    }
    s->n_extra = n_added - n_run;
    MSC_TRY(msc_search__is_raced(s) ? msc_search__run_race(s, &is_late)
                                    : msc_search__evaluate(s, &is_late));
    *is_cut = is_late || n_run < n_open;
    *end = is_late ? MSC_SEARCH_END_TIME : MSC_SEARCH_END_TRIALS;
    return MSC_OK;
}

// Runs one round. The agent observes it if it is complete. Sets *is_over if the search ends here.
static enum msc_status run_round(struct msc_search *s, bool *is_over, enum msc_search_end *end) {
    begin_round(s);
    if (is_at_beginning(s)) {
        MSC_TRY(run_beginning(s));
        return tell_round(s);
    }
    for (size_t i = 0; i < s->options->parallel; i++) {
        s->proposals[i].choices = s->choices + i * s->space->n_tasks;
    }
    size_t n = fill_round_with_tried(s);
    enum msc_record_warm warm = n > 0 ? MSC_RECORD_WARM_TRIED : MSC_RECORD_WARM_NONE;
    if (n == 0) {
        MSC_TRY(ask_agent_for_round(s, &n));
    }
    if (n == 0) {
        *is_over = true;
        *end = MSC_SEARCH_END_AGENT;
        return MSC_OK;
    }
    MSC_TRY(run_proposals(s, n, warm, is_over, end));
    return *is_over ? MSC_OK : tell_round(s);
}

// Replays trials that were retried between two rounds, and early plans.
static enum msc_status replay_retries(struct msc_search *s) {
    begin_round(s);
    while (is_replaying(s) && !is_at_beginning(s) &&
           (next_recorded(s).retry_of >= 0 || next_recorded(s).is_assembled)) {
        MSC_TRY(take_next_recorded(s));
    }
    return tell_round(s);
}

// Logs an estimate of the search's time once the baselines have been measured.
static enum msc_status say_estimate(struct msc_search *s) {
    struct msc_estimate estimate;
    struct msc_str text = {0};
    struct msc_estimate_live live = {
        .trial_s = msc_rate_seconds(&s->pace.trials),
        .n_measured = s->pace.trials.n_seen,
    };
    live.left = msc_search__left(s, &live.effort);
    MSC_TRY(msc_estimate_from_record(&estimate, s->record, s->options, &live));
    MSC_TRY(msc_estimate_check(&estimate, s->options->record_path));
    msc_estimate_text(&text, &estimate);
    enum msc_status status = msc_str_status(&text);
    char *line = status == MSC_OK ? text.data : NULL;
    while (line && *line) {
        char *end = strchr(line, '\n');
        if (end) {
            *end = '\0';
        }
        msc_log(s->options->log, MSC_LOG_INFO, "%s", line);
        line = end ? end + 1 : NULL;
    }
    msc_str_finish(&text);
    return status;
}

static enum msc_status search_loop(struct msc_search *s, enum msc_search_end *end) {
    bool is_over = false;
    bool is_estimated = false;
    while (!is_over) {
        MSC_TRY(replay_retries(s));
        MSC_TRY(msc_search__check_record(s));
        if (!is_replaying(s)) {
            MSC_TRY(go_live(s));
            if (!s->is_retried && !is_at_beginning(s)) {
                begin_round(s);
                MSC_TRY(retry_failed(s));
                MSC_TRY(tell_round(s));
            }
        }
        if (!is_replaying(s) || msc_cancel_soon(s->options->cancel)) {
            if (is_at_end(s, end)) {
                return MSC_OK;
            }
        }
        if (s->is_live && !is_estimated && !is_at_beginning(s)) {
            MSC_TRY(say_estimate(s));
            is_estimated = true;
        }
        MSC_TRY(run_round(s, &is_over, end));
    }
    return MSC_OK;
}

// Lets a new agent observe all trials before `first` without asking it for them.
static enum msc_status warm_start(struct msc_search *s, int64_t first) {
    while (s->next_id < first) {
        if (msc_cancel_soon(s->options->cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
        }
        begin_round(s);
        MSC_TRY(take_next_recorded(s));
        MSC_TRY(tell_round(s));
    }
    return MSC_OK;
}

static enum msc_status begin_segments(struct msc_search *s) {
    const struct msc_search_options *o = s->options;
    int64_t first = 0;
    for (size_t i = 0; i < msc_record_n_segments(s->record); i++) {
        const struct msc_record_segment *segment = msc_record_segment(s->record, i);
        first = segment->is_warm_start ? segment->first : first;
    }
    const char *numerics = o->numerics ? o->numerics : "";
    const char *recorded = msc_record_numerics(s->record, (int64_t)s->n_recorded);
    bool is_new = strcmp(numerics, recorded) != 0;
    bool is_beginning = s->n_recorded == 0 && o->own_numerics && !strcmp(recorded, o->own_numerics);
    if (is_new && !is_beginning && !o->accept_new_numerics) {
        return MSC_FAIL(
            MSC_E_STATE,
            "%s: its results were computed by \"%s\", but this program would continue with \"%s\": "
            "results would differ in the last bits; --accept-new-numerics continues",
            o->record_path, recorded, numerics);
    }
    bool is_warm = o->warm_start && s->n_recorded > 0 && (int64_t)s->n_recorded >= beginning_end(s);
    first = is_warm ? (int64_t)s->n_recorded : first;
    if (is_new || is_warm) {
        MSC_TRY(msc_record_append_segment(s->record, numerics, is_warm));
        MSC_TRY(msc_record_commit(s->record));
    }
    return warm_start(s, first);
}

// Makes the last checks of the record, whether the search failed or not.
static enum msc_status finish_record(struct msc_search *s, enum msc_status status) {
    char message[512];
    snprintf(message, sizeof message, "%s", msc_status_message());
    enum msc_status looked = s->record ? msc_record_commit(s->record) : MSC_OK;
    if (status != MSC_OK) {
        return msc_status_restore(status, message);
    }
    MSC_TRY(looked);
    return msc_search__check_record(s);
}

static enum msc_status take_remarks(struct msc_search_result *result, const struct msc_search *s) {
    result->learnt = cJSON_CreateArray();
    MSC_TRY(MSC_ALLOCATED(result->learnt));
    return msc_agent_remarks(s->agent, result->learnt);
}

enum msc_status msc_search_run(struct msc_search_result *result,
                               const struct msc_search_options *options) {
    struct msc_search s = {.options = options,
                           .record = options->record,
                           .pace = MSC_PACE_INIT,
                           .best_id = -1,
                           .announced_id = -1};
    *result = (struct msc_search_result){0};
    enum msc_status status = msc_search__open(&s);
    bool is_open = status == MSC_OK;
    if (options->pool) {
        msc_env_set_elsewhere(options->env, msc_pool_elsewhere(options->pool));
    }
    if (status == MSC_OK) {
        status = begin_segments(&s);
    }
    if (status == MSC_OK) {
        status = search_loop(&s, &result->end);
    }
    if (status == MSC_OK) {
        status = msc_search__assemble(&s, result->end);
    }
    if (status == MSC_OK && result->end != MSC_SEARCH_END_CANCELLED) {
        status = take_remarks(result, &s);
    }
    if (options->pool) {
        msc_env_set_elsewhere(options->env, NULL);
    }
    if (status == MSC_E_CANCELLED && is_open && msc_cancel_soon(options->cancel)) {
        result->end = MSC_SEARCH_END_CANCELLED;
        status = MSC_OK;
    }
    status = finish_record(&s, status);
    if (status == MSC_OK) {
        result->was_resumed = s.n_recorded > 0;
        result->n_new = s.n_new;
        result->n_evaluated = s.n_evaluated;
        result->elapsed_s = msc_search__elapsed_s(&s);
        result->trial_s = msc_rate_seconds(&s.pace.trials);
        msc_record_release(s.record);
        result->record = s.record;
        s.record = NULL;
    } else {
        msc_search_result_finish(result);
    }
    msc_search__close(&s);
    return status;
}

void msc_search_result_finish(struct msc_search_result *result) {
    cJSON_Delete(result->learnt);
    msc_record_close(result->record);
    *result = (struct msc_search_result){0};
}
