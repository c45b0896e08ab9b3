// What the parts of agent_auto.c share.
#ifndef MSC_AGENTS_AUTO_H
#define MSC_AGENTS_AUTO_H

#include "agents/agent.h"
#include "agents/knapsack.h"
#include "agents/pair_model.h"
#include "agents/plan_search.h"
#include "agents/population.h"
#include "agents/sampler.h"
#include "agents/sensitivity.h"

// Plans proposed whose outcome is awaited.
#define MSC_AUTO_AWAITED 256
// Spaces of more choices have fewer searches for a plan, and their knapsack solved only once all that
// choices lose alone is known.
#define MSC_AUTO_MANY_ENTRIES 600
// Points, at most, that a hope is the best of.
#define MSC_AUTO_HOPES 36

// What is proposed once probes are no longer what is worth most.
enum msc_auto_kind {
    MSC_AUTO_MEANS,
    MSC_AUTO_DRAWS,
    MSC_AUTO_CHILDREN,
    MSC_AUTO_KINDS, // that are tried as often as they turn out well
    MSC_AUTO_HOPE
};

// A metric that needs a run: of the objective, or of a bound. Smaller is better, to the model.
struct msc_auto_part {
    int metric;
    double sign;
    double max; // +inf for an objective
    struct msc_sensitivity sensitivity;
    struct msc_pair_model model;
};

struct msc_auto {
    int64_t population;

    struct msc_sampler sampler;
    struct msc_population members;
    size_t n_parts; // the first is the objective's, if that needs a run
    bool has_objective_part;
    struct msc_auto_part parts[1 + MSC_MAX_BOUNDS];
    struct msc_plan_search search;
    struct msc_knapsack knapsack;
    double *weights;                 // [n_entries], of an exact objective; else NULL
    uint32_t *assembled;             // [n_tasks], the plan of least summed losses
    double *assembled_by;            // [n_entries], those losses
    uint32_t *plan;                  // [n_tasks], the best by the model's mean
    uint32_t *found, *start;         // [n_tasks]
    uint32_t *hopes;                 // [MSC_AUTO_HOPES, n_tasks], as of when n_fitted was hoped_at
    struct msc_pair_spread *spreads; // [MSC_AUTO_HOPES], theirs
    size_t n_hopes;
    bool *is_known; // [n_entries]
    uint64_t n_told, n_fitted, n_probes_left, turn;
    double width;                 // of draws: 1 is the posterior's
    double hope_chance;           // how often a hope is tried
    double hope_width;            // of the spreads that hopes are made of: 1 is the posterior's
    double radius;                // tasks that a plan may change of a good point
    double rates[MSC_AUTO_KINDS]; // how many turn out well
    uint64_t awaited[MSC_AUTO_AWAITED]; // hashes of what was proposed, over and over
    enum msc_auto_kind kinds[MSC_AUTO_AWAITED];
    uint64_t n_awaited, n_drawn, n_hoped, hoped_at;
    bool is_ready, has_plan, is_done;
    bool is_adaptive; // of width and radius
    bool has_hopes;
    bool is_news;      // the models were fitted since a plan was proposed
    bool is_assembled; // the plan of a space of many choices, since a plan was proposed
};

// The next choice to measure alone: first the cheapest one of every task that bounded costs depend on,
// then those next to the plan that looks best. False when there is none left.
bool msc_auto_probe(struct msc_auto *a, struct msc_proposal *out);
// How many choices were not told alone, nor asked for, the base among them.
uint64_t msc_auto_count_probes(const struct msc_auto *a);
// Is the cheapest choice of such a task still to be probed?
bool msc_auto_is_opening(const struct msc_auto *a);
bool msc_auto_looks_additive(const struct msc_auto *a);
// Searches from a place of the usual ones: the best point told, another good one, the assembled plan, what
// the last plan is relaxed to, and any number of random points. False where there is no such place, or
// nothing feasible; else what was found is a->start, of this value.
bool msc_auto_search_from(struct msc_auto *a, size_t which, double *value);
// Within the exact bounds and not proposed yet? `context` is the agent.
bool msc_auto_is_unseen(const void *context, const uint32_t choices[]);
// The best unseen plan by draws at this temperature; 0: by the mean.
bool msc_auto_plan(struct msc_auto *a, double temperature, struct msc_proposal *out);
// The unseen point that may be best (agents/hope.h), which counts as told until the next fit.
bool msc_auto_hope(struct msc_auto *a, struct msc_proposal *out);

#endif
