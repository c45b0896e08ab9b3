// Compares several records in words: which of their plans to deploy, and why.
//
//     cJSON *verdict;
//     MSC_TRY(msc_verdict_compare(&verdict, records));
//
// The result is an object as in results/verdict.h. `kind` and `command` are copied from the record
// with the best plan; `kind` is "none" if no plan can be chosen. `headline` and `reasons` are about
// all records.
#ifndef MSC_RESULTS_VERDICT_COMPARE_H
#define MSC_RESULTS_VERDICT_COMPARE_H

#include "base/status.h"

struct cJSON;

// `records` are a document's records (report/document.h) with name, path, numbers, delivered, plan,
// config, verdict. *out is owned by the caller.
enum msc_status msc_verdict_compare(struct cJSON **out, const struct cJSON *records);

#endif
