// How good a point may be: the lower confidence bound of a model of the losses
// (agents/pair_model.h), its mean less some standard deviations of the posterior. Measuring where
// that is least either finds a good point or teaches the model most where it matters (Auer 2002; of
// Gaussian processes: Srinivas et al. 2010). The model is to be drawn at temperature 0. Nothing is
// allocated.
#ifndef MSC_AGENTS_HOPE_H
#define MSC_AGENTS_HOPE_H

#include "agents/pair_model.h"

// +inf where it is not below `least`.
double msc_hope_bound(struct msc_pair_model *m, const uint32_t choices[], double least);
// Changes `choices`, of such a bound, to the lowest one that differs in one task or two, over and
// over, as long as `is_wanted` holds; with many points to reckon with it ends before none is lower.
// Returns the bound.
double msc_hope_descend(struct msc_pair_model *m, uint32_t choices[], double bound,
                        bool (*is_wanted)(const void *context, const uint32_t choices[]),
                        const void *context);

#endif
