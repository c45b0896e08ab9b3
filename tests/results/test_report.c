// The text and JSON report of a search, and the estimate before the search starts. Expected values
// follow from the formulas of fake_env.h.
#include "../msc_test.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/search/fake_env.h"
#include "tests/search/search_fixture.h"
#include "search/estimate.h"
#include "results/report.h"

#include <math.h>

static void report_on(struct search_run *run, cJSON **report, struct msc_str *text) {
    const struct msc_report_options options = {.record = run->result.record,
                                               .env = run->env,
                                               .result = &run->result,
                                               .n_top = 3,
                                               .has_front = true};
    assert_ok(msc_report_create(report, &options));
    assert_ok(msc_report_text(text, *report));
}

static void assert_has(const struct msc_str *text, const char *part) {
    if (!strstr(msc_str_text(text), part)) {
        print_error("\"%s\" lacks \"%s\"\n", msc_str_text(text), part);
        fail();
    }
}

// A task costs 10 - choice bytes and the loss is the sum of the choices. Of 60 bytes at most 55 are
// allowed, so the least loss is 5.
static void test_search_report__winner_beside_baselines(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_str text = {0};
    cJSON *report = NULL;
    const struct launch one = {.path = f->path,
                               .env = "{\"tasks\":6,\"choices\":4,\"baselines\":3,"
                                      "\"bounds\":{\"size_bytes\":{\"max\":55}}}",
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
                               .options = LAUNCH_TRIALS(-1)};
    fake_reset();
    run_launch(&run, &one);
    assert_ok(run.status);
    report_on(&run, &report, &text);
    const cJSON *winner = cJSON_GetObjectItem(report, "winner");
    const cJSON *reevaluated = cJSON_GetObjectItem(winner, "examined");
    assert_true(
        cJSON_GetObjectItem(cJSON_GetObjectItem(winner, "metrics"), "distill_loss")->valuedouble ==
        5.0);
    assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(reevaluated, "validation"), "distill_loss")
                    ->valuedouble == 10.0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(winner, "choices")), 6);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "baselines")), 3);
    assert_string_equal(cJSON_GetObjectItem(report, "end")->valuestring, "agent");
    assert_has(&text, "winner: trial ");
    assert_has(&text, "uniform 0, infeasible");
    assert_has(&text, "uniform 1 ");
    assert_has(&text, "uncompressed");
    assert_has(&text, "validation.distill_loss");
    assert_has(&text, "the agent has nothing left to try");
    cJSON_Delete(report);
    msc_str_finish(&text);
    run_finish(&run);
}

// If a re-evaluated value is not a loss of the winner, the report says what it is.
static void test_search_report__says_what_is_reevaluated(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_str text = {0};
    cJSON *report = NULL;
    const struct launch one = {.path = f->path,
                               .env = "{\"tasks\":6,\"choices\":4,\"baselines\":1}",
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"random\"}",
                               .options = LAUNCH_TRIALS(10)};
    fake_reset();
    run_launch(&run, &one);
    assert_ok(run.status);
    report_on(&run, &report, &text);
    assert_has(&text, "\nnoise_ratio: ");
    assert_has(&text, "\nisolated_loss_sum: ");
    assert_null(strstr(msc_str_text(&text), "noise "));
    const cJSON *winner = cJSON_GetObjectItem(report, "winner");
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(winner, "examined"), "noise"));
    // Without re-evaluation there is nothing to explain.
    struct msc_report_options recorded = {.record = run.result.record};
    cJSON_Delete(report);
    msc_str_clear(&text);
    assert_ok(msc_report_create(&report, &recorded));
    assert_ok(msc_report_text(&text, report));
    assert_null(strstr(msc_str_text(&text), "noise_ratio"));
    cJSON_Delete(report);
    msc_str_finish(&text);
    run_finish(&run);
}

static void note_step(void *payload, const char *what) {
    msc_str_printf(payload, "%s\n", what);
}

// Each slow step is announced before it begins.
static void test_search_report__tells_its_steps(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_str steps = {0};
    cJSON *report = NULL;
    const struct launch one = {.path = f->path,
                               .env = "{\"tasks\":6,\"choices\":4,\"baselines\":2}",
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"random\"}",
                               .options = LAUNCH_TRIALS(10)};
    fake_reset();
    run_launch(&run, &one);
    assert_ok(run.status);
    const struct msc_report_options options = {
        .record = run.result.record, .env = run.env, .measuring = note_step, .payload = &steps};
    assert_ok(msc_report_create(&report, &options));
    assert_string_equal(msc_str_text(&steps), "noise of the winner\n"
                                              "isolated losses of the winner\n"
                                              "validation of the winner\n"
                                              "metrics of the uncompressed model\n"
                                              "validation of uniform 0\n"
                                              "validation of uniform 1\n");
    cJSON_Delete(report);
    msc_str_finish(&steps);
    run_finish(&run);
}

static void test_search_report__nothing_better(void **state) {
    static const struct {
        const char *env;
        const char *expected;
    } rows[] = {
        {"{\"tasks\":6,\"choices\":4,\"baselines\":2}", "better than the uniform plan 0"},
        {"{\"tasks\":6,\"choices\":4,\"baselines\":2,\"bounds\":{\"distill_loss\":{\"max\":-1}}}",
         "no trial meets every bound"},
    };
    const struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct search_run run;
        struct msc_str text = {0};
        cJSON *report = NULL;
        const struct launch one = {.path = f->path,
                                   .env = rows[i].env,
                                   .def = &msc_env_fake,
                                   .agent = "{\"type\":\"random\"}",
                                   .options = LAUNCH_TRIALS(10)};
        fake_reset();
        run_launch(&run, &one);
        assert_ok(run.status);
        report_on(&run, &report, &text);
        assert_has(&text, rows[i].expected);
        cJSON_Delete(report);
        msc_str_finish(&text);
        run_finish(&run);
        remove_record(f->path);
    }
}

// All points are on the Pareto front, because each choice trades loss for size. The row of a
// baseline on the front still has its validation loss (twice its loss) in the last column.
static void test_search_report__one_row_each(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_str text = {0};
    cJSON *report = NULL;
    const struct launch one = {.path = f->path,
                               .env = "{\"tasks\":6,\"choices\":4,\"baselines\":3,"
                                      "\"objectives\":[\"distill_loss\",\"size_bytes\"]}",
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"random\"}",
                               .options = LAUNCH_TRIALS(20)};
    fake_reset();
    run_launch(&run, &one);
    assert_ok(run.status);
    report_on(&run, &report, &text);
    const char *row = strstr(msc_str_text(&text), "\nuniform 2 ");
    assert_non_null(row);
    assert_null(strstr(row + 1, "\nuniform 2 "));
    assert_memory_equal(strchr(row + 1, '\n') - 3, " 24", 3);
    cJSON_Delete(report);
    msc_str_finish(&text);
    run_finish(&run);
}

static void test_search_report__estimate(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_estimate estimate;
    struct msc_str text = {0};
    struct launch one = {.path = f->path,
                         .env = "{\"tasks\":8,\"choices\":4,\"delay_us\":5000}",
                         .agent = "{\"type\":\"random\"}",
                         .options = LAUNCH_TRIALS(20)};
    run_launch(&run, &one);
    assert_ok(run.status);
    struct msc_search_options options = one.options;
    options.env = run.env;
    options.agent_config = run.agent_config;
    options.goal = &run.goal;
    options.budget.trials = 1020;
    // From the record: 24 trials of 5 ms are done, 1000 remain.
    options.record_path = f->path;
    assert_ok(msc_estimate_make(&estimate, &options));
    assert_int_equal(estimate.n_measured, 24);
    assert_true(estimate.is_exact);
    assert_true(estimate.trial_s > 0.004 && estimate.trial_s < 0.5);
    assert_true(estimate.n_trials == 1000.0);
    // Without a record: the baselines are timed, and nothing is written.
    char other[FIXTURE_PATH_BYTES];
    fixture_join(other, f, "other.jsonl");
    options.record_path = other;
    assert_ok(msc_estimate_make(&estimate, &options));
    assert_false(msc_file_exists(other));
    // The first baseline is not used, because it allocates the memory for all trials.
    assert_int_equal(estimate.n_measured, 3);
    assert_true(estimate.trial_s > 0.004 && estimate.trial_s < 0.5);
    assert_true(estimate.n_trials == 1020.0);
    // The estimate includes the agent's own time and the time of writing 128 rounds of 8 trials.
    double trials_s = 1020.0 * estimate.trial_s;
    assert_true(estimate.is_agent_counted && estimate.agent_s > 0.0);
    assert_true(estimate.left_s > trials_s + estimate.agent_s);
    assert_true(estimate.left_s < trials_s + estimate.agent_s + 1.0);
    assert_ok(msc_estimate_check(&estimate, other));
    msc_estimate_text(&text, &estimate);
    assert_has(&text, "1020 trials, about ");
    assert_has(&text, "space: 65536 points");
    options.budget = (struct msc_budget){.trials = -1, .seconds = 1.0};
    assert_ok(msc_estimate_make(&estimate, &options));
    assert_true(estimate.n_trials > 1.0 && estimate.n_trials < 250.0);
    // For a time budget the number of trials is a guess, so a lack of disk space is not an error.
    estimate.record_bytes = 1e30;
    assert_ok(msc_estimate_check(&estimate, other));
    estimate.is_counted = true;
    assert_int_equal(msc_estimate_check(&estimate, other), MSC_E_IO);
    assert_message("free");
    msc_str_finish(&text);
    run_finish(&run);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_report__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(winner_beside_baselines),
        CASE(says_what_is_reevaluated),
        CASE(tells_its_steps),
        CASE(nothing_better),
        CASE(one_row_each),
        CASE(estimate),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
