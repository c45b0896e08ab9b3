// RECORD.rerank.json: the best trials of a record, ordered by measurements of their exported models
// (records/rerank.h), with these measurements. docs/record.md describes its members.
//
//     MSC_TRY(msc_reranked_load(&reranked, record, log));     // NULL: no valid file
//     const struct msc_report_options options = {.record = record, .reranked = reranked};
//
// Until all trials are measured, the file has no `by`, and its rows are in the search's order.
// Measurements in the file are not repeated.
#ifndef MSC_RECORDS_RERANKED_H
#define MSC_RECORDS_RERANKED_H

#include "base/log.h"
#include "records/record.h"

struct cJSON;

// Replaces the file atomically.
enum msc_status msc_reranked_save(const struct msc_record *record, const struct cJSON *reranked);

// *out is owned by the caller (cJSON_Delete). It is NULL unless there is a complete file and its
// trials are the record's best trials that are not left out. `log` gets a warning if the file is
// damaged, or of another record or state.
enum msc_status msc_reranked_load(struct cJSON **out, const struct msc_record *record,
                                  const struct msc_log *log);
// Like msc_reranked_load, but also accepts an incomplete file, and a file whose trials are no
// longer the best ones. Rows whose line has changed are dropped.
enum msc_status msc_reranked_load_rows(struct cJSON **out, const struct msc_record *record,
                                       const struct msc_log *log);

// Adds a trial's `id` and its line's `checksum` to a row.
enum msc_status msc_reranked_bind_row(struct cJSON *row, const struct msc_record *record,
                                      int64_t id);

// The trials to measure: at most `max` best feasible trials, best first, followed by the feasible
// baselines. `ids` has room for `max` and all baselines of the space.
void msc_reranked_candidates(int64_t ids[], size_t *n, size_t max, const struct msc_record *record);

// The number of best trials in the file next to a record; 0: no file. Only the record's header is
// read.
enum msc_status msc_reranked_n_top(size_t *n, const char *path);

// The best trial of a record: the first of the reranked trials or, if there are none, the search's
// winner. *is_there: false if no trial is eligible.
enum msc_status msc_reranked_winner(bool *is_there, struct msc_record_line *out,
                                    const struct msc_record *record, const struct msc_log *log);

#endif
