// Lists the changes that a step of mode `greedy` tries: cheaper choices while the plan breaks a
// bound, neighbouring choices when it is within the bounds.
#include "agents/grid_greedy.h"
#include "base/heap.h"

// `violation` is the violation of the exact costs after the change.
static void add_candidate(struct msc_grid *grid, size_t task, uint32_t choice, double violation) {
    struct msc_grid_greedy *g = &grid->greedy;
    struct msc_grid_candidate *candidate = &g->candidates[g->n_candidates++];
    *candidate = (struct msc_grid_candidate){.task = (uint32_t)task, .choice = choice};
    size_t entry = msc_grid_greedy_entry(grid, candidate);
    g->losses[entry] = NAN;
    g->violations[entry] = INFINITY;
    g->bounds[entry] = INFINITY;
    candidate->removed = g->violation > 0.0 ? g->violation - violation : 0.0;
    candidate->is_known = !isnan(g->gains[entry]);
    candidate->expected = g->gains[entry];
    if (g->violation > 0.0) {
        candidate->expected /= candidate->removed > 0.0 ? candidate->removed : NAN;
    }
    if (isnan(candidate->expected)) {
        candidate->expected = INFINITY;
    }
}

// Adds the task's next choice that lowers the violation; in a wide step, all such choices. If a
// step takes several changes, the choice must remove so much of the violation that half of the
// changes that the step tries would meet the quota.
static void add_cheaper(struct msc_grid *grid, size_t t) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_task *task = &grid->exact.space->tasks[t];
    uint32_t before = g->choices[t];
    double violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    double least = msc_grid_greedy_takes_several(g) ? 2.0 * g->quota / (double)g->n_tries : 0.0;
    uint32_t position = grid->exact.positions[msc_exact_bounds_entry(&grid->exact, t, before)];
    for (uint32_t i = position + 1; i < task->n_choices; i++) {
        g->choices[t] = task->most_expensive_first[i];
        double after = msc_exact_bounds_violation(&grid->exact, g->choices);
        bool is_enough = violation - after >= least || i + 1 == task->n_choices;
        // If only measured metrics break a bound, any choice may help.
        if (violation == 0.0 || (after < violation && is_enough)) {
            add_candidate(grid, t, task->most_expensive_first[i], after);
            if (!g->is_wide) {
                break;
            }
        }
    }
    g->choices[t] = before;
}

static void add_feasible(struct msc_grid *grid, size_t t) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_task *task = &grid->exact.space->tasks[t];
    uint32_t before = g->choices[t];
    uint32_t position = grid->exact.positions[msc_exact_bounds_entry(&grid->exact, t, before)];
    for (uint32_t i = 0; i < task->n_choices; i++) {
        bool is_near = i + 1 == position || i == position + 1;
        if (i == position || (!is_near && grid->changes == MSC_GRID_NEIGHBOURS)) {
            continue;
        }
        g->choices[t] = task->most_expensive_first[i];
        if (msc_exact_bounds_hold(&grid->exact, g->choices)) {
            add_candidate(grid, t, task->most_expensive_first[i], 0.0);
        }
    }
    g->choices[t] = before;
}

static bool is_expected_before(const void *context, const void *left, const void *right) {
    const struct msc_grid_greedy *g = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    double first = g->candidates[a].expected;
    double second = g->candidates[b].expected;
    return first < second || (first == second && a < b);
}

// Untried candidates come first, by the violation that they remove; then tried ones, by expected
// rating.
static bool is_tried_before(const void *context, const void *left, const void *right) {
    const struct msc_grid_greedy *g = context;
    const struct msc_grid_candidate *a = &g->candidates[*(const uint32_t *)left];
    const struct msc_grid_candidate *b = &g->candidates[*(const uint32_t *)right];
    if (a->is_known || b->is_known) {
        return a->is_known == b->is_known ? is_expected_before(context, left, right) : b->is_known;
    }
    return a->removed > b->removed || (a->removed == b->removed && a < b);
}

void msc_grid_greedy_sort(struct msc_grid_greedy *g) {
    uint32_t spare;
    const struct msc_heap heap = {
        .elements = g->order,
        .element_bytes = sizeof *g->order,
        .spare = &spare,
        .is_before = msc_grid_greedy_takes_several(g) ? is_tried_before : is_expected_before,
        .context = g};
    for (size_t i = 0; i < g->n_candidates; i++) {
        g->order[i] = (uint32_t)i;
    }
    msc_heap_sort(&heap, g->n_candidates);
}

void msc_grid_greedy_begin_step(struct msc_grid *grid, bool is_wide) {
    struct msc_grid_greedy *g = &grid->greedy;
    g->n_candidates = 0;
    g->n_asked = 0;
    g->is_wide = is_wide;
    for (size_t t = 0; t < grid->exact.space->n_tasks; t++) {
        if (g->violation > 0.0) {
            add_cheaper(grid, t);
        } else {
            add_feasible(grid, t);
        }
    }
    if (g->n_candidates == 0) {
        g->is_done = g->violation == 0.0 || is_wide;
        if (!g->is_done) {
            msc_grid_greedy_begin_step(grid, true);
        }
        return;
    }
    msc_grid_greedy_sort(g);
    g->n_asked_of = g->n_candidates;
    if (msc_grid_greedy_takes_several(g)) {
        g->n_asked_of = 0;
        while (g->n_asked_of < g->n_tries && g->n_asked_of < g->n_candidates &&
               !g->candidates[g->order[g->n_asked_of]].is_known) {
            g->n_asked_of++;
        }
    }
}
