// A Gaussian process over the points that were measured. It needs no base, so it serves where the
// most expensive plan cannot be measured. The covariance of two points is
//
//     variance * ((1 - summed) * exp(-D) + summed * (1 - D / sum of rates)),
//     D = sum over tasks of rates[t] * distance of the two choices
//
// with the distance of agents/near_distance.h: the next choice is closer than any other. The second
// part is of functions that are a sum over tasks (Duvenaud et al. 2011): it foresees points in
// which several tasks differ from all points seen. The model is of the logit of the value's rank if
// the caller sets is_ranked, so that points that are far worse than most do not stretch the scale
// on which the best ones differ. Else it is of the logarithm of the value if all values are
// positive. The rates, the noise and the share of the sum maximise the profile
// posterior on a grid, by coordinate ascent: the likelihood, in which the mean and the variance
// have closed forms (Rasmussen and Williams 2006, chapter 5; Jones et al. 1998), times a log-normal
// prior of each rate. Without the prior, few points would make most tasks look irrelevant.
//
// Use: tell points, fit, then predict. At most MSC_NEAR_POINTS points are kept: the latest ones and
// those of least value. Only init allocates.
#ifndef MSC_AGENTS_NEAR_MODEL_H
#define MSC_AGENTS_NEAR_MODEL_H

#include "agents/exact_bounds.h"

#define MSC_NEAR_POINTS 112

struct msc_near_model {
    const struct msc_exact_bounds *bounds; // borrowed
    uint64_t n_told;
    size_t n_points, n_fitted; // n_fitted: points when the rates were last chosen
    uint32_t *points;          // [MSC_NEAR_POINTS, n_tasks]
    double *values;            // [MSC_NEAR_POINTS], as told
    uint64_t *ages;            // [MSC_NEAR_POINTS], n_told when told
    bool is_ranked;            // set by the caller before a fit: the model is of ranks
    bool is_log;               // the model is of the logarithm
    double *rates;             // [n_tasks]
    double noise;              // relative to the variance
    double summed;             // share of the variance that is a sum over tasks
    // Of the current fit:
    double mean, variance, sum_of_rates;
    double *distances; // [MSC_NEAR_POINTS, MSC_NEAR_POINTS], sums of rate times distance
    double *factor;    // [MSC_NEAR_POINTS, MSC_NEAR_POINTS], Cholesky factor
    double *targets;   // [MSC_NEAR_POINTS], values or their logarithms
    double *ones;      // [MSC_NEAR_POINTS], U^-T 1
    double *residuals; // [MSC_NEAR_POINTS], U^-T (targets - mean)
    double *alone;     // [n_entries], scratch: distances of single choices
};

enum msc_status msc_near_model_init(struct msc_near_model *m, struct msc_arena *arena,
                                    const struct msc_exact_bounds *bounds);
void msc_near_model_tell(struct msc_near_model *m, const uint32_t choices[], double value);
// Fits the model. False if the points do not determine it: there are fewer than two values.
bool msc_near_model_fit(struct msc_near_model *m);
// The value as the model sees it, unless that is a rank: its logarithm, or the value itself.
double msc_near_model_scale(const struct msc_near_model *m, double value);
// The correlation of two points.
double msc_near_model_correlation(const struct msc_near_model *m, const uint32_t a[],
                                  const uint32_t b[]);
// Predicts the scaled value of a point: its mean and its variance without noise, in the unit of
// `variance`. `solved` [n_points] gets U^-T times the correlations with the points.
void msc_near_model_predict(const struct msc_near_model *m, const uint32_t choices[],
                            double solved[], double *mean, double *left);

#endif
