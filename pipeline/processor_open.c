// Opening: configuration and options, then model, dataset and environment.
#include "pipeline/processor_internal.h"

#include "base/file.h"
#include "graph/target.h"
#include "kernels/engine/backends.h"
#include "records/race.h"
#include "records/record_header.h"
#include "search/supervise.h"

#include <string.h>

enum msc_status msc_processor__no_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

// ---- Options over the configuration -----------------------------------------------------------

static enum msc_status add_bindings(struct msc_processor *p) {
    struct msc_config *c = p->config;
    const struct msc_processor_options *o = &p->options;
    struct msc_binding *all =
        msc_arena_array(&p->arena, c->n_bindings + o->n_bindings + 1, sizeof *all);
    if (!all) {
        return msc_processor__no_memory();
    }
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

static enum msc_status select_entries(struct msc_processor *p) {
    const struct msc_config *c = p->config;
    const struct msc_processor_options *o = &p->options;
    bool needs_one = o->record || o->has_trials || o->seconds > 0 || o->n_warm_from > 0 || o->agent;
    p->end = c->n_entries;
    if (o->entry) {
        MSC_TRY(msc_config_find_entry(&p->first, c, o->entry));
        p->end = p->first + 1;
    } else if (needs_one && c->n_entries > 1) {
        return MSC_FAIL(MSC_E_INVALID, "%s: it has %zu searches: %s --entry, such as --entry %s",
                        c->path, c->n_entries,
                        o->agent ? "it needs" : "--record, --trials, --time and --warm-from need",
                        c->entries[0].name);
    }
    return MSC_OK;
}

static void apply_options(struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    p->config->device = o->device ? o->device : p->config->device;
    for (size_t i = p->first; i < p->end; i++) {
        struct msc_config_entry *e = &p->config->entries[i];
        e->record = o->record ? o->record : e->record;
        e->budget.trials = o->has_trials ? o->trials : e->budget.trials;
        e->budget.seconds = o->seconds > 0 ? o->seconds : e->budget.seconds;
        e->is_budget_default = e->is_budget_default && !o->has_trials && !(o->seconds > 0);
        e->baseline = o->baseline_greedy ? MSC_CONFIG_BASELINE_GREEDY : e->baseline;
    }
}

// What searches beside the entry takes its place.
static enum msc_status set_agent_beside(struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    struct msc_config_entry *e = &p->config->entries[p->first];
    cJSON *agent = NULL;
    MSC_TRY(msc_config_resolve_agent(p->config, e->name, o->agent, &agent));
    cJSON_Delete(e->agent);
    cJSON_Delete(e->agent_said);
    e->agent = agent;
    e->agent_said = cJSON_Duplicate(o->agent, true);
    e->is_agent_default = false;
    e->budget = (struct msc_budget)MSC_BUDGET_NONE;
    e->is_budget_default = false;
    e->baseline = MSC_CONFIG_BASELINE_UNIFORM;
    e->is_delivered = false;
    e->record = msc_processor__record_beside(p, e->record, o->beside);
    return e->agent_said && e->record ? MSC_OK : msc_processor__no_memory();
}

enum msc_status msc_processor__create(struct msc_processor **out, struct msc_config *config,
                                      const struct msc_processor_options *options) {
    struct msc_processor *p = msc_alloc_zero(1, sizeof *p);
    if (!p) {
        msc_config_destroy(config);
        return msc_processor__no_memory();
    }
    p->config = config;
    p->options = *options;
    p->log = options->log;
    p->news = options->log;
    enum msc_status status = options->isa ? msc_backend_set_isa(options->isa) : MSC_OK;
    if (status == MSC_OK) {
        status = add_bindings(p);
    }
    if (status == MSC_OK) {
        status = select_entries(p);
    }
    if (status == MSC_OK && options->agent) {
        status = set_agent_beside(p);
    }
    if (status != MSC_OK) {
        msc_processor_close(p);
        return status;
    }
    apply_options(p);
    *out = p;
    return MSC_OK;
}

enum msc_status msc_processor_open(struct msc_processor **out, const char *path,
                                   const struct msc_processor_options *options) {
    struct msc_config *config = NULL;
    MSC_TRY(msc_config_load(&config, path, MSC_CONFIG_CODE_ALLOWED));
    return msc_processor__create(out, config, options);
}

void msc_processor_close(struct msc_processor *p) {
    if (!p) {
        return;
    }
    msc_processor__leave(p);
    msc_strategy_destroy(p->found);
    msc_model_close(p->model);
    msc_log_file_close(p->log_file);
    msc_config_destroy(p->config);
    msc_arena_finish(&p->arena);
    msc_free(p);
}

const struct msc_config *msc_processor_config(const struct msc_processor *p) {
    return p->config;
}

// ---- Model and dataset ------------------------------------------------------------------------

enum msc_status msc_processor__load_model(struct msc_processor *p) {
    struct msc_config *c = p->config;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    o.device = c->device;
    o.n_threads = p->options.n_threads;
    o.memory_bytes = p->options.memory_bytes;
    o.bindings = c->bindings;
    o.n_bindings = c->n_bindings;
    o.log = p->log;
    o.cancel = p->options.cancel;
    MSC_TRY(msc_model_open(&p->model, c->model, &o));
    if (!c->dataset.options.inputs) {
        return MSC_OK;
    }
    MSC_TRY(msc_model_load_dataset(p->model, &c->dataset));
    msc_log(p->log, MSC_LOG_INFO, "memory: up to %.3g GB, %d threads",
            (double)p->model->memory_bytes * 1e-9, p->model->n_threads);
    return MSC_OK;
}

enum msc_status msc_processor__open_log(struct msc_processor *p, enum msc_processor_mode mode) {
    const struct msc_config *c = p->config;
    const struct msc_processor_options *o = &p->options;
    enum msc_log_level level = o->has_log_level ? o->log_level : msc_config_log_level(c);
    bool has_file = mode == MSC_PROCESSOR_RUN && c->log_file;
    if (mode == MSC_PROCESSOR_RUN) {
        MSC_TRY(msc_file_make_folders(c->workspace));
    }
    MSC_TRY(msc_log_file_open(&p->log_file, has_file ? c->log_file : NULL, level, o->log));
    if (has_file) {
        msc_worker_name_log(o->worker, c->log_file, level);
    }
    msc_worker_set_quiet(o->worker, c->entries[p->index].quiet_seconds);
    p->log = msc_log_file_log(p->log_file);
    p->news = o->shows_progress ? msc_log_file_alone(p->log_file) : p->log;
    return MSC_OK;
}

enum msc_status msc_processor__load(struct msc_processor *p, enum msc_processor_mode mode) {
    unsigned needs = 0;
    for (size_t i = 0; i < p->end; i++) {
        needs |= p->config->entries[i].env_def->needs;
    }
    MSC_TRY(msc_processor__open_log(p, mode));
    return needs && p->config->model ? msc_processor__load_model(p) : MSC_OK;
}

const char *msc_processor_numerics(const struct msc_processor *p) {
    return p->model ? msc_model_numerics(p->model) : "none";
}

const struct msc_graph *msc_processor_graph(const struct msc_processor *p) {
    return p->model ? p->model->graph : NULL;
}

struct msc_env *msc_processor_env(const struct msc_processor *p) {
    return p->env;
}

// ---- One entry --------------------------------------------------------------------------------

enum msc_status msc_processor__has_record(bool *out, const char *path) {
    struct msc_record *record = NULL;
    *out = false;
    if (!msc_file_exists(path)) {
        return MSC_OK;
    }
    enum msc_status status = msc_record_open(&record, path, MSC_RECORD_HEADER, NULL);
    if (status == MSC_E_NOT_FOUND) {
        return MSC_OK;
    }
    MSC_TRY(status);
    *out = true;
    msc_record_close(record);
    return MSC_OK;
}

// Were the record's parameters, which are as old as its header, made under other numerics?
static bool is_foreign(const struct msc_processor *p, const struct msc_record *record) {
    const cJSON *made_by = cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "numerics");
    return strcmp(made_by->valuestring, msc_processor_numerics(p)) != 0; // a record has it
}

// Do they hold what was measured, and would not be the same again?
static bool is_measured(const struct msc_record *record) {
    const cJSON *env = cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "env");
    return cJSON_GetObjectItemCaseSensitive(env, "latency_of") != NULL;
}

// The environment, or agent, in a configuration of one entry, as a record's header has it.
static cJSON *find_member(const cJSON *config, const struct msc_config_entry *e, const char *key) {
    const cJSON *object =
        e->strategy_file ? cJSON_GetObjectItemCaseSensitive(config, e->section) : config;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "gym");
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, 0), key);
}

static cJSON *find_env(const cJSON *config, const struct msc_config_entry *e) {
    return find_member(config, e, "env");
}

// A default may be written out or not: environments that differ are compared in full. What
// cannot be completed is left as it is.
static enum msc_status complete_envs(const struct msc_config_entry *e, const cJSON *stored,
                                     const cJSON *wanted) {
    cJSON *envs[] = {find_env(stored, e), find_env(wanted, e)};
    bool differ = envs[0] && envs[1] && !cJSON_Compare(envs[0], envs[1], true);
    for (size_t i = 0; differ && i < 2; i++) {
        if (msc_env_complete(e->env_def, envs[i], e->folder) == MSC_E_NOMEM) {
            return MSC_E_NOMEM;
        }
    }
    return MSC_OK;
}

// What means the same goes on in the record's words.
static enum msc_status take_words(struct msc_processor *p, const cJSON *old) {
    struct msc_config_entry *e = &p->config->entries[p->index];
    cJSON *env = cJSON_Duplicate(find_env(old, e), true);
    if (!env) {
        return msc_processor__no_memory();
    }
    cJSON_Delete(e->env);
    e->env = env;
    return MSC_OK;
}

// Puts a copy of `old`'s member, or nothing where that has none, in an object.
static enum msc_status take_member(cJSON *object, const cJSON *old, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(old, key);
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return item ? msc_json_add(object, key, cJSON_Duplicate(item, true)) : MSC_OK;
}

// One target has two names.
static bool is_same_target(const cJSON *a, const cJSON *b) {
    const struct msc_target *x = cJSON_IsString(a) ? msc_target_find(a->valuestring) : NULL;
    return x && cJSON_IsString(b) && msc_target_find(b->valuestring) == x;
}

// Parameters that nobody has said are those that it began with.
static enum msc_status keep_old_parameters(struct msc_config_entry *e, const cJSON *old) {
    enum msc_status status = MSC_OK;
    cJSON *kept = cJSON_Duplicate(old, true);
    if (!kept) {
        return msc_processor__no_memory();
    }
    for (const cJSON *item = e->agent_said ? e->agent_said->child : NULL; item; item = item->next) {
        MSC_TRY_OUT(take_member(kept, e->agent, item->string));
    }
    cJSON_Delete(e->agent);
    e->agent = kept;
    kept = NULL;
out:
    cJSON_Delete(kept);
    return status;
}

static bool is_same_type(const cJSON *a, const cJSON *b) {
    return cJSON_Compare(cJSON_GetObjectItemCaseSensitive(a, "type"),
                         cJSON_GetObjectItemCaseSensitive(b, "type"), true);
}

enum msc_status msc_processor__keep_old_agent(struct msc_config_entry *e, const cJSON *config) {
    const cJSON *old = find_member(config, e, "agent");
    if (is_same_type(old, e->agent)) {
        return keep_old_parameters(e, old);
    }
    if (!e->is_agent_default || !cJSON_IsObject(old)) {
        return MSC_OK;
    }
    cJSON *copy = cJSON_Duplicate(old, true);
    if (!copy) {
        return msc_processor__no_memory();
    }
    cJSON_Delete(e->agent);
    e->agent = copy;
    e->budget.trials = e->is_budget_default ? -1 : e->budget.trials;
    return MSC_OK;
}

// Defaults change; a search that has begun keeps those that it began with.
static enum msc_status keep_old_defaults(struct msc_processor *p, const cJSON *old) {
    struct msc_config_entry *e = &p->config->entries[p->index];
    const cJSON *env = find_env(old, e);
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(env, "target");
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(e->env, "target");
    MSC_TRY(msc_processor__keep_old_agent(e, old));
    if ((e->is_target_default && cJSON_IsString(target)) || is_same_target(target, own)) {
        MSC_TRY(take_member(e->env, env, "target"));
        e->target = msc_arena_strdup(&p->arena, target->valuestring);
        MSC_TRY(e->target ? MSC_OK : msc_processor__no_memory());
    }
    if (e->are_sites_default) {
        MSC_TRY(take_member(e->env, env, "sites"));
    }
    return e->are_observers_default ? take_member(e->env, env, "observers") : MSC_OK;
}

// A change of the configuration is told as such, before anything is made of it.
static enum msc_status check_config(struct msc_processor *p, const struct msc_record *record) {
    cJSON *stored = cJSON_CreateObject();
    cJSON *wanted = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "config");
    cJSON *old_copy = cJSON_Duplicate(old, true);
    cJSON *config = NULL;
    MSC_TRY_OUT(msc_json_add(stored, "config", old_copy));
    MSC_TRY_OUT(keep_old_defaults(p, old));
    MSC_TRY_OUT(msc_processor__make_config(&config, p));
    MSC_TRY_OUT(msc_json_add(wanted, "config", config));
    MSC_TRY_OUT(complete_envs(msc_processor__entry(p), old_copy, config));
    MSC_TRY_OUT(
        msc_record_header_compare(stored, wanted, msc_config_free_keys, msc_record_path(record)));
    status = take_words(p, old);
out:
    cJSON_Delete(stored);
    cJSON_Delete(wanted);
    return status;
}

// Parameters that were lost and made again must be the same; else they are not kept.
static enum msc_status check_parameters(const struct msc_processor *p,
                                        const struct msc_record *record, bool was_there) {
    static const char key[] = "params_hash";
    const cJSON *header = msc_record_header(record);
    const cJSON *old =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(header, "env"), key);
    cJSON *now = cJSON_CreateObject();
    enum msc_status status = now ? msc_env_describe(p->env, now) : msc_processor__no_memory();
    const cJSON *new = cJSON_GetObjectItemCaseSensitive(now, key);
    if (status == MSC_OK && cJSON_IsString(old) && cJSON_IsString(new) &&
        strcmp(old->valuestring, new->valuestring) != 0) {
        if (!was_there && p->parameters_path) {
            (void)msc_file_remove(p->parameters_path);
        }
        status = MSC_FAIL(MSC_E_STATE,
                          was_there ? "%s.params: it is not that of this record; put the right one "
                                      "back"
                                    : "%s: its .params file is missing, and the scales made again "
                                      "differ: the model, the samples or their order have changed",
                          msc_record_path(record));
    }
    cJSON_Delete(now);
    return status;
}

// What must not be computed twice lies beside the record, and goes with it.
static enum msc_status set_parameters(struct msc_processor *p, struct msc_env_host *host,
                                      const struct msc_record *record,
                                      enum msc_processor_mode mode) {
    const char *path = msc_processor__entry(p)->record;
    p->prepared_path = msc_arena_printf(&p->arena, "%s.prepared", path);
    p->parameters_path = msc_arena_printf(&p->arena, "%s.params", path);
    if (!p->prepared_path || !p->parameters_path) {
        return msc_processor__no_memory();
    }
    host->parameters_required = record && (is_foreign(p, record) || is_measured(record));
    if (!record && mode == MSC_PROCESSOR_RUN) {
        // Of a record that is gone, or was never begun: the environment knows what it can take.
        MSC_TRY(msc_file_rename(p->parameters_path, p->prepared_path));
    }
    bool is_there = record && msc_file_exists(p->parameters_path);
    if (mode == MSC_PROCESSOR_LOOK && !is_there && !host->parameters_required) {
        p->parameters_path = NULL; // computed, but not kept
    }
    host->parameters_path = p->parameters_path;
    return MSC_OK;
}

static void fill_host(struct msc_env_host *host, const struct msc_processor *p) {
    if (p->model) {
        host->graph = p->model->graph;
        host->dataset = p->model->dataset;
        host->validation = p->model->validation;
        host->backend = p->model->dataset ? p->model->backend : NULL;
        host->n_threads = p->model->n_threads;
        host->memory_bytes = p->model->memory_bytes;
    }
    host->base = p->base;
    host->folder = msc_processor__entry(p)->folder;
    host->log = p->log;
    host->cancel = p->options.cancel;
}

// A record keeps its rungs, also where they were those by default and these have changed since.
static enum msc_status read_race(struct msc_processor *p, const struct msc_config_entry *e,
                                 const struct msc_record *record) {
    size_t n_batches = msc_env_n_batches(p->env);
    p->race = (struct msc_race){0};
    if (!e->race) {
        return MSC_OK;
    }
    if (n_batches == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "race: environment %s measures a trial at once, and cannot race it; "
                        "quantize, prune and joint can",
                        msc_env_definition(p->env)->name);
    }
    if (!msc_goal_takes_bound(&p->goal, msc_env_space(p->env))) {
        return MSC_FAIL(MSC_E_INVALID, "race: trials are raced by distill_loss; make it the only "
                                       "objective, or leave the race out");
    }
    MSC_TRY(msc_race_read(&p->race, e->race, n_batches, "race"));
    if (record) {
        p->race = *msc_record_race(record);
    }
    return MSC_OK;
}

// `record` NULL: there is none yet.
static enum msc_status processor_enter(struct msc_processor *p, const struct msc_record *record,
                                       enum msc_processor_mode mode) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    struct msc_env_host host = {.abi = MSC_ENV_ABI};
    MSC_TRY(msc_processor__set_base(p, record, mode));
    if (record) {
        MSC_TRY(check_config(p, record));
    }
    MSC_TRY(set_parameters(p, &host, record, mode));
    fill_host(&host, p);
    bool was_there = host.parameters_path && msc_file_exists(host.parameters_path);
    msc_worker_set_quiet(p->options.worker, e->quiet_seconds);
    enum msc_status status = msc_env_create(&p->env, e->env_def, e->env, &host);
    if (status == MSC_OK) {
        status = msc_env_read_goal(&p->goal, msc_env_space(p->env), e->env);
    }
    if (status == MSC_OK) {
        status = read_race(p, e, record);
    }
    if (status != MSC_OK) {
        return msc_status_prefix(status, "%s", e->place);
    }
    if (!record && mode == MSC_PROCESSOR_RUN) {
        MSC_TRY(msc_file_remove(p->prepared_path));
    }
    return record ? check_parameters(p, record, was_there) : MSC_OK;
}

static void close_record(struct msc_processor *p) {
    msc_record_close(p->record);
    p->record = NULL;
}

// The whole of a record is read before anything is computed for it, and held until the search takes it
// over; to look at, its header is enough.
static enum msc_status open_record(struct msc_processor *p, enum msc_processor_mode mode) {
    const char *path = msc_processor__entry(p)->record;
    // With --restart a dry run only leaves the old record out of account.
    bool is_passed_over = p->options.restart && p->options.is_dry_run;
    if (is_passed_over || !msc_file_exists(path)) {
        return MSC_OK;
    }
    enum msc_status status = mode == MSC_PROCESSOR_RUN
                                 ? msc_record_open(&p->record, path, MSC_RECORD_APPEND, p->log)
                                 : msc_record_open(&p->record, path, MSC_RECORD_HEADER, NULL);
    return status == MSC_E_NOT_FOUND ? MSC_OK : status;
}

enum msc_status msc_processor__enter(struct msc_processor *p, size_t entry,
                                     enum msc_processor_mode mode) {
    p->index = entry;
    MSC_TRY(open_record(p, mode));
    enum msc_status status = processor_enter(p, p->record, mode);
    if (mode == MSC_PROCESSOR_LOOK) {
        close_record(p);
    }
    return status;
}

void msc_processor__leave(struct msc_processor *p) {
    close_record(p);
    msc_processor__end_publishing(p);
    msc_processor__close_tensorboard(p);
    p->is_tensorboard_lost = false;
    cJSON_Delete(p->sameness);
    p->sameness = NULL;
    msc_env_destroy(p->env);
    p->env = NULL;
    msc_strategy_destroy(p->base);
    p->base = NULL;
}

enum msc_status msc_processor_prepare(struct msc_processor *p) {
    MSC_TRY(msc_processor__load(p, MSC_PROCESSOR_LOOK));
    return msc_processor__enter(p, p->first, MSC_PROCESSOR_LOOK);
}
