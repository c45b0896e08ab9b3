#include "pipeline/header_config.h"

#include "base/file.h"
#include "base/json.h"
#include "graph/target.h"
#include "records/record_files.h"
#include "records/record_header.h"

#include <string.h>

// ---- Written ----------------------------------------------------------------------------------

enum msc_status msc_header_config_make(cJSON **out, const struct msc_config *c,
                                       const struct msc_config_entry *e) {
    struct msc_arena arena = {0};
    const char *folder = msc_path_folder(&arena, e->record);
    enum msc_status status = folder ? msc_config_entry_to_json(c, e, out, folder)
                                    : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_arena_finish(&arena);
    return status;
}

// ---- Read -------------------------------------------------------------------------------------

// A dry run starts no agent, so it refuses code only if reading the configuration loads that code.
static enum msc_config_code code_of_record(const struct msc_processor_options *o) {
    return o->allow_plugins             ? MSC_CONFIG_CODE_ALLOWED
           : o->is_node && o->node_path ? MSC_CONFIG_CODE_ALLOWED
           : o->is_node                 ? MSC_CONFIG_CODE_NODE
           : o->is_dry_run              ? MSC_CONFIG_CODE_IDLE
                                        : MSC_CONFIG_CODE_REFUSED;
}

// Sets the folder of each entry to `folder`.
static enum msc_status move_folders(cJSON *config, const char *folder) {
    for (cJSON *item = config->child; item; item = item->next) {
        cJSON *list = strcmp(item->string, "gym") == 0 ? item : msc_json_get(item, "gym");
        cJSON *entry = NULL;
        cJSON_ArrayForEach(entry, list) {
            if (cJSON_IsObject(entry)) {
                cJSON_DeleteItemFromObjectCaseSensitive(entry, "folder");
                MSC_TRY(msc_json_add_text(entry, "folder", folder));
            }
        }
    }
    return MSC_OK;
}

// If a base file was renamed together with its record, finds it under the record's present name.
static enum msc_status find_base(struct msc_config *config, const char *record) {
    struct msc_config_entry *e = &config->entries[0];
    const char *first =
        msc_record_file(&config->arena, msc_path_name(e->record), MSC_RECORD_FILE_BASE);
    const char *own = msc_record_file(&config->arena, record, MSC_RECORD_FILE_BASE);
    MSC_TRY(MSC_ALLOCATED(first && own));
    bool is_own = e->base && strcmp(msc_path_name(e->base), first) == 0;
    if (is_own && msc_file_exists(own)) {
        e->base = own;
    }
    return MSC_OK;
}

enum msc_status msc_header_config_open(struct msc_config **out, const char *path,
                                       const struct msc_processor_options *options) {
    struct msc_arena arena = {0};
    struct msc_record *record = NULL;
    struct msc_config *config = NULL;
    const cJSON *stored = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_record_open(&record, path, MSC_RECORD_HEADER, options->log));
    stored = msc_json_get(msc_record_header(record), "config");
    if (!cJSON_IsObject(stored)) {
        status = MSC_FAIL(MSC_E_UNSUPPORTED,
                          "%s: its header holds no configuration; it was not made by mscgym search",
                          path);
        goto out;
    }
    char *folder = msc_path_folder(&arena, path);
    cJSON *json = folder ? cJSON_Duplicate(stored, true) : NULL;
    MSC_TRY_OUT(MSC_ALLOCATED(json));
    if (options->is_node && options->node_path) {
        status = move_folders(json, options->node_path);
    }
    if (status != MSC_OK) {
        cJSON_Delete(json);
        goto out;
    }
    MSC_TRY_OUT(msc_config_create_stored(&config, json, path, folder, code_of_record(options)));
    status = find_base(config, path);
    if (status != MSC_OK) {
        msc_config_destroy(config);
        goto out;
    }
    *out = config;
out:
    msc_record_close(record);
    msc_arena_finish(&arena);
    return status;
}

// ---- Compared ---------------------------------------------------------------------------------

// Finds the member `key` of the only entry in a record's configuration: its environment or agent.
static cJSON *find_member(const cJSON *config, const struct msc_config_entry *e, const char *key) {
    const cJSON *object = e->strategy_file ? msc_json_get(config, e->section) : config;
    const cJSON *list = msc_json_get(object, "gym");
    return msc_json_get(cJSON_GetArrayItem(list, 0), key);
}

static cJSON *find_env(const cJSON *config, const struct msc_config_entry *e) {
    return find_member(config, e, "env");
}

// If the two environments differ, adds all defaults to both, since one may leave out keys that the
// other has. Environments that cannot be completed are compared as they are.
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

// Replaces the entry's environment by the environment in the record, which may be written
// differently. Call this only if the two environments are equal.
static enum msc_status take_words(struct msc_config_entry *e, const cJSON *old) {
    cJSON *env = cJSON_Duplicate(find_env(old, e), true);
    MSC_TRY(MSC_ALLOCATED(env));
    cJSON_Delete(e->env);
    e->env = env;
    return MSC_OK;
}

// Replaces a member of `object` by a copy of the one in `old`, or removes it if `old` has none.
static enum msc_status take_member(cJSON *object, const cJSON *old, const char *key) {
    const cJSON *item = msc_json_get(old, key);
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return item ? msc_json_add(object, key, cJSON_Duplicate(item, true)) : MSC_OK;
}

// Compares targets by identity, since a target may have two names.
static bool is_same_target(const cJSON *a, const cJSON *b) {
    const struct msc_target *x = cJSON_IsString(a) ? msc_target_find(a->valuestring) : NULL;
    return x && cJSON_IsString(b) && msc_target_find(b->valuestring) == x;
}

// Parameters that the configuration does not give keep the record's values.
static enum msc_status keep_old_parameters(struct msc_config_entry *e, const cJSON *old) {
    enum msc_status status = MSC_OK;
    cJSON *kept = cJSON_Duplicate(old, true);
    MSC_TRY(MSC_ALLOCATED(kept));
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
    return cJSON_Compare(msc_json_get(a, "type"), msc_json_get(b, "type"), true);
}

enum msc_status msc_header_config_keep_agent(struct msc_config_entry *e, const cJSON *config) {
    const cJSON *old = find_member(config, e, "agent");
    if (is_same_type(old, e->agent)) {
        return keep_old_parameters(e, old);
    }
    if (!e->is_agent_default || !cJSON_IsObject(old)) {
        return MSC_OK;
    }
    cJSON *copy = cJSON_Duplicate(old, true);
    MSC_TRY(MSC_ALLOCATED(copy));
    cJSON_Delete(e->agent);
    e->agent = copy;
    e->budget.trials = e->is_budget_default ? -1 : e->budget.trials;
    return MSC_OK;
}

// If the configuration does not give `race` or `parallel`, they keep the record's values. A record
// without `race` in its configuration began with a default, which its header tells: `true` and
// `false` may name it.
static enum msc_status keep_old_race(struct msc_config_entry *e, const cJSON *header) {
    const cJSON *old = msc_json_get(header, "config");
    const cJSON *race = find_member(old, e, "race");
    const cJSON *parallel = find_member(old, e, "parallel");
    bool is_raced = msc_json_get(header, "race") != NULL;
    int64_t n_parallel;
    if (e->parallel == 0 && msc_json_read_i64(&n_parallel, parallel, 0, UINT32_MAX)) {
        e->parallel = (uint32_t)n_parallel;
    }
    if (e->race && (race || !cJSON_IsBool(e->race) || cJSON_IsTrue(e->race) != is_raced)) {
        return MSC_OK;
    }
    cJSON_Delete(e->race);
    e->race = race ? cJSON_Duplicate(race, true) : NULL;
    return MSC_ALLOCATED(!race || e->race);
}

// A search that has begun keeps its defaults, even if the defaults have changed.
static enum msc_status keep_old_defaults(struct msc_config *c, struct msc_config_entry *e,
                                         const cJSON *header) {
    const cJSON *old = msc_json_get(header, "config");
    const cJSON *env = find_env(old, e);
    const cJSON *target = msc_json_get(env, "target");
    const cJSON *own = msc_json_get(e->env, "target");
    MSC_TRY(msc_header_config_keep_agent(e, old));
    MSC_TRY(keep_old_race(e, header));
    if ((e->is_target_default && cJSON_IsString(target)) || is_same_target(target, own)) {
        MSC_TRY(take_member(e->env, env, "target"));
        e->target = msc_arena_strdup(&c->arena, target->valuestring);
        MSC_TRY(MSC_ALLOCATED(e->target));
    }
    if (e->are_sites_default) {
        MSC_TRY(take_member(e->env, env, "sites"));
    }
    return e->are_observers_default ? take_member(e->env, env, "observers") : MSC_OK;
}

enum msc_status msc_header_config_check(struct msc_config *c, struct msc_config_entry *e,
                                        const struct msc_record *record) {
    cJSON *stored = cJSON_CreateObject();
    cJSON *wanted = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    const cJSON *old = msc_json_get(msc_record_header(record), "config");
    cJSON *old_copy = cJSON_Duplicate(old, true);
    cJSON *config = NULL;
    MSC_TRY_OUT(msc_json_add(stored, "config", old_copy));
    MSC_TRY_OUT(keep_old_defaults(c, e, msc_record_header(record)));
    MSC_TRY_OUT(msc_header_config_make(&config, c, e));
    MSC_TRY_OUT(msc_json_add(wanted, "config", config));
    MSC_TRY_OUT(complete_envs(e, old_copy, config));
    MSC_TRY_OUT(
        msc_record_header_compare(stored, wanted, msc_config_free_keys, msc_record_path(record)));
    status = take_words(e, old);
out:
    cJSON_Delete(stored);
    cJSON_Delete(wanted);
    return status;
}
