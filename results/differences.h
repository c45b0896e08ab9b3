// Finds the differences between configurations, and between plans, to show records side by side.
#ifndef MSC_RESULTS_DIFFERENCES_H
#define MSC_RESULTS_DIFFERENCES_H

#include "base/status.h"

#include <stddef.h>

struct cJSON;

// A list of {"key", "values"} for at most `most` keys with unequal values. Keys are written as
// "agent.type" or "gym[0].seed" and keep their order. `values` has an entry for each configuration,
// null if it lacks the key. Objects are compared by member, lists by element if they have equal
// lengths. A configuration that is NULL has no keys. *out is owned by the caller (cJSON_Delete).
enum msc_status msc_differences_of_configs(struct cJSON **out, const struct cJSON *const configs[],
                                           size_t n, size_t most);

// Plans are objects {task: choice}; NULL entries are ignored. The result is {"n_equal",
// "n_partial", "tasks": [{"task", "choices", "differ"}]} with every task of any plan. `choices` has
// an entry for each plan, null if it lacks the task. n_equal tasks have the same choice in all
// plans; n_partial tasks are missing in some. *out is owned by the caller.
enum msc_status msc_differences_of_plans(struct cJSON **out, const struct cJSON *const plans[],
                                         size_t n);

#endif
