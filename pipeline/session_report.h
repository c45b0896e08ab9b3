// The report of a search that has ended: its winner is evaluated once more, then the winner and the
// uniform plans are measured by what the search itself does not need. A copy is kept in
// RECORD.result.json.
#ifndef MSC_PIPELINE_SESSION_REPORT_H
#define MSC_PIPELINE_SESSION_REPORT_H

#include "pipeline/news.h"

// *out is owned by the caller. If it was stopped while it measured, found->end says so, and the
// report has only what the record has.
enum msc_status msc_session_make_report(struct cJSON **out, const struct msc_session *s,
                                        struct msc_news *news, struct msc_search_result *found);
// Keeps a copy of a report. A failure to write is only a warning.
enum msc_status msc_session_keep_report(const struct msc_session *s,
                                        const struct msc_record *record,
                                        const struct cJSON *report);

#endif
