// The chance that a point can be measured, learnt from the points that failed and those that did
// not. Two models are mixed:
//
//   - Each choice e breaks a point by itself with probability b[e] and, in a space of few tasks and
//     choices, each pair of choices with probability b[e, f] (a "noisy or" of causes: Pearl 1988).
//     A point works if none of its causes breaks it: q(x) = product of 1 - b over its choices and
//     pairs. The b maximise the posterior under a beta prior, by expectation maximisation (Dempster
//     et al. 1977). If all points with a task's dearest choices fail, few points show it.
//     A pair of choices that some point with a result has is likely to work in other points.
//   - Failures may also depend on more choices together. The chance is therefore the mean of the
//     outcomes of all points, weighted by exp(-3 * sum of distances) (agents/near_distance.h;
//     Nadaraya 1964), where q(x) counts as one more outcome.
//
// Use: tell points, then ask for the chance of any point. Only init allocates.
#ifndef MSC_AGENTS_CHANCE_H
#define MSC_AGENTS_CHANCE_H

#include "agents/exact_bounds.h"

#define MSC_CHANCE_POINTS 512 // the latest points are kept

struct msc_chance {
    const struct msc_exact_bounds *bounds; // borrowed
    uint64_t n_told, n_failed;
    size_t n_points;
    uint32_t *points;  // [MSC_CHANCE_POINTS, n_tasks]
    bool *works;       // [MSC_CHANCE_POINTS]
    double *breaks;    // [n_entries], b[e]
    double *blames;    // [n_entries], scratch: expected number of points that the choice broke
    double *counts;    // [n_entries], scratch: number of points with the choice
    double *distances; // [n_entries], scratch
    bool has_pairs;    // pairs are causes, too
    // [n_entries, n_entries] each, of the choices of a later and an earlier task: as `breaks`,
    // `blames` and `counts`
    double *pair_breaks, *pair_blames, *pair_counts;
    bool is_stale; // points were told since `breaks` was set
};

enum msc_status msc_chance_init(struct msc_chance *c, struct msc_arena *arena,
                                const struct msc_exact_bounds *bounds);
void msc_chance_tell(struct msc_chance *c, const uint32_t choices[], bool works);
// The chance that the point can be measured, above 0 and below 1.
double msc_chance_of(struct msc_chance *c, const uint32_t choices[]);
// The probability b[e] that a choice breaks a point by itself.
double msc_chance_of_break(struct msc_chance *c, size_t entry);
// The share of the kept points that could be measured; 1 if there are none.
double msc_chance_share(const struct msc_chance *c);

#endif
