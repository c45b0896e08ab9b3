#include "search/estimate_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "env/env.h"
#include "records/race.h"
#include "records/record_query.h"

#include <math.h>
#include <string.h>

// Estimated parts of a trial line's length: fixed part, one choice, one metric.
#define LINE_BYTES 240
#define CHOICE_BYTES 2.1
#define METRIC_BYTES 36
// Space for the header and the file system's overhead.
#define SPARE_BYTES 65536
// Time to write and sync a round's lines on an SSD.
#define COMMIT_S 2e-3
// Trial time is averaged over at least this many recent trials, if recorded.
#define RECENT_TRIALS 64

// Recorded trial times already include the agent's time.
static const struct msc_estimate_agent counted_already = {.is_known = true};

static double agent_seconds(const struct msc_estimate_agent *agent, double n) {
    // `n` may be +inf, and 0 * inf is NaN
    double more = agent->later_s > 0.0 ? agent->later_s * (n - agent->n) : 0.0;
    return n <= 0.0        ? 0.0
           : n <= agent->n ? agent->plan_s + agent->seconds * n / agent->n
                           : agent->plan_s + agent->seconds + more;
}

// Fills in how long the trials in `live` take and how much they write. Agent, space and trial
// budget already limit these trials; the function also applies the time budget.
static void fill_rest(struct msc_estimate *e, const struct msc_search_options *o,
                      const struct msc_estimate_live *live, const struct msc_estimate_agent *agent,
                      double elapsed_s) {
    double time_s = fmax(0.0, o->budget.seconds - elapsed_s);
    e->n_trials = live->left.n;
    e->is_exact = live->left.is_exact;
    e->n_plan = live->left.n_plan;
    e->is_agent_counted = agent->is_known;
    e->agent_s = agent->is_known ? agent_seconds(agent, e->n_trials) : NAN;
    double line_s = o->parallel > 0 ? COMMIT_S / o->parallel : 0.0;
    e->left_s =
        live->effort * e->trial_s + (agent->is_known ? e->agent_s : 0.0) + line_s * e->n_trials;
    if (o->budget.seconds > 0.0 && e->left_s > time_s) {
        e->n_trials = floor(time_s / (e->trial_s + agent->later_s + line_s));
        e->is_timed = true;
    }
    e->is_counted = o->budget.trials >= 0;
    if (o->budget.seconds > 0.0 && (e->is_timed || isnan(e->trial_s))) {
        e->left_s = time_s;
    }
    e->end_wall_s = msc_clock_wall_seconds() + e->left_s;
    e->record_bytes = e->n_trials * (double)e->line_bytes;
}

// The mean trial time over the last lines of the record. Lines of the first commit include the
// first touch of memory, so they are used only if there are no others.
static double recorded_trial_s(const struct msc_record *record) {
    size_t n_lines = msc_record_n_trials(record);
    double end_s = NAN;
    size_t n = 0;
    for (size_t i = n_lines; i-- > 0;) {
        const struct msc_record_line line = msc_record_trial(record, i);
        end_s = i + 1 == n_lines ? line.elapsed_s : end_s;
        bool is_commit =
            i + 1 < n_lines && line.elapsed_s < msc_record_trial(record, i + 1).elapsed_s;
        if (is_commit && n >= RECENT_TRIALS) {
            return (end_s - line.elapsed_s) / (double)n;
        }
        n += msc_record_is_evaluated(&line);
    }
    double first_s = n_lines > 0 ? msc_record_trial(record, 0).elapsed_s : NAN;
    size_t n_first = 0;
    for (size_t i = 0; i < n_lines && msc_record_trial(record, i).elapsed_s == first_s; i++) {
        const struct msc_record_line line = msc_record_trial(record, i);
        n_first += msc_record_is_evaluated(&line);
    }
    return n > n_first ? (end_s - first_s) / (double)(n - n_first)
                       : end_s / (n > 0 ? (double)n : NAN);
}

static double number_member(const cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0.0;
}

// Estimates the time of msc_env_reevaluate. `whole_s` is the time of a trial that shares no work
// with others.
static enum msc_status reevaluate_seconds(double *out, struct msc_env *env, double whole_s) {
    const struct msc_space *space = msc_env_space(env);
    uint32_t *point = msc_alloc_zero(space->n_tasks + 1, sizeof *point);
    cJSON *object = NULL;
    *out = NAN;
    MSC_TRY(MSC_ALLOCATED(point));
    enum msc_status status = msc_env_reevaluate(env, point, MSC_REEVALUATE_EFFORT, &object);
    const cJSON *effort = msc_json_get(object, "effort");
    if (status == MSC_OK && effort) {
        double n = number_member(effort, "noise") + number_member(effort, "alone") +
                   number_member(effort, "validation") * (1.0 + (double)space->n_baselines);
        *out = (n + 1.0) * whole_s; // 1: the uncompressed model
    }
    cJSON_Delete(object);
    msc_free(point);
    return status;
}

static double whole_seconds(double trial_s, double reuse_ratio) {
    return trial_s / (1.0 - fmin(fmax(reuse_ratio, 0.0), 0.95));
}

enum msc_status msc_estimate_reevaluate(double *out, struct msc_env *env,
                                        const struct msc_record *record, double trial_s) {
    struct msc_record_counts counts;
    msc_record_count(&counts, record);
    trial_s = isnan(trial_s) ? recorded_trial_s(record) : trial_s;
    return reevaluate_seconds(out, env, whole_seconds(trial_s, counts.reuse_ratio));
}

static void describe_record(struct msc_estimate *e, const struct msc_search_options *o) {
    const struct msc_space *space = msc_env_space(o->env);
    size_t n_batches = msc_env_n_batches(o->env);
    bool is_raced = o->race && o->race->n_rungs > 0;
    *e = (struct msc_estimate){
        .race = o->race ? *o->race : (struct msc_race){0},
        .race_effort = is_raced ? msc_race_effort(o->race, o->parallel, n_batches) : 1.0,
        .n_batches = n_batches,
        .trial_s = NAN,
        .reevaluate_s = NAN,
        .n_points = msc_space_n_points(space),
        .line_bytes = LINE_BYTES + (uint64_t)(CHOICE_BYTES * (double)space->n_tasks) +
                      METRIC_BYTES * space->n_metrics,
    };
}

enum msc_status msc_estimate_from_record(struct msc_estimate *out, const struct msc_record *record,
                                         const struct msc_search_options *options,
                                         const struct msc_estimate_live *live) {
    struct msc_record_counts counts;
    struct msc_estimate_live asked;
    msc_record_count(&counts, record);
    describe_record(out, options);
    out->n_recorded = counts.n_trials;
    bool is_timed = live && !isnan(live->trial_s);
    out->n_measured =
        is_timed ? live->n_measured : counts.n_trials - counts.n_repeats - counts.n_told;
    double whole_s = is_timed ? live->trial_s : recorded_trial_s(record);
    out->trial_s = is_timed ? out->race_effort * whole_s : whole_s;
    struct msc_estimate_agent agent = counted_already;
    if (!live) {
        MSC_TRY(msc_estimate__ask(&asked, options, counts.n_budgeted));
        live = &asked;
    } else {
        MSC_TRY(msc_estimate__probe(&agent, options, live->left.n));
    }
    fill_rest(out, options, live, &agent, counts.elapsed_s);
    MSC_TRY(msc_estimate_reevaluate(&out->reevaluate_s, options->env, record, whole_s));
    return msc_file_free_bytes(&out->free_bytes, options->record_path);
}

// Measures the baselines, or one point if there are none. If there are several baselines, the first
// one is excluded, because its time includes touching memory and packing weights for all baselines.
static enum msc_status measure_baselines(struct msc_estimate *e, const struct msc_search_options *o,
                                         const struct msc_space *space) {
    size_t n = space->n_baselines > 0 ? space->n_baselines : 1;
    size_t n_first = n > 1 ? 1 : 0;
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    struct msc_trial *trials = msc_arena_array(&arena, n, sizeof *trials);
    struct msc_trial **measured = msc_arena_array(&arena, n, sizeof *measured);
    MSC_TRY_OUT(MSC_ALLOCATED(trials && measured));
    for (size_t i = 0; i < n; i++) {
        measured[i] = &trials[i];
        MSC_TRY_OUT(msc_estimate__baseline(&trials[i], &arena, space, i));
    }
    const struct msc_evaluation first = {.trials = measured, .n = n_first};
    const struct msc_evaluation others = {.trials = measured + n_first, .n = n - n_first};
    MSC_TRY_OUT(msc_env_evaluate(o->env, o->goal, &first));
    double begin_s = msc_clock_seconds();
    MSC_TRY_OUT(msc_env_evaluate(o->env, o->goal, &others));
    e->trial_s = (msc_clock_seconds() - begin_s) / (double)(n - n_first);
    e->n_measured = n - n_first;
    status = msc_estimate__reuse(e, o, measured, n);
out:
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_estimate_make(struct msc_estimate *out,
                                  const struct msc_search_options *options) {
    const struct msc_space *space = msc_env_space(options->env);
    struct msc_record *record = NULL;
    struct msc_estimate_live asked;
    if (msc_file_exists(options->record_path) && !options->restart) {
        enum msc_status status =
            msc_record_open(&record, options->record_path, MSC_RECORD_READ, options->log);
        if (status == MSC_OK) {
            status = msc_estimate_from_record(out, record, options, NULL);
            msc_record_close(record);
        }
        if (status != MSC_E_NOT_FOUND && (status != MSC_OK || out->n_measured > 0)) {
            return status;
        }
    }
    describe_record(out, options);
    MSC_TRY(measure_baselines(out, options, space));
    MSC_TRY(reevaluate_seconds(&out->reevaluate_s, options->env, out->trial_s));
    out->trial_s = out->race_effort * out->trial_s;
    MSC_TRY(msc_estimate__ask(&asked, options, 0));
    struct msc_estimate_agent agent;
    MSC_TRY(msc_estimate__probe(&agent, options, asked.left.n));
    // The trials to come include the baselines, because nothing was written yet.
    fill_rest(out, options, &asked, &agent, 0.0);
    return msc_file_free_bytes(&out->free_bytes, options->record_path);
}

static void write_bytes(struct msc_str *out, double n_bytes) {
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (n_bytes >= 1000.0 && unit + 1 < sizeof units / sizeof units[0]) {
        n_bytes /= 1000.0;
        unit++;
    }
    msc_str_printf(out, "%.3g %s", n_bytes, units[unit]);
}

enum msc_status msc_estimate_check(const struct msc_estimate *estimate, const char *record_path) {
    // The size is checked only if there is a trial budget, because without one the agent may end
    // long before the time budget or the space is used up.
    double need = estimate->is_counted ? estimate->record_bytes : 0.0;
    if ((double)estimate->free_bytes >= need + SPARE_BYTES) {
        return MSC_OK;
    }
    struct msc_str need_text = {0};
    struct msc_str free_text = {0};
    write_bytes(&need_text, need + SPARE_BYTES);
    write_bytes(&free_text, (double)estimate->free_bytes);
    enum msc_status status =
        MSC_FAIL(MSC_E_IO, "%s: the record will need about %s, but its disk has only %s free",
                 record_path, msc_str_text(&need_text), msc_str_text(&free_text));
    msc_str_finish(&need_text);
    msc_str_finish(&free_text);
    return status;
}

static void write_budget(struct msc_str *out, const struct msc_estimate *e) {
    char when[MSC_CLOCK_TEXT_BYTES];
    bool is_most = !e->is_exact && !e->is_timed;
    msc_str_append(out, "budget: ");
    if (isfinite(e->n_trials)) {
        msc_str_append(out, e->is_timed ? "about " : is_most ? "at most " : "");
        msc_str_printf(out, "%.0f trials", e->n_trials);
    } else {
        msc_str_append(out, "no limit on trials");
    }
    if (e->n_recorded > 0) {
        msc_str_printf(out, " after the %zu in the record", e->n_recorded);
    }
    if (isfinite(e->left_s)) {
        msc_str_append(out, is_most && isfinite(e->n_trials) ? ", at most about " : ", about ");
        msc_str_append_duration(out, e->left_s);
        msc_str_printf(out, ", until %s", msc_clock_format(when, e->end_wall_s));
        msc_str_append(out, e->is_agent_counted ? "" : ", the agent's own time not counted");
    }
    msc_str_char(out, '\n');
}

// Warns if the budget may end before the agent has made its final plan.
static void write_plan(struct msc_str *out, const struct msc_estimate *e) {
    if (e->n_plan <= e->n_trials) {
        return;
    }
    if (isfinite(e->n_plan)) {
        msc_str_printf(out,
                       "plan: the agent needs %.0f trials to make its plan, more than the budget; "
                       "the last trial is a plan from the trials until then\n",
                       e->n_plan);
    } else if (isfinite(e->n_trials)) {
        msc_str_append(
            out,
            "plan: the number of trials that the agent needs to meet the bounds is unknown; if the "
            "budget ends before, the last trial is a plan from the trials until then\n");
    }
}

// The ratios hold for one batch. With all batches, less of the cache's results may fit.
static void write_reuse(struct msc_str *out, const struct msc_estimate *e) {
    if (e->n_shared > 0) {
        msc_str_printf(
            out,
            "sharing: values that several trials of a round need are computed once; in "
            "the agent's first round of %zu trials this saves about %.0f %% of the "
            "multiply-accumulates\n"
            "cache: results kept of earlier trials save at most about another %.0f %% in "
            "this round; both were measured on 1 of %zu batches\n",
            e->n_shared, 100.0 * e->shared_ratio, 100.0 * e->kept_ratio, e->n_batches);
    }
}

static void write_race(struct msc_str *out, const struct msc_estimate *e) {
    for (size_t i = 0; i < e->race.n_rungs; i++) {
        msc_str_append(out, i > 0 ? ", "
                            : e->race.margin > 0.0
                                ? "race: trials that may beat the best so far continue after "
                                : "race: the best trials of a round continue after ");
        msc_str_printf(out, "%u", e->race.rungs[i]);
    }
    if (e->race.n_rungs > 0 && e->race.margin > 0.0) {
        msc_str_printf(out, " of %zu batches; from %zu batches on, at most %.3g of a round",
                       e->n_batches, msc_race_halves_from(&e->race), e->race.keep);
    } else if (e->race.n_rungs > 0) {
        msc_str_printf(out, " of %zu batches, %.3g of the trials each time", e->n_batches,
                       e->race.keep);
    }
    if (e->race.n_rungs > 0) {
        msc_str_printf(out, "; a round takes at most %.0f %% of its batches\n",
                       ceil(100.0 * e->race_effort));
    }
}

void msc_estimate_text(struct msc_str *out, const struct msc_estimate *estimate) {
    if (isfinite(estimate->n_points)) {
        msc_str_printf(out, "space: %.0f points\n", estimate->n_points);
    } else {
        msc_str_append(out, "space: more than 2^53 points\n");
    }
    if (!isnan(estimate->trial_s)) {
        msc_str_append(out, "trial: about ");
        msc_str_append_duration(out, estimate->trial_s);
        msc_str_printf(out, ", measured on %zu\n", estimate->n_measured);
    }
    write_reuse(out, estimate);
    write_race(out, estimate);
    write_budget(out, estimate);
    write_plan(out, estimate);
    if (!isnan(estimate->reevaluate_s)) {
        msc_str_append(out, "then: about ");
        msc_str_append_duration(out, estimate->reevaluate_s);
        msc_str_append(out, " to measure the winner and the uniform plans again\n");
    }
    msc_str_append(out, "record: about ");
    write_bytes(out, (double)estimate->line_bytes);
    msc_str_append(out, " a trial, ");
    if (isfinite(estimate->record_bytes)) {
        write_bytes(out, estimate->record_bytes);
        msc_str_append(out, " to come; ");
    }
    write_bytes(out, (double)estimate->free_bytes);
    msc_str_append(out, " free on its disk\n");
}

enum msc_status msc_estimate_describe(const struct msc_estimate *e, struct cJSON *object) {
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"space_points", e->n_points},
        {"trial_s", e->trial_s},
        {"trials_measured", (double)e->n_measured},
        {"trials_recorded", (double)e->n_recorded},
        {"trials_left", e->n_trials},
        {"left_s", e->left_s},
        {"agent_s", e->agent_s},
        {"trials_to_plan", e->n_plan},
        {"examine_s", e->reevaluate_s},
        {"trial_line_bytes", (double)e->line_bytes},
        {"record_bytes", e->record_bytes},
        {"free_bytes", (double)e->free_bytes},
        {"race_effort", e->race.n_rungs > 0 ? e->race_effort : NAN},
        {"shared_ratio", e->n_shared > 0 ? e->shared_ratio : NAN},
        {"kept_ratio", e->n_shared > 0 ? e->kept_ratio : NAN},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        MSC_TRY(isfinite(numbers[i].value)
                    ? msc_json_add_number(object, numbers[i].key, numbers[i].value)
                    : msc_json_add(object, numbers[i].key, cJSON_CreateNull()));
    }
    MSC_TRY(msc_json_add_bool(object, "trials_left_are_exact", e->is_exact));
    MSC_TRY(msc_json_add_bool(object, "trials_left_by_time", e->is_timed));
    char when[MSC_CLOCK_TEXT_BYTES];
    return isfinite(e->left_s)
               ? msc_json_add_text(object, "end_utc", msc_clock_format(when, e->end_wall_s))
               : msc_json_add(object, "end_utc", cJSON_CreateNull());
}
