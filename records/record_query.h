// Queries of a record: the best trial, the top N, the Pareto front, the baselines, counts; and
// its canonical text, for comparing two records.
#ifndef MSC_RECORDS_RECORD_QUERY_H
#define MSC_RECORDS_RECORD_QUERY_H

#include "base/hash.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

// The winner in the order of msc_trial_compare: feasible before infeasible, then by the first
// objective, then by the lower id. False if there is no such trial: none is complete or infeasible,
// or all were left out.
bool msc_record_best(struct msc_record_line *out, const struct msc_record *record);

// Fills ids [max] with the best trials, best first, without repeats; *n is their number.
void msc_record_top(int64_t ids[], size_t *n, size_t max, const struct msc_record *record);

// Ids of the Pareto front among feasible trials, sorted by the first objective. Repeats are
// omitted, and so are later trials with equal objectives. *ids is owned by the caller (msc_free),
// NULL if empty.
enum msc_status msc_record_front(int64_t **ids, size_t *n, const struct msc_record *record);

// The trial of a baseline; if the baseline was retried, the last trial. False if it was not yet
// evaluated.
bool msc_record_baseline(struct msc_record_line *out, const struct msc_record *record,
                         size_t index);

struct msc_record_counts {
    size_t n_trials;
    size_t n_by_state[MSC_TRIAL_STATE_COUNT];
    size_t n_baselines;
    size_t n_repeats;
    size_t n_retries;
    size_t n_told; // trials observed from other records
    // Trials that count against budget.trials: all with msc_record_is_budgeted, and a plan
    // assembled early if it is the last line.
    size_t n_budgeted;
    bool ends_assembled; // the last line is a plan assembled early
    size_t n_evaluated;  // trials that were evaluated and timed
    double elapsed_s;
    double reuse_sum, reuse_ratio; // sum and mean over evaluated trials
};
void msc_record_count(struct msc_record_counts *out, const struct msc_record *record);
// Adds a line to counts, which start at zero.
void msc_record_count_line(struct msc_record_counts *counts, const struct msc_record_line *line);

// Calls `write` with each line of a record in canonical form: without `measured`, without objects
// called `budget` in the header, without plans assembled early (ids skip them), and with the
// checksum of the result. Searches with equal results give equal texts. `line` has no newline. A
// torn end is reported as a warning in `log`.
enum msc_status msc_record_canonical(const char *path, const struct msc_log *log,
                                     enum msc_status (*write)(void *payload, const char *line,
                                                              size_t length),
                                     void *payload);
// The checksum of a trial's line.
enum msc_status msc_record_checksum(struct msc_hash *out, const struct msc_record *record,
                                    int64_t id);
// Identifies a record: the checksum of the first line of its canonical text.
enum msc_status msc_record_identity(struct msc_hash *out, const struct msc_record *record);

MSC_PUBLIC_END

#endif
