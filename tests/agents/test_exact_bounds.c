// Exact bounds, compared with brute force: which points are feasible, and in which order they are
// walked. Repaired points and random draws must be feasible.
#include "agents/sampler.h"
#include "tests/agents/random_space.h"

#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

static struct random_space_options options_of(uint64_t seed) {
    return (struct random_space_options){
        .seed = seed,
        .n_tasks = 1 + seed % 6,
        .max_choices = 4,
        .n_costs = seed % 4,
        .has_products = seed % 2 == 0,
        .tightness = 0.1 * (double)(seed % 8),
    };
}

// Moves to the next point in counting order; returns false after the last.
static bool count_up(const struct msc_space *space, uint32_t choices[]) {
    for (size_t t = space->n_tasks; t-- > 0;) {
        if (++choices[t] < space->tasks[t].n_choices) {
            return true;
        }
        choices[t] = 0;
    }
    return false;
}

static void test_agents_exact_bounds__walk_gives_feasible_points_in_order(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct random_space r;
        struct msc_exact_bounds bounds;
        struct msc_walk walk;
        struct random_space_options options = options_of(seed);
        random_space_init(&r, &options);
        assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
        assert_ok(msc_walk_init(&walk, &r.arena, &bounds, false));
        uint32_t expected[8] = {0};
        uint32_t found[8];
        bool is_left = true;
        size_t n_feasible = 0;
        while (is_left) {
            if (msc_goal_exact_violation(&r.goal, &r.space, expected) == 0.0) {
                n_feasible++;
                assert_true(msc_exact_bounds_hold(&bounds, expected));
                assert_true(msc_walk_next(&walk, found, UINT64_MAX));
                assert_memory_equal(found, expected, r.space.n_tasks * sizeof *found);
            }
            is_left = count_up(&r.space, expected);
        }
        assert_false(msc_walk_next(&walk, found, UINT64_MAX));
        assert_true(walk.is_over);
        assert_int_equal(bounds.anchor != NULL, n_feasible > 0);
        random_space_finish(&r);
    }
}

// With a node limit the walk may visit infeasible points, but it skips no feasible point.
static void test_agents_exact_bounds__walk_with_a_node_limit(void **state) {
    (void)state;
    struct random_space r;
    struct msc_exact_bounds bounds;
    struct msc_walk walk;
    struct random_space_options options = {
        .seed = 5, .n_tasks = 6, .max_choices = 4, .n_costs = 2, .tightness = 0.3};
    random_space_init(&r, &options);
    assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
    assert_ok(msc_walk_init(&walk, &r.arena, &bounds, false));
    uint32_t choices[6] = {0};
    size_t n_expected = 0;
    size_t n_found = 0;
    do {
        n_expected += msc_exact_bounds_hold(&bounds, choices);
    } while (count_up(&r.space, choices));
    while (!walk.is_over) {
        bool is_feasible = msc_walk_next(&walk, choices, 2);
        if (!walk.is_over) {
            assert_int_equal(is_feasible, msc_exact_bounds_hold(&bounds, choices));
            n_found += is_feasible;
        }
    }
    assert_true(n_expected > 0);
    assert_int_equal(n_found, n_expected);
    random_space_finish(&r);
}

static void test_agents_exact_bounds__partial_points(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_space r;
        struct msc_exact_bounds bounds;
        struct random_space_options options = options_of(seed);
        uint32_t choices[8] = {0};
        random_space_init(&r, &options);
        assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
        do {
            for (size_t n = 0; n <= r.space.n_tasks && msc_exact_bounds_hold(&bounds, choices);
                 n++) {
                assert_true(msc_exact_bounds_may_hold(&bounds, choices, NULL, n));
            }
            assert_int_equal(msc_exact_bounds_may_hold(&bounds, choices, NULL, r.space.n_tasks),
                             msc_exact_bounds_hold(&bounds, choices));
        } while (count_up(&r.space, choices));
        random_space_finish(&r);
    }
}

static void test_agents_exact_bounds__repair(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct random_space r;
        struct msc_exact_bounds bounds;
        struct msc_exact_moves moves;
        struct msc_rng rng;
        struct random_space_options options = options_of(seed);
        uint32_t choices[8] = {0};
        random_space_init(&r, &options);
        msc_rng_seed(&rng, seed, 1);
        assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
        assert_ok(msc_exact_moves_init(&moves, &r.arena, &bounds));
        do {
            uint32_t repaired[8];
            memcpy(repaired, choices, sizeof repaired);
            bool is_repaired = msc_exact_moves_repair(&moves, &rng, repaired);
            assert_int_equal(is_repaired, bounds.anchor != NULL);
            assert_int_equal(is_repaired, msc_exact_bounds_hold(&bounds, repaired));
            if (msc_exact_bounds_hold(&bounds, choices)) {
                assert_memory_equal(repaired, choices, sizeof repaired);
            }
        } while (count_up(&r.space, choices));
        random_space_finish(&r);
    }
}

// If there is only a lower bound, cheaper choices lead away from feasible points. The anchor, a
// feasible point, is still found.
static void test_agents_exact_bounds__lower_bounds(void **state) {
    (void)state;
    struct random_space r;
    struct msc_exact_bounds bounds;
    struct msc_exact_moves moves;
    struct msc_rng rng;
    struct random_space_options options = {
        .seed = 11, .n_tasks = 6, .max_choices = 4, .n_costs = 1, .tightness = 0.7};
    random_space_init(&r, &options);
    r.goal.bounds[0].min = r.goal.bounds[0].max;
    r.goal.bounds[0].max = INFINITY;
    msc_rng_seed(&rng, 1, 1);
    assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
    assert_ok(msc_exact_moves_init(&moves, &r.arena, &bounds));
    assert_non_null(bounds.anchor);
    uint32_t choices[6] = {0};
    do {
        uint32_t repaired[6];
        memcpy(repaired, choices, sizeof repaired);
        assert_true(msc_exact_moves_repair(&moves, &rng, repaired));
        assert_true(msc_exact_bounds_hold(&bounds, repaired));
    } while (count_up(&r.space, choices));
    random_space_finish(&r);
}

static void test_agents_exact_bounds__sampler_draws_each_feasible_point_once(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_space r;
        struct msc_sampler sampler;
        struct msc_rng rng;
        struct random_space_options options = options_of(seed);
        uint32_t choices[8] = {0};
        size_t n_feasible = 0;
        size_t n_drawn = 0;
        random_space_init(&r, &options);
        msc_rng_seed(&rng, seed, 1);
        assert_ok(msc_sampler_init(&sampler, &r.arena, &r.space, &r.goal, &rng));
        do {
            n_feasible += msc_exact_bounds_hold(&sampler.bounds, choices);
        } while (count_up(&r.space, choices));
        while (n_feasible > 0 && msc_sampler_draw(&sampler, choices)) {
            assert_true(msc_exact_bounds_hold(&sampler.bounds, choices));
            assert_false(msc_sampler_note(&sampler, choices));
            n_drawn++;
        }
        assert_int_equal(n_drawn, n_feasible);
        random_space_finish(&r);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_exact_bounds__walk_gives_feasible_points_in_order),
        cmocka_unit_test(test_agents_exact_bounds__walk_with_a_node_limit),
        cmocka_unit_test(test_agents_exact_bounds__partial_points),
        cmocka_unit_test(test_agents_exact_bounds__repair),
        cmocka_unit_test(test_agents_exact_bounds__lower_bounds),
        cmocka_unit_test(test_agents_exact_bounds__sampler_draws_each_feasible_point_once),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
