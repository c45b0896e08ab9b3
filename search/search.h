// The search: asks an agent for points, evaluates them in an environment, writes each trial to the
// record, and lets the agent observe it. It continues an existing record.
//
//     struct msc_search_options options = {.env = env, .agent_config = agent, .goal = &goal,
//         .record_path = "a.jsonl", .numerics = "...", .parallel = 32, .budget = {.trials = 2000}};
//     struct msc_search_result result;
//     MSC_TRY(msc_search_run(&result, &options));
//     bool is_found = msc_record_best(&best, result.record);
//     msc_search_result_finish(&result);
//
// A search is one sequence of trials, determined by configuration, seed and numerics id. It runs in
// rounds: the agent proposes `parallel` points; they are evaluated, then committed and observed in
// id order. At any time the record is a prefix of that sequence, independent of timing, threads,
// kills and budgets; the budget only stops evaluation. To resume, a new agent is asked for the same
// proposals again, and the record's trials answer them.
//
// A long round is evaluated in parts of about a minute. Each part is recorded before the next
// begins, so a stop or a kill loses at most one part.
#ifndef MSC_SEARCH_SEARCH_H
#define MSC_SEARCH_SEARCH_H

#include "base/cancel.h"
#include "base/log.h"
#include "env/api/env.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

// Greatest number of proposals in one round.
#define MSC_SEARCH_MAX_PARALLEL 1024
// After this many consecutive repeats, the search ends as exhausted.
#define MSC_SEARCH_MAX_REPEATS 1000

struct msc_pool;
struct msc_record_front;
struct msc_worker;

// Limits that end a search before its agent does. They are checked between rounds; trials and time
// are also checked within a round.
struct msc_budget {
    int64_t trials; // number of trials without baselines and retries; < 0: no limit
    double seconds; // search time over all launches; <= 0: no limit
    bool has_target;
    // A value of the first objective, not negated even if the objective is maximised. The search
    // ends when a feasible trial reaches it.
    double target;
};
#define MSC_BUDGET_NONE                                                                            \
    { .trials = -1 }

struct msc_search_progress {
    size_t n_trials;    // lines in the record
    size_t n_budgeted;  // lines that count against budget.trials
    int64_t max_trials; // budget.trials, or -1
    size_t n_new;       // lines of this launch
    size_t n_evaluated; // trials evaluated in this launch
    size_t n_repeats;
    const struct msc_record_line *best; // NULL: none yet; valid during the call
    const struct msc_record *record;    // the record with all trials so far
    struct msc_record_front *front;     // see msc_search_front_size; NULL with one objective
    double reuse_ratio;                 // mean over the trials evaluated in this launch
    double trials_per_s;                // recent speed in this launch; NaN: unknown
    double elapsed_s;                   // search time over all launches
    double n_left;      // trials to come, limited by agent, space and budget.trials; +inf: no limit
    bool is_left_exact; // false: n_left is an upper bound
    double left_s;      // time until these trials are done or budget.seconds ends; NaN: unknown
    // If there is a pool: the numbers of workers that measure, were lost and were refused, and the
    // number of parts that were sent again.
    bool has_pool;
    size_t n_workers, n_lost, n_refused, n_retried;
};

// Size of the Pareto front, which takes a while to compute if it is large; 0 with one objective.
size_t msc_search_front_size(const struct msc_search_progress *progress);

struct msc_search_callbacks {
    void *payload;
    // Called after every commit. In a long round the evaluating thread calls `progress`, so the
    // callback must only read.
    void (*progress)(void *payload, const struct msc_search_progress *progress);
    // Called when the best trial (by the first objective) has changed, and once if an existing
    // record has a best trial. The thread that runs the search calls `best` after the evaluation,
    // so the callback may ask the environment for the trial's edits. A status other than MSC_OK
    // ends the search.
    enum msc_status (*best)(void *payload, const struct msc_trial *trial);
};

struct msc_search_options {
    struct msc_env *env;
    const struct cJSON *agent_config; // the `agent` object: type and parameters
    const char *agent_folder;         // base of external agents' relative paths; NULL: "."
    const struct msc_goal *goal;
    const struct msc_drops *drops; // of the goal's bounds, for the record's header; may be NULL
    const char *record_path;
    // The record at record_path, opened for appending. The search takes ownership, even on failure.
    // NULL: the search opens it or creates a new one.
    struct msc_record *record;
    // For the record's header; all may be NULL. `config` is the resolved configuration, `hashes`
    // adds to the environment's own hashes, and `more` adds members.
    const char *program;
    const char *numerics; // id of the numerics with which trials are measured
    // If trials are measured elsewhere with other numerics: id of the numerics with which this
    // machine prepared the environment. A new record begins with this id, followed by a segment
    // line. NULL: the same as `numerics`.
    const char *own_numerics;
    const struct cJSON *config;
    const struct cJSON *hashes;
    const struct cJSON *more;
    // Trials to observe and points to try before the agent is asked (msc_warm_collect). If the
    // record exists, the points in its header are used instead. May be NULL.
    const struct cJSON *warm;
    const char *const *free_keys; // members of config that may differ on resume
    uint64_t seed;
    uint32_t parallel; // proposals in a round, 1 to MSC_SEARCH_MAX_PARALLEL
    // The race between trials of a round; NULL or no rungs: no race. The environment must evaluate
    // batches separately (msc_env_n_batches), and distill_loss must be the only objective.
    const struct msc_race *race;
    struct msc_budget budget;
    double trial_seconds;     // time limit of one trial, enforced by the supervisor; <= 0: none
    double quiet_seconds;     // limit for msc_worker_set_quiet; 0: none
    double commit_seconds;    // time between commits in a long round; <= 0: 10
    double part_seconds;      // target time of a part of a long round; <= 0: 60
    bool restart;             // set an existing record aside and begin a new one
    bool resume_only;         // MSC_E_NOT_FOUND if there is no record
    bool accept_new_numerics; // continue under another numerics id, after a segment line
    bool warm_start;   // let a new agent observe all old trials instead of replaying its proposals
    bool retry_failed; // repeat trials that failed because of the environment
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    struct msc_worker *worker; // the worker's side of the supervisor's shared page, or NULL
    // Optional: the workers of this pool measure the trials. The record is the same as without a
    // pool.
    struct msc_pool *pool;
    struct msc_search_callbacks callbacks;
};

enum msc_search_end {
    MSC_SEARCH_END_AGENT,     // the agent has nothing left to propose
    MSC_SEARCH_END_EXHAUSTED, // all points were observed, or the agent only repeats itself
    MSC_SEARCH_END_TRIALS,    // budget.trials is used up
    MSC_SEARCH_END_TIME,      // budget.seconds is used up
    MSC_SEARCH_END_TARGET,    // budget.target is reached
    MSC_SEARCH_END_CANCELLED, // stopped on request; the search can be resumed
    MSC_SEARCH_END_COUNT
};
const char *msc_search_end_name(enum msc_search_end end); // "agent", "exhausted", "trials", ...
const char *msc_search_end_text(enum msc_search_end end); // a description for people

struct msc_search_result {
    enum msc_search_end end;
    bool was_resumed;          // did the record already have lines?
    size_t n_new;              // lines written in this launch
    size_t n_evaluated;        // lines of this launch that are not repeats of earlier trials
    double elapsed_s;          // search time over all launches
    double trial_s;            // recent time of one trial; NaN: none was measured in this launch
    // The agent's remarks (msc_agent_remarks), a list of texts; NULL: the search was stopped.
    struct cJSON *learnt;
    struct msc_record *record; // unlocked and readable: best, front, baselines, counts
};

// Runs until the budget, the agent or a cancel request ends the search. Failed trials do not end
// it. On an error the record holds everything committed so far and *result is zero. MSC_E_STATE:
// the record belongs to another search (the message names the field), is locked, or does not replay
// (the message names the trial). MSC_E_LOST: the device is lost; a new process can open it again
// and continue the search.
enum msc_status msc_search_run(struct msc_search_result *result,
                               const struct msc_search_options *options);
void msc_search_result_finish(struct msc_search_result *result); // accepts zeros

MSC_PUBLIC_END

#endif
