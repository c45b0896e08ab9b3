// The stage after a search that measures the winner, the uniform plans and the float model in the
// runtime that they are for.
#ifndef MSC_PIPELINE_STAGE_RUNTIME_H
#define MSC_PIPELINE_STAGE_RUNTIME_H

#include "pipeline/news.h"
#include "pipeline/processor_result.h"

// Adds to a report the file size, outputs and latency of the plans, or why they are missing.
// MSC_E_CANCELLED: it was stopped; MSC_E_LOST: the device is lost; other failures are only logged.
enum msc_status msc_stage_runtime(const struct msc_session *s, struct msc_news *news,
                                  struct cJSON *report, const struct msc_record *record,
                                  const struct msc_trial *best);
// A runtime that refuses the winner, though it takes the float model, is a failure of the export:
// it goes into the result.
void msc_stage_runtime_check(const struct msc_session *s, const struct cJSON *report,
                             struct msc_processor_result *result);

#endif
