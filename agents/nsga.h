// Orders a population by rank, then by crowding distance, after K. Deb et al., "A Fast and Elitist
// Multiobjective Genetic Algorithm: NSGA-II", IEEE TEVC 6(2), 2002. Nothing allocates.
#ifndef MSC_AGENTS_NSGA_H
#define MSC_AGENTS_NSGA_H

#include "env/api/trial.h"

// Ranks (0 best): feasible outcomes by Pareto front, then each infeasible one in the order of
// violation; SIZE_MAX for failed and pruned ones. The crowding distance within a rank is +inf for
// the least and the greatest value of an objective. Otherwise it is the sum over objectives of the
// difference between the two neighbouring values, relative to the objective's range in the front.
// `scratch` [4 * n].
void msc_nsga_rank(size_t ranks[], double crowding[], size_t scratch[],
                   const struct msc_outcome *const outcomes[], size_t n, size_t n_objectives);

// True if member a is before member b: by lower rank, then greater crowding distance, then lower
// index.
bool msc_nsga_before(const size_t ranks[], const double crowding[], size_t a, size_t b);

#endif
