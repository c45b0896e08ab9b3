// Effects of single choices and of pairs, in the form that a report's page shows. Effects are
// measured (results/analysis.h) or, if most choices were not measured singly, estimated by a model
// of all trials (results/additive.h).
#ifndef MSC_RESULTS_EFFECTS_H
#define MSC_RESULTS_EFFECTS_H

#include "records/record.h"

struct cJSON;

// Makes the members of msc_analysis_describe, with shortened lists. If a model was fitted, there is
// also `fitted`, {"trials", "explained"}, and `alone` lists the effects that the model estimates:
// by how much a choice differs from the choice of `plan` (`task`, `choice`, `difference`), greatest
// first. With at least 30 trials there is also `importance`, {"trials", "explained", "tasks":
// [{"task", "share"}]}: how much of the objective's variance each task decides, by the model of all
// trials.
//
// The share is that of a functional analysis of variance (Hutter, Hoos and Leyton-Brown, "An
// Efficient Approach for Assessing Hyperparameter Importance", 2014). For a model
//
//     f(x) = constant + sum over tasks t of f_t(x_t)
//
// with choices x_t that are independent and equally likely, the variance of f is the sum of the
// variances of f_t, so the share of task t is Var f_t / sum of Var f_s. Choices that were never
// tried are left out. `explained` is the part of the trials' weighted variance that the model
// explains: if it is far below 1, tasks act together, and shares are only hints.
//
// *out is owned by the caller.
enum msc_status msc_effects_describe(struct cJSON **out, const struct msc_record *record,
                                     const uint32_t plan[]); // NULL: no plan

#endif
