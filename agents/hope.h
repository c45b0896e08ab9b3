// Acquisition functions: how promising a point is under a model of the losses
// (agents/pair_model.h). A "hope" is a point at which one of them is least:
//
//   MSC_HOPE_BOUND        the lower confidence bound: the mean minus a multiple of the posterior's
//                         standard deviation (Auer 2002; for Gaussian processes: Srinivas et al.
//                         2010);
//   MSC_HOPE_IMPROVEMENT  the negative expected improvement on the best loss so far (Jones et al.
//                         1998).
//
// A hope is either good or teaches the model most about good points. The lower confidence bound
// explores more; the expected improvement prefers points near good ones. Neither is best
// everywhere, so alternate between them when several hopes are proposed (Hoffman et al. 2011). Draw
// the model at temperature 0 before use. Nothing is allocated.
#ifndef MSC_AGENTS_HOPE_H
#define MSC_AGENTS_HOPE_H

#include "agents/pair_model.h"

enum msc_hope_way { MSC_HOPE_BOUND, MSC_HOPE_IMPROVEMENT };

struct msc_hope {
    struct msc_pair_model *model;
    enum msc_hope_way way;
    double width;     // factor on standard deviations
    double best_loss; // least loss so far; finite for MSC_HOPE_IMPROVEMENT
};

// Value of a point of this mean and standard deviation; +inf if no improvement is expected.
double msc_hope_of(const struct msc_hope *h, double mean, double spread);
// Value of a point, or +inf if it is not below `least`; the computation stops as soon as this is
// certain.
double msc_hope_value(const struct msc_hope *h, const uint32_t choices[], double least);
// Improves `choices`, whose value is `value`, by steepest descent: each step moves to the best
// point that differs in one or two tasks and satisfies `is_wanted`. Work is limited, so with many
// observed points the descent may end before a local minimum.
void msc_hope_descend(const struct msc_hope *h, uint32_t choices[], double value,
                      bool (*is_wanted)(const void *context, const uint32_t choices[]),
                      const void *context);

#endif
