// Reading and writing a configuration: what is done with what a search has found.
#include "pipeline/config_internal.h"

#include "tools/command.h"

enum msc_status msc_config__read_runtime(struct msc_config *c, struct msc_config_runtime *out,
                                         const cJSON *value, const char *where) {
    struct msc_config_runtime_keys keys;
    if (value && !cJSON_IsObject(value) && !cJSON_IsBool(value)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: %s: expected {\"threads\", \"rounds\"}, or false",
                        c->path, where);
    }
    MSC_TRY(msc_config__read(c, msc_config__runtime_params, &keys,
                             cJSON_IsObject(value) ? value : NULL, where));
    *out = (struct msc_config_runtime){
        .is_wanted = !cJSON_IsFalse(value), .threads = keys.threads, .rounds = keys.rounds};
    return MSC_OK;
}

static enum msc_status read_command(struct msc_config *c, cJSON *out, const cJSON *value,
                                    const char *place) {
    struct msc_command command;
    MSC_TRY(msc_command_read(&command, value, place, &c->arena));
    if (msc_command_wants(&command, "{outputs}")) {
        return MSC_FAIL(MSC_E_INVALID, "%s: there is no {outputs} here, only {model}", place);
    }
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(out, "command", object));
    return msc_command_write(&command, object);
}

enum msc_status msc_config__read_rerank(struct msc_config *c, cJSON **out, const cJSON *value,
                                        const char *place) {
    struct msc_config_rerank keys;
    const char *of_command = msc_config__text(c, "%s.command", place);
    *out = NULL;
    if (!value || !of_command) {
        return value ? msc_config__no_memory(c) : MSC_OK;
    }
    msc_param_defaults(msc_config__rerank_params, &keys);
    MSC_TRY(msc_param_read(msc_config__rerank_params, &keys, value, place, NULL, &c->arena));
    cJSON *rerank = cJSON_CreateObject();
    enum msc_status status =
        rerank ? msc_json_add_number(rerank, "top", (double)keys.top) : msc_config__no_memory(c);
    if (status == MSC_OK && keys.command) {
        status = read_command(c, rerank, keys.command, of_command);
    }
    if (status != MSC_OK) {
        cJSON_Delete(rerank);
        return status;
    }
    *out = rerank;
    return MSC_OK;
}

enum msc_status msc_config__write_runtime(cJSON *section, const struct msc_config_runtime *runtime,
                                          bool is_full) {
    struct msc_config_runtime_keys usual;
    const struct msc_config_runtime_keys keys = {runtime->threads, runtime->rounds};
    if (!runtime->is_wanted) {
        return msc_json_add_bool(section, "runtime", false);
    }
    msc_param_defaults(msc_config__runtime_params, &usual);
    if (!is_full && keys.threads == usual.threads && keys.rounds == usual.rounds) {
        return MSC_OK;
    }
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(section, "runtime", object));
    return msc_param_write(msc_config__runtime_params, &keys, object);
}
