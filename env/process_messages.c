#include "env/process_messages.h"

#include "base/json.h"
#include "base/str.h"
#include "env/api/message.h"
#include "env/space_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_KEYS(keys) (sizeof(keys) / sizeof((keys)[0]))
#define MOST_VERSION UINT32_MAX

// ---- The answer to init -----------------------------------------------------------------------

static enum msc_status read_metric(void *payload, size_t i, const cJSON *object,
                                   const char *where) {
    static const char *const keys[] = {"name", "unit", "help", "maximised", "measured"};
    const struct msc_space_json *r = payload;
    struct msc_metric *metric = &r->metrics[i];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(msc_space_json_read_head(r, metric, object, where));
    return msc_json_get(object, "measured")
               ? msc_json_get_bool(&metric->is_measured, object, "measured", where)
               : MSC_OK;
}

static enum msc_status read_point(const struct msc_space *space, uint32_t choices[],
                                  const cJSON *list, const char *where) {
    const cJSON *item;
    size_t t = 0;
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != space->n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.choices: expected %zu choices, one for each task", where,
                        space->n_tasks);
    }
    cJSON_ArrayForEach(item, list) {
        const struct msc_task *task = &space->tasks[t];
        int64_t value;
        if (!msc_json_read_i64(&value, item, 0, (int64_t)task->n_choices - 1)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s.choices[%zu]: expected 0 to %u, a choice of task %s",
                            where, t, task->n_choices - 1, task->name);
        }
        choices[t++] = (uint32_t)value;
    }
    return MSC_OK;
}

static enum msc_status read_baseline(const struct msc_space_json *r, struct msc_baseline *baseline,
                                     const cJSON *object, const char *where) {
    static const char *const keys[] = {"label", "choices"};
    const char *label = NULL;
    uint32_t *choices = msc_arena_array(r->arena, r->space->n_tasks, sizeof *choices);
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(msc_json_get_text(&label, object, "label", where));
    baseline->label = msc_arena_strdup(r->arena, label);
    baseline->choices = choices;
    MSC_TRY(MSC_ALLOCATED(choices && baseline->label));
    return read_point(r->space, choices, msc_json_get(object, "choices"), where);
}

static enum msc_status read_baselines(const struct msc_space_json *r, const cJSON *root) {
    const cJSON *list = msc_json_get(root, "baselines");
    const cJSON *item;
    if (!list) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, root, "baselines", "top level"));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_baseline *baselines = msc_arena_array(r->arena, n + 1, sizeof *baselines);
    MSC_TRY(MSC_ALLOCATED(baselines));
    r->space->baselines = baselines;
    cJSON_ArrayForEach(item, list) {
        char where[64];
        snprintf(where, sizeof where, "baselines[%zu]", r->space->n_baselines);
        MSC_TRY(read_baseline(r, &baselines[r->space->n_baselines++], item, where));
    }
    return MSC_OK;
}

// Sets the metrics that a JSON object {name: number} contains; null means unknown.
static enum msc_status read_metrics(double metrics[], const struct msc_space *space,
                                    const cJSON *object, bool may_be_exact, const char *where) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        int metric = msc_space_find_metric(space, item->string);
        if (metric < 0) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: the space has no metric \"%s\"", where,
                            item->string);
        }
        if (space->metrics[metric].is_exact && !may_be_exact) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: \"%s\" is an exact cost of the space; leave it out",
                            where, item->string);
        }
        if (!cJSON_IsNull(item) && !(cJSON_IsNumber(item) && isfinite(item->valuedouble))) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: expected a finite number for \"%s\", or null if it is unknown",
                            where, item->string);
        }
        metrics[metric] = cJSON_IsNull(item) ? NAN : item->valuedouble;
    }
    return MSC_OK;
}

static enum msc_status read_reference(struct msc_process_env *out, const cJSON *answer) {
    const cJSON *object = msc_json_get(answer, "reference");
    for (size_t i = 0; i < MSC_MAX_METRICS; i++) {
        out->reference[i] = NAN;
    }
    if (!object) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_object(&object, answer, "reference", "top level"));
    return read_metrics(out->reference, &out->space, object, true, "reference");
}

static enum msc_status read_version(struct msc_process_env *out, const cJSON *answer) {
    const cJSON *item = msc_json_get(answer, "version");
    out->version = 0;
    return item == NULL || msc_json_read_i64(&out->version, item, 0, MOST_VERSION)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "version: expected an integer of at least 0");
}

enum msc_status msc_process_read_space(struct msc_process_env *out, const struct cJSON *answer,
                                       struct msc_arena *arena) {
    static const char *const keys[] = {"version",    "features",  "choice_features",
                                       "tasks",      "metrics",   "costs",
                                       "neighbours", "baselines", "reference"};
    struct msc_space_json r = {.space = &out->space, .arena = arena};
    MSC_TRY(msc_json_check_keys(answer, keys, N_KEYS(keys), "top level"));
    MSC_TRY(read_version(out, answer));
    MSC_TRY(msc_space_json_read_tasks(&r, answer));
    MSC_TRY(msc_space_json_read_metrics(&r, answer, read_metric, &r));
    MSC_TRY(read_baselines(&r, answer));
    MSC_TRY(read_reference(out, answer));
    return msc_space_finish(&out->space, arena);
}

// ---- Evaluating -------------------------------------------------------------------------------

void msc_process_write_evaluate(struct msc_str *out, const struct msc_space *space,
                                const struct msc_evaluation *e, const size_t places[], size_t n) {
    msc_str_append(out, "{\"method\":\"evaluate\",\"trials\":[");
    for (size_t i = 0; i < n; i++) {
        double bound = e->bounds ? e->bounds[places[i]] : INFINITY;
        msc_str_append(out, i > 0 ? ",{\"choices\":" : "{\"choices\":");
        msc_message_write_choices(out, e->trials[places[i]]->proposal.choices, space->n_tasks);
        if (isfinite(bound)) {
            msc_str_append(out, ",\"bound\":");
            msc_json_write_number(out, bound);
        }
        msc_str_char(out, '}');
    }
    msc_str_append(out, "]}");
}

static enum msc_status read_index(size_t *out, const cJSON *answer, const bool is_done[],
                                  size_t n) {
    const cJSON *item = msc_json_get(answer, "trial");
    int64_t value;
    if (!msc_json_read_i64(&value, item, 0, (int64_t)n - 1)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "answer: expected \"trial\" to be the index of a trial, 0 to %zu", n - 1);
    }
    *out = (size_t)value;
    return is_done[*out] ? MSC_FAIL(MSC_E_FORMAT, "answer: trial %zu was answered twice", *out)
                         : MSC_OK;
}

// Reads "state"; its default is "complete".
static enum msc_status read_state(enum msc_trial_state *out, const cJSON *answer,
                                  const char *where) {
    const char *name = "complete";
    if (msc_json_get(answer, "state")) {
        MSC_TRY(msc_json_get_text(&name, answer, "state", where));
    }
    return msc_trial_state_parse(out, name) && *out != MSC_TRIAL_INFEASIBLE
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_FORMAT,
                     "%s: its state is \"%s\", expected \"complete\", \"failed\" or \"pruned\"",
                     where, name);
}

static enum msc_status fill_outcome(struct msc_outcome *outcome, const cJSON *answer,
                                    const struct msc_space *space, const char *where) {
    enum msc_trial_state state = MSC_TRIAL_COMPLETE;
    const cJSON *metrics = msc_json_get(answer, "metrics");
    const char *reason = "";
    MSC_TRY(read_state(&state, answer, where));
    if (metrics || state != MSC_TRIAL_FAILED) {
        MSC_TRY(msc_json_get_object(&metrics, answer, "metrics", where));
        MSC_TRY(read_metrics(outcome->metrics, space, metrics, false, where));
    }
    if (msc_json_get(answer, "reason")) {
        MSC_TRY(msc_json_get_text(&reason, answer, "reason", where));
    }
    if (state == MSC_TRIAL_FAILED && !reason[0]) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: its state is \"failed\", expected a \"reason\"", where);
    }
    if (state == MSC_TRIAL_FAILED) {
        msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "%s", reason);
    } else if (state == MSC_TRIAL_PRUNED) {
        msc_outcome_prune(outcome, "%s", reason[0] ? reason : "stopped by the environment");
    }
    return MSC_OK;
}

enum msc_status msc_process_read_outcome(size_t *index, const struct cJSON *answer,
                                         const struct msc_space *space,
                                         const struct msc_evaluation *e, const size_t places[],
                                         const bool is_done[], size_t n) {
    static const char *const keys[] = {"trial", "state", "metrics", "reason"};
    char where[64];
    MSC_TRY(msc_json_check_keys(answer, keys, N_KEYS(keys), "answer"));
    MSC_TRY(read_index(index, answer, is_done, n));
    snprintf(where, sizeof where, "answer: trial %zu", *index);
    struct msc_trial *trial = e->trials[places[*index]];
    return fill_outcome(&trial->outcome, answer, space, where);
}
