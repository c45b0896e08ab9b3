// Grid search in three modes; each mode is a file of its own (grid_<mode>.c).
//
// With `bounded`, a proposal's bound is the loss above which the mode cannot use the proposal,
// judged by the outcomes so far. A trial whose loss exceeds the bound may be stopped. The result is
// the same with and without bounds:
//
//   - The sequence of points and the resulting plan are the same, because a mode uses a loss above
//     the bound only as "above the bound".
//   - The search's best trial is the same. A point that may be feasible is not stopped below the
//     best feasible loss. Any other point is stopped only if an earlier trial is certain to rank
//     before it.
#include "agents/agent.h"
#include "agents/grid_search.h"

#include <math.h>

static const struct msc_grid_mode *const modes[] = {
    &msc_grid_mode_per_task,
    &msc_grid_mode_greedy,
    &msc_grid_mode_full,
};

static const struct msc_param grid_params[] = {
    {.name = "mode",
     .help =
         "per_task: measure each choice in isolation, then solve for the best plan (a knapsack); "
         "greedy: change the most expensive plan step by step; full: evaluate every point",
     .offset = offsetof(struct msc_grid, mode),
     .type = MSC_PARAM_ENUM,
     .text = "per_task",
     .names = "per_task|greedy|full"},
    {.name = "changes",
     .help = "changes that greedy tries as soon as its plan is within the bounds: the next more "
             "expensive and the next cheaper choice of each task, or all of its choices",
     .offset = offsetof(struct msc_grid, changes),
     .type = MSC_PARAM_ENUM,
     .text = "neighbours",
     .names = "neighbours|all"},
    {.name = "bounded",
     .help = "stop a trial once its loss rules it out; finds the same plan in less time",
     .offset = offsetof(struct msc_grid, bounded),
     .type = MSC_PARAM_BOOL,
     .number = 1},
    {.name = "around",
     .help = "if the goal has bounds, per_task and greedy go on with points that differ from the "
             "best one in one or two tasks, until this many trials in a row bring no improvement "
             "(0: end with the plan)",
     .offset = offsetof(struct msc_grid, around),
     .type = MSC_PARAM_I64,
     .number = 100,
     .max = 1e9},
    {0},
};

static enum msc_status grid_search_init(struct msc_agent *agent) {
    struct msc_grid *grid = msc_agent_state(agent);
    grid->takes_bounds = msc_goal_takes_bound(msc_agent_goal(agent), msc_agent_space(agent));
    grid->best_loss = INFINITY;
    grid->least_violation = INFINITY;
    MSC_TRY(msc_exact_bounds_init(&grid->exact, msc_agent_arena(agent), msc_agent_space(agent),
                                  msc_agent_goal(agent)));
    grid->goes_around = grid->around > 0 && grid->exact.goal->n_bounds > 0;
    if (grid->goes_around) {
        MSC_TRY(msc_grid_around_init(&grid->neighbours, agent, &grid->exact, grid->around));
    }
    return modes[grid->mode]->init(agent, grid);
}

static enum msc_status grid_search_ask(struct msc_agent *agent, struct msc_proposal out[],
                                       size_t max, size_t *n) {
    struct msc_grid *grid = msc_agent_state(agent);
    MSC_TRY(modes[grid->mode]->ask(agent, grid, out, max, n));
    for (size_t i = 0; i < *n && !grid->bounded; i++) {
        out[i].bound = INFINITY;
    }
    return MSC_OK;
}

static enum msc_status grid_search_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct msc_grid *grid = msc_agent_state(agent);
    const struct msc_outcome *outcome = &trial->outcome;
    if (outcome->state == MSC_TRIAL_COMPLETE) {
        grid->best_loss = fmin(grid->best_loss, outcome->objectives[0]);
        grid->least_violation = 0.0;
    } else if (outcome->state == MSC_TRIAL_INFEASIBLE) {
        grid->least_violation = fmin(grid->least_violation, outcome->violation);
    }
    if (grid->goes_around) {
        msc_grid_around_tell(&grid->neighbours, trial);
    }
    // Bounds use only losses that were measured in full. The modes also use estimates.
    struct msc_trial learnt = *trial;
    learnt.outcome = msc_goal_learn(msc_agent_goal(agent), trial);
    modes[grid->mode]->tell(agent, grid, &learnt);
    return MSC_OK;
}

static bool grid_search_done(const struct msc_agent *agent) {
    const struct msc_grid *grid = msc_agent_state(agent);
    return modes[grid->mode]->done(grid);
}

static struct msc_agent_left grid_search_left(const struct msc_agent *agent) {
    const struct msc_grid *grid = msc_agent_state(agent);
    return modes[grid->mode]->left(grid);
}

static double grid_search_effort(const struct msc_agent *agent, double n) {
    const struct msc_grid *grid = msc_agent_state(agent);
    return modes[grid->mode]->effort ? modes[grid->mode]->effort(grid, n) : n;
}

// Only called if n_plan of msc_agent_left is above 0; modes without `assemble` keep it at 0.
static void grid_search_assemble(struct msc_agent *agent, uint32_t choices[]) {
    struct msc_grid *grid = msc_agent_state(agent);
    modes[grid->mode]->assemble(grid, choices);
}

const struct msc_agent_def msc_agent_grid_search = {
    .abi = MSC_AGENT_ABI,
    .name = "grid_search",
    .summary = "measures choices in isolation and solves a knapsack, takes greedy steps, or tries "
               "every point",
    .version = 1,
    .state_size = sizeof(struct msc_grid),
    .params = grid_params,
    .init = grid_search_init,
    .ask = grid_search_ask,
    .tell = grid_search_tell,
    .done = grid_search_done,
    .left = grid_search_left,
    .effort = grid_search_effort,
    .assemble = grid_search_assemble,
};
