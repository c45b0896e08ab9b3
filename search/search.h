// The search: asks an agent for points, evaluates them in an environment, writes each to the
// record, tells the agent; goes on where the record ends.
//
//     struct msc_search_options options = {.env = env, .agent_config = agent, .goal = &goal,
//         .record_path = "a.jsonl", .numerics = "...", .parallel = 32, .budget = {.trials = 2000}};
//     struct msc_search_result result;
//     MSC_TRY(msc_search_run(&result, &options));
//     bool is_found = msc_record_best(&best, result.record);
//     msc_search_result_finish(&result);
//
// A search is one sequence of trials, fixed by configuration, seed and numerics id. It runs in
// rounds: the agent is asked for `parallel` points, they are evaluated, committed in id order, and
// told in id order. The record is at any time a beginning of that sequence, whatever the timing,
// the threads, kills and budgets: the budget only stops evaluation. To resume, the agent is built
// anew and asked again; what the record already holds is answered from it.
//
// A round that takes long is evaluated in parts of about a minute, each of which is in the record
// when the next one begins: a stop or a kill costs no more than that.
#ifndef MSC_SEARCH_SEARCH_H
#define MSC_SEARCH_SEARCH_H

#include "base/cancel.h"
#include "base/log.h"
#include "env/api/env.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

// Most proposals in one round.
#define MSC_SEARCH_MAX_PARALLEL 1024
// So many repeats in a row, and the search ends as exhausted.
#define MSC_SEARCH_MAX_REPEATS 1000

struct msc_pool;
struct msc_record_front;
struct msc_worker;

// What ends a search that has not come to its own end. Checked between rounds; trials and time also
// within.
struct msc_budget {
    int64_t trials; // total without baselines and retries; < 0: no limit
    double seconds; // over all launches; <= 0: no limit
    bool has_target;
    double target; // in the first objective's own direction: reached by a feasible trial
};
#define MSC_BUDGET_NONE                                                                            \
    { .trials = -1 }

struct msc_search_progress {
    size_t n_trials;    // lines in the record
    size_t n_budgeted;  // those that count against budget.trials
    int64_t max_trials; // budget.trials, or -1
    size_t n_new;       // of the lines, those of this launch
    size_t n_evaluated; // in this launch
    size_t n_repeats;
    const struct msc_record_line *best; // NULL: none yet; for the time of the call
    const struct msc_record *record;    // with all these trials
    struct msc_record_front *front;     // of them (msc_search_front_size); NULL with one objective
    double reuse_ratio;                 // mean over the trials evaluated in this launch
    double trials_per_s;                // of late, in this launch; NaN: not known
    double elapsed_s;                   // over all launches
    double n_left; // trials to come, by what ends first of agent, space and budget.trials; or +inf
    bool is_left_exact; // else they are at most so many
    double left_s;      // that these take, or until budget.seconds ends; NaN: unknown
    // With a pool: workers that measure, that were lost or refused, and parts that were sent again.
    bool has_pool;
    size_t n_workers, n_lost, n_refused, n_retried;
};

// Size of the Pareto front, which takes a while to find where it is large; 0 with one objective.
size_t msc_search_front_size(const struct msc_search_progress *progress);

struct msc_search_callbacks {
    void *payload;
    // After every commit. In a long round it comes from the thread that evaluates: look only.
    void (*progress)(void *payload, const struct msc_search_progress *progress);
    // The best trial (by the first objective) changed: after the evaluation, from the thread that
    // runs the search, so that the environment may be asked for its edits. Also once when a record
    // was read that has a best trial. A status other than MSC_OK ends the search.
    enum msc_status (*best)(void *payload, const struct msc_trial *trial);
};

struct msc_search_options {
    struct msc_env *env;
    const struct cJSON *agent_config; // the `agent` object: type and parameters
    const char *agent_folder;         // relative paths of external agents start here; NULL: "."
    const struct msc_goal *goal;
    const char *record_path;
    // That file, opened to be appended to; taken over, however the search ends. NULL: the search opens
    // it, or makes a new one.
    struct msc_record *record;
    // For the header. `config` is the resolved configuration; `hashes` and `more` add members
    // (the environment's own hashes are added by the search). All may be NULL.
    const char *program;
    const char *numerics; // that trials are measured under
    // That the environment was made ready under, here, where its trials are measured elsewhere under others: a
    // new record begins with these, and a segment line. NULL: the same.
    const char *own_numerics;
    const struct cJSON *config;
    const struct cJSON *hashes;
    const struct cJSON *more;
    // What the agent is told, and what is tried, before it is asked (msc_warm_collect); for a record
    // that is there, what its header says of it counts. May be NULL.
    const struct cJSON *warm;
    const char *const *free_keys; // members of config that may differ on resume
    uint64_t seed;
    uint32_t parallel; // proposals in a round, 1…MSC_SEARCH_MAX_PARALLEL
    // Between the trials of a round; NULL or without rungs: none. The environment takes batches one by
    // one (msc_env_n_batches), and distill_loss is the only objective.
    const struct msc_race *race;
    struct msc_budget budget;
    double trial_seconds;     // time limit of one trial, kept by the supervisor; <= 0: none
    double quiet_seconds;     // msc_worker_set_quiet; 0: never
    double commit_seconds;    // between commits in a long round; <= 0: 10
    double part_seconds;      // that a long round is evaluated in parts of; <= 0: 60
    bool restart;             // set an existing record aside first
    bool resume_only;         // MSC_E_NOT_FOUND when there is no record
    bool accept_new_numerics; // go on under another numerics id, after a segment line
    bool warm_start;   // tell a fresh agent all old trials instead of asking it for them again
    bool retry_failed; // do trials that failed for the environment's sake again
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    struct msc_worker *worker; // the supervised process's end of the shared page, or NULL
    // Optional: trials are measured by its workers. Nothing of the record depends on it.
    struct msc_pool *pool;
    struct msc_search_callbacks callbacks;
};

enum msc_search_end {
    MSC_SEARCH_END_AGENT,     // the agent has nothing left to try
    MSC_SEARCH_END_EXHAUSTED, // all points were told, or it only repeats itself
    MSC_SEARCH_END_TRIALS,    // budget.trials is used up
    MSC_SEARCH_END_TIME,      // budget.seconds is used up
    MSC_SEARCH_END_TARGET,    // budget.target is reached
    MSC_SEARCH_END_CANCELLED, // stopped on request; resume goes on
    MSC_SEARCH_END_COUNT
};
const char *msc_search_end_name(enum msc_search_end end); // "agent", "exhausted", "trials", ...
const char *msc_search_end_text(enum msc_search_end end); // the same for people

struct msc_search_result {
    enum msc_search_end end;
    bool was_resumed;          // the record had lines before
    size_t n_new;              // lines written in this launch
    size_t n_evaluated;        // of them, not answered from earlier ones
    double elapsed_s;          // search time over all launches
    double trial_s;            // time of one trial of late; NaN: none was measured in this launch
    struct msc_record *record; // released, readable: best, front, baselines, counts
};

// Runs until the budget, the agent or a cancel ends it. A failed trial does not end it. On an error
// the record holds everything committed so far and *result is zero. MSC_E_STATE: the record is of
// another search (names the field), is locked, or does not replay (names the trial). MSC_E_LOST: the
// device is lost; in a process that opens it anew the search goes on as if nothing had been.
enum msc_status msc_search_run(struct msc_search_result *result,
                               const struct msc_search_options *options);
void msc_search_result_finish(struct msc_search_result *result); // accepts a zeroed one

MSC_PUBLIC_END

#endif
