// JSON files next to a record that keep results about it: RECORD.result.json (records/kept.h),
// RECORD.rerank.json (records/reranked.h), RECORD.distill.json (records/distilled.h). Each file is
// bound to its record by the record's identity (`record`) and to lines by their checksums, and has
// its own checksum.
#ifndef MSC_RECORDS_KEPT_FILE_H
#define MSC_RECORDS_KEPT_FILE_H

#include "records/record.h"

#include "base/json.h"
#include "base/log.h"

struct msc_kept_kind {
    const char *ending; // ".result.json"
    const char *schema; // "mscgym.result.1"
};

// Writes schema, record, the object's members and a checksum to RECORD plus the ending, atomically.
enum msc_status msc_kept_file_save(const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const cJSON *object);
// *out is owned by the caller. It is NULL if there is no file. It is also NULL if the file is
// damaged or belongs to another record; `log` then gets a warning.
enum msc_status msc_kept_file_load(cJSON **out, const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const struct msc_log *log);

// Adds the `id` of a trial and the `checksum` of its line.
enum msc_status msc_kept_bind_row(cJSON *row, const struct msc_record *record, int64_t id);
// Sets *fits: does the row's checksum equal that of the current line with the row's id?
enum msc_status msc_kept_row_fits(bool *fits, const cJSON *row, const struct msc_record *record);
// Adds a copy of `value` as a member, unless `value` is NULL.
enum msc_status msc_kept_add_copy(cJSON *object, const char *key, const cJSON *value);

#endif
