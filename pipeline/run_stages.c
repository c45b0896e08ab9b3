#include "pipeline/run_stages.h"

#include "base/file.h"
#include "base/file_set.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/onnx/load.h"
#include "graph/wide.h"
#include "pipeline/given.h"
#include "model/program_id.h"
#include "pipeline/read_files.h"
#include "pipeline/recall.h"
#include "pipeline/run_entry.h"
#include "pipeline/stages.h"
#include "model/track.h"
#include "tools/strategy.h"

#include <string.h>

struct run {
    struct msc_setup *setup;
    struct msc_processor_result *result;
    struct msc_stages *stages;
    struct msc_hash chain;    // hash of all that the next stage depends on, except its own keys
    struct msc_hash *entries; // [n_entries] hash of the configuration of each search
    size_t n_recalled;        // results of the first n_recalled searches are in setup->found
    size_t n_done, n_kept;
};

// ---- Dependencies of stages -------------------------------------------------------------------

// Keys of a search's configuration that belong to other stages, or do not affect results.
static const char *const others[] = {"workspace", "verbose", "log_file", "log_every", "baseline"};

// Hashes the configuration of each search. Call this before the model is loaded, because loading
// fills in values that the configuration leaves open.
static enum msc_status hash_entries(struct run *r) {
    const struct msc_config *c = r->setup->config;
    r->entries = msc_arena_array(&r->setup->arena, c->n_entries + 1, sizeof *r->entries);
    MSC_TRY(MSC_ALLOCATED(r->entries));
    for (size_t i = 0; i < c->n_entries; i++) {
        cJSON *json = NULL;
        struct msc_str text = {0};
        MSC_TRY(msc_config_entry_to_json(c, &c->entries[i], &json, c->workspace));
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
            cJSON_DeleteItemFromObjectCaseSensitive(json, others[k]);
        }
        msc_json_write(&text, json);
        cJSON_Delete(json);
        r->entries[i] = msc_hash_bytes(text.data, text.length);
        r->entries[i] = msc_hash_add_text(r->entries[i], r->setup->model_output);
        enum msc_status status = msc_str_status(&text);
        msc_str_finish(&text);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status begin_chain(struct run *r) {
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_read_files_add(&files, r->setup->config, r->setup->end, &r->setup->options));
    MSC_TRY_OUT(msc_file_set_hash(&r->chain, &files));
    r->chain = msc_hash_add_text(r->chain, msc_program_name());
    r->chain = msc_hash_add_text(r->chain, r->setup->config->device);
    for (size_t i = 0; i < r->setup->config->n_bindings; i++) {
        r->chain = msc_hash_add_text(r->chain, r->setup->config->bindings[i].symbol);
        r->chain = msc_hash_add_u64(r->chain, (uint64_t)r->setup->config->bindings[i].value);
    }
    status = hash_entries(r);
out:
    msc_file_set_finish(&files);
    return status;
}

static struct msc_hash key_of(const struct run *r, const char *stage) {
    return msc_hash_add_text(r->chain, stage);
}

// ---- Loading what they need -------------------------------------------------------------------

static enum msc_status require_model(struct run *r) {
    return r->setup->model ? MSC_OK : msc_setup_load_model(r->setup);
}

// Recalls the results of the searches before `end` that do not run now.
static enum msc_status require_plans(struct run *r, size_t end) {
    MSC_TRY(require_model(r));
    for (; r->n_recalled < end; r->n_recalled++) {
        if (r->setup->config->entries[r->n_recalled].strategy_file) {
            MSC_TRY(msc_recall(r->setup, r->n_recalled));
        }
    }
    return MSC_OK;
}

// The result of a stage that is already done. NULL: it is not done, or must run again.
static const cJSON *find_done(struct run *r, const char *stage, struct msc_hash key,
                              bool is_wanted) {
    const cJSON *result = is_wanted ? NULL : msc_stages_find(r->stages, stage, key);
    msc_log(r->setup->log, MSC_LOG_INFO, "%s: %s", stage, result ? "unchanged" : "begins");
    r->n_kept += result != NULL;
    r->n_done += result == NULL;
    return result;
}

// ---- Before the searches ----------------------------------------------------------------------

static enum msc_status describe_dataset(cJSON *out, const struct msc_model *m) {
    char text[MSC_HASH_TEXT_BYTES];
    cJSON *inputs = cJSON_CreateObject();
    MSC_TRY(msc_json_add(out, "inputs", inputs));
    for (size_t i = 0; i < m->n_inputs; i++) {
        double range[2];
        msc_dataset_range(&range[0], &range[1], m->dataset, i);
        MSC_TRY(msc_json_add(inputs, m->specs[i].name, cJSON_CreateDoubleArray(range, 2)));
    }
    MSC_TRY(msc_json_add_number(out, "samples", (double)msc_dataset_n_samples(m->dataset)));
    MSC_TRY(msc_json_add_number(out, "batch", (double)msc_dataset_batch_size(m->dataset)));
    return msc_json_add_text(out, "dataset", msc_hash_format(text, msc_dataset_hash(m->dataset)));
}

static enum msc_status run_prepare(struct run *r) {
    static const char name[] = "prepare";
    struct msc_hash key = key_of(r, name);
    if (find_done(r, name, key, false)) {
        return MSC_OK;
    }
    MSC_TRY(require_model(r));
    cJSON *result = cJSON_CreateObject();
    enum msc_status status = describe_dataset(result, r->setup->model);
    if (status != MSC_OK) {
        cJSON_Delete(result);
        return status;
    }
    return msc_stages_put(r->stages, name, key, NULL, 0, result);
}

static enum msc_status run_parse(struct run *r) {
    static const char name[] = "parse";
    const char *path = r->setup->config->stages.graph_file;
    struct msc_hash key = msc_hash_add_text(key_of(r, name), path);
    const char *weights = NULL;
    cJSON *result = NULL;
    if (find_done(r, name, key, false)) {
        return MSC_OK;
    }
    MSC_TRY(require_model(r));
    if (path) {
        const char *const *companions;
        size_t n;
        MSC_TRY(msc_graph_companions(&companions, &n, &r->setup->arena, path));
        weights = companions[0];
        MSC_TRY(msc_graph_save(msc_graph_own(r->setup->model->graph), path));
    }
    MSC_TRY(msc_graph_inspect(msc_graph_own(r->setup->model->graph), &result));
    return msc_stages_put(r->stages, name, key, (const char *const[]){path, weights}, 2, result);
}

static enum msc_status stage_baseline(struct run *r) {
    static const char name[] = "baseline";
    struct msc_config *c = r->setup->config;
    struct msc_hash key = msc_hash_add_bytes(key_of(r, name), &c->atol, sizeof c->atol);
    key = msc_hash_add_bytes(key, &c->rtol, sizeof c->rtol);
    if (find_done(r, name, key, false)) {
        return MSC_OK;
    }
    MSC_TRY(require_model(r));
    MSC_TRY(msc_model_check(r->setup->model, &c->dataset, c->atol, c->rtol));
    cJSON *result = cJSON_CreateObject();
    enum msc_status status = msc_json_add_text(result, "numerics", msc_setup_numerics(r->setup));
    if (status != MSC_OK) {
        cJSON_Delete(result);
        return status;
    }
    return msc_stages_put(r->stages, name, key, NULL, 0, result);
}

// ---- Searches ---------------------------------------------------------------------------------

// True if no later search writes the same file: the section's strategy file (`of_section`), or the
// model.
static bool is_last(const struct msc_config *c, size_t i, bool of_section) {
    for (size_t k = i + 1; k < c->n_entries; k++) {
        const struct msc_config_entry *later = &c->entries[k];
        if (later->strategy_file &&
            (!of_section || strcmp(later->strategy_file, c->entries[i].strategy_file) == 0)) {
            return false;
        }
    }
    return c->entries[i].strategy_file != NULL;
}

static enum msc_status keep_search(struct run *r, size_t i, struct msc_hash key) {
    const struct msc_setup *setup = r->setup;
    const struct msc_config_entry *e = &setup->config->entries[i];
    const cJSON *reports = r->result->reports;
    const cJSON *report = cJSON_GetArrayItem(reports, cJSON_GetArraySize(reports) - 1);
    const cJSON *written = msc_json_get(report, "files");
    bool has_model = msc_json_get(written, "model") && is_last(setup->config, i, false);
    char text[MSC_HASH_TEXT_BYTES] = "";
    const char *const files[] = {e->record,
                                 is_last(setup->config, i, true) ? e->strategy_file : NULL,
                                 has_model ? setup->model_output : NULL};
    cJSON *result = cJSON_CreateObject();
    enum msc_status status = msc_json_add(result, "report", cJSON_Duplicate(report, true));
    if (status == MSC_OK) {
        status = msc_json_add_text(
            result, "plan",
            setup->found ? msc_hash_format(text, msc_strategy_hash(setup->found)) : text);
    }
    if (status != MSC_OK) {
        cJSON_Delete(result);
        return status;
    }
    return msc_stages_put(r->stages, e->name, key, files, sizeof files / sizeof files[0], result);
}

// True if later stages can start from the result.
static bool is_whole(const struct msc_processor_result *result) {
    return !result->was_cancelled && result->is_feasible && result->export_status == MSC_OK;
}

static void extend_chain(struct run *r, const cJSON *done) {
    const cJSON *plan = msc_json_get(done, "plan");
    r->chain = msc_hash_add_text(r->chain, cJSON_IsString(plan) ? plan->valuestring : NULL);
}

// Hash of a given strategy.
static enum msc_status hash_given(struct msc_hash *out, const char *path) {
    struct msc_strategy *s = NULL;
    MSC_TRY(msc_strategy_load(&s, path));
    *out = msc_strategy_hash(s);
    msc_strategy_destroy(s);
    return MSC_OK;
}

static enum msc_status keep_given(struct run *r, size_t i, struct msc_hash key) {
    const cJSON *reports = r->result->reports;
    const cJSON *report = cJSON_GetArrayItem(reports, cJSON_GetArraySize(reports) - 1);
    const cJSON *files = msc_json_get(report, "files");
    const char *model = msc_json_get(files, "model") ? r->setup->model_output : NULL;
    char text[MSC_HASH_TEXT_BYTES];
    cJSON *result = cJSON_CreateObject();
    enum msc_status status = msc_json_add(result, "report", cJSON_Duplicate(report, true));
    if (status == MSC_OK) {
        msc_hash_format(text, msc_strategy_hash(r->setup->found));
        status = msc_json_add_text(result, "plan", text);
    }
    if (status != MSC_OK) {
        cJSON_Delete(result);
        return status;
    }
    model = is_last(r->setup->config, i, false) ? model : NULL;
    return msc_stages_put(r->stages, r->setup->config->entries[i].name, key, &model, 1, result);
}

// Applies a given strategy again only if it has changed.
static enum msc_status stage_given(struct run *r, size_t i) {
    const struct msc_config_entry *e = &r->setup->config->entries[i];
    struct msc_hash given, key = msc_hash_combine(key_of(r, e->name), r->entries[i]);
    MSC_TRY(hash_given(&given, e->strategy_file));
    key = msc_hash_combine(key, given);
    const cJSON *done = find_done(r, e->name, key, false);
    if (done) {
        const cJSON *report = msc_json_get(done, "report");
        MSC_TRY(msc_json_push(r->result->reports, cJSON_Duplicate(report, true)));
        extend_chain(r, done);
        return MSC_OK;
    }
    MSC_TRY(require_plans(r, i));
    MSC_TRY(msc_given_apply(r->setup, i, r->result));
    r->n_recalled = i + 1;
    if (!is_whole(r->result)) {
        return MSC_OK;
    }
    MSC_TRY(keep_given(r, i, key));
    extend_chain(r, msc_stages_find(r->stages, e->name, key));
    return MSC_OK;
}

// If the strategy file has changed but the record has not, the user has edited the strategy:
// renames the file.
static enum msc_status keep_changed(struct run *r, const struct msc_config_entry *e) {
    const char *path = e->strategy_file, *kept = NULL;
    if (!path || !msc_file_exists(path) || !msc_stages_is_changed(r->stages, e->name, path) ||
        msc_stages_is_changed(r->stages, e->name, e->record)) {
        return MSC_OK;
    }
    MSC_TRY(msc_file_set_aside(&kept, &r->setup->arena, path));
    msc_log(
        r->setup->log, MSC_LOG_WARNING,
        "%s: the file has changed since %s wrote it, and is written again; the old one is now %s",
        path, e->name, kept);
    return MSC_OK;
}

static enum msc_status stage_search(struct run *r, size_t i) {
    const char *name = r->setup->config->entries[i].name;
    struct msc_hash key = msc_hash_combine(key_of(r, name), r->entries[i]);
    bool is_given = false;
    MSC_TRY(msc_given_is(&is_given, r->setup, i));
    if (is_given) {
        return stage_given(r, i);
    }
    bool is_wanted = r->setup->options.retry_failed || r->setup->options.warm_start;
    const cJSON *done = find_done(r, name, key, is_wanted);
    if (done) {
        const cJSON *report = msc_json_get(done, "report");
        MSC_TRY(msc_json_push(r->result->reports, cJSON_Duplicate(report, true)));
        extend_chain(r, done);
        return MSC_OK;
    }
    MSC_TRY(keep_changed(r, &r->setup->config->entries[i]));
    MSC_TRY(require_plans(r, i));
    MSC_TRY(msc_run_entry(r->setup, i, r->result));
    r->n_recalled = i + 1;
    if (!is_whole(r->result)) {
        return MSC_OK;
    }
    MSC_TRY(keep_search(r, i, key));
    extend_chain(r, msc_stages_find(r->stages, name, key));
    return MSC_OK;
}

// ---- After the searches -----------------------------------------------------------------------

static enum msc_status run_export(struct run *r) {
    static const char name[] = "export";
    const char *path = r->setup->model_output;
    struct msc_hash key = msc_hash_add_text(key_of(r, name), path);
    if (!path || !msc_file_exists(path) || find_done(r, name, key, false)) {
        return MSC_OK; // the searches have written the file
    }
    cJSON *result = cJSON_CreateObject();
    enum msc_status status = msc_json_add_text(result, "model", msc_path_name(path));
    if (status != MSC_OK) {
        cJSON_Delete(result);
        return status;
    }
    return msc_stages_put(r->stages, name, key, &path, 1, result);
}

static enum msc_status write_track(const struct run *r, const cJSON *json) {
    struct msc_str text = {0};
    msc_json_write_pretty(&text, json);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(r->setup->config->stages.track_file, text.data, text.length);
    }
    msc_str_finish(&text);
    return status;
}

// Opens the model so that it runs sample by sample, which every model allows; sequences run as a
// whole.
static enum msc_status open_tracked(struct msc_model **out, const struct msc_setup *setup) {
    const struct msc_config *c = setup->config;
    struct msc_config_dataset dataset = c->dataset;
    dataset.options.samples = c->stages.track_samples;
    dataset.options.labels = NULL;
    dataset.validation_fraction = 0;
    dataset.validation_inputs = NULL;
    if (dataset.n_states == 0) {
        dataset.options.batch = 1;
    }
    MSC_TRY(msc_setup_open_model(out, setup, NULL)); // no log: the first opening was logged
    return msc_model_load_dataset(*out, &dataset);
}

// Fills {"stage", "worst", "fall_db", "file"}; the file has all tensors.
static enum msc_status track_plan(struct run *r, cJSON *result) {
    struct msc_model *model = NULL;
    struct msc_track *track = NULL;
    cJSON *json = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(open_tracked(&model, r->setup));
    const struct msc_track_side sides[2] = {{.model = model},
                                            {.model = model, .strategy = r->setup->found}};
    MSC_TRY_OUT(msc_track_make(&track, sides));
    MSC_TRY_OUT(msc_track_to_json(&json, track, model->graph));
    MSC_TRY_OUT(write_track(r, json));
    MSC_TRY_OUT(msc_json_add_text(result, "stage", "track"));
    MSC_TRY_OUT(msc_json_add_text(result, "file", r->setup->config->stages.track_file));
    if (track->worst < track->n_rows) {
        cJSON_AddItemToObject(result, "worst",
                              cJSON_DetachItemFromObjectCaseSensitive(json, "worst"));
        cJSON_AddItemToObject(result, "fall_db",
                              cJSON_DetachItemFromObjectCaseSensitive(json, "fall_db"));
    }
out:
    cJSON_Delete(json);
    msc_track_destroy(track);
    msc_model_close(model);
    return status;
}

static enum msc_status run_track(struct run *r) {
    static const char name[] = "track";
    const struct msc_config_stages *s = &r->setup->config->stages;
    struct msc_hash key = msc_hash_add_u64(key_of(r, name), (uint64_t)s->track_samples);
    const cJSON *done = s->has_track ? find_done(r, name, key, false) : NULL;
    if (!s->has_track || done) {
        return done ? msc_json_push(r->result->reports, cJSON_Duplicate(done, true)) : MSC_OK;
    }
    MSC_TRY(require_plans(r, r->setup->config->n_entries));
    cJSON *result = cJSON_CreateObject();
    enum msc_status status =
        result ? track_plan(r, result) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(result);
        r->result->was_cancelled = status == MSC_E_CANCELLED;
        return r->result->was_cancelled ? MSC_OK : status;
    }
    MSC_TRY(msc_stages_put(r->stages, name, key, &s->track_file, 1, result));
    done = msc_stages_find(r->stages, name, key);
    return msc_json_push(r->result->reports, cJSON_Duplicate(done, true));
}

// ---- All stages -------------------------------------------------------------------------------

static enum msc_status run_each(struct run *r) {
    MSC_TRY(run_prepare(r));
    MSC_TRY(run_parse(r));
    MSC_TRY(stage_baseline(r));
    for (size_t i = 0; i < r->setup->config->n_entries && is_whole(r->result); i++) {
        MSC_TRY(stage_search(r, i));
    }
    if (!is_whole(r->result)) {
        return MSC_OK;
    }
    MSC_TRY(run_export(r));
    MSC_TRY(run_track(r));
    msc_log(r->setup->log, MSC_LOG_INFO, "stages: %zu done, %zu unchanged", r->n_done, r->n_kept);
    return MSC_OK;
}

enum msc_status msc_run_stages(struct msc_setup *setup, struct msc_processor_result *result) {
    struct run r = {.setup = setup, .result = result};
    const char *path = msc_path_join(&setup->arena, setup->config->workspace, MSC_STAGES_FILE);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(msc_stages_open(&r.stages, path, setup->options.restart, setup->log));
    enum msc_status status = begin_chain(&r);
    if (status == MSC_OK) {
        status = run_each(&r);
    }
    msc_stages_close(r.stages);
    return status;
}
