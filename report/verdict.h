// What a report means, in words: what to deploy, and why.
//
//     cJSON *verdict;
//     MSC_TRY(msc_verdict_make(&verdict, record));
//
// An object with
//
//     kind      "deploy": a trial; "uniform": a uniform plan, which is as good as all that was found, or comes
//               first in the runtime; "caution": the plan meets the bounds, but is not worth more than
//               uniform 8 in its runtime; "far": it does, but its outputs have little to do with the
//               model's; "blind": it does, but samples or outputs are all the same; "infeasible": nothing meets the bounds; "none": no trial has a result
//     headline  one sentence
//     reasons   a list of sentences, the most important first
//     command   what exports the plan, for a shell; absent where there is none, or no model to export
#ifndef MSC_REPORT_VERDICT_H
#define MSC_REPORT_VERDICT_H

#include "base/status.h"

struct cJSON;

// `record` as of a document (report/document.h): numbers, delivered, trials, env, config. *out is owned by the
// caller.
enum msc_status msc_verdict_make(struct cJSON **out, const struct cJSON *record);

#endif
