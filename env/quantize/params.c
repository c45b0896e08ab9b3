// The `quantize` environment's parameter table, and the defaults of parameters that are lists or
// objects.
#include "env/metric_command.h"
#include "env/quantize/internal.h"

#include "base/alloc.h"
#include "base/file.h"

#define FIELD(member) offsetof(struct msc_quantize, member)

const struct msc_param msc_quantize__params[] = {
    MSC_LOSS_PARAMS(FIELD(loss)),
    MSC_QUANTIZE_PARAMS(0),
    MSC_COMMAND_PARAM(FIELD(asked_command)),
    {0},
};

enum msc_status msc_quantize__read_options(struct msc_env *env, struct msc_quantize *z) {
    struct msc_arena *arena = msc_env_arena(env);
    struct msc_loss_options loss = z->loss;
    bool is_named = loss.loss_tensors && !cJSON_IsNull(loss.loss_tensors);
    loss.loss_tensors = is_named ? loss.loss_tensors : z->outputs;
    MSC_TRY(msc_loss_options_read(&z->distill_options, &loss, arena));
    if (z->asked_command) {
        MSC_TRY(msc_command_read(&z->command, z->asked_command, "env.command", arena));
    }
    MSC_TRY(
        msc_quantizer_read_options(&z->quantizer_options, msc_env_config(env), z->target, arena));
    if (z->quantizer_options.imatrix) {
        z->quantizer_options.imatrix = msc_path_join(arena, msc_env_host(env)->folder, z->imatrix);
        return MSC_ALLOCATED(z->quantizer_options.imatrix);
    }
    return MSC_OK;
}

// ---- Defaults that the table cannot hold ------------------------------------------------------

static enum msc_status complete_choices(cJSON *config, const struct msc_quantizer_options *o) {
    if (msc_json_get(config, "choices")) {
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

static enum msc_status complete_scheme(cJSON *config, const char *key,
                                       const struct msc_operand_scheme *scheme, bool is_weight) {
    cJSON *object = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    MSC_TRY(msc_json_add(config, key, object));
    // The scheme of activations has this key only if it is true.
    if (is_weight || scheme->is_per_channel) {
        MSC_TRY(msc_json_add_bool(object, "per_channel", scheme->is_per_channel));
    }
    MSC_TRY(msc_json_add_bool(object, "symmetric", scheme->is_symmetric));
    return msc_json_add_bool(object, "float", scheme->is_float);
}

enum msc_status msc_quantize__complete(cJSON *config) {
    struct msc_arena arena = {0};
    struct msc_quantizer_options o;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_quantizer_read_options(&o, config, NULL, &arena));
    MSC_TRY_OUT(complete_choices(config, &o));
    MSC_TRY_OUT(complete_scheme(config, "weights", &o.weights, true));
    MSC_TRY_OUT(complete_scheme(config, "activations", &o.activations, false));
    status = msc_loss_options_complete(config);
out:
    msc_arena_finish(&arena);
    return status;
}
