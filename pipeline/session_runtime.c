#include "pipeline/session_runtime.h"

#include "base/json.h"
#include "graph/target.h"
#include "tools/runtime.h"

#include <math.h>

static const char *runtime_of(const struct msc_config_entry *e) {
    const struct msc_target *target = e->target ? msc_target_find(e->target) : NULL;
    return e->runtime.name ? e->runtime.name : target ? target->runtime : NULL;
}

enum msc_status msc_session_check_runtimes(const struct msc_setup *setup) {
    struct msc_runtime_options o = MSC_RUNTIME_OPTIONS_INIT;
    struct msc_runtime *runtime = NULL;
    const struct msc_runtime_found *found = NULL;
    enum msc_status status = MSC_OK;
    o.cancel = setup->options.cancel;
    for (size_t i = 0; i < setup->config->n_entries && status != MSC_E_INVALID; i++) {
        const struct msc_config_entry *e = &setup->config->entries[i];
        if (!e->runtime.is_wanted || !e->runtime.name) {
            continue;
        }
        if (!runtime && msc_runtime_start(&runtime, &o) != MSC_OK) {
            return MSC_OK;
        }
        status = msc_runtime_find(&found, runtime, e->runtime.name);
        if (status == MSC_E_INVALID) {
            (void)msc_status_prefix(status, "%s: runtime.name", e->name);
        }
    }
    msc_runtime_stop(runtime);
    return status == MSC_E_INVALID ? status : MSC_OK;
}

static void tell_step(void *payload, const char *what) {
    struct msc_news *n = payload;
    n->measured_s = NAN; // the time in the runtime is unknown
    msc_news_measuring(n, what);
}

enum msc_status msc_session_open_delivery(struct msc_delivery **out, const struct msc_session *s,
                                          struct msc_news *news) {
    const struct msc_config_entry *e = s->entry;
    const struct msc_delivery_options o = {
        .env = s->env,
        .model = s->setup->model,
        .target = e->target,
        .runtime = runtime_of(e),
        .n_threads = (int)e->runtime.threads,
        .n_rounds = e->runtime.rounds,
        .log = s->setup->log,
        .cancel = s->setup->options.cancel,
        .tell = tell_step,
        .payload = news,
    };
    return msc_delivery_open(out, &o);
}

void msc_session_tell_refused(const struct msc_session *s, const struct msc_delivery_plan *plan) {
    if (plan->failure) {
        msc_log(s->setup->log, MSC_LOG_WARNING, "%s: %s cannot be measured: %s", s->entry->name,
                plan->name, plan->failure);
    }
}

bool msc_session_has_runtime(const struct msc_session *s) {
    return s->entry->runtime.is_wanted && runtime_of(s->entry) && s->setup->model &&
           s->setup->model->dataset && msc_env_has_edits(s->env);
}

enum msc_status msc_session_start_runtime(bool *is_there, cJSON *runtime,
                                          const struct msc_session *s, struct msc_delivery *d) {
    const char *missing = NULL;
    *is_there = false;
    MSC_TRY(msc_delivery_start(d, &missing));
    if (!missing) {
        *is_there = true;
        return msc_delivery_describe(d, runtime);
    }
    MSC_TRY(msc_json_add_text(runtime, "name", runtime_of(s->entry)));
    return msc_json_add_text(runtime, "missing", missing);
}

enum msc_status msc_session_settle_measuring(const struct msc_session *s, enum msc_status status) {
    if (status != MSC_OK && status != MSC_E_CANCELLED && status != MSC_E_LOST) {
        msc_log(s->setup->log, MSC_LOG_WARNING, "%s: the measurement failed: %s", s->entry->name,
                msc_status_message());
        return MSC_OK;
    }
    return status;
}

enum msc_status msc_session_report_runtime(cJSON *report, cJSON *runtime,
                                           const struct msc_delivery_plans *list) {
    enum msc_status status = msc_delivery_plans_report(list, report);
    if (status != MSC_OK || !runtime->child) { // nothing is known about the runtime
        cJSON_Delete(runtime);
        return status;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(report, "runtime");
    return msc_json_add(report, "runtime", runtime);
}
