// The stage after a search that measures the winner, the uniform plans and the float model in the
// target's runtime.
#ifndef MSC_PIPELINE_STAGE_RUNTIME_H
#define MSC_PIPELINE_STAGE_RUNTIME_H

#include "pipeline/news.h"
#include "pipeline/processor_result.h"

// Adds file size, outputs and latency of the plans to a report, or why they are missing.
// MSC_E_CANCELLED: cancelled. MSC_E_LOST: the device is lost. Other failures are only logged.
enum msc_status msc_stage_runtime(const struct msc_session *s, struct msc_news *news,
                                  struct cJSON *report, const struct msc_record *record,
                                  const struct msc_trial *best);
// If the runtime refuses the winner but accepts the float model, the result gets an export failure.
void msc_stage_runtime_check(const struct msc_session *s, const struct cJSON *report,
                             struct msc_processor_result *result);

#endif
