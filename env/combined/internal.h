// What the combined environment's sources share.
#ifndef MSC_ENV_COMBINED_INTERNAL_H
#define MSC_ENV_COMBINED_INTERNAL_H

#include "env/prune/internal.h"
#include "env/quantize/internal.h"
#include "tools/pruned_edits.h"

struct msc_combined {
    // Bits: parameters, quantizer, loss, trials and all that is kept beside the record; its space is
    // that of the quantizer's tasks alone, without metrics. The first member (env/trial_runs.c).
    struct msc_quantize bits;
    struct msc_prune_env channels; // the same of groups; its runs have the loss, borrowed
    const cJSON *prune;            // parameters of groups
    struct msc_quantize_more more; // the pruner's part of what is kept beside the record

    struct msc_pruned_edits *edits;
    size_t n_channel_tasks; // that come first
    struct msc_space space;
    double references[MSC_MAX_METRICS]; // of the float model
};

extern const struct msc_env_metric msc_combined_metrics[];
// The environment's `metric`.
const struct msc_metric *msc_combined__metric(size_t index);

// What functions of `cost` are given.
struct msc_combined_costing {
    const struct msc_combined *j;
    const struct msc_quantize_inputs *in;
    struct msc_prune_factors factors;
    struct msc_prune_counter *counter;
};

// Joins the spaces of channels and bits, which are there, with exact costs of both together.
enum msc_status msc_combined__build_space(struct msc_combined *j,
                                          const struct msc_quantize_inputs *in,
                                          const struct msc_prune_inputs *of_channels,
                                          struct msc_arena *arena);

#endif
