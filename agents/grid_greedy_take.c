// Takes the changes of a step of mode `greedy`: the best one, or several while the plan breaks a
// bound.
#include "agents/grid_greedy.h"

// Rating of a candidate; smaller is better, +inf if it is useless.
static double greedy_rate(const struct msc_grid_greedy *g, size_t entry) {
    double loss = g->losses[entry];
    if (isnan(loss)) {
        return INFINITY;
    }
    if (g->violation > 0.0) {
        double removed = g->violation - g->violations[entry];
        return removed > 0.0 ? (loss - msc_grid_greedy_loss_before(g)) / removed : INFINITY;
    }
    bool is_lower = isnan(g->loss) || loss < g->loss;
    return is_lower && g->violations[entry] == 0.0 ? loss : INFINITY;
}

double msc_grid_greedy_find_best(const struct msc_grid *grid, size_t *chosen) {
    const struct msc_grid_greedy *g = &grid->greedy;
    double best = INFINITY;
    for (size_t i = 0; i < g->n_candidates; i++) {
        double rating = greedy_rate(g, msc_grid_greedy_entry(grid, &g->candidates[i]));
        if (rating < best) {
            best = rating;
            *chosen = i;
        }
    }
    return best;
}

// Takes a change. The task's gains are relative to its old choice, so they are forgotten. Only the
// gain of the change back to the old choice is known: the negative of this gain.
static void greedy_take(struct msc_grid *grid, const struct msc_grid_candidate *candidate) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t entry = msc_grid_greedy_entry(grid, candidate);
    size_t back =
        msc_exact_bounds_entry(&grid->exact, candidate->task, g->choices[candidate->task]);
    double gain = g->gains[entry];
    for (uint32_t c = 0; c < grid->exact.space->tasks[candidate->task].n_choices; c++) {
        g->gains[msc_exact_bounds_entry(&grid->exact, candidate->task, c)] = NAN;
    }
    g->gains[back] = -gain;
    g->choices[candidate->task] = candidate->choice;
    g->id = g->ids[entry];
    g->loss = g->losses[entry];
    g->violation = g->violations[entry];
}

// Takes a change without a measured result: until the new plan is observed, its loss is estimated
// as the sum of the gains.
static void greedy_change(struct msc_grid *grid, const struct msc_grid_candidate *candidate) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t entry = msc_grid_greedy_entry(grid, candidate);
    g->losses[entry] = msc_grid_greedy_loss_before(g) + g->gains[entry];
    g->violations[entry] = g->violation - candidate->removed;
    greedy_take(grid, candidate);
    g->id = -1;
    g->is_asked = false;
}

// Takes tried changes in the order of rating until the quota of the violation is removed. False if
// no change helps.
static bool greedy_take_several(struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    double before = g->violation;
    for (size_t i = 0; i < g->n_candidates; i++) {
        struct msc_grid_candidate *candidate = &g->candidates[i];
        size_t entry = msc_grid_greedy_entry(grid, candidate);
        double gain = g->gains[entry];
        if (isfinite(g->violations[entry])) {
            candidate->removed = g->violation - g->violations[entry];
        }
        bool is_useful = candidate->removed > 0.0 && isfinite(gain);
        candidate->is_known = is_useful;
        candidate->expected = is_useful ? gain / candidate->removed : INFINITY;
    }
    msc_grid_greedy_sort(g);
    size_t first = 0;
    while (first < g->n_candidates && !g->candidates[g->order[first]].is_known) {
        first++;
    }
    size_t end = first;
    double enough = fmax(0.0, before - g->quota);
    while (end < g->n_candidates && g->violation > enough) {
        const struct msc_grid_candidate *candidate = &g->candidates[g->order[end++]];
        bool is_told = end == first + 1 && g->violation - candidate->removed <= enough &&
                       !isnan(g->losses[msc_grid_greedy_entry(grid, candidate)]);
        if (is_told) {
            greedy_take(grid, candidate);
        } else {
            greedy_change(grid, candidate);
        }
    }
    g->n_candidates = g->n_asked = g->n_asked_of = 0;
    if (!g->is_asked) {
        g->violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    }
    return end > first;
}

void msc_grid_greedy_decide(struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    if (msc_grid_greedy_takes_several(g)) {
        if (!greedy_take_several(grid)) {
            msc_grid_greedy_begin_step(grid, true);
        }
        return;
    }
    size_t chosen = 0;
    double best = msc_grid_greedy_find_best(grid, &chosen);
    if (isinf(best) && (g->violation == 0.0 || g->is_wide)) {
        g->is_done = true;
        return;
    }
    if (isinf(best)) {
        msc_grid_greedy_begin_step(grid, true);
        return;
    }
    greedy_take(grid, &g->candidates[chosen]);
    msc_grid_greedy_begin_step(grid, false);
}
