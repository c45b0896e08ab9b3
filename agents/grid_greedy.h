// Mode greedy of grid search in three parts: what a step tries (grid_greedy_step.c), what it takes
// (grid_greedy_take.c), and how both go on by asking and being told (grid_greedy.c).
#ifndef MSC_AGENTS_GRID_GREEDY_H
#define MSC_AGENTS_GRID_GREEDY_H

#include "agents/grid_search.h"

#include <math.h>

// Does a step try a part of what there is, and take several changes?
static inline bool msc_grid_greedy_takes_several(const struct msc_grid_greedy *g) {
    return g->violation > 0.0 && !g->is_wide;
}

static inline size_t msc_grid_greedy_entry(const struct msc_grid *grid,
                                           const struct msc_grid_candidate *candidate) {
    return msc_exact_bounds_entry(&grid->exact, candidate->task, candidate->choice);
}

static inline double msc_grid_greedy_loss_before(const struct msc_grid_greedy *g) {
    return isnan(g->loss) ? 0.0 : g->loss;
}

// Lists the candidates of the next step, in their order. `is_wide`: all cheaper choices. Where there
// are none the search is done.
void msc_grid_greedy_begin_step(struct msc_grid *grid, bool is_wide);
// Puts the candidates in the order of asking.
void msc_grid_greedy_sort(struct msc_grid_greedy *g);

// The best rating of the step so far, +inf when nothing told is of use, and whose it is: the first
// one's of equals.
double msc_grid_greedy_find_best(const struct msc_grid *grid, size_t *chosen);
// Takes what is best of a step whose outcomes are all told, and begins the next step.
void msc_grid_greedy_decide(struct msc_grid *grid);

#endif
