#include "agents/exact_bounds.h"

#include <math.h>
#include <string.h>

// Greatest number of partial points that the search for an anchor visits.
#define ANCHOR_NODES 200000

static size_t count_cost_factors(const struct msc_cost *cost) {
    size_t n = 0;
    for (size_t i = 0; i < cost->n_terms; i++) {
        n += cost->terms[i].n_factors;
    }
    return n;
}

static enum msc_status add_exact_bound(struct msc_exact_bounds *bounds, struct msc_arena *arena,
                                       const struct msc_cost *cost, const struct msc_bound *of) {
    struct msc_exact_bound *bound = &bounds->items[bounds->n_items++];
    size_t n_factors = count_cost_factors(cost);
    bound->cost = cost;
    bound->min = of->min;
    bound->max = of->max;
    bound->factor_low = msc_arena_array(arena, n_factors + 1, sizeof(double));
    bound->factor_high = msc_arena_array(arena, n_factors + 1, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(bound->factor_low && bound->factor_high));
    size_t f = 0;
    for (size_t i = 0; i < cost->n_terms; i++) {
        for (uint32_t j = 0; j < cost->terms[i].n_factors; j++) {
            const struct msc_cost_factor *factor = &cost->terms[i].factors[j];
            double low = factor->by_choice[0];
            double high = low;
            for (uint32_t c = 1; c < bounds->space->tasks[factor->task].n_choices; c++) {
                low = fmin(low, factor->by_choice[c]);
                high = fmax(high, factor->by_choice[c]);
            }
            bound->factor_low[f] = low;
            bound->factor_high[f++] = high;
        }
    }
    return MSC_OK;
}

static enum msc_status init_tables(struct msc_exact_bounds *bounds, struct msc_arena *arena) {
    const struct msc_space *space = bounds->space;
    bounds->offsets = msc_arena_array(arena, space->n_tasks, sizeof *bounds->offsets);
    bounds->most_expensive = msc_arena_array(arena, space->n_tasks, sizeof *bounds->most_expensive);
    MSC_TRY(MSC_ALLOCATED(bounds->offsets && bounds->most_expensive));
    for (size_t t = 0; t < space->n_tasks; t++) {
        bounds->offsets[t] = bounds->n_entries;
        bounds->n_entries += space->tasks[t].n_choices;
        bounds->most_expensive[t] = space->tasks[t].most_expensive_first[0];
    }
    bounds->positions = msc_arena_array(arena, bounds->n_entries, sizeof *bounds->positions);
    MSC_TRY(MSC_ALLOCATED(bounds->positions));
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t i = 0; i < space->tasks[t].n_choices; i++) {
            uint32_t choice = space->tasks[t].most_expensive_first[i];
            bounds->positions[msc_exact_bounds_entry(bounds, t, choice)] = i;
        }
    }
    return MSC_OK;
}

static enum msc_status find_anchor(struct msc_exact_bounds *bounds, struct msc_arena *arena) {
    struct msc_walk walk;
    MSC_TRY(msc_walk_init(&walk, arena, bounds, true));
    uint32_t *anchor = msc_arena_array(arena, bounds->space->n_tasks, sizeof *anchor);
    MSC_TRY(MSC_ALLOCATED(anchor));
    if (msc_walk_next(&walk, anchor, ANCHOR_NODES)) {
        bounds->anchor = anchor;
    }
    return MSC_OK;
}

enum msc_status msc_exact_bounds_init(struct msc_exact_bounds *bounds, struct msc_arena *arena,
                                      const struct msc_space *space, const struct msc_goal *goal) {
    memset(bounds, 0, sizeof *bounds);
    bounds->space = space;
    bounds->goal = goal;
    MSC_TRY(init_tables(bounds, arena));
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const char *metric = space->metrics[goal->bounds[i].metric].name;
        const struct msc_cost *cost = msc_space_find_cost(space, metric);
        if (cost) {
            MSC_TRY(add_exact_bound(bounds, arena, cost, &goal->bounds[i]));
        }
    }
    return find_anchor(bounds, arena);
}

double msc_exact_bounds_violation(const struct msc_exact_bounds *bounds, const uint32_t choices[]) {
    return bounds->n_items > 0 ? msc_goal_exact_violation(bounds->goal, bounds->space, choices)
                               : 0.0;
}

bool msc_exact_bounds_hold(const struct msc_exact_bounds *bounds, const uint32_t choices[]) {
    for (size_t i = 0; i < bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &bounds->items[i];
        double value = msc_cost_value(bound->cost, choices);
        if (value > bound->max || value < bound->min) {
            return false;
        }
    }
    return true;
}

static void exact_bound_range(const struct msc_exact_bound *bound, const uint32_t choices[],
                              const uint32_t ranks[], size_t n_fixed, double *low, double *high) {
    *low = bound->cost->constant;
    *high = bound->cost->constant;
    size_t f = 0;
    for (size_t i = 0; i < bound->cost->n_terms; i++) {
        const struct msc_cost_term *term = &bound->cost->terms[i];
        double term_low = term->scale;
        double term_high = term->scale;
        for (uint32_t j = 0; j < term->n_factors; j++, f++) {
            uint32_t task = term->factors[j].task;
            bool is_fixed = (ranks ? ranks[task] : task) < n_fixed;
            double value = is_fixed ? term->factors[j].by_choice[choices[task]] : 0.0;
            double a = term_low * (is_fixed ? value : bound->factor_low[f]);
            double b = term_low * (is_fixed ? value : bound->factor_high[f]);
            double c = term_high * (is_fixed ? value : bound->factor_low[f]);
            double d = term_high * (is_fixed ? value : bound->factor_high[f]);
            term_low = fmin(fmin(a, b), fmin(c, d));
            term_high = fmax(fmax(a, b), fmax(c, d));
        }
        *low += term_low;
        *high += term_high;
    }
}

bool msc_exact_bounds_may_hold(const struct msc_exact_bounds *bounds, const uint32_t choices[],
                               const uint32_t ranks[], size_t n_fixed) {
    for (size_t i = 0; i < bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &bounds->items[i];
        double low;
        double high;
        exact_bound_range(bound, choices, ranks, n_fixed, &low, &high);
        // These sums are added in another order than a point's value, so allow for different
        // rounding.
        double slack = 1e-9 * (fabs(low) + fabs(high));
        if (low > bound->max + slack || high < bound->min - slack) {
            return false;
        }
    }
    return true;
}

enum msc_status msc_walk_init(struct msc_walk *walk, struct msc_arena *arena,
                              const struct msc_exact_bounds *bounds, bool cheapest_first) {
    *walk = (struct msc_walk){.bounds = bounds, .cheapest_first = cheapest_first};
    walk->ranks = msc_arena_array(arena, bounds->space->n_tasks, sizeof *walk->ranks);
    return MSC_ALLOCATED(walk->ranks);
}

static void walk_choose(const struct msc_walk *walk, uint32_t choices[], size_t t) {
    const struct msc_task *task = &walk->bounds->space->tasks[t];
    uint32_t rank = walk->ranks[t];
    choices[t] =
        walk->cheapest_first ? task->most_expensive_first[task->n_choices - 1 - rank] : rank;
}

// Completes `choices` to the first point of the current subtree, whether or not it is feasible.
static void complete_point(struct msc_walk *walk, uint32_t choices[], size_t t) {
    for (size_t i = t + 1; i < walk->bounds->space->n_tasks; i++) {
        walk->ranks[i] = 0;
        walk_choose(walk, choices, i);
    }
}

bool msc_walk_next(struct msc_walk *walk, uint32_t choices[], uint64_t max_nodes) {
    const struct msc_exact_bounds *bounds = walk->bounds;
    size_t n_tasks = bounds->space->n_tasks;
    size_t t = walk->has_begun ? n_tasks - 1 : 0;
    walk->ranks[t] = walk->has_begun ? walk->ranks[t] + 1 : 0;
    walk->has_begun = true;
    for (size_t i = 0; i < t; i++) {
        walk_choose(walk, choices, i);
    }
    if (t == 0 && walk->ranks[t] == 0) {
        // If the first point is feasible, so are all partial points on the way to it: no need to
        // check.
        walk_choose(walk, choices, t);
        complete_point(walk, choices, t);
        if (msc_exact_bounds_hold(bounds, choices)) {
            return true;
        }
    }
    for (uint64_t n_nodes = 0; !walk->is_over; n_nodes++) {
        if (walk->ranks[t] >= bounds->space->tasks[t].n_choices) {
            walk->is_over = t == 0;
            walk->ranks[t > 0 ? --t : 0]++;
            continue;
        }
        walk_choose(walk, choices, t);
        if (n_nodes >= max_nodes) {
            complete_point(walk, choices, t);
            return msc_exact_bounds_hold(bounds, choices);
        }
        if (!msc_exact_bounds_may_hold(bounds, choices, NULL, t + 1)) {
            walk->ranks[t]++;
        } else if (t + 1 < n_tasks) {
            walk->ranks[++t] = 0;
        } else if (msc_exact_bounds_hold(bounds, choices)) {
            return true;
        } else {
            walk->ranks[t]++;
        }
    }
    return false;
}

double msc_walk_n_left(const struct msc_walk *walk) {
    const struct msc_space *space = walk->bounds->space;
    double n_points = 1.0; // number of points of the tasks from t on
    double n_left = 0.0;
    for (size_t t = space->n_tasks; t-- > 0;) {
        double n_choices = space->tasks[t].n_choices;
        n_left += walk->has_begun ? (n_choices - 1.0 - walk->ranks[t]) * n_points : 0.0;
        n_points *= n_choices;
    }
    return walk->is_over ? 0.0 : walk->has_begun ? n_left : n_points;
}
