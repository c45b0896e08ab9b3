// Functions shared by the model's fit (pair_model.c), its draws (pair_draw.c) and its standard
// deviations (pair_spread.c).
#ifndef MSC_AGENTS_PAIR_MODEL_INTERNAL_H
#define MSC_AGENTS_PAIR_MODEL_INTERNAL_H

#include "agents/pair_model.h"

// The number of points whose covariances are summed at once, in independent sums (for
// vectorisation). MSC_PAIR_POINTS and MSC_PAIR_PENDING are multiples of MSC_PAIR_LANES.
#define MSC_PAIR_LANES 4

enum { MSC_PAIR_UNKNOWN, MSC_PAIR_PAIRS, MSC_PAIR_NOISE };

// A strength by its position on the grid; `which` is MSC_PAIR_UNKNOWN, _PAIRS or _NOISE.
double msc_pair__strength(const int places[], int which);
// Observed point i of the posterior.
const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i);
// Sets `places` for the point x.
void msc_pair__set_places(const struct msc_pair_model *m, const uint32_t x[]);
// One task's factor in the covariance of two pair terms that have the task's choices `a` and `b`
// (entries). The strength is not included.
double msc_pair__covariance(const struct msc_pair_model *m, size_t a, size_t b);
// Sets row i of `features`: the covariance of every choice that has pair terms with the choice of
// the same task in the point x.
void msc_pair__set_row(struct msc_pair_model *m, size_t i, const uint32_t x[]);
// The covariances, as far as they come from pair terms, of points i to i + MSC_PAIR_LANES - 1 (rows
// of `features`) with the point whose `places` are set. The squared strength is not included.
void msc_pair__pair_covariances(const struct msc_pair_model *m, size_t i, double out[]);
// Sets `unknown`: for each task, what its choice in x adds to the covariance with a point that has
// the same choice. False if all are 0.
bool msc_pair__set_unknown(struct msc_pair_model *m, const uint32_t x[]);
// Removes all pair terms until the next fit.
void msc_pair__leave_out_pairs(struct msc_pair_model *m);

#endif
