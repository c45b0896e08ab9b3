// A Bayesian linear model of a metric over points of the space, with a term for each choice and one
// for each pair of choices of two tasks, anchored at every task's most expensive choice:
//
//     y(x) = base + sum of (mean[x_t] + a[x_t]) + sum over pairs of b[x_i, x_j] + noise
//
//     a[e]      ~ N(0, (unknown * scale[e])^2) where the choice's own loss is not known; else 0
//     b[e, f]   ~ N(0, pairs^2 * scale[e] * scale[f]), correlated among choices of one task
//     noise     ~ N(0, (noise * (y - base))^2): points far from the best count for less; those that are
//                 estimates have an error of their own beside it
//
// `mean` is what each choice loses alone (agents/sensitivity.h), `scale` the size of that. The three
// strengths (unknown, pairs, noise) are those of greatest marginal likelihood on a grid, and so is the
// correlation, 0.5 or none, where it is learnt. Posteriors
// are exact (Gaussian process regression: Rasmussen and Williams, 2006, algorithm 2.1); draws from
// them add to a draw of the prior what the points told take back (Matheron's rule).
//
// At most MSC_PAIR_POINTS points are kept, fewer of many tasks: those of least value and the latest.
// Pairs are those of the tasks of greatest scale, as many as have MSC_PAIR_ENTRIES choices; where they
// turn out as weak as can be, draws leave them out. Nothing allocates after
// init; at most 16 MB.
#ifndef MSC_AGENTS_PAIR_MODEL_H
#define MSC_AGENTS_PAIR_MODEL_H

#include "agents/exact_bounds.h"

#define MSC_PAIR_POINTS 384
#define MSC_PAIR_PENDING 32
#define MSC_PAIR_ENTRIES 400
#define MSC_PAIR_STRENGTHS 3

struct msc_pair_model {
    const struct msc_exact_bounds *bounds; // borrowed
    // Told:
    size_t max_points; // leaves room for points that are believed
    size_t n_points;   // that the posterior rests on
    size_t n_pending;  // told since: they are behind those
    bool is_stale;     // points were replaced since the fit
    uint64_t n_told;
    uint32_t *points; // [MSC_PAIR_POINTS + MSC_PAIR_PENDING, n_tasks]
    double *values;   // likewise
    double *errors;   // likewise, relative ones; 0: it was measured
    uint64_t *ages;   // likewise, n_told when it was told
    // The prior:
    double base;
    double *means;  // [n_entries]
    double *scales; // [n_entries], 0 at the base
    bool *is_known; // [n_entries]
    size_t n_pair_entries;
    int32_t *pair_places;   // [n_entries], -1: it has no pair terms
    uint32_t *pair_entries; // [MSC_PAIR_ENTRIES]
    uint32_t *pair_tasks;   // [MSC_PAIR_ENTRIES], of each of them
    uint32_t *tasks;        // [n_tasks], by scale
    size_t n_paired;
    uint32_t *paired; // [n_tasks], those with pair terms, in order
    uint32_t *places; // [n_tasks], of one point: its choices' places among pair_entries, of those
    double *unknown;  // [n_tasks], of one point
    double *task_scales; // [n_tasks]
    double correlation;
    bool learns_correlation; // set by the owner; if false it is 0.5
    // The posterior:
    int strengths[MSC_PAIR_STRENGTHS];  // places on the grid: of unknown, pairs, noise
    size_t n_chosen;                    // points when they were chosen
    uint64_t chosen_at;                 // n_told then
    double *alone, *pairs, *factor;     // [MSC_PAIR_POINTS, MSC_PAIR_POINTS] each
    double *residuals, *weights, *sums; // [MSC_PAIR_POINTS]
    double *features;                   // [MSC_PAIR_POINTS, MSC_PAIR_ENTRIES]
    size_t n_believed;  // points that are spoken for: their rows are behind those of the points
    uint32_t *believed; // [MSC_PAIR_PENDING, n_tasks]
    // The draw:
    bool has_mean;      // it is the posterior's mean
    double *terms;      // [n_entries]: y(x) = base + sum of terms + sum of pair_terms
    double *pair_terms; // [n_pair_entries, n_pair_entries], symmetric, 0 within a task
};

enum msc_status msc_pair_model_init(struct msc_pair_model *m, struct msc_arena *arena,
                                    const struct msc_exact_bounds *bounds);
// A point that is not the base, nor one task away from it: those are in the means. Once is_stale is
// set the model must be fitted before the next draw.
void msc_pair_model_tell(struct msc_pair_model *m, const uint32_t choices[], double value);
// The same of an estimate with this standard error, as a part of its distance from the base.
void msc_pair_model_tell_estimate(struct msc_pair_model *m, const uint32_t choices[], double value,
                                  double error);
// Takes the prior from `means` [n_entries] and `is_known` [n_entries], and what was told.
void msc_pair_model_fit(struct msc_pair_model *m, double base, const double means[],
                        const bool is_known[]);
// Draws from the posterior, the wider the greater `temperature` (1: as it is); 0: its mean.
void msc_pair_model_draw(struct msc_pair_model *m, struct msc_rng *rng, double temperature);
// The posterior's standard deviation at a point, without noise; 0 where it is at most `least`, which is
// sooner said.
double msc_pair_model_spread(struct msc_pair_model *m, const uint32_t choices[], double least);
// What a point's spread follows from, as far as it is known; to begin with 0, and until the next fit.
struct msc_pair_spread {
    size_t n; // points, told or believed, that `solved` knows of
    double variance;
    double solved[MSC_PAIR_POINTS];
};
// The same as with `least` 0, by what is kept of it: cheap unless points were believed since.
double msc_pair_model_spread_kept(struct msc_pair_model *m, const uint32_t choices[],
                                  struct msc_pair_spread *kept);
// Until the next fit spreads are those of a model that was told what `choices` give, whatever that is:
// of several points to measure at once, each is to tell something else (Ginsbourger et al. 2010). Points
// that find no place are left out.
void msc_pair_model_believe(struct msc_pair_model *m, const uint32_t choices[]);
// Of the draw.
double msc_pair_model_value(const struct msc_pair_model *m, const uint32_t choices[]);
// True where pairs are as weak as can be: what choices lose adds up.
bool msc_pair_model_is_additive(const struct msc_pair_model *m);

#endif
