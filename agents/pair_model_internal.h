// What the model's fit (pair_model.c), its draws (pair_draw.c) and its spreads (pair_spread.c) share.
#ifndef MSC_AGENTS_PAIR_MODEL_INTERNAL_H
#define MSC_AGENTS_PAIR_MODEL_INTERNAL_H

#include "agents/pair_model.h"

// Points whose covariances with another are summed at once, each sum without waiting for the others:
// MSC_PAIR_POINTS and MSC_PAIR_PENDING are multiples of it.
#define MSC_PAIR_LANES 4

enum { MSC_PAIR_UNKNOWN, MSC_PAIR_PAIRS, MSC_PAIR_NOISE };

// Of places on the grid.
double msc_pair__strength(const int places[], int which);
// Point i of those that the posterior rests on.
const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i);
// Sets `places` to those of a point's choices.
void msc_pair__set_places(const struct msc_pair_model *m, const uint32_t x[]);
// The covariance, over the pairs' strength, of a choice of a task, by its entry, with a point's choice of it.
double msc_pair__covariance(const struct msc_pair_model *m, size_t a, size_t b);
// Row i of `features`: the covariance of every choice that has pair terms with that of point i for its task.
void msc_pair__set_row(struct msc_pair_model *m, size_t i, const uint32_t x[]);
// Of points i to i + MSC_PAIR_LANES - 1, by their rows, with the one whose choices' places are set: that of pairs,
// over their strength's square.
void msc_pair__pair_covariances(const struct msc_pair_model *m, size_t i, double out[]);
// Sets `unknown` to what the choice of each task adds to the covariance with a point that shares it. False
// where that is nothing at all.
bool msc_pair__set_unknown(struct msc_pair_model *m, const uint32_t x[]);
// Until the next fit there are no pairs.
void msc_pair__leave_out_pairs(struct msc_pair_model *m);

#endif
