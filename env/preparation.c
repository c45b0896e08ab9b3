#include "env/preparation.h"

#include "base/alloc.h"
#include "base/json.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/wide.h"
#include "kernels/backend.h"
#include "tools/linear_algebra.h"
#include "tools/strategy.h"

#include <string.h>

#define PARAMETERS_ENDING ".params"
#define MOMENTS_ENDING ".moments"
#define VERSION "2" // changes with the way to observe ranges, sample rows or round weights

char *msc_preparation_path(const struct msc_env *env, const char *ending, struct msc_arena *arena) {
    const char *path = msc_env_host(env)->parameters_path;
    size_t length = strlen(path), own = sizeof PARAMETERS_ENDING - 1;
    bool has_ending = length > own && strcmp(path + length - own, PARAMETERS_ENDING) == 0;
    return msc_arena_printf(arena, "%.*s%s", (int)(has_ending ? length - own : length), path,
                            ending);
}

struct msc_hash msc_preparation_hash(const struct msc_array_list *list) {
    struct msc_hash h = msc_hash_bytes("params", 6);
    for (size_t i = 0; i < list->n; i++) {
        h = msc_hash_add_text(h, list->names[i]);
        h = msc_hash_combine(h, msc_array_hash(list->arrays[i]));
    }
    return h;
}

enum msc_status msc_preparation_identity(struct msc_hash *out, const struct msc_env *env) {
    const struct msc_env_host *host = msc_env_host(env);
    char name[128];
    struct msc_hash config;
    MSC_TRY(msc_json_hash(&config, msc_env_config(env)));
    struct msc_hash h = msc_hash_add_text(config, VERSION);
    h = msc_hash_combine(h, msc_graph_hash(msc_graph_own(host->graph)));
    h = msc_hash_combine(h, msc_graph_weights_hash(msc_graph_own(host->graph)));
    h = msc_hash_combine(h, msc_dataset_hash(host->dataset));
    h = host->base ? msc_hash_combine(h, msc_strategy_hash(host->base)) : h;
    h = msc_hash_add_text(h, host->backend->def->numerics(host->backend));
    *out = msc_hash_add_text(h, msc_linear_algebra_name(name, sizeof name));
    return MSC_OK;
}

enum msc_status msc_preparation_pass_over(const struct msc_env *env, enum msc_status why,
                                          const char *consequence) {
    if (why != MSC_OK && why != MSC_E_NOMEM) {
        msc_log(msc_env_host(env)->log, MSC_LOG_WARNING, "%s; %s", msc_status_message(),
                consequence);
        return MSC_OK;
    }
    return why;
}

enum msc_status msc_preparation_open(struct msc_array_log **out, const struct msc_env *env) {
    struct msc_arena arena = {0};
    struct msc_hash identity;
    *out = NULL;
    if (!msc_env_host(env)->parameters_path) {
        return MSC_OK;
    }
    MSC_TRY(msc_preparation_identity(&identity, env));
    const char *path = msc_preparation_path(env, MOMENTS_ENDING, &arena);
    enum msc_status status =
        path ? msc_array_log_open(out, path, identity, msc_env_host(env)->log)
             : MSC_FAIL(MSC_E_NOMEM, "not enough memory for the files next to the record");
    msc_arena_finish(&arena);
    return msc_preparation_pass_over(env, status, MSC_PREPARATION_NOT_KEPT);
}

void msc_preparation_remove(const struct msc_env *env) {
    struct msc_arena arena = {0};
    const char *path = msc_env_host(env)->parameters_path
                           ? msc_preparation_path(env, MOMENTS_ENDING, &arena)
                           : NULL;
    if (path) {
        msc_array_log_remove(path);
    }
    msc_arena_finish(&arena);
}
