// The `prune` environment: chooses how many channels of each group to keep, and by which criterion
// (tools/pruner.h). Its tasks are groups of channels that are removed together. Its metrics are the
// distill loss, accuracy if there are labels, and exact costs: size and multiply-accumulates.
#ifndef MSC_ENV_PRUNE_DEFINITION_H
#define MSC_ENV_PRUNE_DEFINITION_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_prune;

#endif
