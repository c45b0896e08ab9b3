// The stage `rerank` after a search: measures the best trials once more as exported models, in
// their runtime and by a command of the user, and orders them by that.
#ifndef MSC_PIPELINE_STAGE_RERANK_H
#define MSC_PIPELINE_STAGE_RERANK_H

#include "pipeline/news.h"

// Adds the trials in their new order to a report; *best becomes the first of them. It stays without
// a runtime and a command. Continues where RECORD.rerank.json ends. MSC_E_CANCELLED: it was
// stopped; MSC_E_LOST: the device is lost; other failures are only logged.
enum msc_status msc_stage_rerank(const struct msc_session *session, struct msc_news *news,
                                 struct cJSON *report, const struct msc_record *record,
                                 struct msc_trial *best);

#endif
