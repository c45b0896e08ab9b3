// Shared by agent_grid_search.c and its modes (grid_<mode>.c); the functions are in grid_search.c.
#ifndef MSC_AGENTS_GRID_SEARCH_H
#define MSC_AGENTS_GRID_SEARCH_H

#include "agents/agent.h"
#include "agents/exact_bounds.h"
#include "agents/exact_moves.h"
#include "agents/grid_around.h"
#include "agents/guess.h"
#include "agents/knapsack.h"

// Each task alone with the others at their most expensive, then the knapsack of them.
struct msc_grid_per_task {
    struct msc_knapsack knapsack;
    double *losses;                  // [n_entries], NaN: not told, or failed
    bool *is_open;                   // [n_entries], not told
    double *metrics[MSC_MAX_BOUNDS]; // [n_entries] for bounds on measured metrics, else NULL
    struct msc_guess guess, metric_guesses[MSC_MAX_BOUNDS];
    size_t task;       // the next one to propose for
    uint32_t position; // its choice, by place in most_expensive_first; 0: the most expensive plan
    bool is_solved;
    bool is_over; // around its plan, too
};

struct msc_grid_candidate {
    uint32_t task;
    uint32_t choice; // the task's new one
    double removed;  // how much of the violation it removes, at most; 0 within the bounds
    bool is_known;   // its gain was measured, in this step or before
    double expected; // rating that its latest gain would give; +inf: nothing is known
};

// Changes, step by step, from the most expensive plan.
struct msc_grid_greedy {
    uint32_t *choices; // [n_tasks], where the search stands
    int64_t id;        // the trial that told of it, or -1
    double loss;       // NaN: not known
    double violation;
    double quota;     // violation that a step towards the bounds removes
    size_t n_tries;   // changes that a step towards the bounds tries, unless it is wide
    bool is_asked;    // the plan where it stands was proposed
    bool is_lost;     // it is the most expensive one, and failed
    uint32_t *best;   // [n_tasks], of the points told the one to begin with instead
    double best_loss; // NaN: none was told
    double best_violation;
    struct msc_exact_moves moves;
    uint64_t n_draws; // of random points to begin with
    bool is_wide;     // the step tries all cheaper choices, the next ones were in vain
    bool is_done;     // no step helps any more
    bool is_over;     // around where it ended, too
    size_t n_candidates;
    size_t n_asked_of; // of them, in their order
    size_t n_asked;
    struct msc_grid_candidate *candidates; // [n_entries], in the order of tasks
    uint32_t *order;                       // [n_entries], of asking: by what is expected
    // By entry:
    double *losses; // [n_entries], NaN: not told, or failed, or stopped at a bound
    double *violations;
    double *gains; // what it added to the loss when last measured to the end; NaN: not known
    double *sums; // what it adds, beside the task's other choices, when last measured; NaN: unknown
    double *bounds; // above which its loss is useless in this step
    int64_t *ids;   // the trial that told of it
    // Under bounds, of the plan that is made where there is no time for all the steps to them:
    struct msc_knapsack knapsack;
    struct msc_guess guess;
    bool *is_open; // [n_entries], by entry: not told
};

struct msc_grid_full {
    struct msc_walk walk;
};

struct msc_grid {
    int mode;
    int changes;
    bool bounded;
    int64_t around;
    bool goes_around;                  // there are bounds to go around within
    struct msc_grid_around neighbours; // of the best point, once the mode has its plan
    bool takes_bounds;                 // the goal is one whose trials can be stopped
    double best_loss;                  // of the feasible trials told; +inf: none
    double least_violation;            // of all trials told that may win; +inf: none
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
    double (*effort)(const struct msc_grid *grid, double n);     // NULL: n
    void (*assemble)(struct msc_grid *grid, uint32_t choices[]); // NULL: there is no such plan
};

extern const struct msc_grid_mode msc_grid_mode_per_task;
extern const struct msc_grid_mode msc_grid_mode_greedy;
extern const struct msc_grid_mode msc_grid_mode_full;

// Proposes points around the best one, `losses` [n_entries] as msc_grid_around_next has them.
// False where there is none.
bool msc_grid_go_around(struct msc_grid *grid, const double losses[], struct msc_proposal out[],
                        size_t max, size_t *n);
// The first objective of an outcome that can be used, else NaN.
double msc_grid_loss(const struct msc_outcome *outcome);
// The bound of a proposal that the mode has no use for when its loss exceeds `useless`: as high as
// needed that no trial is stopped which could still come to be the search's best. +inf when the
// goal takes no bounds. `violation` is that of the exact costs.
double msc_grid_bound(const struct msc_grid *grid, double useless, double violation);
// The one task in which the point differs from `base`; n_tasks when none does, SIZE_MAX when
// several do.
size_t msc_grid_difference(size_t n_tasks, const uint32_t base[], const uint32_t choices[]);

#endif
