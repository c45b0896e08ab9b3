// What configurations, and what plans, differ in: for whoever shows records beside each other.
#ifndef MSC_SEARCH_DIFFERENCES_H
#define MSC_SEARCH_DIFFERENCES_H

#include "base/status.h"

#include <stddef.h>

struct cJSON;

// A list of {"key", "values"}: of all keys with unequal values, at most `most`, as "agent.type" or
// "gym[0].seed" in the order in which they stand. `values` has one for each configuration, null where it has
// no such key. Objects are gone into, lists where they are as long as each other. A configuration that is
// NULL has no keys. *out is owned by the caller (cJSON_Delete).
enum msc_status msc_differences_of_configs(struct cJSON **out, const struct cJSON *const configs[],
                                           size_t n, size_t most);

// Plans are objects {task: choice}, or NULL for one that is not there and counts nowhere.
// {"n_equal", "n_partial", "tasks": [{"task", "choices", "differ"}]}: all tasks that a plan has; `choices`
// has one for each plan, null where it has none; n_equal tasks are in all of them and alike, n_partial ones
// are not in all. *out is owned by the caller.
enum msc_status msc_differences_of_plans(struct cJSON **out, const struct cJSON *const plans[],
                                         size_t n);

#endif
