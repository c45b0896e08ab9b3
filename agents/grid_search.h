// State of the agent `grid_search` and the interface of its modes. agent_grid_search.c selects the
// mode; grid_per_task.c, grid_greedy.c and grid_full.c implement one mode each and share the
// functions of grid_search.c.
#ifndef MSC_AGENTS_GRID_SEARCH_H
#define MSC_AGENTS_GRID_SEARCH_H

#include "agents/agent.h"
#include "agents/exact_bounds.h"
#include "agents/exact_moves.h"
#include "agents/grid_around.h"
#include "agents/guess.h"
#include "agents/knapsack.h"

// Mode `per_task`: each choice in isolation, then a knapsack.
struct msc_grid_per_task {
    struct msc_knapsack knapsack;
    double *losses;                  // [n_entries], NaN: not observed, or failed
    bool *is_open;                   // [n_entries], whether the loss is not observed yet
    double *metrics[MSC_MAX_BOUNDS]; // [n_entries] for bounds on measured metrics, else NULL
    struct msc_guess guess, metric_guesses[MSC_MAX_BOUNDS];
    size_t task;       // task of the next isolated plan
    uint32_t position; // position of that plan's choice in most_expensive_first
    bool is_solved;    // the plan was proposed
    bool is_over;      // points around the plan are exhausted, too
};

struct msc_grid_candidate {
    uint32_t task;
    uint32_t choice; // the task's new choice
    double removed;  // greatest violation that the change may remove; 0 within the bounds
    bool is_known;   // the change's gain was measured in this step or before
    double expected; // rating by the change's latest gain; +inf: unknown
};

// Mode `greedy`: changes from the most expensive plan, step by step.
struct msc_grid_greedy {
    uint32_t *choices; // [n_tasks], the current plan
    int64_t id;        // the trial of the current plan, or -1
    double loss;       // NaN: unknown
    double violation;
    double quota;     // violation that a step towards the bounds removes
    size_t n_tries;   // changes that a step towards the bounds tries, unless it is wide
    bool is_asked;    // the current plan was proposed
    bool is_lost;     // the current plan is the first one, and it failed
    uint32_t *best;   // [n_tasks], the best observed point, to begin with if the first plan failed
    double best_loss; // NaN: no usable point was observed
    double best_violation;
    struct msc_exact_moves moves;
    uint64_t n_draws; // number of random points drawn to begin with
    bool is_wide;     // the step tries all cheaper choices, since the next cheaper ones did not
                      // help
    bool is_done;     // no step helps
    bool is_over;     // points around the final plan are exhausted, too
    size_t n_candidates;
    size_t n_asked_of;                     // number of candidates to propose: the first ones in
                                           // `order`
    size_t n_asked;                        // candidates proposed so far
    struct msc_grid_candidate *candidates; // [n_entries], in the order of tasks
    uint32_t *order;                       // [n_entries], the order of proposals
    // For each entry (task and choice):
    double *losses; // [n_entries], NaN: not observed, failed, or stopped at a bound
    double *violations;
    double *gains;  // loss added by the change when last measured completely; NaN: unknown
    double *sums;   // summed loss of the choice, relative to the sums of the task's other choices;
                    // NaN: unknown
    double *bounds; // the loss is useless above this in the current step
    int64_t *ids;   // id of the trial that tried the entry's choice
    // Used to make a plan before the search ends, if the goal has bounds:
    struct msc_knapsack knapsack;
    struct msc_guess guess;
    bool *is_open; // [n_entries], whether the loss is not observed yet
};

struct msc_grid_full {
    struct msc_walk walk;
};

struct msc_grid {
    int mode;
    int changes;
    bool bounded;
    int64_t around;
    // proposes points around the best observed point; only if the goal has bounds
    bool goes_around;
    struct msc_grid_around neighbours; // neighbours of the best point, after the mode has its plan
    bool takes_bounds;                 // trials for this goal can be stopped at a bound
    double best_loss;                  // least loss of the feasible trials so far; +inf: none
    double least_violation;            // of the usable trials so far; +inf: none are usable
    struct msc_exact_bounds exact;
    struct msc_grid_per_task per_task;
    struct msc_grid_greedy greedy;
    struct msc_grid_full full;
};

enum {
    MSC_GRID_NEIGHBOURS,
    MSC_GRID_ALL,
};

struct msc_grid_mode {
    enum msc_status (*init)(struct msc_agent *agent, struct msc_grid *grid);
    enum msc_status (*ask)(struct msc_agent *agent, struct msc_grid *grid,
                           struct msc_proposal out[], size_t max, size_t *n);
    void (*tell)(struct msc_agent *agent, struct msc_grid *grid, const struct msc_trial *trial);
    bool (*done)(const struct msc_grid *grid);
    struct msc_agent_left (*left)(const struct msc_grid *grid);
    double (*effort)(const struct msc_grid *grid, double n);     // NULL: the effort is n
    void (*assemble)(struct msc_grid *grid, uint32_t choices[]); // NULL: no plan can be made early
};

extern const struct msc_grid_mode msc_grid_mode_per_task;
extern const struct msc_grid_mode msc_grid_mode_greedy;
extern const struct msc_grid_mode msc_grid_mode_full;

// Proposes points around the best observed point. `losses` [n_entries] as for msc_grid_around_next.
// False if no point is left.
bool msc_grid_go_around(struct msc_grid *grid, const double losses[], struct msc_proposal out[],
                        size_t max, size_t *n);
// The first objective of a usable outcome, else NaN.
double msc_grid_loss(const struct msc_outcome *outcome);
// The bound of a proposal. It is `useless`, the loss above which the mode cannot use the proposal,
// but is raised if a stopped trial could otherwise have become the search's best. If the goal takes
// no bounds, it is +inf. `violation` is the proposal's violation by exact costs.
double msc_grid_bound(const struct msc_grid *grid, double useless, double violation);
// The only task in which the point differs from `base`; n_tasks if none differs, SIZE_MAX if
// several do.
size_t msc_grid_difference(size_t n_tasks, const uint32_t base[], const uint32_t choices[]);

#endif
