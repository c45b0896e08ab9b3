#include "pipeline/stage_runtime.h"

#include "base/json.h"
#include "pipeline/session_runtime.h"

#include <stdio.h>

static enum msc_status measure_plans(const struct msc_session *s, struct msc_delivery *d,
                                     struct msc_delivery_plans *list) {
    for (size_t i = 0; i < list->n; i++) {
        MSC_TRY(msc_delivery_export(d, &list->plans[i]));
        MSC_TRY(msc_delivery_outputs(d, &list->plans[i]));
        msc_session_tell_refused(s, &list->plans[i]);
    }
    return msc_delivery_latency(d, list->order, list->n);
}

// Notes that the runtime refuses the winner but accepts the float model.
static enum msc_status note_winner_refused(cJSON *runtime, const struct msc_delivery_plans *list) {
    const struct msc_delivery_plan *winner = &list->plans[0];
    if (!winner->is_refused || list->plans[list->n - 1].failure) {
        return MSC_OK;
    }
    return msc_json_add_text(runtime, "refused", winner->failure);
}

// Fills `runtime` with the runtime's description, or with why the runtime is missing.
static enum msc_status measure_in_runtime(const struct msc_session *s, struct msc_news *news,
                                          cJSON *runtime, struct msc_delivery_plans *list) {
    struct msc_delivery *d = NULL;
    bool is_there = false;
    MSC_TRY(msc_session_open_delivery(&d, s, news));
    enum msc_status status = msc_session_start_runtime(&is_there, runtime, s, d);
    if (status == MSC_OK && is_there) {
        status = measure_plans(s, d, list);
    }
    if (status == MSC_OK) {
        status = note_winner_refused(runtime, list); // closing the delivery frees the message
    }
    msc_delivery_close(d);
    return status;
}

enum msc_status msc_stage_runtime(const struct msc_session *s, struct msc_news *news, cJSON *report,
                                  const struct msc_record *record, const struct msc_trial *best) {
    struct msc_delivery_plans list = {.n = 0};
    cJSON *runtime = cJSON_CreateObject();
    enum msc_status measured = MSC_OK;
    enum msc_status status = runtime ? msc_delivery_plans_init(&list, record, &best->id, 1)
                                     : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        measured = msc_session_settle_measuring(s, measure_in_runtime(s, news, runtime, &list));
        status = msc_session_report_runtime(report, runtime, &list);
        runtime = NULL;
    }
    cJSON_Delete(runtime);
    msc_delivery_plans_finish(&list);
    return status == MSC_OK ? measured : status;
}

void msc_stage_runtime_check(const struct msc_session *s, const cJSON *report,
                             struct msc_processor_result *result) {
    const cJSON *runtime = msc_json_get(report, "runtime");
    const char *why = cJSON_GetStringValue(msc_json_get(runtime, "refused"));
    if (why && result->export_status == MSC_OK) {
        result->export_status = MSC_E_UNSUPPORTED;
        snprintf(result->export_message, sizeof result->export_message,
                 "%s: the runtime refuses the winner's model; use rerank to deliver one that it "
                 "accepts: %s",
                 s->entry->name, why);
    }
}
