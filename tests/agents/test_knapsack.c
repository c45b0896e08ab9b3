// The knapsack solver for additive losses under exact bounds, compared with brute force.
#include "agents/knapsack.h"
#include "tests/agents/random_space.h"

#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

// Solves one random space; returns whether the answer was proved optimal.
static bool compare_with_brute_force(const struct random_space_options *options) {
    struct random_space r;
    struct msc_exact_bounds bounds;
    struct msc_knapsack knapsack;
    uint32_t choices[32];
    bool is_proved;
    random_space_init(&r, options);
    assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
    assert_ok(msc_knapsack_init(&knapsack, &r.arena, &bounds));
    struct msc_isolated isolated = {.losses = r.losses};
    bool is_found = msc_knapsack_solve(&knapsack, &isolated, choices, &is_proved);
    double best = random_space_optimum(&r);
    assert_int_equal(is_found, isfinite(best));
    if (is_found) {
        assert_true(msc_goal_exact_violation(&r.goal, &r.space, choices) == 0.0);
        double loss = random_space_loss(&r, choices);
        assert_true(loss >= best - 1e-12);
        assert_true(!is_proved || loss <= best + 1e-9);
    }
    random_space_finish(&r);
    return is_proved;
}

static void test_agents_knapsack__equals_brute_force(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random_space_options options = {
            .seed = seed,
            .n_tasks = 1 + seed % 7,
            .max_choices = 1 + (uint32_t)(seed % 4),
            .n_costs = seed % 4,
            .has_products = seed % 3 == 0,
            .tightness = 0.05 + 0.1 * (double)(seed % 9),
        };
        assert_true(compare_with_brute_force(&options));
    }
}

// Too large for brute force: the solver's own bounds prove that its answer is optimal.
static void test_agents_knapsack__proves_large_sums(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_space r;
        struct msc_exact_bounds bounds;
        struct msc_knapsack knapsack;
        uint32_t choices[200];
        bool is_proved;
        struct random_space_options options = {
            .seed = seed, .n_tasks = 150, .max_choices = 8, .n_costs = 1, .tightness = 0.3};
        random_space_init(&r, &options);
        assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
        assert_ok(msc_knapsack_init(&knapsack, &r.arena, &bounds));
        struct msc_isolated isolated = {.losses = r.losses};
        assert_true(msc_knapsack_solve(&knapsack, &isolated, choices, &is_proved));
        assert_true(is_proved);
        random_space_finish(&r);
    }
}

// Losses are first random and then all equal. If they are equal, the solver's bounds exclude no
// plan.
static void test_agents_knapsack__takes_many_tasks(void **state) {
    (void)state;
    struct random_space r;
    struct msc_exact_bounds bounds;
    struct msc_knapsack knapsack;
    struct random_space_options options = {
        .seed = 1, .n_tasks = 50000, .max_choices = 3, .n_costs = 1, .tightness = 0.5};
    random_space_init(&r, &options);
    assert_ok(msc_exact_bounds_init(&bounds, &r.arena, &r.space, &r.goal));
    assert_ok(msc_knapsack_init(&knapsack, &r.arena, &bounds));
    uint32_t *choices = msc_arena_array(&r.arena, options.n_tasks, sizeof *choices);
    assert_non_null(choices);
    for (int is_equal = 0; is_equal < 2; is_equal++) {
        struct msc_isolated isolated = {.losses = r.losses};
        assert_true(msc_knapsack_solve(&knapsack, &isolated, choices, NULL));
        assert_true(msc_goal_exact_violation(&r.goal, &r.space, choices) == 0.0);
        memset(r.losses, 0, r.n_entries * sizeof r.losses[0]);
    }
    random_space_finish(&r);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_knapsack__equals_brute_force),
        cmocka_unit_test(test_agents_knapsack__proves_large_sums),
        cmocka_unit_test(test_agents_knapsack__takes_many_tasks),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
