// A link: a monotone transform of losses under which they may add up. Where a loss saturates, the
// losses of choices changed together are much less than the sum of their isolated losses. Two links
// undo this; d is the loss above the base's, and both have the slope 1 at d = 0:
//
//   MSC_LINK_EXP   s * (exp(d / s) - 1), which undoes s * log(1 + x / s)
//   MSC_LINK_LOG   -s * log(1 - d / s), which undoes s * (1 - exp(-x / s))
//
// Losses below the base's stay as they are. The kind and s are those of the greatest evidence (see
// msc_auto_choose_link), which counts the slope at every value: a density changes with its
// variable.
#ifndef MSC_AGENTS_LINK_H
#define MSC_AGENTS_LINK_H

#include "agents/numbers.h"

enum msc_link_kind { MSC_LINK_NONE, MSC_LINK_EXP, MSC_LINK_LOG };

struct msc_link {
    enum msc_link_kind kind; // zeroed: none
    double scale;            // s, above 0; ignored without a kind
};

// Beyond this part of s, MSC_LINK_LOG goes on along its tangent.
#define MSC_LINK_END 0.9999999

// The transformed loss above the base's. NaN and infinities stay.
static inline double msc_link_of(const struct msc_link *link, double above) {
    double s = link->scale;
    if (link->kind == MSC_LINK_NONE || !(above > 0.0) || isinf(above)) {
        return above;
    }
    if (link->kind == MSC_LINK_EXP) {
        return s * (msc_agent_exp(above / s) - 1.0);
    }
    double within = fmin(above, MSC_LINK_END * s);
    return -s * msc_agent_log(1.0 - within / s) + (above - within) / (1.0 - MSC_LINK_END);
}

// The logarithm of the slope at a loss above the base's.
static inline double msc_link_log_slope(const struct msc_link *link, double above) {
    if (link->kind == MSC_LINK_NONE || !(above > 0.0)) {
        return 0.0;
    }
    return link->kind == MSC_LINK_EXP
               ? above / link->scale
               : -msc_agent_log(1.0 - fmin(above / link->scale, MSC_LINK_END));
}

// The loss above the base's that has the transformed loss y.
static inline double msc_link_inverse(const struct msc_link *link, double y) {
    double s = link->scale;
    if (link->kind == MSC_LINK_NONE || !(y > 0.0) || isinf(y)) {
        return y;
    }
    return link->kind == MSC_LINK_EXP ? s * msc_agent_log(1.0 + y / s)
                                      : s * (1.0 - msc_agent_exp(-y / s));
}

// The slope of the link between a loss above the base's and the loss whose transformed loss is y.
static inline double msc_link_chord(const struct msc_link *link, double above, double y) {
    double run = above - msc_link_inverse(link, y), rise = msc_link_of(link, above) - y;
    return fabs(run) > 1e-6 * link->scale && rise / run > 0.0
               ? rise / run
               : msc_agent_exp(msc_link_log_slope(link, above));
}

#endif
