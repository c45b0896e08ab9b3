#include "pipeline/run_search.h"

#include "base/file.h"
#include "base/json.h"
#include "pipeline/after.h"
#include "pipeline/header_config.h"
#include "records/record_files.h"
#include "pipeline/remarks.h"
#include "pipeline/session_estimate.h"
#include "pipeline/session_pool.h"
#include "pipeline/session_search.h"
#include "pipeline/trial_numerics.h"
#include "cluster/pool.h"
#include "search/warm.h"

#include <inttypes.h>

// ---- Warm start from other records ------------------------------------------------------------

static enum msc_status check_warm(const struct msc_session *s) {
    const struct msc_processor_options *o = &s->setup->options;
    struct msc_record *record = NULL;
    const char *path = s->entry->record;
    MSC_TRY(msc_record_open(&record, path, MSC_RECORD_HEADER, NULL));
    enum msc_status status = msc_warm_check(msc_json_get(msc_record_header(record), "warm"),
                                            o->warm_from, o->n_warm_from, path, s->setup->log);
    msc_record_close(record);
    return status;
}

// Collects the points of other records. *out, owned by the caller, remains NULL if there are none
// or the record already has them.
static enum msc_status take_warm(cJSON **out, const struct msc_session *s, bool has_record) {
    const struct msc_warm_options o = {
        .env = s->env,
        .goal = &s->goal,
        .numerics = msc_trial_numerics(s->setup),
        .paths = s->setup->options.warm_from,
        .n_paths = s->setup->options.n_warm_from,
        .is_dry_run = s->setup->options.is_dry_run,
        .log = s->setup->log,
    };
    if (o.n_paths == 0) {
        return MSC_OK;
    }
    return has_record && !s->setup->options.is_dry_run ? check_warm(s) : msc_warm_collect(out, &o);
}

// ---- Before the start -------------------------------------------------------------------------

static void tell_endless(const struct msc_session *s) {
    const struct msc_budget *budget = &s->entry->budget;
    if (budget->trials < 0 && budget->seconds <= 0 && !budget->has_target) {
        msc_log(s->setup->log, MSC_LOG_INFO,
                "there is no budget: the search ends when its agent has "
                "nothing left to try, or when it is stopped");
    }
}

// Makes the folders of the entry's files, whose names may contain folders.
static enum msc_status make_folders(const struct msc_session *s) {
    const struct msc_config_entry *e = s->entry;
    const char *const paths[] = {e->record, e->strategy_file};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const char *folder = paths[i] ? msc_path_folder(&s->setup->arena, paths[i]) : ".";
        MSC_TRY(MSC_ALLOCATED(folder));
        MSC_TRY(msc_file_make_folders(folder));
    }
    return MSC_OK;
}

// ---- The search -------------------------------------------------------------------------------

// Logs what a device and the host exchanged during the search: `before` is from its start.
static void tell_transfers(const struct msc_session *s, const struct msc_backend_transfers *before,
                           size_t n_trials) {
    struct msc_backend *b = s->setup->model ? s->setup->model->backend : NULL;
    if (!b || !b->def->transfers) {
        return;
    }
    const struct msc_backend_transfers now = msc_backend_get_transfers(b);
    msc_log(s->setup->log, MSC_LOG_DEBUG,
            "%s: %zu trials sent %.3f MB to the device and read %.3f MB back, in %" PRIu64
            " submissions and %" PRIu64 " waits",
            s->entry->name, n_trials, (double)(now.to_device_bytes - before->to_device_bytes) / 1e6,
            (double)(now.to_host_bytes - before->to_host_bytes) / 1e6,
            now.n_submissions - before->n_submissions, now.n_waits - before->n_waits);
}

static enum msc_status search(struct msc_session *s, struct msc_processor_result *result,
                              struct msc_search_options *o,
                              struct msc_session_observers *observers) {
    struct msc_search_result found = {0};
    struct msc_backend_transfers before = {0};
    if (s->setup->model) {
        before = msc_backend_get_transfers(s->setup->model->backend);
    }
    o->record = s->record;
    s->record = NULL;
    MSC_TRY(msc_search_run(&found, o));
    tell_transfers(s, &before, found.n_evaluated);
    enum msc_status status =
        msc_after_search(s, observers->publisher, observers->news, result, &found);
    msc_search_result_finish(&found);
    return status;
}

enum msc_status msc_run_search(struct msc_session *s, struct msc_processor_result *result) {
    const struct msc_processor_options *options = &s->setup->options;
    struct msc_news news = {0};
    struct msc_publisher publisher = {0};
    struct msc_session_observers observers = {.news = &news, .publisher = &publisher};
    struct msc_search_options o = {0};
    cJSON *config = NULL, *warm = NULL;
    bool has_record = false;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_trial_numerics_check(s->setup));
    MSC_TRY_OUT(msc_session_check_cluster(s));
    MSC_TRY_OUT(msc_session_look_at_samples(s));
    MSC_TRY_OUT(msc_header_config_make(&config, s->setup->config, s->entry));
    msc_session_search_options(&o, s, config, &observers);
    o.own_numerics = o.numerics;
    o.numerics = msc_trial_numerics(s->setup);
    MSC_TRY_OUT(msc_record_has_header(&has_record, o.record_path));
    MSC_TRY_OUT(take_warm(&warm, s, has_record));
    o.warm = warm;
    if (!has_record || options->is_dry_run) { // warns only before the first trial
        MSC_TRY_OUT(msc_remark_costs(msc_env_space(s->env), &s->goal, s->setup->log));
    }
    if (options->is_dry_run) {
        o.restart = options->restart;
        status = msc_session_add_estimate(result->reports, s, &o);
        goto out;
    }
    MSC_TRY_OUT(msc_session_check_memory(s));
    msc_news_begin(&news, s);
    tell_endless(s);
    MSC_TRY_OUT(make_folders(s));
    MSC_TRY_OUT(msc_publisher_begin(&publisher, s));
    MSC_TRY_OUT(msc_session_open_pool(&o.pool, s));
    status = search(s, result, &o, &observers);
out:
    msc_pool_close(o.pool);
    msc_publisher_finish(&publisher);
    msc_news_close(&news);
    cJSON_Delete(config);
    cJSON_Delete(warm);
    return status;
}
