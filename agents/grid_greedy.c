// Grid search, mode greedy: from the dearest plan, one change a step.
//
// While the plan breaks a bound, a step tries every task's next cheaper choice (the first in the
// task's order that lowers the violation) and takes the change with the least (loss gained) /
// (violation removed). Where no such change helps, a step tries all cheaper choices; where none
// does, the search ends. Once within the bounds, a step tries the neighbours of every task's choice
// in its order, dearer and cheaper, that stay within the bounds, and takes the one of least loss,
// until none lowers it. The plans of a step are proposed over as many asks as they need; the step
// is decided at the ask after the last of them.
#include "agents/grid_search.h"

#include <math.h>
#include <string.h>

static enum msc_status greedy_init(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    struct msc_arena *arena = msc_agent_arena(agent);
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t n_entries = grid->limits.n_entries;
    g->choices = msc_arena_array(arena, n_tasks, sizeof *g->choices);
    g->tasks = msc_arena_array(arena, n_entries, sizeof *g->tasks);
    g->changes = msc_arena_array(arena, n_entries, sizeof *g->changes);
    g->losses = msc_arena_array(arena, n_entries, sizeof *g->losses);
    g->violations = msc_arena_array(arena, n_entries, sizeof *g->violations);
    if (!g->choices || !g->tasks || !g->changes || !g->losses || !g->violations) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu choices", n_entries);
    }
    memcpy(g->choices, grid->limits.dearest, n_tasks * sizeof *g->choices);
    g->loss = NAN;
    g->violation = msc_limits_violation(&grid->limits, g->choices);
    return MSC_OK;
}

static void add_candidate(struct msc_grid *grid, size_t task, uint32_t choice) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t entry = msc_limits_entry(&grid->limits, task, choice);
    g->losses[entry] = NAN;
    g->violations[entry] = INFINITY;
    g->tasks[g->n_candidates] = (uint32_t)task;
    g->changes[g->n_candidates] = choice;
    g->n_candidates++;
}

// The task's choices that lower the violation: the next one, or all after it.
static void add_cheaper(struct msc_grid *grid, size_t t) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_task *task = &grid->limits.space->tasks[t];
    uint32_t before = g->choices[t];
    double violation = msc_limits_violation(&grid->limits, g->choices);
    uint32_t position = grid->limits.positions[msc_limits_entry(&grid->limits, t, before)];
    for (uint32_t i = position + 1; i < task->n_choices; i++) {
        g->choices[t] = task->dearest_first[i];
        // A bound on a measured metric says nothing beforehand: any choice may help.
        if (violation == 0.0 || msc_limits_violation(&grid->limits, g->choices) < violation) {
            add_candidate(grid, t, task->dearest_first[i]);
            if (!g->is_wide) {
                break;
            }
        }
    }
    g->choices[t] = before;
}

static void add_feasible(struct msc_grid *grid, size_t t) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_task *task = &grid->limits.space->tasks[t];
    uint32_t before = g->choices[t];
    uint32_t position = grid->limits.positions[msc_limits_entry(&grid->limits, t, before)];
    for (uint32_t i = 0; i < task->n_choices; i++) {
        bool is_near = i + 1 == position || i == position + 1;
        if (i == position || (!is_near && grid->changes == MSC_GRID_NEIGHBOURS)) {
            continue;
        }
        g->choices[t] = task->dearest_first[i];
        if (msc_limits_hold(&grid->limits, g->choices)) {
            add_candidate(grid, t, task->dearest_first[i]);
        }
    }
    g->choices[t] = before;
}

static void begin_step(struct msc_grid *grid, bool is_wide) {
    struct msc_grid_greedy *g = &grid->greedy;
    g->n_candidates = 0;
    g->n_asked = 0;
    g->is_wide = is_wide;
    for (size_t t = 0; t < grid->limits.space->n_tasks; t++) {
        if (g->violation > 0.0) {
            add_cheaper(grid, t);
        } else {
            add_feasible(grid, t);
        }
    }
    if (g->n_candidates == 0) {
        g->is_done = g->violation == 0.0 || is_wide;
        if (!g->is_done) {
            begin_step(grid, true);
        }
    }
}

// How much a candidate is to be preferred: the smaller the better, +inf when it is of no use.
static double rate(const struct msc_grid_greedy *g, size_t entry) {
    double loss = g->losses[entry];
    double before = isnan(g->loss) ? 0.0 : g->loss;
    if (isnan(loss)) {
        return INFINITY;
    }
    if (g->violation > 0.0) {
        double removed = g->violation - g->violations[entry];
        return removed > 0.0 ? (loss - before) / removed : INFINITY;
    }
    bool is_lower = isnan(g->loss) || loss < g->loss;
    return is_lower && g->violations[entry] == 0.0 ? loss : INFINITY;
}

// Takes the best candidate of a step whose outcomes are all told, and begins the next step.
static void decide(struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    double best = INFINITY;
    size_t chosen = 0;
    for (size_t i = 0; i < g->n_candidates; i++) {
        double rating = rate(g, msc_limits_entry(&grid->limits, g->tasks[i], g->changes[i]));
        if (rating < best) {
            best = rating;
            chosen = i;
        }
    }
    if (isinf(best) && (g->violation == 0.0 || g->is_wide)) {
        g->is_done = true;
        return;
    }
    if (isinf(best)) {
        begin_step(grid, true);
        return;
    }
    size_t entry = msc_limits_entry(&grid->limits, g->tasks[chosen], g->changes[chosen]);
    g->choices[g->tasks[chosen]] = g->changes[chosen];
    g->loss = g->losses[entry];
    g->violation = g->violations[entry];
    begin_step(grid, false);
}

static enum msc_status greedy_ask(struct msc_agent *agent, struct msc_grid *grid,
                                  struct msc_proposal out[], size_t max, size_t *n) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    if (max == 0 || g->is_done) {
        return MSC_OK;
    }
    if (!g->has_begun) {
        memcpy(out[0].choices, g->choices, n_tasks * sizeof *g->choices);
        out[0].probe = true;
        g->has_begun = true;
        *n = 1;
        return MSC_OK;
    }
    if (g->n_candidates == 0) {
        begin_step(grid, false);
    } else if (g->n_asked == g->n_candidates) {
        decide(grid);
    }
    for (; *n < max && !g->is_done && g->n_asked < g->n_candidates; g->n_asked++) {
        struct msc_proposal *proposal = &out[(*n)++];
        memcpy(proposal->choices, g->choices, n_tasks * sizeof *g->choices);
        proposal->choices[g->tasks[g->n_asked]] = g->changes[g->n_asked];
        proposal->probe = true;
    }
    return MSC_OK;
}

static void greedy_tell(struct msc_agent *agent, struct msc_grid *grid,
                        const struct msc_trial *trial, const struct msc_outcome *outcome) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t changed = msc_grid_difference(n_tasks, g->choices, trial->choices);
    if (changed == n_tasks) {
        g->loss = msc_grid_loss(outcome);
        g->violation = isfinite(outcome->violation) ? outcome->violation : g->violation;
    } else if (changed < n_tasks) {
        size_t entry = msc_limits_entry(&grid->limits, changed, trial->choices[changed]);
        bool is_usable =
            outcome->state == MSC_TRIAL_COMPLETE || outcome->state == MSC_TRIAL_INFEASIBLE;
        g->losses[entry] = is_usable ? msc_grid_loss(outcome) : NAN;
        g->violations[entry] = outcome->violation;
    }
}

static bool greedy_done(const struct msc_grid *grid) {
    return grid->greedy.is_done;
}

const struct msc_grid_mode msc_grid_mode_greedy = {
    .init = greedy_init,
    .ask = greedy_ask,
    .tell = greedy_tell,
    .done = greedy_done,
};
