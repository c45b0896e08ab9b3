// Builds the report as JSON. report_text.c prints it.
#include "results/report.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "env/env.h"
#include "records/record_query.h"

#include <math.h>
#include <stdio.h>

static enum msc_status report_add_metrics(cJSON *object, const struct msc_space *space,
                                          const double metrics[]) {
    cJSON *values = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "metrics", values));
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (!isnan(metrics[i])) {
            MSC_TRY(msc_json_add_number(values, space->metrics[i].name, metrics[i]));
        }
    }
    return MSC_OK;
}

static enum msc_status report_add_choices(cJSON *object, const struct msc_space *space,
                                          const uint32_t choices[]) {
    cJSON *labels = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "choices", labels));
    for (size_t t = 0; t < space->n_tasks; t++) {
        const struct msc_task *task = &space->tasks[t];
        MSC_TRY(msc_json_add_text(labels, task->name, task->labels[choices[t]]));
    }
    return MSC_OK;
}

static enum msc_status report_add_trial(cJSON *object, const struct msc_report_options *o,
                                        const struct msc_record_line *line) {
    const struct msc_space *space = msc_record_space(o->record);
    const struct msc_outcome *outcome = &line->trial.outcome;
    MSC_TRY(msc_json_add_number(object, "id", (double)line->trial.id));
    MSC_TRY(msc_json_add_text(object, "state", msc_trial_state_name(outcome->state)));
    if (line->baseline >= 0) {
        MSC_TRY(msc_json_add_text(object, "label", space->baselines[line->baseline].label));
    }
    if (line->is_left_out) {
        MSC_TRY(msc_json_add_bool(object, "left_out", true));
    }
    MSC_TRY(msc_json_add_number(object, "violation", outcome->violation));
    if (outcome->reason[0] != '\0') {
        char reason[MSC_REASON_BYTES]; // a forged record may have invalid UTF-8 here
        msc_shown_copy(reason, sizeof reason, outcome->reason);
        MSC_TRY(msc_json_add_text(object, "reason", reason));
    }
    return report_add_metrics(object, space, outcome->metrics);
}

static void tell_measuring(const struct msc_report_options *o, const char *what,
                           const char *of_what) {
    char text[96];
    snprintf(text, sizeof text, "%s of %.60s", what, of_what);
    if (o->measuring) {
        o->measuring(o->payload, text);
    }
}

// Moves the members of `from` to `to`, replacing members of the same name, and deletes `from`.
static enum msc_status move_members(cJSON *to, cJSON *from) {
    enum msc_status status = MSC_OK;
    while (status == MSC_OK && from->child) {
        cJSON *item = cJSON_DetachItemViaPointer(from, from->child);
        cJSON_DeleteItemFromObjectCaseSensitive(to, item->string);
        status = msc_json_add(to, item->string, item);
    }
    cJSON_Delete(from);
    return status;
}

// Adds measurements that need the environment, one after another. Measurements that fail for the
// trial are left out.
static enum msc_status add_reevaluated(cJSON *object, const struct msc_report_options *o,
                                       const struct msc_trial *trial, unsigned what,
                                       const char *of_what) {
    static const struct {
        unsigned step;
        const char *name;
    } steps[] = {
        {MSC_REEVALUATE_NOISE, "noise"},
        {MSC_REEVALUATE_ALONE, "isolated losses"},
        {MSC_REEVALUATE_VALIDATION, "validation"},
    };
    if (!o->env || trial->outcome.state == MSC_TRIAL_FAILED) {
        return MSC_OK;
    }
    cJSON *reevaluated = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "examined", reevaluated));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        cJSON *found = NULL;
        if (what & steps[i].step) {
            tell_measuring(o, steps[i].name, of_what);
            MSC_TRY(msc_env_reevaluate(o->env, trial->proposal.choices, steps[i].step, &found));
            MSC_TRY(move_members(reevaluated, found));
        }
    }
    return MSC_OK;
}

static enum msc_status report_add_winner(cJSON *report, const struct msc_report_options *o) {
    struct msc_record_line best;
    if (!msc_record_best(&best, o->record)) {
        return msc_json_add(report, "winner", cJSON_CreateNull());
    }
    cJSON *winner = cJSON_CreateObject();
    MSC_TRY(msc_json_add(report, "winner", winner));
    MSC_TRY(report_add_trial(winner, o, &best));
    MSC_TRY(report_add_choices(winner, msc_record_space(o->record), best.trial.proposal.choices));
    return add_reevaluated(winner, o, &best.trial, MSC_REEVALUATE_ALL, "the winner");
}

static enum msc_status report_add_baselines(cJSON *report, const struct msc_report_options *o) {
    cJSON *array = cJSON_CreateArray();
    MSC_TRY(msc_json_add(report, "baselines", array));
    for (size_t i = 0; i < msc_record_space(o->record)->n_baselines; i++) {
        struct msc_record_line line;
        if (!msc_record_baseline(&line, o->record, i)) {
            break;
        }
        char name[64];
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(array, object));
        MSC_TRY(report_add_trial(object, o, &line));
        const char *label = msc_record_space(o->record)->baselines[i].label;
        snprintf(name, sizeof name, "%s%.50s", msc_baseline_kind(label), label);
        MSC_TRY(add_reevaluated(object, o, &line.trial, MSC_REEVALUATE_VALIDATION, name));
    }
    return MSC_OK;
}

static enum msc_status report_add_reference(cJSON *report, const struct msc_report_options *o) {
    double metrics[MSC_MAX_METRICS];
    if (!o->env) {
        return MSC_OK;
    }
    cJSON *reference = cJSON_CreateObject();
    MSC_TRY(msc_json_add(report, "reference", reference));
    tell_measuring(o, "metrics", "the uncompressed model");
    MSC_TRY(msc_env_reference(o->env, metrics));
    return report_add_metrics(reference, msc_record_space(o->record), metrics);
}

static enum msc_status report_add_list(cJSON *report, const char *key,
                                       const struct msc_report_options *o, const int64_t ids[],
                                       size_t n) {
    cJSON *array = cJSON_CreateArray();
    MSC_TRY(msc_json_add(report, key, array));
    for (size_t i = 0; i < n; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(array, object));
        const struct msc_record_line line = msc_record_trial(o->record, (size_t)ids[i]);
        MSC_TRY(report_add_trial(object, o, &line));
    }
    return MSC_OK;
}

static enum msc_status report_add_top(cJSON *report, const struct msc_report_options *o) {
    size_t n = 0;
    if (o->n_top == 0) {
        return MSC_OK;
    }
    int64_t *ids = msc_alloc_zero(o->n_top, sizeof *ids);
    MSC_TRY(MSC_ALLOCATED(ids));
    msc_record_top(ids, &n, o->n_top, o->record);
    enum msc_status status = report_add_list(report, "top", o, ids, n);
    msc_free(ids);
    return status;
}

static enum msc_status report_add_front(cJSON *report, const struct msc_report_options *o) {
    int64_t *ids = NULL;
    size_t n = 0;
    if (!o->has_front) {
        return MSC_OK;
    }
    MSC_TRY(msc_record_front(&ids, &n, o->record));
    enum msc_status status = report_add_list(report, "front", o, ids, n);
    msc_free(ids);
    return status;
}

// Completes the rows of trials with data of the record.
static enum msc_status complete_rows(cJSON *list, const struct msc_report_options *o) {
    cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        const cJSON *id = msc_json_get(row, "id");
        if (!id) {
            continue; // the float model's row
        }
        cJSON *known = cJSON_CreateObject();
        const struct msc_record_line line = msc_record_trial(o->record, (size_t)id->valuedouble);
        enum msc_status status =
            known ? report_add_trial(known, o, &line) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
        if (status != MSC_OK) {
            cJSON_Delete(known);
            return status;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(known, "violation"); // the row already has it
        cJSON_DeleteItemFromObjectCaseSensitive(known, "id");
        MSC_TRY(move_members(row, known));
    }
    return MSC_OK;
}

enum msc_status msc_report_add_reranked(struct cJSON *report, const struct msc_record *record,
                                        const struct cJSON *from) {
    static const char *const lists[] = {"plans", "references"};
    const struct msc_report_options o = {.record = record};
    if (!from) {
        return MSC_OK;
    }
    cJSON *reranked = cJSON_Duplicate(from, true);
    cJSON_DeleteItemFromObjectCaseSensitive(report, "reranked");
    MSC_TRY(msc_json_add(report, "reranked", reranked));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        MSC_TRY(complete_rows(msc_json_get(reranked, lists[i]), &o));
    }
    cJSON_DeleteItemFromObjectCaseSensitive(reranked, "schema");
    cJSON_DeleteItemFromObjectCaseSensitive(reranked, "record");
    return MSC_OK;
}

static enum msc_status report_add_counts(cJSON *report, const struct msc_record *record) {
    struct msc_record_counts counts;
    msc_record_count(&counts, record);
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(report, "counts", object));
    MSC_TRY(msc_json_add_number(object, "trials", (double)counts.n_trials));
    for (int i = 0; i < MSC_TRIAL_STATE_COUNT; i++) {
        MSC_TRY(msc_json_add_number(object, msc_trial_state_name((enum msc_trial_state)i),
                                    (double)counts.n_by_state[i]));
    }
    MSC_TRY(msc_json_add_number(object, "baselines", (double)counts.n_baselines));
    if (counts.n_told > 0) {
        MSC_TRY(msc_json_add_number(object, "told", (double)counts.n_told));
    }
    MSC_TRY(msc_json_add_number(object, "repeats", (double)counts.n_repeats));
    MSC_TRY(msc_json_add_number(object, "retries", (double)counts.n_retries));
    MSC_TRY(msc_json_add_number(object, "elapsed_s", counts.elapsed_s));
    return msc_json_add_number(object, "reuse", counts.reuse_ratio);
}

static enum msc_status report_add_goal(cJSON *report, const struct msc_record *record) {
    static const char *const members[] = {"numerics", "seed", "objectives", "bounds", "agent"};
    const cJSON *header = msc_record_header(record);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const cJSON *member = msc_json_get(header, members[i]);
        if (member) {
            MSC_TRY(msc_json_add(report, members[i], cJSON_Duplicate(member, true)));
        }
    }
    const cJSON *env = msc_json_get(header, "env");
    const cJSON *of = msc_json_get(env, "latency_of");
    MSC_TRY(of ? msc_json_add(report, "latency_of", cJSON_Duplicate(of, true)) : MSC_OK);
    const cJSON *sameness = msc_json_get(header, "sameness");
    return sameness ? msc_json_add(report, "sameness", cJSON_Duplicate(sameness, true)) : MSC_OK;
}

static enum msc_status add_metric_names(cJSON *report, const struct msc_space *space) {
    cJSON *names = cJSON_CreateArray();
    MSC_TRY(msc_json_add(report, "metrics", names));
    for (size_t i = 0; i < space->n_metrics; i++) {
        MSC_TRY(msc_json_push(names, cJSON_CreateString(space->metrics[i].name)));
    }
    return MSC_OK;
}

static enum msc_status report_add_learnt(cJSON *report, const cJSON *learnt) {
    return cJSON_GetArraySize(learnt) > 0
               ? msc_json_add(report, "learnt", cJSON_Duplicate(learnt, true))
               : MSC_OK;
}

static enum msc_status report_fill(cJSON *report, const struct msc_report_options *o) {
    MSC_TRY(msc_json_add_text(report, "record", msc_record_path(o->record)));
    if (o->result) {
        MSC_TRY(msc_json_add_text(report, "end", msc_search_end_name(o->result->end)));
        MSC_TRY(report_add_learnt(report, o->result->learnt));
    }
    MSC_TRY(report_add_goal(report, o->record));
    MSC_TRY(add_metric_names(report, msc_record_space(o->record)));
    MSC_TRY(report_add_counts(report, o->record));
    MSC_TRY(report_add_winner(report, o));
    MSC_TRY(report_add_reference(report, o));
    MSC_TRY(report_add_baselines(report, o));
    MSC_TRY(report_add_top(report, o));
    return report_add_front(report, o);
}

enum msc_status msc_report_create(struct cJSON **out, const struct msc_report_options *options) {
    cJSON *report = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(report));
    enum msc_status status = report_fill(report, options);
    if (status != MSC_OK) {
        cJSON_Delete(report);
        return status;
    }
    *out = report;
    return MSC_OK;
}
