// A Bayesian linear model of a metric over points of the space, with a term for each choice and one
// for each pair of choices of two tasks, anchored at every task's most expensive choice:
//
//     y(x) = base + sum of (mean[x_t] + a[x_t]) + sum over pairs of b[x_i, x_j] + noise
//
//     a[e]      ~ N(0, (unknown * scale[e])^2) if the choice's isolated loss is unknown; else 0
//     b[e, f]   ~ N(0, pairs^2 * scale[e] * scale[f]), correlated among choices of one task
//     noise     ~ N(0, (noise * (loss - base))^2): points far from the best have less weight;
//                 estimated losses have an additional error
//
// `mean` is the isolated loss of each choice (agents/sensitivity.h) and `scale` its magnitude. The
// three strengths (unknown, pairs, noise) maximise the marginal likelihood on a grid. So does the
// correlation, 0.5 or 0, if it is learnt. Posteriors are exact (Gaussian process regression:
// Rasmussen and Williams, 2006, algorithm 2.1). A draw from the posterior is a draw from the prior,
// corrected by the observed points (Matheron's rule).
//
// With a link (agents/link.h), y is the loss under the link, and `mean` must be too. Errors are
// errors of the loss, so the link multiplies them by its slope between the point's loss and the
// loss that the isolated losses alone predict. Where both are saturated, the slope is great and the
// point tells little; where the prediction is not, a saturated loss contradicts it.
//
// Pairs are either those of any two tasks, or only those of neighbouring tasks if edges are given
// (msc_pair_model_use_edges). The likelier of both is used.
//
// Use: tell points, fit, draw; then read values and standard deviations of any point.
//
// At most MSC_PAIR_POINTS points are kept, fewer if there are many tasks. The kept points are the
// latest ones and those of least value. Pair terms of any two tasks exist for the tasks of greatest
// scale, up to MSC_PAIR_ENTRIES choices. If the strength of pairs is the least of the grid, draws
// leave them out. Only init and msc_pair_model_use_edges allocate, at most 16 MB.
#ifndef MSC_AGENTS_PAIR_MODEL_H
#define MSC_AGENTS_PAIR_MODEL_H

#include "agents/exact_bounds.h"
#include "agents/link.h"

#define MSC_PAIR_POINTS 384
#define MSC_PAIR_PENDING 32
#define MSC_PAIR_ENTRIES 400
#define MSC_PAIR_STRENGTHS 3
// The number of points whose covariances are summed at once, in independent sums (for
// vectorisation). MSC_PAIR_POINTS and MSC_PAIR_PENDING are multiples of it.
#define MSC_PAIR_LANES 8

// Two tasks, a < b, that are neighbours, and where their terms begin: term [c_a, c_b] is
// pair_terms[offset + c_a * n_choices(b) + c_b].
struct msc_pair_edge {
    uint32_t a, b;
    size_t offset;
};

struct msc_pair_model {
    const struct msc_exact_bounds *bounds; // borrowed
    // Observations:
    size_t max_points; // leaves room for pending proposals (msc_pair_model_believe)
    size_t n_points;   // points that the posterior uses
    size_t n_pending;  // points observed since the fit, stored after the others
    bool is_stale;     // points were replaced since the fit
    uint64_t n_told;
    uint32_t *points; // [MSC_PAIR_POINTS + MSC_PAIR_PENDING, n_tasks]
    double *values;   // [MSC_PAIR_POINTS + MSC_PAIR_PENDING]
    double *errors;   // [as values], relative standard error; 0: measured
    uint64_t *ages;   // [as values], n_told when the point was observed
    // The prior:
    double base;
    double *means;  // [n_entries]
    double *scales; // [n_entries], 0 at the base
    double *roots;  // [n_entries], square roots of scales
    bool *is_known; // [n_entries]
    size_t n_pair_entries;
    int32_t *pair_places;   // [n_entries], index in pair_entries; -1: no pair terms
    uint32_t *pair_entries; // [MSC_PAIR_ENTRIES], the entries that have pair terms
    uint32_t *pair_tasks;   // [MSC_PAIR_ENTRIES], their tasks
    uint32_t *tasks;        // [n_tasks], by decreasing scale
    size_t n_paired;
    uint32_t *paired; // [n_tasks], the tasks with pair terms, in order
    // [n_tasks] each, for one point and each paired task: `pair_places` of its choice, the choice,
    // and the square root of its scale
    uint32_t *places, *own_choices;
    double *own_roots;
    double *unknown;     // [n_tasks], for one point: variance of each choice's unknown loss
    double *task_scales; // [n_tasks]
    double correlation;
    size_t n_covered;        // leading points whose covariances are those of this prior
    bool learns_correlation; // set by the owner; false: the correlation is 0.5
    struct msc_link link;    // set by the owner before a fit
    size_t n_edges;
    struct msc_pair_edge *edges; // [n_edges]
    size_t *first_uses;          // [n_tasks + 1], ranges of `uses`
    uint32_t *uses;              // [2 * n_edges], the edges of each task
    bool is_near;                // only edges have pair terms
    bool has_pairs;              // false: pair terms are left out until the next fit
    // The posterior:
    int strengths[MSC_PAIR_STRENGTHS];  // positions on the grids of unknown, pairs and noise
    size_t n_chosen;                    // n_points when the strengths were chosen
    uint64_t chosen_at;                 // n_told when the strengths were chosen
    double *alone, *pairs, *factor;     // [MSC_PAIR_POINTS, MSC_PAIR_POINTS] each
    double *residuals, *weights, *sums; // [MSC_PAIR_POINTS]
    double *units;                      // [MSC_PAIR_POINTS], what standard errors are relative to
    // [n_tasks, MSC_PAIR_POINTS] each, for each paired task and point: its choice, and the square
    // root of the scale of the choice
    uint32_t *point_choices;
    double *point_roots;
    double *lanes;      // [n_tasks, MSC_PAIR_LANES], scratch
    size_t n_believed;  // pending proposals: their rows follow those of the points
    uint32_t *believed; // [MSC_PAIR_PENDING, n_tasks]
    // The draw:
    bool has_mean; // the draw is the posterior's mean
    double *terms; // [n_entries]: y(x) = base + sum of terms + sum of pair_terms
    // Of any two tasks: [n_pair_entries, n_pair_entries], symmetric, 0 within a task. Of
    // neighbours: the terms of each edge (msc_pair_edge).
    double *pair_terms;
    double *pair_weights; // [as pair_terms], scratch of a draw
    double *columns;      // [MSC_PAIR_ENTRIES], scratch of a draw
};

// `n_models` is the number of models that are fitted together: each keeps fewer points if there are
// several, so that a fit takes as long as one of a single model.
enum msc_status msc_pair_model_init(struct msc_pair_model *m, struct msc_arena *arena,
                                    const struct msc_exact_bounds *bounds, size_t n_models);
// Makes the model consider pairs of neighbours only: pairs [n] of different tasks, each at most
// once. Pairs are ignored once their terms exceed MSC_PAIR_ENTRIES^2.
enum msc_status msc_pair_model_use_edges(struct msc_pair_model *m, struct msc_arena *arena,
                                         const uint32_t pairs[][2], size_t n);
// Observes a point that differs from the base in at least two tasks; the losses of all other points
// are already in `means`. If is_stale is set, the model must be fitted before the next draw.
void msc_pair_model_tell(struct msc_pair_model *m, const uint32_t choices[], double value);
// Observes an estimate. `error` is the standard error of `value`, relative to the distance of
// `value` from the base.
void msc_pair_model_tell_estimate(struct msc_pair_model *m, const uint32_t choices[], double value,
                                  double error);
// Fits the model to the prior given by `means` [n_entries] and `is_known` [n_entries], and to the
// observed points.
void msc_pair_model_fit(struct msc_pair_model *m, double base, const double means[],
                        const bool is_known[]);
// The logarithm of the marginal likelihood of the observed points, as losses without the link, up
// to a constant; its strengths maximise it by coordinate ascent. Fit the model before its next use.
double msc_pair_model_evidence(struct msc_pair_model *m, double base, const double means[],
                               const bool is_known[]);
// A loss under the link, as values of points are.
double msc_pair_model_linked(const struct msc_pair_model *m, double loss);
// The loss that has a value under the link.
double msc_pair_model_unlinked(const struct msc_pair_model *m, double value);
// Draws from the posterior with its standard deviation multiplied by `temperature`; 0 gives its
// mean.
void msc_pair_model_draw(struct msc_pair_model *m, struct msc_rng *rng, double temperature);
// The posterior's standard deviation at a point, without noise; 0 if it is at most `least`; the
// computation stops as soon as this is certain.
double msc_pair_model_spread(struct msc_pair_model *m, const uint32_t choices[], double least);
// Cached partial result of a point's standard deviation. Set `n` to 0 at first and after each fit.
struct msc_pair_spread {
    size_t n; // points, observed or pending, that `solved` covers
    double variance;
    double solved[MSC_PAIR_POINTS];
};
// Like msc_pair_model_spread with `least` 0, but cached: only pending proposals added since the
// last call cost time.
double msc_pair_model_spread_kept(struct msc_pair_model *m, const uint32_t choices[],
                                  struct msc_pair_spread *kept);
// Makes standard deviations count a pending proposal as observed, with unknown value, until the
// next fit. Points proposed for evaluation at the same time thus provide different information
// (Ginsbourger et al. 2010). Does nothing if there is no room.
void msc_pair_model_believe(struct msc_pair_model *m, const uint32_t choices[]);
// The value of a point under the current draw.
double msc_pair_model_value(const struct msc_pair_model *m, const uint32_t choices[]);
// Adds to `field` [n_entries] the pair terms of the task's choice with every other choice, times
// `factor`. False if the task has no pair terms.
bool msc_pair_model_add_terms(const struct msc_pair_model *m, size_t task, uint32_t choice,
                              double factor, double field[]);
// True if the strength of pairs is the least of the grid: losses are additive.
bool msc_pair_model_is_additive(const struct msc_pair_model *m);

#endif
