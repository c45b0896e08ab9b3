#include "pipeline/session_report.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "search/estimate.h"
#include "records/kept.h"
#include "checks/held_out.h"
#include "checks/recheck.h"
#include "results/report.h"

#include <math.h>

// Logs how long the measurements will take, as nothing else is logged until they end.
static enum msc_status announce_report(const struct msc_session *s, struct msc_news *news,
                                       const struct msc_search_result *found) {
    double seconds = NAN;
    struct msc_str text = {0};
    MSC_TRY(msc_estimate_reevaluate(&seconds, s->env, found->record, found->trial_s));
    news->measured_s = msc_clock_seconds() + seconds;
    if (!isnan(seconds)) {
        msc_str_append_duration(&text, seconds);
        msc_log(s->setup->log, MSC_LOG_INFO,
                "%s: measuring the winner and the uniform plans again takes about %s",
                s->entry->name, msc_str_text(&text));
        msc_str_finish(&text);
    }
    return MSC_OK;
}

enum msc_status msc_session_keep_report(const struct msc_session *s,
                                        const struct msc_record *record, const cJSON *report) {
    enum msc_status status = msc_kept_save(record, report);
    if (status != MSC_OK && status != MSC_E_NOMEM) { // a missing copy is not an error
        msc_log(s->setup->log, MSC_LOG_WARNING, "%s", msc_status_message());
        status = MSC_OK;
    }
    return status;
}

// Moves the elements of `from` to the end of `to`, and deletes `from`.
static enum msc_status move_all(cJSON *to, cJSON *from) {
    enum msc_status status = MSC_OK;
    while (status == MSC_OK && from->child) {
        status = msc_json_push(to, cJSON_DetachItemViaPointer(from, from->child));
    }
    cJSON_Delete(from);
    return status;
}

// Finds the winner: the best trial that keeps the bounds by drop on the validation samples and can
// be reproduced. The trials before it are left out and added to `left_out`.
static enum msc_status find_winner(cJSON *left_out, const struct msc_session *s,
                                   const struct msc_report_options *o, struct msc_record *record) {
    const struct msc_held_out_options held_out = {
        .env = s->env,
        .goal = &s->goal,
        .drops = &s->drops,
        .cancel = s->setup->options.cancel,
        .measuring = o->measuring,
        .payload = o->payload,
    };
    const struct msc_recheck_options recheck = {
        .env = s->env,
        .numerics = msc_setup_numerics(s->setup),
        .log = s->setup->log,
        .cancel = s->setup->options.cancel,
    };
    for (bool is_found = false; !is_found;) {
        cJSON *different = NULL;
        MSC_TRY(msc_held_out_check(left_out, record, &held_out));
        o->measuring(o->payload, "metrics of the winner");
        MSC_TRY(msc_recheck_winner(&different, record, &recheck));
        is_found = cJSON_GetArraySize(different) == 0 || !msc_held_out_has(&held_out);
        MSC_TRY(move_all(left_out, different));
    }
    return MSC_OK;
}

// Finds the winner, measures it and the uniform plans, and stores a copy of the report.
static enum msc_status make_whole_report(cJSON **out, const struct msc_session *s,
                                         const struct msc_report_options *o,
                                         struct msc_record *record) {
    cJSON *left_out = cJSON_CreateArray();
    MSC_TRY(MSC_ALLOCATED(left_out));
    enum msc_status status = find_winner(left_out, s, o, record);
    status = status == MSC_OK ? msc_report_create(out, o) : status;
    if (status != MSC_OK) {
        cJSON_Delete(left_out);
        return status;
    }
    if (cJSON_GetArraySize(left_out) > 0) {
        status = msc_json_add(*out, "left_out", left_out);
    } else {
        cJSON_Delete(left_out);
    }
    if (status == MSC_OK) {
        status = msc_session_keep_report(s, record, *out);
    }
    if (status != MSC_OK) {
        cJSON_Delete(*out);
    }
    return status;
}

enum msc_status msc_session_make_report(cJSON **out, const struct msc_session *s,
                                        struct msc_news *news, struct msc_search_result *found) {
    struct msc_report_options o = {
        .record = found->record,
        .env = s->env,
        .result = found,
        .has_front = s->goal.n_objectives > 1,
        .measuring = msc_news_measuring,
        .payload = news,
    };
    enum msc_status status = MSC_E_CANCELLED;
    if (!s->entry->is_delivered) {
        o.env = NULL;
        return msc_report_create(out, &o);
    }
    if (found->end != MSC_SEARCH_END_CANCELLED) {
        MSC_TRY(announce_report(s, news, found));
        status = make_whole_report(out, s, &o, found->record);
    }
    if (status == MSC_E_CANCELLED) { // during the search, or while measuring
        found->end = MSC_SEARCH_END_CANCELLED;
        MSC_TRY(msc_kept_leave_out(found->record, NULL));
        o.env = NULL;
        status = msc_report_create(out, &o);
    }
    return status;
}
