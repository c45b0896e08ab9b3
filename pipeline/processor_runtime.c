// At the end of a search its winner, the uniform plans and the float model are measured in the runtime
// that they are for. Whatever becomes of that, the search has its result.
#include "pipeline/processor_internal.h"

#include "base/json.h"
#include "pipeline/delivery_plans.h"

#include <math.h>
#include <stdio.h>

static void tell_step(void *payload, const char *what) {
    struct msc_processor *p = payload;
    p->measured_s = NAN; // nobody knows how long another runtime takes
    msc_processor__tell_measuring(p, what);
}

enum msc_status msc_processor__open_delivery(struct msc_delivery **out, struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    const struct msc_delivery_options o = {
        .env = p->env,
        .model = p->model,
        .target = e->target,
        .n_threads = (int)e->runtime.threads,
        .n_rounds = e->runtime.rounds,
        .log = p->log,
        .cancel = p->options.cancel,
        .tell = tell_step,
        .payload = p,
    };
    return msc_delivery_open(out, &o);
}

void msc_processor__tell_refused(const struct msc_processor *p,
                                 const struct msc_delivery_plan *plan) {
    if (plan->failure) {
        msc_log(p->log, MSC_LOG_WARNING, "%s: %s is not measured: %s",
                msc_processor__entry(p)->name, plan->name, plan->failure);
    }
}

bool msc_processor__has_runtime(const struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    return e->runtime.is_wanted && msc_delivery_has_runtime(e->target) && p->model &&
           p->model->dataset && msc_env_has_edits(p->env);
}

enum msc_status msc_processor__start_runtime(bool *is_there, cJSON *runtime,
                                             const struct msc_processor *p,
                                             struct msc_delivery *d) {
    const char *missing = NULL;
    *is_there = false;
    MSC_TRY(msc_delivery_start(d, &missing));
    if (!missing) {
        *is_there = true;
        return msc_delivery_describe(d, runtime);
    }
    MSC_TRY(msc_json_add_text(runtime, "name", msc_processor__entry(p)->target));
    return msc_json_add_text(runtime, "missing", missing);
}

static enum msc_status measure_plans(struct msc_processor *p, struct msc_delivery *d,
                                     struct msc_delivery_plans *list) {
    for (size_t i = 0; i < list->n; i++) {
        MSC_TRY(msc_delivery_export(d, &list->plans[i]));
        MSC_TRY(msc_delivery_outputs(d, &list->plans[i]));
        msc_processor__tell_refused(p, &list->plans[i]);
    }
    return msc_delivery_latency(d, list->order, list->n);
}

// A winner that its runtime does not take, though it takes the float model.
static enum msc_status note_winner_refused(cJSON *runtime, const struct msc_delivery_plans *list) {
    const struct msc_delivery_plan *winner = &list->plans[0];
    if (!winner->is_refused || list->plans[list->n - 1].failure) {
        return MSC_OK;
    }
    return msc_json_add_text(runtime, "refused", winner->failure);
}

// *runtime: what it is, or why it is missing.
static enum msc_status measure_in_runtime(struct msc_processor *p, cJSON *runtime,
                                          struct msc_delivery_plans *list) {
    struct msc_delivery *d = NULL;
    bool is_there = false;
    MSC_TRY(msc_processor__open_delivery(&d, p));
    enum msc_status status = msc_processor__start_runtime(&is_there, runtime, p, d);
    if (status == MSC_OK && is_there) {
        status = measure_plans(p, d, list);
    }
    if (status == MSC_OK) {
        status = note_winner_refused(runtime, list); // whose words go with the delivery
    }
    msc_delivery_close(d);
    return status;
}

enum msc_status msc_processor__settle_measuring(const struct msc_processor *p,
                                                enum msc_status status) {
    if (status != MSC_OK && status != MSC_E_CANCELLED && status != MSC_E_LOST) {
        msc_log(p->log, MSC_LOG_WARNING, "%s: not measured to the end: %s",
                msc_processor__entry(p)->name, msc_status_message());
        return MSC_OK;
    }
    return status;
}

enum msc_status msc_processor__report_runtime(cJSON *report, cJSON *runtime,
                                              const struct msc_delivery_plans *list) {
    enum msc_status status = msc_delivery_plans_report(list, report);
    if (status != MSC_OK || !runtime->child) { // nothing is known of it
        cJSON_Delete(runtime);
        return status;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(report, "runtime");
    return msc_json_add(report, "runtime", runtime);
}

enum msc_status msc_processor__add_runtime(struct msc_processor *p, cJSON *report,
                                           const struct msc_record *record,
                                           const struct msc_trial *best) {
    struct msc_delivery_plans list = {.n = 0};
    cJSON *runtime = cJSON_CreateObject();
    enum msc_status measured = MSC_OK;
    enum msc_status status =
        runtime ? msc_delivery_plans_init(&list, record, &best->id, 1) : msc_processor__no_memory();
    if (status == MSC_OK) {
        measured = msc_processor__settle_measuring(p, measure_in_runtime(p, runtime, &list));
        status = msc_processor__report_runtime(report, runtime, &list);
        runtime = NULL;
    }
    cJSON_Delete(runtime);
    msc_delivery_plans_finish(&list);
    return status == MSC_OK ? measured : status;
}

void msc_processor__check_refused(const struct msc_processor *p, const cJSON *report,
                                  struct msc_processor_result *result) {
    const cJSON *runtime = cJSON_GetObjectItemCaseSensitive(report, "runtime");
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(runtime, "refused"));
    if (why && result->export_status == MSC_OK) {
        result->export_status = MSC_E_UNSUPPORTED;
        snprintf(result->export_message, sizeof result->export_message,
                 "%s: the model of the winner is refused by its runtime; use rerank to deliver one "
                 "that it takes: %s",
                 msc_processor__entry(p)->name, why);
    }
}
