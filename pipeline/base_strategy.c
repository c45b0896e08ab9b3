#include "pipeline/base_strategy.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "records/record_files.h"
#include "model/equalize.h"
#include "tools/strategy.h"

#include <string.h>

static enum msc_status dup_strategy(struct msc_strategy **out, const struct msc_strategy *from) {
    MSC_TRY(msc_strategy_create(out, NULL));
    return msc_strategy_merge(*out, from);
}

// Fails if the result of the earlier searches has changed since the record began: the record then
// belongs to another problem.
static enum msc_status check_base(const struct msc_config_entry *e, const struct msc_strategy *base,
                                  const char *path) {
    struct msc_strategy *stored = NULL;
    bool is_there = msc_file_exists(path);
    if (is_there) {
        MSC_TRY(msc_strategy_load(&stored, path));
    }
    bool is_equal = base && stored
                        ? msc_hash_equal(msc_strategy_hash(stored), msc_strategy_hash(base))
                        : !base && !stored;
    msc_strategy_destroy(stored);
    return is_equal
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_STATE,
                     "%s: the results of the searches before %s have changed since this record "
                     "began; --restart --entry %s searches again from them",
                     e->record, e->name, e->name);
}

// Fails if the strategy file that the entry names has changed since the record began.
static enum msc_status check_hash(const struct msc_config_entry *e, const struct msc_strategy *base,
                                  const struct msc_record *record) {
    const cJSON *env = msc_json_get(msc_record_header(record), "env");
    const cJSON *old = msc_json_get(env, "base_strategy");
    char now[MSC_HASH_TEXT_BYTES];
    msc_hash_format(now, msc_strategy_hash(base));
    return !cJSON_IsString(old) || strcmp(old->valuestring, now) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "%s: %s, the strategy that the search starts from, has changed; restore "
                          "it, name another record, or begin again with --restart",
                          msc_record_path(record), e->base);
}

// Rescales channels, and says how many activations gain from it.
static enum msc_status equalize(struct msc_strategy **out, const struct msc_setup *setup,
                                const struct msc_config_entry *e) {
    size_t n = 0;
    if (*out) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: equalize needs a search that starts from the model itself, not from "
                        "the results of earlier searches",
                        e->place);
    }
    if (msc_json_get(e->env, "imatrix")) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "%s: equalize and env.imatrix exclude each other, because the importance is "
            "that of channels before they are rescaled: remove one of them",
            e->place);
    }
    const struct msc_equalize_bits bits = {
        .weights = (int32_t)msc_json_get(e->equalize, "weights")->valuedouble,
        .activations = (int32_t)msc_json_get(e->equalize, "activations")->valuedouble,
        .multiplies = cJSON_IsTrue(msc_json_get(e->equalize, "multiply")),
        .rotates = cJSON_IsTrue(msc_json_get(e->equalize, "rotate"))};
    MSC_TRY(msc_model_equalize(out, &n, setup->model, &bits));
    msc_log(setup->log, n > 0 ? MSC_LOG_INFO : MSC_LOG_WARNING,
            n > 0 ? "%s: the channels of %zu activations were rescaled"
                  : "%s: equalize finds %zu activations whose channels can be rescaled",
            e->name, n);
    return MSC_OK;
}

// A record keeps the weights that it began with, so their file is the entry's base. If nothing was
// rescaled, there is no such file, and the hash is that of no base.
static bool began_equalized(const struct msc_config_entry *e, const struct msc_record *record) {
    const cJSON *env = record ? msc_json_get(msc_record_header(record), "env") : NULL;
    const cJSON *hash = msc_json_get(env, "base_strategy");
    char none[MSC_HASH_TEXT_BYTES];
    return e->equalize && !e->base && cJSON_IsString(hash) &&
           strcmp(hash->valuestring, msc_hash_format(none, (struct msc_hash){0, 0})) != 0;
}

enum msc_status msc_base_strategy_open(struct msc_strategy **out, struct msc_setup *setup,
                                       struct msc_config_entry *e, const struct msc_record *record,
                                       enum msc_setup_mode mode) {
    const struct msc_model *model = setup->model;
    const char *path = msc_record_file(&setup->arena, e->record, MSC_RECORD_FILE_BASE);
    MSC_TRY(MSC_ALLOCATED(path));
    if (e->base && e->equalize && !record) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: base and equalize exclude each other: remove one of them", e->place);
    }
    e->base = began_equalized(e, record) ? path : e->base;
    if (e->base) {
        MSC_TRY(msc_strategy_load(out, e->base));
        if (model) {
            MSC_TRY(msc_strategy_check_weights(*out, model->graph));
        }
        return record ? check_hash(e, *out, record) : MSC_OK;
    }
    if (setup->found && model) {
        MSC_TRY(dup_strategy(out, setup->found));
    }
    if (e->equalize && model && model->dataset && !record) {
        MSC_TRY(equalize(out, setup, e));
    }
    if (record) {
        MSC_TRY(check_base(e, *out, path));
    } else if (mode == MSC_SETUP_RUN && !*out) {
        MSC_TRY(msc_file_remove(path));
    } else if (mode == MSC_SETUP_RUN) {
        MSC_TRY(msc_strategy_save(*out, model->graph, path));
    }
    e->base = *out ? path : NULL;
    return MSC_OK;
}

enum msc_status msc_base_strategy_copy(struct msc_setup *setup, struct msc_config_entry *e,
                                       const struct msc_strategy *base, const char *from) {
    const char *old = msc_record_file(&setup->arena, from, MSC_RECORD_FILE_BASE);
    const char *own = msc_record_file(&setup->arena, e->record, MSC_RECORD_FILE_BASE);
    MSC_TRY(MSC_ALLOCATED(old && own));
    if (!setup->model || !e->base || strcmp(e->base, old) != 0) {
        return MSC_OK;
    }
    e->base = own;
    return msc_file_exists(e->record) && msc_file_exists(own)
               ? MSC_OK
               : msc_strategy_save(base, setup->model->graph, own);
}
