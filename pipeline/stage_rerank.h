// The stage `rerank` after a search: exports the best trials, measures the models in the runtime
// and by a user's command, and orders the trials by the result.
#ifndef MSC_PIPELINE_STAGE_RERANK_H
#define MSC_PIPELINE_STAGE_RERANK_H

#include "pipeline/news.h"

// Adds the trials in their new order to a report; *best becomes the first of them. If there is
// neither a runtime nor a command, *best is unchanged. Continues from RECORD.rerank.json.
// MSC_E_CANCELLED: cancelled. MSC_E_LOST: the device is lost. Other failures are only logged.
enum msc_status msc_stage_rerank(const struct msc_session *session, struct msc_news *news,
                                 struct cJSON *report, const struct msc_record *record,
                                 struct msc_trial *best);

#endif
