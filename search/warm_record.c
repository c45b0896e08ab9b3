// Takes points from records: decides whether a record's values are comparable and which of its
// points are taken.
#include "search/warm_internal.h"

#include "env/env.h"
#include "records/record_query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A record and how it maps to this search's space.
struct beside {
    struct msc_warm_taking *w;
    struct msc_warm_source *source;
    struct msc_record *record;
    const struct msc_space *theirs;
    int64_t *tasks;    // [theirs->n_tasks], our task for each of theirs, or -1
    int64_t **choices; // [theirs->n_tasks][n_choices], our choice for each of theirs, or -1
};

// ---- Names ------------------------------------------------------------------------------------

static int64_t find_their_task(const struct msc_space *theirs, const char *name, size_t hint) {
    if (hint < theirs->n_tasks && strcmp(theirs->tasks[hint].name, name) == 0) {
        return (int64_t)hint;
    }
    for (size_t t = 0; t < theirs->n_tasks; t++) {
        if (strcmp(theirs->tasks[t].name, name) == 0) {
            return (int64_t)t;
        }
    }
    return -1;
}

static enum msc_status match_names(struct beside *b) {
    const struct msc_space *ours = b->w->space;
    struct msc_arena *arena = &b->w->arena;
    b->tasks = msc_arena_array(arena, ours->n_tasks, sizeof *b->tasks);
    b->choices = msc_arena_array(arena, ours->n_tasks, sizeof *b->choices);
    MSC_TRY(MSC_ALLOCATED(b->tasks && b->choices));
    for (size_t t = 0; t < ours->n_tasks; t++) {
        b->tasks[t] = find_their_task(b->theirs, ours->tasks[t].name, t);
        if (b->tasks[t] < 0) {
            continue;
        }
        const struct msc_task *task = &b->theirs->tasks[b->tasks[t]];
        b->source->n_known++;
        b->source->is_known[t] = true;
        b->choices[t] = msc_arena_array(arena, task->n_choices, sizeof *b->choices[t]);
        MSC_TRY(MSC_ALLOCATED(b->choices[t]));
        for (uint32_t c = 0; c < task->n_choices; c++) {
            b->choices[t][c] = msc_warm__find_choice(&ours->tasks[t], task->labels[c]);
        }
    }
    return MSC_OK;
}

// Sets the source's point. False if the task lists differ or a chosen label does not exist here.
static bool translate(const struct beside *b, const struct msc_trial *trial) {
    const struct msc_space *ours = b->w->space;
    bool is_whole = ours->n_tasks == b->theirs->n_tasks;
    for (size_t t = 0; t < ours->n_tasks; t++) {
        int64_t of = b->tasks[t];
        int64_t choice = of >= 0 ? b->choices[t][trial->proposal.choices[of]] : -1;
        is_whole = is_whole && choice >= 0;
        b->source->choices[t] =
            choice >= 0 ? (uint32_t)choice : ours->tasks[t].most_expensive_first[0];
    }
    return is_whole;
}

// ---- Comparability ------------------------------------------------------------------------------

// The first member that differs; "" if none does. A member that only one object has counts as null.
static const char *find_other_member(const cJSON *a, const cJSON *b, const char *const ignored[]) {
    const cJSON *const objects[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, objects[i]) {
            const cJSON *other = msc_json_get(objects[1 - i], item->string);
            bool is_ignored = false;
            for (size_t k = 0; ignored[k]; k++) {
                is_ignored = is_ignored || strcmp(ignored[k], item->string) == 0;
            }
            bool is_equal = other ? cJSON_Compare(item, other, true) : cJSON_IsNull(item);
            if (!is_ignored && !is_equal) {
                return item->string;
            }
        }
    }
    return "";
}

// Compares environments by their descriptions, which must state everything that results depend on.
// The list of choices may differ, and so may the scales stored for each choice.
static void compare_envs(struct msc_str *why, const cJSON *theirs, const cJSON *ours) {
    static const char *const described[] = {"graph", "weights", "dataset"};
    static const char *const beside[] = {"params", "params_hash", NULL};
    static const char *const in_params[] = {"choices", NULL};
    for (size_t i = 0; i < sizeof described / sizeof described[0]; i++) {
        if (!msc_json_get(theirs, described[i]) || !msc_json_get(ours, described[i])) {
            msc_str_append(why, "hashes.env differs");
            return;
        }
    }
    const char *key = find_other_member(theirs, ours, beside);
    const char *before = "env.";
    if (!*key) {
        key = find_other_member(msc_json_get(theirs, "params"), msc_json_get(ours, "params"),
                                in_params);
        before = "env.params.";
    }
    if (*key) {
        msc_str_printf(why, "%s%s differs", before, key);
    }
}

// Why this search cannot reuse the record's values.
static enum msc_status find_objection(struct msc_str *why, const struct beside *b) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash identity;
    const struct msc_env *env = b->w->options->env;
    const cJSON *header = msc_record_header(b->record);
    const cJSON *hashes = msc_json_get(header, "hashes");
    const cJSON *theirs = msc_json_get(hashes, "env");
    for (size_t i = 0; i < b->w->space->n_metrics; i++) {
        if (b->w->space->metrics[i].is_measured) {
            msc_str_printf(why, "%s is measured", b->w->space->metrics[i].name);
            return MSC_OK;
        }
    }
    MSC_TRY(msc_env_identity(&identity, env));
    if (cJSON_IsString(theirs) &&
        strcmp(theirs->valuestring, msc_hash_format(text, identity)) == 0) {
        return MSC_OK;
    }
    cJSON *ours = cJSON_CreateObject();
    enum msc_status status =
        ours ? msc_env_describe(env, ours) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        compare_envs(why, msc_json_get(header, "env"), ours);
    }
    cJSON_Delete(ours);
    return status;
}

// Maps a trial's metrics to ours. False if the trial lacks a metric that is not exact.
static bool gather_metrics(double metrics[], const struct beside *b,
                           const struct msc_trial *trial) {
    const struct msc_space *ours = b->w->space;
    for (size_t i = 0; i < ours->n_metrics; i++) {
        int k = msc_space_find_metric(b->theirs, ours->metrics[i].name);
        metrics[i] = k >= 0 ? trial->outcome.metrics[k] : NAN;
        if (!isfinite(metrics[i]) && !ours->metrics[i].is_exact) {
            return false;
        }
    }
    return true;
}

static bool is_usable(const struct msc_record_line *line) {
    enum msc_trial_state state = line->trial.outcome.state;
    return line->repeat_of < 0 && msc_trial_state_is_result(state);
}

// True if the trial's values can be used as they are; then sets the source's point and `metrics`.
static bool is_tellable(double metrics[], const struct beside *b,
                        const struct msc_record_line *line) {
    const char *numerics = b->w->options->numerics ? b->w->options->numerics : "";
    return is_usable(line) &&
           strcmp(msc_record_numerics(b->record, line->trial.id), numerics) == 0 &&
           translate(b, &line->trial) && gather_metrics(metrics, b, &line->trial);
}

// Evaluates the source's point again. Sets *out: are the metrics equal bit for bit?
static enum msc_status comes_out_again(bool *out, const struct beside *b, int64_t id,
                                       const double metrics[]) {
    const struct msc_space *ours = b->w->space;
    struct msc_trial trial;
    struct msc_trial *evaluated = &trial;
    const struct msc_evaluation evaluation = {.trials = &evaluated, .n = 1};
    MSC_TRY(msc_trial_init(&trial, &b->w->arena, ours));
    trial.id = id;
    trial.proposal.probe = true;
    memcpy(trial.proposal.choices, b->source->choices, ours->n_tasks * sizeof *b->source->choices);
    MSC_TRY(msc_env_evaluate(b->w->options->env, b->w->options->goal, &evaluation));
    *out = true;
    for (size_t i = 0; i < ours->n_metrics; i++) {
        *out = *out && (ours->metrics[i].is_exact || metrics[i] == trial.outcome.metrics[i]);
    }
    return MSC_OK;
}

// ---- Taking -----------------------------------------------------------------------------------

// Lists the ids of all results, best first.
static enum msc_status list_results(int64_t **out, size_t *n, const struct beside *b) {
    size_t n_trials = msc_record_n_trials(b->record);
    *out = msc_arena_array(&b->w->arena, n_trials + 1, sizeof **out);
    MSC_TRY(MSC_ALLOCATED(*out));
    msc_record_top(*out, n, n_trials, b->record);
    return MSC_OK;
}

// Evaluates the best trial with usable values again. If the trial cannot be reproduced, none of the
// record's values are used.
static enum msc_status find_surety(struct beside *b, const int64_t ids[], size_t n) {
    double metrics[MSC_MAX_METRICS];
    for (size_t i = 0; i < n; i++) {
        const struct msc_record_line line = msc_record_trial(b->record, (size_t)ids[i]);
        if (is_tellable(metrics, b, &line) && msc_warm__is_new(b->w, b->source)) {
            bool is_same = true;
            MSC_TRY(b->w->options->is_dry_run ? MSC_OK
                                              : comes_out_again(&is_same, b, ids[i], metrics));
            if (!is_same) {
                msc_str_printf(&b->source->why, "trial %lld could not be reproduced",
                               (long long)ids[i]);
            }
            return MSC_OK;
        }
    }
    msc_str_append(
        &b->source->why,
        "no new trial has all of this search's metrics, with the same choices and numerics");
    return MSC_OK;
}

static enum msc_status tell_all(struct beside *b) {
    double metrics[MSC_MAX_METRICS];
    for (size_t i = 0; i < msc_record_n_trials(b->record); i++) {
        const struct msc_record_line line = msc_record_trial(b->record, i);
        if (is_tellable(metrics, b, &line)) {
            MSC_TRY(msc_warm__take(b->w, b->source, metrics));
        }
    }
    return MSC_OK;
}

static enum msc_status take_trials(struct beside *b) {
    int64_t *ids = NULL;
    size_t n = 0;
    MSC_TRY(match_names(b));
    MSC_TRY(list_results(&ids, &n, b));
    MSC_TRY(find_objection(&b->source->why, b));
    if (b->source->why.length == 0) {
        MSC_TRY(find_surety(b, ids, n));
    }
    MSC_TRY(msc_str_status(&b->source->why));
    if (b->source->why.length == 0) {
        return tell_all(b);
    }
    for (size_t i = 0; i < n && b->source->n_known > 0 && b->source->n_tried < MSC_WARM_BEST; i++) {
        const struct msc_record_line line = msc_record_trial(b->record, (size_t)ids[i]);
        translate(b, &line.trial);
        MSC_TRY(msc_warm__take(b->w, b->source, NULL));
    }
    return MSC_OK;
}

// ---- Lessons ------------------------------------------------------------------------------------

// The first objective, if it must be measured and has features of choices; else NULL.
static const struct msc_metric *learnt_metric(const struct msc_warm_taking *w) {
    const struct msc_objective *objective = &w->options->goal->objectives[0];
    const struct msc_metric *metric = &w->space->metrics[objective->metric];
    return metric->is_exact || w->space->n_choice_features == 0 ? NULL : metric;
}

// Copies of one record must not teach the same losses twice.
static bool is_repeated(const struct beside *b) {
    char text[MSC_HASH_TEXT_BYTES];
    const cJSON *source = NULL;
    msc_hash_format(text, b->source->hash);
    cJSON_ArrayForEach(source, b->w->sources) {
        if (strcmp(msc_json_text_of(source, "hash"), text) == 0) {
            return true;
        }
    }
    return false;
}

static void study(struct msc_feature_study *s, const struct beside *b, int metric) {
    for (size_t i = 0; i < msc_record_n_trials(b->record); i++) {
        const struct msc_record_line line = msc_record_trial(b->record, i);
        if (is_usable(&line)) {
            msc_feature_study_tell(s, line.trial.proposal.choices,
                                   line.trial.outcome.metrics[metric]);
        }
    }
}

// Learns how losses depend on features. Not from told points: the agent itself learns from these.
static enum msc_status learn(struct beside *b) {
    const struct msc_metric *metric = learnt_metric(b->w);
    struct msc_feature_lessons *lessons = &b->w->lessons;
    int theirs = metric ? msc_space_find_metric(b->theirs, metric->name) : -1;
    if (theirs < 0 || b->source->n_told > 0 || b->theirs->n_choice_features == 0) {
        return MSC_OK;
    }
    struct msc_feature_study s = {0};
    size_t before = lessons->n_losses;
    double sign = b->w->options->goal->objectives[0].is_maximised ? -1.0 : 1.0;
    enum msc_status status = msc_feature_study_open(&s, b->theirs, metric->name, sign);
    if (status == MSC_OK) {
        study(&s, b, theirs);
    }
    enum msc_status closed =
        msc_feature_study_close(&s, status == MSC_OK ? lessons : NULL, &b->w->arena);
    b->source->n_losses = lessons->n_losses - before;
    return status == MSC_OK ? closed : status;
}

enum msc_status msc_warm__hash_record(struct msc_hash *out, const char *path) {
    struct msc_record *record = NULL;
    MSC_TRY(msc_record_open(&record, path, MSC_RECORD_HEADER, NULL));
    enum msc_status status = msc_record_identity(out, record);
    msc_record_close(record);
    return status;
}

enum msc_status msc_warm__take_record(struct msc_warm_taking *w, struct msc_warm_source *source) {
    struct beside b = {.w = w, .source = source};
    source->kind = "record";
    MSC_TRY(msc_record_open(&b.record, source->path, MSC_RECORD_READ, w->options->log));
    b.theirs = msc_record_space(b.record);
    enum msc_status status = msc_record_identity(&source->hash, b.record);
    if (status == MSC_OK) {
        status = take_trials(&b);
    }
    source->is_repeated = is_repeated(&b);
    if (status == MSC_OK && !source->is_repeated) {
        status = learn(&b);
    }
    msc_record_close(b.record);
    return status;
}
