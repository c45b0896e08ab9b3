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
// Variance in the regression of a known loss from its regression, in logarithms.
#define MSC_FEATURE_LOSS_VARIANCE 0.5
// What the regression adds to the diagonal of its normal equations, unless more is known: for a
// coefficient (of variance 1; features have the variance 1), and for the level, whose variance is
// that of the logarithm of a mean loss that follows from a uniform plan, because of interactions.
#define MSC_FEATURE_RIDGE (MSC_FEATURE_LOSS_VARIANCE / 1.0)
#define MSC_FEATURE_LEVEL_RIDGE (MSC_FEATURE_LOSS_VARIANCE / 0.25)

enum msc_feature_of { MSC_FEATURE_OF_CHOICE, MSC_FEATURE_OF_TASK, MSC_FEATURE_OF_COST };

struct msc_feature_kind {
    enum msc_feature_of of;
    const char *name; // NULL for a cost
    bool is_log;      // the feature is the logarithm of the number in the space
    bool is_metric;   // it estimates the metric itself
    double deviation; // standard deviation before it was standardised; 0: it is the same everywhere
};

struct msc_feature_prior {
    const struct msc_exact_bounds *bounds; // borrowed
    size_t n;                              // features; 0: none differ from choice to choice
    double *features;                      // [n_entries, n], standardised
    struct msc_feature_kind kinds[MSC_FEATURE_PRIOR_MOST];
    double expected[MSC_FEATURE_PRIOR_MOST];     // coefficients before any loss is known
    double variances[MSC_FEATURE_PRIOR_MOST];    // their variances
    double coefficients[MSC_FEATURE_PRIOR_MOST]; // of the regression
    double level;  // mean of log(loss / mean loss of the position) over the known choices
    double *means; // [n_positions], mean isolated loss of a position
    double *left;  // [n_entries], logarithm of the known loss minus the regression; NaN: not known
    double *given; // [n_entries], isolated losses that the space gives; NULL: it gives none
};

// Without features of choices in the space, `n` is 0 and guesses stay as they are. `metric` is the
// name of the metric whose isolated losses are guessed, and `sign` is -1 if it is maximised, else
// 1.
enum msc_status msc_feature_prior_init(struct msc_feature_prior *f, struct msc_arena *arena,
                                       const struct msc_exact_bounds *bounds, size_t n_positions,
                                       const char *metric, double sign);
// Adds the known losses to the normal equations of the regression, without its prior: to the upper
// triangle of `matrix` [MSC_FEATURE_PRIOR_MOST + 1, MSC_FEATURE_PRIOR_MOST + 1] and to `vector`.
// The level is unknown n, after the coefficients. Returns the number of losses. Call it after
// msc_sensitivity_guess.
size_t msc_feature_prior_add_losses(struct msc_feature_prior *f, const struct msc_sensitivity *s,
                                    double matrix[], double vector[]);
// Replaces the guesses of choices whose loss was not observed.
void msc_feature_prior_improve(struct msc_feature_prior *f, struct msc_sensitivity *s);

#endif
