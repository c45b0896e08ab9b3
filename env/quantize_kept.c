#include "env/quantize_kept.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"
#include "kernels/backend.h"
#include "tools/linear_algebra.h"
#include "tools/moment_file.h"
#include "tools/strategy.h"

#include <string.h>

#define PARAMETERS_ENDING ".params"
#define MOMENTS_ENDING ".moments"
#define PREPARED_ENDING ".prepared"
#define COMPLETE "observed" // of how many arrays, behind them
#define IDENTITY "identity" // in the metadata of RECORD.params
#define CONTENT "content"   // likewise
#define NOT_KEPT "what is worked out before the first trial is not kept until it is done"
#define ANEW "all that trials rest on is worked out anew"
#define VERSION "1" // rises when ranges are observed, rows sampled or weights rounded otherwise

// Of a file beside the record. NULL: out of memory.
static char *kept_path(const struct msc_env *env, const char *file_ending,
                       struct msc_arena *arena) {
    const char *path = msc_env_host(env)->parameters_path;
    size_t length = strlen(path), ending = sizeof PARAMETERS_ENDING - 1;
    bool has_ending = length > ending && strcmp(path + length - ending, PARAMETERS_ENDING) == 0;
    return msc_arena_printf(arena, "%.*s%s", (int)(has_ending ? length - ending : length), path,
                            file_ending);
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
static enum msc_status pass_over(const struct msc_env *env, enum msc_status why,
                                 const char *consequence) {
    if (why != MSC_OK && why != MSC_E_NOMEM) {
        msc_log(msc_env_host(env)->log, MSC_LOG_WARNING, "%s; %s", msc_status_message(),
                consequence);
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
    const char *path = kept_path(env, MOMENTS_ENDING, &arena);
    enum msc_status status =
        path ? msc_array_log_open(out, path, identity, msc_env_host(env)->log)
             : MSC_FAIL(MSC_E_NOMEM, "out of memory for what is kept beside a record");
    msc_arena_finish(&arena);
    return pass_over(env, status, NOT_KEPT);
}

void msc_quantize_kept_remove(const struct msc_env *env) {
    struct msc_arena arena = {0};
    const char *path =
        msc_env_host(env)->parameters_path ? kept_path(env, MOMENTS_ENDING, &arena) : NULL;
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
    return pass_over(env, status, NOT_KEPT);
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
    return pass_over(env, status, NOT_KEPT);
}

// ---- All of it, of a launch that was ended before its record began ----------------------------

// Of all but latencies.
static enum msc_status hash_content(struct msc_hash *out, const struct msc_quantize *z) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_quantize__save(z, &list);
    *out = msc_quantize__hash_list(&list);
    msc_array_list_finish(&list);
    return status;
}

enum msc_status msc_quantize_kept_save(const struct msc_array_list *list, const struct msc_env *env,
                                       const struct msc_quantize *z) {
    char texts[2][MSC_HASH_TEXT_BYTES];
    struct msc_hash identity, content;
    MSC_TRY(kept_identity(&identity, env));
    MSC_TRY(hash_content(&content, z));
    const char *const metadata[][2] = {{IDENTITY, msc_hash_format(texts[0], identity)},
                                       {CONTENT, msc_hash_format(texts[1], content)}};
    return msc_safetensors_save(msc_env_host(env)->parameters_path, list, metadata, 2);
}

// Does the metadata of a file say so?
static enum msc_status says_so(bool *out, const char *path, const char *key,
                               struct msc_hash expected) {
    char text[MSC_HASH_TEXT_BYTES], *found;
    *out = false;
    enum msc_status status = msc_safetensors_metadata(&found, path, key);
    if (status == MSC_OK) {
        *out = strcmp(found, msc_hash_format(text, expected)) == 0;
        msc_free(found);
    }
    return status == MSC_E_NOT_FOUND ? MSC_OK : status;
}

static enum msc_status take_content(bool *is_whole, const char *path, struct msc_quantize *z) {
    struct msc_array_list list = {0};
    struct msc_hash content;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_safetensors_load(&list, path));
    MSC_TRY_OUT(msc_quantize__load(z, &list));
    MSC_TRY_OUT(hash_content(&content, z));
    status = says_so(is_whole, path, CONTENT, content);
out:
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status take_prepared(bool *is_there, const char *path, const struct msc_env *env,
                                     struct msc_quantize *z) {
    struct msc_hash identity;
    bool is_ours;
    MSC_TRY(kept_identity(&identity, env));
    MSC_TRY(says_so(&is_ours, path, IDENTITY, identity));
    MSC_TRY(is_ours ? take_content(is_there, path, z) : MSC_OK);
    return is_ours && !*is_there ? MSC_FAIL(MSC_E_FORMAT, "%s: it is damaged", path) : MSC_OK;
}

enum msc_status msc_quantize_kept_take_prepared(bool *is_there, const struct msc_env *env,
                                                struct msc_quantize *z) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    *is_there = false;
    if (!msc_env_host(env)->parameters_path) {
        return MSC_OK;
    }
    const char *path = kept_path(env, PREPARED_ENDING, &arena);
    if (!path) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for what is kept beside a record");
    } else if (msc_file_exists(path)) {
        status = take_prepared(is_there, path, env, z);
    }
    if (*is_there) {
        msc_log(msc_env_host(env)->log, MSC_LOG_INFO,
                "all that trials rest on is taken from what an earlier launch has prepared");
    }
    msc_arena_finish(&arena);
    return pass_over(env, status, ANEW);
}
