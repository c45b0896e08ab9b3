// Grid search, mode `greedy`: changes the most expensive plan step by step.
//
// While the plan breaks a bound, a step tries cheaper choices for a sixteenth of the tasks. It
// tries untried changes first, in the order of the violation that they remove. The step then takes,
// among all changes tried in this or an earlier step, those with the least (loss gained) /
// (violation removed) until an eighth of the initial violation is removed. A space of a thousand
// tasks thus gets within its bounds after about as many trials. If no tried change helps, a wide
// step tries all cheaper choices; if none of these helps, the search ends.
//
// Within the bounds, a step tries the next more expensive and the next cheaper choice of every
// task, unless the bounds forbid it. It takes the change with the least loss. The search ends when
// no change lowers the loss.
//
// If the most expensive plan cannot be measured, the search begins with the best observed point or
// a random one. The plans of a step are proposed over as many asks as needed; the ask after the
// last of them decides the step.
//
// Changes with the best rating in earlier steps are tried first, because the best outcome of a step
// sets the bounds of the proposals after it. The first ask of a step, before which no outcome is
// known, therefore proposes only a few plans.
#include "agents/grid_greedy.h"

#include <float.h>
#include <math.h>
#include <string.h>

// The first ask of a step that has no bound yet proposes 1 / PILOT_PART of the step's plans.
#define PILOT_PART 16
// A step towards the bounds removes QUOTA of the initial violation, and tries 1 / TRIED_PART of the
// tasks but at least LEAST_TRIES.
#define QUOTA 0.125
#define TRIED_PART 16
#define LEAST_TRIES 8
#define MOST_DRAWS 256

// Sets the summed loss of the current plan's choices to 0; the sums of other choices are then
// relative to these.
static void greedy_count_from_here(struct msc_grid *grid) {
    for (size_t t = 0; t < grid->exact.space->n_tasks; t++) {
        size_t entry = msc_exact_bounds_entry(&grid->exact, t, grid->greedy.choices[t]);
        grid->greedy.sums[entry] = 0.0;
    }
}

static enum msc_status greedy_init_plan(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    struct msc_arena *arena = msc_agent_arena(agent);
    if (msc_agent_goal(agent)->n_bounds == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_knapsack_init(&g->knapsack, arena, &grid->exact));
    MSC_TRY(msc_guess_init(&g->guess, arena, &grid->exact));
    g->is_open = msc_arena_array(arena, grid->exact.n_entries, sizeof *g->is_open);
    return MSC_ALLOCATED(g->is_open);
}

static enum msc_status greedy_init(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    struct msc_arena *arena = msc_agent_arena(agent);
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t n_entries = grid->exact.n_entries;
    g->choices = msc_arena_array(arena, n_tasks, sizeof *g->choices);
    g->candidates = msc_arena_array(arena, n_entries, sizeof *g->candidates);
    g->order = msc_arena_array(arena, n_entries, sizeof *g->order);
    g->losses = msc_arena_array(arena, n_entries, sizeof *g->losses);
    g->violations = msc_arena_array(arena, n_entries, sizeof *g->violations);
    g->gains = msc_arena_array(arena, n_entries, sizeof *g->gains);
    g->sums = msc_arena_array(arena, n_entries, sizeof *g->sums);
    g->bounds = msc_arena_array(arena, n_entries, sizeof *g->bounds);
    g->ids = msc_arena_array(arena, n_entries, sizeof *g->ids);
    MSC_TRY(MSC_ALLOCATED(g->choices && g->candidates && g->order && g->losses && g->violations &&
                          g->gains && g->sums && g->bounds && g->ids));
    memcpy(g->choices, grid->exact.most_expensive, n_tasks * sizeof *g->choices);
    for (size_t i = 0; i < n_entries; i++) {
        g->gains[i] = NAN;
        g->sums[i] = NAN;
        g->bounds[i] = INFINITY;
    }
    greedy_count_from_here(grid);
    g->id = -1;
    g->loss = NAN;
    g->violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    g->quota = QUOTA * g->violation;
    g->n_tries = n_tasks / TRIED_PART > LEAST_TRIES ? n_tasks / TRIED_PART : LEAST_TRIES;
    g->best = msc_arena_array(arena, n_tasks, sizeof *g->best);
    g->best_loss = NAN;
    MSC_TRY(greedy_init_plan(agent, grid));
    return g->best ? msc_exact_moves_init(&g->moves, arena, &grid->exact)
                   : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

// Returns a loss such that it and all greater losses are rated above `rating` (greedy_rate in
// grid_greedy_take.c). Rounding may lower a rating, so the loss is raised until its rating is
// above.
static double loss_rated_above(double before, double removed, double rating) {
    double loss = before + rating * removed;
    double step = fmax(DBL_EPSILON * (fabs(before) + fabs(rating * removed)), DBL_MIN);
    while ((loss - before) / removed <= rating) {
        loss += step;
        step *= 2.0;
    }
    return loss;
}

// The loss above which the candidate cannot be chosen, now that the best rating is `best`.
static double greedy_useless_loss(const struct msc_grid *grid,
                                  const struct msc_grid_candidate *candidate, double best) {
    const struct msc_grid_greedy *g = &grid->greedy;
    if (g->violation == 0.0) {
        return isnan(g->loss) ? best : fmin(best, g->loss);
    }
    if (isinf(best)) {
        return INFINITY;
    }
    if (!(candidate->removed > 0.0)) {
        return -INFINITY;
    }
    // If a measured metric is bounded, the change may remove less of the violation than `removed`.
    // If less is removed, a negative rating improves.
    bool is_known = grid->exact.n_items == grid->exact.goal->n_bounds;
    return best < 0.0 && !is_known
               ? msc_grid_greedy_loss_before(g)
               : loss_rated_above(msc_grid_greedy_loss_before(g), candidate->removed, best);
}

// The number of proposals to make now, at most `max`.
static size_t greedy_ask_size(const struct msc_grid *grid, size_t max) {
    const struct msc_grid_greedy *g = &grid->greedy;
    bool has_bound = g->violation == 0.0 || g->n_asked > 0;
    if (has_bound || msc_grid_greedy_takes_several(g) || !grid->takes_bounds ||
        isinf(grid->best_loss)) {
        return max;
    }
    size_t n = g->n_candidates < max ? g->n_candidates : max;
    return n > PILOT_PART ? n / PILOT_PART : 1;
}

static void greedy_propose(struct msc_grid *grid, struct msc_proposal *proposal, double best) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t n_tasks = grid->exact.space->n_tasks;
    const struct msc_grid_candidate *candidate = &g->candidates[g->order[g->n_asked++]];
    memcpy(proposal->choices, g->choices, n_tasks * sizeof *g->choices);
    proposal->choices[candidate->task] = candidate->choice;
    proposal->parent = g->id;
    proposal->probe = true;
    if (!msc_grid_greedy_takes_several(g)) {
        double violation = msc_exact_bounds_violation(&grid->exact, proposal->choices);
        proposal->bound =
            msc_grid_bound(grid, greedy_useless_loss(grid, candidate, best), violation);
    }
    g->bounds[msc_grid_greedy_entry(grid, candidate)] = proposal->bound;
}

// Begins again at the best observed point or, if there is none, at a random point.
static void greedy_begin_again(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_space *space = msc_agent_space(agent);
    g->is_lost = false;
    if (!isnan(g->best_loss)) {
        memcpy(g->choices, g->best, space->n_tasks * sizeof *g->choices);
        g->loss = g->best_loss;
        g->violation = g->best_violation;
        greedy_count_from_here(grid);
        return;
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        g->choices[t] = (uint32_t)msc_rng_below(msc_agent_rng(agent), space->tasks[t].n_choices);
    }
    (void)msc_exact_moves_repair(&g->moves, msc_agent_rng(agent), g->choices);
    g->violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    greedy_count_from_here(grid);
    g->is_asked = false;
    g->is_done = ++g->n_draws > MOST_DRAWS;
}

// Advances until there is something to propose: the current plan or a step's candidates.
static void greedy_go_on(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    if (g->is_lost) {
        greedy_begin_again(agent, grid);
    }
    bool was_done = g->is_done;
    while (g->is_asked && !g->is_done && g->n_asked == g->n_asked_of) {
        if (g->n_candidates == 0) {
            msc_grid_greedy_begin_step(grid, false);
        } else {
            msc_grid_greedy_decide(grid);
        }
    }
    if (g->is_done && !was_done) {
        msc_guess_between(g->sums, NULL, &grid->exact);
    }
}

static enum msc_status greedy_ask(struct msc_agent *agent, struct msc_grid *grid,
                                  struct msc_proposal out[], size_t max, size_t *n) {
    struct msc_grid_greedy *g = &grid->greedy;
    if (max == 0 || g->is_over) {
        return MSC_OK;
    }
    greedy_go_on(agent, grid);
    if (g->is_done) {
        g->is_over = !grid->goes_around || !msc_grid_go_around(grid, g->sums, out, max, n);
        return MSC_OK;
    }
    if (!g->is_asked) {
        memcpy(out[0].choices, g->choices, msc_agent_space(agent)->n_tasks * sizeof *g->choices);
        out[0].probe = true;
        g->is_asked = true;
        g->n_asked = g->n_asked_of = 0;
        *n = 1;
        return MSC_OK;
    }
    size_t chosen = 0;
    double best = msc_grid_greedy_find_best(grid, &chosen);
    size_t end = greedy_ask_size(grid, max);
    while (*n < end && g->n_asked < g->n_asked_of) {
        greedy_propose(grid, &out[(*n)++], best);
    }
    return MSC_OK;
}

// Keeps the point of least violation and, among equals, of least loss.
static void greedy_keep_best(struct msc_grid_greedy *g, const struct msc_trial *trial,
                             size_t n_tasks) {
    double loss = msc_grid_loss(&trial->outcome);
    double violation = trial->outcome.violation;
    bool is_better = isnan(g->best_loss) || violation < g->best_violation ||
                     (violation == g->best_violation && loss < g->best_loss);
    if (!isnan(loss) && is_better) {
        memcpy(g->best, trial->proposal.choices, n_tasks * sizeof *g->best);
        g->best_loss = loss;
        g->best_violation = violation;
    }
}

static void greedy_tell_plan(struct msc_grid_greedy *g, const struct msc_trial *trial) {
    const struct msc_outcome *outcome = &trial->outcome;
    double loss = msc_grid_loss(outcome);
    g->id = trial->id;
    g->is_lost = g->is_asked && isnan(loss) && isnan(g->loss);
    g->loss = isnan(loss) ? g->loss : loss;
    g->violation = isfinite(outcome->violation) ? outcome->violation : g->violation;
    g->quota = fmax(g->quota, QUOTA * g->violation);
}

static void greedy_tell(struct msc_agent *agent, struct msc_grid *grid,
                        const struct msc_trial *trial) {
    struct msc_grid_greedy *g = &grid->greedy;
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome *outcome = &trial->outcome;
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t changed = msc_grid_difference(n_tasks, g->choices, choices);
    greedy_keep_best(g, trial, n_tasks);
    if (changed == n_tasks && outcome->state != MSC_TRIAL_PRUNED) {
        greedy_tell_plan(g, trial);
    } else if (changed < n_tasks && !g->is_done) {
        size_t entry = msc_exact_bounds_entry(&grid->exact, changed, choices[changed]);
        g->ids[entry] = trial->id;
        g->losses[entry] = msc_grid_loss(outcome);
        g->violations[entry] = outcome->violation;
        if (outcome->state == MSC_TRIAL_FAILED) {
            g->gains[entry] = INFINITY;
        }
        // A loss above its bound is ignored, because a stopped trial would not report it.
        if (g->losses[entry] <= g->bounds[entry]) {
            size_t here = msc_exact_bounds_entry(&grid->exact, changed, g->choices[changed]);
            g->gains[entry] = g->losses[entry] - msc_grid_greedy_loss_before(g);
            g->sums[entry] = g->sums[here] + g->gains[entry];
        }
    }
}

static bool greedy_done(const struct msc_grid *grid) {
    return grid->greedy.is_done && (!grid->goes_around || grid->greedy.is_over);
}

// The number of steps is unknown in advance. Before the plan is within the bounds, the trials so
// far are of no use by themselves, so a plan made early is worth reporting (n_plan).
static struct msc_agent_left greedy_left(const struct msc_grid *grid) {
    struct msc_agent_left left = MSC_AGENT_LEFT_UNKNOWN;
    const struct msc_grid_greedy *g = &grid->greedy;
    left.n_plan = g->violation > 0.0 && !g->is_done ? INFINITY : 0.0;
    return left;
}

// Solves a knapsack of the summed losses. Each choice's loss is relative to the choice that its
// task had when the loss was last measured.
static void greedy_assemble(struct msc_grid *grid, uint32_t choices[]) {
    struct msc_grid_greedy *g = &grid->greedy;
    for (size_t e = 0; e < grid->exact.n_entries; e++) {
        g->is_open[e] = isnan(g->sums[e]) && !isinf(g->gains[e]);
    }
    const struct msc_isolated isolated = {.losses = msc_guess_fill(&g->guess, g->sums, g->is_open)};
    msc_knapsack_solve(&g->knapsack, &isolated, choices, NULL);
}

const struct msc_grid_mode msc_grid_mode_greedy = {
    .init = greedy_init,
    .ask = greedy_ask,
    .tell = greedy_tell,
    .done = greedy_done,
    .left = greedy_left,
    .assemble = greedy_assemble,
};
