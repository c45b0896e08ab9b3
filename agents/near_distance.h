// How far two choices of a task are apart, 0 to 1. A fifth of the distance counts any difference,
// the rest the places between them in the order of cost. A task of two choices has no places
// between.
#ifndef MSC_AGENTS_NEAR_DISTANCE_H
#define MSC_AGENTS_NEAR_DISTANCE_H

#include "agents/exact_bounds.h"

#define MSC_NEAR_ANY 0.2 // the part that counts any difference

static inline double msc_near_distance(const struct msc_exact_bounds *bounds, size_t task,
                                       uint32_t a, uint32_t b) {
    if (a == b) {
        return 0.0;
    }
    uint32_t p = bounds->positions[msc_exact_bounds_entry(bounds, task, a)];
    uint32_t q = bounds->positions[msc_exact_bounds_entry(bounds, task, b)];
    double n_steps = (double)(bounds->space->tasks[task].n_choices - 1);
    return MSC_NEAR_ANY + (1.0 - MSC_NEAR_ANY) * (p > q ? p - q : q - p) / n_steps;
}

#endif
