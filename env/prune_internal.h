// What the prune environment's sources share.
#ifndef MSC_ENV_PRUNE_INTERNAL_H
#define MSC_ENV_PRUNE_INTERNAL_H

#include "base/json.h"
#include "env/loss_options.h"
#include "env/trial_runs.h"
#include "env/whole.h"
#include "tools/pruner.h"

// A number that depends on how many units each group keeps: constant + sum of linear and square
// terms. Of n groups.
struct msc_prune_amount {
    int32_t n;
    double constant;
    double *linear; // [n]
    double *square; // [n, n] of pairs i <= k
};

struct msc_prune_space {
    struct msc_space space;
    int32_t *group_of_task;                // [n_tasks]
    double references[MSC_MAX_METRICS];    // of the float model
    struct msc_prune_amount n_bytes, macs; // of weights; for one sample
};

struct msc_prune_env {
    // Parameters.
    struct msc_loss_options loss;
    const cJSON *choices, *include, *exclude;
    int64_t round_to, n_rows;
    bool repairs;
    double ridge;

    struct msc_pruner_options options;
    struct msc_pruner *pruner;
    struct msc_trial_runs runs;
    int n_threads;
    struct msc_prune_space space;
    struct msc_hash parameters; // of orders, second moments and reference outputs
};

extern const struct msc_param msc_prune_env__params[];
extern const struct msc_metric_row msc_prune_metric_rows[];
// The environment's `metric`.
const struct msc_metric *msc_prune_env__metric(size_t index);

// What functions of `cost` are given.
struct msc_prune_costing {
    const struct msc_pruner *pruner;
    const struct msc_prune_space *space;
    const struct msc_whole_cost *whole; // NULL: that of the space
};

enum msc_status msc_prune_env__complete(cJSON *config);

// Orders, second moments and reference outputs: read from the host's parameters file if there is one,
// else computed and written there. Sets `parameters`.
enum msc_status msc_prune_env__get_parameters(struct msc_env *env, struct msc_prune_env *z);

// What a space is made of, which lives in the arena.
struct msc_prune_inputs {
    const struct msc_graph *graph;
    const struct msc_pruner *pruner;
    const struct msc_pruner_options *options;
    const struct msc_plan *plan; // of the first batch: it has the bound shapes
    double n_samples;            // that it computes at once
    const struct msc_metrics *metrics;
    const struct msc_whole_cost *whole; // of more than the graph; NULL: of no more
};
enum msc_status msc_prune_env__build_space(struct msc_prune_space *out,
                                           const struct msc_prune_inputs *in,
                                           struct msc_arena *arena);
// Bytes of weights, and multiply-accumulates for one sample (prune_amount.c).
enum msc_status msc_prune_env__count(struct msc_prune_amount *n_bytes,
                                     struct msc_prune_amount *macs,
                                     const struct msc_prune_inputs *in, struct msc_arena *arena);
double msc_prune_env__amount(const struct msc_prune_amount *a, const int32_t n_kept[]);

// The cuts [n_groups] of choices [n_tasks].
void msc_prune_env__cuts(uint32_t cuts[], const struct msc_prune_env *z, const uint32_t choices[]);

#endif
