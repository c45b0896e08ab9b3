// Functions shared by the model's fit (pair_model.c), its covariances (pair_covariance.c), its
// draws (pair_draw.c) and its standard deviations (pair_spread.c).
#ifndef MSC_AGENTS_PAIR_MODEL_INTERNAL_H
#define MSC_AGENTS_PAIR_MODEL_INTERNAL_H

#include "agents/pair_model.h"

enum { MSC_PAIR_UNKNOWN, MSC_PAIR_PAIRS, MSC_PAIR_NOISE };

// A strength by its position on the grid; `which` is MSC_PAIR_UNKNOWN, _PAIRS or _NOISE.
double msc_pair__strength(const int places[], int which);
// Observed point i of the posterior.
const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i);
// Sets `places`, `own_choices` and `own_roots` for the point x.
void msc_pair__set_own(const struct msc_pair_model *m, const uint32_t x[]);
// Sets column i of `point_choices` and `point_roots` for the point x.
void msc_pair__set_column(struct msc_pair_model *m, size_t i, const uint32_t x[]);
// The covariances, as far as they come from pair terms, of points i to i + MSC_PAIR_LANES - 1 with
// the point of msc_pair__set_own. The squared strength is not included.
void msc_pair__pair_covariances(const struct msc_pair_model *m, size_t i, double out[]);
// The variance of the point of msc_pair__set_own, in the same sense.
double msc_pair__pair_variance(const struct msc_pair_model *m);
// Sets the covariances of the points from n_covered on with all points, not yet multiplied by
// strengths: `alone` from choices of unknown loss, `pairs` from pair terms.
void msc_pair__set_covariances(struct msc_pair_model *m);
// Selects the tasks that have pair terms: with is_near, all; else those of greatest scale.
void msc_pair__choose_pairs(struct msc_pair_model *m);
// Sets `unknown`: for each task, what its choice in x adds to the covariance with a point that has
// the same choice. False if all are 0.
bool msc_pair__set_unknown(struct msc_pair_model *m, const uint32_t x[]);
// Removes all pair terms until the next fit.
void msc_pair__leave_out_pairs(struct msc_pair_model *m);

#endif
