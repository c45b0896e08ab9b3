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

// Writes the distance of each choice to the point's choice of the same task, times 1 or the task's
// rate, to out [n_entries].
static inline void msc_near_distances(const struct msc_exact_bounds *bounds,
                                      const uint32_t choices[], const double *rates, double out[]) {
    for (size_t t = 0; t < bounds->space->n_tasks; t++) {
        for (uint32_t c = 0; c < bounds->space->tasks[t].n_choices; c++) {
            double here = msc_near_distance(bounds, t, choices[t], c);
            out[msc_exact_bounds_entry(bounds, t, c)] = rates ? rates[t] * here : here;
        }
    }
}

// The sum of what msc_near_distances wrote over the choices of another point.
static inline double msc_near_sum(const struct msc_exact_bounds *bounds, const double distances[],
                                  const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t t = 0; t < bounds->space->n_tasks; t++) {
        sum += distances[msc_exact_bounds_entry(bounds, t, choices[t])];
    }
    return sum;
}

#endif
