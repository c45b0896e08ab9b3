// What the model's fit (pair_model.c) and its draws (pair_draw.c) share.
#ifndef MSC_AGENTS_PAIR_MODEL_INTERNAL_H
#define MSC_AGENTS_PAIR_MODEL_INTERNAL_H

#include "agents/pair_model.h"

enum { MSC_PAIR_UNKNOWN, MSC_PAIR_PAIRS, MSC_PAIR_NOISE };

// Of places on the grid.
double msc_pair__strength(const int places[], int which);
// Point i of those that the posterior rests on.
const uint32_t *msc_pair__point(const struct msc_pair_model *m, size_t i);
// Sets `places` to those of a point's choices.
void msc_pair__set_places(const struct msc_pair_model *m, const uint32_t x[]);
// Until the next fit there are no pairs.
void msc_pair__leave_out_pairs(struct msc_pair_model *m);

#endif
