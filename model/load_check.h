// Checks that the runtime of a target accepts a model exported for it: runs the exported model and
// the float model there, once each, on random inputs.
#ifndef MSC_MODEL_LOAD_CHECK_H
#define MSC_MODEL_LOAD_CHECK_H

#include "base/status.h"

struct msc_target;

// MSC_E_UNSUPPORTED: the runtime accepts `source`, the file of the float model, but refuses
// `exported`, which is removed. MSC_OK otherwise, also if the check is not possible: `target` is
// NULL, the runtime is not installed, it refuses the float model too, or it does not read files
// with the ending of `exported`. Without such a file of the float model, a refusal of `exported`
// counts.
enum msc_status msc_load_check(const char *exported, const char *source,
                               const struct msc_target *target);

#endif
