// What comes before the space: the parameters, then scales and reference outputs, which are
// computed once and afterwards read from RECORD.params.
#include "env/quantize_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"

// ---- Parameters -------------------------------------------------------------------------------

#define FIELD(member) offsetof(struct msc_quantize, member)

const struct msc_param msc_quantize__params[] = {
    {.name = "strategy",
     .help = "what a trial is measured by",
     .offset = FIELD(strategy),
     .type = MSC_PARAM_ENUM,
     .text = "distill_loss",
     .names = "distill_loss"},
    {.name = "loss",
     .help = "distance between outputs and those of the float model",
     .offset = FIELD(loss),
     .type = MSC_PARAM_ENUM,
     .text = "mse",
     .names = "mse|kl|cosine"},
    {.name = "loss_tensors",
     .help = "tensors to compare: a list of names, or an object of names and weights "
             "(default: the model's outputs)",
     .offset = FIELD(loss_tensors),
     .type = MSC_PARAM_JSON},
    {.name = "kl_axis",
     .help = "axis of the classes, for kl; negative counts from the end",
     .offset = FIELD(kl_axis),
     .type = MSC_PARAM_I64,
     .number = -1,
     .min = -8,
     .max = 7},
    {.name = "kl_input",
     .help = "what the compared tensors hold, for kl",
     .offset = FIELD(kl_input),
     .type = MSC_PARAM_ENUM,
     .text = "logits",
     .names = "logits|probs"},
    {.name = "class_scores",
     .help = "compared tensor whose greatest entry is the class, for accuracy (default: the first)",
     .offset = FIELD(class_scores),
     .type = MSC_PARAM_TEXT},
    {.name = "target",
     .help = "runtime whose limits hold: onnx, tensorrt, openvino, tflite",
     .offset = FIELD(target),
     .type = MSC_PARAM_TEXT,
     .text = "onnx"},
    {.name = "group",
     .help = "what shares a decision: tensor, site (each use) or joint",
     .offset = FIELD(group),
     .type = MSC_PARAM_TEXT,
     .text = "tensor"},
    {.name = "choices",
     .help = "list of {bits, group_size, observer, percentile, scale}, {type} or {float} "
             "(default: 8 bits with the range scaled by 0.8, 0.9, 1, 1.1, 1.2)",
     .offset = FIELD(choices),
     .type = MSC_PARAM_JSON},
    {.name = "weights",
     .help = "{per_channel, symmetric, float} (default: true, true, false)",
     .offset = FIELD(weights),
     .type = MSC_PARAM_JSON},
    {.name = "activations",
     .help = "{symmetric, float} (default: false, true for tensorrt; false)",
     .offset = FIELD(activations),
     .type = MSC_PARAM_JSON},
    {.name = "include",
     .help = "name patterns of the tensors to quantise (default: all)",
     .offset = FIELD(include),
     .type = MSC_PARAM_JSON},
    {.name = "exclude",
     .help = "name patterns of the tensors to leave float",
     .offset = FIELD(exclude),
     .type = MSC_PARAM_JSON},
    {.name = "fix",
     .help = "name patterns and the choice that they take without a search",
     .offset = FIELD(fix),
     .type = MSC_PARAM_JSON},
    {0},
};

static enum msc_status read_loss_tensors(struct msc_quantize *z, struct msc_arena *arena) {
    struct msc_distill_options *o = &z->distill_options;
    const cJSON *item;
    if (!z->loss_tensors || cJSON_IsNull(z->loss_tensors)) {
        return MSC_OK;
    }
    bool is_list = cJSON_IsArray(z->loss_tensors);
    int n = cJSON_GetArraySize(z->loss_tensors);
    const char **names = msc_arena_array(arena, (size_t)n + 1, sizeof(names[0]));
    double *weights = msc_arena_array(arena, (size_t)n + 1, sizeof(weights[0]));
    if (!names || !weights) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for env.loss_tensors");
    }
    if ((!is_list && !cJSON_IsObject(z->loss_tensors)) || n == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.loss_tensors: expected a list of names, or an object of "
                        "names and weights");
    }
    cJSON_ArrayForEach(item, z->loss_tensors) {
        bool fits = is_list ? cJSON_IsString(item) : cJSON_IsNumber(item) && item->valuedouble > 0;
        if (!fits) {
            return MSC_FAIL(MSC_E_INVALID, "env.loss_tensors: expected %s",
                            is_list ? "names" : "positive weights");
        }
        names[o->n_tensors] = is_list ? item->valuestring : item->string;
        weights[o->n_tensors++] = is_list ? 1 : item->valuedouble;
    }
    o->tensors = names;
    o->weights = weights;
    return MSC_OK;
}

enum msc_status msc_quantize__read_options(struct msc_env *env, struct msc_quantize *z) {
    static const enum msc_loss_kind kinds[] = {MSC_LOSS_MSE, MSC_LOSS_KL, MSC_LOSS_COSINE};
    struct msc_arena *arena = msc_env_arena(env);
    z->distill_options = (struct msc_distill_options){.kind = kinds[z->loss],
                                                      .kl_axis = (int)z->kl_axis,
                                                      .kl_is_logits = z->kl_input == 0,
                                                      .class_scores = z->class_scores};
    MSC_TRY(read_loss_tensors(z, arena));
    return msc_quantizer_read_options(&z->quantizer_options, msc_env_config(env), z->target, arena);
}

// ---- Scales and reference outputs -------------------------------------------------------------

static struct msc_hash hash_list(const struct msc_array_list *list) {
    struct msc_hash h = msc_hash_bytes("params", 6);
    for (size_t i = 0; i < list->n; i++) {
        h = msc_hash_add_text(h, list->names[i]);
        h = msc_hash_combine(h, msc_array_hash(list->arrays[i]));
    }
    return h;
}

struct progress {
    const struct msc_log *log;
    size_t tenths;
};

static void tell_progress(void *payload, size_t done, size_t all) {
    struct progress *p = payload;
    size_t tenths = done * 10 / all;
    if (tenths > p->tenths) {
        p->tenths = tenths;
        msc_log(p->log, MSC_LOG_INFO, "calibrating: %zu of %zu sites", done, all);
    }
}

static enum msc_status list_parameters(const struct msc_quantize *z, struct msc_array_list *list) {
    MSC_TRY(msc_quantizer_save(z->quantizer, list));
    return msc_distill_save_reference(z->distill, list);
}

static enum msc_status compute_parameters(struct msc_env *env, struct msc_quantize *z,
                                          struct msc_array_list *list) {
    const struct msc_env_host *host = msc_env_host(env);
    struct progress progress = {.log = host->log};
    if (host->parameters_required) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s is missing: it holds the scales that this record was made with, which "
                        "cannot be computed again under other numerics",
                        host->parameters_path);
    }
    MSC_TRY(msc_distill_compute_reference(z->distill));
    MSC_TRY(msc_quantizer_calibrate(z->quantizer, msc_distill_evaluator(z->distill), tell_progress,
                                    &progress));
    MSC_TRY(list_parameters(z, list));
    return host->parameters_path ? msc_safetensors_save(host->parameters_path, list, NULL, 0)
                                 : MSC_OK;
}

static enum msc_status load_parameters(struct msc_quantize *z, const char *path,
                                       struct msc_array_list *list) {
    enum msc_status status = msc_safetensors_load(list, path);
    if (status == MSC_OK) {
        status = msc_quantizer_load(z->quantizer, list);
        if (status == MSC_OK) {
            status = msc_distill_load_reference(z->distill, list);
        }
        if (status != MSC_OK) {
            status = msc_status_prefix(status, "%s does not belong to this configuration", path);
        }
    }
    return status;
}

enum msc_status msc_quantize__get_parameters(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_array_list found = {0};
    struct msc_array_list own = {0};
    enum msc_status status;
    if (host->parameters_path && msc_file_exists(host->parameters_path)) {
        MSC_TRY_OUT(load_parameters(z, host->parameters_path, &found));
        // Hashed in our order, whatever else is in the file.
        MSC_TRY_OUT(list_parameters(z, &own));
    } else {
        MSC_TRY_OUT(compute_parameters(env, z, &own));
    }
    z->parameters = hash_list(&own);
    status = MSC_OK;
out:
    msc_array_list_finish(&found);
    msc_array_list_finish(&own);
    return status;
}
