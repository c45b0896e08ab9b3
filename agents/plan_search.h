// Finds the best point under a model of the losses (agents/pair_model.h), within the exact bounds
// and within limits on measured metrics given by further models. It is a local search over changes
// of one task. If no such change helps, it tries changes of two tasks. Only init allocates.
#ifndef MSC_AGENTS_PLAN_SEARCH_H
#define MSC_AGENTS_PLAN_SEARCH_H

#include "agents/exact_moves.h"
#include "agents/pair_model.h"

struct msc_cancel;

// Number of changes of one task that are paired with every other change.
#define MSC_PLAN_FIRSTS 24

// Limits on a metric, under the current draw of its model.
struct msc_plan_limit {
    const struct msc_pair_model *model;
    double min, max;
};

// The bounds and limits that a point breaks, and how much one unit of the value adds to the
// violation. Only a change that brings one of these values nearer to its limit can lower it.
struct msc_plan_broken {
    size_t n_items, n_limits;
    size_t items[MSC_MAX_BOUNDS], limits[MSC_MAX_BOUNDS];
    double of_item[MSC_MAX_BOUNDS], of_limit[MSC_MAX_BOUNDS];
};

struct msc_plan_search {
    struct msc_exact_moves moves;
    const struct msc_pair_model *model; // of the minimised value; NULL: only `weights` count
    const double *weights;              // [n_entries], added to the model's terms; NULL: none
    // Stops a search early; its result must then be discarded. May be NULL.
    const struct msc_cancel *cancel;
    bool relaxes_limits; // msc_plan_search_relax counts upper limits like bounds
    size_t n_limits;
    struct msc_plan_limit limits[MSC_MAX_BOUNDS];
    // [model], at the current point (`moves`). Model 0 is the model of the minimised value.
    double values[1 + MSC_MAX_BOUNDS];
    // [n_entries], what a choice of a task adds if all other tasks keep their choices
    double *fields[1 + MSC_MAX_BOUNDS];
    double *shifted;       // [n_entries], fields[0] after the first of two changes
    double *deltas;        // [n_entries, MSC_MAX_BOUNDS], change of each exact cost
    size_t max_changed;    // tasks that may differ from the start of a search
    const uint32_t *start; // [n_tasks], the start; borrowed during a search
    size_t n_changed;
    // Steps towards the bounds examine only blocks of tasks that may have the least price.
    struct msc_plan_broken broken; // at the last such step
    double *block_prices;  // [n_blocks], a lower limit of the block's prices; -inf: not examined
    double price;          // value per unit of load (msc_plan_search_relax)
    double *loads;         // [n_entries], load (see load_of) of a choice, relative to the point's
                           // own choice
    uint32_t *first_tasks; // [MSC_PLAN_FIRSTS], changes of least value plus price times load
    uint32_t *first_choices;
    double *first_values;
};

enum msc_status msc_plan_search_init(struct msc_plan_search *s, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds, size_t n_limits);
// Lagrangian relaxation: changes `choices` to the point of least value plus price times load, with
// the least price at which the bounds hold. Values and costs are treated as additive around
// `choices`. The result is a good start for a search. The price is kept for later searches.
void msc_plan_search_relax(struct msc_plan_search *s, uint32_t choices[]);
// Improves `choices` by at most `max_steps` changes of one task or two. A change lowers the
// violation of the bounds or, within them, the value. The search ends when no tried change does so;
// not all changes of two tasks are tried. At most max_changed tasks may differ from the start,
// unless the bounds require more. Returns the value; `violation` may be NULL.
double msc_plan_search_run(struct msc_plan_search *s, uint32_t choices[], size_t max_steps,
                           double *violation);
// Changes one task of `choices` so that the value is least while all bounds and `is_wanted` hold.
// False if no change does.
bool msc_plan_search_neighbour(struct msc_plan_search *s, uint32_t choices[],
                               bool (*is_wanted)(const void *context, const uint32_t choices[]),
                               const void *context);

#endif
