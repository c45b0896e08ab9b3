#include "env/quantize/kept.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"
#include "tools/moment_file.h"

#include <string.h>

#define PREPARED_ENDING ".prepared"
#define COMPLETE "observed" // array after the others that contains their number
#define IDENTITY "identity" // in the metadata of RECORD.params
#define CONTENT "content"   // likewise
#define ANEW "scales and reference outputs are computed again"

enum msc_status msc_quantize_kept_list(const struct msc_quantize *z, struct msc_array_list *list) {
    MSC_TRY(msc_quantizer_save(z->quantizer, list));
    MSC_TRY(msc_distill_save_reference(z->runs.distill, list));
    return z->more ? z->more->save(z->more->payload, list) : MSC_OK;
}

enum msc_status msc_quantize_kept_load(struct msc_quantize *z, const struct msc_array_list *list) {
    MSC_TRY(msc_quantizer_load(z->quantizer, list));
    MSC_TRY(msc_distill_load_reference(z->runs.distill, list));
    const struct msc_array *alone = msc_array_list_find(list, MSC_QUANTIZE_ALONE);
    msc_array_release(z->alone);
    z->alone = alone ? msc_array_retain(alone) : NULL;
    return z->more ? z->more->load(z->more->payload, list) : MSC_OK;
}

// ---- RECORD.moments ----------------------------------------------------------------------------

enum msc_status msc_quantize_kept_open(struct msc_array_log **out, const struct msc_env *env,
                                       const struct msc_quantize *z) {
    *out = NULL;
    return msc_quantizer_has_rounding(z->quantizer) ? msc_preparation_open(out, env) : MSC_OK;
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
                "reusing the scales and the float model's outputs of an interrupted launch");
    }
    return msc_preparation_pass_over(env, status, MSC_PREPARATION_NOT_KEPT);
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
    return msc_preparation_pass_over(env, status, MSC_PREPARATION_NOT_KEPT);
}

// ---- The whole preparation of a launch that ended before its record began ----------------------

// Hashes everything except latencies.
static enum msc_status hash_content(struct msc_hash *out, const struct msc_quantize *z) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_quantize_kept_list(z, &list);
    *out = msc_preparation_hash(&list);
    msc_array_list_finish(&list);
    return status;
}

// Includes the contents of the importance file, of which the configuration has only the name.
static enum msc_status kept_identity(struct msc_hash *out, const struct msc_env *env,
                                     const struct msc_quantize *z) {
    struct msc_hash importance = msc_quantizer_importance_hash(z->quantizer);
    MSC_TRY(msc_preparation_identity(out, env));
    if (z->quantizer_options.imatrix) {
        *out = msc_hash_combine(*out, importance);
    }
    return MSC_OK;
}

enum msc_status msc_quantize_kept_save(const struct msc_array_list *list, const struct msc_env *env,
                                       const struct msc_quantize *z) {
    char texts[2][MSC_HASH_TEXT_BYTES];
    struct msc_hash identity, content;
    MSC_TRY(kept_identity(&identity, env, z));
    MSC_TRY(hash_content(&content, z));
    const char *const metadata[][2] = {{IDENTITY, msc_hash_format(texts[0], identity)},
                                       {CONTENT, msc_hash_format(texts[1], content)}};
    return msc_safetensors_save(msc_env_host(env)->parameters_path, list, metadata, 2);
}

// Whether a file's metadata have the expected hash under `key`.
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
    MSC_TRY_OUT(msc_quantize_kept_load(z, &list));
    MSC_TRY_OUT(hash_content(&content, z));
    status = says_so(is_whole, path, CONTENT, content);
out:
    if (status != MSC_OK || !*is_whole) {
        msc_array_release(z->alone);
        z->alone = NULL;
    }
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status take_prepared(bool *is_there, const char *path, const struct msc_env *env,
                                     struct msc_quantize *z) {
    struct msc_hash identity;
    bool is_ours;
    MSC_TRY(kept_identity(&identity, env, z));
    MSC_TRY(says_so(&is_ours, path, IDENTITY, identity));
    MSC_TRY(is_ours ? take_content(is_there, path, z) : MSC_OK);
    return is_ours && !*is_there ? MSC_FAIL(MSC_E_FORMAT, "%s: the file is damaged", path) : MSC_OK;
}

enum msc_status msc_quantize_kept_take_prepared(bool *is_there, const struct msc_env *env,
                                                struct msc_quantize *z) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    *is_there = false;
    if (!msc_env_host(env)->parameters_path) {
        return MSC_OK;
    }
    const char *path = msc_preparation_path(env, PREPARED_ENDING, &arena);
    if (!path) {
        status = MSC_FAIL(MSC_E_NOMEM, "not enough memory for the files next to the record");
    } else if (msc_file_exists(path)) {
        status = take_prepared(is_there, path, env, z);
    }
    if (*is_there) {
        msc_log(msc_env_host(env)->log, MSC_LOG_INFO,
                "reusing the complete preparation of an earlier launch");
    }
    msc_arena_finish(&arena);
    return msc_preparation_pass_over(env, status, ANEW);
}
