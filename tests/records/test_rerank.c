// Orders trials by measurements of their exported models. The expected orders were worked out by
// hand.
#include "records/rerank.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>

enum { LOSS, ACCURACY, LATENCY, SIZE, N_METRICS };

static const struct msc_metric metrics[N_METRICS] = {
    [LOSS] = {.name = "distill_loss"},
    [ACCURACY] = {.name = "accuracy", .is_maximised = true},
    [LATENCY] = {.name = "latency_us"},
    [SIZE] = {.name = "size_bytes", .is_exact = true},
};
static const struct msc_space space = {.n_metrics = N_METRICS, .metrics = metrics};

enum { MOST_ROWS = 4 };

// Metrics from the search, and measurements of the exported model as JSON (NULL: the measurement
// failed).
struct case_row {
    double recorded[N_METRICS];
    const char *examined;
};

static void assert_order(const struct case_row cases[], size_t n, const struct msc_goal *goal,
                         const char *command, const char *by_name, const char *order) {
    struct msc_rerank_row rows[MOST_ROWS];
    struct msc_trial trials[MOST_ROWS];
    cJSON *examined[MOST_ROWS];
    double recorded[MOST_ROWS][N_METRICS];
    struct msc_rerank_by by;
    char found[MOST_ROWS + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        const char *json = cases[i].examined ? cases[i].examined : "{}";
        memcpy(recorded[i], cases[i].recorded, sizeof recorded[i]);
        assert_ok(msc_json_parse(&examined[i], json, strlen(json), "case"));
        trials[i] = (struct msc_trial){.id = (int64_t)i, .outcome = {.metrics = recorded[i]}};
        rows[i] = (struct msc_rerank_row){.trial = &trials[i],
                                          .rank = i + 1,
                                          .examined = examined[i],
                                          .has_failed = !cases[i].examined};
    }
    msc_rerank_sort(&by, rows, n, goal, &space, command != NULL,
                    command && strcmp(command, "maximise") == 0);
    for (size_t i = 0; i < n; i++) {
        found[i] = (char)('1' + rows[i].rank - 1);
        cJSON_Delete(examined[i]);
    }
    assert_string_equal(by.name, by_name);
    assert_string_equal(found, order);
}

static const struct msc_goal least_loss = {.n_objectives = 1, .objectives = {{.metric = LOSS}}};

static void test_search_rerank__by_the_loss_in_the_runtime(void **state) {
    static const struct case_row validated[] = {
        {{1}, "{\"runtime\":{\"distill_loss\":1,\"validation\":{\"distill_loss\":9}}}"},
        {{2}, "{\"runtime\":{\"distill_loss\":2,\"validation\":{\"distill_loss\":8}}}"},
        {{3}, NULL},
        {{4}, "{\"runtime\":{\"distill_loss\":4,\"validation\":{\"distill_loss\":7}}}"},
    };
    static const struct case_row calibrated[] = {
        {{1}, "{\"runtime\":{\"distill_loss\":3,\"validation\":{}}}"},
        {{2}, "{\"runtime\":{\"distill_loss\":2}}"},
        {{3}, "{\"runtime\":{\"distill_loss\":3}}"},
        {{4}, "{\"runtime\":{}}"}, // has no value, so it comes last
    };
    // Without measurements of the exported models, the order of the search remains.
    static const struct case_row unmeasured[] = {{{2}, "{}"}, {{1}, "{\"file_bytes\":5}"}};
    static const struct case_row refused[] = {{{2}, NULL}, {{1}, NULL}};
    (void)state;
    assert_order(validated, 4, &least_loss, NULL, "runtime.validation.distill_loss", "4213");
    assert_order(calibrated, 4, &least_loss, NULL, "runtime.distill_loss", "2134");
    assert_order(unmeasured, 2, &least_loss, NULL, "distill_loss", "12");
    assert_order(refused, 2, &least_loss, NULL, "distill_loss", "12");
}

// The recorded value of an exact metric is used, but plans whose measurement failed come last.
static void test_search_rerank__by_a_recorded_metric(void **state) {
    static const struct case_row rows[] = {
        {{0, 0, 0, 3}, "{}"}, {{0, 0, 0, 1}, NULL}, {{0, 0, 0, 2}, "{\"runtime\":{}}"}};
    const struct msc_goal goal = {.n_objectives = 1, .objectives = {{.metric = SIZE}}};
    (void)state;
    assert_order(rows, 3, &goal, NULL, "size_bytes", "312");
}

// A plan without a measurement of the bounded metric does not count as within the bound.
static void test_search_rerank__without_the_metric_of_a_bound(void **state) {
    static const struct case_row rows[] = {
        {{1}, "{\"runtime\":{\"distill_loss\":1}}"},
        {{2}, "{\"runtime\":{\"distill_loss\":2,\"latency_us\":5}}"},
    };
    const struct msc_goal goal = {.n_objectives = 1,
                                  .objectives = {{.metric = LOSS}},
                                  .n_bounds = 1,
                                  .bounds = {{.metric = LATENCY, .min = -INFINITY, .max = 9}}};
    (void)state;
    assert_order(rows, 2, &goal, NULL, "runtime.distill_loss", "21");
}

// A plan that breaks a bound by drop on the validation samples comes after plans that break none.
static void test_search_rerank__held_out(void **state) {
    double losses[3][N_METRICS] = {{1}, {2}, {3}};
    const double broken[] = {0.1, 0, 0};
    struct msc_trial trials[3];
    struct msc_rerank_row rows[3];
    struct msc_rerank_by by;
    cJSON *examined = NULL;
    (void)state;
    assert_ok(msc_json_parse(&examined, "{\"score\":1}", 11, "case"));
    for (size_t i = 0; i < 3; i++) {
        trials[i] = (struct msc_trial){.id = (int64_t)i, .outcome = {.metrics = losses[i]}};
        rows[i] = (struct msc_rerank_row){.trial = &trials[i],
                                          .rank = i + 1,
                                          .examined = examined,
                                          .held_out_violation = broken[i]};
    }
    msc_rerank_sort(&by, rows, 3, &least_loss, &space, true, false);
    assert_true(rows[0].rank == 2 && rows[1].rank == 3 && rows[2].rank == 1);
    assert_true(rows[2].violation == 0.1);
    cJSON_Delete(examined);
}

static void test_search_rerank__by_a_maximised_metric(void **state) {
    static const struct case_row rows[] = {
        {{0, 0.9}, "{\"runtime\":{\"accuracy\":0.8}}"},
        {{0, 0.8}, "{\"runtime\":{\"accuracy\":0.9}}"},
        {{0, 0.7}, "{\"runtime\":{\"accuracy\":0.9}}"},
    };
    const struct msc_goal goal = {.n_objectives = 1,
                                  .objectives = {{.metric = ACCURACY, .is_maximised = true}}};
    (void)state;
    assert_order(rows, 3, &goal, NULL, "runtime.accuracy", "231");
}

// Bounds use the values on the samples of the search, not on the validation samples.
static void test_search_rerank__bounds_are_looked_at_again(void **state) {
    static const struct case_row rows[] = {
        {{0.1, 0, 50, 10},
         "{\"runtime\":{\"distill_loss\":0.3,\"validation\":{\"distill_loss\":0.1},\"latency_us\":"
         "40}}"},
        {{0.1, 0, 60, 10},
         "{\"runtime\":{\"distill_loss\":0.1,\"validation\":{\"distill_loss\":0.9},\"latency_us\":"
         "60}}"},
        {{0.1, 0, 70, 10},
         "{\"runtime\":{\"distill_loss\":0.25,\"validation\":{\"distill_loss\":0.1},\"latency_us\":"
         "30}}"},
        {{0.1, 0, 80, 32},
         "{\"runtime\":{\"distill_loss\":0.1,\"validation\":{\"distill_loss\":0.1},\"latency_us\":"
         "10}}"},
    };
    const struct msc_goal goal = {.n_objectives = 1,
                                  .objectives = {{.metric = LATENCY}},
                                  .n_bounds = 2,
                                  .bounds = {{.metric = LOSS, .min = -INFINITY, .max = 0.2},
                                             {.metric = SIZE, .min = -INFINITY, .max = 20}}};
    (void)state;
    // The violations, in order: 0, 0.05 / 0.2, 0.1 / 0.2, 12 / 20.
    assert_order(rows, 4, &goal, NULL, "runtime.latency_us", "2314");
}

static void test_search_rerank__by_a_command(void **state) {
    static const struct case_row rows[] = {
        {{1}, "{\"score\":5,\"runtime\":{\"distill_loss\":1}}"},
        {{2}, "{\"runtime\":{\"distill_loss\":2}}"},
        {{3}, "{\"score\":7,\"runtime\":{\"distill_loss\":3}}"},
        {{4}, "{\"score\":-6,\"runtime\":{\"distill_loss\":4}}"},
    };
    (void)state;
    assert_order(rows, 4, &least_loss, "minimise", "score", "4132");
    assert_order(rows, 4, &least_loss, "maximise", "score", "3142");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_rerank__by_the_loss_in_the_runtime),
        cmocka_unit_test(test_search_rerank__by_a_recorded_metric),
        cmocka_unit_test(test_search_rerank__without_the_metric_of_a_bound),
        cmocka_unit_test(test_search_rerank__by_a_maximised_metric),
        cmocka_unit_test(test_search_rerank__bounds_are_looked_at_again),
        cmocka_unit_test(test_search_rerank__by_a_command),
        cmocka_unit_test(test_search_rerank__held_out),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
