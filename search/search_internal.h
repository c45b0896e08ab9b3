// The inside of a running search, shared by the files of this folder.
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

// One line of the round in work: a proposal, a baseline, or a failed trial done again.
struct msc_search_item {
    struct msc_record_line line; // what it points to is the round's, or the record's
    bool is_done;                // the outcome is there, in a race as far as the next rung
    bool is_racing;              // it may go on, and is not to be written yet
    double *terms;               // of a raced search: [msc_env_n_terms]
    bool is_recorded;            // the line is in the record
};

// Failed for want of memory, of a device or of time.
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
    struct msc_arena warm_arena; // of its points
    size_t n_tried;              // of them, asked for as if by the agent

    int64_t next_id;   // of the next line to be read from the record or made
    size_t n_recorded; // lines that were there at the start
    bool is_live;      // beyond them
    bool is_retried;   // failed trials were done again, as far as was asked for

    // The round. Proposals point into `choices`.
    struct msc_proposal *proposals; // [parallel]
    uint32_t *choices;              // [parallel, n_tasks]
    struct msc_arena arena;         // of what the items point to
    struct msc_search_item *items;
    size_t n_items;
    size_t items_capacity;
    size_t n_written; // items whose line is in the record's buffer or beyond
    size_t n_told;    // items that the agent was told
    int64_t round_first;
    size_t n_extra; // items at the end that only take part in the race: the budget ends before them

    // The race. `part` is what open items are evaluated on.
    struct msc_race race;
    struct msc_env_part part;
    size_t n_terms;
    size_t *places; // [parallel] of items that are compared
    double *sums;   // [parallel] of these
    // Of lines so far, and of those before the round: however much of it is in the record, the same.
    struct msc_race_known known, known_before;

    // One evaluation.
    struct msc_trial **batch_trials; // [MSC_ATTEMPT_MAX_TRIALS], of the items
    size_t *batch_items;             // the same: index of the item
    double **batch_terms;            // the same, of a raced search
    enum msc_status batch_status;    // of commits made while it runs
    char batch_message[512];
    uint64_t last_commit_ns;
    struct msc_pace pace;
    struct msc_rate lines;      // of the record, with all that is done between two parts
    uint64_t paced_ns;          // when they were last noted
    int n_environment_failures; // in a row
    bool is_commit_failed;      // the record takes no more lines

    // What was found.
    int64_t best_id;               // -1: none
    int64_t announced_id;          // the best that the callback knows
    struct msc_record_front front; // of more than one objective; settled when it is looked at
    int64_t n_repeats_in_row;
    size_t n_budgeted;
    bool
        ends_assembled; // the record, with a plan that the agent made early; it is not in n_budgeted
    size_t n_repeats;

    // This launch.
    size_t n_new;
    size_t n_evaluated;
    double reuse_sum;
    double elapsed_before_s;
    uint64_t live_ns; // when this launch went live; 0: not yet
};

// search_open.c
enum msc_status msc_search__open(struct msc_search *s); // on failure too, close it
void msc_search__close(struct msc_search *s);

// search.c
// Tells the agent the round's items up to the n-th, but for what is none of its sequence.
enum msc_status msc_search__tell(struct msc_search *s, size_t n);

// search_item.c
// Adds an item for the trial s->next_id. A line of the record is taken as it is. A new one has the
// proposal's choices as long as the round lasts; it becomes a repeat when an earlier trial answers
// it.
enum msc_status msc_search__add_recorded(struct msc_search *s, const struct msc_record_line *line);
enum msc_status msc_search__add_new(struct msc_search *s, const struct msc_proposal *proposal,
                                    enum msc_record_warm warm);
// The same for what another record told (index below s->warm.n_told), whose outcome is there at once; for a
// uniform plan of the space, and for a failed trial done again.
enum msc_status msc_search__add_told(struct msc_search *s, size_t index);
enum msc_status msc_search__add_baseline(struct msc_search *s, size_t index);
enum msc_status msc_search__add_retry(struct msc_search *s, const struct msc_record_line *failed);
// The same for a plan that the agent made of what it was told.
enum msc_status msc_search__add_assembled(struct msc_search *s,
                                          const struct msc_proposal *proposal);

// search_commit.c
double msc_search__elapsed_s(const struct msc_search *s);
bool msc_search__is_time_over(const struct msc_search *s);
// Notes a line of the record or a new one, whose item was added: best, front, counts.
enum msc_status msc_search__note(struct msc_search *s, const struct msc_record_line *line);
// Writes the finished items at the head of the round. `is_inside`: an evaluation is running.
enum msc_status msc_search__commit(struct msc_search *s, bool is_inside);
// MSC_E_IO once the record had to be written anew elsewhere. All trials are in it.
enum msc_status msc_search__check_record(const struct msc_search *s);
// How many trials are to come (`is_exact` false: at most), and what they cost, in trials as
// expensive as the last ones.
struct msc_agent_left msc_search__left(const struct msc_search *s, double *effort);
enum msc_status msc_search__announce_best(struct msc_search *s);

// search_assemble.c
// How many trials the budget still allows, but for those that are kept for a plan that the agent makes of
// what it was told. `n_open`: proposals that it was asked for and that have no result.
int64_t msc_search__trials_allowed(const struct msc_search *s, size_t n_open);
// Once the search has ended: has the agent make its plan, where the budget ended before it could, and
// evaluates that.
enum msc_status msc_search__assemble(struct msc_search *s, enum msc_search_end end);

// search_run.c
bool msc_search__is_commit_due(const struct msc_search *s);
// Evaluates the first n of `batch_items`, together unless `one_by_one`; then each alone that memory
// or the device did not suffice for, twice where it does not run the first time. One that does not
// run then has failed, unless nothing else runs either: MSC_E_NOMEM.
enum msc_status msc_search__run(struct msc_search *s, size_t n, bool one_by_one);

// search_race.c
static inline bool msc_search__is_raced(const struct msc_search *s) {
    return s->race.n_rungs > 0;
}
enum msc_status msc_search__open_race(struct msc_search *s);
// Notes what the loss of an item has come to at the rungs of the part that was evaluated.
void msc_search__note_rungs(const struct msc_search *s, struct msc_search_item *item);
// Evaluates the round's open items as far as the race lets them. *is_over as in msc_search__evaluate.
enum msc_status msc_search__run_race(struct msc_search *s, bool *is_over);

// search_evaluate.c
// Evaluates the round's open items, part by part, and commits them. MSC_E_CANCELLED when stopped
// before all were done; what was finished is committed. *is_over: the budget of time ended before
// they were; NULL: they are evaluated whatever it says.
enum msc_status msc_search__evaluate(struct msc_search *s, bool *is_over);

#endif
