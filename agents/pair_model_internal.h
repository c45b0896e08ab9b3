// Functions shared by the model's fit (pair_model.c), its draws (pair_draw.c) and its standard
// deviations (pair_spread.c).
#ifndef MSC_AGENTS_PAIR_MODEL_INTERNAL_H
#define MSC_AGENTS_PAIR_MODEL_INTERNAL_H

#include "agents/pair_model.h"

// Covariances with this many points are summed at once, in independent sums (for vectorisation).
// MSC_PAIR_POINTS and MSC_PAIR_PENDING are multiples of MSC_PAIR_LANES.
#define MSC_PAIR_LANES 4

enum { MSC_PAIR_UNKNOWN, MSC_PAIR_PAIRS, MSC_PAIR_NOISE };

// A strength by its position on the grid; `which` is MSC_PAIR_UNKNOWN, _PAIRS or _NOISE.
double msc_pair__strength(const int places[], int which);
// Observed point i of the posterior.
const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i);
// Sets `places` for the point x.
void msc_pair__set_places(const struct msc_pair_model *m, const uint32_t x[]);
// One task's factor of the covariance of two pair terms, for choices `a` and `b` (entries) of that
// task; without the strength.
double msc_pair__covariance(const struct msc_pair_model *m, size_t a, size_t b);
// Sets row i of `features`: the covariance of every choice that has pair terms with the choice of
// the same task in the point x.
void msc_pair__set_row(struct msc_pair_model *m, size_t i, const uint32_t x[]);
// The pair terms' covariances of points i to i + MSC_PAIR_LANES - 1, by their rows of `features`,
// with the point whose `places` are set; without the squared strength.
void msc_pair__pair_covariances(const struct msc_pair_model *m, size_t i, double out[]);
// Sets `unknown`: for each task, what its choice in x adds to the covariance with a point that has
// the same choice. False if all are 0.
bool msc_pair__set_unknown(struct msc_pair_model *m, const uint32_t x[]);
// Removes all pair terms until the next fit.
void msc_pair__leave_out_pairs(struct msc_pair_model *m);

#endif
