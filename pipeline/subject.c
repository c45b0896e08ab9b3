#include "pipeline/subject.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "pipeline/claim_files.h"
#include "pipeline/given.h"
#include "pipeline/processor_parts.h"
#include "pipeline/setup.h"
#include "model/strategies.h"

#include <string.h>

enum kind { KIND_MODEL, KIND_STRATEGY, KIND_RECORD, KIND_CONFIG };

// ---- Kind of the file -------------------------------------------------------------------------

static bool has_member(const cJSON *json, const char *key) {
    return msc_json_get(json, key) != NULL;
}

// Files that are not JSON count as models: reading the model then reports the error.
static enum msc_status kind_of(enum kind *out, const char *path) {
    static const char record[] = "{\"kind\":\"header\"";
    const void *data = NULL;
    size_t n_bytes = 0;
    cJSON *json = NULL;
    *out = KIND_MODEL;
    MSC_TRY(msc_file_map(&data, &n_bytes, path));
    enum msc_status status = MSC_OK;
    if (n_bytes >= sizeof record - 1 && memcmp(data, record, sizeof record - 1) == 0) {
        *out = KIND_RECORD;
    } else if (n_bytes > 0 && strchr("{ \t\r\n", *(const char *)data)) {
        status = msc_json_parse(&json, data, n_bytes, path);
        status = status == MSC_E_NOMEM ? status : MSC_OK;
        if (has_member(json, "schema")) {
            *out = KIND_STRATEGY;
        } else if (json && !has_member(json, "nodes")) {
            *out = KIND_CONFIG;
        }
    }
    cJSON_Delete(json);
    msc_file_unmap(data, n_bytes);
    return status;
}

// Splits the word at its last colon into *path and *behind, the text after the colon. *behind is
// NULL if the whole word is an existing file or has no colon.
static enum msc_status split(char **path, const char **behind, struct msc_arena *arena,
                             const char *word) {
    const char *colon = msc_file_exists(word) ? NULL : strrchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : strlen(word);
    *behind = colon ? colon + 1 : NULL;
    *path = msc_arena_strndup(arena, word, length);
    return MSC_ALLOCATED(*path);
}

// ---- Records ----------------------------------------------------------------------------------

static enum msc_status subject_open_record(struct msc_subject *s, const char *path, int64_t trial,
                                           const struct msc_processor_options *options) {
    MSC_TRY(msc_record_plan_open(&s->plan, path, trial, options));
    MSC_TRY(msc_record_plan_make(&s->plan));
    s->strategy = s->plan.strategy;
    s->config = msc_processor_config(s->plan.processor);
    s->model = s->config->model;
    // Frees environment, model and samples, which are needed only to make the strategy.
    msc_processor__release(s->plan.processor);
    return MSC_OK;
}

static enum msc_status open_trial(struct msc_subject *s, const char *path, const char *behind,
                                  const struct msc_processor_options *options) {
    int64_t trial = -1;
    if (behind && (!msc_parse_i64(&trial, behind) || trial < 0)) {
        return MSC_FAIL(MSC_E_INVALID, "%s:%s: expected the number of a trial after the colon",
                        path, behind);
    }
    return subject_open_record(s, path, trial, options);
}

// ---- Stages -----------------------------------------------------------------------------------

// The last search with this name, or in the section of this name; `name` NULL: the last of all.
static const struct msc_config_entry *find_search(const struct msc_config *c, const char *name) {
    for (size_t i = c->n_entries; i > 0; i--) {
        const struct msc_config_entry *e = &c->entries[i - 1];
        if (!name || strcmp(e->name, name) == 0 || strcmp(e->section, name) == 0) {
            return e;
        }
    }
    return NULL;
}

static enum msc_status fail_stage(const struct msc_config *c, const char *stage) {
    struct msc_str names = {0};
    msc_str_item(&names, "baseline");
    for (size_t i = 0; i < c->n_entries; i++) {
        msc_str_item(&names, c->entries[i].name);
    }
    msc_str_item(&names, "export");
    enum msc_status status = msc_str_status(&names);
    if (status == MSC_OK) {
        status = MSC_FAIL(MSC_E_INVALID, "%s: unknown stage \"%s\": expected one of %s", c->path,
                          stage, msc_str_text(&names));
    }
    msc_str_finish(&names);
    return status;
}

static enum msc_status subject_open_stage(struct msc_subject *s, const char *path,
                                          const char *stage,
                                          const struct msc_processor_options *options) {
    MSC_TRY(msc_processor_open(&s->processor, path, options));
    struct msc_setup *setup = msc_processor__setup(s->processor);
    const struct msc_config *c = s->config = setup->config;
    s->model = c->model;
    if (!c->model) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: the configuration has no model", path);
    }
    if (stage && strcmp(stage, "baseline") == 0) {
        return MSC_OK;
    }
    if (stage && strcmp(stage, "export") == 0) {
        MSC_TRY(msc_claim_files(setup));
        s->model = setup->model_output;
        return s->model ? MSC_OK : fail_stage(c, stage);
    }
    const struct msc_config_entry *e = find_search(c, stage);
    if (!e) {
        return fail_stage(c, stage);
    }
    bool is_given = false;
    MSC_TRY(msc_given_is(&is_given, setup, (size_t)(e - c->entries)));
    if (is_given) {
        MSC_TRY(msc_strategy_load(&s->own, e->strategy_file));
        s->strategy = s->own;
        return MSC_OK;
    }
    return subject_open_record(s, e->record, -1, options);
}

// ---- Any kind ---------------------------------------------------------------------------------

enum msc_status msc_subject_open(struct msc_subject *s, const char *word,
                                 const struct msc_processor_options *options) {
    char *path = NULL;
    const char *behind = NULL;
    enum kind kind = KIND_MODEL;
    *s = (struct msc_subject){0};
    MSC_TRY(split(&path, &behind, &s->arena, word));
    MSC_TRY(kind_of(&kind, path));
    if (behind && (kind == KIND_MODEL || kind == KIND_STRATEGY)) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "cannot open %s: No such file or directory", word);
    }
    switch (kind) {
    case KIND_STRATEGY:
        MSC_TRY(msc_strategy_load(&s->own, path));
        s->strategy = s->own;
        return MSC_OK;
    case KIND_RECORD:
        return open_trial(s, path, behind, options);
    case KIND_CONFIG:
        return subject_open_stage(s, path, behind, options);
    case KIND_MODEL:
        break;
    }
    s->model = path;
    return MSC_OK;
}

void msc_subject_close(struct msc_subject *s) {
    msc_strategy_destroy(s->own);
    msc_record_plan_close(&s->plan);
    msc_processor_close(s->processor);
    msc_arena_finish(&s->arena);
    *s = (struct msc_subject){0};
}

struct msc_config_dataset msc_subject_dataset(const struct msc_config *config) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    if (config) {
        dataset = config->dataset;
        dataset.validation_fraction = 0;
        dataset.validation_inputs = NULL;
        dataset.options.labels = NULL;
    }
    if (dataset.n_states == 0) {
        dataset.options.batch = 1;
        dataset.options.samples = MSC_SUBJECT_SAMPLES;
    }
    return dataset;
}
