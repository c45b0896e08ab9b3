// Estimates the effect of each choice on the objective from all trials of a record. It is useful
// for records with few pairs of trials that differ in only one task. The model is additive:
//
//     y(x) = c + sum over tasks of e[task, x_task]
//
// The model is fitted by ridge regression, one task at a time until the effects converge
// (backfitting: Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009,
// section 9.1.1). Trials far from the best trial get small weights. If d is the distance of a
// trial's value from the best value, and m is the median of these distances, the trial's weight is
// 1 / (d + m / 10)^2.
#ifndef MSC_RESULTS_ADDITIVE_H
#define MSC_RESULTS_ADDITIVE_H

#include "base/alloc.h"
#include "records/record.h"

// The fit uses at most this many trials: the best ones.
#define MSC_ADDITIVE_TRIALS 2000

struct msc_additive {
    size_t n_trials;       // trials used for the fit
    double explained;      // share of the weighted variance that the model explains, at most 1
    const size_t *offsets; // [n_tasks], index of each task's first choice in the two arrays below
    const double *effects; // effect of each choice on the first objective; not negated if maximised
    const size_t *counts;  // number of trials that have the choice
    struct msc_arena arena;
};

// Fails only with MSC_E_NOMEM. If no trial has a result, n_trials is 0 and the other members are
// empty.
enum msc_status msc_additive_fit(struct msc_additive *out, const struct msc_record *record);
void msc_additive_finish(struct msc_additive *fit); // accepts a zeroed struct

#endif
