// Questions to a record: the best trial, the top N, the Pareto front, the baselines, counts. And
// its canonical text, for comparing two records.
#ifndef MSC_RECORDS_RECORD_QUERY_H
#define MSC_RECORDS_RECORD_QUERY_H

#include "base/hash.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

// The winner in the order of msc_trial_compare: feasible before infeasible, then by the first
// objective, then by the lower id. False when no trial was complete or infeasible, or all those were
// left out.
bool msc_record_best(struct msc_record_line *out, const struct msc_record *record);

// Ids [max] of the best `max` trials, best first, repeats left out; *n is how many there are.
void msc_record_top(int64_t ids[], size_t *n, size_t max, const struct msc_record *record);

// Ids of the Pareto front among feasible trials, by the first objective; repeats and later trials
// with equal objectives left out. *ids is owned by the caller (msc_free), NULL when empty.
enum msc_status msc_record_front(int64_t **ids, size_t *n, const struct msc_record *record);

// The trial of a baseline, the latest one when it was done again; false before it was evaluated.
bool msc_record_baseline(struct msc_record_line *out, const struct msc_record *record,
                         size_t index);

struct msc_record_counts {
    size_t n_trials;
    size_t n_by_state[MSC_TRIAL_STATE_COUNT];
    size_t n_baselines;
    size_t n_repeats;
    size_t n_retries;
    size_t n_told; // of other records
    // Trials that count against budget.trials: msc_record_is_budgeted, and a plan that the agent made
    // early, as long as nothing has come after it.
    size_t n_budgeted;
    bool ends_assembled; // with such a plan
    size_t n_evaluated;  // and timed
    double elapsed_s;
    double reuse_sum, reuse_ratio; // the same, and its mean
};
void msc_record_count(struct msc_record_counts *out, const struct msc_record *record);
// Adds a line to counts that begin as zero.
void msc_record_count_line(struct msc_record_counts *counts, const struct msc_record_line *line);

// Calls `write` with each line of a record file without `measured` and, in the header, without
// objects called `budget`, and leaves out plans made early, which ids then do not count; the checksum is that of what is printed. Two searches that agree give
// equal text. `line` has no newline. What does not count at the end is warned of in `log`.
enum msc_status msc_record_canonical(const char *path, const struct msc_log *log,
                                     enum msc_status (*write)(void *payload, const char *line,
                                                              size_t length),
                                     void *payload);
// The checksum of a trial's line.
enum msc_status msc_record_checksum(struct msc_hash *out, const struct msc_record *record,
                                    int64_t id);
// What a record is the record of: the checksum of the first line of its canonical text.
enum msc_status msc_record_identity(struct msc_hash *out, const struct msc_record *record);

MSC_PUBLIC_END

#endif
