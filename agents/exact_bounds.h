// The goal's bounds on exact costs: checks whether a point or a partial point can meet them, and
// walks the feasible points in order. Shared by the built-in agents. Bounds on measured metrics are
// ignored here. Only init allocates.
#ifndef MSC_AGENTS_EXACT_BOUNDS_H
#define MSC_AGENTS_EXACT_BOUNDS_H

#include "base/alloc.h"
#include "base/rng.h"
#include "env/api/trial.h"

struct msc_exact_bound {
    const struct msc_cost *cost;
    double min, max;
    double *factor_low, *factor_high; // range of each factor, in the order of terms
};

struct msc_exact_bounds {
    const struct msc_space *space;
    const struct msc_goal *goal;
    size_t n_items;
    struct msc_exact_bound items[MSC_MAX_BOUNDS];
    // The entry of (task, choice) in tables over all choices is offsets[task] + choice.
    size_t n_entries;
    size_t *offsets;     // [n_tasks]
    uint32_t *positions; // [n_entries], position of the choice in the task's most_expensive_first
    uint32_t *most_expensive; // [n_tasks], first of each task's most_expensive_first
    uint32_t *anchor;         // [n_tasks], a feasible point; NULL if none was found
};

// Space and goal are borrowed; memory comes from the arena.
enum msc_status msc_exact_bounds_init(struct msc_exact_bounds *bounds, struct msc_arena *arena,
                                      const struct msc_space *space, const struct msc_goal *goal);

static inline size_t msc_exact_bounds_entry(const struct msc_exact_bounds *bounds, size_t task,
                                            uint32_t choice) {
    return bounds->offsets[task] + choice;
}

double msc_exact_bounds_violation(const struct msc_exact_bounds *bounds, const uint32_t choices[]);
bool msc_exact_bounds_hold(const struct msc_exact_bounds *bounds, const uint32_t choices[]);
// False if every point that agrees with `choices` in the tasks of rank below `n_fixed` is
// infeasible. `ranks` [n_tasks]; NULL: a task's index is its rank.
bool msc_exact_bounds_may_hold(const struct msc_exact_bounds *bounds, const uint32_t choices[],
                               const uint32_t ranks[], size_t n_fixed);

// Walks the feasible points in order; the last task's choice changes fastest. Subtrees without
// feasible points are skipped as a whole.
struct msc_walk {
    const struct msc_exact_bounds *bounds;
    bool cheapest_first; // walk choices from the end of most_expensive_first instead of by index
    uint32_t *ranks;     // [n_tasks]
    bool has_begun;
    bool is_over;
};

enum msc_status msc_walk_init(struct msc_walk *walk, struct msc_arena *arena,
                              const struct msc_exact_bounds *bounds, bool cheapest_first);
// Writes the next feasible point to `choices`. False if there is none; is_over is then set. Also
// false after `max_nodes` partial points without result: `choices` is then the current, infeasible
// point, and the next call continues after it.
bool msc_walk_next(struct msc_walk *walk, uint32_t choices[], uint64_t max_nodes);
// The number of points that the walk has yet to visit, feasible or not.
double msc_walk_n_left(const struct msc_walk *walk);

#endif
