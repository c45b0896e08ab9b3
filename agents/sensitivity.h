// What each choice loses alone: the base is every task's most expensive choice, and a choice's loss is
// that of the base with it in its place, above the base's own. Those not told are guessed:
//
//   - Along a task's choices, from the most expensive to the cheapest, losses are taken to grow by a
//     constant factor: between two that are known by that of their own, beyond them by the median over
//     tasks, or, where uniform plans were told, by how the losses of these grow.
//   - A choice that failed alone is unusable. Where failures are doubted, that is so until another point
//     with it has come to a result; from then on it is one that was not told.
//   - A task of which nothing is known is taken to lose as much as the others do on average, which is
//     what uniform plans lose beyond those known; else their median.
//
// Nothing allocates after init.
#ifndef MSC_AGENTS_SENSITIVITY_H
#define MSC_AGENTS_SENSITIVITY_H

#include "agents/exact_bounds.h"

#include <math.h>

struct msc_sensitivity {
    const struct msc_exact_bounds *bounds; // borrowed
    double base_loss;                      // NaN: not told, or failed
    double *told;         // [n_entries], with the base's in it; NaN: not told; +inf: failed
    double *guesses;      // [n_entries], above the base's; those known as they are
    bool *was_asked;      // [n_entries]
    bool *is_estimate;    // [n_entries], of what is told
    bool *works;          // [n_entries]: some point that it is in came to a result
    bool doubts_failures; // of choices that work: set by whoever owns it
    size_t n_positions;   // of the task with most choices
    double *uniform;      // [n_positions], loss of the uniform plan of that place; NaN: not told
    double *factors;      // [n_positions], growth from the place before
    double *sorted;       // [n_entries], scratch
    uint32_t *order;      // [n_tasks], those first whose choices change bounded costs most
    size_t n_bounded;     // tasks that change any; where none does, all
};

enum msc_status msc_sensitivity_init(struct msc_sensitivity *s, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds);
// `loss` NaN: failed. True when the point is the base or one task away from it.
bool msc_sensitivity_tell(struct msc_sensitivity *s, const uint32_t choices[], double loss);
// The same of a loss that was estimated: it is a guess from now on.
bool msc_sensitivity_tell_estimate(struct msc_sensitivity *s, const uint32_t choices[],
                                   double loss);
// Fills the guesses. False while the base's loss is not known.
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
// The loss of a task's choice above the base's, as told.
static inline double msc_sensitivity_above(const struct msc_sensitivity *s, size_t entry) {
    return s->told[entry] - s->base_loss;
}

#endif
