#include "pipeline/setup.h"

#include "base/file.h"
#include "base/json.h"
#include "env/api/drop.h"
#include "kernels/engine/backends.h"
#include "model/export.h"
#include "pipeline/header_config.h"
#include "pipeline/log_file.h"
#include "pipeline/read_files.h"
#include "records/record_files.h"
#include "supervise/supervise.h"
#include "tools/strategy.h"

#include <string.h>

// ---- Options that override the configuration --------------------------------------------------

static enum msc_status add_bindings(struct msc_setup *setup) {
    struct msc_config *c = setup->config;
    const struct msc_processor_options *o = &setup->options;
    struct msc_binding *all =
        msc_arena_array(&setup->arena, c->n_bindings + o->n_bindings + 1, sizeof *all);
    MSC_TRY(MSC_ALLOCATED(all));
    size_t n = 0;
    for (; n < c->n_bindings; n++) {
        all[n] = c->bindings[n];
    }
    for (size_t i = 0; i < o->n_bindings; i++) {
        size_t k = 0;
        while (k < n && strcmp(all[k].symbol, o->bindings[i].symbol) != 0) {
            k++;
        }
        all[k] = o->bindings[i];
        n += k == n;
    }
    c->bindings = all;
    c->n_bindings = n;
    return MSC_OK;
}

// The command line's plug-ins for operators come before the configuration's.
static enum msc_status add_plugins(struct msc_setup *setup) {
    struct msc_config *c = setup->config;
    const struct msc_processor_options *o = &setup->options;
    size_t n = o->n_plugins + c->n_operators;
    const char **all = msc_arena_array(&setup->arena, n + 1, sizeof *all);
    MSC_TRY(MSC_ALLOCATED(all));
    for (size_t i = 0; i < n; i++) {
        all[i] = i < o->n_plugins ? o->plugins[i] : c->operators[i - o->n_plugins];
    }
    c->operators = all;
    c->n_operators = n;
    return MSC_OK;
}

static enum msc_status select_entries(struct msc_setup *setup) {
    const struct msc_config *c = setup->config;
    const struct msc_processor_options *o = &setup->options;
    bool needs_one = o->record || o->has_trials || o->seconds > 0 || o->n_warm_from > 0 || o->agent;
    setup->end = c->n_entries;
    if (o->entry) {
        MSC_TRY(msc_config_find_entry(&setup->first, c, o->entry));
        setup->end = setup->first + 1;
    } else if (needs_one && c->n_entries > 1) {
        return MSC_FAIL(
            MSC_E_INVALID, "%s: there are %zu searches, so %s --entry, such as --entry %s", c->path,
            c->n_entries,
            o->agent ? "name one with" : "--record, --trials, --time and --warm-from need",
            c->entries[0].name);
    }
    return MSC_OK;
}

// Bounds the drop of the accuracy, in place of any other bound on the accuracy.
static enum msc_status bound_accuracy(struct msc_config_entry *e, double most) {
    static const char *const keys[] = {"accuracy", "accuracy" MSC_DROP_SUFFIX,
                                       "accuracy" MSC_DROP_RATIO_SUFFIX};
    cJSON *bounds = msc_json_get(e->env, "bounds");
    if (!bounds) {
        bounds = cJSON_CreateObject();
        MSC_TRY(msc_json_add(e->env, "bounds", bounds));
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(bounds, keys[i]);
    }
    return msc_json_add_number(bounds, keys[1], most);
}

// Paths of an entry are relative to its folder.
static enum msc_status set_imatrix(struct msc_setup *setup, struct msc_config_entry *e) {
    char *path;
    MSC_TRY(msc_path_relative(&path, &setup->arena, setup->options.imatrix, e->folder));
    cJSON_DeleteItemFromObjectCaseSensitive(e->env, "imatrix");
    return msc_json_add_text(e->env, "imatrix", path);
}

static enum msc_status apply_options(struct msc_setup *setup) {
    const struct msc_processor_options *o = &setup->options;
    setup->config->device = o->device ? o->device : setup->config->device;
    for (size_t i = setup->first; i < setup->end; i++) {
        struct msc_config_entry *e = &setup->config->entries[i];
        e->record = o->record ? o->record : e->record;
        e->budget.trials = o->has_trials ? o->trials : e->budget.trials;
        e->budget.seconds = o->seconds > 0 ? o->seconds : e->budget.seconds;
        e->is_budget_default = e->is_budget_default && !o->has_trials && !(o->seconds > 0);
        e->baseline = o->baseline_greedy ? MSC_CONFIG_BASELINE_GREEDY : e->baseline;
        MSC_TRY(o->has_accuracy_drop ? bound_accuracy(e, o->accuracy_drop) : MSC_OK);
        bool is_quantize = e->section && strcmp(e->section, "quantize") == 0;
        MSC_TRY(o->imatrix && is_quantize ? set_imatrix(setup, e) : MSC_OK);
    }
    return MSC_OK;
}

// Replaces the entry's agent by the agent in the options, whose results are not delivered.
static enum msc_status set_agent_beside(struct msc_setup *setup) {
    const struct msc_processor_options *o = &setup->options;
    struct msc_config_entry *e = &setup->config->entries[setup->first];
    cJSON *agent = NULL;
    MSC_TRY(msc_config_resolve_agent(setup->config, e->name, o->agent, &agent));
    cJSON_Delete(e->agent);
    cJSON_Delete(e->agent_said);
    e->agent = agent;
    e->agent_said = cJSON_Duplicate(o->agent, true);
    e->is_agent_default = false;
    e->budget = (struct msc_budget)MSC_BUDGET_NONE;
    e->is_budget_default = false;
    e->baseline = MSC_CONFIG_BASELINE_UNIFORM;
    e->is_delivered = false;
    e->record = msc_record_sibling(&setup->arena, e->record, o->beside);
    return MSC_ALLOCATED(e->agent_said && e->record);
}

enum msc_status msc_setup_create(struct msc_setup **out, struct msc_config *config,
                                 const struct msc_processor_options *options) {
    struct msc_setup *setup = msc_alloc_zero(1, sizeof *setup);
    if (!setup) {
        msc_config_destroy(config);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    setup->config = config;
    setup->options = *options;
    setup->log = options->log;
    setup->news = options->log;
    enum msc_status status = options->isa ? msc_backend_set_isa(options->isa) : MSC_OK;
    if (status == MSC_OK) {
        status = add_bindings(setup);
    }
    if (status == MSC_OK) {
        status = add_plugins(setup);
    }
    if (status == MSC_OK) {
        status = select_entries(setup);
    }
    if (status == MSC_OK && options->agent) {
        status = set_agent_beside(setup);
    }
    if (status == MSC_OK) {
        status = apply_options(setup);
    }
    if (status != MSC_OK) {
        msc_setup_destroy(setup);
        return status;
    }
    *out = setup;
    return MSC_OK;
}

enum msc_status msc_setup_open_record(struct msc_setup **out, const char *path,
                                      const struct msc_processor_options *options) {
    struct msc_processor_options own = *options;
    struct msc_config *config = NULL;
    MSC_TRY(msc_header_config_open(&config, path, options));
    own.record = path; // the record may have been renamed
    own.entry = NULL;
    return msc_setup_create(out, config, &own);
}

void msc_setup_destroy(struct msc_setup *setup) {
    if (!setup) {
        return;
    }
    msc_strategy_destroy(setup->found);
    msc_model_close(setup->model);
    msc_log_file_close(setup->log_file);
    msc_config_destroy(setup->config);
    msc_arena_finish(&setup->arena);
    msc_free(setup);
}

// ---- Model and dataset ------------------------------------------------------------------------

enum msc_status msc_setup_open_model(struct msc_model **out, const struct msc_setup *setup,
                                     const struct msc_log *log) {
    const struct msc_config *c = setup->config;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    o.device = c->device;
    o.n_threads = setup->options.n_threads;
    o.memory_bytes = setup->options.memory_bytes;
    o.bindings = c->bindings;
    o.n_bindings = c->n_bindings;
    o.rules = c->rules;
    o.n_rules = c->n_rules;
    o.plugins = c->operators;
    o.n_plugins = c->n_operators;
    o.log = log;
    o.cancel = setup->options.cancel;
    return msc_model_open(out, c->model, &o);
}

enum msc_status msc_setup_load_model(struct msc_setup *setup) {
    struct msc_config *c = setup->config;
    MSC_TRY(msc_setup_open_model(&setup->model, setup, setup->log));
    if (!c->dataset.options.inputs) {
        return MSC_OK;
    }
    MSC_TRY(msc_model_load_dataset(setup->model, &c->dataset));
    msc_log(setup->log, MSC_LOG_INFO, "memory: up to %.3g GB, %d threads",
            (double)setup->model->memory_bytes * 1e-9, setup->model->n_threads);
    return MSC_OK;
}

enum msc_status msc_setup_open_log(struct msc_setup *setup, enum msc_setup_mode mode) {
    const struct msc_config *c = setup->config;
    const struct msc_processor_options *o = &setup->options;
    enum msc_log_level level = o->has_log_level ? o->log_level : msc_config_log_level(c);
    bool has_file = mode == MSC_SETUP_RUN && c->log_file;
    if (mode == MSC_SETUP_RUN) {
        MSC_TRY(msc_file_make_folders(c->workspace));
    }
    MSC_TRY(msc_log_file_open(&setup->log_file, has_file ? c->log_file : NULL, level, o->log));
    if (has_file) {
        msc_worker_name_log(o->worker, c->log_file, level);
    }
    msc_worker_set_quiet(o->worker, c->entries[0].quiet_seconds);
    setup->log = msc_log_file_log(setup->log_file);
    setup->news = o->shows_progress ? msc_log_file_alone(setup->log_file) : setup->log;
    return MSC_OK;
}

enum msc_status msc_setup_load(struct msc_setup *setup, enum msc_setup_mode mode) {
    MSC_TRY(msc_setup_open_log(setup, mode));
    return msc_read_files_has_model(setup->config, setup->end) ? msc_setup_load_model(setup)
                                                               : MSC_OK;
}

const char *msc_setup_numerics(const struct msc_setup *setup) {
    return setup->model ? msc_model_numerics(setup->model) : "none";
}

// ---- Results so far ---------------------------------------------------------------------------

enum msc_status msc_setup_keep(struct msc_setup *setup, struct msc_env *env,
                               const uint32_t choices[]) {
    struct msc_strategy *found = NULL;
    if (!msc_env_has_edits(env)) {
        return MSC_OK;
    }
    MSC_TRY(msc_export_strategy(&found, env, choices));
    msc_strategy_destroy(setup->found);
    setup->found = found;
    return MSC_OK;
}

enum msc_status msc_setup_keep_plan(struct msc_setup *setup, const cJSON *plan) {
    struct msc_strategy *found = NULL;
    MSC_TRY(msc_strategy_from_json(&found, plan, "edits"));
    msc_strategy_destroy(setup->found);
    setup->found = found;
    return MSC_OK;
}
