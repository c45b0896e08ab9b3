// Checks bounds by drop (env/api/drop.h) of a record's winner on the validation samples. A search
// prefers plans that just meet a bound on its own samples, so such plans often break it on others.
//
//     struct msc_held_out_options o = {.env = env, .goal = &goal, .drops = &drops, .cancel = c};
//     MSC_TRY(msc_held_out_check(left_out, record, &o));
//
// A trial that breaks a bound there is left out (msc_record_leave_out), and the next best trial is
// checked, until one meets the bounds or no trial of the record does.
#ifndef MSC_CHECKS_HELD_OUT_H
#define MSC_CHECKS_HELD_OUT_H

#include "base/cancel.h"
#include "env/api/drop.h"
#include "env/api/env.h"
#include "records/record.h"

struct cJSON;

struct msc_held_out_options {
    struct msc_env *env;
    const struct msc_goal *goal;
    const struct msc_drops *drops; // of the goal's bounds
    const struct msc_cancel *cancel;
    // Called before each measurement; may be NULL.
    void (*measuring)(void *payload, const char *what);
    void *payload;
};

// Whether any bound can be checked: it is a drop, and there are validation samples.
bool msc_held_out_has(const struct msc_held_out_options *options);
// Adds a row to the list `left_out` for each trial that is left out, as msc_recheck_winner does,
// with two more members: `held_out` (true), and `drop`, the drop on the validation samples.
// MSC_E_CANCELLED: cancelled.
enum msc_status msc_held_out_check(struct cJSON *left_out, struct msc_record *record,
                                   const struct msc_held_out_options *options);
// A bound by drop that a plan breaks on the validation samples.
struct msc_held_out_drop {
    char name[96]; // "accuracy_drop", or "accuracy_drop_ratio" for a relative drop
    double value, most;
};

// Whether a plan with these results on the validation samples, as msc_env_reevaluate gives them,
// breaks a bound by drop. Metrics that were not measured there break none.
bool msc_held_out_breaks(struct msc_held_out_drop *out, const struct msc_space *space,
                         const struct msc_goal *goal, const struct msc_drops *drops,
                         const struct cJSON *validation);

#endif
