// A point whose exact costs are kept while single tasks change: what a change costs follows from the
// terms that its task stands in. Only costs that a bound of the goal is on; values are exact but for
// the rounding of many changes, so the caller checks a point that counts by msc_exact_bounds_hold.
// Random points are repaired by it, too. Nothing allocates after init.
#ifndef MSC_AGENTS_EXACT_MOVES_H
#define MSC_AGENTS_EXACT_MOVES_H

#include "agents/exact_bounds.h"

#include <math.h>

struct msc_term_use {
    uint32_t item; // of the bounds
    uint32_t term; // of its cost
    size_t product;
};

struct msc_exact_moves {
    const struct msc_exact_bounds *bounds; // borrowed
    uint32_t *point;                       // [n_tasks]
    double values[MSC_MAX_BOUNDS];         // of the bounds' items
    double *products;                      // of all items' terms
    size_t *first_uses;                    // [n_tasks + 1]
    struct msc_term_use *uses;             // by task
    uint32_t *order;                       // [n_tasks], for repair
    bool has_products; // of several tasks: else what a change costs depends on its task alone
};

enum msc_status msc_exact_moves_init(struct msc_exact_moves *moves, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds);
void msc_exact_moves_start(struct msc_exact_moves *moves, const uint32_t choices[]);
void msc_exact_moves_change(struct msc_exact_moves *moves, size_t task, uint32_t choice);
// How much each item's value would change by; `out` [n_items].
void msc_exact_moves_deltas(const struct msc_exact_moves *moves, size_t task, uint32_t choice,
                            double out[]);
// The violation (msc_goal_violation) of the point's values with `deltas` added.
double msc_exact_moves_violation(const struct msc_exact_moves *moves, const double deltas[]);
// What a value that is `above` its limit adds to it. It may be above by rounding.
static inline double msc_exact_moves_overshoot(double above, double limit) {
    double size = fabs(limit);
    return above <= 1e-12 * size ? 0.0 : size > 0.0 ? above / size : above;
}
// Does the point meet the bounds? Near a limit by msc_exact_bounds_hold, which has the last word.
bool msc_exact_moves_hold(const struct msc_exact_moves *moves);
// Changes an infeasible point until it is feasible, by random steps to cheaper choices and, where
// these do not suffice, towards the bounds' anchor. False only when there is no anchor.
bool msc_exact_moves_repair(struct msc_exact_moves *moves, struct msc_rng *rng, uint32_t choices[]);

#endif
