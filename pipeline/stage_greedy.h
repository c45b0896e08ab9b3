// The greedy search after a search, for comparison. It is an entry of its own, with its own agent
// and record, but shares the environment of the session. Its result is not published.
#ifndef MSC_PIPELINE_STAGE_GREEDY_H
#define MSC_PIPELINE_STAGE_GREEDY_H

#include "pipeline/news.h"
#include "pipeline/processor_result.h"

// Adds the report of the greedy search to the search's report as `greedy`. Warns if the greedy
// search has found a better plan than the winner.
enum msc_status msc_stage_greedy(const struct msc_session *s, const struct msc_news *news,
                                 struct msc_processor_result *result, struct cJSON *report,
                                 const struct msc_trial *winner);

#endif
