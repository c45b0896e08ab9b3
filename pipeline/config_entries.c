// Reading a configuration: the searches.
#include "pipeline/config_internal.h"

#include "agents/agent.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/program.h"
#include "base/str.h"
#include "env/api/library.h"
#include "graph/target.h"
#include "records/race.h"
#include "tools/quantizer.h"

#include <math.h>
#include <string.h>

// Of a search that says neither who searches nor for how long.
#define DEFAULT_TRIALS 500

// Where one entry stands.
struct place {
    struct msc_config *config;
    struct msc_config_entry *entry;
    const struct msc_config_section *section; // NULL for entries without a tool
    const char *path;                         // the entry's `place`
};

static enum msc_status no_entry_memory(const struct place *p) {
    return msc_config__no_memory(p->config);
}

// "PATH: quantize.gym[0].KEY"
static const char *place_of_key(const struct place *p, const char *key) {
    const char *text = msc_config__text(p->config, "%s.%s", p->path, key);
    return text ? text : p->path;
}

// Adds every parameter of a plug-in's table, as `object` and the defaults give it, to `out`;
// values that are absent stay absent.
static enum msc_status entry_resolve(struct place *p, cJSON *out, const struct msc_param params[],
                                     size_t state_size, const cJSON *object,
                                     const char *const ignore[], const char *where) {
    void *state = msc_alloc_zero(1, state_size ? state_size : 1);
    if (!state) {
        return no_entry_memory(p);
    }
    msc_param_defaults(params, state);
    enum msc_status status =
        msc_param_read(params, state, object, where, ignore, &p->config->arena);
    if (status == MSC_OK) {
        status = msc_param_write(params, state, out);
    }
    msc_free(state);
    for (cJSON *item = out->child, *next = NULL; item; item = next) {
        next = item->next;
        if (cJSON_IsNull(item)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(out, item));
        }
    }
    return status;
}

static enum msc_status check_object(const struct place *p, const cJSON *object, const char *key) {
    if (object && !cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected an object", place_of_key(p, key));
    }
    return MSC_OK;
}

// "type" of an object; *out stays as it is when there is none.
static enum msc_status entry_read_type(const struct place *p, const char **out, const cJSON *object,
                                       const char *key) {
    MSC_TRY(check_object(p, object, key));
    return cJSON_GetObjectItemCaseSensitive(object, "type")
               ? msc_json_of_user(msc_json_get_text(out, object, "type", place_of_key(p, key)))
               : MSC_OK;
}

static enum msc_status copy_member(cJSON *out, const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item ? msc_json_add(out, key, cJSON_Duplicate(item, true)) : MSC_OK;
}

static bool has_param(const struct msc_param params[], const char *name) {
    for (const struct msc_param *p = params; p->name; p++) {
        if (strcmp(p->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool decides_channels(const struct msc_config_entry *e) {
    return (e->env_def->decides & MSC_ENV_DECIDES_CHANNELS) != 0;
}

static bool decides_only_channels(const struct msc_config_entry *e) {
    return e->env_def->decides == MSC_ENV_DECIDES_CHANNELS;
}

// Channels go as they do whatever runs the model: it says where the winner is measured.
static const char *prune_target(const struct msc_config_section *of) {
    return of->is_target_default ? "onnxruntime" : of->target;
}

// The runtime to quantise for may be said once for the section, or by an entry for itself.
static enum msc_status set_target(struct place *p) {
    struct msc_config_entry *e = p->entry;
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(e->env, "target");
    if (p->section && decides_only_channels(e)) {
        e->target = prune_target(p->section);
        return MSC_OK;
    }
    if (!p->section || !has_param(e->env_def->params, "target")) {
        return MSC_OK;
    }
    e->target = cJSON_IsString(own) ? msc_config__text(p->config, "%s", own->valuestring)
                                    : p->section->target;
    return e->target ? MSC_OK : msc_config__no_memory(p->config);
}

// All that the target requantises, unless the configuration is one of before that could be said.
static enum msc_status set_sites(const struct place *p, cJSON *given) {
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(given, "target");
    const struct msc_target *t =
        cJSON_IsString(target) ? msc_target_find(target->valuestring) : NULL;
    if (p->config->is_stored || !t || cJSON_GetObjectItemCaseSensitive(given, "sites")) {
        return MSC_OK;
    }
    p->entry->are_sites_default = true;
    return t->requantises ? msc_json_add_text(given, "sites", "all") : MSC_OK;
}

// What finds ranges where a choice does not say, unless the configuration is one of before that
// could be said.
static enum msc_status set_observers(const struct place *p, cJSON *given) {
    if (p->config->is_stored || cJSON_GetObjectItemCaseSensitive(given, "observers")) {
        return MSC_OK;
    }
    p->entry->are_observers_default = true;
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(given, "observers", object));
    MSC_TRY(msc_json_add_text(object, "weights", MSC_OBSERVER_AUTO));
    return msc_json_add_text(object, "activations", MSC_OBSERVER_AUTO);
}

// Whoever wrote the file would run what they like: somebody has to have said that they may.
static enum msc_status refuse_code(const struct place *p, const char *key, const char *what,
                                   const char *name) {
    return MSC_FAIL(MSC_E_STATE,
                    "%s: it names code, the %s %s, and nobody has said that this file is trusted; "
                    "look at it, then say --allow-plugins",
                    place_of_key(p, key), what, name);
}

// An environment is asked for its keys, so its library is loaded as soon as it is known.
static enum msc_status check_env_code(const struct place *p, const char *type) {
    bool is_ours = msc_env_find(type) || !msc_library_is_path(type);
    p->config->names_code = p->config->names_code || !is_ours;
    return is_ours || p->config->code == MSC_CONFIG_CODE_ALLOWED
               ? MSC_OK
               : refuse_code(p, "env", "library", type);
}

static enum msc_status refuse_program(const struct place *p, const char *key,
                                      const cJSON *command) {
    struct msc_str words = {0};
    const cJSON *word = NULL;
    cJSON_ArrayForEach(word, command) {
        msc_str_append(&words, words.length > 0 ? " " : "");
        msc_str_append(&words, cJSON_IsString(word) ? word->valuestring : "?");
    }
    enum msc_status status = refuse_code(p, key, "program", msc_str_text(&words));
    msc_str_finish(&words);
    return status;
}

static enum msc_status check_agent_code(const struct place *p, const cJSON *agent,
                                        const char *type) {
    const cJSON *path = cJSON_GetObjectItemCaseSensitive(agent, "path");
    bool is_library = strcmp(type, "library") == 0;
    bool is_ours = !is_library && strcmp(type, msc_agent_process.name) != 0;
    p->config->names_code = p->config->names_code || !is_ours;
    if (is_ours || p->config->code != MSC_CONFIG_CODE_REFUSED) {
        return MSC_OK;
    }
    return is_library
               ? refuse_code(p, "agent", "library", cJSON_IsString(path) ? path->valuestring : "?")
               : refuse_program(p, "agent", cJSON_GetObjectItemCaseSensitive(agent, "command"));
}

// It runs at the end of a search; a dry run has none.
static enum msc_status check_rerank_code(const struct place *p) {
    const cJSON *command = cJSON_GetObjectItemCaseSensitive(p->entry->rerank, "command");
    p->config->names_code = p->config->names_code || command;
    return !command || p->config->code != MSC_CONFIG_CODE_REFUSED
               ? MSC_OK
               : refuse_program(p, "rerank", cJSON_GetObjectItemCaseSensitive(command, "argv"));
}

// The environment, or a metric of it, may be a program's, which a dry run asks, too.
static enum msc_status check_command_code(const struct place *p, const cJSON *env) {
    const cJSON *command = cJSON_GetObjectItemCaseSensitive(env, "command");
    const cJSON *argv = cJSON_GetObjectItemCaseSensitive(command, "argv");
    bool is_program = command && has_param(p->entry->env_def->params, "command");
    bool is_metric = p->entry->env_def != msc_env_find("process");
    p->config->names_code = p->config->names_code || is_program;
    return !is_program || p->config->code == MSC_CONFIG_CODE_ALLOWED ||
                   (is_metric && p->config->code == MSC_CONFIG_CODE_NODE)
               ? MSC_OK
               : refuse_program(p, "env", argv ? argv : command);
}

// Where the network ends for all searches; for those that only compare, what they compare.
static enum msc_status set_outputs(const struct place *p, cJSON *given) {
    const struct msc_param *params = p->entry->env_def->params;
    const char *key = has_param(params, "outputs")        ? "outputs"
                      : has_param(params, "loss_tensors") ? "loss_tensors"
                                                          : NULL;
    return p->config->outputs && key && !cJSON_GetObjectItemCaseSensitive(given, key)
               ? msc_json_add(given, key, cJSON_Duplicate(p->config->outputs, true))
               : MSC_OK;
}

static enum msc_status read_env(struct place *p, const cJSON *object) {
    static const char *const ignore[] = {"type", "objectives", "bounds", NULL};
    struct msc_config_entry *e = p->entry;
    const char *type = p->section ? e->section : NULL;
    const char *where = place_of_key(p, "env");
    MSC_TRY(entry_read_type(p, &type, object, "env"));
    if (!type) {
        return MSC_FAIL(MSC_E_INVALID, "%s: \"type\" is missing; mscgym envs lists environments",
                        where);
    }
    MSC_TRY(check_env_code(p, type));
    const char *folder = strcmp(e->folder, ".") == 0 ? NULL : e->folder;
    enum msc_status status = msc_env_select(&e->env_def, &e->library, type, folder);
    if (status != MSC_OK) {
        return msc_status_prefix(status, "%s", p->path);
    }
    e->env = cJSON_CreateObject();
    if (!e->env) {
        return no_entry_memory(p);
    }
    MSC_TRY(msc_json_add_text(e->env, "type", type));
    const struct msc_env_def *def = e->env_def;
    MSC_TRY(check_command_code(p, object));
    cJSON *given = object ? cJSON_Duplicate(object, true) : cJSON_CreateObject();
    if (!given) {
        return no_entry_memory(p);
    }
    if (p->section && has_param(def->params, "target") &&
        !cJSON_GetObjectItemCaseSensitive(given, "target")) {
        e->is_target_default = p->section->is_target_default;
        status = msc_json_add_text(given, "target", p->section->target);
    }
    if (status == MSC_OK && has_param(def->params, "sites")) {
        status = set_sites(p, given);
    }
    if (status == MSC_OK && has_param(def->params, "observers")) {
        status = set_observers(p, given);
    }
    if (status == MSC_OK) {
        status = set_outputs(p, given);
    }
    if (status == MSC_OK) {
        status = entry_resolve(p, e->env, def->params, def->state_size, given, ignore, where);
    }
    cJSON_Delete(given);
    MSC_TRY(status);
    MSC_TRY(copy_member(e->env, object, "objectives"));
    MSC_TRY(copy_member(e->env, object, "bounds"));
    return set_target(p);
}

static enum msc_status fail_agent(const struct place *p, const char *type) {
    struct msc_arena arena = {0};
    if (msc_library_is_path(type)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: an agent in a library is {\"type\": \"library\", \"path\": \"%s\"}",
                        place_of_key(p, "agent"), type);
    }
    const struct msc_agent_def *const *list = msc_agent_list();
    size_t n = 0;
    while (list[n]) {
        n++;
    }
    const char **names = msc_arena_array(&arena, n + 2, sizeof *names);
    const char *near = NULL;
    if (names) {
        for (size_t i = 0; i < n; i++) {
            names[i] = list[i]->name;
        }
        names[n] = "process";
        names[n + 1] = "library";
        near = msc_suggest(type, names, n + 2);
    }
    msc_arena_finish(&arena);
    return MSC_FAIL(MSC_E_INVALID, "%s: there is no agent \"%s\"%s%s%s", place_of_key(p, "agent"),
                    type, near ? ", did you mean \"" : "; mscgym agents lists them",
                    near ? near : "", near ? "\"?" : "");
}

static enum msc_status check_words(const struct place *p, const cJSON *agent) {
    const char **words = NULL;
    return msc_program_read_words(&words, cJSON_GetObjectItemCaseSensitive(agent, "command"),
                                  place_of_key(p, "agent.command"), "[\"python3\", \"agent.py\"]",
                                  &p->config->arena);
}

// *out may be set on failure too.
static enum msc_status read_agent(struct place *p, const cJSON *object, cJSON **out) {
    static const char *const ignore[] = {"type", NULL};
    const char *type = "auto", *path = NULL;
    MSC_TRY(entry_read_type(p, &type, object, "agent"));
    MSC_TRY(check_agent_code(p, object, type));
    bool is_library = strcmp(type, "library") == 0;
    bool is_process = strcmp(type, msc_agent_process.name) == 0;
    const struct msc_agent_def *def = is_process ? &msc_agent_process : msc_agent_find(type);
    *out = is_library ? cJSON_Duplicate(object, true) : cJSON_CreateObject();
    if (!*out) {
        return no_entry_memory(p);
    }
    if (is_library) { // its table is known once it is loaded
        return msc_json_of_user(msc_json_get_text(&path, object, "path", place_of_key(p, "agent")));
    }
    if (!def) {
        return fail_agent(p, type);
    }
    MSC_TRY(is_process ? check_words(p, object) : MSC_OK);
    MSC_TRY(msc_json_add_text(*out, "type", type));
    return entry_resolve(p, *out, def->params, def->state_size, object, ignore,
                         place_of_key(p, "agent"));
}

enum msc_status msc_config_resolve_agent(struct msc_config *config, const char *name,
                                         const struct cJSON *object, struct cJSON **out) {
    struct place p = {.config = config};
    cJSON *agent = NULL;
    p.path = msc_config__text(config, "%s: %s", config->path, name);
    if (!p.path) {
        return no_entry_memory(&p);
    }
    enum msc_status status = read_agent(&p, object, &agent);
    if (status != MSC_OK) {
        cJSON_Delete(agent);
        return status;
    }
    *out = agent;
    return MSC_OK;
}

static enum msc_status read_budget(struct place *p, const cJSON *object) {
    struct msc_config_budget from;
    struct msc_budget *budget = &p->entry->budget;
    msc_param_defaults(msc_config__budget_params, &from);
    MSC_TRY(msc_param_read(msc_config__budget_params, &from, object, place_of_key(p, "budget"),
                           NULL, &p->config->arena));
    budget->trials = from.trials;
    budget->seconds = isfinite(from.seconds) ? from.seconds : 0;
    budget->has_target = !isnan(from.target);
    budget->target = budget->has_target ? from.target : 0;
    return MSC_OK;
}

static enum msc_status set_paths(struct place *p, const struct msc_config_gym *from, int index) {
    struct msc_config *c = p->config;
    struct msc_config_entry *e = p->entry;
    e->folder = from->folder ? from->folder : ".";
    e->base = from->base;
    e->record = from->record ? from->record : msc_config__text(c, "%s_%d.jsonl", e->section, index);
    if (p->section) {
        e->runtime = p->section->in_runtime;
        e->strategy_file = p->section->strategy_file
                               ? p->section->strategy_file
                               : msc_config__text(c, "msc_%s.json", e->section);
    }
    if ((from->record && !from->record[0]) || (e->strategy_file && !e->strategy_file[0])) {
        return MSC_FAIL(MSC_E_INVALID, "%s: \"%s\" is empty", p->path,
                        from->record && !from->record[0] ? "record" : "strategy_file");
    }
    if (!e->record || !e->name || (p->section && !e->strategy_file) ||
        !msc_config__join(c, &e->folder, c->folder) || !msc_config__join(c, &e->base, c->folder) ||
        !msc_config__join(c, &e->record, c->workspace) ||
        !msc_config__join(c, &e->strategy_file, c->workspace)) {
        return no_entry_memory(p);
    }
    return MSC_OK;
}

static enum msc_status read_rerank(struct place *p, const cJSON *object) {
    MSC_TRY(
        msc_config__read_rerank(p->config, &p->entry->rerank, object, place_of_key(p, "rerank")));
    if (p->entry->rerank && !p->section) {
        return MSC_FAIL(MSC_E_INVALID, "%s: rerank is for searches of a tool, which export models",
                        p->path);
    }
    return check_rerank_code(p);
}

static enum msc_status read_distill(struct place *p, const cJSON *object) {
    MSC_TRY(msc_config__read_distill(p->config, &p->entry->distill, object,
                                     place_of_key(p, "distill")));
    return !p->entry->distill || (p->section && !decides_channels(p->entry))
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: distill is for searches of quantize, and improves their weights",
                          p->path);
}

// Its rungs are held against the batches once the samples are there.
static enum msc_status read_race(struct place *p, const cJSON *value) {
    struct msc_race race;
    if (!value || cJSON_IsNull(value) || cJSON_IsFalse(value)) {
        return MSC_OK;
    }
    MSC_TRY(msc_race_read(&race, value, 0, place_of_key(p, "race")));
    p->entry->race = cJSON_Duplicate(value, true);
    return p->entry->race ? MSC_OK : no_entry_memory(p);
}

static enum msc_status config_read_entry(struct msc_config *c, const char *section,
                                         const struct msc_config_section *of, const cJSON *object,
                                         int index) {
    struct msc_config_gym from;
    struct msc_config_entry *e = &c->entries[c->n_entries];
    struct place p = {.config = c, .entry = e, .section = of};
    *e = (struct msc_config_entry){.section = section};
    c->n_entries++; // what it owns is freed with the configuration
    p.path = e->place =
        msc_config__text(c, "%s: %s%s[%d]", c->path, section, of ? ".gym" : "", index);
    e->name = msc_config__text(c, "%s[%d]", section, index);
    if (!p.path || !e->name) {
        return no_entry_memory(&p);
    }
    msc_param_defaults(msc_config__gym_params, &from);
    MSC_TRY(msc_param_read(msc_config__gym_params, &from, object, p.path, NULL, &c->arena));
    e->seed = (uint64_t)from.seed;
    e->parallel = (uint32_t)from.parallel;
    e->trial_seconds = from.trial_seconds;
    e->quiet_seconds = from.quiet_seconds;
    e->baseline = from.baseline;
    e->is_delivered = from.deliver;
    MSC_TRY(set_paths(&p, &from, index));
    MSC_TRY(read_budget(&p, from.budget));
    e->is_agent_default = !cJSON_GetObjectItemCaseSensitive(from.agent, "type");
    e->is_budget_default = !from.budget;
    if (from.agent && !(e->agent_said = cJSON_Duplicate(from.agent, true))) {
        return no_entry_memory(&p);
    }
    if (e->is_agent_default && e->is_budget_default) {
        e->budget.trials = DEFAULT_TRIALS; // that agent never ends by itself
    }
    MSC_TRY(read_env(&p, from.env));
    MSC_TRY(read_race(&p, from.race));
    MSC_TRY(read_rerank(&p, from.rerank));
    MSC_TRY(read_distill(&p, from.distill));
    return read_agent(&p, from.agent, &e->agent);
}

static enum msc_status entry_read_list(struct msc_config *c, const char *section,
                                       const struct msc_config_section *of, const cJSON *list) {
    int index = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(config_read_entry(c, section, of, item, index++));
    }
    return MSC_OK;
}

static enum msc_status check_list(const struct msc_config *c, const char *section,
                                  const cJSON *list) {
    return !list || cJSON_IsArray(list)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: %s: expected a list of searches: [{...}]", c->path,
                          section);
}

enum msc_status msc_config__read_section(struct msc_config *c, const struct msc_config_tool *tool,
                                         const cJSON *object) {
    const char *name = tool->name;
    struct msc_config_section *of = msc_arena_alloc(&c->arena, sizeof *of);
    cJSON *plain = NULL;
    if (!of) {
        return msc_config__no_memory(c);
    }
    MSC_TRY(msc_config__read(c, msc_config__section_params, of, object, name));
    of->is_target_default = !cJSON_GetObjectItemCaseSensitive(object, "target");
    if (of->is_target_default) {
        of->target = msc_target_by_default(msc_machine_sums_bytes())->name;
    }
    const struct msc_target *target = NULL;
    MSC_TRY(
        msc_target_get(&target, of->target, msc_config__text(c, "%s: %s.target", c->path, name)));
    MSC_TRY(msc_config__read_runtime(c, &of->in_runtime, of->runtime,
                                     msc_config__text(c, "%s.runtime", name)));
    MSC_TRY(check_list(c, msc_config__text(c, "%s.gym", name), of->gym));
    if (cJSON_GetArraySize(of->gym) > 0) {
        return entry_read_list(c, name, of, of->gym);
    }
    MSC_TRY(msc_json_parse(&plain, tool->plain_gym, strlen(tool->plain_gym), "plain"));
    // A tool without searches still does its work. Whatever is read is copied, so the tree may go.
    enum msc_status status = entry_read_list(c, name, of, plain);
    cJSON_Delete(plain);
    c->entries[c->n_entries - 1].is_plain = true;
    return status;
}

static const cJSON *section_of(const struct msc_config_top *top, size_t tool) {
    return *(const cJSON *const *)((const char *)top + msc_config__tools[tool].offset);
}

// Files that would overwrite each other.
static enum msc_status entry_check_names(const struct msc_config *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct msc_config_entry *a = &c->entries[i];
        for (size_t j = 0; j < c->n_entries; j++) {
            const struct msc_config_entry *b = &c->entries[j];
            if (j < i && strcmp(a->record, b->record) == 0) {
                return MSC_FAIL(MSC_E_INVALID,
                                "%s: %s and %s have the same record \"%s\"; name them differently",
                                c->path, b->name, a->name, msc_path_name(a->record));
            }
            if (a->strategy_file && strcmp(a->strategy_file, b->record) == 0) {
                return MSC_FAIL(MSC_E_INVALID,
                                "%s: \"%s\" is the strategy file of %s and the record of %s; name "
                                "them differently",
                                c->path, msc_path_name(b->record), a->section, b->name);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status entry_check_needs(const struct msc_config *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        unsigned needs = c->entries[i].env_def->needs;
        const char *missing = (needs & MSC_ENV_NEEDS_GRAPH) && !c->model ? "model"
                              : (needs & MSC_ENV_NEEDS_DATASET) && !c->dataset.options.inputs
                                  ? "dataset"
                                  : NULL;
        if (missing) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: \"%s\" is missing: the %s environment of %s needs "
                            "it",
                            c->path, missing, c->entries[i].env_def->name, c->entries[i].name);
        }
    }
    return MSC_OK;
}

// Weights that make up for channels that go are found as floats: bits come after.
static enum msc_status check_prunes(const struct msc_config *c) {
    const struct msc_config_entry *before = NULL;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct msc_config_entry *e = &c->entries[i];
        if (decides_channels(e) && before && !e->base) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: %s takes channels away, which has to come before %s", c->path,
                            e->name, before->name);
        }
        before = e->strategy_file && !decides_only_channels(e) ? e : before;
    }
    return MSC_OK;
}

enum msc_status msc_config__read_entries(struct msc_config *c, const struct msc_config_top *top) {
    // One for each section that lists none.
    size_t n = (size_t)cJSON_GetArraySize(top->gym) + MSC_CONFIG_TOOL_COUNT;
    for (size_t t = 0; t < MSC_CONFIG_TOOL_COUNT; t++) {
        const cJSON *gym = cJSON_GetObjectItemCaseSensitive(section_of(top, t), "gym");
        n += (size_t)cJSON_GetArraySize(gym);
    }
    c->entries = msc_arena_array(&c->arena, n, sizeof c->entries[0]);
    if (!c->entries) {
        return msc_config__no_memory(c);
    }
    for (size_t t = 0; t < MSC_CONFIG_TOOL_COUNT; t++) {
        if (section_of(top, t)) {
            MSC_TRY(msc_config__read_section(c, &msc_config__tools[t], section_of(top, t)));
        }
    }
    MSC_TRY(check_list(c, "gym", top->gym));
    MSC_TRY(entry_read_list(c, "gym", NULL, top->gym));
    if (c->n_entries == 0 && c->stages.are_named) {
        MSC_TRY(msc_config__read_left(c));
    }
    if (c->n_entries == 0) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: nothing to do: add a \"prune\", \"joint\" or \"quantize\" section, or a \"gym\" "
            "list",
            c->path);
    }
    MSC_TRY(entry_check_names(c));
    MSC_TRY(entry_check_needs(c));
    return check_prunes(c);
}
