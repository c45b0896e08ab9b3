// Mode `greedy` of grid search in three files: grid_greedy_step.c lists the changes that a step
// tries, grid_greedy_take.c chooses those that it takes, and grid_greedy.c drives both by ask and
// tell.
#ifndef MSC_AGENTS_GRID_GREEDY_H
#define MSC_AGENTS_GRID_GREEDY_H

#include "agents/grid_search.h"

#include <math.h>

// Whether the step tries only a part of the cheaper choices and may take several of them.
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

// Lists the candidates of the next step in order. If `is_wide`, they include all cheaper choices.
// If there are no candidates, the search is done.
void msc_grid_greedy_begin_step(struct msc_grid *grid, bool is_wide);
// Sorts the candidates into the order in which they are proposed.
void msc_grid_greedy_sort(struct msc_grid_greedy *g);

// Returns the best rating of the step so far; +inf if no outcome is useful. *chosen is the first
// candidate with this rating.
double msc_grid_greedy_find_best(const struct msc_grid *grid, size_t *chosen);
// Takes the best changes of a step whose outcomes were all observed, and begins the next step.
void msc_grid_greedy_decide(struct msc_grid *grid);

#endif
