#include "env/quantize_kept.h"

#include "base/alloc.h"
#include "base/file.h"
#include "kernels/backend.h"
#include "tools/linear_algebra.h"
#include "tools/moment_file.h"
#include "tools/strategy.h"

#include <string.h>

#define PARAMETERS_ENDING ".params"
#define ENDING ".moments"
#define COMPLETE "observed" // of how many arrays, behind them
#define VERSION "1"         // rises when ranges are observed, or rows sampled, otherwise

static char *kept_path(const struct msc_env *env, struct msc_arena *arena) {
    const char *path = msc_env_host(env)->parameters_path;
    size_t length = strlen(path), ending = sizeof PARAMETERS_ENDING - 1;
    bool has_ending = length > ending && strcmp(path + length - ending, PARAMETERS_ENDING) == 0;
    return msc_arena_printf(arena, "%.*s" ENDING, (int)(has_ending ? length - ending : length),
                            path);
}

// All that can change a bit of what is kept.
static enum msc_status kept_identity(struct msc_hash *out, const struct msc_env *env) {
    const struct msc_env_host *host = msc_env_host(env);
    char name[128];
    struct msc_hash config;
    MSC_TRY(msc_json_hash(&config, msc_env_config(env)));
    struct msc_hash h = msc_hash_add_text(config, VERSION);
    h = msc_hash_combine(h, msc_graph_hash(host->graph));
    h = msc_hash_combine(h, msc_graph_weights_hash(host->graph));
    h = msc_hash_combine(h, msc_dataset_hash(host->dataset));
    h = host->base ? msc_hash_combine(h, msc_strategy_hash(host->base)) : h;
    h = msc_hash_add_text(h, host->backend->def->numerics(host->backend));
    *out = msc_hash_add_text(h, msc_linear_algebra_name(name, sizeof name));
    return MSC_OK;
}

// Without what is of no use all is worked out anew.
static enum msc_status pass_over(const struct msc_env *env, enum msc_status why) {
    if (why != MSC_OK && why != MSC_E_NOMEM) {
        msc_log(msc_env_host(env)->log, MSC_LOG_WARNING,
                "%s; what is worked out before the first trial is not kept until it is done",
                msc_status_message());
        return MSC_OK;
    }
    return why;
}

enum msc_status msc_quantize_kept_open(struct msc_array_log **out, const struct msc_env *env,
                                       const struct msc_quantize *z) {
    struct msc_arena arena = {0};
    struct msc_hash identity;
    *out = NULL;
    if (!msc_env_host(env)->parameters_path || !msc_quantizer_has_rounding(z->quantizer)) {
        return MSC_OK;
    }
    MSC_TRY(kept_identity(&identity, env));
    const char *path = kept_path(env, &arena);
    enum msc_status status =
        path ? msc_array_log_open(out, path, identity, msc_env_host(env)->log)
             : MSC_FAIL(MSC_E_NOMEM, "out of memory for what is kept beside a record");
    msc_arena_finish(&arena);
    return pass_over(env, status);
}

void msc_quantize_kept_remove(const struct msc_env *env) {
    struct msc_arena arena = {0};
    const char *path = msc_env_host(env)->parameters_path ? kept_path(env, &arena) : NULL;
    if (path && msc_file_exists(path)) {
        (void)msc_file_remove(path); // it is of no use, and does no harm
    }
    msc_arena_finish(&arena);
}

// ---- Scales and reference outputs -------------------------------------------------------------

static enum msc_status take_arrays(const struct msc_array_log *kept, struct msc_quantize *z) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < msc_array_log_n(kept); i++) {
        const char *name = msc_array_log_name(kept, i);
        struct msc_array *array;
        if (msc_moment_is_name(name)) {
            continue;
        }
        status = msc_array_log_read(&array, kept, name);
        if (status == MSC_OK) {
            status = msc_array_list_add(&list, name, array);
            msc_array_release(array);
        }
    }
    if (status == MSC_OK) {
        status = msc_quantizer_load(z->quantizer, &list);
    }
    if (status == MSC_OK) {
        status = msc_distill_load_reference(z->runs.distill, &list);
    }
    msc_array_list_finish(&list);
    return status;
}

static bool is_complete(const struct msc_array_log *kept) {
    for (size_t i = 0; kept && i < msc_array_log_n(kept); i++) {
        if (strcmp(msc_array_log_name(kept, i), COMPLETE) == 0) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_quantize_kept_take(bool *is_there, const struct msc_array_log *kept,
                                       const struct msc_env *env, struct msc_quantize *z) {
    *is_there = false;
    if (!is_complete(kept)) {
        return MSC_OK;
    }
    enum msc_status status = take_arrays(kept, z);
    *is_there = status == MSC_OK;
    if (*is_there) {
        msc_log(msc_env_host(env)->log, MSC_LOG_INFO,
                "scales and outputs of the float model are taken from what an earlier launch has "
                "kept");
    }
    return pass_over(env, status);
}

static enum msc_status add_arrays(struct msc_array_log *kept, const struct msc_quantize *z) {
    struct msc_array_list list = {0};
    struct msc_array *mark = NULL;
    enum msc_status status = msc_quantizer_save(z->quantizer, &list);
    if (status == MSC_OK) {
        status = msc_distill_save_reference(z->runs.distill, &list);
    }
    for (size_t i = 0; status == MSC_OK && i < list.n; i++) {
        status = msc_array_log_add(kept, list.names[i], list.arrays[i]);
    }
    if (status == MSC_OK) {
        int64_t n = (int64_t)list.n;
        status = msc_array_create_from(&mark, MSC_DTYPE_I64, 0, NULL, &n);
    }
    if (status == MSC_OK) {
        status = msc_array_log_add(kept, COMPLETE, mark);
    }
    msc_array_release(mark);
    msc_array_list_finish(&list);
    return status;
}

enum msc_status msc_quantize_kept_add(struct msc_array_log **kept, const struct msc_env *env,
                                      const struct msc_quantize *z) {
    if (!*kept) {
        return MSC_OK;
    }
    enum msc_status status = add_arrays(*kept, z);
    if (status != MSC_OK) {
        msc_array_log_close(*kept);
        *kept = NULL;
    }
    return pass_over(env, status);
}
