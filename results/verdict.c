#include "results/verdict.h"

#include "base/shown.h"
#include "env/env.h"
#include "results/verdict_internal.h"
#include "results/report_drop.h"
#include "results/report_rows.h"
#include "results/report_runtime.h"
#include "results/report_sameness.h"
#include "results/units.h"
#include "search/search.h"

#include <string.h>

static enum msc_status add_end(struct msc_verdict__state *v) {
    const cJSON *end = msc_verdict__get(v->report, "end");
    for (int i = 0; cJSON_IsString(end) && i < MSC_SEARCH_END_COUNT; i++) {
        if (strcmp(end->valuestring, msc_search_end_name((enum msc_search_end)i)) == 0) {
            msc_str_printf(&v->text, "The search has ended: %s.",
                           msc_search_end_text((enum msc_search_end)i));
            return msc_verdict__end_reason(v);
        }
    }
    msc_str_append(&v->text, "The search has not ended: the best plan may still change, and it was "
                             "not measured again.");
    return msc_verdict__end_reason(v);
}

static void take_objective(struct msc_verdict__state *v) {
    const cJSON *objectives = msc_verdict__get(v->report, "objectives");
    const cJSON *first = cJSON_GetArrayItem(objectives, 0);
    v->n_objectives = cJSON_GetArraySize(objectives);
    v->objective = msc_verdict__get(first, "metric")->valuestring;
    v->is_maximised = cJSON_IsTrue(msc_verdict__get(first, "maximise"));
}

static enum msc_status add_infeasible(struct msc_verdict__state *v) {
    msc_str_append(&v->text, "The nearest is ");
    msc_verdict__write_plan(&v->text, v->plan);
    msc_str_append(&v->text, ": ");
    msc_verdict__write_broken(&v->text, v->report, v->plan);
    msc_str_char(&v->text, '.');
    MSC_TRY(msc_verdict__end_reason(v));
    msc_str_append(&v->text, "Give the search more trials, cheaper choices or wider bounds.");
    return msc_verdict__end_reason(v);
}

// True if the plan has no advantage over the uniform plan of 8 bits.
static bool is_idle(const struct msc_verdict__state *v) {
    return msc_report__is_not_better(v->report) && !msc_verdict__get(v->eight, "left_out");
}

static bool may_deploy_eight(const struct msc_verdict__state *v) {
    return msc_verdict__is_in_state(v->eight, MSC_TRIAL_COMPLETE);
}

static const char *kind_of(const struct msc_verdict__state *v) {
    return !cJSON_IsObject(v->plan)                                             ? "none"
           : !msc_verdict__is_in_state(v->plan, MSC_TRIAL_COMPLETE)             ? "infeasible"
           : msc_report__is_blind(v->report)                                    ? "blind"
           : msc_verdict__is_far(v)                                             ? "far"
           : msc_verdict__get(v->plan, "label") && v->plan_of_search == v->plan ? "uniform"
           : is_idle(v)                                                         ? "caution"
                                                                                : "deploy";
}

// Ends the headline with the plan's rank among all plans that were found.
static void write_standing(struct msc_verdict__state *v, const char *kind) {
    if (msc_verdict__get(v->report, "reranked")) {
        msc_str_char(&v->text, '.');
    } else if (v->n_objectives > 1) {
        msc_str_printf(&v->text, ", which has the %s ", v->is_maximised ? "greatest" : "least");
        msc_unit_phrase(&v->text, v->objective);
        msc_str_char(&v->text, '.');
    } else {
        bool is_uniform = strcmp(kind, "uniform") == 0;
        msc_str_append(&v->text, is_uniform ? ": nothing better was found." : ".");
    }
}

static void write_headline(struct msc_verdict__state *v, const char *kind) {
    if (strcmp(kind, "none") == 0 && msc_report__has_held_out(v->report)) {
        msc_str_append(&v->text, "There is nothing to deploy: no trial meets every bound on the "
                                 "validation samples.");
    } else if (strcmp(kind, "none") == 0) {
        bool has_ended = msc_verdict__get(v->report, "end") != NULL;
        msc_str_printf(&v->text, "There is nothing to deploy%s: no trial has a result.",
                       has_ended ? "" : " yet");
    } else if (strcmp(kind, "infeasible") == 0) {
        msc_str_append(&v->text, "There is nothing to deploy: no trial meets every bound.");
    } else if (strcmp(kind, "blind") == 0) {
        msc_str_append(&v->text, "The samples cannot tell plans apart: do not deploy ");
        msc_verdict__write_plan(&v->text, v->plan);
        msc_str_append(&v->text, " without testing it.");
    } else if (strcmp(kind, "far") == 0) {
        msc_str_append(&v->text, "The best plan found, ");
        msc_verdict__write_plan(&v->text, v->plan);
        msc_str_append(&v->text, ", is far from the model: do not deploy it without testing it.");
    } else if (strcmp(kind, "caution") == 0) {
        msc_str_printf(&v->text, "Trial %.0f%s is not better than ",
                       msc_verdict__number(v->plan, "id"),
                       v->plan_of_search == v->plan ? "" : " with better weights");
        msc_verdict__write_plan(&v->text, v->eight);
        msc_str_append(&v->text, may_deploy_eight(v) ? ": deploy that plan, which needs no search."
                                                     : ", but that plan does not meet the bounds.");
    } else {
        msc_str_append(&v->text, "Deploy ");
        msc_verdict__write_plan(&v->text, v->plan);
        write_standing(v, kind);
    }
}

// Writes the command that exports the plan of the headline.
static void write_command(struct msc_verdict__state *v, const char *kind) {
    msc_str_append(&v->text, "mscgym export ");
    msc_shown_append_path(&v->text, msc_verdict__get(v->report, "record")->valuestring);
    if (strcmp(kind, "caution") == 0 && may_deploy_eight(v)) {
        msc_str_printf(&v->text, " --trial %.0f", msc_verdict__number(v->eight, "id"));
    }
    msc_str_append(&v->text, " -o compressed.onnx");
}

// A search of a schedule or a placement has a model, but its plans do not edit it.
static bool can_export(const struct msc_verdict__state *v) {
    const struct msc_env_def *env = msc_env_find(msc_report__text(v->env, "type"));
    return cJSON_IsString(msc_verdict__get(v->config, "model")) && (!env || env->edits);
}

static enum msc_status fill(cJSON *verdict, struct msc_verdict__state *v) {
    const char *kind = kind_of(v);
    MSC_TRY(msc_json_add_text(verdict, "kind", kind));
    write_headline(v, kind);
    MSC_TRY(msc_str_status(&v->text));
    MSC_TRY(msc_json_add_text(verdict, "headline", msc_str_text(&v->text)));
    msc_str_clear(&v->text);
    v->reasons = cJSON_CreateArray();
    MSC_TRY(msc_json_add(verdict, "reasons", v->reasons));
    bool is_feasible =
        cJSON_IsObject(v->plan) && msc_verdict__is_in_state(v->plan, MSC_TRIAL_COMPLETE);
    if (is_feasible) {
        MSC_TRY(msc_verdict__add_reasons(v));
    } else if (cJSON_IsObject(v->plan)) {
        MSC_TRY(add_infeasible(v));
    }
    MSC_TRY(add_end(v));
    if (!is_feasible || !can_export(v)) {
        return MSC_OK;
    }
    write_command(v, kind);
    MSC_TRY(msc_str_status(&v->text));
    return msc_json_add_text(verdict, "command", msc_str_text(&v->text));
}

static bool is_relative(const cJSON *record) {
    const cJSON *params = msc_verdict__get(msc_verdict__get(record, "env"), "params");
    return strcmp(msc_report__text(params, "loss"), "mse") == 0;
}

// The row of the plan without improved weights, as measured by the search or by rerank.
static const cJSON *find_plan_of_search(const struct msc_verdict__state *v) {
    const cJSON *first = msc_verdict__get(msc_verdict__get(v->report, "reranked"), "plans");
    return !msc_verdict__get(v->plan, "distilled") ? v->plan
           : first && first->child                 ? first->child
                                                   : msc_verdict__get(v->report, "winner");
}

enum msc_status msc_verdict_make(struct cJSON **out, const struct cJSON *record) {
    const cJSON *report = msc_verdict__get(record, "numbers");
    struct msc_verdict__state v = {
        .report = report,
        .config = msc_verdict__get(record, "config"),
        .env = msc_verdict__get(record, "env"),
        .plan = msc_verdict__get(record, "delivered"),
        .reference = msc_verdict__get(report, "reference"),
        .n_front = msc_verdict__number(msc_verdict__get(record, "trials"), "n_front"),
        .eight = msc_report__find_uniform_8(report),
        .is_relative = is_relative(record)};
    cJSON *verdict = cJSON_CreateObject();
    v.plan_of_search = find_plan_of_search(&v);
    take_objective(&v);
    enum msc_status status = verdict ? fill(verdict, &v) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_str_finish(&v.text);
    if (status != MSC_OK) {
        cJSON_Delete(verdict);
        return status;
    }
    *out = verdict;
    return MSC_OK;
}
