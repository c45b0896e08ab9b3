// Estimates the costs of a session's search before it starts: time, memory, and how many workers
// are worth having.
#ifndef MSC_PIPELINE_SESSION_ESTIMATE_H
#define MSC_PIPELINE_SESSION_ESTIMATE_H

#include "pipeline/session.h"

// Adds a report with the estimate: `entry`, `estimate` and `estimate_text`. MSC_E_IO: the disk is
// too small.
enum msc_status msc_session_add_estimate(struct cJSON *reports, const struct msc_session *s,
                                         const struct msc_search_options *o);
// MSC_E_INVALID: the search needs more memory than --memory allows.
enum msc_status msc_session_check_memory(const struct msc_session *s);

#endif
