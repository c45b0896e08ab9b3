// Runs the search of a session, from its estimate to its report.
#ifndef MSC_PIPELINE_RUN_SEARCH_H
#define MSC_PIPELINE_RUN_SEARCH_H

#include "pipeline/processor_result.h"
#include "pipeline/session.h"

// Adds the report to the result; in a dry run only the estimate.
enum msc_status msc_run_search(struct msc_session *s, struct msc_processor_result *result);

#endif
