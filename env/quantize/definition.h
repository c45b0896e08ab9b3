// The `quantize` environment: which tensors of a network get how many bits, and by which observer
// their range is found. Its tasks are the quantizer's sites (or groups of them), its metrics the
// distill loss, accuracy where there are labels, and the exact costs of env/quantize/space.h.
#ifndef MSC_ENV_QUANTIZE_DEFINITION_H
#define MSC_ENV_QUANTIZE_DEFINITION_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_quantize;

#endif
