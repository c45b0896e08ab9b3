// The state of a running search, shared by the search_*.c files.
#ifndef MSC_SEARCH_SEARCH_INTERNAL_H
#define MSC_SEARCH_SEARCH_INTERNAL_H

#include "agents/agent.h"
#include "env/env.h"
#include "records/race.h"
#include "records/record_front.h"
#include "search/attempt.h"
#include "search/pace.h"
#include "search/points.h"
#include "search/search.h"
#include "search/warm.h"

// One line of the current round: a proposal, a baseline, or a retry of a failed trial.
struct msc_search_item {
    struct msc_record_line line; // pointers belong to the round or the record
    bool is_done;                // the outcome is known (in a race: up to the next rung)
    bool is_racing;              // the trial may continue in the race, so it is not written yet
    double *terms;               // [msc_env_n_terms]; NULL without a race
    bool is_recorded;            // the line is in the record
};

// True if the trial failed for lack of memory, device or time.
static inline bool msc_search__may_succeed_later(const struct msc_outcome *outcome) {
    return outcome->state == MSC_TRIAL_FAILED && outcome->cause == MSC_CAUSE_ENVIRONMENT;
}

struct msc_search {
    const struct msc_search_options *options;
    const struct msc_space *space;
    const struct msc_goal *goal;
    struct msc_agent *agent;
    struct msc_record *record;
    struct msc_attempt *attempt;
    struct msc_points points;
    double n_space_points;
    struct msc_warm warm;
    struct msc_arena warm_arena; // memory of the points in `warm`
    size_t n_tried;              // points of `warm` that were tried so far

    int64_t next_id;   // id of the next line, read from the record or new
    size_t n_recorded; // lines in the record at the start
    bool is_live;      // were all recorded lines replayed?
    bool is_retried;   // was the step that retries failed trials done?

    // The round. Proposals point into `choices`.
    struct msc_proposal *proposals; // [parallel]
    uint32_t *choices;              // [parallel, n_tasks]
    struct msc_arena arena;         // memory of the items
    struct msc_search_item *items;
    size_t n_items;
    size_t items_capacity;
    size_t n_written; // items whose line is in the record or its buffer
    size_t n_told;    // items that the agent has observed
    int64_t round_first;
    size_t n_extra; // items at the end that exceed the budget; they only take part in the race

    // The race. `part` is the range of batches on which open items are evaluated.
    struct msc_race race;
    struct msc_env_part part;
    size_t n_terms;
    size_t *places; // [parallel], indices of the items to compare
    double *sums;   // [parallel], losses of these items
    // Statistics of the race, now and before the round. They do not depend on how much of the round
    // is recorded.
    struct msc_race_known known, known_before;

    // One evaluation.
    struct msc_trial **batch_trials; // [MSC_ATTEMPT_MAX_TRIALS], trials of the items
    size_t *batch_items;             // [MSC_ATTEMPT_MAX_TRIALS], index of the item
    double **batch_terms;            // [MSC_ATTEMPT_MAX_TRIALS], terms of the item; used in a race
    enum msc_status batch_status;    // status of commits made during the evaluation
    char batch_message[512];
    uint64_t last_commit_ns;
    struct msc_pace pace;
    struct msc_rate lines;      // speed: time per line of the record, including the work between
                                // parts
    uint64_t paced_ns;          // time of the last note in `lines`
    int n_environment_failures; // consecutive trials that failed because of the environment
    bool is_commit_failed;      // the record accepts no more lines

    // Results so far.
    int64_t best_id;               // -1: none
    int64_t announced_id;          // the last best trial that the callback received
    struct msc_record_front front; // used with several objectives; settled when read
    int64_t n_repeats_in_row;
    size_t n_budgeted;
    bool ends_assembled; // is the last line an early plan? n_budgeted does not count it
    size_t n_repeats;

    // This launch.
    size_t n_new;
    size_t n_evaluated;
    double reuse_sum;
    double elapsed_before_s;
    uint64_t live_ns; // when this launch ended its replay; 0: not yet
};

// search_open.c
enum msc_status msc_search__open(struct msc_search *s); // call msc_search__close also on failure
void msc_search__close(struct msc_search *s);

// search_item.c
// Adds an item for the trial s->next_id. A recorded line is used unchanged. A new item refers to
// the proposal's choices, which must remain valid for the round. The item is a repeat if an earlier
// trial answers the proposal.
enum msc_status msc_search__add_recorded(struct msc_search *s, const struct msc_record_line *line);
enum msc_status msc_search__add_new(struct msc_search *s, const struct msc_proposal *proposal,
                                    enum msc_record_warm warm);
// These add an item for a trial of another record with a known outcome (index below
// s->warm.n_told), for a uniform plan of the space, and for a retry of a failed trial.
enum msc_status msc_search__add_told(struct msc_search *s, size_t index);
enum msc_status msc_search__add_baseline(struct msc_search *s, size_t index);
enum msc_status msc_search__add_retry(struct msc_search *s, const struct msc_record_line *failed);
// Adds an item for a plan that the agent assembled from its observations.
enum msc_status msc_search__add_assembled(struct msc_search *s,
                                          const struct msc_proposal *proposal);
// Lets the agent observe the round's items before the n-th, except items that are not part of the
// agent's sequence.
enum msc_status msc_search__tell(struct msc_search *s, size_t n);

// search_commit.c
double msc_search__elapsed_s(const struct msc_search *s);
bool msc_search__is_time_over(const struct msc_search *s);
// Updates best, front and counts with a recorded line, or with a new line whose item was added.
enum msc_status msc_search__note(struct msc_search *s, const struct msc_record_line *line);
// Writes the finished items at the beginning of the round. `is_inside`: is an evaluation running?
enum msc_status msc_search__commit(struct msc_search *s, bool is_inside);
// MSC_E_IO if the record had to be rewritten to another file, which has all trials.
enum msc_status msc_search__check_record(const struct msc_search *s);
// The number of trials to come (an upper bound unless `is_exact`). Sets *effort to their cost, in
// units of recent trials.
struct msc_agent_left msc_search__left(const struct msc_search *s, double *effort);
enum msc_status msc_search__announce_best(struct msc_search *s);

// search_assemble.c
// The number of trials that the budget still allows, minus one for the agent's early plan if it
// will be needed. `n_open`: proposals without a result.
int64_t msc_search__trials_allowed(const struct msc_search *s, size_t n_open);
// Call after the search. If the budget ended before the agent could make its plan, lets the agent
// make an early plan, and evaluates it.
enum msc_status msc_search__assemble(struct msc_search *s, enum msc_search_end end);

// search_run.c
bool msc_search__is_commit_due(const struct msc_search *s);
// Evaluates the first n of `batch_items`, together unless `one_by_one`. Trials for which memory or
// the device was insufficient are then run alone, up to twice. A trial that still does not run has
// failed; if no other trial runs either, returns MSC_E_NOMEM.
enum msc_status msc_search__run(struct msc_search *s, size_t n, bool one_by_one);

// search_race.c
static inline bool msc_search__is_raced(const struct msc_search *s) {
    return s->race.n_rungs > 0;
}
enum msc_status msc_search__open_race(struct msc_search *s);
// Evaluates the round's open items as a race. *is_over as in msc_search__evaluate.
enum msc_status msc_search__run_race(struct msc_search *s, bool *is_over);

// search_evaluate.c
// Evaluates the round's open items in parts and commits them. MSC_E_CANCELLED if stopped before all
// were done; finished items are committed. Sets *is_over if the time budget ended first; NULL: the
// time budget is ignored.
enum msc_status msc_search__evaluate(struct msc_search *s, bool *is_over);

#endif
