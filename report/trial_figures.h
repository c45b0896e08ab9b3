// What the trials of a record look like together, as figures to draw: the best so far, the loss beside the
// cost of every trial, speed and reuse over time. Long records are thinned, with their extremes kept.
#ifndef MSC_REPORT_TRIAL_FIGURES_H
#define MSC_REPORT_TRIAL_FIGURES_H

#include "records/record.h"

struct cJSON;

// Points up to which every trial is one, and the cells of the grid that more are thinned by.
#define MSC_FIGURE_POINTS 3000
#define MSC_FIGURE_COLUMNS 80
#define MSC_FIGURE_ROWS 50
// Points of a front that are listed, or a few more.
#define MSC_FIGURE_FRONT 100

// {
//   "best": {"trial", "seconds", "value"}         lists, a place for each improvement
//   "n", "elapsed_s"                              trials, seconds of search
//   "cost": metric                                that points are thinned by, beside the first objective
//   "front": [{"id", "metrics", "summary"}]       of several objectives the Pareto front; of one, that over
//                                                 objective and cost; each with its strategy in a line
//                                                 (report/plan_layers.h), some left out where they are many
//   "n_front"                                     all of them
//   "points": {"id", "state", "baseline", "metrics": {name: list}}
//                                                 trials with a result, repeats left out; of more than
//                                                 MSC_FIGURE_POINTS the first in each cell of a grid over
//                                                 objective and cost, the best and the extremes of both,
//                                                 the uniform plans, and the front
//   "is_thinned"
//   "speed": {"seconds", "trials_per_s", "reuse"} means over stretches of time
// }
// *out is owned by the caller.
enum msc_status msc_trial_figures(struct cJSON **out, const struct msc_record *record);
// The metric that stands for cost: a second objective, else the first bound's, else the first that is
// exact; -1: there is none.
int msc_trial_figures_cost(const struct msc_record *record);

#endif
