// Completes an environment's configuration with its defaults (msc_env_complete).
#include "base/json.h"
#include "env/env.h"

// The default objective is the space's first metric, so the environment must be created to find it.
static enum msc_status add_first_metric(const struct msc_env_def *def, cJSON *config,
                                        const char *folder) {
    const struct msc_env_host host = {.n_threads = 1, .folder = folder};
    struct msc_env *env = NULL;
    if (msc_json_get(config, "objectives")) {
        return MSC_OK;
    }
    MSC_TRY(msc_env_create(&env, def, config, &host));
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = msc_json_add(config, "objectives", list);
    if (status == MSC_OK) {
        status = msc_json_push(list, cJSON_CreateString(msc_env_space(env)->metrics[0].name));
    }
    msc_env_destroy(env);
    return status;
}

static enum msc_status move_to_end(cJSON *config, const char *key) {
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(config, key);
    return item ? msc_json_add(config, key, item) : MSC_OK;
}

enum msc_status msc_env_complete(const struct msc_env_def *def, struct cJSON *config,
                                 const char *folder) {
    if (def->complete) {
        MSC_TRY(def->complete(config));
    }
    if (def->needs == 0) {
        MSC_TRY(add_first_metric(def, config, folder));
    }
    for (const struct msc_param *p = def->params; p->name; p++) {
        MSC_TRY(move_to_end(config, p->name));
    }
    MSC_TRY(move_to_end(config, "objectives"));
    return move_to_end(config, "bounds");
}
