// Reads and writes the keys of the steps that follow a search: `runtime`, `rerank` and `distill`,
// and the key `equalize` of the step before it.
#include "config/config_internal.h"

#include "env/quantize/distill.h"
#include "tools/command.h"

enum msc_status msc_config__read_runtime(struct msc_config *c, struct msc_config_runtime *out,
                                         const cJSON *value, const char *where) {
    struct msc_config_runtime_keys keys;
    if (value && !cJSON_IsObject(value) && !cJSON_IsBool(value)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %s: expected {\"name\", \"threads\", \"rounds\"}, or false", c->path,
                        where);
    }
    MSC_TRY(msc_config__read(c, msc_config__runtime_params, &keys,
                             cJSON_IsObject(value) ? value : NULL, where));
    *out = (struct msc_config_runtime){.is_wanted = !cJSON_IsFalse(value),
                                       .name = keys.name,
                                       .threads = keys.threads,
                                       .rounds = keys.rounds};
    return MSC_OK;
}

static enum msc_status read_command(struct msc_config *c, cJSON *out, const cJSON *value,
                                    const char *place) {
    struct msc_command command;
    MSC_TRY(msc_command_read(&command, value, place, &c->arena));
    if (msc_command_wants(&command, "{outputs}")) {
        return MSC_FAIL(MSC_E_INVALID, "%s: {outputs} is not available here: use {model}", place);
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
        return value ? MSC_FAIL(MSC_E_NOMEM, "out of memory") : MSC_OK;
    }
    msc_param_defaults(msc_config__rerank_params, &keys);
    MSC_TRY(msc_param_read(msc_config__rerank_params, &keys, value, place, NULL, &c->arena));
    cJSON *rerank = cJSON_CreateObject();
    enum msc_status status = rerank ? msc_json_add_number(rerank, "top", (double)keys.top)
                                    : MSC_FAIL(MSC_E_NOMEM, "out of memory");
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

enum msc_status msc_config__read_equalize(struct msc_config *c, cJSON **out, const cJSON *value,
                                          const char *place) {
    struct msc_config_equalize keys;
    *out = NULL;
    if (!value || cJSON_IsFalse(value)) {
        return MSC_OK;
    }
    if (!cJSON_IsTrue(value) && !cJSON_IsObject(value)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected true, false or {\"weights\", \"activations\"}",
                        place);
    }
    msc_param_defaults(msc_config__equalize_params, &keys);
    MSC_TRY(msc_param_read(msc_config__equalize_params, &keys, cJSON_IsObject(value) ? value : NULL,
                           place, NULL, &c->arena));
    *out = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(*out));
    return msc_param_write(msc_config__equalize_params, &keys, *out);
}

// Checks `ridge` and adds it to `out` as a list; if it is missing, adds the default.
static enum msc_status write_ridges(cJSON *out, const cJSON *ridge, const char *place) {
    static const double usual[] = {0.5, 0.1};
    cJSON *list = !ridge                 ? cJSON_CreateDoubleArray(usual, 2)
                  : cJSON_IsArray(ridge) ? cJSON_Duplicate(ridge, true)
                                         : cJSON_CreateArray();
    const cJSON *item = NULL;
    MSC_TRY(msc_json_add(out, "ridge", list));
    if (ridge && !cJSON_IsArray(ridge)) {
        MSC_TRY(msc_json_push(list, cJSON_Duplicate(ridge, true)));
    }
    int n = cJSON_GetArraySize(list);
    bool fits = n >= 1 && n <= MSC_QUANTIZE_MOST_RIDGES;
    cJSON_ArrayForEach(item, list) {
        fits =
            fits && cJSON_IsNumber(item) && item->valuedouble >= 1e-6 && item->valuedouble <= 1e6;
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID,
                           "%s: expected a number from 1e-6 to 1e6, or a list of up to %d of them",
                           place, MSC_QUANTIZE_MOST_RIDGES);
}

enum msc_status msc_config__read_distill(struct msc_config *c, cJSON **out, const cJSON *value,
                                         const char *place) {
    struct msc_config_distill keys;
    const char *of_ridge = msc_config__text(c, "%s.ridge", place);
    *out = NULL;
    if (!value || cJSON_IsFalse(value) || !of_ridge) {
        return MSC_ALLOCATED(of_ridge);
    }
    if (!cJSON_IsTrue(value) && !cJSON_IsObject(value)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected true, false or {\"ridge\", \"held_back\"}",
                        place);
    }
    msc_param_defaults(msc_config__distill_params, &keys);
    MSC_TRY(msc_param_read(msc_config__distill_params, &keys, cJSON_IsObject(value) ? value : NULL,
                           place, NULL, &c->arena));
    cJSON *distill = cJSON_CreateObject();
    enum msc_status status = distill ? write_ridges(distill, keys.ridge, of_ridge)
                                     : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = msc_json_add_number(distill, "held_back", keys.held_back);
    }
    if (status != MSC_OK) {
        cJSON_Delete(distill);
        return status;
    }
    *out = distill;
    return MSC_OK;
}

enum msc_status msc_config__write_runtime(cJSON *section, const struct msc_config_runtime *runtime,
                                          bool is_full) {
    struct msc_config_runtime_keys usual;
    const struct msc_config_runtime_keys keys = {runtime->name, runtime->threads, runtime->rounds};
    if (!runtime->is_wanted) {
        return msc_json_add_bool(section, "runtime", false);
    }
    msc_param_defaults(msc_config__runtime_params, &usual);
    if (!is_full && !keys.name && keys.threads == usual.threads && keys.rounds == usual.rounds) {
        return MSC_OK;
    }
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(section, "runtime", object));
    return msc_param_write(msc_config__runtime_params, &keys, object);
}
