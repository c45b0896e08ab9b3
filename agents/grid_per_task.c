// Grid search, mode `per_task`, as in MSC. It first proposes each choice in isolation, with every
// other task at its most expensive choice. Then it proposes the plan of least summed loss within
// the bounds (a knapsack), and at last points around that plan (agents/grid_around.h).
//
// Isolated plans usually break a bound on size. They are proposed as probes, so that they are
// measured nevertheless. If the goal has bounds, the final plan depends on every loss, so no trial
// is stopped. Without bounds the plan consists of each task's best choice. A choice is then useless
// if its loss exceeds the least loss of its task so far. At first, this is the loss of the most
// expensive plan. For a trial that was eliminated early, the estimated loss is used. If that trial
// did not measure a bounded metric, the metric's value for the most expensive plan is assumed.
#include "agents/grid_search.h"

#include <math.h>
#include <string.h>

// The cost of a recent plan is averaged over at most this many plans.
#define RECENT_PLANS 32.0
// Least relative cost of a trial: after a change in the last layer, the outputs must still be
// compared.
#define LEAST_EFFORT 0.05

static double *per_task_new_row(struct msc_arena *arena, size_t n) {
    double *row = msc_arena_array(arena, n, sizeof *row);
    for (size_t i = 0; row && i < n; i++) {
        row[i] = NAN;
    }
    return row;
}

static enum msc_status per_task_init(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_per_task *p = &grid->per_task;
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_goal *goal = msc_agent_goal(agent);
    size_t n_entries = grid->exact.n_entries;
    MSC_TRY(msc_knapsack_init(&p->knapsack, arena, &grid->exact));
    MSC_TRY(msc_guess_init(&p->guess, arena, &grid->exact));
    p->losses = per_task_new_row(arena, n_entries);
    p->is_open = msc_arena_array(arena, n_entries, sizeof *p->is_open);
    bool is_short = !p->losses || !p->is_open;
    for (size_t e = 0; !is_short && e < n_entries; e++) {
        p->is_open[e] = true;
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (!msc_agent_space(agent)->metrics[goal->bounds[i].metric].is_exact) {
            p->metrics[i] = per_task_new_row(arena, n_entries);
            is_short = is_short || !p->metrics[i];
            MSC_TRY(msc_guess_init(&p->metric_guesses[i], arena, &grid->exact));
        }
    }
    return MSC_ALLOCATED(!is_short);
}

// Writes the next isolated plan; false if all were proposed.
static bool per_task_next_plan(const struct msc_space *space, struct msc_grid *grid,
                               uint32_t choices[]) {
    struct msc_grid_per_task *p = &grid->per_task;
    while (p->task < space->n_tasks && p->position >= space->tasks[p->task].n_choices) {
        p->task++;
        p->position = 1;
    }
    if (p->task == space->n_tasks) {
        return false;
    }
    memcpy(choices, grid->exact.most_expensive, space->n_tasks * sizeof *choices);
    choices[p->task] = space->tasks[p->task].most_expensive_first[p->position++];
    return true;
}

// The loss above which a choice of the task cannot be its best.
static double per_task_useless_loss(const struct msc_grid *grid, size_t t) {
    const double *losses = grid->per_task.losses + grid->exact.offsets[t];
    double least = INFINITY;
    for (uint32_t c = 0; c < grid->exact.space->tasks[t].n_choices; c++) {
        least = fmin(least, losses[c]); // ignores NaN
    }
    return least;
}

// Whether the most expensive plan must be the only proposal of its ask, because its loss is the
// bound of the other proposals.
static bool per_task_must_wait(const struct msc_grid *grid) {
    const struct msc_grid_per_task *p = &grid->per_task;
    bool is_first = p->task == 0 && p->position == 1;
    return is_first && grid->takes_bounds && grid->exact.goal->n_bounds == 0 &&
           isinf(per_task_useless_loss(grid, 0));
}

// The plan of least summed loss. `is_early`: losses not yet observed are guessed.
static void per_task_solve(struct msc_grid *grid, bool is_early, uint32_t choices[]) {
    struct msc_grid_per_task *p = &grid->per_task;
    struct msc_isolated isolated = {
        .losses = is_early ? msc_guess_fill(&p->guess, p->losses, p->is_open) : p->losses};
    size_t most_expensive = msc_exact_bounds_entry(&grid->exact, 0, grid->exact.most_expensive[0]);
    for (size_t i = 0; i < MSC_MAX_BOUNDS; i++) {
        isolated.metrics[i] = p->metrics[i] && is_early
                                  ? msc_guess_fill(&p->metric_guesses[i], p->metrics[i], p->is_open)
                                  : p->metrics[i];
        isolated.most_expensive[i] = p->metrics[i] ? isolated.metrics[i][most_expensive] : NAN;
    }
    msc_knapsack_solve(&p->knapsack, &isolated, choices, NULL);
}

static void per_task_assemble(struct msc_grid *grid, uint32_t choices[]) {
    per_task_solve(grid, true, choices);
}

static enum msc_status per_task_ask(struct msc_agent *agent, struct msc_grid *grid,
                                    struct msc_proposal out[], size_t max, size_t *n) {
    struct msc_grid_per_task *p = &grid->per_task;
    const struct msc_space *space = msc_agent_space(agent);
    while (*n < max && !(*n > 0 && per_task_must_wait(grid)) &&
           per_task_next_plan(space, grid, out[*n].choices)) {
        if (grid->exact.goal->n_bounds == 0) {
            out[*n].bound = msc_grid_bound(grid, per_task_useless_loss(grid, p->task), 0.0);
        }
        out[(*n)++].probe = true;
    }
    if (*n > 0 || p->is_over || max == 0) {
        return MSC_OK;
    }
    if (p->is_solved) {
        p->is_over = !msc_grid_go_around(grid, p->losses, out, max, n);
        return MSC_OK;
    }
    per_task_solve(grid, false, out[0].choices);
    p->is_solved = true;
    p->is_over = !grid->goes_around;
    *n = 1;
    return MSC_OK;
}

static void per_task_note(struct msc_agent *agent, struct msc_grid *grid, size_t entry,
                          const struct msc_trial *trial) {
    const struct msc_goal *goal = msc_agent_goal(agent);
    const struct msc_outcome *outcome = &trial->outcome;
    bool is_part = msc_goal_is_estimate(goal, trial);
    grid->per_task.is_open[entry] = false;
    grid->per_task.losses[entry] = is_part ? outcome->objectives[0] : msc_grid_loss(outcome);
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (grid->per_task.metrics[i]) {
            grid->per_task.metrics[i][entry] = outcome->metrics[goal->bounds[i].metric];
        }
    }
}

static void per_task_tell(struct msc_agent *agent, struct msc_grid *grid,
                          const struct msc_trial *trial) {
    const uint32_t *choices = trial->proposal.choices;
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t changed = msc_grid_difference(n_tasks, grid->exact.most_expensive, choices);
    if (changed < n_tasks) {
        per_task_note(agent, grid, msc_exact_bounds_entry(&grid->exact, changed, choices[changed]),
                      trial);
    } else if (changed == n_tasks) {
        // The most expensive plan is the isolated plan of every task's most expensive choice.
        for (size_t t = 0; t < n_tasks; t++) {
            per_task_note(agent, grid,
                          msc_exact_bounds_entry(&grid->exact, t, grid->exact.most_expensive[t]),
                          trial);
        }
    }
}

static bool per_task_done(const struct msc_grid *grid) {
    return grid->per_task.is_over;
}

// Counts the most expensive plan (proposed once, for the first task), every task's other choices,
// and the plan of the knapsack.
static double n_plans_left(const struct msc_grid *grid) {
    const struct msc_grid_per_task *p = &grid->per_task;
    const struct msc_space *space = grid->exact.space;
    double n = 1.0;
    for (size_t t = p->task; t < space->n_tasks; t++) {
        uint32_t n_choices = space->tasks[t].n_choices;
        uint32_t position = t == p->task ? p->position : 1;
        n += position < n_choices ? n_choices - position : 0;
    }
    return n;
}

// The number of points around the plan is unknown in advance.
static struct msc_agent_left per_task_left(const struct msc_grid *grid) {
    struct msc_agent_left left = MSC_AGENT_LEFT_UNKNOWN;
    double n_plans = grid->per_task.is_solved ? 0.0 : n_plans_left(grid);
    if (!grid->goes_around) {
        left = (struct msc_agent_left){.n = n_plans, .is_exact = true};
    }
    left.n_plan = n_plans;
    return left;
}

// A trial recomputes what follows the changed task. If the feature "position" is known, a change of
// a later task is therefore cheaper.
static double task_effort(const struct msc_space *space, size_t t) {
    for (size_t i = 0; i < space->n_features; i++) {
        if (strcmp(space->feature_names[i], "position") == 0) {
            return fmin(fmax(1.0 - space->tasks[t].features[i], LEAST_EFFORT), 1.0);
        }
    }
    return 1.0;
}

// The effort of `n` plans from number `first` on. The knapsack's plan is the last one.
static double plans_effort(const struct msc_space *space, double first, double n) {
    double effort = 0.0;
    double n_before = 0.0; // number of plans of earlier tasks
    for (size_t t = 0; t < space->n_tasks; t++) {
        double n_behind = n_before + space->tasks[t].n_choices - (t > 0 ? 1.0 : 0.0);
        double n_inside = fmin(n_behind, first + n) - fmax(n_before, first);
        effort += fmax(n_inside, 0.0) * task_effort(space, t);
        n_before = n_behind;
    }
    return effort + (first + n > n_before ? 1.0 : 0.0);
}

static double per_task_effort(const struct msc_grid *grid, double n) {
    const struct msc_space *space = grid->exact.space;
    double n_plans = 2.0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        n_plans += space->tasks[t].n_choices - 1.0;
    }
    double n_asked = n_plans - n_plans_left(grid);
    double n_last = fmin(n_asked, RECENT_PLANS);
    double relative_cost =
        n_last > 0.0 ? plans_effort(space, n_asked - n_last, n_last) / n_last : 1.0;
    return plans_effort(space, n_asked, n) / relative_cost;
}

const struct msc_grid_mode msc_grid_mode_per_task = {
    .init = per_task_init,
    .ask = per_task_ask,
    .tell = per_task_tell,
    .done = per_task_done,
    .left = per_task_left,
    .effort = per_task_effort,
    .assemble = per_task_assemble,
};
