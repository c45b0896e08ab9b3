// RECORD.attempt: which trials were in flight when a search process vanished, and what follows
// from it. The file is mapped into memory, so that noting a trial costs one store and outlives the
// process; it is gone after a search that ended well.
//
//  - Trials in flight when the process crashed, ran over a time limit, showed no sign of life
//    (search/watchdog.h) or was killed from outside run alone next. One that crashes alone has
//    failed; so has one that alone is killed from outside twice, or runs over its limit or shows no
//    sign of life three times: a machine may stall once, and a suspended one fails no trial.
//  - Where workers elsewhere measure (search/pool.h), only a crash of this process is put down to them: all
//    else says nothing of the trials, which were not in it.
//  - If nobody saw how the process ended (it was killed together with its parent, or the power
//    went), only the round is marked: a round that vanished twice runs one trial at a time, and a
//    trial that vanished three times alone has failed.
#ifndef MSC_SEARCH_ATTEMPT_H
#define MSC_SEARCH_ATTEMPT_H

#include "env/api/trial.h"
#include "search/supervise.h"

#define MSC_ATTEMPT_MAX_TRIALS 1024 // in flight at once, and suspected at once

struct msc_attempt;

enum msc_attempt_verdict {
    MSC_ATTEMPT_FREE,  // nothing against it
    MSC_ATTEMPT_ALONE, // run it alone
    MSC_ATTEMPT_FAILED,
};

struct msc_attempt_options {
    const char *record_path;
    struct msc_hash record_hash; // a file left by another record is passed over
    int64_t next_id;             // first trial not in the record
    double trial_seconds;        // time limit of one trial; <= 0: none
    bool is_elsewhere;           // workers of a pool measure
    struct msc_worker *worker;   // may be NULL
    const struct msc_log *log;
};

// Reads what the process before has left. Without a file (a full disk, say) the search goes on
// unprotected, with a warning. *out is owned by the caller.
enum msc_status msc_attempt_open(struct msc_attempt **out,
                                 const struct msc_attempt_options *options);
// Removes the file unless something in it is still needed. Accepts NULL.
void msc_attempt_close(struct msc_attempt *attempt);

bool msc_attempt_has_suspects(const struct msc_attempt *attempt);
// The outcome of a trial that has failed gets state, cause and reason.
enum msc_attempt_verdict msc_attempt_judge(const struct msc_attempt *attempt,
                                           struct msc_trial *trial);

// Trials were in flight in a process elsewhere that ended so (MSC_WORKER_DEATH_NONE: nobody saw how),
// at most MSC_ATTEMPT_MAX_TRIALS. What follows is what follows of the end of our own.
void msc_attempt_blame(struct msc_attempt *attempt, const int64_t ids[], size_t n, bool was_alone,
                       enum msc_worker_death death, int signal_number);

// The trials of one evaluation, at most MSC_ATTEMPT_MAX_TRIALS.
void msc_attempt_begin(struct msc_attempt *attempt, struct msc_trial *const trials[], size_t n,
                       bool is_alone);
void msc_attempt_finished(struct msc_attempt *attempt, size_t index);
void msc_attempt_end(struct msc_attempt *attempt);
// Trials before `next_id` are in the record: nothing needs to be known of them.
void msc_attempt_committed(struct msc_attempt *attempt, int64_t next_id);

#endif
