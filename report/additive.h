// What choices do to the objective by all trials of a record, where few differ in one task alone: a model in
// which choices add up,
//
//     y(x) = c + sum over tasks of e[task, x_task]
//
// fitted by ridge regression, task by task until it no longer changes (backfitting: Hastie, Tibshirani and
// Friedman, The Elements of Statistical Learning, 2009, section 9.1.1). Trials far from the best count for
// less: the weight of each is one over the square of its distance from the best, plus a tenth of the median
// one.
#ifndef MSC_REPORT_ADDITIVE_H
#define MSC_REPORT_ADDITIVE_H

#include "base/alloc.h"
#include "records/record.h"

// The best so many trials are fitted.
#define MSC_ADDITIVE_TRIALS 2000

struct msc_additive {
    size_t n_trials;       // fitted
    double explained;      // share of the weighted variance; of at most 1
    const size_t *offsets; // [n_tasks] into the two below
    const double *effects; // of each choice, in the first objective's own direction
    const size_t *counts;  // trials that have it
    struct msc_arena arena;
};

// MSC_E_NOMEM. With no trials with a result n_trials is 0, and nothing else is there.
enum msc_status msc_additive_fit(struct msc_additive *out, const struct msc_record *record);
void msc_additive_finish(struct msc_additive *fit); // accepts a zeroed one

#endif
