// Goals: objectives and bounds read from JSON, and texts that are refused. Expected values are
// those in the JSON.
#include "tests/env/toy.h"

#include <math.h>

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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_goal__reads),
        cmocka_unit_test(test_env_goal__refuses),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
