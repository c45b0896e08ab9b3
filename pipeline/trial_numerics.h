// The numerics id under which trials are measured: this process's, or the workers' (--numerics).
#ifndef MSC_PIPELINE_TRIAL_NUMERICS_H
#define MSC_PIPELINE_TRIAL_NUMERICS_H

#include "pipeline/setup.h"

const char *msc_trial_numerics(const struct msc_setup *setup);
// True if the workers compute with other numerics than this process.
bool msc_trial_numerics_are_foreign(const struct msc_setup *setup);
// MSC_E_INVALID: the numerics differ, but there are no workers (--cluster).
enum msc_status msc_trial_numerics_check(const struct msc_setup *setup);
// True if each worker needs a GPU.
bool msc_trial_numerics_need_gpu(const struct msc_setup *setup);
// True if a numerics id belongs to a GPU.
bool msc_trial_numerics_is_gpu(const char *numerics);

#endif
