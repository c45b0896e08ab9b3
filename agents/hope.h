// How good a point may be, by a model of the losses (agents/pair_model.h), in one of two ways; less is
// better:
//
//   MSC_HOPE_BOUND        the lower confidence bound, the mean less some standard deviations of the
//                         posterior (Auer 2002; of Gaussian processes: Srinivas et al. 2010);
//   MSC_HOPE_IMPROVEMENT  less the expected improvement on the best loss so far (Jones et al. 1998).
//
// Measuring where that is least either finds a good point or teaches the model most where it matters.
// The bound explores more, the improvement looks closer at what is good: neither is best everywhere, so
// who asks for several hopes takes both in turn (Hoffman et al. 2011). The model is to be drawn at
// temperature 0. Nothing is allocated.
#ifndef MSC_AGENTS_HOPE_H
#define MSC_AGENTS_HOPE_H

#include "agents/pair_model.h"

enum msc_hope_way { MSC_HOPE_BOUND, MSC_HOPE_IMPROVEMENT };

struct msc_hope {
    struct msc_pair_model *model;
    enum msc_hope_way way;
    double width;     // what spreads are multiplied by
    double best_loss; // so far; finite where the way is MSC_HOPE_IMPROVEMENT
};

// Of a point of this mean and spread; +inf where nothing is expected of it at all.
double msc_hope_of(const struct msc_hope *h, double mean, double spread);
// The same, or +inf where it is not below `least`, which is sooner said.
double msc_hope_value(const struct msc_hope *h, const uint32_t choices[], double least);
// Changes `choices`, of such a value, to the lowest one that differs in one task or two, over and over, as
// long as `is_wanted` holds; with many points to reckon with it ends before none is lower.
void msc_hope_descend(const struct msc_hope *h, uint32_t choices[], double value,
                      bool (*is_wanted)(const void *context, const uint32_t choices[]),
                      const void *context);

#endif
