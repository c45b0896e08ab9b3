// RECORD.distill.json: the results of the stage `distill` for a record's best plan, with the
// improved plan. docs/record.md describes its members.
//
//     MSC_TRY(msc_distilled_load(&distilled, record, line->trial.id, log)); // NULL: no valid file
//     MSC_TRY(msc_report_add_distilled(report, distilled));
//
// The file is written once, when all results are known.
#ifndef MSC_RECORDS_DISTILLED_H
#define MSC_RECORDS_DISTILLED_H

#include "base/log.h"
#include "records/record.h"

struct cJSON;

// Binds `distilled` to the trial's line and writes it atomically.
enum msc_status msc_distilled_save(const struct msc_record *record, struct cJSON *distilled,
                                   int64_t trial);
// *out is owned by the caller (cJSON_Delete). It is NULL if there is no valid file for the trial's
// current line. `log` gets a warning if the file is damaged, incomplete, or of another record or
// trial.
enum msc_status msc_distilled_load(struct cJSON **out, const struct msc_record *record,
                                   int64_t trial, const struct msc_log *log);
// The improved plan of `distilled` as strategy JSON, borrowed. NULL if the improved plan was not
// accepted, so that the trial's own plan is delivered.
const struct cJSON *msc_distilled_plan(const struct cJSON *distilled);

// The improved plan that is delivered for a record's winner (msc_reranked_winner), as strategy JSON
// owned by the caller. NULL: the plan of the trial's choices is delivered.
enum msc_status msc_distilled_delivered(struct cJSON **out, const struct msc_record *record,
                                        int64_t trial, const struct msc_log *log);

#endif
