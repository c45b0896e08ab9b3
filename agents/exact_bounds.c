#include "agents/exact_bounds.h"

#include <math.h>
#include <string.h>

// Partial points looked at when an anchor is sought.
#define ANCHOR_NODES 200000

static size_t count_factors(const struct msc_cost *cost) {
    size_t n = 0;
    for (size_t i = 0; i < cost->n_terms; i++) {
        n += cost->terms[i].n_factors;
    }
    return n;
}

static enum msc_status add_limit(struct msc_limits *limits, struct msc_arena *arena,
                                 const struct msc_cost *cost, const struct msc_bound *bound) {
    struct msc_limit *limit = &limits->limits[limits->n_limits++];
    size_t n_factors = count_factors(cost);
    limit->cost = cost;
    limit->min = bound->min;
    limit->max = bound->max;
    limit->factor_low = msc_arena_array(arena, n_factors + 1, sizeof(double));
    limit->factor_high = msc_arena_array(arena, n_factors + 1, sizeof(double));
    if (!limit->factor_low || !limit->factor_high) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the bound on %s", cost->metric);
    }
    size_t f = 0;
    for (size_t i = 0; i < cost->n_terms; i++) {
        for (uint32_t j = 0; j < cost->terms[i].n_factors; j++) {
            const struct msc_cost_factor *factor = &cost->terms[i].factors[j];
            double low = factor->by_choice[0];
            double high = low;
            for (uint32_t c = 1; c < limits->space->tasks[factor->task].n_choices; c++) {
                low = fmin(low, factor->by_choice[c]);
                high = fmax(high, factor->by_choice[c]);
            }
            limit->factor_low[f] = low;
            limit->factor_high[f++] = high;
        }
    }
    return MSC_OK;
}

static enum msc_status init_tables(struct msc_limits *limits, struct msc_arena *arena) {
    const struct msc_space *space = limits->space;
    limits->offsets = msc_arena_array(arena, space->n_tasks, sizeof *limits->offsets);
    limits->dearest = msc_arena_array(arena, space->n_tasks, sizeof *limits->dearest);
    limits->order = msc_arena_array(arena, space->n_tasks, sizeof *limits->order);
    if (!limits->offsets || !limits->dearest || !limits->order) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu tasks", space->n_tasks);
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        limits->offsets[t] = limits->n_entries;
        limits->n_entries += space->tasks[t].n_choices;
        limits->dearest[t] = space->tasks[t].dearest_first[0];
    }
    limits->positions = msc_arena_array(arena, limits->n_entries, sizeof *limits->positions);
    if (!limits->positions) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu choices", limits->n_entries);
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t i = 0; i < space->tasks[t].n_choices; i++) {
            uint32_t choice = space->tasks[t].dearest_first[i];
            limits->positions[msc_limits_entry(limits, t, choice)] = i;
        }
    }
    return MSC_OK;
}

static enum msc_status find_anchor(struct msc_limits *limits, struct msc_arena *arena) {
    struct msc_walk walk;
    MSC_TRY(msc_walk_init(&walk, arena, limits, true));
    uint32_t *anchor = msc_arena_array(arena, limits->space->n_tasks, sizeof *anchor);
    if (!anchor) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu tasks", limits->space->n_tasks);
    }
    if (msc_walk_next(&walk, anchor, ANCHOR_NODES)) {
        limits->anchor = anchor;
    }
    return MSC_OK;
}

enum msc_status msc_limits_init(struct msc_limits *limits, struct msc_arena *arena,
                                const struct msc_space *space, const struct msc_goal *goal) {
    memset(limits, 0, sizeof *limits);
    limits->space = space;
    limits->goal = goal;
    MSC_TRY(init_tables(limits, arena));
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const char *metric = space->metrics[goal->bounds[i].metric].name;
        const struct msc_cost *cost = msc_space_find_cost(space, metric);
        if (cost) {
            MSC_TRY(add_limit(limits, arena, cost, &goal->bounds[i]));
        }
    }
    return find_anchor(limits, arena);
}

double msc_limits_violation(const struct msc_limits *limits, const uint32_t choices[]) {
    return limits->n_limits > 0 ? msc_goal_exact_violation(limits->goal, limits->space, choices)
                                : 0.0;
}

bool msc_limits_hold(const struct msc_limits *limits, const uint32_t choices[]) {
    for (size_t i = 0; i < limits->n_limits; i++) {
        const struct msc_limit *limit = &limits->limits[i];
        double value = msc_cost_value(limit->cost, choices);
        if (value > limit->max || value < limit->min) {
            return false;
        }
    }
    return true;
}

static void limit_range(const struct msc_limit *limit, const uint32_t choices[],
                        const uint32_t ranks[], size_t n_fixed, double *low, double *high) {
    *low = limit->cost->constant;
    *high = limit->cost->constant;
    size_t f = 0;
    for (size_t i = 0; i < limit->cost->n_terms; i++) {
        const struct msc_cost_term *term = &limit->cost->terms[i];
        double term_low = term->scale;
        double term_high = term->scale;
        for (uint32_t j = 0; j < term->n_factors; j++, f++) {
            uint32_t task = term->factors[j].task;
            bool is_fixed = (ranks ? ranks[task] : task) < n_fixed;
            double value = is_fixed ? term->factors[j].by_choice[choices[task]] : 0.0;
            double a = term_low * (is_fixed ? value : limit->factor_low[f]);
            double b = term_low * (is_fixed ? value : limit->factor_high[f]);
            double c = term_high * (is_fixed ? value : limit->factor_low[f]);
            double d = term_high * (is_fixed ? value : limit->factor_high[f]);
            term_low = fmin(fmin(a, b), fmin(c, d));
            term_high = fmax(fmax(a, b), fmax(c, d));
        }
        *low += term_low;
        *high += term_high;
    }
}

bool msc_limits_may_hold(const struct msc_limits *limits, const uint32_t choices[],
                         const uint32_t ranks[], size_t n_fixed) {
    for (size_t i = 0; i < limits->n_limits; i++) {
        const struct msc_limit *limit = &limits->limits[i];
        double low;
        double high;
        limit_range(limit, choices, ranks, n_fixed, &low, &high);
        // Sums of free tasks are rounded in another order than a point's value.
        double slack = 1e-9 * (fabs(low) + fabs(high));
        if (low > limit->max + slack || high < limit->min - slack) {
            return false;
        }
    }
    return true;
}

int64_t msc_limits_next_cheaper(const struct msc_limits *limits, uint32_t choices[], size_t task) {
    const struct msc_task *described = &limits->space->tasks[task];
    uint32_t before = choices[task];
    double violation = msc_limits_violation(limits, choices);
    int64_t found = -1;
    uint32_t position = limits->positions[msc_limits_entry(limits, task, before)];
    for (uint32_t i = position + 1; i < described->n_choices && found < 0; i++) {
        choices[task] = described->dearest_first[i];
        if (msc_limits_violation(limits, choices) < violation) {
            found = choices[task];
        }
    }
    choices[task] = before;
    return found;
}

bool msc_limits_repair(struct msc_limits *limits, struct msc_rng *rng, uint32_t choices[]) {
    if (msc_limits_hold(limits, choices)) {
        return true;
    }
    size_t n_tasks = limits->space->n_tasks;
    for (size_t t = 0; t < n_tasks; t++) {
        limits->order[t] = (uint32_t)t;
    }
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        msc_rng_shuffle(rng, limits->order, n_tasks);
        for (size_t i = 0; i < n_tasks; i++) {
            int64_t choice = msc_limits_next_cheaper(limits, choices, limits->order[i]);
            if (choice < 0) {
                continue;
            }
            choices[limits->order[i]] = (uint32_t)choice;
            has_changed = true;
            if (msc_limits_hold(limits, choices)) {
                return true;
            }
        }
    }
    for (size_t i = 0; limits->anchor && i < n_tasks; i++) {
        choices[limits->order[i]] = limits->anchor[limits->order[i]];
        if (msc_limits_hold(limits, choices)) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_walk_init(struct msc_walk *walk, struct msc_arena *arena,
                              const struct msc_limits *limits, bool cheapest_first) {
    *walk = (struct msc_walk){.limits = limits, .cheapest_first = cheapest_first};
    walk->ranks = msc_arena_array(arena, limits->space->n_tasks, sizeof *walk->ranks);
    return walk->ranks
               ? MSC_OK
               : MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu tasks", limits->space->n_tasks);
}

static void choose(const struct msc_walk *walk, uint32_t choices[], size_t t) {
    const struct msc_task *task = &walk->limits->space->tasks[t];
    uint32_t rank = walk->ranks[t];
    choices[t] = walk->cheapest_first ? task->dearest_first[task->n_choices - 1 - rank] : rank;
}

// The first point of the present subtree, whatever it costs; the walk goes on after it.
static void complete_point(struct msc_walk *walk, uint32_t choices[], size_t t) {
    for (size_t i = t + 1; i < walk->limits->space->n_tasks; i++) {
        walk->ranks[i] = 0;
        choose(walk, choices, i);
    }
}

bool msc_walk_next(struct msc_walk *walk, uint32_t choices[], uint64_t max_nodes) {
    const struct msc_limits *limits = walk->limits;
    size_t n_tasks = limits->space->n_tasks;
    size_t t = walk->has_begun ? n_tasks - 1 : 0;
    walk->ranks[t] = walk->has_begun ? walk->ranks[t] + 1 : 0;
    walk->has_begun = true;
    for (size_t i = 0; i < t; i++) {
        choose(walk, choices, i);
    }
    for (uint64_t n_nodes = 0; !walk->is_over; n_nodes++) {
        if (walk->ranks[t] >= limits->space->tasks[t].n_choices) {
            walk->is_over = t == 0;
            walk->ranks[t > 0 ? --t : 0]++;
            continue;
        }
        choose(walk, choices, t);
        if (n_nodes >= max_nodes) {
            complete_point(walk, choices, t);
            return msc_limits_hold(limits, choices);
        }
        if (!msc_limits_may_hold(limits, choices, NULL, t + 1)) {
            walk->ranks[t]++;
        } else if (t + 1 < n_tasks) {
            walk->ranks[++t] = 0;
        } else if (msc_limits_hold(limits, choices)) {
            return true;
        } else {
            walk->ranks[t]++;
        }
    }
    return false;
}

double msc_walk_n_left(const struct msc_walk *walk) {
    const struct msc_space *space = walk->limits->space;
    double n_points = 1.0; // of the tasks from t on
    double n_left = 0.0;
    for (size_t t = space->n_tasks; t-- > 0;) {
        double n_choices = space->tasks[t].n_choices;
        n_left += walk->has_begun ? (n_choices - 1.0 - walk->ranks[t]) * n_points : 0.0;
        n_points *= n_choices;
    }
    return walk->is_over ? 0.0 : walk->has_begun ? n_left : n_points;
}
