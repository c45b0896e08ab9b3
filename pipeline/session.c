#include "pipeline/session.h"

#include "base/file.h"
#include "base/json.h"
#include "pipeline/base_strategy.h"
#include "pipeline/header_config.h"
#include "pipeline/session_race.h"
#include "records/record_files.h"
#include "model/sameness.h"
#include "records/record_header.h"
#include "supervise/supervise.h"
#include "tools/strategy.h"

#include <string.h>

// True if the record and its parameters were made under other numerics.
static bool is_foreign(const struct msc_session *s, const struct msc_record *record) {
    const cJSON *made_by = msc_json_get(msc_record_header(record), "numerics");
    // Every record has this member.
    return strcmp(made_by->valuestring, msc_setup_numerics(s->setup)) != 0;
}

// True if the parameters include latencies, or variants that were kept for the device: measuring
// or looking them up again would give other values.
static bool is_measured(const struct msc_record *record) {
    const cJSON *env = msc_json_get(msc_record_header(record), "env");
    return msc_json_get(env, "latency_of") || msc_json_get(env, "work");
}

// Fails if the parameters differ from those that the record began with. If the parameters' file was
// missing and has now been written again, removes the file.
static enum msc_status check_parameters(const struct msc_session *s, const char *path,
                                        const struct msc_record *record, bool was_there) {
    static const char key[] = "params_hash";
    const cJSON *header = msc_record_header(record);
    const cJSON *old = msc_json_get(msc_json_get(header, "env"), key);
    cJSON *now = cJSON_CreateObject();
    enum msc_status status =
        now ? msc_env_describe(s->env, now) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    const cJSON *new = msc_json_get(now, key);
    if (status == MSC_OK && cJSON_IsString(old) && cJSON_IsString(new) &&
        strcmp(old->valuestring, new->valuestring) != 0) {
        if (!was_there && path) {
            (void)msc_file_remove(path);
        }
        status = MSC_FAIL(MSC_E_STATE,
                          was_there ? "%s.params: the file belongs to another record; restore the "
                                      "right one"
                                    : "%s: its .params file is missing, and newly computed scales "
                                      "differ: the model, the samples or their order have changed",
                          msc_record_path(record));
    }
    cJSON_Delete(now);
    return status;
}

// Sets where the parameters are stored: next to the record, so that they are computed only once.
static enum msc_status set_parameters(struct msc_env_host *host, const char **prepared_path,
                                      struct msc_session *s, const struct msc_record *record,
                                      enum msc_setup_mode mode) {
    struct msc_arena *arena = &s->setup->arena;
    const char *record_path = s->entry->record;
    *prepared_path = msc_record_file(arena, record_path, MSC_RECORD_FILE_PREPARED);
    const char *path = msc_record_file(arena, record_path, MSC_RECORD_FILE_PARAMETERS);
    MSC_TRY(MSC_ALLOCATED(*prepared_path && path));
    host->parameters_required = record && (is_foreign(s, record) || is_measured(record));
    if (!record && mode == MSC_SETUP_RUN) {
        // These parameters belong to a record that was removed or never begun. The environment uses
        // the parameters that still fit.
        MSC_TRY(msc_file_rename(path, *prepared_path));
    }
    bool is_there = record && msc_file_exists(path);
    if (mode == MSC_SETUP_LOOK && !is_there && !host->parameters_required) {
        path = NULL; // computed, but not stored
    }
    host->parameters_path = path;
    return MSC_OK;
}

static void fill_host(struct msc_env_host *host, const struct msc_session *s) {
    if (s->setup->model) {
        host->graph = s->setup->model->graph;
        host->dataset = s->setup->model->dataset;
        host->validation = s->setup->model->validation;
        host->backend = s->setup->model->dataset ? s->setup->model->backend : NULL;
        host->n_threads = s->setup->model->n_threads;
        host->memory_bytes = s->setup->model->memory_bytes;
    }
    host->base = s->base;
    host->folder = s->entry->folder;
    host->log = s->setup->log;
    host->cancel = s->setup->options.cancel;
    host->preparing = s->setup->options.preparing;
    host->preparing_payload = s->setup->options.preparing_payload;
}

// Reads the goal. Limits of bounds by drop come from the record, if there is one: measuring the
// float model again could give other values, for example on another machine.
static enum msc_status read_goal(struct msc_session *s, const struct msc_config_entry *e,
                                 const struct msc_record *record) {
    MSC_TRY(msc_env_read_drops(&s->drops, &s->goal, msc_env_space(s->env), e->env));
    if (!record || !msc_drops_any(&s->drops, &s->goal)) {
        return msc_env_measure_drops(&s->drops, &s->goal, s->env);
    }
    s->goal = *msc_record_goal(record);
    return msc_record_header_drops(&s->drops, msc_record_header(record), msc_record_path(record));
}

// `record` NULL: the search has no record yet.
static enum msc_status make_env(struct msc_session *s, const struct msc_record *record,
                                enum msc_setup_mode mode) {
    const struct msc_config_entry *e = s->entry;
    struct msc_env_host host = {.abi = MSC_ENV_ABI};
    const char *prepared_path = NULL;
    MSC_TRY(msc_base_strategy_open(&s->base, s->setup, s->entry, record, mode));
    if (record) {
        MSC_TRY(msc_header_config_check(s->setup->config, s->entry, record));
    }
    MSC_TRY(set_parameters(&host, &prepared_path, s, record, mode));
    fill_host(&host, s);
    bool was_there = host.parameters_path && msc_file_exists(host.parameters_path);
    msc_worker_set_quiet(s->setup->options.worker, e->quiet_seconds);
    enum msc_status status = msc_env_create(&s->env, e->env_def, e->env, &host);
    if (status == MSC_OK) {
        status = read_goal(s, e, record);
    }
    if (status == MSC_OK) {
        status = msc_session_choose_race(s, record);
    }
    if (status != MSC_OK) {
        return msc_status_prefix(status, "%s", e->place);
    }
    if (!record && mode == MSC_SETUP_RUN) {
        MSC_TRY(msc_file_remove(prepared_path));
    }
    return record ? check_parameters(s, host.parameters_path, record, was_there) : MSC_OK;
}

static void close_record(struct msc_session *s) {
    msc_record_close(s->record);
    s->record = NULL;
}

// A record to continue is read in full before anything is computed, and stays open until the search
// takes it over. MSC_SETUP_LOOK reads only the header.
static enum msc_status open_record(struct msc_session *s, enum msc_setup_mode mode) {
    const char *path = s->entry->record;
    // With --restart a dry run ignores the old record.
    bool is_passed_over = s->setup->options.restart && s->setup->options.is_dry_run;
    if (is_passed_over || !msc_file_exists(path)) {
        return MSC_OK;
    }
    enum msc_status status =
        mode == MSC_SETUP_RUN ? msc_record_open(&s->record, path, MSC_RECORD_APPEND, s->setup->log)
                              : msc_record_open(&s->record, path, MSC_RECORD_HEADER, NULL);
    return status == MSC_E_NOT_FOUND ? MSC_OK : status;
}

enum msc_status msc_session_open(struct msc_session *s, struct msc_setup *setup, size_t entry,
                                 enum msc_setup_mode mode) {
    *s = (struct msc_session){.setup = setup, .entry = &setup->config->entries[entry]};
    MSC_TRY(open_record(s, mode));
    enum msc_status status = make_env(s, s->record, mode);
    if (mode == MSC_SETUP_LOOK) {
        close_record(s);
    }
    return status;
}

void msc_session_close(struct msc_session *s) {
    cJSON_Delete(s->sameness);
    msc_env_destroy(s->env);
    msc_strategy_destroy(s->base);
    close_record(s);
    *s = (struct msc_session){0};
}

enum msc_status msc_session_look_at_samples(struct msc_session *s) {
    cJSON *found = NULL;
    cJSON_Delete(s->sameness);
    s->sameness = NULL;
    MSC_TRY(s->setup->model
                ? msc_sameness_find(&found, s->setup->model, s->env, s->entry->name, s->setup->log)
                : MSC_OK);
    if (!found) {
        return MSC_OK;
    }
    s->sameness = cJSON_CreateObject();
    return msc_json_add(s->sameness, "sameness", found);
}
