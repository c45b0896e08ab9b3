// Does the runtime of a target take a model that was exported for it? The exported model and the one
// that it was made of run once there, on random inputs.
#ifndef MSC_MODEL_LOAD_CHECK_H
#define MSC_MODEL_LOAD_CHECK_H

#include "base/status.h"

struct msc_target;

// MSC_E_UNSUPPORTED, and `exported` is removed: the runtime refuses it, but takes `source`, the file
// that the float model was read from. MSC_OK otherwise, also where that cannot be found out: there is no
// such runtime (`target` NULL, or not installed), or it does not take the float model either.
enum msc_status msc_load_check(const char *exported, const char *source,
                               const struct msc_target *target);

#endif
