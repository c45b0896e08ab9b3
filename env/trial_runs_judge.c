// Computes the metrics of the search from outputs that were computed elsewhere (msc_env_judge).
#include "base/alloc.h"
#include "env/env.h"
#include "env/trial_runs.h"

#include <math.h>

static enum msc_status find_outputs(const struct msc_array **out, const struct msc_distill *d,
                                    const struct msc_array_list *list) {
    for (size_t i = 0; i < msc_distill_n_compared(d); i++) {
        const char *name = msc_distill_compared_name(d, i);
        out[i] = msc_array_list_find(list, name);
        if (!out[i]) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "tensor %s, which the loss compares, is not an output of the model",
                            name);
        }
    }
    return MSC_OK;
}

static enum msc_status judge_outputs(cJSON *object, const struct msc_trial_runs *r,
                                     struct msc_distill *d, const struct msc_array_list *list) {
    struct msc_distill_run run = {.edits = NULL};
    const struct msc_array **outputs =
        msc_alloc_zero(msc_distill_n_compared(d), sizeof(outputs[0]));
    enum msc_status status = MSC_ALLOCATED(outputs);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(find_outputs(outputs, d, list));
    MSC_TRY_OUT(msc_distill_judge(d, &run, outputs));
    status = isfinite(run.loss) ? msc_metrics_add(object, &r->metrics, &run)
                                : MSC_FAIL(MSC_E_INVALID, "the loss is not a finite number");
out:
    msc_free(outputs);
    return status;
}

enum msc_status msc_env_judge(struct cJSON *object, struct msc_env *env,
                              enum msc_env_samples samples, const struct msc_array_list *outputs) {
    struct msc_trial_runs *r = msc_trial_runs_of(env);
    if (!r) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "environment %s has no distill loss to judge outputs by",
                        msc_env_definition(env)->name);
    }
    struct msc_distill *d = r->distill;
    if (samples == MSC_SAMPLES_VALIDATION) {
        MSC_TRY(msc_trial_runs_get_validated(&d, env, r));
    }
    return d ? judge_outputs(object, r, d, outputs)
             : MSC_FAIL(MSC_E_NOT_FOUND, "there are no validation samples");
}
