// A multiple-choice knapsack: finds the point of least summed loss that meets the bounds, given the
// cost and the isolated loss of every choice.
//
// It is solved by branch and bound over the tasks. Lower bounds are Lagrangian: each bound is
// weighted by a multiplier, found by dual ascent, and added to the objective, which then splits by
// task. Costs that are sums over tasks are included exactly. A product of several tasks is replaced
// by its tangent at the smallest factors; the tangent never exceeds the product. Leaves are checked
// with the exact costs.
//
// The search starts from a greedy plan. The greedy plan begins with the choices of least reduced
// loss. The change of least (loss gained) / (violation removed) is made until the bounds hold; then
// every single change that lowers the loss is made. If the limit on work ends the search, the
// result is the best plan so far, which is at least as good as the greedy one. Only init allocates.
#ifndef MSC_AGENTS_KNAPSACK_H
#define MSC_AGENTS_KNAPSACK_H

#include "agents/exact_moves.h"

// One bound in the form: sum over tasks of weights[entry of the task's choice] <= capacity.
struct msc_resource {
    double *weights; // [n_entries], scaled so that capacities are comparable
    double capacity;
    double *least; // [n_tasks + 1], by depth: least use by the tasks not yet chosen
    double multiplier;
    bool is_measured; // the bound is on a measured metric, which the exact check of leaves does not
                      // cover
};

#define MSC_KNAPSACK_RESOURCES (2 * MSC_MAX_BOUNDS)

struct msc_knapsack {
    struct msc_exact_bounds *bounds; // borrowed
    size_t n_resources;
    struct msc_resource resources[MSC_KNAPSACK_RESOURCES];
    double *weight_rows; // [MSC_KNAPSACK_RESOURCES, n_entries]
    double *least_rows;  // [MSC_KNAPSACK_RESOURCES, n_tasks + 1]
    double *losses;      // [n_entries], with a large loss for unusable choices
    double *reduced;     // [n_entries], loss + multipliers * weights
    double *rest;        // [n_tasks + 1], by depth: the least reduced sum of tasks not yet chosen
    uint32_t *children;  // [n_entries], each task's choices by reduced loss
    uint32_t *tasks;     // [n_tasks], by depth
    uint32_t *depths;    // [n_tasks], by task
    uint32_t *next;      // [n_tasks], by depth: the child to try next
    // [n_tasks + 1, 1 + MSC_KNAPSACK_RESOURCES], by depth: reduced loss, use of each resource
    double *spent;
    uint32_t *point;                      // [n_tasks], the partial plan of the current node
    struct msc_exact_moves moves;         // the greedy plan to start from
    double taken[MSC_KNAPSACK_RESOURCES]; // use of measured resources by the greedy plan
    bool has_products;                    // some bounded cost multiplies factors
    double best_loss;
    // Work so far, in nodes. A node whose bounds are checked adds `bounds_work`; a complete plan
    // adds `plan_work`.
    uint64_t work, bounds_work, plan_work;
};

// Isolated results of the choices. A choice whose loss is not finite is unusable.
struct msc_isolated {
    const double *losses; // [n_entries]
    // For each bound of the goal: the values of a metric that needs a run, assumed to be additive
    // like the loss. NULL: the bound is ignored, or is on an exact cost.
    const double *metrics[MSC_MAX_BOUNDS]; // [n_entries] or NULL
    double most_expensive[MSC_MAX_BOUNDS]; // value of the metric for the most expensive plan
};

enum msc_status msc_knapsack_init(struct msc_knapsack *knapsack, struct msc_arena *arena,
                                  struct msc_exact_bounds *bounds);
// From now on, work is counted by the time it takes, so that branch and bound ends after about 50
// ms. With 1,000 or more tasks, work is always counted by time.
void msc_knapsack_count_time(struct msc_knapsack *knapsack);
// Writes the plan to `choices`. False if no plan within the bounds was found; `choices` is then the
// bounds' anchor or, without an anchor, a greedy plan outside the bounds. *is_proved (may be NULL)
// is set if the plan is proved optimal.
bool msc_knapsack_solve(struct msc_knapsack *knapsack, const struct msc_isolated *isolated,
                        uint32_t choices[], bool *is_proved);

// Shared by knapsack.c, knapsack_start.c and knapsack_dual.c.
static inline uint32_t msc_knapsack__n_choices(const struct msc_knapsack *ks, size_t task) {
    return ks->bounds->space->tasks[task].n_choices;
}
void msc_knapsack__set_losses(struct msc_knapsack *ks, const double losses[]);
void msc_knapsack__set_resources(struct msc_knapsack *ks, const struct msc_isolated *isolated);
void msc_knapsack__set_multipliers(struct msc_knapsack *ks);
// The task's choice with the least of `values` [n_entries]; the most expensive among equals.
uint32_t msc_knapsack__least_choice(const struct msc_knapsack *ks, const double values[],
                                    size_t task);
// The violation of the bounds by a point; 0 within them. The violation of a measured metric is
// computed from its resource.
double msc_knapsack__violation(const struct msc_knapsack *ks, const uint32_t choices[]);
void msc_knapsack__keep_if_better(struct msc_knapsack *ks, const uint32_t point[],
                                  uint32_t choices[]);
// Improves a point within the bounds by changes that lower the loss, and offers it as the best
// plan.
void msc_knapsack__start_at(struct msc_knapsack *ks, const uint32_t point[], uint32_t choices[]);
// Like msc_knapsack__start_at, but starts from the choices of least `values` [n_entries] and first
// moves them within the bounds. False if that fails.
bool msc_knapsack__start_from(struct msc_knapsack *ks, const double values[], uint32_t choices[]);

#endif
