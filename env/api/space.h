// The search space: an ordered list of tasks, each with a finite list of choices, and the exact
// costs of any combination. It is all that an agent sees. Plain data, owned by the environment,
// constant from its init to its finish.
//
// A point of the space is `uint32_t choices[n_tasks]`, one choice index for each task.
//
// Costs (metrics that need no run) are sums of products over tasks:
//
//     metric(choices) = constant + sum over terms of scale * product of factor[task][choice]
//
// so that size (a sum over weights), MACs and bit operations (products of two or three tasks) are
// all exact, and a bound that no choice can meet is known before the first trial.
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
    // Choice indices from the most expensive to the cheapest: by cost, then by range scale nearest
    // 1, then by order in the configuration. [n_choices]
    const uint32_t *most_expensive_first;
    const double *features; // [n_features], what an agent may condition on
    // [n_choices, n_choice_features], the same of each choice; NaN: not known of it, or nothing that
    // it has.
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
    const char *unit;  // "bytes", "" for ratios; may be NULL, which is ""
    const char *help;  // what it is, in one line; may be NULL
    bool is_maximised; // what "better" means for an objective on it
    bool is_exact;     // known without a run: an entry of `costs` has this name
    bool is_measured;  // outside of the program: another time it may be another number
};

// A uniform plan: the label of its choice, and its point. Or another plan to begin with, whose label
// begins with "the ".
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
    const struct msc_metric *metrics; // order of `msc_outcome.metrics`
    size_t n_costs;
    const struct msc_cost *costs;
    size_t n_baselines;
    const struct msc_baseline *baselines;
};

// Index of a metric by name, or -1.
int msc_space_find_metric(const struct msc_space *space, const char *name);
// The cost with that metric's name, or NULL. Borrowed from the space.
const struct msc_cost *msc_space_find_cost(const struct msc_space *space, const char *metric);
// The exact value at a point. Summed in the order of terms, so equal points give equal bits.
double msc_cost_value(const struct msc_cost *cost, const uint32_t choices[]);
// The smallest and the greatest value any point can have. Exact when every task's choices rank
// alike in all its terms (always so for bits); otherwise an outer bound, and *is_exact is false.
// `choices` (may be NULL) [n_tasks] receives a point that attains it when exact.
double msc_cost_min(const struct msc_space *space, const struct msc_cost *cost, bool *is_exact,
                    uint32_t choices[]);
double msc_cost_max(const struct msc_space *space, const struct msc_cost *cost, bool *is_exact,
                    uint32_t choices[]);
// An outer bound of what any point can cost whose first `n_fixed` choices are these; the others are
// not read. The narrower, the more is fixed; equal to the value (but for rounding) at n_tasks.
void msc_cost_range(const struct msc_space *space, const struct msc_cost *cost,
                    const uint32_t choices[], size_t n_fixed, double *low, double *high);
// What is said of a baseline before its label: "uniform ", or nothing.
const char *msc_baseline_kind(const char *label);
// Number of points; +inf when it overflows a double's integers (2^53).
double msc_space_n_points(const struct msc_space *space);
// MSC_E_INVALID with a text when a task has no choices, a name repeats, an order is no
// permutation, a cost refers to a task or metric that does not exist, or a number is not finite.
enum msc_status msc_space_check(const struct msc_space *space);
// Hash of everything in it but features of choices, which follow from what is hashed elsewhere: equal
// spaces mean equal points and equal costs.
struct msc_hash msc_space_hash(const struct msc_space *space);

MSC_PUBLIC_END

#endif
