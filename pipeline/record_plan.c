#include "pipeline/record_plan.h"

#include "base/json.h"
#include "env/env.h"
#include "records/record_query.h"
#include "records/distilled.h"
#include "records/kept.h"
#include "records/reranked.h"

#include <string.h>

static enum msc_status find_trial(struct msc_record_plan *plan, int64_t trial) {
    const char *path = msc_record_path(plan->record);
    size_t n = msc_record_n_trials(plan->record);
    struct msc_record_line line;
    bool is_there = true;
    if (trial >= 0 && (size_t)trial >= n) {
        return MSC_FAIL(MSC_E_INVALID, "%s: trial %lld does not exist: the record has %zu", path,
                        (long long)trial, n);
    }
    if (trial >= 0) {
        line = msc_record_trial(plan->record, (size_t)trial);
    } else {
        MSC_TRY(msc_reranked_winner(&is_there, &line, plan->record, plan->log));
    }
    for (size_t i = 0; !is_there && i < n; i++) {
        if (msc_record_trial(plan->record, i).is_left_out) {
            return MSC_FAIL(MSC_E_STATE,
                            "%s: all trials within the bounds are left out, for which mscgym show "
                            "gives the reason; --trial N exports one of them",
                            path);
        }
    }
    if (!is_there) {
        return MSC_FAIL(MSC_E_STATE, "%s: no trial has a result yet", path);
    }
    plan->trial = line.trial;
    plan->is_delivered = trial < 0;
    return MSC_OK;
}

enum msc_status msc_record_plan_open(struct msc_record_plan *plan, const char *path, int64_t trial,
                                     const struct msc_processor_options *options) {
    *plan = (struct msc_record_plan){.log = options->log};
    MSC_TRY(msc_record_open(&plan->record, path, MSC_RECORD_READ, plan->log));
    MSC_TRY(msc_kept_leave_out(plan->record, plan->log));
    MSC_TRY(find_trial(plan, trial));
    return msc_processor_open_record(&plan->processor, path, options);
}

// Fails if the model's weights have changed: the scales in a strategy or next to a record fit only
// the weights with which they were found.
static enum msc_status check_weights(const struct msc_record_plan *plan) {
    static const char key[] = "weights";
    const cJSON *header = msc_record_header(plan->record);
    const cJSON *old = msc_json_get(msc_json_get(header, "env"), key);
    cJSON *now = cJSON_CreateObject();
    enum msc_status status = now ? msc_env_describe(msc_processor_env(plan->processor), now)
                                 : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    const cJSON *new = msc_json_get(now, key);
    if (status == MSC_OK && cJSON_IsString(old) && cJSON_IsString(new) &&
        strcmp(old->valuestring, new->valuestring) != 0) {
        status = MSC_FAIL(
            MSC_E_STATE,
            "%s: the weights of %s have changed since the search, or this version of the "
            "program reads them differently; restore the model, or keep the choices of the "
            "strategy file: mscgym export --model MODEL --strategy FILE "
            "--recalibrate --dataset INPUTS -o FILE",
            msc_record_path(plan->record), msc_processor_config(plan->processor)->model);
    }
    cJSON_Delete(now);
    return status;
}

// Makes the plan's strategy: the delivered form of the winner, or the choices of the trial.
static enum msc_status make_strategy(struct msc_record_plan *plan) {
    cJSON *json = NULL;
    if (plan->is_delivered) {
        MSC_TRY(msc_distilled_delivered(&json, plan->record, plan->trial.id, plan->log));
    }
    enum msc_status status =
        json ? msc_strategy_from_json(&plan->strategy, json, msc_record_path(plan->record))
             : msc_export_strategy(&plan->strategy, msc_processor_env(plan->processor),
                                   plan->trial.proposal.choices);
    cJSON_Delete(json);
    return status;
}

enum msc_status msc_record_plan_make(struct msc_record_plan *plan) {
    enum msc_trial_state state = plan->trial.outcome.state;
    MSC_TRY(msc_processor_prepare(plan->processor));
    if (!msc_processor_graph(plan->processor)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: its environment has no model to export",
                        msc_record_path(plan->record));
    }
    MSC_TRY(check_weights(plan));
    if (state != MSC_TRIAL_COMPLETE) {
        msc_log(plan->log, MSC_LOG_WARNING, "trial %lld is %s%s", (long long)plan->trial.id,
                msc_trial_state_name(state),
                state == MSC_TRIAL_INFEASIBLE ? ": it does not meet every bound" : "");
    }
    return make_strategy(plan);
}

void msc_record_plan_close(struct msc_record_plan *plan) {
    msc_strategy_destroy(plan->strategy);
    msc_processor_close(plan->processor);
    msc_record_close(plan->record);
    *plan = (struct msc_record_plan){0};
}
