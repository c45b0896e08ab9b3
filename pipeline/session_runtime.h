// Measures plans of a session in the target's runtime. A failed measurement is logged, and only its
// numbers are missing: the search keeps its result.
#ifndef MSC_PIPELINE_SESSION_RUNTIME_H
#define MSC_PIPELINE_SESSION_RUNTIME_H

#include "pipeline/delivery_plans.h"
#include "pipeline/news.h"

// Refuses a runtime that an entry names but mscgym-runtime does not know: MSC_E_INVALID. A runtime
// or program that is missing is no failure.
enum msc_status msc_session_check_runtimes(const struct msc_setup *setup);
// True if the entry wants measurements in a runtime and its plans can be measured in one.
bool msc_session_has_runtime(const struct msc_session *s);
// *out is owned by the caller. The delivery reports each step to `news`.
enum msc_status msc_session_open_delivery(struct msc_delivery **out, const struct msc_session *s,
                                          struct msc_news *news);
// Starts the runtime. Writes the runtime's description, or why the runtime is missing, to
// `runtime`.
enum msc_status msc_session_start_runtime(bool *is_there, struct cJSON *runtime,
                                          const struct msc_session *s, struct msc_delivery *d);
// Warns if a plan cannot be measured.
void msc_session_tell_refused(const struct msc_session *s, const struct msc_delivery_plan *plan);
// Logs the failure of a measurement. Returns MSC_OK, unless the measurement was cancelled or the
// device is lost.
enum msc_status msc_session_settle_measuring(const struct msc_session *s, enum msc_status status);
// Adds the results to a report. Takes ownership of `runtime`, which is empty if nothing is known.
enum msc_status msc_session_report_runtime(struct cJSON *report, struct cJSON *runtime,
                                           const struct msc_delivery_plans *list);

#endif
