// Spaces: lookups, costs, their extremes, counting points, hashes, and checks that refuse bad
// spaces. Expected values are worked out by hand.
#include "env/api/space.h"

#include "tests/msc_test.h"

#include <math.h>

// A space small enough to work out by hand: bits {8, 4, 2} of a weight, bits {8, 4} of an
// activation.
static const char *const labels[] = {"8", "4", "2"};
static const uint32_t order[] = {0, 1, 2};
static const double bits[] = {8, 4, 2};
static const double sixteenths[] = {-1, 0.5, 2};
static const struct msc_task tasks[] = {
    {.name = "w", .n_choices = 3, .labels = labels, .most_expensive_first = order},
    {.name = "a", .n_choices = 2, .labels = labels, .most_expensive_first = order},
};
static const struct msc_cost_factor size_factors[] = {{.task = 0, .by_choice = bits}};
static const struct msc_cost_term size_terms[] = {
    {.scale = 0.125, .n_factors = 1, .factors = size_factors},
    {.scale = 100, .n_factors = 0},
};
static const struct msc_cost_factor bit_ops_factors[] = {
    {.task = 0, .by_choice = bits},
    {.task = 1, .by_choice = bits},
};
static const struct msc_cost_term bit_ops_terms[] = {
    {.scale = 10, .n_factors = 2, .factors = bit_ops_factors},
};
// One term rises with the weight's bits and the other falls, so no choice is best for both terms.
static const struct msc_cost_term torn_terms[] = {
    {.scale = 1, .n_factors = 1, .factors = size_factors},
    {.scale = -3, .n_factors = 2, .factors = bit_ops_factors},
};
static const struct msc_cost_factor mixed_factors[] = {
    {.task = 0, .by_choice = sixteenths},
    {.task = 1, .by_choice = bits},
};
static const struct msc_cost_term mixed_terms[] = {
    {.scale = 2, .n_factors = 2, .factors = mixed_factors},
};
static const struct msc_cost costs[] = {
    {.metric = "size", .constant = 5, .n_terms = 2, .terms = size_terms},
    {.metric = "bit_ops", .n_terms = 1, .terms = bit_ops_terms},
    {.metric = "torn", .n_terms = 2, .terms = torn_terms},
    {.metric = "mixed", .n_terms = 1, .terms = mixed_terms},
};
static const struct msc_metric metrics[] = {
    {.name = "loss"},
    {.name = "size", .is_exact = true},
    {.name = "bit_ops", .is_exact = true},
    {.name = "torn", .is_exact = true},
    {.name = "mixed", .is_exact = true},
};
static const struct msc_space space = {
    .n_tasks = 2,
    .tasks = tasks,
    .n_metrics = 5,
    .metrics = metrics,
    .n_costs = 4,
    .costs = costs,
};

static void test_env_space__finds_by_name(void **state) {
    (void)state;
    assert_int_equal(msc_space_find_metric(&space, "bit_ops"), 2);
    assert_int_equal(msc_space_find_metric(&space, "bitops"), -1);
    assert_ptr_equal(msc_space_find_cost(&space, "torn"), &costs[2]);
    assert_null(msc_space_find_cost(&space, "loss"));
}

static void test_env_space__cost_values(void **state) {
    (void)state;
    const uint32_t point[] = {1, 0};
    assert_true(msc_cost_value(&costs[0], point) == 5 + 0.5 + 100);
    assert_true(msc_cost_value(&costs[1], point) == 10 * 4 * 8);
    assert_true(msc_cost_value(&costs[2], point) == 4 - 3 * 4 * 8);
    assert_true(msc_cost_value(&costs[3], point) == 2 * 0.5 * 8);
}

static void test_env_space__extremes(void **state) {
    (void)state;
    bool is_exact = false;
    uint32_t point[2];
    assert_true(msc_cost_min(&space, &costs[1], &is_exact, point) == 10 * 2 * 4);
    assert_true(is_exact && point[0] == 2 && point[1] == 1);
    assert_true(msc_cost_max(&space, &costs[1], &is_exact, point) == 10 * 8 * 8);
    assert_true(is_exact && point[0] == 0 && point[1] == 0);
    assert_true(msc_cost_min(&space, &costs[0], &is_exact, NULL) == 5 + 0.25 + 100);
    assert_true(is_exact);
    // The minimum takes the least value of each term, although no point has both: 2 - 3 * 64.
    assert_true(msc_cost_min(&space, &costs[2], &is_exact, NULL) == 2 - 3 * 64);
    assert_false(is_exact);
    // The factors have both signs. The least value is 2 * -1 * 8; it does not follow from the order
    // of the choices.
    assert_true(msc_cost_min(&space, &costs[3], &is_exact, NULL) == -16);
    assert_false(is_exact);
}

static void test_env_space__ranges_of_partial_points(void **state) {
    (void)state;
    const uint32_t point[] = {1, 1};
    double low;
    double high;
    msc_cost_range(&space, &costs[1], point, 0, &low, &high);
    assert_true(low == 80 && high == 640);
    msc_cost_range(&space, &costs[1], point, 1, &low, &high);
    assert_true(low == 160 && high == 320);
    msc_cost_range(&space, &costs[1], point, 2, &low, &high);
    assert_true(low == 160 && high == 160);
    msc_cost_range(&space, &costs[3], point, 0, &low, &high);
    assert_true(low == -16 && high == 32);
    msc_cost_range(&space, &costs[2], point, 1, &low, &high);
    assert_true(low == 4 - 3 * 32 && high == 4 - 3 * 16);
}

static void test_env_space__counts_points(void **state) {
    (void)state;
    struct msc_task many[64];
    for (size_t i = 0; i < 64; i++) {
        many[i] = tasks[1];
    }
    struct msc_space large = space;
    assert_true(msc_space_n_points(&space) == 6);
    large.tasks = many;
    large.n_tasks = 53;
    assert_true(msc_space_n_points(&large) == 9007199254740992.0);
    large.n_tasks = 54;
    assert_true(isinf(msc_space_n_points(&large)));
}

static void test_env_space__hash_tells_spaces_apart(void **state) {
    (void)state;
    struct msc_space other = space;
    struct msc_hash hash = msc_space_hash(&space);
    assert_true(msc_hash_equal(hash, msc_space_hash(&other)));
    other.n_tasks = 1;
    assert_false(msc_hash_equal(hash, msc_space_hash(&other)));
    struct msc_task renamed[] = {tasks[0], tasks[1]};
    renamed[1].name = "b";
    other = space;
    other.tasks = renamed;
    assert_false(msc_hash_equal(hash, msc_space_hash(&other)));
    struct msc_cost more_expensive[] = {costs[0], costs[1], costs[2], costs[3]};
    more_expensive[0].constant = 6;
    other = space;
    other.costs = more_expensive;
    assert_false(msc_hash_equal(hash, msc_space_hash(&other)));
}

static void expect_invalid(const struct msc_space *damaged, const char *part) {
    assert_int_equal(msc_space_check(damaged), MSC_E_INVALID);
    assert_message(part);
}

static void test_env_space__check_refuses_tasks(void **state) {
    (void)state;
    static const uint32_t twice[] = {0, 1, 1};
    struct msc_task changed[] = {tasks[0], tasks[1]};
    struct msc_space damaged = space;
    assert_ok(msc_space_check(&space));
    damaged.tasks = changed;
    damaged.n_tasks = 0;
    expect_invalid(&damaged, "0 tasks");
    damaged.n_tasks = 2;
    changed[1].name = "w";
    expect_invalid(&damaged, "both named w");
    changed[1].name = "a";
    changed[1].n_choices = 0;
    expect_invalid(&damaged, "task a has no choices");
    changed[1].n_choices = 2;
    changed[0].most_expensive_first = twice;
    expect_invalid(&damaged, "task w: the order of choices lists choice 1 2 times");
    changed[0].most_expensive_first = order;
    const char *const names[] = {"elements"};
    const double not_finite[] = {NAN};
    damaged.n_features = 1;
    damaged.feature_names = names;
    changed[0].features = not_finite;
    expect_invalid(&damaged, "task w: feature elements");
}

// Features that are not known are NaN. Features are not part of the hash that identifies a record.
static void test_env_space__features_of_choices(void **state) {
    (void)state;
    static const char *const names[] = {"bits", "error"};
    static const double of_w[] = {8, 0.25, 4, 0.5, 2, NAN}, of_a[] = {8, NAN, INFINITY, 0};
    struct msc_task changed[] = {tasks[0], tasks[1]};
    struct msc_space more = space;
    more.tasks = changed;
    more.n_choice_features = 2;
    expect_invalid(&more, "2 features of choices but no list");
    more.choice_feature_names = names;
    changed[0].choice_features = of_w;
    expect_invalid(&more, "task a: bits of choice 8");
    changed[1].choice_features = of_a;
    expect_invalid(&more, "task a: bits of choice 4 is not a finite number");
    changed[1].choice_features = of_w;
    assert_ok(msc_space_check(&more));
    assert_true(msc_hash_equal(msc_space_hash(&space), msc_space_hash(&more)));
}

// Neighbours are not part of the hash either.
static void test_env_space__neighbours(void **state) {
    (void)state;
    uint32_t pairs[][2] = {{2, 1}, {0, 3}, {1, 2}, {1, 1}, {3, 2}, {0, 3}, {1, 0}};
    static const uint32_t expected[][2] = {{0, 1}, {0, 3}, {1, 2}, {2, 3}};
    uint32_t one[][2] = {{0, 1}, {0, 1}};
    struct msc_space more = space;
    assert_int_equal(msc_space_sort_neighbours(pairs, 7), 4);
    assert_memory_equal(pairs, expected, sizeof expected);
    assert_int_equal(msc_space_sort_neighbours(NULL, 0), 0);
    more.n_neighbours = 1;
    expect_invalid(&more, "1 pairs of neighbours but no list");
    more.neighbours = (const uint32_t(*)[2])one;
    assert_ok(msc_space_check(&more));
    assert_true(msc_hash_equal(msc_space_hash(&space), msc_space_hash(&more)));
    more.n_neighbours = 2;
    expect_invalid(&more,
                   "pair 1 of neighbours (tasks 0 and 1): expected pairs in ascending order");
    more.n_neighbours = 1;
    one[0][1] = 2;
    expect_invalid(&more, "pair 0 of neighbours is tasks 0 and 2, expected two of the 2 tasks");
    one[0][0] = one[0][1] = 1;
    expect_invalid(&more, "pair 0 of neighbours is tasks 1 and 1");
}

static void test_env_space__check_refuses_costs(void **state) {
    (void)state;
    static const double endless[] = {8, INFINITY, 2};
    struct msc_cost_factor factor = size_factors[0];
    struct msc_cost_term term = {.scale = 1, .n_factors = 1, .factors = &factor};
    struct msc_cost changed[] = {costs[0], costs[1], costs[2], costs[3]};
    struct msc_space damaged = space;
    damaged.costs = changed;
    changed[0] = (struct msc_cost){.metric = "size", .n_terms = 1, .terms = &term};
    assert_ok(msc_space_check(&damaged));
    factor.task = 2;
    expect_invalid(&damaged, "cost size, term 0: task 2 of 2 does not exist");
    factor.task = 0;
    factor.by_choice = endless;
    expect_invalid(&damaged, "the factor of w at choice 1 is not finite");
    factor.by_choice = bits;
    term.scale = NAN;
    expect_invalid(&damaged, "its scale is not finite");
    term.scale = 1;
    changed[0].metric = "sizes";
    expect_invalid(&damaged, "size");
    changed[0].metric = "size";
    damaged.n_metrics = 4;
    expect_invalid(&damaged, "no metric mixed");
}

static void test_env_space__check_refuses_baselines(void **state) {
    (void)state;
    static const uint32_t point[] = {2, 2};
    const struct msc_baseline baseline = {.label = "2", .choices = point};
    struct msc_space damaged = space;
    damaged.n_baselines = 1;
    damaged.baselines = &baseline;
    expect_invalid(&damaged, "baseline 2: task a has no choice 2, only 2 choices");
}

// Refuses a space in which a pointer is NULL. Each pointer that a plug-in could leave NULL by
// mistake is tried, one by one.
static void test_env_space__check_refuses_null(void **state) {
    (void)state;
    struct msc_space bad;
    assert_int_equal(msc_space_check(NULL), MSC_E_INVALID);
#define ASSERT_REFUSED(part, ...)                                                                  \
    bad = space;                                                                                   \
    __VA_ARGS__;                                                                                   \
    assert_int_equal(msc_space_check(&bad), MSC_E_INVALID);                                        \
    assert_message(part)
    ASSERT_REFUSED("2 tasks but no list of them", bad.tasks = NULL);
    ASSERT_REFUSED("5 metrics but no list of them", bad.metrics = NULL);
    ASSERT_REFUSED("4 costs but no list of them", bad.costs = NULL);
    ASSERT_REFUSED("1 features but no list of them", bad.n_features = 1);
    ASSERT_REFUSED("1 baselines but no list of them", bad.n_baselines = 1);
    const struct msc_cost_term no_factors[] = {{.scale = 1, .n_factors = 1}};
    const struct msc_cost_factor no_numbers = {.task = 0};
    const struct msc_cost_term no_list[] = {{.scale = 1, .n_factors = 1, .factors = &no_numbers}};
    struct msc_cost all[4];
    memcpy(all, costs, sizeof all);
    all[0].terms = NULL;
    ASSERT_REFUSED("cost size: it has 2 terms but no list of them", bad.costs = all);
    all[0].n_terms = 1;
    all[0].terms = no_factors;
    ASSERT_REFUSED("cost size, term 0: it has 1 factors but no list of them", bad.costs = all);
    all[0].terms = no_list;
    ASSERT_REFUSED("cost size, term 0: the factor of", bad.costs = all);
    const struct msc_baseline no_choices = {.label = "8"};
    ASSERT_REFUSED("baseline 8 has no choices", bad.n_baselines = 1, bad.baselines = &no_choices);
#undef ASSERT_REFUSED
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_space__finds_by_name),
        cmocka_unit_test(test_env_space__cost_values),
        cmocka_unit_test(test_env_space__extremes),
        cmocka_unit_test(test_env_space__ranges_of_partial_points),
        cmocka_unit_test(test_env_space__counts_points),
        cmocka_unit_test(test_env_space__hash_tells_spaces_apart),
        cmocka_unit_test(test_env_space__check_refuses_tasks),
        cmocka_unit_test(test_env_space__features_of_choices),
        cmocka_unit_test(test_env_space__neighbours),
        cmocka_unit_test(test_env_space__check_refuses_costs),
        cmocka_unit_test(test_env_space__check_refuses_baselines),
        cmocka_unit_test(test_env_space__check_refuses_null),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
