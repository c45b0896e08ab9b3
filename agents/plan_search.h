// The point that a model of the losses (agents/pair_model.h) expects most of, within the exact bounds
// and such as further models set on measured metrics: by local search over changes of one task, and
// of two where one does not help. Nothing allocates after init.
#ifndef MSC_AGENTS_PLAN_SEARCH_H
#define MSC_AGENTS_PLAN_SEARCH_H

#include "agents/exact_moves.h"
#include "agents/pair_model.h"

struct msc_cancel;

// Changes of one task that are tried together with every other.
#define MSC_PLAN_FIRSTS 24

// A metric whose draw is to stay within limits.
struct msc_plan_limit {
    const struct msc_pair_model *model;
    double min, max;
};

struct msc_plan_search {
    struct msc_exact_moves moves;
    const struct msc_pair_model *model; // of what is minimised; NULL: nothing is
    const double *weights;              // [n_entries], added to the model's terms; NULL: none
    // Cuts a search short, whose plan then counts for nothing; NULL: nobody does.
    const struct msc_cancel *cancel;
    size_t n_limits;
    struct msc_plan_limit limits[MSC_MAX_BOUNDS];
    // Of the point that `moves` holds, by model (the first: of what is minimised):
    double values[1 + MSC_MAX_BOUNDS];
    double *fields[1 + MSC_MAX_BOUNDS]; // [n_entries], what a choice adds there, given the others
    // Of each change: the minimised value's, and that of the costs and limits.
    double *deltas;        // [n_entries, MSC_MAX_BOUNDS], of exact costs
    size_t max_changed;    // tasks that may differ from where a search begins
    const uint32_t *start; // [n_tasks], there; borrowed during a search
    size_t n_changed;
    // Steps towards the bounds look only at blocks of tasks that may have the least price.
    double *first_deltas; // [n_entries], `deltas` of the first bounded cost
    double
        *block_prices; // [n_blocks], the least of each when it was last looked at; NaN: look again
    double most_delta; // by which any one task can change the first bounded cost
    double price;      // of what a choice takes of the bounds (msc_plan_search_relax)
    double *loads;     // [n_entries], that, more than the point's own choice
    uint32_t *first_tasks; // [MSC_PLAN_FIRSTS], of least value, with what they take at its price
    uint32_t *first_choices;
    double *first_values;
};

enum msc_status msc_plan_search_init(struct msc_plan_search *s, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds, size_t n_limits);
// Changes `choices` to the point of least value when what it takes of the bounds has the least price
// at which they hold, as far as that adds up around `choices`: a Lagrangian relaxation, which is where
// a search from nowhere begins. The price serves later searches, too.
void msc_plan_search_relax(struct msc_plan_search *s, uint32_t choices[]);
// Changes `choices` until no change of one task or, as far as tried, of two lowers the violation or,
// with no more of it, the value; at most `max_steps` of them, and as long as at most max_changed tasks
// differ from what they were, but for the sake of bounds. Returns the value; *violation may be
// NULL.
double msc_plan_search_run(struct msc_plan_search *s, uint32_t choices[], size_t max_steps,
                           double *violation);
// Changes one task of `choices` such that no bound is broken, `is_wanted` holds, and the value is the
// least there is. False when there is none.
bool msc_plan_search_neighbour(struct msc_plan_search *s, uint32_t choices[],
                               bool (*is_wanted)(const void *context, const uint32_t choices[]),
                               const void *context);

#endif
