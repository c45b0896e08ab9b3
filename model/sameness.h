// Detects samples that are all the same, and outputs that are the same for all samples. In both
// cases losses do not show what a plan does to the network.
//
//     struct cJSON *found;
//     MSC_TRY(msc_sameness_find(&found, model, env, "quantize[0]", log));
#ifndef MSC_MODEL_SAMENESS_H
#define MSC_MODEL_SAMENESS_H

#include "env/env.h"
#include "model/model.h"

struct cJSON;

// Logs warnings that begin with `name`. *out, owned by the caller, is NULL if there is nothing to
// report, or has
//
//     "same"     true: there are several samples, all the same
//     "dead"     names of tensors: the samples differ, but nothing varies after these tensors, so
//                everything the loss compares is the same for all samples
//     "unshared" 0: all given validation samples are calibration samples
//
// for a report to explain (results/report_sameness.h). Outputs are checked only if the environment
// has a distill loss, because only then are reference outputs computed.
enum msc_status msc_sameness_find(struct cJSON **out, const struct msc_model *model,
                                  const struct msc_env *env, const char *name,
                                  const struct msc_log *log);

#endif
