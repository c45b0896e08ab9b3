// JSON files beside a record that keep what was worked out of it: RECORD.result.json (search/kept.h),
// RECORD.rerank.json (search/reranked.h), RECORD.distill.json (search/distilled.h). Each is bound to
// its record by `record`, its identity, to lines by their checksums, and has a checksum of its own.
#ifndef MSC_SEARCH_KEPT_FILE_H
#define MSC_SEARCH_KEPT_FILE_H

#include "records/record.h"

#include "base/json.h"
#include "base/log.h"

struct msc_kept_kind {
    const char *ending; // ".result.json"
    const char *schema; // "mscgym.result.1"
};

// Writes RECORD and the ending: schema and record, the object's members, checksum. Complete or as it
// was.
enum msc_status msc_kept_file_save(const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const cJSON *object);
// *out is owned by the caller; NULL: there is no such file, or none of use, being damaged or of another
// record, which `log` is told.
enum msc_status msc_kept_file_load(cJSON **out, const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const struct msc_log *log);

// Adds `id` and `checksum`, those of a trial's line.
enum msc_status msc_kept_bind_row(cJSON *row, const struct msc_record *record, int64_t id);
// *fits: the row is about the line that has its id now.
enum msc_status msc_kept_row_fits(bool *fits, const cJSON *row, const struct msc_record *record);
// A copy of a member, if there is one.
enum msc_status msc_kept_add_copy(cJSON *object, const char *key, const cJSON *value);

#endif
