// Grid search in three modes; each mode is a file of its own (grid_<mode>.c).
#include "agents/agent.h"
#include "agents/grid_search.h"

#include <math.h>
#include <string.h>

static const struct msc_grid_mode *const modes[] = {
    &msc_grid_mode_per_task,
    &msc_grid_mode_greedy,
    &msc_grid_mode_full,
};

static const struct msc_param grid_params[] = {
    {.name = "mode",
     .help = "each task alone, then assembled; change by change from the dearest plan; or every "
             "point",
     .offset = offsetof(struct msc_grid, mode),
     .type = MSC_PARAM_ENUM,
     .text = "per_task",
     .names = "per_task|greedy|full"},
    {.name = "changes",
     .help = "what greedy tries once within the bounds: the next dearer and cheaper choice of each "
             "task, or all its choices",
     .offset = offsetof(struct msc_grid, changes),
     .type = MSC_PARAM_ENUM,
     .text = "neighbours",
     .names = "neighbours|all"},
    {0},
};

double msc_grid_loss(const struct msc_outcome *outcome) {
    bool is_usable = outcome->state != MSC_TRIAL_FAILED && isfinite(outcome->objectives[0]);
    return is_usable ? outcome->objectives[0] : NAN;
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

static enum msc_status grid_init(struct msc_agent *agent) {
    struct msc_grid *grid = msc_agent_state(agent);
    MSC_TRY(msc_limits_init(&grid->limits, msc_agent_arena(agent), msc_agent_space(agent),
                            msc_agent_goal(agent)));
    return modes[grid->mode]->init(agent, grid);
}

static enum msc_status grid_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                size_t *n) {
    struct msc_grid *grid = msc_agent_state(agent);
    return modes[grid->mode]->ask(agent, grid, out, max, n);
}

static enum msc_status grid_tell(struct msc_agent *agent, const struct msc_trial *trial,
                                 const struct msc_outcome *outcome) {
    struct msc_grid *grid = msc_agent_state(agent);
    modes[grid->mode]->tell(agent, grid, trial, outcome);
    return MSC_OK;
}

static bool grid_done(const struct msc_agent *agent) {
    const struct msc_grid *grid = msc_agent_state(agent);
    return modes[grid->mode]->done(grid);
}

const struct msc_agent_def msc_agent_grid_search = {
    .abi = MSC_AGENT_ABI,
    .name = "grid_search",
    .summary = "each task alone and assembled under the bounds, greedy steps, or every point",
    .version = 1,
    .state_size = sizeof(struct msc_grid),
    .params = grid_params,
    .init = grid_init,
    .ask = grid_ask,
    .tell = grid_tell,
    .done = grid_done,
};
