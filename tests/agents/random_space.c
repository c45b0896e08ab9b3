// Random spaces for the tests of agents, declared in random_space.h.
#include "tests/agents/random_space.h"

#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

static void make_tasks(struct random_space *r, const struct random_space_options *o,
                       struct msc_rng *rng) {
    static const char *const labels[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct msc_task *tasks = msc_arena_array(&r->arena, o->n_tasks, sizeof *tasks);
    assert_non_null(tasks);
    for (size_t t = 0; t < o->n_tasks; t++) {
        uint32_t n = 1 + (uint32_t)msc_rng_below(rng, o->max_choices);
        uint32_t *order = msc_arena_array(&r->arena, n, sizeof *order);
        assert_non_null(order);
        for (uint32_t c = 0; c < n; c++) {
            order[c] = c;
        }
        tasks[t] = (struct msc_task){.name = msc_arena_printf(&r->arena, "t%zu", t),
                                     .n_choices = n,
                                     .labels = labels,
                                     .most_expensive_first = order};
        r->n_entries += n;
    }
    r->space.n_tasks = o->n_tasks;
    r->space.tasks = tasks;
    r->losses = msc_arena_array(&r->arena, r->n_entries, sizeof *r->losses);
    assert_non_null(r->losses);
    for (size_t i = 0; i < r->n_entries; i++) {
        r->losses[i] = msc_rng_double(rng);
    }
}

static struct msc_cost_factor make_factor(struct random_space *r, size_t t, struct msc_rng *rng) {
    uint32_t n = r->space.tasks[t].n_choices;
    double *values = msc_arena_array(&r->arena, n, sizeof *values);
    assert_non_null(values);
    // The values descend, because a task's choices go from the most expensive to the cheapest.
    double value = 1.0 + msc_rng_double(rng);
    for (uint32_t c = 0; c < n; c++) {
        values[c] = value;
        value *= msc_rng_double(rng);
    }
    return (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = values};
}

static void make_cost(struct random_space *r, const struct random_space_options *o,
                      struct msc_rng *rng, struct msc_cost *cost, const char *name) {
    struct msc_cost_term *terms = msc_arena_array(&r->arena, o->n_tasks, sizeof *terms);
    assert_non_null(terms);
    for (size_t t = 0; t < o->n_tasks; t++) {
        struct msc_cost_factor *factors = msc_arena_array(&r->arena, 2, sizeof *factors);
        assert_non_null(factors);
        bool is_product = o->has_products && t + 1 < o->n_tasks && msc_rng_below(rng, 2) == 0;
        factors[0] = make_factor(r, t, rng);
        if (is_product) {
            factors[1] = make_factor(r, t + 1, rng);
        }
        terms[t] = (struct msc_cost_term){.scale = 1.0 + (double)msc_rng_below(rng, 100),
                                          .n_factors = is_product ? 2 : 1,
                                          .factors = factors};
    }
    *cost =
        (struct msc_cost){.metric = name, .constant = 3.0, .n_terms = o->n_tasks, .terms = terms};
}

void random_space_init(struct random_space *r, const struct random_space_options *o) {
    static const struct msc_metric metrics[] = {
        {.name = "loss", .unit = ""},
        {.name = "cost_1", .unit = "", .is_exact = true},
        {.name = "cost_2", .unit = "", .is_exact = true},
        {.name = "cost_3", .unit = "", .is_exact = true},
    };
    struct msc_rng rng;
    memset(r, 0, sizeof *r);
    msc_rng_seed(&rng, o->seed, 9);
    make_tasks(r, o, &rng);
    struct msc_cost *costs = msc_arena_array(&r->arena, o->n_costs + 1, sizeof *costs);
    assert_non_null(costs);
    r->space.n_metrics = 1 + o->n_costs;
    r->space.metrics = metrics;
    r->space.n_costs = o->n_costs;
    r->space.costs = costs;
    r->goal.n_objectives = 1;
    for (size_t i = 0; i < o->n_costs; i++) {
        bool is_exact;
        make_cost(r, o, &rng, &costs[i], metrics[1 + i].name);
        double low = msc_cost_min(&r->space, &costs[i], &is_exact, NULL);
        double high = msc_cost_max(&r->space, &costs[i], &is_exact, NULL);
        r->goal.bounds[r->goal.n_bounds++] = (struct msc_bound){
            .metric = (int)i + 1, .min = -INFINITY, .max = low + o->tightness * (high - low)};
    }
    assert_ok(msc_space_check(&r->space));
}

void random_space_finish(struct random_space *r) {
    msc_arena_finish(&r->arena);
}

double random_space_loss(const struct random_space *r, const uint32_t choices[]) {
    double sum = 0.0;
    size_t offset = 0;
    for (size_t t = 0; t < r->space.n_tasks; t++) {
        sum += r->losses[offset + choices[t]];
        offset += r->space.tasks[t].n_choices;
    }
    return sum;
}

double random_space_optimum(const struct random_space *r) {
    uint32_t choices[32] = {0};
    double best = INFINITY;
    size_t t = 0;
    while (t < r->space.n_tasks) {
        if (msc_goal_exact_violation(&r->goal, &r->space, choices) == 0.0) {
            best = fmin(best, random_space_loss(r, choices));
        }
        for (t = 0; t < r->space.n_tasks && ++choices[t] == r->space.tasks[t].n_choices; t++) {
            choices[t] = 0;
        }
    }
    return best;
}
