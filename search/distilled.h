// RECORD.distill.json: what the stage `distill` has made of the plan that a record has come to, with
// the improved plan itself. docs/record.md has its members.
//
//     MSC_TRY(msc_distilled_load(&distilled, record, &line->trial, log));     // NULL: none that fits
//     MSC_TRY(msc_report_add_distilled(report, distilled));
//
// It is written once, when all is known.
#ifndef MSC_SEARCH_DISTILLED_H
#define MSC_SEARCH_DISTILLED_H

#include "base/log.h"
#include "records/record.h"

struct cJSON;

// Binds `distilled` to the trial's line and keeps it. Complete or as it was.
enum msc_status msc_distilled_save(const struct msc_record *record, struct cJSON *distilled,
                                   int64_t trial);
// *out is owned by the caller (cJSON_Delete); NULL when there is none of this trial's line as it is
// now. A file that is damaged, incomplete or of another record or trial is told of in `log`.
enum msc_status msc_distilled_load(struct cJSON **out, const struct msc_record *record,
                                   int64_t trial, const struct msc_log *log);
// The improved plan in it, a strategy's JSON, borrowed; NULL: the trial's own is delivered.
const struct cJSON *msc_distilled_plan(const struct cJSON *distilled);

// What is delivered of a record (msc_reranked_winner): the improved plan of its winner, a strategy's
// JSON that is owned by the caller, or NULL: that of its choices.
enum msc_status msc_distilled_delivered(struct cJSON **out, const struct msc_record *record,
                                        int64_t trial, const struct msc_log *log);

#endif
