// Reads one search of a configuration: an item of a `gym` list.
//
// The environment and the agent are found by their `type`; their own tables of parameters read the
// rest of their objects. An entry that names a library or program is refused unless the caller
// allows it.
#include "config/config_internal.h"

#include "agents/agent.h"
#include "base/file.h"
#include "base/program.h"
#include "base/str.h"
#include "env/api/library.h"
#include "graph/target.h"
#include "records/race.h"
#include "tools/quantizer.h"

#include <math.h>
#include <string.h>

// Budget of an entry that names neither an agent nor a budget.
#define DEFAULT_TRIALS 500

// The entry that is being read.
struct place {
    struct msc_config *config;
    struct msc_config_entry *entry;
    const struct msc_config_section *section; // NULL for entries without a tool
    const char *path;                         // the entry's `place`
};

// Names a key in error messages: "PATH: quantize.gym[0].KEY".
static const char *place_of_key(const struct place *p, const char *key) {
    const char *text = msc_config__text(p->config, "%s.%s", p->path, key);
    return text ? text : p->path;
}

// Adds all parameters of a plug-in's table to `out`: the value in `object`, or else the default.
// Parameters that have neither are left out.
static enum msc_status entry_resolve(struct place *p, cJSON *out, const struct msc_param params[],
                                     size_t state_size, const cJSON *object,
                                     const char *const ignore[], const char *where) {
    void *state = msc_alloc_zero(1, state_size ? state_size : 1);
    MSC_TRY(MSC_ALLOCATED(state));
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

// Reads "type" of an object; *out is unchanged if the object has none.
static enum msc_status entry_read_type(const struct place *p, const char **out, const cJSON *object,
                                       const char *key) {
    MSC_TRY(check_object(p, object, key));
    return msc_json_get(object, "type")
               ? msc_json_of_user(msc_json_get_text(out, object, "type", place_of_key(p, key)))
               : MSC_OK;
}

static enum msc_status copy_member(cJSON *out, const cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
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

// The target of a search that removes channels. It only decides where the winner is measured, not
// how channels are removed.
static const char *prune_target(const struct msc_config_section *of) {
    return of->is_target_default ? "onnxruntime" : of->target;
}

// Sets an entry's target: the entry's own or, if it has none, the section's.
static enum msc_status set_target(struct place *p) {
    struct msc_config_entry *e = p->entry;
    const cJSON *own = msc_json_get(e->env, "target");
    if (p->section && msc_config__decides_only_channels(e)) {
        e->target = prune_target(p->section);
        return MSC_OK;
    }
    if (!p->section || !has_param(e->env_def->params, "target")) {
        return MSC_OK;
    }
    e->target = cJSON_IsString(own) ? msc_config__text(p->config, "%s", own->valuestring)
                                    : p->section->target;
    return MSC_ALLOCATED(e->target);
}

// Sets the default of `sites`: all sites that the target requantises. Does nothing for a record's
// configuration, which is complete.
static enum msc_status set_sites(const struct place *p, cJSON *given) {
    const cJSON *target = msc_json_get(given, "target");
    const struct msc_target *t =
        cJSON_IsString(target) ? msc_target_find(target->valuestring) : NULL;
    if (p->config->is_stored || !t || msc_json_get(given, "sites")) {
        return MSC_OK;
    }
    p->entry->are_sites_default = true;
    return t->requantises ? msc_json_add_text(given, "sites", "all") : MSC_OK;
}

// Sets the observers of choices that name no observer; the default is "auto".
static enum msc_status set_observers(const struct place *p, cJSON *given) {
    if (msc_json_get(given, "observers")) {
        return MSC_OK;
    }
    p->entry->are_observers_default = true;
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(given, "observers", object));
    MSC_TRY(msc_json_add_text(object, "weights", MSC_OBSERVER_AUTO));
    return msc_json_add_text(object, "activations", MSC_OBSERVER_AUTO);
}

// Code of an untrusted file does not run without the user's consent.
static enum msc_status refuse_code(const struct place *p, const char *key, const char *what,
                                   const char *name) {
    return MSC_FAIL(MSC_E_STATE,
                    "%s: the file names code, the %s %s, which runs only if you trust the file: "
                    "inspect it, then add --allow-plugins",
                    place_of_key(p, key), what, name);
}

// Reading the keys of an environment calls its library, so this check comes first.
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
    const cJSON *path = msc_json_get(agent, "path");
    bool is_library = strcmp(type, "library") == 0;
    bool is_ours = !is_library && strcmp(type, msc_agent_process.name) != 0;
    p->config->names_code = p->config->names_code || !is_ours;
    if (is_ours || p->config->code != MSC_CONFIG_CODE_REFUSED) {
        return MSC_OK;
    }
    return is_library
               ? refuse_code(p, "agent", "library", cJSON_IsString(path) ? path->valuestring : "?")
               : refuse_program(p, "agent", msc_json_get(agent, "command"));
}

// A dry run does not start the program, which runs at the end of a search.
static enum msc_status check_rerank_code(const struct place *p) {
    const cJSON *command = msc_json_get(p->entry->rerank, "command");
    p->config->names_code = p->config->names_code || command;
    return !command || p->config->code != MSC_CONFIG_CODE_REFUSED
               ? MSC_OK
               : refuse_program(p, "rerank", msc_json_get(command, "argv"));
}

// The environment, or a metric of it, may be a program. A dry run starts that program too.
static enum msc_status check_command_code(const struct place *p, const cJSON *env) {
    const cJSON *command = msc_json_get(env, "command");
    const cJSON *argv = msc_json_get(command, "argv");
    bool is_program = command && has_param(p->entry->env_def->params, "command");
    bool is_metric = p->entry->env_def != msc_env_find("process");
    p->config->names_code = p->config->names_code || is_program;
    return !is_program || p->config->code == MSC_CONFIG_CODE_ALLOWED ||
                   (is_metric && p->config->code == MSC_CONFIG_CODE_NODE)
               ? MSC_OK
               : refuse_program(p, "env", argv ? argv : command);
}

// Passes the configuration's `outputs` on: as `outputs` of the environment or, if the environment
// has no such parameter, as `loss_tensors`.
static enum msc_status set_outputs(const struct place *p, cJSON *given) {
    const struct msc_param *params = p->entry->env_def->params;
    const char *key = has_param(params, "outputs")        ? "outputs"
                      : has_param(params, "loss_tensors") ? "loss_tensors"
                                                          : NULL;
    return p->config->outputs && key && !msc_json_get(given, key)
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
    MSC_TRY(MSC_ALLOCATED(e->env));
    MSC_TRY(msc_json_add_text(e->env, "type", type));
    const struct msc_env_def *def = e->env_def;
    MSC_TRY(check_command_code(p, object));
    cJSON *given = object ? cJSON_Duplicate(object, true) : cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(given));
    if (p->section && has_param(def->params, "target") && !msc_json_get(given, "target")) {
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
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: write an agent in a library as {\"type\": \"library\", \"path\": \"%s\"}",
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
    return MSC_FAIL(MSC_E_INVALID, "%s: unknown agent \"%s\"%s%s%s", place_of_key(p, "agent"), type,
                    near ? ", did you mean \"" : ": mscgym agents lists the agents",
                    near ? near : "", near ? "\"?" : "");
}

static enum msc_status check_words(const struct place *p, const cJSON *agent) {
    const char **words = NULL;
    return msc_program_read_words(&words, msc_json_get(agent, "command"),
                                  place_of_key(p, "agent.command"), "[\"python3\", \"agent.py\"]",
                                  &p->config->arena);
}

// *out may be set even on failure.
static enum msc_status read_agent(struct place *p, const cJSON *object, cJSON **out) {
    static const char *const ignore[] = {"type", NULL};
    const char *type = "auto", *path = NULL;
    MSC_TRY(entry_read_type(p, &type, object, "agent"));
    MSC_TRY(check_agent_code(p, object, type));
    bool is_library = strcmp(type, "library") == 0;
    bool is_process = strcmp(type, msc_agent_process.name) == 0;
    const struct msc_agent_def *def = is_process ? &msc_agent_process : msc_agent_find(type);
    *out = is_library ? cJSON_Duplicate(object, true) : cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(*out));
    if (is_library) { // a library's parameters are known only once it is loaded
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
    MSC_TRY(MSC_ALLOCATED(p.path));
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
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    return MSC_OK;
}

static enum msc_status read_rerank(struct place *p, const cJSON *object) {
    MSC_TRY(
        msc_config__read_rerank(p->config, &p->entry->rerank, object, place_of_key(p, "rerank")));
    if (p->entry->rerank && !p->section) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: rerank needs a search that exports models: use it in \"quantize\", "
                        "\"prune\" or \"joint\"",
                        p->path);
    }
    return check_rerank_code(p);
}

static enum msc_status read_distill(struct place *p, const cJSON *object) {
    MSC_TRY(msc_config__read_distill(p->config, &p->entry->distill, object,
                                     place_of_key(p, "distill")));
    return !p->entry->distill || (p->section && !msc_config__decides_channels(p->entry))
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: distill improves the weights of a quantize search: use it only "
                          "in \"quantize\"",
                          p->path);
}

static enum msc_status read_equalize(struct place *p, const cJSON *object) {
    MSC_TRY(msc_config__read_equalize(p->config, &p->entry->equalize, object,
                                      place_of_key(p, "equalize")));
    return !p->entry->equalize || (p->section && !msc_config__decides_channels(p->entry))
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: equalize prepares a quantize search: use it only in \"quantize\"",
                          p->path);
}

// The rungs are checked against the number of batches later, when the samples are loaded.
static enum msc_status read_race(struct place *p, const cJSON *value) {
    struct msc_race race;
    if (!value || cJSON_IsNull(value)) {
        return MSC_OK;
    }
    if (!cJSON_IsFalse(value)) {
        MSC_TRY(msc_race_read(&race, value, 0, place_of_key(p, "race")));
    }
    p->entry->race = cJSON_Duplicate(value, true);
    return MSC_ALLOCATED(p->entry->race);
}

enum msc_status msc_config__read_entry(struct msc_config *c, const char *section,
                                       const struct msc_config_section *of, const cJSON *object,
                                       int index) {
    struct msc_config_gym from;
    struct msc_config_entry *e = &c->entries[c->n_entries];
    struct place p = {.config = c, .entry = e, .section = of};
    *e = (struct msc_config_entry){.section = section};
    c->n_entries++; // now, so that the configuration frees what the entry owns if reading fails
    p.path = e->place =
        msc_config__text(c, "%s: %s%s[%d]", c->path, section, of ? ".gym" : "", index);
    e->name = msc_config__text(c, "%s[%d]", section, index);
    MSC_TRY(MSC_ALLOCATED(p.path && e->name));
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
    e->is_agent_default = !msc_json_get(from.agent, "type");
    e->is_budget_default = !from.budget;
    if (from.agent && !(e->agent_said = cJSON_Duplicate(from.agent, true))) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    if (e->is_agent_default && e->is_budget_default) {
        e->budget.trials = DEFAULT_TRIALS; // the default agent never ends by itself
    }
    MSC_TRY(read_env(&p, from.env));
    MSC_TRY(read_race(&p, from.race));
    MSC_TRY(read_rerank(&p, from.rerank));
    MSC_TRY(read_distill(&p, from.distill));
    MSC_TRY(read_equalize(&p, from.equalize));
    return read_agent(&p, from.agent, &e->agent);
}
