// Guesses isolated losses from features of choices, such as the error that a choice adds to the
// output of its layer. With them, an agent has good plans before it has tried every choice.
//
// The logarithm of a choice's isolated loss, relative to the mean loss of all choices at its
// position (the order from the most to the least expensive), is a linear function of the choice's
// features. The coefficients are a ridge regression over the choices of known loss; at first,
// losses are assumed to be proportional to "output_error" or, without it, to "weight_error".
// Features count by how far they differ from the mean of their position, as logarithms if they are
// positive. The features are those of choices and of tasks, and what a choice saves of each bounded
// cost. Between the known choices of a task, the difference from the regression is interpolated.
//
// A feature may have the name of the metric itself: it is the metric's value if only this choice is
// applied, perhaps on fewer samples. If all choices have it, the isolated losses follow from it and
// there is no regression.
//
// Use: init; after each msc_sensitivity_guess, improve its guesses. Only init allocates.
#ifndef MSC_AGENTS_FEATURE_PRIOR_H
#define MSC_AGENTS_FEATURE_PRIOR_H

#include "agents/sensitivity.h"

#define MSC_FEATURE_PRIOR_MOST 16

struct msc_feature_prior {
    const struct msc_exact_bounds *bounds;       // borrowed
    size_t n;                                    // features; 0: none differ from choice to choice
    double *features;                            // [n_entries, n], standardised
    double expected[MSC_FEATURE_PRIOR_MOST];     // coefficients before any loss is known
    double coefficients[MSC_FEATURE_PRIOR_MOST]; // of the regression
    double level;  // mean of log(loss / mean loss of the position) over the known choices
    double *means; // [n_positions], mean isolated loss of a position
    double *left;  // [n_entries], logarithm of the known loss minus the regression; NaN: not known
    double *given; // [n_entries], isolated losses that the space gives; NULL: it gives none
};

// Without features of choices in the space, `n` is 0 and guesses stay as they are. `metric` is the
// name of the metric whose isolated losses are guessed, and `sign` is -1 if it is maximised, else 1.
enum msc_status msc_feature_prior_init(struct msc_feature_prior *f, struct msc_arena *arena,
                                       const struct msc_exact_bounds *bounds, size_t n_positions,
                                       const char *metric, double sign);
// Replaces the guesses of choices whose loss was not observed.
void msc_feature_prior_improve(struct msc_feature_prior *f, struct msc_sensitivity *s);

#endif
