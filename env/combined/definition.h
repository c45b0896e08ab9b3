// The combined environment, "joint" in configurations and records: which channels go and what bits the rest
// has, in one space. Its tasks are those
// of `prune` (groups of channels), then those of `quantize` (weights and activations), and a bound is one
// on what they cost together. A trial repairs weights that read channels which go, then quantises them
// (tools/pruned_edits.h). Its metrics are the distill loss, accuracy where there are labels, and exact
// costs: size, bit operations, multiply-accumulates.
#ifndef MSC_ENV_COMBINED_DEFINITION_H
#define MSC_ENV_COMBINED_DEFINITION_H

#include "env/api/env.h"

extern const struct msc_env_def msc_env_combined;

#endif
