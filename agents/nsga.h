// Order of a population after K. Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm:
// NSGA-II", IEEE TEVC 6(2), 2002: by rank, then by crowding distance. Nothing allocates.
#ifndef MSC_AGENTS_NSGA_H
#define MSC_AGENTS_NSGA_H

#include "env/api/trial.h"

// Ranks (0 best): feasible outcomes by Pareto front, then infeasible ones one by one by violation;
// failed and pruned ones SIZE_MAX. Crowding within a rank: +inf at the ends of an objective, else
// the sum over objectives of the gap between its neighbours, as a part of that objective's range in
// the front. `scratch` [4 * n].
void msc_nsga_rank(size_t ranks[], double crowding[], size_t scratch[],
                   const struct msc_outcome *const outcomes[], size_t n, size_t n_objectives);

// True when member a goes before member b: the lower rank, then the greater crowding distance, then
// the lower index.
bool msc_nsga_before(const size_t ranks[], const double crowding[], size_t a, size_t b);

#endif
