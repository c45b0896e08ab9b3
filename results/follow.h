// Follows a running search from another process by reading its record: progress, best results,
// recent speed, remaining time. After the first read, only appended lines are read. Memory does not
// grow with the record. Nothing is locked or written.
//
//     struct msc_follow *follow;
//     MSC_TRY(msc_follow_open(&follow, "a.jsonl", log));
//     MSC_TRY_OUT(msc_follow_read(follow));                // repeatedly
//     ... msc_follow_now(&now, follow), msc_follow_history(follow) ...
//     out: msc_follow_close(follow);
#ifndef MSC_RESULTS_FOLLOW_H
#define MSC_RESULTS_FOLLOW_H

#include "records/record_query.h"
#include "records/record_writer.h"
#include "results/history.h"

struct cJSON;
struct msc_follow;

// A process that evaluates trials for the search.
struct msc_follow_worker {
    long process;
    size_t n_threads;
};
#define MSC_FOLLOW_MOST_WORKERS 1 // the process that writes the record

struct msc_follow_state {
    enum msc_record_written is_running;
    struct msc_follow_worker workers[MSC_FOLLOW_MOST_WORKERS];
    size_t n_workers;
    struct msc_record_counts counts;
    // The budget in the record's header. A resumed search may have a different budget.
    double max_trials;   // NaN: none
    double max_s;        // NaN: none
    double target;       // NaN: none
    double trials_per_s; // recent speed; NaN: unknown
    double left_s;       // time until the first limit is reached; NaN: unknown, or not running
    double since_s;      // time since the file was last written
    size_t n_front;      // points on the Pareto front; 0 if there is only one objective
    int64_t best_id;     // -1: none yet
    double best;         // the first objective of the best feasible trial; NaN: none
    double best_metrics[MSC_MAX_METRICS]; // all of that trial; NaN: not measured
};

enum msc_status msc_follow_open(struct msc_follow **out, const char *path,
                                const struct msc_log *log);
// Reads the lines that were appended. If the record was replaced by a new file, reads the new file
// from its beginning.
enum msc_status msc_follow_read(struct msc_follow *follow);
enum msc_status msc_follow_now(struct msc_follow_state *out, struct msc_follow *follow);
const struct msc_history *msc_follow_history(const struct msc_follow *follow);
// The record, of which at least the header has been read; borrowed.
const struct msc_record *msc_follow_record(const struct msc_follow *follow);
// Describes the state as JSON, with the best value at the end of each of `n_parts` equal parts of
// the trials. *out is owned by the caller.
enum msc_status msc_follow_describe(struct cJSON **out, struct msc_follow *follow, size_t n_parts);
void msc_follow_close(struct msc_follow *follow); // accepts NULL

#endif
