// The losses of single choices: the distill loss of the float model with one task's choice applied,
// on a few of the samples. They are features of choices (docs/agents.md), so an agent can rank
// choices before its first trial. They do not affect the results of trials.
#ifndef MSC_ENV_QUANTIZE_ALONE_H
#define MSC_ENV_QUANTIZE_ALONE_H

#include "env/quantize/internal.h"

// Sets the feature from `alone`, the array of RECORD.params. If the file was not there when the
// environment was created, measures the losses first, unless the space has few tasks or too few
// samples: measuring takes at most as long as a quarter of a trial for each task. If that is not
// enough for 8 samples, only one of several alike choices of a weight is measured, the one with the
// greatest rounding error, on as many samples as take a twentieth of a trial for each task (at
// least one). The others' losses are in proportion to their rounding errors; a float choice loses
// nothing. Needs the space and the edits of points. MSC_E_STATE: `alone` does not fit the space.
enum msc_status msc_quantize__set_alone(struct msc_env *env, struct msc_quantize *z);

#endif
