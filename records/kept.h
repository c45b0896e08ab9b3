// RECORD.result.json: results computed at the end of a search (validation, noise, isolated losses,
// metrics of the uncompressed model, and which lines are left out), so that a report needs no
// evaluation. docs/record.md describes its members.
//
//     MSC_TRY(msc_kept_save(record, report));          // after a search
//     MSC_TRY(msc_kept_load(&kept, record, log));      // later; NULL: no valid file
//     MSC_TRY(msc_report_create(&report, &options));   // without an environment
//     MSC_TRY(msc_kept_add(report, kept));
//
// The file is bound to the record's identity, and each number to the checksum of a line. Numbers
// that no longer fit are ignored.
#ifndef MSC_RECORDS_KEPT_H
#define MSC_RECORDS_KEPT_H

#include "base/log.h"
#include "records/record.h"

struct cJSON;

// Saves the numbers of a report that was made with an environment. The file is replaced atomically.
enum msc_status msc_kept_save(const struct msc_record *record, const struct cJSON *report);

// *out is owned by the caller (cJSON_Delete). It is NULL if there are no valid results. `log` gets
// a warning if the file is damaged or was written for another state of the record; results that are
// still valid are returned. The lines that the file lists as left out are also left out of `record`
// (msc_record_leave_out). Fails only with MSC_E_NOMEM.
enum msc_status msc_kept_load(struct cJSON **out, struct msc_record *record,
                              const struct msc_log *log);
// The number of lines that the file next to a record leaves out; 0: no file. Only the record's
// header is read.
enum msc_status msc_kept_n_left_out(size_t *n, const char *path);
// Like msc_kept_load, but only leaves lines out of `record` and returns no results.
enum msc_status msc_kept_leave_out(struct msc_record *record, const struct msc_log *log);

// Adds kept numbers to a report made without an environment. `kept` may be NULL.
enum msc_status msc_kept_add(struct cJSON *report, const struct cJSON *kept);

#endif
