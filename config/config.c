// Reads a configuration: creates and frees it, and reads the keys of the top level. Each section
// has a file of its own: dataset.c, stages.c, sections.c (lists of searches), entries.c (one
// search) and after.c (what follows a search).
#include "config/config.h"

#include "base/file.h"
#include "base/str.h"
#include "config/config_internal.h"

#include <string.h>

static enum msc_status read_bindings(struct msc_config *c, const cJSON *object) {
    const cJSON *item = NULL;
    if (object && !cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: bind: expected an object such as {\"H\": 224}",
                        c->path);
    }
    size_t n = object ? (size_t)cJSON_GetArraySize(object) : 0;
    c->bindings = msc_arena_array(&c->arena, n + 1, sizeof c->bindings[0]);
    MSC_TRY(MSC_ALLOCATED(c->bindings));
    cJSON_ArrayForEach(item, object) {
        int64_t value;
        if (!msc_json_read_i64(&value, item, 0, INT64_C(1000000000000000))) {
            return MSC_FAIL(MSC_E_INVALID, "%s: bind: \"%s\": expected an integer of 0 or more",
                            c->path, item->string);
        }
        c->bindings[c->n_bindings++] = (struct msc_binding){.symbol = item->string, .value = value};
    }
    return MSC_OK;
}

static enum msc_status read_operators(struct msc_config *c, const cJSON *list) {
    const cJSON *item = NULL;
    if (list && !cJSON_IsArray(list)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: operators: expected a list such as [\"./ops.so\"]",
                        c->path);
    }
    size_t n = list ? (size_t)cJSON_GetArraySize(list) : 0;
    const char **paths = msc_arena_array(&c->arena, n + 1, sizeof paths[0]);
    MSC_TRY(MSC_ALLOCATED(paths));
    c->operators = paths;
    c->names_code = c->names_code || n > 0;
    if (n > 0 && c->code != MSC_CONFIG_CODE_ALLOWED) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: operators: the file names plug-ins, which may do anything; if you "
                        "trust it, add --allow-plugins",
                        c->path);
    }
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item) || item->valuestring[0] == '\0') {
            return MSC_FAIL(MSC_E_INVALID, "%s: operators: expected paths of plug-ins", c->path);
        }
        const char **path = &paths[c->n_operators++];
        *path = item->valuestring;
        MSC_TRY(MSC_ALLOCATED(msc_config__join(c, path, c->folder)));
    }
    return MSC_OK;
}

static enum msc_status read_baseline(struct msc_config *c, const cJSON *object) {
    struct msc_config_check_outer outer;
    struct msc_config_check check;
    MSC_TRY(msc_config__read(c, msc_config__baseline_params, &outer, object, "baseline"));
    MSC_TRY(msc_config__read(c, msc_config__check_params, &check, outer.check_config,
                             "baseline.check_config"));
    // If only one of `atol` and `rtol` is given, the other one is 0.
    const cJSON *atol = msc_json_get(outer.check_config, "atol");
    const cJSON *rtol = msc_json_get(outer.check_config, "rtol");
    c->atol = rtol && !atol ? 0 : check.atol;
    c->rtol = atol && !rtol ? 0 : check.rtol;
    return MSC_OK;
}

static enum msc_status read_profile(struct msc_config *c, const cJSON *object) {
    struct msc_config_profile profile;
    MSC_TRY(msc_config__read(c, msc_config__profile_params, &profile, object, "profile"));
    c->profile_repeat = object ? profile.repeat : 0;
    return MSC_OK;
}

static enum msc_status read_passes(struct msc_config *c, const cJSON *list) {
    const cJSON *item = NULL;
    c->rules = msc_arena_array(&c->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof c->rules[0]);
    MSC_TRY(MSC_ALLOCATED(c->rules));
    if (list && !cJSON_IsArray(list)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: passes: expected a list: [{\"rules\": \"FILE\"}]",
                        c->path);
    }
    cJSON_ArrayForEach(item, list) {
        struct msc_config_pass pass;
        const char *where = msc_config__text(c, "passes[%d]", (int)c->n_rules);
        MSC_TRY(MSC_ALLOCATED(where));
        MSC_TRY(msc_config__read(c, msc_config__pass_params, &pass, item, where));
        if (!pass.rules || pass.rules[0] == '\0') {
            return MSC_FAIL(MSC_E_INVALID, "%s: %s: expected {\"rules\": \"FILE\"}", c->path,
                            where);
        }
        c->rules[c->n_rules] = pass.rules;
        MSC_TRY(MSC_ALLOCATED(msc_config__join(c, &c->rules[c->n_rules], c->folder)));
        c->n_rules++;
    }
    return MSC_OK;
}

static enum msc_status read_paths(struct msc_config *c, const struct msc_config_top *top) {
    c->workspace = top->workspace;
    c->model = top->model;
    c->log_file = top->log_file && top->log_file[0] ? top->log_file : NULL;
    if (c->workspace[0] == '\0' || (c->model && c->model[0] == '\0')) {
        return MSC_FAIL(MSC_E_INVALID, "%s: \"%s\" is empty", c->path,
                        c->workspace[0] == '\0' ? "workspace" : "model");
    }
    MSC_TRY(MSC_ALLOCATED(msc_config__join(c, &c->workspace, c->folder) &&
                          msc_config__join(c, &c->model, c->folder) &&
                          msc_config__join(c, &c->log_file, c->workspace)));
    return MSC_OK;
}

static enum msc_status config_read_all(struct msc_config *c) {
    struct msc_config_top top;
    MSC_TRY(msc_config__read(c, msc_config__top_params, &top, c->json, ""));
    MSC_TRY(msc_config__open_groups(c, &top));
    c->verbose = top.verbose;
    c->log_seconds = top.log_seconds;
    c->device = top.device;
    MSC_TRY(read_paths(c, &top));
    MSC_TRY(read_bindings(c, top.bind));
    MSC_TRY(read_passes(c, top.passes));
    MSC_TRY(read_operators(c, top.operators));
    c->outputs = top.outputs;
    MSC_TRY(read_baseline(c, top.baseline));
    MSC_TRY(read_profile(c, top.profile));
    MSC_TRY(msc_config__read_dataset(c, top.dataset));
    MSC_TRY(msc_config__read_stages(c, &top));
    MSC_TRY(msc_config__read_entries(c, &top));
    return msc_config__set_distill(c, &top);
}

static enum msc_status create_config(struct msc_config **out, struct cJSON *json, const char *path,
                                     const char *folder, enum msc_config_code code,
                                     bool is_stored) {
    struct msc_config *c = msc_alloc_zero(1, sizeof *c);
    if (!c) {
        cJSON_Delete(json);
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    c->json = json;
    c->code = code;
    c->is_stored = is_stored;
    c->path = msc_arena_strdup(&c->arena, path);
    c->folder = msc_arena_strdup(&c->arena, folder);
    enum msc_status status = MSC_OK;
    if (!c->path || !c->folder) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    } else {
        status = config_read_all(c);
    }
    if (status != MSC_OK) {
        msc_config_destroy(c);
        return status;
    }
    *out = c;
    return MSC_OK;
}

enum msc_status msc_config_create(struct msc_config **out, struct cJSON *json, const char *path,
                                  const char *folder, enum msc_config_code code) {
    return create_config(out, json, path, folder, code, false);
}

enum msc_status msc_config_create_stored(struct msc_config **out, struct cJSON *json,
                                         const char *path, const char *folder,
                                         enum msc_config_code code) {
    return create_config(out, json, path, folder, code, true);
}

static bool is_yaml_path(const char *path) {
    return msc_path_ends_in(path, ".yaml") || msc_path_ends_in(path, ".yml");
}

bool msc_config_has_toml(void) {
    return msc_config__toml_version() != NULL;
}

bool msc_config_is_path(const char *path) {
    return msc_path_ends_in(path, ".json") || is_yaml_path(path) || msc_path_ends_in(path, ".toml");
}

enum msc_status msc_config_read_tree(cJSON **out, const char *path) {
    bool is_yaml = is_yaml_path(path), is_toml = msc_path_ends_in(path, ".toml");
    char *text = NULL;
    size_t length = 0;
    if (!is_yaml && !is_toml) {
        return msc_json_of_user(msc_json_load(out, path));
    }
    *out = NULL;
    enum msc_status status = msc_file_read(&text, &length, path);
    if (status == MSC_OK) {
        status = is_yaml ? msc_config__read_yaml(out, text, length, path)
                         : msc_config__read_toml(out, text, length, path);
    }
    msc_free(text);
    return msc_json_of_user(status);
}

enum msc_status msc_config_load(struct msc_config **out, const char *path,
                                enum msc_config_code code) {
    struct msc_arena arena = {0};
    cJSON *json = NULL;
    enum msc_status status = msc_config_read_tree(&json, path);
    if (status == MSC_E_INVALID && msc_path_ends_in(path, ".onnx")) {
        status = MSC_FAIL(MSC_E_INVALID,
                          "%s is a model: expected a configuration that names it, {\"model\": "
                          "\"%s\", ...}; mscgym quantize takes a model directly",
                          path, path);
    }
    if (status != MSC_OK) {
        return status;
    }
    char *folder = msc_path_folder(&arena, path);
    if (!folder) {
        cJSON_Delete(json);
        status = MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
        goto out;
    }
    status = msc_config_create(out, json, path, folder, code);
out:
    msc_arena_finish(&arena);
    return status;
}

void msc_config_destroy(struct msc_config *c) {
    if (!c) {
        return;
    }
    for (size_t i = 0; i < c->n_entries; i++) {
        cJSON_Delete(c->entries[i].env);
        cJSON_Delete(c->entries[i].agent);
        cJSON_Delete(c->entries[i].agent_said);
        cJSON_Delete(c->entries[i].race);
        cJSON_Delete(c->entries[i].rerank);
        cJSON_Delete(c->entries[i].distill);
        cJSON_Delete(c->entries[i].equalize);
        msc_env_library_close(c->entries[i].library);
    }
    cJSON_Delete(c->json);
    msc_arena_finish(&c->arena);
    msc_free(c);
}

enum msc_log_level msc_config_log_level(const struct msc_config *config) {
    return msc_log_level_at((size_t)config->verbose);
}

enum msc_status msc_config_find_entry(size_t *out, const struct msc_config *config,
                                      const char *name) {
    struct msc_str names = {0};
    for (size_t i = 0; i < config->n_entries; i++) {
        if (strcmp(config->entries[i].name, name) == 0) {
            *out = i;
            msc_str_finish(&names);
            return MSC_OK;
        }
        msc_str_item(&names, config->entries[i].name);
    }
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: unknown entry \"%s\": expected %s%s", config->path, name,
                 config->n_entries == 1 ? "" : "one of ", msc_str_text(&names));
    msc_str_finish(&names);
    return status;
}
