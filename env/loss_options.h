// The parameters of the distill loss, shared by the environments that use it.
//
//     MSC_LOSS_PARAMS(offsetof(struct state, loss)),          // rows of the table of parameters
//     MSC_TRY(msc_loss_options_read(&options, &state->loss, arena));
#ifndef MSC_ENV_LOSS_OPTIONS_H
#define MSC_ENV_LOSS_OPTIONS_H

#include "base/json.h"
#include "base/param.h"
#include "env/distill.h"

struct msc_loss_options {
    int strategy;
    int loss; // enum msc_loss_kind
    int64_t kl_axis;
    int kl_input;
    const char *class_scores;
    const cJSON *loss_tensors;
};

#define MSC_LOSS_FIELD(base, member) ((base) + offsetof(struct msc_loss_options, member))

// clang-format off
#define MSC_LOSS_PARAMS(base) \
    {.name = "strategy",                                                                           \
     .help = "how trials are measured: by the distance of outputs from the float model's",         \
     .offset = MSC_LOSS_FIELD(base, strategy),                                                     \
     .type = MSC_PARAM_ENUM,                                                                       \
     .text = "distill_loss",                                                                       \
     .names = "distill_loss"},                                                                     \
    {.name = "loss",                                                                               \
     .help = "distance of the outputs from the float model's, which the search minimises",         \
     .offset = MSC_LOSS_FIELD(base, loss),                                                         \
     .type = MSC_PARAM_ENUM,                                                                       \
     .text = "mse",                                                                                \
     .names = MSC_LOSS_NAMES},                                                                     \
    {.name = "loss_tensors",                                                                       \
     .help = "tensors to compare: a list of names, an object of names and weights, or auto: "      \
             "outputs, or tensors before discontinuous operators (default: the model's outputs)", \
     .offset = MSC_LOSS_FIELD(base, loss_tensors),                                                 \
     .type = MSC_PARAM_JSON},                                                                      \
    {.name = "kl_axis",                                                                            \
     .help = "axis of the classes, for loss kl; negative counts from the end",                     \
     .offset = MSC_LOSS_FIELD(base, kl_axis),                                                      \
     .type = MSC_PARAM_I64,                                                                        \
     .number = -1,                                                                                 \
     .min = -8,                                                                                    \
     .max = 7},                                                                                    \
    {.name = "kl_input",                                                                           \
     .help = "content of the compared tensors, for loss kl: logits or probabilities",              \
     .offset = MSC_LOSS_FIELD(base, kl_input),                                                     \
     .type = MSC_PARAM_ENUM,                                                                       \
     .text = "logits",                                                                             \
     .names = "logits|probs"},                                                                     \
    {.name = "class_scores",                                                                       \
     .help = "compared tensor whose greatest entry is the class, for accuracy (default: the first)", \
     .offset = MSC_LOSS_FIELD(base, class_scores),                                                 \
     .type = MSC_PARAM_TEXT}
// clang-format on

// Arrays are allocated in the arena; names are borrowed from the JSON.
enum msc_status msc_loss_options_read(struct msc_distill_options *out,
                                      const struct msc_loss_options *from, struct msc_arena *arena);
// Adds the default objective, the distill loss, if the configuration has no objectives.
enum msc_status msc_loss_options_complete(cJSON *config);

#endif
