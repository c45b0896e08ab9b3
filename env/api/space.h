// The search space: an ordered list of tasks, each with a finite list of choices, and the exact
// costs of every combination. An agent sees nothing else. The space is plain data, owned by the
// environment and constant from the environment's init to its finish.
//
// A point of the space is `uint32_t choices[n_tasks]`, one choice index for each task.
//
// Costs (metrics that need no run) are sums of products over tasks:
//
//     metric(choices) = constant + sum over terms of scale * product of factor[task][choice]
//
// Size (a sum over weights), MACs and bit operations (products of two or three tasks) are thus
// exact, and a bound that no point can meet is detected before the first trial.
#ifndef MSC_ENV_API_SPACE_H
#define MSC_ENV_API_SPACE_H

#include "base/hash.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_task {
    const char *name;          // stable and unique, such as "conv1/weight"
    uint32_t n_choices;        // at least 1
    const char *const *labels; // [n_choices], such as "8", "6 mse"
    // Choice indices from the most expensive to the cheapest. Among equal costs, the choice whose
    // range scale is nearer to 1 comes first; then the order in the configuration decides.
    // [n_choices]
    const uint32_t *most_expensive_first;
    const double *features; // [n_features], for agents to condition on
    // [n_choices, n_choice_features], features of each choice; NaN: unknown or not applicable.
    const double *choice_features;
};

struct msc_cost_factor {
    uint32_t task;
    const double *by_choice; // [n_choices of that task]
};

struct msc_cost_term {
    double scale;
    uint32_t n_factors;
    const struct msc_cost_factor *factors;
};

struct msc_cost {
    const char *metric;
    double constant;
    size_t n_terms;
    const struct msc_cost_term *terms;
};

struct msc_metric {
    const char *name;  // "distill_loss", "size_bytes", ...
    const char *unit;  // "bytes", "" for ratios; NULL means ""
    const char *help;  // what it measures, in one line; may be NULL
    bool is_maximised; // greater is better
    bool is_exact;     // known without a run: one of the space's `costs` has this name
    bool is_measured;  // measured outside the program: the value may differ next time
};

// A plan to begin with. If the plan is uniform, its label is the label of the choice that all tasks
// take. The labels of other plans begin with "the ".
struct msc_baseline {
    const char *label;
    const uint32_t *choices; // [n_tasks]
};

struct msc_space {
    size_t n_tasks;
    const struct msc_task *tasks;
    size_t n_features;
    const char *const *feature_names; // [n_features]
    size_t n_choice_features;
    const char *const *choice_feature_names; // [n_choice_features], "bits", "weight_error", ...
    size_t n_metrics;
    const struct msc_metric *metrics; // in the order of `msc_outcome.metrics`
    size_t n_costs;
    const struct msc_cost *costs;
    size_t n_baselines;
    const struct msc_baseline *baselines;
    // Optional: pairs of tasks that are neighbours in the network, such as the weights of two
    // layers of which one reads the other's output. In each pair the lower index comes first; pairs
    // are in ascending order, each once.
    size_t n_neighbours;
    const uint32_t (*neighbours)[2]; // [n_neighbours]
};

// Index of a metric by name, or -1.
int msc_space_find_metric(const struct msc_space *space, const char *name);
// The cost with that metric's name, or NULL. Borrowed from the space.
const struct msc_cost *msc_space_find_cost(const struct msc_space *space, const char *metric);
// The exact value at a point. It is summed in the order of terms, so equal points give equal bits.
double msc_cost_value(const struct msc_cost *cost, const uint32_t choices[]);
// The least and the greatest value of any point. The result is exact if each task's choices have
// the same order in all of the task's terms (always true if choices are numbers of bits). Otherwise
// the result is an outer bound and *is_exact is false. If exact, `choices` [n_tasks] (may be NULL)
// receives a point that attains the value.
double msc_cost_min(const struct msc_space *space, const struct msc_cost *cost, bool *is_exact,
                    uint32_t choices[]);
double msc_cost_max(const struct msc_space *space, const struct msc_cost *cost, bool *is_exact,
                    uint32_t choices[]);
// An outer bound on the cost of all points that begin with the first `n_fixed` of `choices`; the
// other choices are not read. The bound narrows as more choices are fixed. If all choices are
// fixed, the bound equals the value up to rounding.
void msc_cost_range(const struct msc_space *space, const struct msc_cost *cost,
                    const uint32_t choices[], size_t n_fixed, double *low, double *high);
// The word to print before a baseline's label: "uniform " or "".
const char *msc_baseline_kind(const char *label);
// Number of points; +inf above 2^53, the limit of exact integers in a double.
double msc_space_n_points(const struct msc_space *space);
// MSC_E_INVALID with a message if a task has no choices, a name repeats, an order is not a
// permutation, a cost refers to a task or metric that does not exist, or a number is not finite.
enum msc_status msc_space_check(const struct msc_space *space);
// Sorts `pairs` [n] of tasks as msc_space.neighbours must be: swaps the tasks of a pair, and drops
// repeated pairs and pairs of a task with itself. Returns the number of pairs that remain.
size_t msc_space_sort_neighbours(uint32_t pairs[][2], size_t n);
// Hash of the space. Equal hashes mean equal points and equal costs. Features of choices and
// neighbours are excluded, because they follow from data that is hashed elsewhere.
struct msc_hash msc_space_hash(const struct msc_space *space);

MSC_PUBLIC_END

#endif
