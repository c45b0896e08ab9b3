// The files of a processor: none that it writes is one that it reads.
#include "pipeline/processor_internal.h"

#include "base/file.h"
#include "base/file_set.h"
#include "pipeline/output.h"

#include <stdio.h>
#include <string.h>

// What lies beside a record, by what its name adds.
static const struct {
    const char *ending, *what;
    bool is_base;
} companions[] = {
    {".params", "the scales of a record", false},
    {".moments", "what a search has worked out so far before its first trial", false},
    {".prepared", "what a search had prepared when it was ended before its first trial", false},
    {".base.json", "what a record started from", true},
    {".result.json", "what a search worked out", false},
    {".rerank.json", "what was measured of a search's best trials", false},
    {".distill.json", "what became of a search's winner", false},
    {".attempt", "what a record has in flight", false},
    {".cut", "what was cut off a record", false},
};
#define N_COMPANIONS (sizeof companions / sizeof companions[0])

// ---- What is read -----------------------------------------------------------------------------

// A program, a library, a table, or an argument that names a file.
static enum msc_status read_named(struct msc_file_set *files, const struct msc_config_entry *e,
                                  const char *what, const cJSON *path) {
    char *joined = NULL;
    if (!cJSON_IsString(path)) {
        return MSC_OK;
    }
    joined = msc_path_join(&files->arena, e->folder, path->valuestring);
    return joined ? msc_file_set_read(files, what, joined) : msc_processor__no_memory();
}

static enum msc_status files_read_entry(struct msc_file_set *files,
                                        const struct msc_config_entry *e) {
    const cJSON *word = NULL;
    MSC_TRY(msc_file_set_read(files, "the strategy to start from", e->base));
    if (e->library) {
        MSC_TRY(read_named(files, e, "the environment's library",
                           cJSON_GetObjectItemCaseSensitive(e->env, "type")));
    }
    MSC_TRY(read_named(files, e, "the environment's table",
                       cJSON_GetObjectItemCaseSensitive(e->env, "file")));
    MSC_TRY(read_named(files, e, "the agent's library",
                       cJSON_GetObjectItemCaseSensitive(e->agent, "path")));
    cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(e->agent, "command")) {
        MSC_TRY(read_named(files, e, "a file of the agent's command", word));
    }
    const cJSON *const commands[] = {cJSON_GetObjectItemCaseSensitive(e->rerank, "command"),
                                     cJSON_GetObjectItemCaseSensitive(e->env, "command")};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const cJSON *argv = cJSON_GetObjectItemCaseSensitive(commands[i], "argv");
        const cJSON *words = argv ? argv : commands[i];
        cJSON_ArrayForEach(word, words) {
            MSC_TRY(read_named(files, e, "a file of a command", word));
        }
    }
    return MSC_OK;
}

static enum msc_status read_dataset(struct msc_file_set *files,
                                    const struct msc_config_dataset *d) {
    MSC_TRY(msc_file_set_read(files, "the inputs", d->options.inputs));
    MSC_TRY(msc_file_set_read(files, "the labels", d->options.labels));
    MSC_TRY(msc_file_set_read(files, "the inputs of the validation", d->validation_inputs));
    return msc_file_set_read(files, "the labels of the validation", d->validation_labels);
}

static bool needs_model(const struct msc_processor *p) {
    unsigned needs = 0;
    for (size_t i = 0; i < p->end; i++) {
        needs |= p->config->entries[i].env_def->needs;
    }
    return needs && p->config->model;
}

enum msc_status msc_processor__read_files(struct msc_file_set *files,
                                          const struct msc_processor *p) {
    const struct msc_config *c = p->config;
    if (needs_model(p)) {
        MSC_TRY(msc_output_read_model(files, c->model));
    }
    MSC_TRY(read_dataset(files, &c->dataset));
    for (size_t i = 0; i < p->options.n_warm_from; i++) {
        MSC_TRY(msc_file_set_read(files, "a file of --warm-from", p->options.warm_from[i]));
    }
    for (size_t i = 0; i < c->n_entries; i++) {
        MSC_TRY(files_read_entry(files, &c->entries[i]));
    }
    return MSC_OK;
}

enum msc_status msc_processor__measured_files(struct msc_file_set *files,
                                              const struct msc_processor *p) {
    const struct msc_config *c = p->config;
    const struct msc_config_entry *e = &c->entries[p->first];
    const char *parameters = msc_arena_printf(&files->arena, "%s.params", e->record);
    if (!parameters) {
        return msc_processor__no_memory();
    }
    if (needs_model(p)) {
        MSC_TRY(msc_output_read_model(files, c->model));
    }
    MSC_TRY(read_dataset(files, &c->dataset));
    MSC_TRY(msc_file_set_read(files, "the strategy to start from", e->base));
    MSC_TRY(read_named(files, e, "the environment's table",
                       cJSON_GetObjectItemCaseSensitive(e->env, "file")));
    return msc_file_set_read(files, companions[0].what, parameters);
}

enum msc_status msc_processor_files(struct msc_file_set *files, const struct msc_processor *p) {
    const struct msc_config_entry *e = &p->config->entries[p->first];
    MSC_TRY(msc_file_set_read(files, p->is_from_record ? "the record" : "the configuration",
                              p->config->path));
    MSC_TRY(msc_processor__read_files(files, p));
    for (size_t i = 0; i < N_COMPANIONS; i++) {
        const char *path = msc_arena_printf(&files->arena, "%s%s", e->record, companions[i].ending);
        if (!path) {
            return msc_processor__no_memory();
        }
        MSC_TRY(msc_file_set_read(files, companions[i].what, path));
    }
    return MSC_OK;
}

// ---- What is written --------------------------------------------------------------------------

// A record and what lies beside it. What its search starts from is written only where no file is
// named.
static enum msc_status claim_record(struct msc_file_set *files, const char *what, const char *path,
                                    bool has_base) {
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, what, path));
    for (size_t i = 0; i < N_COMPANIONS; i++) {
        const char *beside = msc_arena_printf(&files->arena, "%s%s", path, companions[i].ending);
        if (!beside) {
            return msc_processor__no_memory();
        }
        if (!companions[i].is_base || !has_base) {
            MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, companions[i].what, beside));
        }
    }
    return MSC_OK;
}

// The searches of a section write one strategy file.
static bool is_first_of_strategy(const struct msc_config *c, size_t i) {
    for (size_t k = 0; k < i; k++) {
        const char *other = c->entries[k].strategy_file;
        if (other && strcmp(other, c->entries[i].strategy_file) == 0) {
            return false;
        }
    }
    return true;
}

// An output of an earlier run may be damaged.
static enum msc_status claim_output(struct msc_file_set *files, const struct msc_processor *p,
                                    enum msc_output kind, const char *what, const char *path) {
    bool is_output = path && msc_processor__is_output(p, kind, path);
    return msc_output_claim(files, is_output ? MSC_OUTPUT_ANY : kind, what, path);
}

static enum msc_status claim_entry(struct msc_file_set *files, struct msc_processor *p, size_t i) {
    const struct msc_config_entry *e = &p->config->entries[i];
    char what[128];
    snprintf(what, sizeof what, "the record of %s", e->name);
    MSC_TRY(claim_record(files, what, e->record, e->base != NULL));
    if (e->baseline == MSC_CONFIG_BASELINE_GREEDY) {
        const char *greedy = msc_processor__greedy_record(p, e->record);
        if (!greedy) {
            return msc_processor__no_memory();
        }
        snprintf(what, sizeof what, "the greedy record of %s", e->name);
        MSC_TRY(claim_record(files, what, greedy, false));
    }
    // What is there already of a section without searches is applied, not replaced.
    enum msc_output kind = e->is_plain ? MSC_OUTPUT_ANY : MSC_OUTPUT_STRATEGY;
    return e->strategy_file && is_first_of_strategy(p->config, i)
               ? claim_output(files, p, kind, "the strategy file", e->strategy_file)
               : MSC_OK;
}

// WORKSPACE/<model>.onnx, and never the model itself.
static enum msc_status choose_model(struct msc_processor *p) {
    const struct msc_config *c = p->config;
    struct msc_file_set model = {0};
    const char *name = msc_path_name(c->model);
    const char *dot = strrchr(name, '.');
    int length = dot ? (int)(dot - name) : (int)strlen(name);
    enum msc_status status = MSC_OK;
    p->model_output = c->stages.model_file
                          ? msc_arena_strdup(&p->arena, c->stages.model_file)
                          : msc_arena_printf(&p->arena, "%s/%.*s.onnx", c->workspace, length, name);
    if (!p->model_output) {
        return msc_processor__no_memory();
    }
    MSC_TRY_OUT(msc_file_set_read(&model, "the model", c->model));
    status = msc_file_set_write(&model, "the model to write", p->model_output);
    if (status == MSC_E_INVALID) {
        p->model_output =
            msc_arena_printf(&p->arena, "%s/%.*s.compressed.onnx", c->workspace, length, name);
        status = p->model_output ? MSC_OK : msc_processor__no_memory();
    }
out:
    msc_file_set_finish(&model);
    return status;
}

static enum msc_status claim_stages(struct msc_file_set *files, struct msc_processor *p) {
    const struct msc_config_stages *s = &p->config->stages;
    if (!s->are_named || p->is_from_record) {
        return MSC_OK;
    }
    const char *stages = msc_path_join(&p->arena, p->config->workspace, MSC_PROCESSOR_STAGES_FILE);
    if (!stages) {
        return msc_processor__no_memory();
    }
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, "the stages that were done", stages));
    MSC_TRY(claim_output(files, p, MSC_OUTPUT_GRAPH, "the file of parse", s->graph_file));
    return s->has_track
               ? msc_output_claim(files, MSC_OUTPUT_ANY, "the file of track", s->track_file)
               : MSC_OK;
}

static enum msc_status claim_all(struct msc_file_set *files, struct msc_processor *p) {
    const struct msc_config *c = p->config;
    bool has_edits = false;
    for (size_t i = 0; i < c->n_entries; i++) {
        MSC_TRY(claim_entry(files, p, i));
        has_edits = has_edits || c->entries[i].strategy_file;
    }
    MSC_TRY(claim_output(files, p, MSC_OUTPUT_LOG, "the log file", c->log_file));
    MSC_TRY(claim_stages(files, p));
    if (!needs_model(p) || !has_edits) {
        return MSC_OK;
    }
    MSC_TRY(choose_model(p));
    return claim_output(files, p, MSC_OUTPUT_MODEL, "the model to write", p->model_output);
}

enum msc_status msc_processor__claim_files(struct msc_processor *p) {
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    if (!p->is_from_record) { // which itself is written
        MSC_TRY_OUT(msc_file_set_read(&files, "the configuration", p->config->path));
    }
    MSC_TRY_OUT(msc_processor__read_files(&files, p));
    status = claim_all(&files, p);
out:
    msc_file_set_finish(&files);
    return status;
}
