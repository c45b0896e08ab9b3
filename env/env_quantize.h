// The `quantize` environment: which tensors of a network get how many bits, and by which observer
// their range is found. Its tasks are the quantizer's sites (or groups of them), its metrics the
// distill loss, accuracy where there are labels, and the exact costs of env/quantize_space.h.
#ifndef MSC_ENV_ENV_QUANTIZE_H
#define MSC_ENV_ENV_QUANTIZE_H

#include "env/api/env.h"

struct cJSON;
struct msc_array_list;

extern const struct msc_env_def msc_env_quantize;

enum msc_quantize_samples {
    MSC_QUANTIZE_CALIBRATION, // those of the search
    MSC_QUANTIZE_VALIDATION,  // those held out
};

// What outputs are worth that something else has computed, the exported model in its runtime say:
// adds the metrics that the search measures by running the network ("distill_loss", "accuracy" where
// there are labels) to `object`. `outputs` has an array for each output of the model, batch after
// batch of the samples along its first axis. MSC_E_UNSUPPORTED: the loss compares a tensor that is
// no output, or the environment is another one; MSC_E_NOT_FOUND: the search has no such samples.
enum msc_status msc_quantize_judge(struct cJSON *object, struct msc_env *env,
                                   enum msc_quantize_samples samples,
                                   const struct msc_array_list *outputs);

#endif
