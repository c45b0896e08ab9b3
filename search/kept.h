// RECORD.result.json: what the end of a search worked out (validation, noise, isolated losses, the
// uncompressed model, lines that were left out), so that a report shows it without evaluating
// anything. docs/record.md has its members.
//
//     MSC_TRY(msc_kept_save(record, report));          // after a search
//     MSC_TRY(msc_kept_load(&kept, record, log));      // later; NULL: nothing that fits
//     MSC_TRY(msc_report_create(&report, &options));   // without an environment
//     MSC_TRY(msc_kept_add(report, kept));
//
// Every number is bound to the record (its identity) and to the line (its checksum) that it is
// about: what does not fit any more is passed over.
#ifndef MSC_SEARCH_KEPT_H
#define MSC_SEARCH_KEPT_H

#include "base/log.h"
#include "records/record.h"

struct cJSON;

// Keeps what is in a report made with an environment. The file is complete or as it was.
enum msc_status msc_kept_save(const struct msc_record *record, const struct cJSON *report);

// *out is owned by the caller (cJSON_Delete), NULL when there is nothing. A file that is damaged,
// or of another state of the record, is told of in `log` and gives what is still true of it, if
// anything. Lines that were left out when it was written are left out of the record
// (msc_record_leave_out). Fails for want of memory only.
enum msc_status msc_kept_load(struct cJSON **out, struct msc_record *record,
                              const struct msc_log *log);
// The last of it alone.
enum msc_status msc_kept_leave_out(struct msc_record *record, const struct msc_log *log);

// Adds what was kept to a report made without an environment. `kept` may be NULL.
enum msc_status msc_kept_add(struct cJSON *report, const struct cJSON *kept);

#endif
