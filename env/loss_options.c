#include "env/loss_options.h"

#include "base/alloc.h"

#include <string.h>

static enum msc_status read_loss_tensors(struct msc_distill_options *o, const cJSON *given,
                                         struct msc_arena *arena) {
    const cJSON *item;
    o->takes_before = cJSON_IsString(given) && strcmp(given->valuestring, "auto") == 0;
    if (!given || cJSON_IsNull(given) || o->takes_before) {
        return MSC_OK;
    }
    bool is_list = cJSON_IsArray(given);
    int n = cJSON_GetArraySize(given);
    const char **names = msc_arena_array(arena, (size_t)n + 1, sizeof(names[0]));
    double *weights = msc_arena_array(arena, (size_t)n + 1, sizeof(weights[0]));
    MSC_TRY(MSC_ALLOCATED(names && weights));
    if ((!is_list && !cJSON_IsObject(given)) || n == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.loss_tensors: expected a list of names, an object of names and "
                        "weights, or \"auto\"");
    }
    cJSON_ArrayForEach(item, given) {
        bool fits = is_list ? cJSON_IsString(item) : cJSON_IsNumber(item) && item->valuedouble > 0;
        if (!fits) {
            return MSC_FAIL(MSC_E_INVALID, "env.loss_tensors: expected %s",
                            is_list ? "names of tensors (strings)" : "positive weights");
        }
        names[o->n_tensors] = is_list ? item->valuestring : item->string;
        weights[o->n_tensors++] = is_list ? 1 : item->valuedouble;
    }
    o->tensors = names;
    o->weights = weights;
    return MSC_OK;
}

enum msc_status msc_loss_options_read(struct msc_distill_options *out,
                                      const struct msc_loss_options *from,
                                      struct msc_arena *arena) {
    *out = (struct msc_distill_options){.kind = (enum msc_loss_kind)from->loss,
                                        .kl_axis = (int)from->kl_axis,
                                        .kl_is_logits = from->kl_input == 0,
                                        .class_scores = from->class_scores};
    return read_loss_tensors(out, from->loss_tensors, arena);
}

enum msc_status msc_loss_options_complete(cJSON *config) {
    if (msc_json_get(config, "objectives")) {
        return MSC_OK;
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(config, "objectives", list));
    return msc_json_push(list, cJSON_CreateString("distill_loss"));
}
