// Reading and writing a configuration: what is done with what a search has found.
#include "pipeline/config_internal.h"

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
