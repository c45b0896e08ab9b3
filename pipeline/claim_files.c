#include "pipeline/claim_files.h"

#include "base/file.h"
#include "graph/target.h"
#include "pipeline/left_outputs.h"
#include "pipeline/read_files.h"
#include "records/record_files.h"
#include "pipeline/stages.h"

#include <stdio.h>
#include <string.h>

// Claims a record and the files next to it. RECORD.base.json is written only if the entry names no
// base.
static enum msc_status claim_record(struct msc_file_set *files, const char *what, const char *path,
                                    bool has_base) {
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, what, path));
    for (const struct msc_record_file *f = msc_record_file_kinds; f->ending; f++) {
        const char *beside = msc_record_file(&files->arena, path, f->ending);
        MSC_TRY(MSC_ALLOCATED(beside));
        if (!f->is_base || !has_base) {
            MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, f->what, beside));
        }
    }
    return MSC_OK;
}

// True if entry i is the first search with its strategy file. All searches of a section share one.
static bool is_first_of_strategy(const struct msc_config *c, size_t i) {
    for (size_t k = 0; k < i; k++) {
        const char *other = c->entries[k].strategy_file;
        if (other && strcmp(other, c->entries[i].strategy_file) == 0) {
            return false;
        }
    }
    return true;
}

// An output of an earlier run may be replaced, even if it is damaged.
static enum msc_status claim_output(struct msc_file_set *files, const struct msc_setup *setup,
                                    enum msc_output kind, const char *what, const char *path) {
    bool is_output = path && msc_left_outputs_have(setup, kind, path);
    return msc_output_claim(files, is_output ? MSC_OUTPUT_ANY : kind, what, path);
}

static enum msc_status claim_entry(struct msc_file_set *files, struct msc_setup *setup, size_t i) {
    const struct msc_config_entry *e = &setup->config->entries[i];
    char what[128];
    snprintf(what, sizeof what, "the record of %s", e->name);
    MSC_TRY(claim_record(files, what, e->record, e->base != NULL));
    if (e->baseline == MSC_CONFIG_BASELINE_GREEDY) {
        const char *greedy = msc_record_sibling(&setup->arena, e->record, "greedy");
        MSC_TRY(MSC_ALLOCATED(greedy));
        snprintf(what, sizeof what, "the greedy record of %s", e->name);
        MSC_TRY(claim_record(files, what, greedy, false));
    }
    // The strategy file of a section without searches is applied, not replaced.
    enum msc_output kind = e->is_plain ? MSC_OUTPUT_ANY : MSC_OUTPUT_STRATEGY;
    return e->strategy_file && is_first_of_strategy(setup->config, i)
               ? claim_output(files, setup, kind, "the strategy file", e->strategy_file)
               : MSC_OK;
}

// The ending of the compressed model, if the configuration does not name it.
static const char *model_suffix(const struct msc_config *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        const char *name = c->entries[i].target;
        const struct msc_target *target = name ? msc_target_find(name) : NULL;
        if (target && target->suffix) {
            return target->suffix;
        }
    }
    return ".onnx";
}

// Sets the path of the compressed model: WORKSPACE/<model>.onnx or, if that file is the model
// itself, WORKSPACE/<model>.compressed.onnx. The target may ask for another ending.
static enum msc_status choose_model(struct msc_setup *setup) {
    const struct msc_config *c = setup->config;
    struct msc_file_set model = {0};
    const char *name = msc_path_name(c->model), *suffix = model_suffix(c);
    const char *dot = strrchr(name, '.');
    int length = dot ? (int)(dot - name) : (int)strlen(name);
    enum msc_status status = MSC_OK;
    setup->model_output =
        c->stages.model_file
            ? msc_arena_strdup(&setup->arena, c->stages.model_file)
            : msc_arena_printf(&setup->arena, "%s/%.*s%s", c->workspace, length, name, suffix);
    MSC_TRY(MSC_ALLOCATED(setup->model_output));
    MSC_TRY_OUT(msc_file_set_read(&model, "the model", c->model));
    status = msc_file_set_write(&model, "the model to write", setup->model_output);
    if (status == MSC_E_INVALID) {
        setup->model_output = msc_arena_printf(&setup->arena, "%s/%.*s.compressed%s", c->workspace,
                                               length, name, suffix);
        status = MSC_ALLOCATED(setup->model_output);
    }
out:
    msc_file_set_finish(&model);
    return status;
}

static enum msc_status claim_stages(struct msc_file_set *files, struct msc_setup *setup) {
    const struct msc_config_stages *s = &setup->config->stages;
    if (!s->are_named || setup->config->is_stored) {
        return MSC_OK;
    }
    const char *stages = msc_path_join(&setup->arena, setup->config->workspace, MSC_STAGES_FILE);
    MSC_TRY(MSC_ALLOCATED(stages));
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, "the record of stages", stages));
    MSC_TRY(claim_output(files, setup, MSC_OUTPUT_GRAPH, "the output of parse", s->graph_file));
    return s->has_track
               ? msc_output_claim(files, MSC_OUTPUT_ANY, "the output of track", s->track_file)
               : MSC_OK;
}

static enum msc_status claim_all(struct msc_file_set *files, struct msc_setup *setup) {
    const struct msc_config *c = setup->config;
    bool has_edits = false;
    for (size_t i = 0; i < c->n_entries; i++) {
        MSC_TRY(claim_entry(files, setup, i));
        has_edits = has_edits || c->entries[i].strategy_file;
    }
    MSC_TRY(claim_output(files, setup, MSC_OUTPUT_LOG, "the log file", c->log_file));
    MSC_TRY(claim_stages(files, setup));
    if (!msc_read_files_has_model(c, setup->end) || !has_edits) {
        return MSC_OK;
    }
    MSC_TRY(choose_model(setup));
    return claim_output(files, setup, MSC_OUTPUT_MODEL, "the model to write", setup->model_output);
}

enum msc_status msc_claim_files(struct msc_setup *setup) {
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    if (!setup->config->is_stored) { // otherwise `path` is the record, which is an output
        MSC_TRY_OUT(msc_file_set_read(&files, "the configuration", setup->config->path));
    }
    MSC_TRY_OUT(msc_read_files_add(&files, setup->config, setup->end, &setup->options));
    status = claim_all(&files, setup);
out:
    msc_file_set_finish(&files);
    return status;
}
