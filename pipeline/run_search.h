// Runs the search of a session and all that follows it.
#ifndef MSC_PIPELINE_RUN_SEARCH_H
#define MSC_PIPELINE_RUN_SEARCH_H

#include "pipeline/processor_result.h"
#include "pipeline/session.h"

// Adds the report to the result; a dry run adds only the estimate.
enum msc_status msc_run_search(struct msc_session *s, struct msc_processor_result *result);

#endif
