// Drops on the validation samples. The expected values were worked out by hand.
#include "checks/held_out.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>

enum { ACCURACY, LOSS };

static const struct msc_metric metrics[] = {
    [ACCURACY] = {.name = "accuracy", .is_maximised = true},
    [LOSS] = {.name = "distill_loss"},
};
static const struct msc_space space = {.n_metrics = 2, .metrics = metrics};
static const struct msc_goal goal = {.n_bounds = 2,
                                     .bounds = {{.metric = ACCURACY, .min = 0.81, .max = INFINITY},
                                                {.metric = LOSS, .min = -INFINITY, .max = 3}}};

static cJSON *parse(const char *text) {
    cJSON *json = NULL;
    assert_ok(msc_json_parse(&json, text, strlen(text), "case"));
    return json;
}

static void assert_violation(const struct msc_drops *drops, const char *validation,
                             double expected) {
    cJSON *json = parse(validation);
    assert_true(fabs(msc_held_out_violation(&space, &goal, drops, json) - expected) < 1e-12);
    cJSON_Delete(json);
}

// A relative drop is a share of the float model's value on the same samples, not on those of the
// search.
static void test_checks_held_out__violation(void **state) {
    const struct msc_drops relative = {
        {{.is_stated = true, .is_relative = true, .most = 0.1, .reference = 0.9}}};
    const struct msc_drops plain = {{{.is_stated = true, .most = 0.1, .reference = 0.9},
                                     {.is_stated = true, .most = 1, .reference = 2}}};
    (void)state;
    // The float model has 0.5, so the limit is 0.45.
    assert_violation(&relative, "{\"accuracy\": 0.44, \"accuracy_drop\": 0.06}", 0.01 / 0.45);
    assert_violation(&relative, "{\"accuracy\": 0.46, \"accuracy_drop\": 0.04}", 0);
    assert_violation(&plain, "{\"accuracy\": 0.44, \"accuracy_drop\": 0.06}", 0);
    // Of a loss, the float model's value is the plan's less the drop: 4, so the limit is 5.
    assert_violation(&plain, "{\"distill_loss\": 6, \"distill_loss_drop\": 2}", 1 / 5.0);
    assert_violation(&plain, "{\"accuracy\": 0.25, \"accuracy_drop\": 0.25}", 0.15 / 0.4);
    assert_violation(&plain, "{}", 0);
}

static void test_checks_held_out__breaks(void **state) {
    const struct msc_drops drops = {
        {{.is_stated = true, .is_relative = true, .most = 0.1, .reference = 0.9}}};
    struct msc_held_out_drop drop;
    cJSON *broken = parse("{\"accuracy\": 0.44, \"float_accuracy\": 0.5}");
    cJSON *kept = parse("{\"accuracy\": 0.46, \"float_accuracy\": 0.5}");
    cJSON *exact = parse("{\"accuracy\": 0.45, \"float_accuracy\": 0.5}");
    (void)state;
    assert_true(msc_held_out_breaks(&drop, &space, &goal, &drops, broken));
    assert_string_equal(drop.name, "accuracy_drop_ratio");
    assert_true(fabs(drop.value - 0.12) < 1e-12 && drop.most == 0.1);
    assert_false(msc_held_out_breaks(&drop, &space, &goal, &drops, kept));
    assert_false(msc_held_out_breaks(&drop, &space, &goal, &drops, exact));
    assert_false(msc_held_out_breaks(&drop, &space, &goal, &drops, NULL));
    cJSON_Delete(broken);
    cJSON_Delete(kept);
    cJSON_Delete(exact);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks_held_out__violation),
        cmocka_unit_test(test_checks_held_out__breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
