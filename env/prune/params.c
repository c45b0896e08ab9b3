// The `prune` environment's parameter table, and the defaults of parameters that are lists.
#include "base/alloc.h"
#include "env/metric_command.h"
#include "env/prune/internal.h"

#define FIELD(member) offsetof(struct msc_prune_env, member)

const struct msc_param msc_prune_env__params[] = {
    MSC_LOSS_PARAMS(FIELD(loss)),
    MSC_PRUNE_PARAMS(0),
    MSC_COMMAND_PARAM(FIELD(asked_command)),
    {0},
};

static enum msc_status write_choices(cJSON *config, const struct msc_pruner_options *o) {
    cJSON *list = cJSON_CreateArray();
    cJSON_DeleteItemFromObjectCaseSensitive(config, "choices");
    MSC_TRY(msc_json_add(config, "choices", list));
    for (size_t i = 0; i < o->n_choices; i++) {
        cJSON *choice = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, choice));
        MSC_TRY(msc_json_add_number(choice, "density", o->choices[i].density));
        MSC_TRY(
            msc_json_add_text(choice, "criterion", msc_criterion_name(o->choices[i].criterion)));
    }
    return MSC_OK;
}

enum msc_status msc_prune_env__complete_choices(cJSON *config) {
    struct msc_arena arena = {0};
    struct msc_pruner_options o = {0};
    enum msc_status status = msc_pruner_read_options(&o, config, &arena);
    if (status == MSC_OK && !msc_json_get(config, "choices")) {
        status = write_choices(config, &o);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_prune_env__complete(cJSON *config) {
    MSC_TRY(msc_prune_env__complete_choices(config));
    return msc_loss_options_complete(config);
}
