#include "agents/grid_search.h"

#include <math.h>

double msc_grid_loss(const struct msc_outcome *outcome) {
    bool is_usable = msc_trial_state_is_result(outcome->state);
    return is_usable && isfinite(outcome->objectives[0]) ? outcome->objectives[0] : NAN;
}

double msc_grid_bound(const struct msc_grid *grid, double useless, double violation) {
    bool may_win =
        violation == 0.0 || (isinf(grid->best_loss) && violation < grid->least_violation);
    if (!grid->takes_bounds || (may_win && isinf(grid->best_loss))) {
        return INFINITY;
    }
    return fmax(0.0, may_win ? fmax(useless, grid->best_loss) : useless);
}

bool msc_grid_go_around(struct msc_grid *grid, const double losses[], struct msc_proposal out[],
                        size_t max, size_t *n) {
    double useless = grid->neighbours.centre_loss;
    while (*n < max && msc_grid_around_next(&grid->neighbours, losses, &out[*n])) {
        out[(*n)++].bound = msc_grid_bound(grid, useless, 0.0);
    }
    return *n > 0;
}

size_t msc_grid_difference(size_t n_tasks, const uint32_t base[], const uint32_t choices[]) {
    size_t found = n_tasks;
    for (size_t t = 0; t < n_tasks; t++) {
        if (choices[t] != base[t]) {
            if (found != n_tasks) {
                return SIZE_MAX;
            }
            found = t;
        }
    }
    return found;
}
