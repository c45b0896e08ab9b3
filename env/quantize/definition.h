// The `quantize` environment: chooses the number of bits of each tensor of a network, and the
// observer that finds its range. Its tasks are the quantizer's sites or groups of them. Its metrics
// are the distill loss, accuracy if there are labels, and the exact costs of env/quantize/space.h.
#ifndef MSC_ENV_QUANTIZE_DEFINITION_H
#define MSC_ENV_QUANTIZE_DEFINITION_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_quantize;

#endif
