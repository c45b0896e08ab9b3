// A summary of a report in words: which plan to deploy, and why.
//
//     cJSON *verdict;
//     MSC_TRY(msc_verdict_make(&verdict, record));
//
// The result is an object with
//
//     kind      "deploy": deploy a trial
//               "uniform": deploy a uniform plan, which is as good as the best trial, or is first
//               in the runtime
//               "caution": the plan meets the bounds, but in its runtime is no better than
//               uniform 8
//               "far": the plan meets the bounds, but its outputs hardly resemble the model's
//               "blind": the plan meets the bounds, but all samples or all outputs are the same
//               "infeasible": no trial meets the bounds
//               "none": no trial has a result
//     headline  one sentence
//     reasons   a list of sentences, the most important first
//     command   a shell command that exports the plan; absent without a plan or a model
#ifndef MSC_RESULTS_VERDICT_H
#define MSC_RESULTS_VERDICT_H

#include "base/status.h"

struct cJSON;

// `record` is a document's record (report/document.h) with numbers, delivered, trials, env, config.
// *out is owned by the caller.
enum msc_status msc_verdict_make(struct cJSON **out, const struct cJSON *record);

#endif
