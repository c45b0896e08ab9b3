// Do the samples, and what the network gives for them, differ at all? Where they do not, whatever a plan
// does to the network goes unseen.
//
//     struct cJSON *found;
//     MSC_TRY(msc_sameness_find(&found, model, env, "quantize[0]", log));
#ifndef MSC_MODEL_SAMENESS_H
#define MSC_MODEL_SAMENESS_H

#include "env/env.h"
#include "model/model.h"

struct cJSON;

// Warns, with `name` in front, of calibration samples that are all the same, and of outputs that are the
// same for all of them. *out, the caller's, is NULL where there is nothing to say, or has
//
//     "same"     true: several samples, all the same
//     "dead"     tensors behind which nothing varies, though the samples do: all that the loss compares
//                is the same for all of them
//     "unshared" 0: samples for validation were given, and all of them are calibration samples
//
// of which a report says what it means (results/report_sameness.h). Outputs are looked at where the
// environment has a distill loss, whose reference is there.
enum msc_status msc_sameness_find(struct cJSON **out, const struct msc_model *model,
                                  const struct msc_env *env, const char *name,
                                  const struct msc_log *log);

#endif
