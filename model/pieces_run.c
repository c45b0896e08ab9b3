// Runs the pieces of a manifest one after another. Values pass from piece to piece in files, which
// every runtime can read.
#include "model/pieces.h"

#include "base/file.h"
#include "base/scratch.h"
#include "data/array_file.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "model/collect.h"
#include "base/file_hash.h"
#include "model/output.h"
#include "tools/runtime.h"

#include <string.h>

struct chain {
    const struct msc_pieces *pieces;
    const struct msc_pieces_run *run;
    struct msc_array_list values; // inputs of the whole model, and outputs of pieces so far
    struct msc_scratch scratch;
    struct msc_arena arena;
    struct msc_runtime *runtime; // NULL: not started
    const char **plugins;
    size_t n_plugins;
};

static enum msc_status save_list(const char *path, const struct msc_array_list *list) {
    return msc_array_file_kind_of(path) == MSC_ARRAY_FILE_NPZ
               ? msc_npz_save(path, list)
               : msc_safetensors_save(path, list, NULL, 0);
}

static enum msc_status list_plugins(struct chain *c) {
    const struct msc_model_options *o = c->run->options;
    const struct msc_pieces *p = c->pieces;
    c->plugins = msc_arena_array(&c->arena, o->n_plugins + p->n_plugins + 1, sizeof(char *));
    MSC_TRY(MSC_ALLOCATED(c->plugins));
    for (size_t i = 0; i < o->n_plugins; i++) {
        c->plugins[c->n_plugins++] = o->plugins[i];
    }
    for (size_t i = 0; i < p->n_plugins && o->n_plugins == 0; i++) {
        if (!c->run->allow_plugins) {
            return MSC_FAIL(MSC_E_STATE,
                            "%s: names the plug-in %s, which may do anything; if you trust it, add "
                            "--allow-plugins, or give plug-ins with --operators",
                            p->path, p->plugins[i]);
        }
        c->plugins[c->n_plugins] = msc_path_join(&c->arena, p->folder, p->plugins[i]);
        MSC_TRY(MSC_ALLOCATED(c->plugins[c->n_plugins++]));
    }
    return MSC_OK;
}

static enum msc_status check_hash(const struct msc_pieces *pieces, const struct msc_piece *p,
                                  const char *path) {
    struct msc_hash hash;
    char text[MSC_HASH_TEXT_BYTES];
    if (!p->hash) {
        return MSC_OK;
    }
    MSC_TRY(msc_file_hash(&hash, path));
    return strcmp(msc_hash_format(text, hash), p->hash) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "%s: %s has changed since the split; split again, or remove \"hash\" of "
                          "'%s' if the change is intended",
                          pieces->path, path, p->name);
}

// Writes the arrays that a piece reads to a file.
static enum msc_status save_inputs(const struct chain *c, const struct msc_piece *p,
                                   const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < p->n_inputs && status == MSC_OK; i++) {
        const char *name = p->inputs[i].name;
        const struct msc_array *array = msc_array_list_find(&c->values, name);
        status = array ? msc_array_list_add(&list, name, array)
                       : MSC_FAIL(MSC_E_INVALID,
                                  "%s: piece '%s' reads '%s', which is not in %s, or which has "
                                  "another shape in each sample",
                                  c->pieces->path, p->name, name, c->run->inputs);
    }
    status = status == MSC_OK ? save_list(path, &list) : status;
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status run_own(struct chain *c, const struct msc_piece *p, const char *model,
                               const char *inputs, const char *outputs) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    struct msc_model_options o = *c->run->options;
    struct msc_model *m = NULL;
    struct msc_collect collect = {.path = outputs};
    o.device = p->device ? p->device : o.device;
    o.keeps_types = true;
    o.plugins = c->plugins;
    o.n_plugins = c->n_plugins;
    dataset.options.inputs = inputs;
    dataset.options.batch = 1;
    MSC_TRY(msc_model_open(&m, model, &o));
    enum msc_status status = msc_model_load_dataset(m, &dataset);
    status = status == MSC_OK ? msc_collect(m, &collect) : status;
    msc_model_close(m);
    return status;
}

static enum msc_status run_elsewhere(struct chain *c, const struct msc_piece *p, const char *model,
                                     const char *inputs, const char *outputs) {
    const struct msc_runtime_options options = MSC_RUNTIME_OPTIONS_INIT;
    const struct msc_runtime_found *found;
    struct msc_runtime_job job = MSC_RUNTIME_JOB_INIT;
    enum msc_status status = c->runtime ? MSC_OK : msc_runtime_start(&c->runtime, &options);
    job.runtime = p->runtime;
    job.models = &model;
    job.n_models = 1;
    job.inputs = inputs;
    status = status == MSC_OK ? msc_runtime_find(&found, c->runtime, p->runtime) : status;
    status = status == MSC_OK ? msc_runtime_outputs(c->runtime, &job, outputs) : status;
    return status == MSC_OK
               ? MSC_OK
               : msc_status_prefix(status,
                                   "%s: piece '%s' runs in %s (\"runtime\": \"mscgym\" would run "
                                   "it here)",
                                   c->pieces->path, p->name, p->runtime);
}

// Adds the outputs of a piece to the values.
static enum msc_status take_outputs(struct chain *c, const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_array_file_load(&list, path);
    for (size_t i = 0; i < list.n && status == MSC_OK; i++) {
        status = msc_array_list_add(&c->values, list.names[i], list.arrays[i]);
    }
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status run_piece(struct chain *c, const struct msc_piece *p) {
    const char *model = msc_path_join(&c->arena, c->pieces->folder, p->model);
    const char *file = msc_arena_printf(&c->arena, "%s.npz", p->name);
    const char *inputs =
        file ? msc_path_join(&c->arena, c->run->keep ? c->run->keep : c->scratch.path, file) : NULL;
    const char *outputs = msc_arena_printf(&c->arena, "%s/%s.out.npz", c->scratch.path, p->name);
    MSC_TRY(MSC_ALLOCATED(model && inputs && outputs));
    MSC_TRY(check_hash(c->pieces, p, model));
    MSC_TRY(save_inputs(c, p, inputs));
    MSC_TRY(strcmp(p->runtime, "mscgym") == 0 ? run_own(c, p, model, inputs, outputs)
                                              : run_elsewhere(c, p, model, inputs, outputs));
    return take_outputs(c, outputs);
}

static enum msc_status save_result(const struct chain *c) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < c->pieces->n_outputs && status == MSC_OK; i++) {
        const char *name = c->pieces->outputs[i];
        const struct msc_array *array = msc_array_list_find(&c->values, name);
        status =
            array ? msc_array_list_add(&list, name, array)
                  : MSC_FAIL(MSC_E_STATE, "%s: no piece gave output '%s'", c->pieces->path, name);
    }
    status = status == MSC_OK ? save_list(c->run->output, &list) : status;
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status read_files(struct msc_file_set *files, const struct chain *c) {
    MSC_TRY(msc_file_set_read(files, "the manifest", c->pieces->path));
    MSC_TRY(msc_file_set_read(files, "the inputs", c->run->inputs));
    for (size_t i = 0; i < c->n_plugins; i++) {
        MSC_TRY(msc_file_set_read(files, "a plug-in", c->plugins[i]));
    }
    for (size_t i = 0; i < c->pieces->n_pieces; i++) {
        const char *model =
            msc_path_join(&files->arena, c->pieces->folder, c->pieces->pieces[i].model);
        MSC_TRY(MSC_ALLOCATED(model));
        MSC_TRY(msc_output_read_model(files, model));
    }
    return MSC_OK;
}

// No file that is read may be replaced.
static enum msc_status claim_files(struct msc_file_set *files, const struct chain *c) {
    MSC_TRY(read_files(files, c));
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, "--output", c->run->output));
    for (size_t i = 0; i < c->pieces->n_pieces && c->run->keep; i++) {
        const char *path =
            msc_arena_printf(&files->arena, "%s/%s.npz", c->run->keep, c->pieces->pieces[i].name);
        MSC_TRY(MSC_ALLOCATED(path));
        MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, "--keep", path));
    }
    return MSC_OK;
}

static enum msc_status run_all(struct chain *c) {
    struct msc_file_set files = {0};
    MSC_TRY(list_plugins(c));
    enum msc_status status = claim_files(&files, c);
    msc_file_set_finish(&files);
    MSC_TRY(status);
    MSC_TRY(msc_scratch_make(&c->scratch, &c->arena));
    MSC_TRY(msc_array_file_load(&c->values, c->run->inputs));
    if (c->run->keep) {
        MSC_TRY(msc_file_make_folders(c->run->keep));
    }
    for (size_t i = 0; i < c->pieces->n_pieces; i++) {
        MSC_TRY(run_piece(c, &c->pieces->pieces[i]));
    }
    return save_result(c);
}

enum msc_status msc_pieces_run(const struct msc_pieces *pieces, const struct msc_pieces_run *run) {
    struct chain c = {.pieces = pieces, .run = run};
    enum msc_status status = run_all(&c);
    msc_runtime_stop(c.runtime);
    msc_scratch_remove(&c.scratch);
    msc_array_list_finish(&c.values);
    msc_arena_finish(&c.arena);
    return status;
}
