// Measures plans of a session in the runtime that the session is for. A failure to measure costs
// only the numbers: it is logged, and the search keeps its result.
#ifndef MSC_PIPELINE_SESSION_RUNTIME_H
#define MSC_PIPELINE_SESSION_RUNTIME_H

#include "pipeline/delivery_plans.h"
#include "pipeline/news.h"

// Does the session want its plans measured in a runtime, and can it?
bool msc_session_has_runtime(const struct msc_session *s);
// *out is owned by the caller; it tells `news` of each step.
enum msc_status msc_session_open_delivery(struct msc_delivery **out, const struct msc_session *s,
                                          struct msc_news *news);
// Describes the runtime, or why it is missing, in an object.
enum msc_status msc_session_start_runtime(bool *is_there, struct cJSON *runtime,
                                          const struct msc_session *s, struct msc_delivery *d);
// Warns of a plan that cannot be measured.
void msc_session_tell_refused(const struct msc_session *s, const struct msc_delivery_plan *plan);
// Logs the failure of a measurement. MSC_OK, unless it was stopped or has lost its device.
enum msc_status msc_session_settle_measuring(const struct msc_session *s, enum msc_status status);
// Adds what was found to a report; takes the ownership of `runtime`, which is empty if nothing is
// known.
enum msc_status msc_session_report_runtime(struct cJSON *report, struct cJSON *runtime,
                                           const struct msc_delivery_plans *list);

#endif
