#include "pipeline/read_files.h"

#include "base/file.h"
#include "base/json.h"
#include "model/output.h"
#include "records/record_files.h"

// Adds a program, library or table, or an argument that names a file.
static enum msc_status read_named(struct msc_file_set *files, const struct msc_config_entry *e,
                                  const char *what, const cJSON *path) {
    char *joined = NULL;
    if (!cJSON_IsString(path)) {
        return MSC_OK;
    }
    joined = msc_path_join(&files->arena, e->folder, path->valuestring);
    return joined ? msc_file_set_read(files, what, joined) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

static enum msc_status add_entry(struct msc_file_set *files, const struct msc_config_entry *e) {
    const cJSON *word = NULL;
    MSC_TRY(msc_file_set_read(files, "the strategy to start from", e->base));
    if (e->library) {
        MSC_TRY(read_named(files, e, "the environment's library", msc_json_get(e->env, "type")));
    }
    MSC_TRY(read_named(files, e, "the environment's table", msc_json_get(e->env, "file")));
    MSC_TRY(read_named(files, e, "the importance file", msc_json_get(e->env, "imatrix")));
    MSC_TRY(read_named(files, e, "the agent's library", msc_json_get(e->agent, "path")));
    cJSON_ArrayForEach(word, msc_json_get(e->agent, "command")) {
        MSC_TRY(read_named(files, e, "a file of the agent's command", word));
    }
    const cJSON *const commands[] = {msc_json_get(e->rerank, "command"),
                                     msc_json_get(e->env, "command")};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const cJSON *argv = msc_json_get(commands[i], "argv");
        const cJSON *words = argv ? argv : commands[i];
        cJSON_ArrayForEach(word, words) {
            MSC_TRY(read_named(files, e, "a file of a command", word));
        }
    }
    return MSC_OK;
}

static enum msc_status read_labels(struct msc_file_set *files, const char *what,
                                   const char *labels) {
    return msc_labels_are_next(labels) ? MSC_OK : msc_file_set_read(files, what, labels);
}

static enum msc_status read_dataset(struct msc_file_set *files,
                                    const struct msc_config_dataset *d) {
    MSC_TRY(msc_file_set_read(files, "the inputs", d->options.inputs));
    MSC_TRY(read_labels(files, "the labels", d->options.labels));
    MSC_TRY(msc_file_set_read(files, "the validation inputs", d->validation_inputs));
    return read_labels(files, "the validation labels", d->validation_labels);
}

static enum msc_status read_rules(struct msc_file_set *files, const struct msc_config *c) {
    for (size_t i = 0; i < c->n_rules; i++) {
        MSC_TRY(msc_file_set_read(files, "the rules", c->rules[i]));
    }
    return MSC_OK;
}

bool msc_read_files_has_model(const struct msc_config *c, size_t end) {
    unsigned needs = 0;
    for (size_t i = 0; i < end; i++) {
        needs |= c->entries[i].env_def->needs;
    }
    return needs && c->model;
}

enum msc_status msc_read_files_add(struct msc_file_set *files, const struct msc_config *c,
                                   size_t end, const struct msc_processor_options *options) {
    if (msc_read_files_has_model(c, end)) {
        MSC_TRY(msc_output_read_model(files, c->model));
        MSC_TRY(read_rules(files, c));
    }
    MSC_TRY(read_dataset(files, &c->dataset));
    for (size_t i = 0; i < options->n_warm_from; i++) {
        MSC_TRY(msc_file_set_read(files, "a file of --warm-from", options->warm_from[i]));
    }
    for (size_t i = 0; i < c->n_entries; i++) {
        MSC_TRY(add_entry(files, &c->entries[i]));
    }
    return MSC_OK;
}

enum msc_status msc_read_files_add_measured(struct msc_file_set *files,
                                            const struct msc_config *c) {
    const struct msc_config_entry *e = &c->entries[0];
    const char *parameters = msc_record_file(&files->arena, e->record, MSC_RECORD_FILE_PARAMETERS);
    MSC_TRY(MSC_ALLOCATED(parameters));
    if (msc_read_files_has_model(c, c->n_entries)) {
        MSC_TRY(msc_output_read_model(files, c->model));
        MSC_TRY(read_rules(files, c));
    }
    MSC_TRY(read_dataset(files, &c->dataset));
    MSC_TRY(msc_file_set_read(files, "the strategy to start from", e->base));
    MSC_TRY(read_named(files, e, "the environment's table", msc_json_get(e->env, "file")));
    return msc_file_set_read(files, "the scales of a record", parameters);
}
