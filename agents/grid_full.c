// Grid search, mode `full`: every point in order; the last task's choice changes fastest. Points
// whose exact costs break a bound are skipped, whole subtrees at a time. A proposal's bound is the
// best loss so far.
#include "agents/grid_search.h"

#include <math.h>

// Greatest number of partial points visited for one proposal. After that, an infeasible point is
// proposed; the search counts it without measuring it.
#define NODE_LIMIT 1000000

static enum msc_status full_init(struct msc_agent *agent, struct msc_grid *grid) {
    return msc_walk_init(&grid->full.walk, msc_agent_arena(agent), &grid->exact, false);
}

static enum msc_status full_ask(struct msc_agent *agent, struct msc_grid *grid,
                                struct msc_proposal out[], size_t max, size_t *n) {
    (void)agent;
    struct msc_walk *walk = &grid->full.walk;
    while (*n < max && !walk->is_over) {
        bool is_feasible = msc_walk_next(walk, out[*n].choices, NODE_LIMIT);
        if (!is_feasible && walk->is_over) {
            break; // no feasible point is left
        }
        double violation =
            is_feasible ? 0.0 : msc_exact_bounds_violation(&grid->exact, out[*n].choices);
        out[*n].bound = msc_grid_bound(grid, -INFINITY, violation);
        (*n)++;
    }
    return MSC_OK;
}

static void full_tell(struct msc_agent *agent, struct msc_grid *grid,
                      const struct msc_trial *trial) {
    (void)agent;
    (void)grid;
    (void)trial;
}

static bool full_done(const struct msc_grid *grid) {
    return grid->full.walk.is_over;
}

// The number is exact only if the goal has no bounds, because the number of points that bounds
// exclude is not known in advance.
static struct msc_agent_left full_left(const struct msc_grid *grid) {
    return (struct msc_agent_left){.n = msc_walk_n_left(&grid->full.walk),
                                   .is_exact = grid->exact.n_items == 0};
}

const struct msc_grid_mode msc_grid_mode_full = {
    .init = full_init,
    .ask = full_ask,
    .tell = full_tell,
    .done = full_done,
    .left = full_left,
};
