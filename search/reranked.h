// RECORD.rerank.json: the best trials of a record in the order that measuring their exported models
// gave (search/rerank.h), with what was measured. docs/record.md has its members.
//
//     MSC_TRY(msc_reranked_load(&reranked, record, log));     // NULL: none that fits
//     const struct msc_report_options options = {.record = record, .reranked = reranked};
//
// While it is being made it has no `by`, and rows in the search's order: what they hold need not be
// measured again.
#ifndef MSC_SEARCH_RERANKED_H
#define MSC_SEARCH_RERANKED_H

#include "base/log.h"
#include "records/record.h"

struct cJSON;

// Complete or as it was.
enum msc_status msc_reranked_save(const struct msc_record *record, const struct cJSON *reranked);

// *out is owned by the caller (cJSON_Delete); NULL when there is none, or none that is complete and of
// the record as it is now: its best trials, but for those left out, are those that were measured. A
// file that is damaged or of another record or state is told of in `log`.
enum msc_status msc_reranked_load(struct cJSON **out, const struct msc_record *record,
                                  const struct msc_log *log);
// The same, complete or not, whatever the record's best trials are now: rows that do not fit their
// lines are gone.
enum msc_status msc_reranked_load_rows(struct cJSON **out, const struct msc_record *record,
                                       const struct msc_log *log);

// Adds `id` and `checksum`, those of a trial's line, to a row of it.
enum msc_status msc_reranked_bind_row(struct cJSON *row, const struct msc_record *record,
                                      int64_t id);

// Those to be measured: the best feasible trials, best first, at most `max`, and behind them what
// baselines are feasible, too. `ids` has room for `max` and all baselines of the space.
void msc_reranked_candidates(int64_t ids[], size_t *n, size_t max, const struct msc_record *record);

// How many of its best trials the file beside a record is about; 0: there is none. Of the record the
// header is read.
enum msc_status msc_reranked_n_top(size_t *n, const char *path);

// What the record has come to: the first of those that were measured, else its best trial;
// *is_there: it has one.
enum msc_status msc_reranked_winner(bool *is_there, struct msc_record_line *out,
                                    const struct msc_record *record, const struct msc_log *log);

#endif
