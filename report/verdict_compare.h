// What several records mean together, in words: which of their plans to deploy, and why.
//
//     cJSON *verdict;
//     MSC_TRY(msc_verdict_compare(&verdict, records));
//
// An object as of report/verdict.h: `kind` and `command` are those of the record whose plan is the best,
// "none" where none is or nothing can be said, and `headline` and `reasons` are about all of them.
#ifndef MSC_REPORT_VERDICT_COMPARE_H
#define MSC_REPORT_VERDICT_COMPARE_H

#include "base/status.h"

struct cJSON;

// `records` as of a document (report/document.h): name, path, numbers, delivered, plan, config, verdict. *out
// is owned by the caller.
enum msc_status msc_verdict_compare(struct cJSON **out, const struct cJSON *records);

#endif
