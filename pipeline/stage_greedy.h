// The greedy search after a search, for comparison. It is an entry of its own, with its own agent
// and record, but shares the environment of the session. Its result is not published.
#ifndef MSC_PIPELINE_STAGE_GREEDY_H
#define MSC_PIPELINE_STAGE_GREEDY_H

#include "pipeline/news.h"
#include "pipeline/processor_result.h"

// Adds its report to the search's as `greedy`. Warns if it has found a better plan than the winner.
enum msc_status msc_stage_greedy(const struct msc_session *s, const struct msc_news *news,
                                 struct msc_processor_result *result, struct cJSON *report,
                                 const struct msc_trial *winner);

#endif
