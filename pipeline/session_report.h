// Makes the report of a finished search. The winner is evaluated again; then the winner and the
// uniform plans are measured in ways that the search itself does not need. A copy is stored in
// RECORD.result.json.
#ifndef MSC_PIPELINE_SESSION_REPORT_H
#define MSC_PIPELINE_SESSION_REPORT_H

#include "pipeline/news.h"

// *out is owned by the caller. If the measurements are cancelled, found->end says so, and the
// report has only what the record has.
enum msc_status msc_session_make_report(struct cJSON **out, const struct msc_session *s,
                                        struct msc_news *news, struct msc_search_result *found);
// Stores a copy of a report. A failed write is only a warning.
enum msc_status msc_session_keep_report(const struct msc_session *s,
                                        const struct msc_record *record,
                                        const struct cJSON *report);

#endif
