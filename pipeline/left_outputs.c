#include "pipeline/left_outputs.h"

#include "base/file.h"
#include "base/json.h"
#include "pipeline/stages.h"
#include "records/record.h"

#include <string.h>

// True if both paths name the same file.
static bool is_same_file(const char *a, const char *b) {
    struct msc_arena arena = {0};
    char *planned[2] = {NULL};
    bool is_same = msc_path_planned(&planned[0], &arena, a) == MSC_OK &&
                   msc_path_planned(&planned[1], &arena, b) == MSC_OK &&
                   strcmp(planned[0], planned[1]) == 0;
    msc_arena_finish(&arena);
    return is_same;
}

// True if `path` is the file `name` in the workspace of a record's configuration.
static bool is_named(const cJSON *config, const char *record, const cJSON *name, const char *path) {
    const cJSON *workspace = msc_json_get(config, "workspace");
    struct msc_arena arena = {0};
    const char *folder = msc_path_folder(&arena, record);
    if (folder && cJSON_IsString(workspace) && strcmp(workspace->valuestring, ".") != 0) {
        folder = msc_path_join(&arena, folder, workspace->valuestring);
    }
    const char *named =
        folder && cJSON_IsString(name) ? msc_path_join(&arena, folder, name->valuestring) : NULL;
    bool is_it = named && is_same_file(named, path);
    msc_arena_finish(&arena);
    return is_it;
}

// True if the section of the configuration to which a record belongs listed no searches.
static bool is_record_plain(const cJSON *section) {
    const cJSON *entry = cJSON_GetArrayItem(msc_json_get(section, "gym"), 0);
    const cJSON *trials = msc_json_get(msc_json_get(entry, "budget"), "trials");
    return cJSON_IsNumber(trials) && trials->valuedouble == 0;
}

// True if the search of an entry has written the file, as its record shows.
static bool has_left(const struct msc_setup *setup, const struct msc_config_entry *e,
                     enum msc_output kind, const char *path) {
    struct msc_record *record = NULL;
    if (!msc_file_exists(e->record) ||
        msc_record_open(&record, e->record, MSC_RECORD_HEADER, NULL) != MSC_OK) {
        return false;
    }
    const cJSON *config = msc_json_get(msc_record_header(record), "config");
    const cJSON *section = e->strategy_file ? msc_json_get(config, e->section) : NULL;
    bool has = false;
    switch (kind) {
    case MSC_OUTPUT_STRATEGY:
        has = is_named(config, e->record, msc_json_get(section, "strategy_file"), path) &&
              (!e->is_plain || is_record_plain(section));
        break;
    case MSC_OUTPUT_LOG:
        has = is_named(config, e->record, msc_json_get(config, "log_file"), path);
        break;
    default: // the model, unless the configuration names a file for it
        has = kind == MSC_OUTPUT_MODEL && section && !setup->config->stages.model_file;
    }
    msc_record_close(record);
    return has;
}

static bool is_listed(const struct msc_setup *setup, const char *path) {
    struct msc_arena arena = {0};
    struct msc_stages *stages = NULL;
    const char *file = msc_path_join(&arena, setup->config->workspace, MSC_STAGES_FILE);
    bool is_it = file && msc_stages_open(&stages, file, false, NULL) == MSC_OK &&
                 msc_stages_has_file(stages, path);
    msc_stages_close(stages);
    msc_arena_finish(&arena);
    return is_it;
}

bool msc_left_outputs_have(const struct msc_setup *setup, enum msc_output kind, const char *path) {
    bool is_plain = false;
    for (size_t i = 0; i < setup->config->n_entries; i++) {
        const struct msc_config_entry *e = &setup->config->entries[i];
        bool is_its = kind != MSC_OUTPUT_STRATEGY ||
                      (e->strategy_file && strcmp(e->strategy_file, path) == 0);
        is_plain = is_plain || (kind == MSC_OUTPUT_STRATEGY && is_its && e->is_plain);
        if (is_its && has_left(setup, e, kind, path)) {
            return true;
        }
    }
    return !is_plain && is_listed(setup, path);
}

// Renames a damaged output. Files that are intact, missing or not an output are left unchanged.
static enum msc_status set_aside(struct msc_setup *setup, enum msc_output kind, const char *path) {
    const char *kept = NULL;
    bool is_whole = true;
    if (!path) {
        return MSC_OK;
    }
    MSC_TRY(msc_output_is_whole(&is_whole, kind, path));
    if (is_whole || !msc_left_outputs_have(setup, kind, path)) {
        return MSC_OK;
    }
    MSC_TRY(msc_file_set_aside(&kept, &setup->arena, path));
    msc_log(setup->log, MSC_LOG_WARNING,
            "%s: the file cannot be read and is written again; the old one is now %s", path, kept);
    return MSC_OK;
}

enum msc_status msc_left_outputs_set_aside(struct msc_setup *setup) {
    const struct msc_config *c = setup->config;
    for (size_t i = 0; i < c->n_entries; i++) {
        MSC_TRY(set_aside(setup, MSC_OUTPUT_STRATEGY, c->entries[i].strategy_file));
    }
    MSC_TRY(set_aside(setup, MSC_OUTPUT_MODEL, setup->model_output));
    return set_aside(setup, MSC_OUTPUT_GRAPH, c->stages.are_named ? c->stages.graph_file : NULL);
}

enum msc_status msc_left_outputs_set_log_aside(struct msc_setup *setup) {
    return set_aside(setup, MSC_OUTPUT_LOG, setup->config->log_file);
}
