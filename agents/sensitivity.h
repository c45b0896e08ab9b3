// The isolated loss of each choice. The base is the point with every task's most expensive choice.
// A choice's isolated loss is the loss of the base with only that choice changed, minus the base's
// loss. Isolated losses that were not observed are guessed:
//
//   - Along a task's choices, from the most expensive to the cheapest, losses are assumed to grow
//     by a constant factor. Between two known losses, the factor follows from the two. Beyond the
//     known losses, it is the median factor over tasks or, if uniform plans were observed, the
//     growth of the losses of these plans.
//   - A choice that failed in isolation is unusable. With `doubts_failures` it counts as not
//     observed as soon as another point with that choice gives a result.
//   - All tasks without known losses are assumed to have equal losses. These follow from the losses
//     of uniform plans minus the known losses. Without uniform plans, the median of the known
//     losses is assumed.
//
// Call init once, tell for each trial, then guess before reading `guesses`. Only init allocates.
#ifndef MSC_AGENTS_SENSITIVITY_H
#define MSC_AGENTS_SENSITIVITY_H

#include "agents/exact_bounds.h"
#include "agents/link.h"

#include <math.h>

struct msc_sensitivity {
    const struct msc_exact_bounds *bounds; // borrowed
    double base_loss;                      // NaN: not observed, or failed
    // [n_entries], observed loss including the base's; NaN: none; +inf: failed
    double *told;
    double *guesses;      // [n_entries], isolated losses: observed if known, else guessed
    bool *was_asked;      // [n_entries]
    bool *is_estimate;    // [n_entries], `told` is an estimate
    bool *works;          // [n_entries], some point with this choice gave a result
    bool doubts_failures; // see above; set by the owner after init
    struct msc_link link; // guesses are of losses under this link; set by the owner
    size_t n_positions;   // greatest number of choices of a task
    double *uniform;      // [n_positions], loss of a position's uniform plan; NaN: not observed
    double *factors;      // [n_positions], growth from the position before
    double *sorted;       // [n_entries], scratch
    uint32_t *order;      // [n_tasks], tasks whose choices change bounded costs most come first
    size_t n_bounded;     // tasks that change any bounded cost; all tasks if none does
};

enum msc_status msc_sensitivity_init(struct msc_sensitivity *s, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds);
// Observes a loss; NaN: the trial failed. True if the point is the base or differs from it in one
// task.
bool msc_sensitivity_tell(struct msc_sensitivity *s, const uint32_t choices[], double loss);
// Like msc_sensitivity_tell, but for an estimated loss, which counts as a guess.
bool msc_sensitivity_tell_estimate(struct msc_sensitivity *s, const uint32_t choices[],
                                   double loss);
// Fills the guesses. False if the base's loss is not known yet.
bool msc_sensitivity_guess(struct msc_sensitivity *s);
static inline bool msc_sensitivity_is_known(const struct msc_sensitivity *s, size_t entry) {
    return !isnan(s->told[entry]);
}
static inline bool msc_sensitivity_is_exact(const struct msc_sensitivity *s, size_t entry) {
    return msc_sensitivity_is_known(s, entry) && !s->is_estimate[entry];
}
static inline bool msc_sensitivity_is_complete(const struct msc_sensitivity *s) {
    size_t n = 0;
    while (n < s->bounds->n_entries && msc_sensitivity_is_known(s, n)) {
        n++;
    }
    return n == s->bounds->n_entries;
}
// The observed isolated loss of a choice, under the link.
static inline double msc_sensitivity_above(const struct msc_sensitivity *s, size_t entry) {
    return msc_link_of(&s->link, s->told[entry] - s->base_loss);
}

#endif
