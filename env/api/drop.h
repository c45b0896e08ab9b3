// Bounds that are stated as a drop: how much worse than the float model's value a metric may be.
// The limit is known once the float model was measured.
//
//     struct msc_drops drops;
//     MSC_TRY(msc_env_read_drops(&drops, &goal, space, config));         // env/env.h
//     MSC_TRY(msc_env_measure_drops(&drops, &goal, env));                // sets the limits
//
// A drop is the float model's value less the plan's if greater values of the metric are better,
// else the plan's value less the float model's. A relative drop is divided by the absolute value of
// the float model.
#ifndef MSC_ENV_API_DROP_H
#define MSC_ENV_API_DROP_H

#include "env/api/trial.h"

MSC_PUBLIC_BEGIN

struct msc_drop {
    bool is_stated; // the bound is a drop; the other members are set only then
    bool is_relative;
    double most;      // the greatest drop allowed
    double reference; // the float model's value of the metric
};

// One for each bound of the goal, at the same index. Zeroed: no bound is a drop.
struct msc_drops {
    struct msc_drop of_bound[MSC_MAX_BOUNDS];
};

// The ends of the names of drops: "accuracy_drop", "accuracy_drop_ratio" and, for the standard
// error of a drop, "accuracy_drop_se".
#define MSC_DROP_SUFFIX "_drop"
#define MSC_DROP_RATIO_SUFFIX "_drop_ratio"
#define MSC_DROP_ERROR_SUFFIX "_drop_se"

// Share of the float model's value by which limits are wider than the drop. Sums of a million samples
// round by less.
#define MSC_DROP_SLACK 1e-12

bool msc_drops_any(const struct msc_drops *drops, const struct msc_goal *goal);
// The drop of a value.
double msc_drop_of(double value, double reference, bool is_maximised, bool is_relative);
// Sets the limit of a bound from the drop and the float model's value. With MSC_DROP_SLACK, rounding
// cannot exclude a plan whose drop is exactly the greatest allowed.
void msc_drop_set_limit(struct msc_bound *bound, const struct msc_drop *drop, bool is_maximised);

MSC_PUBLIC_END

#endif
