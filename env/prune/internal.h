// What the prune environment's sources share.
#ifndef MSC_ENV_PRUNE_INTERNAL_H
#define MSC_ENV_PRUNE_INTERNAL_H

#include "base/json.h"
#include "env/loss_options.h"
#include "env/trial_runs.h"
#include "env/whole.h"
#include "tools/command.h"
#include "tools/pruner.h"

struct msc_strategy;

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
    int32_t *part_of_task;                 // [n_tasks] of the pruner
    double references[MSC_MAX_METRICS];    // of the float model
    struct msc_prune_amount n_bytes, macs; // of weights; for one sample
};

struct msc_prune_env {
    // Parameters.
    struct msc_loss_options loss;
    const cJSON *choices, *include, *exclude, *fix, *rules;
    int64_t round_to, n_rows;
    bool repairs;
    double ridge;
    const cJSON *asked_command; // of the environment prune alone

    struct msc_command command; // where a metric asks for it
    struct msc_pruner_options options;
    struct msc_pruner *pruner;
    struct msc_trial_runs runs;
    int n_threads;
    struct msc_prune_space space;
    struct msc_hash parameters; // of orders, second moments and reference outputs
};

// Rows of the pruner's parameters for a struct msc_prune_env at `base` of a state.
#define MSC_PRUNE_FIELD(base, member) ((base) + offsetof(struct msc_prune_env, member))
// clang-format off
#define MSC_PRUNE_PARAMS(base) \
    {.name = "choices", \
     .help = "list of {density, criterion}: the share of channels that stays, and what says which: " \
             "l1, l2, energy, hessian, loss (default: densities 0.8, 0.7 to 0.2, by hessian); and of " \
             "{sparsity, pattern, criterion}: the share of single weights that goes, or as 2:4", \
     .offset = MSC_PRUNE_FIELD(base, choices), \
     .type = MSC_PARAM_JSON}, \
    {.name = "round_to", \
     .help = "what stays of a group is a multiple of so many channels, where it has twice as many; " \
             "1: any number", \
     .offset = MSC_PRUNE_FIELD(base, round_to), \
     .type = MSC_PARAM_I64, \
     .number = 8, \
     .min = 1, \
     .max = 4096}, \
    {.name = "repair", \
     .help = "weights that read channels make up, by least squares, for those that go", \
     .offset = MSC_PRUNE_FIELD(base, repairs), \
     .type = MSC_PARAM_BOOL, \
     .number = 1}, \
    {.name = "ridge", \
     .help = "how firmly these are held to what they were, in shares of their inputs' mean square", \
     .offset = MSC_PRUNE_FIELD(base, ridge), \
     .type = MSC_PARAM_F64, \
     .number = 1e-3, \
     .min = 1e-9, \
     .max = 1e3}, \
    {.name = "rows", \
     .help = "places of the inputs of each weight that second moments are taken of, at most", \
     .offset = MSC_PRUNE_FIELD(base, n_rows), \
     .type = MSC_PARAM_I64, \
     .number = 32768, \
     .min = 1, \
     .max = 1e9}, \
    {.name = "include", \
     .help = \
         "name patterns of the groups to prune, as mscgym graph --channels lists them, and of " \
         "weights to make sparse (default: all)", \
     .offset = MSC_PRUNE_FIELD(base, include), \
     .type = MSC_PARAM_JSON}, \
    {.name = "exclude", \
     .help = "name patterns of the groups to leave whole", \
     .offset = MSC_PRUNE_FIELD(base, exclude), \
     .type = MSC_PARAM_JSON}, \
    {.name = "fix", \
     .help = \
         "name patterns of groups, or of weights that make their channels, and what they keep without " \
         "a search: a choice by its label, a density, or \"whole\"", \
     .offset = MSC_PRUNE_FIELD(base, fix), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "rules", \
     .help = "list of {name, choices}: the first whose name fits a group, or a weight that makes its " \
             "channels, says which choices, by their labels, it has", \
     .offset = MSC_PRUNE_FIELD(base, rules), \
     .type = MSC_PARAM_OBJECT}
// clang-format on

extern const struct msc_param msc_prune_env__params[];
extern const struct msc_env_metric msc_prune_metrics[];
// The environment's `metric`.
const struct msc_metric *msc_prune_env__metric(size_t index);

struct msc_prune_counter;

// What functions of `cost` are given.
struct msc_prune_costing {
    const struct msc_pruner *pruner;
    const struct msc_prune_space *space;
    struct msc_prune_counter *counter;  // of elements; NULL: no weight is sparse
    const struct msc_whole_cost *whole; // NULL: that of the space
};

enum msc_status msc_prune_env__complete(cJSON *config);
enum msc_status msc_prune_env__complete_choices(cJSON *config);
// The pruner's options, from the parameters and their JSON object.
enum msc_status msc_prune_env__read_options(struct msc_prune_env *z, const cJSON *config,
                                            struct msc_arena *arena);

// Channels of tensors that the loss compares stay: nobody would miss them there, as those that are masked
// have values all the same.
enum msc_status msc_prune_env__keep_compared(struct msc_prune_env *z, const struct msc_graph *g);
// Second moments, and orders by all criteria; after the loss's reference.
enum msc_status msc_prune_env__prepare(struct msc_env *env, struct msc_prune_env *z);
// Orders, second moments and reference outputs: read from the host's parameters file if there is one,
// else computed and written there. Sets `parameters`.
enum msc_status msc_prune_env__get_parameters(struct msc_env *env, struct msc_prune_env *z);

// What a space is made of, which lives in the arena.
struct msc_prune_inputs {
    const struct msc_graph *graph;
    const struct msc_pruner *pruner;
    const struct msc_pruner_options *options;
    const struct msc_plan *plan; // the outline: it has the bound shapes
    double n_samples;            // that it computes at once
    const struct msc_metrics *metrics;
    const struct msc_whole_cost *whole; // of more than the graph; NULL: of no more
};
enum msc_status msc_prune_env__build_space(struct msc_prune_space *out,
                                           const struct msc_prune_inputs *in,
                                           struct msc_arena *arena);
// Bytes of weights, and multiply-accumulates for one sample (env/prune/amount.c).
enum msc_status msc_prune_env__count(struct msc_prune_amount *n_bytes,
                                     struct msc_prune_amount *macs,
                                     const struct msc_prune_inputs *in, struct msc_arena *arena);
double msc_prune_env__amount(const struct msc_prune_amount *a, const int32_t n_kept[]);

// What is counted: elements of a tensor, indices of one of its axes, or multiply-accumulates of a joint's
// product. What a symbol stands for counts as 1.
struct msc_prune_counted {
    int32_t tensor;
    bool has_axis;
    int axis;
    const struct msc_joint *joint; // in place of a tensor
    int product;                   // msc_joint_products
};

// It is a sum of these: scale times the units that so many groups keep, which may be the same twice.
struct msc_prune_monomial {
    double scale;
    int n; // 0, 1, 2
    int32_t groups[2];
};
typedef enum msc_status (*msc_prune_take)(void *payload, const struct msc_prune_monomial *m);

// In the arena. Not for several threads at once.
enum msc_status msc_prune_env__counter(struct msc_prune_counter **out,
                                       const struct msc_prune_inputs *in, struct msc_arena *arena);
enum msc_status msc_prune_env__each_monomial(struct msc_prune_counter *c,
                                             const struct msc_prune_counted *of,
                                             msc_prune_take take, void *payload);
double msc_prune_env__whole_value(struct msc_prune_counter *c, const struct msc_prune_counted *of);

// Units that groups keep, as factors of costs (env/prune/metrics.c).
struct msc_prune_factors {
    const struct msc_pruner *pruner;
    const int32_t *task_of_group; // [n_parts] or MSC_NO_ID: `fixed` says how many units stay
    const double *fixed;          // [n_groups]
    const double **n_kept;        // [n_parts] of the cuts of those with a task, and their squares
    const double **squares;
};
enum msc_status msc_prune_env__factors(struct msc_prune_factors *out,
                                       const struct msc_prune_costing *of, struct msc_arena *arena);
// The factors of a monomial, 2 at most; returns how many. *scale is multiplied by what is constant.
size_t msc_prune_env__factors_of(double *scale, uint32_t tasks[], const double *by_choice[],
                                 const struct msc_prune_factors *f,
                                 const struct msc_prune_monomial *m);

// Adds an amount to a cost, as terms of tasks: groups that are left out keep what they have.
enum msc_status msc_prune_env__add_amount(struct msc_metric_cost *out,
                                          const struct msc_prune_costing *of,
                                          const struct msc_prune_amount *a);

// What the user's program says of a trial, whose edits these are; NULL: of the float model.
enum msc_status msc_prune_env__run_command(double *out, const struct msc_env *env,
                                           const uint32_t choices[],
                                           const struct msc_edit *const edits[]);

// Strategies may start from one that prunes, and holds no edits.
enum msc_status msc_prune_env__check_base(const struct msc_env_host *host);
// What becomes of channels at a point: groups, and elements of weights that were made. Units that go
// are marked in is_gone [n_units]. Over what the host's base has taken away.
enum msc_status msc_prune_env__fill_strategy(struct msc_strategy *s, const struct msc_prune_env *z,
                                             const struct msc_env_host *host, const uint32_t cuts[],
                                             const uint32_t choices[], bool is_gone[]);

// The cuts [n_parts] of choices [n_tasks].
void msc_prune_env__cuts(uint32_t cuts[], const struct msc_prune_env *z, const uint32_t choices[]);

#endif
