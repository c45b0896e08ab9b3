// Keeps the exact costs of a point up to date while single tasks change: only the terms of the
// changed task are evaluated again. Only costs that a bound of the goal limits are included. Values
// are exact except for the rounding errors of many changes, so check a final point with
// msc_exact_bounds_hold. Infeasible points can be repaired. Only init allocates.
#ifndef MSC_AGENTS_EXACT_MOVES_H
#define MSC_AGENTS_EXACT_MOVES_H

#include "agents/exact_bounds.h"

#include <math.h>

struct msc_term_use {
    uint32_t item; // index in the items of the bounds
    uint32_t term; // index in the terms of the item's cost
    size_t product;
};

struct msc_exact_moves {
    const struct msc_exact_bounds *bounds; // borrowed
    uint32_t *point;                       // [n_tasks]
    double values[MSC_MAX_BOUNDS];         // value of each item of the bounds
    double *products;                      // product of each term of all items
    size_t *first_uses;                    // [n_tasks + 1], ranges of `uses`
    struct msc_term_use *uses;             // the terms that depend on a task, by task
    uint32_t *order;                       // [n_tasks], for repair
    bool has_products; // some term depends on several tasks; else costs are sums over tasks
};

enum msc_status msc_exact_moves_init(struct msc_exact_moves *moves, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds);
void msc_exact_moves_start(struct msc_exact_moves *moves, const uint32_t choices[]);
void msc_exact_moves_change(struct msc_exact_moves *moves, size_t task, uint32_t choice);
// The change of each item's value if `task` had `choice`; `out` [n_items].
void msc_exact_moves_deltas(const struct msc_exact_moves *moves, size_t task, uint32_t choice,
                            double out[]);
// The violation (msc_goal_violation) of the point's values with `deltas` added.
double msc_exact_moves_violation(const struct msc_exact_moves *moves, const double deltas[]);
// How far a value may exceed its limit by rounding.
static inline double msc_exact_moves_slack(double limit) {
    return 1e-12 * fabs(limit);
}
// The violation of a value that exceeds its limit by `above`. An excess within rounding counts as
// 0.
static inline double msc_exact_moves_overshoot(double above, double limit) {
    double size = fabs(limit);
    return above <= msc_exact_moves_slack(limit) ? 0.0 : size > 0.0 ? above / size : above;
}
// Whether the point meets the bounds. Near a limit, msc_exact_bounds_hold decides.
bool msc_exact_moves_hold(const struct msc_exact_moves *moves);
// Changes an infeasible point until it is feasible: first by random steps to cheaper choices, then,
// if necessary, by steps towards the bounds' anchor. False only if there is no anchor.
bool msc_exact_moves_repair(struct msc_exact_moves *moves, struct msc_rng *rng, uint32_t choices[]);

#endif
