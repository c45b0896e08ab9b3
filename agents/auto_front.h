// Several objectives in the agent `auto`: the front of the points observed so far, and proposals
// that would extend it.
//
// A proposal belongs to a box: a random limit on each objective except one measured objective, the
// minimised one (epsilon constraint: Haimes et al. 1971). Limits are uniform over the range of the
// front, so the mean over boxes of the improvement of the minimised objective is the gain in
// hypervolume. Half of the time, limits are the values of a random point of the front instead; then
// objectives of very different magnitudes get equally many proposals in all parts of the front.
// Within its box, a proposal is a plan (agents/auto_plans.c) or a hope (agents/hope.h): limits on
// exact objectives are exact bounds of the search, and limits on measured ones apply to their
// models.
#ifndef MSC_AGENTS_AUTO_FRONT_H
#define MSC_AGENTS_AUTO_FRONT_H

#include "agents/hope.h"
#include "agents/plan_search.h"

struct msc_agent;
struct msc_auto;

// Greatest number of points of the front that are kept.
#define MSC_FRONT_POINTS 512

struct msc_front_objective {
    const struct msc_cost *cost; // NULL: the objective is measured
    double sign;                 // the objective is sign * metric
    size_t item;                 // exact: index in the items of `bounds`
    size_t part;                 // measured: index in the agent's parts
};

// A limit for each objective. That of the minimised objective is its value at the best point of the
// front within the other limits or, if there is none, the greatest value worth reaching.
struct msc_front_box {
    double limits[MSC_MAX_OBJECTIVES];
    size_t minimised;
    size_t best; // index of that best point; SIZE_MAX: none
};

struct msc_auto_front {
    bool is_used; // several objectives, at least one of them measured
    size_t n_objectives;
    struct msc_front_objective objectives[MSC_MAX_OBJECTIVES];
    struct msc_goal goal;           // the search's bounds, and a limit for each exact objective
    struct msc_exact_bounds bounds; // of `goal`; set_box changes the limits of exact objectives
    // The front: feasible points that no other observed point dominates.
    size_t n_points;
    uint32_t *points; // [MSC_FRONT_POINTS, n_tasks]
    double *values;   // [MSC_FRONT_POINTS, MSC_MAX_OBJECTIVES]
    struct msc_front_box box;
};

// Initialises the front, without the agent's parts, if the goal has several objectives and few
// enough bounds. Else is_used remains false. Uses the agent's sampler.
enum msc_status msc_auto_front_init(struct msc_auto *a, struct msc_agent *agent);
// To be called after the parts were added: connects the search for plans with their models.
void msc_auto_front_connect(struct msc_auto *a);
// Whether no point of the front is at least as good in all `values` [n_objectives].
bool msc_auto_front_improves(const struct msc_auto_front *f, const double values[]);
// Adds a feasible point unless a point of the front is at least as good. Points that it dominates
// are removed.
void msc_auto_front_add(struct msc_auto_front *f, const uint32_t choices[], const double values[]);
// Like msc_auto_plan and msc_auto_hope, for a random box.
bool msc_auto_front_plan(struct msc_auto *a, double temperature, struct msc_proposal *out);
bool msc_auto_front_hope(struct msc_auto *a, struct msc_proposal *out);

#endif
