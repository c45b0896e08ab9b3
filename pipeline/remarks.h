// Warnings about a space, given before a long search starts.
#ifndef MSC_PIPELINE_REMARKS_H
#define MSC_PIPELINE_REMARKS_H

#include "base/log.h"
#include "env/api/trial.h"

// Warns of tasks whose choices differ in costs that neither an objective nor a bound uses: for
// these tasks, the search always prefers the most expensive choices.
enum msc_status msc_remark_costs(const struct msc_space *space, const struct msc_goal *goal,
                                 const struct msc_log *log);

#endif
