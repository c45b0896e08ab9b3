// Prints help on every key of a configuration, as text or JSON, section by section.
#include "config/config_internal.h"

#include "base/str.h"
#include "tools/command.h"

const struct msc_param msc_config__race_params[] = {
    {.name = "rungs",
     .help =
         "numbers of batches after which trials are compared; default 1, 2, 4, ..., half of all",
     .type = MSC_PARAM_JSON},
    {.name = "keep",
     .help = "share of a round's trials that continue after a rung; default 0.5",
     .type = MSC_PARAM_JSON},
    {.name = "margin",
     .help = "ends a trial that is worse than the best so far by this many standard errors; false: "
             "never; default 1.5",
     .type = MSC_PARAM_JSON},
    {0},
};

static const struct {
    const char *title;
    const struct msc_param *params;
} parts[] = {
    {"top level", msc_config__top_params},
    {"passes[N]", msc_config__pass_params},
    {"dataset", msc_config__data_params},
    {"dataset.image", msc_config__image_params},
    {"dataset.validation", msc_config__validation_params},
    {"baseline.check_config", msc_config__check_params},
    {"prune, joint and quantize", msc_config__section_params},
    {"quantize.runtime", msc_config__runtime_params},
    {"quantize.gym[N], prune.gym[N], joint.gym[N] and gym[N]", msc_config__gym_params},
    {"quantize.gym[N].race", msc_config__race_params},
    {"quantize.gym[N].rerank", msc_config__rerank_params},
    {"quantize.gym[N].rerank.command and env.command", msc_command_params},
    {"quantize.gym[N].distill", msc_config__distill_params},
    {"quantize.gym[N].equalize", msc_config__equalize_params},
    {"quantize.gym[N].budget", msc_config__budget_params},
    {"profile", msc_config__profile_params},
    {"parse", msc_config__parse_params},
    {"optimize", msc_config__optimize_params},
    {"track", msc_config__track_params},
    {"compile", msc_config__compile_params},
    {"export", msc_config__export_params},
};

void msc_config_help(struct msc_str *out) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        msc_str_printf(out, "%s%s:\n", i > 0 ? "\n" : "", parts[i].title);
        msc_param_help(parts[i].params, out);
    }
}

enum msc_status msc_config_describe(struct cJSON *list) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cJSON *part = cJSON_CreateObject(), *keys = cJSON_CreateArray();
        enum msc_status status = msc_json_push(list, part);
        if (status != MSC_OK) {
            cJSON_Delete(keys);
            return status;
        }
        MSC_TRY(msc_json_add(part, "keys", keys));
        MSC_TRY(msc_json_add_text(part, "section", parts[i].title));
        MSC_TRY(msc_param_describe(parts[i].params, keys));
    }
    return MSC_OK;
}
