// What the goal's bounds on exact costs allow: checking points and partial points, walking feasible
// points in order. Shared by the built-in agents; bounds on measured
// metrics play no part here. Nothing allocates after init.
#ifndef MSC_AGENTS_EXACT_BOUNDS_H
#define MSC_AGENTS_EXACT_BOUNDS_H

#include "base/alloc.h"
#include "base/rng.h"
#include "env/api/trial.h"

struct msc_exact_bound {
    const struct msc_cost *cost;
    double min, max;
    double *factor_low, *factor_high; // by factor, in the order of terms: its smallest and greatest
};

struct msc_exact_bounds {
    const struct msc_space *space;
    const struct msc_goal *goal;
    size_t n_items;
    struct msc_exact_bound items[MSC_MAX_BOUNDS];
    // Entry of (task, choice) in tables over all choices: offsets[task] + choice.
    size_t n_entries;
    size_t *offsets;     // [n_tasks]
    uint32_t *positions; // [n_entries], where the choice stands in the task's most_expensive_first
    uint32_t *most_expensive; // [n_tasks], every task's first in that order
    uint32_t *anchor;         // [n_tasks], a feasible point; NULL when none was found
};

// Space and goal are borrowed, memory is the arena's.
enum msc_status msc_exact_bounds_init(struct msc_exact_bounds *bounds, struct msc_arena *arena,
                                      const struct msc_space *space, const struct msc_goal *goal);

static inline size_t msc_exact_bounds_entry(const struct msc_exact_bounds *bounds, size_t task,
                                            uint32_t choice) {
    return bounds->offsets[task] + choice;
}

double msc_exact_bounds_violation(const struct msc_exact_bounds *bounds, const uint32_t choices[]);
bool msc_exact_bounds_hold(const struct msc_exact_bounds *bounds, const uint32_t choices[]);
// False when no point is feasible that agrees with `choices` in every task whose rank is below
// `n_fixed`. `ranks` [n_tasks] NULL: the task's index is its rank.
bool msc_exact_bounds_may_hold(const struct msc_exact_bounds *bounds, const uint32_t choices[],
                               const uint32_t ranks[], size_t n_fixed);

// Feasible points in order, the last task's choice changing fastest. Subtrees without feasible
// points are left out unseen.
struct msc_walk {
    const struct msc_exact_bounds *bounds;
    bool cheapest_first; // walk choices from the end of most_expensive_first instead of by index
    uint32_t *ranks;     // [n_tasks]
    bool has_begun;
    bool is_over;
};

enum msc_status msc_walk_init(struct msc_walk *walk, struct msc_arena *arena,
                              const struct msc_exact_bounds *bounds, bool cheapest_first);
// The next feasible point; false when there is none, and is_over is set, or when `max_nodes`
// partial points were looked at in vain: then `choices` holds the point where the walk stands,
// which is not feasible, and the next call goes on after it.
bool msc_walk_next(struct msc_walk *walk, uint32_t choices[], uint64_t max_nodes);
// How many points lie behind the one where the walk stands, feasible or not.
double msc_walk_n_left(const struct msc_walk *walk);

#endif
