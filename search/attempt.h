// Tracks in RECORD.attempt which trials were in flight when a search process died, and decides what
// follows. The file is mapped into memory: noting a trial costs one store, and the note survives
// the process. The file is removed when a search ends, unless a resumed search needs it.
//
//  - Trials in flight are run alone next if the process crashed, exceeded a time limit, showed no
//    sign of life (supervise/watchdog.h) or was killed from outside. A trial that crashes alone has
//    failed. A trial that runs alone has also failed if it is killed from outside twice, or if it
//    exceeds its limit or shows no sign of life three times, because a machine may stall once.
//    Suspending the process fails no trial.
//  - If workers elsewhere measure (cluster/pool.h), only a crash of this process is blamed on the
//    trials. Other deaths are not, because the trials ran in other processes.
//  - If it is unknown how the process ended (its parent was killed too, or power was lost), the
//    round is marked as vanished. A round that vanished twice runs one trial at a time. A trial
//    that vanished three times while running alone has failed.
#ifndef MSC_SEARCH_ATTEMPT_H
#define MSC_SEARCH_ATTEMPT_H

#include "env/api/trial.h"
#include "supervise/supervise.h"

#define MSC_ATTEMPT_MAX_TRIALS 1024 // most trials in flight, and most suspects

struct msc_attempt;

enum msc_attempt_verdict {
    MSC_ATTEMPT_FREE,  // not suspected
    MSC_ATTEMPT_ALONE, // run it alone
    MSC_ATTEMPT_FAILED,
};

struct msc_attempt_options {
    const char *record_path;
    struct msc_hash record_hash; // identifies the record; a file of another record is ignored
    int64_t next_id;             // first trial not in the record
    double trial_seconds;        // time limit of one trial; <= 0: none
    bool is_elsewhere;           // do workers of a pool measure the trials?
    struct msc_worker *worker;   // may be NULL
    const struct msc_log *log;
};

// Reads the file of the previous process. If the file cannot be created (on a full disk, for
// example), the search continues unprotected, with a warning. *out is owned by the caller.
enum msc_status msc_attempt_open(struct msc_attempt **out,
                                 const struct msc_attempt_options *options);
// Removes the file, unless a resumed search needs it. Accepts NULL.
void msc_attempt_close(struct msc_attempt *attempt);

bool msc_attempt_has_suspects(const struct msc_attempt *attempt);
// If the trial has failed, sets state, cause and reason of its outcome.
enum msc_attempt_verdict msc_attempt_judge(const struct msc_attempt *attempt,
                                           struct msc_trial *trial);

// Blames trials that were in flight in a process elsewhere for the death of that process
// (MSC_WORKER_DEATH_NONE: of unknown cause). The trials, at most MSC_ATTEMPT_MAX_TRIALS, are
// treated as after a death of this process.
void msc_attempt_blame(struct msc_attempt *attempt, const int64_t ids[], size_t n, bool was_alone,
                       enum msc_worker_death death, int signal_number);

// Notes the trials of one evaluation, at most MSC_ATTEMPT_MAX_TRIALS.
void msc_attempt_begin(struct msc_attempt *attempt, struct msc_trial *const trials[], size_t n,
                       bool is_alone);
void msc_attempt_finished(struct msc_attempt *attempt, size_t index);
void msc_attempt_end(struct msc_attempt *attempt);
// Drops the trials before `next_id` from the file, because they are in the record.
void msc_attempt_committed(struct msc_attempt *attempt, int64_t next_id);

#endif
