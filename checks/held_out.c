#include "checks/held_out.h"

#include "base/json.h"
#include "base/str.h"
#include "checks/recheck.h"
#include "env/env.h"
#include "records/record_query.h"

#include <math.h>
#include <stdio.h>

bool msc_held_out_has(const struct msc_held_out_options *options) {
    return msc_env_host(options->env)->validation && msc_drops_any(options->drops, options->goal);
}

bool msc_held_out_breaks(struct msc_held_out_drop *out, const struct msc_space *space,
                         const struct msc_goal *goal, const struct msc_drops *drops,
                         const struct cJSON *validation) {
    for (size_t i = 0; i < goal->n_bounds; i++) {
        struct msc_drop drop = drops->of_bound[i];
        const struct msc_metric *metric = &space->metrics[goal->bounds[i].metric];
        char name[96];
        if (!drop.is_stated) {
            continue;
        }
        snprintf(name, sizeof name, "float_%.80s", metric->name);
        double value = msc_json_number_of(validation, metric->name);
        drop.reference = msc_json_number_of(validation, name);
        struct msc_bound bound = {0};
        msc_drop_set_limit(&bound, &drop, metric->is_maximised);
        if (value < bound.min || value > bound.max) {
            out->most = drop.most;
            out->value = msc_drop_of(value, drop.reference, metric->is_maximised, drop.is_relative);
            snprintf(out->name, sizeof out->name, "%.80s%s", metric->name,
                     drop.is_relative ? MSC_DROP_RATIO_SUFFIX : MSC_DROP_SUFFIX);
            return true;
        }
    }
    return false;
}

// Sets *breaks: does the trial break a bound on the validation samples?
static enum msc_status measure_trial(bool *breaks, struct msc_held_out_drop *drop,
                                     double *n_samples, const struct msc_trial *trial,
                                     const struct msc_held_out_options *o) {
    char text[64];
    cJSON *found = NULL;
    snprintf(text, sizeof text, "drop of trial %lld on the validation samples",
             (long long)trial->id);
    if (o->measuring) {
        o->measuring(o->payload, text);
    }
    MSC_TRY(msc_env_reevaluate(o->env, trial->proposal.choices, MSC_REEVALUATE_VALIDATION, &found));
    const cJSON *validation = msc_json_get(found, "validation");
    *breaks = msc_held_out_breaks(drop, msc_env_space(o->env), o->goal, o->drops, validation);
    *n_samples = msc_json_number_of(validation, "samples");
    cJSON_Delete(found);
    return msc_cancel_soon(o->cancel) ? MSC_FAIL(MSC_E_CANCELLED, "stopped") : MSC_OK;
}

static enum msc_status leave_out(cJSON *list, struct msc_record *record, int64_t id,
                                 const struct msc_held_out_drop *drop, double n_samples) {
    struct msc_str text = {0};
    cJSON *row = NULL;
    msc_str_printf(&text, "%s is %.5g on %.0f validation samples, more than ", drop->name,
                   drop->value, n_samples);
    msc_str_double(&text, drop->most);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_recheck_leave_out(&row, list, record, id, drop->name, msc_str_text(&text));
    }
    msc_str_finish(&text);
    MSC_TRY(status);
    MSC_TRY(msc_json_add_bool(row, "held_out", true));
    return msc_json_add_number(row, "drop", drop->value);
}

enum msc_status msc_held_out_check(struct cJSON *left_out, struct msc_record *record,
                                   const struct msc_held_out_options *options) {
    struct msc_record_line best;
    while (msc_held_out_has(options) && msc_record_best(&best, record) &&
           best.trial.outcome.state == MSC_TRIAL_COMPLETE) {
        struct msc_held_out_drop drop;
        bool breaks = false;
        double n_samples = 0;
        MSC_TRY(measure_trial(&breaks, &drop, &n_samples, &best.trial, options));
        if (!breaks) {
            return MSC_OK;
        }
        MSC_TRY(leave_out(left_out, record, best.trial.id, &drop, n_samples));
    }
    return MSC_OK;
}
