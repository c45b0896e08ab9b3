// Several objectives in the agent `auto`: the front of the points observed so far, and proposals
// that extend it.
//
// A box is a limit on each objective except the minimised one, which is a measured objective
// (epsilon constraint: Haimes et al. 1971). If limits are uniform over the range of the front, the
// mean over boxes of the improvement of the minimised objective is the gain in hypervolume, up to a
// factor. The agent draws many boxes, searches for points within some of them, and proposes the
// point of greatest gain: under a draw of the models (a plan), or in expectation (a hope). Other
// hopes minimise a lower confidence bound within one box. In half of these boxes the limits are the
// values of a random point of the front, so that all parts of the front get proposals even if
// values differ by orders of magnitude.
//
// Limits on exact objectives are bounds of the search for plans (agents/plan_search.h). Limits on
// measured objectives, and bounds on measured metrics, apply to the models of these metrics. A
// proposed point counts as a point of the front with its expected values until it is observed.
#ifndef MSC_AGENTS_AUTO_FRONT_H
#define MSC_AGENTS_AUTO_FRONT_H

#include "agents/hope.h"
#include "agents/plan_search.h"

struct msc_agent;
struct msc_auto;

// Greatest number of points of the front that are kept.
#define MSC_FRONT_POINTS 512
// Greatest number of proposals that count as points of the front.
#define MSC_FRONT_PENDING 32
// Number of boxes over which gains are averaged.
#define MSC_FRONT_BOXES 64

struct msc_front_objective {
    const struct msc_cost *cost; // NULL: the objective is measured
    double sign;                 // the objective is sign * metric
    size_t item;                 // exact: index in the items of `bounds`
    double least, most;          // exact: range within the bounds on its metric; else most is +inf
    size_t part;                 // measured: index in the agent's parts
};

// Limits on the objectives. The limit of the minimised objective is its value at the best point of
// the front within the other limits or, if there is none, the greatest value worth reaching.
struct msc_front_box {
    double limits[MSC_MAX_OBJECTIVES];
    size_t best; // index of that best point; SIZE_MAX: none
};

struct msc_auto_front {
    bool is_used; // several objectives, at least one of them measured
    size_t n_objectives;
    struct msc_front_objective objectives[MSC_MAX_OBJECTIVES];
    struct msc_goal goal;           // the search's bounds, and a limit for each exact objective
    struct msc_exact_bounds bounds; // of `goal`; set_box changes the limits of exact objectives
    // The front: feasible points that no other observed point dominates. Pending proposals follow.
    size_t n_points, n_pending;
    uint32_t *points; // [MSC_FRONT_POINTS + MSC_FRONT_PENDING, n_tasks]
    double *values;   // [MSC_FRONT_POINTS + MSC_FRONT_PENDING, MSC_MAX_OBJECTIVES]
    size_t minimised; // the objective that boxes do not limit
    struct msc_front_box boxes[MSC_FRONT_BOXES];
    struct msc_front_box box; // that of the current search
};

// Initialises the front, if the goal has several objectives, a measured one among them, and few
// enough bounds. Otherwise is_used remains false. Uses the agent's sampler, not its parts.
enum msc_status msc_auto_front_init(struct msc_auto *a, struct msc_agent *agent);
// Whether no point of the front is at least as good in all `values` [n_objectives].
bool msc_auto_front_improves(const struct msc_auto_front *f, const double values[]);
// Observes a trial: a feasible point joins the front unless a point of the front is at least as
// good, and points that it dominates leave. `values` NULL: not feasible.
void msc_auto_front_tell(struct msc_auto_front *f, const uint32_t choices[], const double values[]);
// Counts a proposal as a point of the front, with expected `values`, until it is observed.
void msc_auto_front_await(struct msc_auto_front *f, const uint32_t choices[],
                          const double values[]);
// Draws the minimised objective and all boxes. False if the front is empty.
bool msc_auto_front_draw(struct msc_auto_front *f, struct msc_rng *rng);
// Draws a box whose limits are the values of a random point of the front.
struct msc_front_box msc_auto_front_box_at_point(const struct msc_auto_front *f,
                                                 struct msc_rng *rng);
// Whether `values` are within the limits of a box.
bool msc_auto_front_holds(const struct msc_auto_front *f, const struct msc_front_box *box,
                          const double values[]);
// The mean over the boxes of the improvement by a point of these values.
double msc_auto_front_gain(const struct msc_auto_front *f, const double values[]);
// The mean over the boxes of the expected improvement by a point whose objectives are normal with
// these means and standard deviations (0: exact). `most` (may be NULL) is the index of the box with
// the greatest.
double msc_auto_front_expected_gain(const struct msc_auto_front *f, const double means[],
                                    const double spreads[], size_t *most);
// Like msc_auto_plan and msc_auto_hope, with several objectives.
bool msc_auto_front_plan(struct msc_auto *a, double temperature, struct msc_proposal *out);
bool msc_auto_front_hope(struct msc_auto *a, struct msc_proposal *out);

#endif
