// The combined environment, "joint" in configurations and records: removes channels and quantises
// the rest in one space. Its tasks are those of `prune` (groups of channels), then those of
// `quantize` (weights and activations). Bounds limit the costs of both kinds of tasks together. A
// trial first repairs weights that read removed channels, then quantises them
// (tools/pruned_edits.h). Its metrics are the distill loss, accuracy if there are labels, and exact
// costs: size, bit operations, multiply-accumulates.
#ifndef MSC_ENV_COMBINED_DEFINITION_H
#define MSC_ENV_COMBINED_DEFINITION_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_combined;

#endif
