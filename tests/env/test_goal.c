// Goals: objectives and bounds read from JSON, and texts that are refused. Expected values are
// those in the JSON.
#include "tests/env/toy.h"

#include <math.h>
#include <stdio.h>

static enum msc_status read_goal(struct msc_goal *goal, const char *json) {
    struct toy_fixture f;
    struct cJSON *config = NULL;
    toy_open(&f, "{\"tasks\":2,\"choices\":2}");
    assert_ok(msc_json_parse(&config, json, strlen(json), "config"));
    enum msc_status status = msc_env_read_goal(goal, msc_env_space(f.env), config);
    cJSON_Delete(config);
    toy_close(&f);
    return status;
}

static void test_env_goal__reads(void **state) {
    (void)state;
    struct msc_goal goal;
    assert_ok(read_goal(&goal, "{}"));
    assert_true(goal.n_objectives == 1 && goal.objectives[0].metric == 0 && goal.n_bounds == 0);
    assert_ok(read_goal(&goal, "{\"objectives\":[\"size_bytes\",\"distill_loss\"],\"bounds\":"
                               "{\"size_ratio\":{\"max\":0.05},\"distill_loss\":{\"min\":0,"
                               "\"max\":2}}}"));
    assert_int_equal(goal.n_objectives, 2);
    assert_true(goal.objectives[0].metric == 1 && goal.objectives[1].metric == 0);
    assert_int_equal(goal.n_bounds, 2);
    assert_int_equal(goal.bounds[0].metric, 2);
    assert_true(goal.bounds[0].max == 0.05 && goal.bounds[0].min == -INFINITY);
    assert_true(goal.bounds[1].max == 2 && goal.bounds[1].min == 0);
}

static void test_env_goal__refuses(void **state) {
    (void)state;
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{\"objectives\":\"distill_loss\"}", "env.objectives: expected a list"},
        {"{\"objectives\":[]}", "env.objectives: expected a list"},
        {"{\"objectives\":[3]}", "env.objectives: expected a list of metric names"},
        {"{\"objectives\":[\"distil_loss\"]}", "did you mean \"distill_loss\"?"},
        {"{\"objectives\":[\"watts\"]}", "expected one of distill_loss, size_bytes, size_ratio"},
        {"{\"objectives\":[\"size_ratio\",\"size_ratio\"]}", "is listed twice"},
        {"{\"bounds\":[]}", "env.bounds: expected an object"},
        {"{\"bounds\":{\"size_rato\":{\"max\":1}}}", "did you mean \"size_ratio\"?"},
        {"{\"bounds\":{\"size_ratio\":0.2}}", "env.bounds.size_ratio: expected {\"max\": number}"},
        {"{\"bounds\":{\"size_ratio\":{}}}", "env.bounds.size_ratio: expected"},
        {"{\"bounds\":{\"size_ratio\":{\"max\":\"small\"}}}",
         "env.bounds.size_ratio.max: expected a number"},
        {"{\"bounds\":{\"size_ratio\":{\"maximum\":1}}}", "env.bounds.size_ratio"},
        {"{\"bounds\":{\"size_ratio\":{\"min\":2,\"max\":1}}}", "min 2 is above max 1"},
        {"{\"bounds\":{\"size_ratio\":{\"max\":0.01}}}",
         "bound size_ratio: no choice can meet max 0.01; the reachable minimum is 0.03125"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_goal goal;
        assert_int_equal(read_goal(&goal, cases[i].json), MSC_E_INVALID);
        assert_message(cases[i].message);
    }
}

// Reads bounds by drop in the toy environment and sets their limits. The float model's loss is 0, its
// size 480, and its size_ratio 1.
static enum msc_status read_drops(struct msc_drops *drops, struct msc_goal *goal,
                                  const char *bounds) {
    struct toy_fixture f;
    struct cJSON *config = NULL;
    char json[200];
    snprintf(json, sizeof json, "{\"bounds\":{%s}}", bounds);
    toy_open(&f, "{\"tasks\":2,\"choices\":2}");
    assert_ok(msc_json_parse(&config, json, strlen(json), "config"));
    enum msc_status status = msc_env_read_drops(drops, goal, msc_env_space(f.env), config);
    if (status == MSC_OK) {
        status = msc_env_measure_drops(drops, goal, f.env);
    }
    cJSON_Delete(config);
    toy_close(&f);
    return status;
}

static void test_env_goal__drops(void **state) {
    (void)state;
    static const struct {
        const char *bounds;
        double most, max; // max: of the metric
        bool is_relative;
    } cases[] = {
        {"\"size_ratio_drop\":0.25", 0.25, 1.25, false},
        {"\"size_ratio\":{\"drop\":0.25}", 0.25, 1.25, false},
        {"\"size_ratio\":{\"drop\":0.25,\"relative\":false}", 0.25, 1.25, false},
        {"\"size_bytes_drop_ratio\":0.25", 0.25, 600, true},
        {"\"size_bytes\":{\"drop\":0.25,\"relative\":true}", 0.25, 600, true},
        {"\"distill_loss_drop\":0.5", 0.5, 0.5, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_goal goal;
        struct msc_drops drops;
        assert_ok(read_drops(&drops, &goal, cases[i].bounds));
        assert_true(goal.n_bounds == 1 && msc_drops_any(&drops, &goal));
        assert_true(drops.of_bound[0].most == cases[i].most);
        assert_true(drops.of_bound[0].is_relative == cases[i].is_relative);
        assert_true(goal.bounds[0].min == -INFINITY);
        assert_true(goal.bounds[0].max >= cases[i].max);
        assert_true(goal.bounds[0].max <= cases[i].max + 1e-9);
    }
}

static void test_env_goal__refuses_drops(void **state) {
    (void)state;
    static const struct {
        const char *bounds, *message;
    } cases[] = {
        {"\"size_ratio_drop\":\"1%\"",
         "env.bounds.size_ratio_drop: expected a number of 0 or more"},
        {"\"size_ratio_drop\":-1", "env.bounds.size_ratio_drop: expected a number of 0 or more"},
        {"\"size_ratio_drop_ratio\":1", "expected a number from 0 to 1"},
        {"\"size_ratio\":{\"drop\":true}", "env.bounds.size_ratio.drop: expected a number"},
        {"\"size_ratio\":{\"relative\":true}", "env.bounds.size_ratio.drop: expected a number"},
        {"\"size_ratio\":{\"drop\":0.1,\"max\":1}", "unknown key \"max\""},
        {"\"size_ratio\":{\"drop\":0.1,\"relative\":1}", "expected true or false"},
        {"\"watts_drop\":1", "unknown metric \"watts_drop\""},
        {"\"size_ratio_drop\":0.1,\"size_ratio\":{\"max\":1}", "size_ratio already has a bound"},
        {"\"distill_loss_drop_ratio\":0.1", "distill_loss of the float model is 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_goal goal;
        struct msc_drops drops;
        assert_int_equal(read_drops(&drops, &goal, cases[i].bounds), MSC_E_INVALID);
        assert_message(cases[i].message);
    }
    struct msc_goal goal;
    assert_int_equal(read_goal(&goal, "{\"bounds\":{\"size_ratio_drop\":0.1}}"), MSC_E_INVALID);
    assert_message("a drop needs the float model");
}

// Greater values of the metric are better: the limit is a minimum, and a plan at the limit meets it
// whatever the rounding of the difference.
static void test_env_goal__drop_of_maximised(void **state) {
    (void)state;
    for (int n = 3; n < 2000; n += 7) {
        for (int k = n / 2; k <= n; k += 5) {
            struct msc_drop drop = {.is_stated = true, .most = 3.0 / n, .reference = 1.0 * k / n};
            struct msc_bound bound = {0};
            msc_drop_set_limit(&bound, &drop, true);
            assert_true(bound.max == INFINITY);
            assert_true((k - 3.0) / n >= bound.min && (k - 4.0) / n < bound.min);
        }
    }
    assert_true(fabs(msc_drop_of(0.9, 0.95, true, false) - 0.05) < 1e-15);
    assert_true(fabs(msc_drop_of(0.9, 0.8, false, false) - 0.1) < 1e-15);
    assert_true(fabs(msc_drop_of(3, 4, true, true) - 0.25) < 1e-15);
    assert_true(fabs(msc_drop_of(-5, -4, true, true) - 0.25) < 1e-15);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_goal__reads),
        cmocka_unit_test(test_env_goal__refuses),
        cmocka_unit_test(test_env_goal__drops),
        cmocka_unit_test(test_env_goal__refuses_drops),
        cmocka_unit_test(test_env_goal__drop_of_maximised),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
