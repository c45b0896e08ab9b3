// The prune environment's parameters, and the defaults of those that are lists.
#include "base/alloc.h"
#include "env/prune_internal.h"

#define FIELD(member) offsetof(struct msc_prune_env, member)

const struct msc_param msc_prune_env__params[] = {
    MSC_LOSS_PARAMS(FIELD(loss)),
    {.name = "choices",
     .help = "list of {density, criterion}: the share of channels that stays, and what says which: "
             "l1, l2, energy, hessian, loss (default: densities 0.8, 0.7 to 0.2, by hessian)",
     .offset = FIELD(choices),
     .type = MSC_PARAM_JSON},
    {.name = "round_to",
     .help = "what stays of a group is a multiple of so many channels, where it has twice as many; "
             "1: any number",
     .offset = FIELD(round_to),
     .type = MSC_PARAM_I64,
     .number = 8,
     .min = 1,
     .max = 4096},
    {.name = "repair",
     .help = "weights that read channels make up, by least squares, for those that go",
     .offset = FIELD(repairs),
     .type = MSC_PARAM_BOOL,
     .number = 1},
    {.name = "ridge",
     .help = "how firmly these are held to what they were, in shares of their inputs' mean square",
     .offset = FIELD(ridge),
     .type = MSC_PARAM_F64,
     .number = 1e-3,
     .min = 1e-9,
     .max = 1e3},
    {.name = "rows",
     .help = "places of the inputs of each weight that second moments are taken of, at most",
     .offset = FIELD(n_rows),
     .type = MSC_PARAM_I64,
     .number = 32768,
     .min = 1,
     .max = 1e9},
    {.name = "include",
     .help =
         "name patterns of the groups to prune, as mscgym graph --channels lists them (default: "
         "all)",
     .offset = FIELD(include),
     .type = MSC_PARAM_JSON},
    {.name = "exclude",
     .help = "name patterns of the groups to leave whole",
     .offset = FIELD(exclude),
     .type = MSC_PARAM_JSON},
    {0},
};

static enum msc_status complete_choices(cJSON *config, const struct msc_pruner_options *o) {
    static const char *const names[] = {"l1", "l2", "energy", "hessian", "loss"};
    cJSON *list = cJSON_CreateArray();
    cJSON_DeleteItemFromObjectCaseSensitive(config, "choices");
    MSC_TRY(msc_json_add(config, "choices", list));
    for (size_t i = 0; i < o->n_choices; i++) {
        cJSON *choice = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, choice));
        MSC_TRY(msc_json_add_number(choice, "density", o->choices[i].density));
        MSC_TRY(msc_json_add_text(choice, "criterion", names[o->choices[i].criterion]));
    }
    return MSC_OK;
}

enum msc_status msc_prune_env__complete(cJSON *config) {
    struct msc_arena arena = {0};
    struct msc_pruner_options o = {0};
    enum msc_status status = msc_pruner_read_options(&o, config, &arena);
    if (status == MSC_OK && !cJSON_GetObjectItemCaseSensitive(config, "choices")) {
        status = complete_choices(config, &o);
    }
    if (status == MSC_OK) {
        status = msc_loss_options_complete(config);
    }
    msc_arena_finish(&arena);
    return status;
}
