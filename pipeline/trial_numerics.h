// The numerics id under which trials are measured: that of this process, or that of the workers
// (--numerics).
#ifndef MSC_PIPELINE_TRIAL_NUMERICS_H
#define MSC_PIPELINE_TRIAL_NUMERICS_H

#include "pipeline/setup.h"

const char *msc_trial_numerics(const struct msc_setup *setup);
// Do the workers compute otherwise than this process?
bool msc_trial_numerics_are_foreign(const struct msc_setup *setup);
// MSC_E_INVALID: they do, and there are no workers (--cluster).
enum msc_status msc_trial_numerics_check(const struct msc_setup *setup);
// Does each worker need a GPU?
bool msc_trial_numerics_need_gpu(const struct msc_setup *setup);
// Does a numerics id stand for a GPU?
bool msc_trial_numerics_is_gpu(const char *numerics);

#endif
