#include "checks/verify.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "env/env.h"
#include "env/quantize/distill.h"
#include "records/record_query.h"
#include "records/distilled.h"
#include "records/reranked.h"
#include "tools/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64
#define DEFAULT_NOISE_RATIO 1e-3
// The random stream for drawing sample lines.
#define SAMPLE_STREAM 0x766572696679

const char *msc_verify_verdict_name(enum msc_verify_verdict verdict) {
    static const char *const names[MSC_VERIFY_VERDICT_COUNT] = {
        [MSC_VERIFY_EQUAL] = "equal",
        [MSC_VERIFY_WITHIN_NOISE] = "within noise",
        [MSC_VERIFY_DIFFERENT] = "different",
        [MSC_VERIFY_SKIPPED] = "skipped",
    };
    return names[verdict];
}

static int verify_compare_ids(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static size_t sort_unique(int64_t ids[], size_t n) {
    size_t n_kept = 0;
    qsort(ids, n, sizeof *ids, verify_compare_ids);
    for (size_t i = 0; i < n; i++) {
        if (n_kept == 0 || ids[n_kept - 1] != ids[i]) {
            ids[n_kept++] = ids[i];
        }
    }
    return n_kept;
}

// Parses "7" or "7-9" of `length` characters.
static bool parse_range(const char *text, size_t length, int64_t *first, int64_t *last) {
    char copy[64];
    if (length == 0 || length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *dash = strchr(copy, '-');
    if (dash) {
        *dash = '\0';
    }
    if (!msc_parse_i64(first, copy) || !msc_parse_i64(last, dash ? dash + 1 : copy)) {
        return false;
    }
    return *first >= 0 && *first <= *last && *last - *first < 100000000;
}

enum msc_status msc_verify_parse_ids(int64_t **ids, size_t *n, const char *text) {
    size_t capacity = 0;
    *ids = NULL;
    *n = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        int64_t first = 0;
        int64_t last = 0;
        enum msc_status status = MSC_OK;
        if (parse_range(at, length, &first, &last)) {
            status = msc_grow(ids, &capacity, *n + (size_t)(last - first) + 1, sizeof **ids);
        } else {
            status = MSC_FAIL(MSC_E_INVALID, "\"%s\" is not a list of trials such as 3,7-9", text);
        }
        if (status != MSC_OK) {
            msc_free(*ids);
            *ids = NULL;
            *n = 0;
            return status;
        }
        for (int64_t id = first; id <= last; id++) {
            (*ids)[(*n)++] = id;
        }
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    *n = sort_unique(*ids, *n);
    return MSC_OK;
}

static enum msc_status choose_lines(struct msc_verify_result *result,
                                    const struct msc_verify_options *o) {
    size_t n_trials = msc_record_n_trials(o->record);
    size_t n = o->ids ? o->n_ids : n_trials;
    enum msc_status status = MSC_OK;
    int64_t *ids = msc_alloc_zero(n + 1, sizeof *ids);
    MSC_TRY(MSC_ALLOCATED(ids));
    for (size_t i = 0; i < n; i++) {
        ids[i] = o->ids ? o->ids[i] : (int64_t)i;
        if (ids[i] < 0 || ids[i] >= (int64_t)n_trials) {
            status =
                MSC_FAIL(MSC_E_INVALID, "%s: trial %lld does not exist: the record has %zu trials",
                         msc_record_path(o->record), (long long)ids[i], n_trials);
            goto out;
        }
    }
    if (!o->ids && o->n_sample > 0 && o->n_sample < n) {
        struct msc_rng rng;
        msc_rng_seed(&rng, o->seed, SAMPLE_STREAM);
        for (size_t i = 0; i < o->n_sample; i++) {
            size_t other = i + (size_t)msc_rng_below(&rng, n - i);
            int64_t swapped = ids[i];
            ids[i] = ids[other];
            ids[other] = swapped;
        }
        n = o->n_sample;
    }
    n = sort_unique(ids, n);
    result->lines = msc_alloc_zero(n + 1, sizeof *result->lines);
    MSC_TRY_OUT(MSC_ALLOCATED(result->lines));
    for (size_t i = 0; i < n; i++) {
        result->lines[i].id = ids[i];
    }
    result->n_lines = n;
out:
    msc_free(ids);
    return status;
}

// The line that was evaluated: the trial's own line or, if it is a repeat, the line that it
// repeats.
static struct msc_record_line origin_line(const struct msc_record *record, int64_t id) {
    const struct msc_record_line line = msc_record_trial(record, (size_t)id);
    size_t origin = (size_t)(line.repeat_of >= 0 ? line.repeat_of : id);
    return msc_record_trial(record, origin);
}

static struct msc_trial origin_of(const struct msc_record *record, int64_t id) {
    return origin_line(record, id).trial;
}

static bool is_other_numerics(const struct msc_verify_options *o, const char *recorded) {
    return strcmp(recorded, o->numerics ? o->numerics : "") != 0;
}

static bool has_other_numerics(const struct msc_verify_options *o, int64_t id) {
    return is_other_numerics(o, msc_record_numerics(o->record, origin_of(o->record, id).id));
}

// The environment's noise for the record's best trial, or a default.
static enum msc_status measure_noise(double *out, const struct msc_verify_options *o) {
    struct msc_record_line best;
    *out = o->noise_ratio >= 0.0 ? o->noise_ratio : DEFAULT_NOISE_RATIO;
    if (o->noise_ratio < 0.0 && msc_record_best(&best, o->record)) {
        cJSON *reevaluated = NULL;
        MSC_TRY(msc_env_reevaluate(o->env, best.trial.proposal.choices, MSC_REEVALUATE_NOISE,
                                   &reevaluated));
        const cJSON *noise = msc_json_get(reevaluated, "noise");
        *out = cJSON_IsNumber(noise) ? noise->valuedouble : *out;
        cJSON_Delete(reevaluated);
    }
    return MSC_OK;
}

static enum msc_status find_noise(struct msc_verify_result *result,
                                  const struct msc_verify_options *o) {
    bool is_needed = false;
    for (size_t i = 0; i < result->n_lines; i++) {
        is_needed = is_needed || has_other_numerics(o, result->lines[i].id);
    }
    result->noise_ratio = NAN;
    return is_needed ? measure_noise(&result->noise_ratio, o) : MSC_OK;
}

static bool is_same_double(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool is_near_ratio(double a, double b, double ratio) {
    return fabs(a - b) <= ratio * fmax(fabs(a), fabs(b));
}

// True if a trial's loss is so close to its bound that, under other numerics, the trial may stop a
// batch earlier or later.
static bool may_stop_elsewhere(const struct msc_verify_options *o, int64_t id, double noise_ratio,
                               const struct msc_outcome *found) {
    const struct msc_outcome recorded = msc_record_trial(o->record, (size_t)id).trial.outcome;
    double bound = origin_of(o->record, id).proposal.bound;
    int loss = msc_record_goal(o->record)->objectives[0].metric;
    bool is_either = recorded.state == MSC_TRIAL_PRUNED || found->state == MSC_TRIAL_PRUNED;
    if (!is_either || isinf(bound)) {
        return false;
    }
    return is_near_ratio(recorded.metrics[loss], bound, noise_ratio) ||
           is_near_ratio(found->metrics[loss], bound, noise_ratio);
}

// True if a metric that is measured outside the program is missing.
static bool lacks_measured(const struct msc_space *space, const struct msc_outcome *found) {
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (space->metrics[i].is_measured && isnan(found->metrics[i])) {
            return true;
        }
    }
    return false;
}

static void verify_compare(struct msc_verify_line *line, const struct msc_verify_options *o,
                           double noise_ratio, const struct msc_outcome *found) {
    const struct msc_space *space = msc_record_space(o->record);
    const struct msc_record_line recorded_line = msc_record_trial(o->record, (size_t)line->id);
    const struct msc_outcome *recorded = &recorded_line.trial.outcome;
    bool may_differ = has_other_numerics(o, line->id);
    bool may_stop = may_differ && may_stop_elsewhere(o, line->id, noise_ratio, found);
    line->verdict = MSC_VERIFY_EQUAL;
    line->recorded_state = recorded->state;
    line->found_state = found->state;
    if (found->state == MSC_TRIAL_FAILED && lacks_measured(space, found)) {
        line->verdict = MSC_VERIFY_SKIPPED; // the metric could not be measured this time
        return;
    }
    for (size_t i = 0; i < space->n_metrics; i++) {
        double a = recorded->metrics[i];
        double b = found->metrics[i];
        if (is_same_double(a, b)) {
            continue;
        }
        if (space->metrics[i].is_measured) { // measured values may differ
            line->verdict = MSC_VERIFY_WITHIN_NOISE;
            continue;
        }
        line->metric = space->metrics[i].name;
        line->recorded = a;
        line->found = b;
        line->verdict = MSC_VERIFY_WITHIN_NOISE;
        bool is_close = may_differ && (may_stop || is_near_ratio(a, b, noise_ratio));
        if (!is_close || space->metrics[i].is_exact) {
            line->verdict = MSC_VERIFY_DIFFERENT;
            return;
        }
    }
    // A bound that is barely met under one numerics id may be exceeded under another.
    if (recorded->state != found->state && line->verdict == MSC_VERIFY_EQUAL) {
        line->metric = "state";
        line->verdict = MSC_VERIFY_DIFFERENT;
    }
}

// The number of batches to evaluate: fewer than all for a trial that was eliminated early.
static size_t batches_of(const struct msc_verify_options *o, int64_t id) {
    const struct msc_record_line origin = origin_line(o->record, id);
    return msc_record_is_raced_out(o->record, &origin)
               ? msc_record_race(o->record)->rungs[origin.n_rungs - 1]
               : msc_env_n_batches(o->env);
}

// Compares losses at the rungs of a race.
static void compare_rungs(struct msc_verify_line *line, const struct msc_verify_options *o,
                          double noise_ratio, const double terms[]) {
    const struct msc_record_line origin = origin_line(o->record, line->id);
    for (size_t i = 0; i < origin.n_rungs && line->verdict != MSC_VERIFY_DIFFERENT; i++) {
        double a = origin.rungs[i];
        double b = msc_env_partial_loss(o->env, terms, msc_record_race(o->record)->rungs[i]);
        if (!is_same_double(a, b)) {
            bool is_close = has_other_numerics(o, line->id) && is_near_ratio(a, b, noise_ratio);
            line->verdict = is_close ? MSC_VERIFY_WITHIN_NOISE : MSC_VERIFY_DIFFERENT;
            line->metric = "distill_loss at a rung";
            line->recorded = a;
            line->found = b;
        }
    }
}

static enum msc_status verify_batch(struct msc_verify_result *result,
                                    const struct msc_verify_options *o, const size_t places[],
                                    size_t n, size_t n_batches) {
    const struct msc_space *space = msc_env_space(o->env);
    bool is_raced = msc_record_race(o->record)->n_rungs > 0;
    struct msc_arena arena = {0};
    struct msc_trial trials[BATCH];
    struct msc_trial *evaluated[BATCH];
    double *terms[BATCH];
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < n; i++) {
        trials[i] = origin_of(o->record, result->lines[places[i]].id);
        evaluated[i] = &trials[i];
        MSC_TRY_OUT(msc_outcome_init(&trials[i].outcome, &arena, space));
        terms[i] =
            is_raced ? msc_arena_array(&arena, msc_env_n_terms(o->env), sizeof *terms[i]) : NULL;
        MSC_TRY_OUT(MSC_ALLOCATED(!is_raced || terms[i]));
    }
    const struct msc_evaluation evaluation = {.trials = evaluated, .n = n};
    const struct msc_env_part part = {.end = n_batches, .terms = terms};
    status = is_raced
                 ? msc_env_evaluate_part(o->env, msc_record_goal(o->record), &evaluation, &part)
                 : msc_env_evaluate(o->env, msc_record_goal(o->record), &evaluation);
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        struct msc_verify_line *line = &result->lines[places[i]];
        verify_compare(line, o, result->noise_ratio, &trials[i].outcome);
        if (is_raced && line->verdict != MSC_VERIFY_SKIPPED) {
            compare_rungs(line, o, result->noise_ratio, terms[i]);
        }
    }
out:
    msc_arena_finish(&arena);
    return status;
}

// Verifies the lines that take `n_batches` batches.
static enum msc_status verify_lines(struct msc_verify_result *result,
                                    const struct msc_verify_options *o, size_t n_batches) {
    size_t places[BATCH];
    size_t n = 0;
    for (size_t i = 0; i < result->n_lines; i++) {
        struct msc_verify_line *line = &result->lines[i];
        bool is_failed = origin_of(o->record, line->id).outcome.state == MSC_TRIAL_FAILED;
        if (is_failed) {
            line->verdict = MSC_VERIFY_SKIPPED;
        } else if (batches_of(o, line->id) == n_batches) {
            places[n++] = i;
        }
        if (n == BATCH || (i + 1 == result->n_lines && n > 0)) {
            if (msc_cancel_soon(o->cancel)) {
                return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
            }
            MSC_TRY(verify_batch(result, o, places, n, n_batches));
            n = 0;
        }
    }
    return MSC_OK;
}

static enum msc_status verify_all_lines(struct msc_verify_result *result,
                                        const struct msc_verify_options *o) {
    const struct msc_race *race = msc_record_race(o->record);
    size_t n_batches = msc_env_n_batches(o->env);
    if (race->n_rungs > 0 && race->rungs[race->n_rungs - 1] >= n_batches) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "%s: the last rung of its race is at %u batches, but the samples have only %zu",
            msc_record_path(o->record), race->rungs[race->n_rungs - 1], n_batches);
    }
    for (size_t i = 0; i < race->n_rungs; i++) {
        MSC_TRY(verify_lines(result, o, race->rungs[i]));
    }
    MSC_TRY(verify_lines(result, o, n_batches));
    for (size_t i = 0; i < result->n_lines; i++) {
        result->n_by_verdict[result->lines[i].verdict]++;
    }
    return MSC_OK;
}

// ---- The winner's improved plan -----------------------------------------------------------------

static enum msc_status compare_distilled(struct msc_verify_result *result,
                                         const struct msc_verify_options *o, const cJSON *distilled,
                                         const double found[]) {
    const struct msc_space *space = msc_env_space(o->env);
    const cJSON *numerics = msc_json_get(distilled, "numerics");
    const cJSON *metrics = msc_json_get(distilled, "metrics");
    struct msc_verify_line *line = &result->distilled;
    bool is_other = !cJSON_IsString(numerics) || is_other_numerics(o, numerics->valuestring);
    if (is_other && isnan(result->noise_ratio)) {
        MSC_TRY(measure_noise(&result->noise_ratio, o));
    }
    for (size_t i = 0; i < space->n_metrics; i++) {
        const cJSON *item = msc_json_get(metrics, space->metrics[i].name);
        double kept = cJSON_IsNumber(item) ? item->valuedouble : NAN;
        if (is_same_double(kept, found[i]) || line->verdict == MSC_VERIFY_DIFFERENT) {
            continue;
        }
        bool is_close = space->metrics[i].is_measured ||
                        (is_other && is_near_ratio(kept, found[i], result->noise_ratio));
        line->metric = space->metrics[i].name;
        line->recorded = kept;
        line->found = found[i];
        line->verdict = is_close ? MSC_VERIFY_WITHIN_NOISE : MSC_VERIFY_DIFFERENT;
    }
    return MSC_OK;
}

static enum msc_status verify_distilled(struct msc_verify_result *result,
                                        const struct msc_verify_options *o) {
    struct msc_record_line winner;
    bool has_winner = false;
    struct msc_strategy *plan = NULL;
    cJSON *distilled = NULL;
    double metrics[MSC_MAX_METRICS];
    MSC_TRY(msc_reranked_winner(&has_winner, &winner, o->record, NULL));
    if (o->ids || !has_winner) {
        return MSC_OK;
    }
    MSC_TRY(msc_distilled_load(&distilled, o->record, winner.trial.id, o->log));
    enum msc_status status = MSC_OK;
    if (msc_distilled_plan(distilled)) {
        result->has_distilled = true;
        result->distilled.id = winner.trial.id;
        MSC_TRY_OUT(msc_strategy_from_json(&plan, msc_distilled_plan(distilled), "plan"));
        MSC_TRY_OUT(
            msc_quantize_measure_plan(metrics, o->env, winner.trial.proposal.choices, plan));
        status = compare_distilled(result, o, distilled, metrics);
        result->n_by_verdict[result->distilled.verdict]++;
    }
out:
    msc_strategy_destroy(plan);
    cJSON_Delete(distilled);
    return status;
}

// ---- What the trials were measured with -------------------------------------------------------

// Warns if the model or the samples are not those of the record: differences then need no other
// cause, and equal lines prove nothing, because the float outputs are those of the record.
static enum msc_status tell_other_inputs(const struct msc_verify_options *o) {
    static const char *const parts[][2] = {{"graph", "the joints of the model"},
                                           {"weights", "the weights of the model"},
                                           {"dataset", "the samples"}};
    const cJSON *then = msc_json_get(msc_record_header(o->record), "env");
    cJSON *now = cJSON_CreateObject();
    enum msc_status status =
        now ? msc_env_describe(o->env, now) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (size_t i = 0; status == MSC_OK && i < sizeof parts / sizeof parts[0]; i++) {
        const cJSON *a = msc_json_get(then, parts[i][0]), *b = msc_json_get(now, parts[i][0]);
        if (cJSON_IsString(a) && cJSON_IsString(b) && strcmp(a->valuestring, b->valuestring) != 0) {
            msc_log(o->log, MSC_LOG_WARNING,
                    "%s: %s differ from those of the search (env.%s), so the results below say "
                    "nothing about the record; restore the files",
                    msc_record_path(o->record), parts[i][1], parts[i][0]);
        }
    }
    cJSON_Delete(now);
    return status;
}

enum msc_status msc_verify_run(struct msc_verify_result *result,
                               const struct msc_verify_options *options) {
    *result = (struct msc_verify_result){0};
    enum msc_status status = tell_other_inputs(options);
    if (status == MSC_OK) {
        status = choose_lines(result, options);
    }
    if (status == MSC_OK) {
        status = find_noise(result, options);
    }
    if (status == MSC_OK) {
        status = verify_all_lines(result, options);
    }
    if (status == MSC_OK) {
        status = verify_distilled(result, options);
    }
    if (status != MSC_OK) {
        msc_verify_result_finish(result);
    }
    return status;
}

void msc_verify_describe(struct msc_str *out, const struct msc_verify_line *line) {
    if (line->recorded_state != line->found_state) {
        msc_str_printf(out, "state is %s in the record and %s now",
                       msc_trial_state_name(line->recorded_state),
                       msc_trial_state_name(line->found_state));
        return;
    }
    msc_str_printf(out, "%s is ", line->metric);
    msc_str_double(out, line->recorded);
    msc_str_append(out, " in the record and ");
    msc_str_double(out, line->found);
    msc_str_append(out, " now");
}

void msc_verify_result_finish(struct msc_verify_result *result) {
    msc_free(result->lines);
    *result = (struct msc_verify_result){0};
}
