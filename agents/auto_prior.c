// What the agent `auto` assumes of the tasks before the first trial.
#include "agents/auto.h"

// Without neighbours in the space, successive tasks are neighbours: environments list tasks in the
// order of the network.
enum msc_status msc_auto_use_neighbours(struct msc_auto *a, struct msc_arena *arena,
                                        struct msc_pair_model *model) {
    const struct msc_space *space = a->sampler.bounds.space;
    size_t n_tasks = space->n_tasks;
    if (space->n_neighbours > 0) {
        return msc_pair_model_use_edges(model, arena, space->neighbours, space->n_neighbours);
    }
    uint32_t(*pairs)[2] = msc_arena_array(arena, n_tasks, sizeof *pairs);
    MSC_TRY(MSC_ALLOCATED(pairs));
    for (size_t t = 0; t + 1 < n_tasks; t++) {
        pairs[t][0] = (uint32_t)t;
        pairs[t][1] = (uint32_t)t + 1;
    }
    return msc_pair_model_use_edges(model, arena, (const uint32_t(*)[2])pairs, n_tasks - 1);
}
