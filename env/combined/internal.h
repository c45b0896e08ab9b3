// State and functions shared by the sources of the combined environment. The environment owns a
// state of `quantize` for the bits and a state of `prune` for the channels, and joins their spaces
// and costs.
#ifndef MSC_ENV_COMBINED_INTERNAL_H
#define MSC_ENV_COMBINED_INTERNAL_H

#include "env/prune/internal.h"
#include "env/quantize/internal.h"
#include "tools/pruned_edits.h"

struct msc_combined {
    // Bits: parameters, quantizer, loss, trials and the parameters stored next to the record. Its
    // space has only the quantizer's tasks, and no metrics. Must be the first member, because
    // functions of `quantize` use it as the state.
    struct msc_quantize bits;
    struct msc_prune_env channels; // pruner and space of the groups; borrows the loss from `bits`
    const cJSON *prune;            // the configuration of `channels`
    struct msc_quantize_more more; // the pruner's part of the parameters stored next to the record

    struct msc_pruned_edits *edits;
    size_t n_channel_tasks; // tasks of channels, which come first
    struct msc_space space;
    double references[MSC_MAX_METRICS]; // the float model's values
};

extern const struct msc_env_metric msc_combined_metrics[];
// The function `metric` of the environment's definition.
const struct msc_metric *msc_combined__metric(size_t index);

// Argument of the `cost` functions of msc_combined_metrics.
struct msc_combined_costing {
    const struct msc_combined *j;
    const struct msc_quantize_inputs *in;
    struct msc_prune_factors factors;
    struct msc_prune_counter *counter;
};

// Joins the spaces of channels and bits, which must have been built, and adds their combined exact
// costs.
enum msc_status msc_combined__build_space(struct msc_combined *j,
                                          const struct msc_quantize_inputs *in,
                                          const struct msc_prune_inputs *of_channels,
                                          struct msc_arena *arena);

#endif
