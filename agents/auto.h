// State of the agent `auto` and the functions that its files share. agent_auto.c describes the
// agent and mixes the kinds of proposals; auto_probes.c, auto_plans.c and auto_hopes.c make one
// kind each.
#ifndef MSC_AGENTS_AUTO_H
#define MSC_AGENTS_AUTO_H

#include "agents/agent.h"
#include "agents/auto_front.h"
#include "agents/chance.h"
#include "agents/feature_prior.h"
#include "agents/knapsack.h"
#include "agents/near_model.h"
#include "agents/pair_model.h"
#include "agents/plan_search.h"
#include "agents/population.h"
#include "agents/sampler.h"
#include "agents/sensitivity.h"

// Greatest number of proposals whose outcome is awaited.
#define MSC_AUTO_AWAITED 256
// In a space with more choices than this, fewer searches are made for a plan, and the knapsack is
// solved only once, after all probes.
#define MSC_AUTO_MANY_ENTRIES 600
// Greatest number of candidate points that a hope is chosen from.
#define MSC_AUTO_HOPES 36
// Greatest number of candidates that a near point is chosen from, and of those that are counted as
// observed until the next outcome.
#define MSC_AUTO_NEAR 616
#define MSC_AUTO_NEAR_PENDING 16

// The kinds of proposals other than probes.
enum msc_auto_kind {
    MSC_AUTO_MEANS,
    MSC_AUTO_DRAWS,
    MSC_AUTO_CHILDREN,
    MSC_AUTO_KINDS, // the kinds above are proposed in proportion to their success
    MSC_AUTO_HOPE
};

// The model of a metric that needs a run: the objective, or a bounded metric. The model minimises
// sign * value.
struct msc_auto_part {
    int metric;
    int objective; // index of the objective in the goal; -1: a bounded metric
    double sign;
    double max; // bound on sign * value; +inf for an objective
    struct msc_sensitivity sensitivity;
    struct msc_feature_prior prior;
    struct msc_pair_model model;
    size_t n_linked; // points of the model when its link was chosen
};

// Near points (auto_near.c): a model without a base, and candidates.
struct msc_auto_near {
    struct msc_near_model model;
    size_t n;
    uint32_t *points; // [MSC_AUTO_NEAR, n_tasks]
    double *solved; // [MSC_AUTO_NEAR, MSC_NEAR_POINTS + MSC_AUTO_NEAR_PENDING], of each candidate:
                    // msc_near_model_predict, then one for each pending candidate
    double *means, *lefts, *chances; // [MSC_AUTO_NEAR]
    size_t n_pending;
    uint64_t made_at; // n_told when the candidates were made
    uint64_t n_chosen;
    bool is_ready; // the model was fitted
};

struct msc_auto {
    int64_t population;

    struct msc_sampler sampler;
    struct msc_population members;
    size_t n_parts; // parts[0] is for the objective if the objective needs a run
    bool has_objective_part;
    struct msc_auto_part parts[1 + MSC_MAX_BOUNDS];
    struct msc_auto_front front; // several objectives
    struct msc_plan_search search;
    struct msc_knapsack knapsack;
    struct msc_chance chance;
    struct msc_auto_near near;
    double *weights;         // [n_entries], what choices add to an exact objective; NULL: the
                             // objective is not exact
    uint32_t *assembled;     // [n_tasks], the plan of least summed isolated losses
    double *assembled_by;    // [n_entries], the losses that `assembled` sums
    uint32_t *plan;          // [n_tasks], the best plan by the model's mean
    uint32_t *found, *start; // [n_tasks], scratch of searches for a plan
    uint32_t *hopes;         // [MSC_AUTO_HOPES, n_tasks], candidates for hopes
    // [n_parts, MSC_AUTO_HOPES], cached standard deviations of these candidates
    struct msc_pair_spread *spreads;
    size_t n_hopes;
    bool *is_known; // [n_entries], scratch of a fit: the isolated loss was measured
    uint64_t n_told, n_fitted, n_probes_left, turn;
    double least;             // the first objective of the best point that meets the bounds
    uint64_t n_told_at_least; // n_told when it was found
    double width;                       // factor on the posterior's standard deviation in draws
    double hope_chance;                 // share of hopes among the proposals
    double hope_width;                  // factor on standard deviations in hopes
    double radius;                      // number of tasks that a plan may change
    double rates[MSC_AUTO_KINDS];       // recent success rates of the kinds
    uint64_t awaited[MSC_AUTO_AWAITED]; // ring of hashes of proposals
    enum msc_auto_kind kinds[MSC_AUTO_AWAITED];
    uint64_t n_awaited, n_drawn, n_hoped, hoped_at; // hoped_at: n_fitted when `hopes` was filled
    bool is_ready, has_plan, is_done;
    bool base_fails;  // the most expensive plan could not be measured
    bool is_adaptive; // width and radius adapt
    bool has_hopes;
    bool is_news;      // the models were fitted since the last plan
    bool is_assembled; // a plan was assembled in a space of many choices and not yet proposed
};

// Proposes the next choice to measure in isolation: first the cheapest choices of the tasks that
// bounded costs depend on, then the choices nearest to the best plan. False if no choice is left.
bool msc_auto_probe(struct msc_auto *a, struct msc_proposal *out);
// The number of choices, the base included, that were neither observed in isolation nor probed.
uint64_t msc_auto_count_probes(const struct msc_auto *a);
// False if the space gives the isolated losses (agents/feature_prior.h) and the base's loss is
// known.
bool msc_auto_needs_probes(const struct msc_auto *a);
// Whether the cheapest choice of a task that bounded costs depend on is still to be probed.
bool msc_auto_is_opening(const struct msc_auto *a);
bool msc_auto_looks_additive(const struct msc_auto *a);
// Searches locally from one of the usual starts. `which` selects it: 0 is the best observed point,
// 1 a random good point, 2 the assembled plan, 3 the last plan after msc_plan_search_relax, and 4
// and above a random point. True if the start exists and the search ends at a feasible point;
// a->start is then that point, and *value its value.
bool msc_auto_search_from(struct msc_auto *a, size_t which, double *value);
// Whether the point meets the exact bounds and was not proposed yet. `context` is the agent's
// state.
bool msc_auto_is_unseen(const void *context, const uint32_t choices[]);
// Proposes the best unseen plan under draws of this temperature; 0: under the mean.
bool msc_auto_plan(struct msc_auto *a, double temperature, struct msc_proposal *out);
// Proposes the most promising unseen point (agents/hope.h). The model counts it as observed until
// the next fit.
bool msc_auto_hope(struct msc_auto *a, struct msc_proposal *out);
// Chooses the link (agents/link.h) of an objective's model, if enough points are new.
void msc_auto_choose_link(struct msc_auto *a, struct msc_auto_part *part);
enum msc_status msc_auto_near_init(struct msc_auto *a, struct msc_arena *arena);
// Whether a near point is next.
bool msc_auto_wants_near(struct msc_auto *a);
// Proposes the most promising unseen point by a model without a base and by its chance of being
// measured; while too few points were measured, a random point that is likely to be measured.
bool msc_auto_near(struct msc_auto *a, struct msc_proposal *out);
// Tells a model which tasks are neighbours.
enum msc_status msc_auto_use_neighbours(struct msc_auto *a, struct msc_arena *arena,
                                        struct msc_pair_model *model);

#endif
