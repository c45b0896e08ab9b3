// What a report means, in words: what to deploy, and why.
//
//     cJSON *verdict;
//     MSC_TRY(msc_verdict_make(&verdict, report));
//
// An object with
//
//     kind      "deploy": the winner; "uniform": a uniform plan that nothing found is better than;
//               "caution": the winner meets the bounds, but is not worth more than uniform 8 in its
//               runtime; "far": it does, but its outputs have little to do with the model's; "infeasible": nothing meets the bounds; "none": no trial has a result
//     headline  one sentence
//     reasons   a list of sentences, the most important first
//     command   what exports the plan; absent where there is none to export
#ifndef MSC_REPORT_VERDICT_H
#define MSC_REPORT_VERDICT_H

#include "base/status.h"

struct cJSON;

// Of a report (search/report.h). `loss` is how distill_loss is measured, as an environment's `loss` says it:
// "mse"; NULL: nothing can be said of its size. *out is owned by the caller.
enum msc_status msc_verdict_make(struct cJSON **out, const struct cJSON *report, const char *loss);

#endif
