// State and functions shared by the sources of the `prune` environment and by the combined
// environment. A "part" is a group of channels or a weight that may be sparse; a "cut" is one
// choice for a part.
#ifndef MSC_ENV_PRUNE_INTERNAL_H
#define MSC_ENV_PRUNE_INTERNAL_H

#include "base/json.h"
#include "env/loss_options.h"
#include "env/trial_runs.h"
#include "env/whole.h"
#include "tools/command.h"
#include "tools/pruner.h"

struct msc_strategy;

// A cost as a function of the units that each of n groups keeps: constant + linear and square
// terms.
struct msc_prune_amount {
    int32_t n;
    double constant;
    double *linear; // [n]
    double *square; // [n, n], coefficients of pairs i <= k
};

struct msc_prune_space {
    struct msc_space space;
    // [n_tasks], index of the pruner's part that the task decides
    int32_t *part_of_task;
    double references[MSC_MAX_METRICS];    // the float model's values
    struct msc_prune_amount n_bytes, macs; // bytes of weights; multiply-accumulates for one sample
};

struct msc_prune_env {
    // Parameters.
    struct msc_loss_options loss;
    const cJSON *choices, *include, *exclude, *fix, *rules;
    int64_t round_to, n_rows;
    bool repairs;
    double ridge;
    const cJSON *asked_command; // only in environment `prune`

    struct msc_command command; // from asked_command
    struct msc_pruner_options options;
    struct msc_pruner *pruner;
    struct msc_trial_runs runs;
    int n_threads;
    struct msc_prune_space space;
    struct msc_hash parameters; // of orders, second moments and reference outputs
};

// Rows of a parameter table for the pruner's parameters, if a struct msc_prune_env is at offset
// `base` of the state.
#define MSC_PRUNE_FIELD(base, member) ((base) + offsetof(struct msc_prune_env, member))
// clang-format off
#define MSC_PRUNE_PARAMS(base) \
    {.name = "choices", \
     .help = "list of {density, criterion}: fraction of channels to keep, and how they are ranked: " \
             "l1, l2, energy, hessian, loss (default: densities 0.8, 0.7 to 0.2, by hessian); or of " \
             "{sparsity, pattern, criterion}: fraction of single weights to remove, or pattern 2:4", \
     .offset = MSC_PRUNE_FIELD(base, choices), \
     .type = MSC_PARAM_JSON}, \
    {.name = "round_to", \
     .help = "the number of channels kept in a group is a multiple of this if the group has at " \
             "least twice as many channels; 1: any number", \
     .offset = MSC_PRUNE_FIELD(base, round_to), \
     .type = MSC_PARAM_I64, \
     .number = 8, \
     .min = 1, \
     .max = 4096}, \
    {.name = "repair", \
     .help = "adjust weights that read removed channels by least squares, which lowers the loss", \
     .offset = MSC_PRUNE_FIELD(base, repairs), \
     .type = MSC_PARAM_BOOL, \
     .number = 1}, \
    {.name = "ridge", \
     .help = "pull of repaired weights to their old values, relative to the inputs' mean square; smaller values fit closer", \
     .offset = MSC_PRUNE_FIELD(base, ridge), \
     .type = MSC_PARAM_F64, \
     .number = 1e-3, \
     .min = 1e-9, \
     .max = 1e3}, \
    {.name = "rows", \
     .help = "input positions sampled per weight for second moments; more positions are more exact but slower", \
     .offset = MSC_PRUNE_FIELD(base, n_rows), \
     .type = MSC_PARAM_I64, \
     .number = 32768, \
     .min = 1, \
     .max = 1e9}, \
    {.name = "include", \
     .help = \
         "name patterns of groups to prune, as listed by mscgym graph --channels, and of " \
         "weights to make sparse (default: all)", \
     .offset = MSC_PRUNE_FIELD(base, include), \
     .type = MSC_PARAM_JSON}, \
    {.name = "exclude", \
     .help = "name patterns of groups that keep all channels", \
     .offset = MSC_PRUNE_FIELD(base, exclude), \
     .type = MSC_PARAM_JSON}, \
    {.name = "fix", \
     .help = \
         "object of name patterns of groups, or of weights that produce their channels, and what " \
         "they keep without a search: the label of a choice, a density, or \"whole\"", \
     .offset = MSC_PRUNE_FIELD(base, fix), \
     .type = MSC_PARAM_OBJECT}, \
    {.name = "rules", \
     .help = "list of {name, choices}: the first rule that matches a group, or a weight that " \
             "produces its channels, restricts it to these labels of choices", \
     .offset = MSC_PRUNE_FIELD(base, rules), \
     .type = MSC_PARAM_OBJECT}
// clang-format on

extern const struct msc_param msc_prune_env__params[];
extern const struct msc_env_metric msc_prune_metrics[];
// The function `metric` of the environment's definition.
const struct msc_metric *msc_prune_env__metric(size_t index);

struct msc_prune_counter;

// Argument of the `cost` functions of msc_prune_metrics.
struct msc_prune_costing {
    const struct msc_pruner *pruner;
    const struct msc_prune_space *space;
    struct msc_prune_counter *counter;  // counts elements; NULL: no weight is sparse
    const struct msc_whole_cost *whole; // the float model's cost, for ratios; NULL: the cost in
                                        // `space`
};

enum msc_status msc_prune_env__complete(cJSON *config);
enum msc_status msc_prune_env__complete_choices(cJSON *config);
// Reads the pruner's options from the parameters and their JSON object.
enum msc_status msc_prune_env__read_options(struct msc_prune_env *z, const cJSON *config,
                                            struct msc_arena *arena);

// Keeps all channels of tensors that the loss compares. The loss would not show their removal,
// because masked channels still have values.
enum msc_status msc_prune_env__keep_compared(struct msc_prune_env *z, const struct msc_graph *g);
// Computes second moments and the orders of channels by all criteria. Needs the loss's reference.
enum msc_status msc_prune_env__prepare(struct msc_env *env, struct msc_prune_env *z);
// Gets orders, second moments and reference outputs: reads the host's parameters file if it exists,
// else computes them and writes the file. Sets `parameters`.
enum msc_status msc_prune_env__get_parameters(struct msc_env *env, struct msc_prune_env *z);

// Inputs for building a space.
struct msc_prune_inputs {
    const struct msc_graph *graph;
    const struct msc_pruner *pruner;
    const struct msc_pruner_options *options;
    const struct msc_plan *plan; // an outline (msc_evaluator_outline) with bound shapes
    double n_samples;            // samples that the plan computes at once
    const struct msc_metrics *metrics;
    const struct msc_whole_cost *whole; // cost of the whole model; NULL: the graph is whole
};
// The space is allocated in the arena.
enum msc_status msc_prune_env__build_space(struct msc_prune_space *out,
                                           const struct msc_prune_inputs *in,
                                           struct msc_arena *arena);
// Computes bytes of weights and multiply-accumulates for one sample (env/prune/amount.c).
enum msc_status msc_prune_env__count(struct msc_prune_amount *n_bytes,
                                     struct msc_prune_amount *macs,
                                     const struct msc_prune_inputs *in, struct msc_arena *arena);
double msc_prune_env__amount(const struct msc_prune_amount *a, const int32_t n_kept[]);

// What to count: elements of a tensor, indices of one of its axes, or multiply-accumulates of a
// joint's product. A symbolic dimension counts as 1.
struct msc_prune_counted {
    int32_t tensor;
    bool has_axis;
    int axis;
    const struct msc_joint *joint; // if not NULL, its product is counted and `tensor` is ignored
    int product;                   // index in msc_joint_products
};

// A count is a sum of monomials. A monomial is the product of `scale` and the numbers of units that
// `n` groups keep. If `n` is 2, both may be the same group.
struct msc_prune_monomial {
    double scale;
    int n; // number of groups: 0, 1 or 2
    int32_t groups[2];
};
typedef enum msc_status (*msc_prune_take)(void *payload, const struct msc_prune_monomial *m);

// Creates a counter in the arena. It may be used by one thread at a time.
enum msc_status msc_prune_env__counter(struct msc_prune_counter **out,
                                       const struct msc_prune_inputs *in, struct msc_arena *arena);
enum msc_status msc_prune_env__each_monomial(struct msc_prune_counter *c,
                                             const struct msc_prune_counted *of,
                                             msc_prune_take take, void *payload);
double msc_prune_env__whole_value(struct msc_prune_counter *c, const struct msc_prune_counted *of);

// Numbers of units that groups keep, as factors of costs (env/prune/metrics.c).
struct msc_prune_factors {
    const struct msc_pruner *pruner;
    const int32_t *task_of_group; // [n_parts]; MSC_NO_ID: the group has no task and keeps `fixed`
                                  // units
    const double *fixed;          // [n_groups]
    const double **n_kept;        // [n_parts], by cut, for parts with a task
    const double **squares;       // [n_parts], squares of n_kept
};
enum msc_status msc_prune_env__factors(struct msc_prune_factors *out,
                                       const struct msc_prune_costing *of, struct msc_arena *arena);
// Fills the factors of a monomial, at most 2, and returns their number. *scale is multiplied by the
// constant factors.
size_t msc_prune_env__factors_of(double *scale, uint32_t tasks[], const double *by_choice[],
                                 const struct msc_prune_factors *f,
                                 const struct msc_prune_monomial *m);

// Adds an amount to a cost as terms of tasks. Groups without a task keep a constant number of
// units.
enum msc_status msc_prune_env__add_amount(struct msc_metric_cost *out,
                                          const struct msc_prune_costing *of,
                                          const struct msc_prune_amount *a);

// Runs the user's program on a trial with these edits (NULL: on the float model).
enum msc_status msc_prune_env__run_command(double *out, const struct msc_env *env,
                                           const uint32_t choices[],
                                           const struct msc_edit *const edits[]);

// MSC_E_UNSUPPORTED if the strategy to start from has edits. Pruned channels are allowed.
enum msc_status msc_prune_env__check_base(const struct msc_env_host *host);
// Adds the pruned groups and repaired weights of the host's base to a strategy, then those of the
// point. Marks removed units in is_gone [n_units].
enum msc_status msc_prune_env__fill_strategy(struct msc_strategy *s, const struct msc_prune_env *z,
                                             const struct msc_env_host *host, const uint32_t cuts[],
                                             const uint32_t choices[], bool is_gone[]);

// Fills the cuts [n_parts] of a point.
void msc_prune_env__cuts(uint32_t cuts[], const struct msc_prune_env *z, const uint32_t choices[]);

#endif
