// A multiple-choice knapsack: one plan from what every choice costs and loses alone, the point of
// least summed loss that meets the bounds.
//
// Branch and bound over the tasks. Lower bounds are Lagrangian: every bound, weighted by a
// multiplier found by dual ascent, joins the objective, which then splits by task. Costs that are
// sums over tasks enter exactly; products of several tasks enter by their tangent at the smallest
// factors, which never overestimates them. Leaves are checked with the exact costs. When its limit
// ends it early the best plan found stands: at least as good as the greedy one that it
// starts from (from the least reduced loss, change by change, the least loss gained for the
// violation removed; then every single change that lowers the loss). Nothing allocates after init.
#ifndef MSC_AGENTS_KNAPSACK_H
#define MSC_AGENTS_KNAPSACK_H

#include "agents/exact_moves.h"

// One bound in the form: sum over tasks of weights[entry of its choice] <= capacity.
struct msc_resource {
    double *weights; // [n_entries], scaled so that capacities are comparable
    double capacity;
    double *least; // [n_tasks + 1], by depth: what the tasks not yet chosen take at least
    double multiplier;
    bool is_measured; // not covered by the exact check of leaves
};

#define MSC_KNAPSACK_RESOURCES (2 * MSC_MAX_BOUNDS)

struct msc_knapsack {
    struct msc_exact_bounds *bounds; // borrowed
    size_t n_resources;
    struct msc_resource resources[MSC_KNAPSACK_RESOURCES];
    double *weight_rows; // [MSC_KNAPSACK_RESOURCES, n_entries]
    double *least_rows;  // [MSC_KNAPSACK_RESOURCES, n_tasks + 1]
    double *losses;      // [n_entries], unusable ones replaced by a large one
    double *reduced;     // [n_entries], loss + multipliers * weights
    double *rest;        // [n_tasks + 1], by depth: the least reduced sum of tasks not yet chosen
    uint32_t *children;  // [n_entries], each task's choices by reduced loss
    uint32_t *tasks;     // [n_tasks], by depth
    uint32_t *depths;    // [n_tasks], by task
    uint32_t *next;      // [n_tasks], by depth: the child to try next
    double *spent;       // [n_tasks + 1, 1 + MSC_KNAPSACK_RESOURCES], by depth
    uint32_t *point;     // [n_tasks], being built
    struct msc_exact_moves moves;         // the plan to start from
    double taken[MSC_KNAPSACK_RESOURCES]; // by it, of measured resources
    bool has_products;                    // some bounded cost multiplies factors
    double best_loss;
    // Of branch and bound: nodes, and for each that the bounds were asked of, and each complete plan, so
    // many more.
    uint64_t work, bounds_work, plan_work;
};

// What the tasks' choices give alone. A loss that is not finite means: unusable.
struct msc_isolated {
    const double *losses; // [n_entries]
    // For each bound of the goal on a metric that needs a run: that metric, which is taken to add
    // up like the loss. Entries by bound; NULL: ignore the bound, or it is on an exact cost.
    const double *metrics[MSC_MAX_BOUNDS]; // [n_entries] or NULL
    double most_expensive[MSC_MAX_BOUNDS]; // the same of the most expensive plan
};

enum msc_status msc_knapsack_init(struct msc_knapsack *knapsack, struct msc_arena *arena,
                                  struct msc_exact_bounds *bounds);
// From then on nodes count for as many as they take the time of: branch and bound ends after some 50 ms.
// With 1,000 tasks and more they always do.
void msc_knapsack_count_time(struct msc_knapsack *knapsack);
// Writes the plan to `choices`. False when no plan within the bounds was found: `choices` then
// holds the nearest. *is_proved (may be NULL): no plan within the bounds has a smaller sum.
bool msc_knapsack_solve(struct msc_knapsack *knapsack, const struct msc_isolated *isolated,
                        uint32_t choices[], bool *is_proved);

// Between knapsack.c, knapsack_start.c and knapsack_dual.c.
static inline uint32_t msc_knapsack__n_choices(const struct msc_knapsack *ks, size_t task) {
    return ks->bounds->space->tasks[task].n_choices;
}
void msc_knapsack__set_losses(struct msc_knapsack *ks, const double losses[]);
void msc_knapsack__set_resources(struct msc_knapsack *ks, const struct msc_isolated *isolated);
void msc_knapsack__set_multipliers(struct msc_knapsack *ks);
// The task's choice whose value [n_entries] is least; the most expensive of equal ones.
uint32_t msc_knapsack__least_choice(const struct msc_knapsack *ks, const double values[],
                                    size_t task);
// How far a point is outside the bounds; 0 within. Measured bounds count by their resources.
double msc_knapsack__violation(const struct msc_knapsack *ks, const uint32_t choices[]);
void msc_knapsack__keep_if_better(struct msc_knapsack *ks, const uint32_t point[],
                                  uint32_t choices[]);
// A plan from a point within the bounds, by changes that lower the loss.
void msc_knapsack__start_at(struct msc_knapsack *ks, const uint32_t point[], uint32_t choices[]);
// A plan from where `values` [n_entries] are least. False where none within the bounds is reached.
bool msc_knapsack__start_from(struct msc_knapsack *ks, const double values[], uint32_t choices[]);

#endif
