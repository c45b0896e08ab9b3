// Data for charts over all trials of a record: the best so far, loss against cost, speed and reuse
// over time. Long records are thinned; extremes are kept.
#ifndef MSC_RESULTS_TRIAL_FIGURES_H
#define MSC_RESULTS_TRIAL_FIGURES_H

#include "records/record.h"

struct cJSON;

// With more trials than this, trials are thinned by a grid of columns and rows.
#define MSC_FIGURE_POINTS 3000
#define MSC_FIGURE_COLUMNS 80
#define MSC_FIGURE_ROWS 50
// Approximate maximum number of points of a front that are listed.
#define MSC_FIGURE_FRONT 100

// {
//   "best": {"trial", "seconds", "value"}         lists with an entry for each improvement
//   "n", "elapsed_s"                              trials, seconds of search
//   "cost": metric                                plotted against the first objective
//   "front": [{"id", "metrics", "summary"}]       the Pareto front of the objectives, or of
//                                                 objective and cost if there is one objective;
//                                                 `summary` is the plan in a line
//                                                 (results/plan_layers.h); long fronts are thinned
//   "n_front"                                     number of points of the whole front
//   "points": {"id", "state", "baseline", "metrics": {name: list}}
//                                                 trials with a result, without repeats; if there
//                                                 are more than MSC_FIGURE_POINTS, the first in
//                                                 each cell of a grid over objective and cost, the
//                                                 best, the extremes of both, the uniform plans and
//                                                 the front
//   "tasks": [{"task", "labels", "choices"}]      for each of the given tasks: the labels of its
//                                                 choices, and the index of each point's choice
//   "is_thinned"
//   "speed": {"seconds", "trials_per_s", "reuse"} means over intervals of time
// }
// `tasks` [n_tasks] are names of tasks; unknown ones are ignored. *out is owned by the caller.
enum msc_status msc_trial_figures(struct cJSON **out, const struct msc_record *record,
                                  const char *const tasks[], size_t n_tasks);
// The metric plotted as cost: the second objective, else the first bounded metric, else the first
// exact metric. -1: there is none.
int msc_trial_figures_cost(const struct msc_record *record);

#endif
