// Defaults of an environment's configuration that no table of parameters can hold: lists, objects,
// and what depends on another key.
#include "env/env.h"

#include "base/alloc.h"
#include "base/json.h"
#include "env/env_quantize.h"
#include "tools/quantizer.h"

static enum msc_status add_objective(cJSON *config, const char *metric) {
    if (cJSON_GetObjectItemCaseSensitive(config, "objectives")) {
        return MSC_OK;
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(config, "objectives", list));
    return msc_json_push(list, cJSON_CreateString(metric));
}

// ---- Quantize ---------------------------------------------------------------------------------

static enum msc_status add_choices(cJSON *config, const struct msc_quantizer_options *o) {
    if (cJSON_GetObjectItemCaseSensitive(config, "choices")) {
        return MSC_OK;
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(config, "choices", list));
    for (size_t i = 0; i < o->n_choices; i++) {
        cJSON *choice = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, choice));
        MSC_TRY(msc_json_add_number(choice, "bits", o->choices[i].bits));
        MSC_TRY(msc_json_add_number(choice, "scale", o->choices[i].range_scale));
    }
    return MSC_OK;
}

static enum msc_status set_scheme(cJSON *config, const char *key,
                                  const struct msc_operand_scheme *scheme, bool has_channels) {
    cJSON *object = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    MSC_TRY(msc_json_add(config, key, object));
    if (has_channels) {
        MSC_TRY(msc_json_add_bool(object, "per_channel", scheme->is_per_channel));
    }
    MSC_TRY(msc_json_add_bool(object, "symmetric", scheme->is_symmetric));
    return msc_json_add_bool(object, "float", scheme->is_float);
}

static enum msc_status add_quantize_defaults(cJSON *config) {
    struct msc_arena arena = {0};
    struct msc_quantizer_options o;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_quantizer_read_options(&o, config, NULL, &arena));
    MSC_TRY_OUT(add_choices(config, &o));
    MSC_TRY_OUT(set_scheme(config, "weights", &o.weights, true));
    MSC_TRY_OUT(set_scheme(config, "activations", &o.activations, false));
    status = add_objective(config, "distill_loss");
out:
    msc_arena_finish(&arena);
    return status;
}

// ---- Others -----------------------------------------------------------------------------------

// The space says its first metric, and it is known once the environment is made.
static enum msc_status add_first_metric(const struct msc_env_def *def, cJSON *config) {
    const struct msc_env_host host = {.n_threads = 1};
    struct msc_env *env = NULL;
    MSC_TRY(msc_env_create(&env, def, config, &host));
    enum msc_status status = add_objective(config, msc_env_space(env)->metrics[0].name);
    msc_env_destroy(env);
    return status;
}

static enum msc_status move_to_end(cJSON *config, const char *key) {
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(config, key);
    return item ? msc_json_add(config, key, item) : MSC_OK;
}

enum msc_status msc_env_add_defaults(const struct msc_env_def *def, struct cJSON *config) {
    if (def == &msc_env_quantize) {
        MSC_TRY(add_quantize_defaults(config));
    } else if (def->needs == 0) {
        MSC_TRY(add_first_metric(def, config));
    }
    for (const struct msc_param *p = def->params; p->name; p++) {
        MSC_TRY(move_to_end(config, p->name));
    }
    MSC_TRY(move_to_end(config, "objectives"));
    return move_to_end(config, "bounds");
}
