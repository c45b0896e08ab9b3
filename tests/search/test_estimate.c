// Estimates of the number of trials to come and of their time, before a search and during it. The
// expected counts follow from the sizes of the spaces.
#include "../msc_test.h"
#include "base/clock.h"
#include "base/str.h"
#include "fake_env.h"
#include "search/estimate.h"
#include "search_fixture.h"

#include <math.h>
#include <stdio.h>

#define SPACE "\"tasks\":13,\"choices\":4,\"baselines\":2"
#define PER_TASK "{\"type\":\"grid_search\"}"
// The trials are the most expensive plan, 3 changes of each of 13 tasks, and the plan that solves
// the knapsack.
#define N_PER_TASK 41

static void make_estimate(struct msc_estimate *out, const struct launch *one) {
    struct search_run run;
    struct launch none = *one;
    char path[FIXTURE_PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s.none", one->path);
    none.path = path;
    none.options.budget.trials = 0;
    none.options.budget.seconds = 0.0;
    run_launch(&run, &none); // runs no trials, only creates the environment
    assert_ok(run.status);
    struct msc_search_options options = one->options;
    options.env = run.env;
    options.agent_config = run.agent_config;
    options.goal = &run.goal;
    options.record_path = one->path;
    assert_ok(msc_estimate_make(out, &options));
    run_finish(&run);
    remove_record(path);
}

static void test_search_estimate__trials_to_come(void **state) {
    static const struct {
        const char *env;
        const char *agent;
        int64_t trials;
        double seconds;
        const char *expected;
    } rows[] = {
        {"{" SPACE "}", PER_TASK, -1, 0, "budget: 41 trials, about "},
        {"{" SPACE "}", PER_TASK, 1000, 0, "budget: 41 trials, about "},
        {"{" SPACE "}", PER_TASK, 20, 0, "budget: 20 trials, about "},
        {"{" SPACE "}", "{\"type\":\"grid_search\",\"mode\":\"full\"}", -1, 0,
         "budget: 67108864 trials, about "},
        {"{" SPACE ",\"bounds\":{\"size_bytes\":{\"max\":110}}}",
         "{\"type\":\"grid_search\",\"mode\":\"full\"}", -1, 0,
         "budget: at most 67108864 trials, at most about "},
        {"{" SPACE "}", "{\"type\":\"grid_search\",\"mode\":\"greedy\"}", 300, 0,
         "budget: at most 300 trials, at most about "},
        {"{" SPACE "}", "{\"type\":\"grid_search\",\"mode\":\"greedy\"}", 0, 0,
         "budget: 0 trials, about "},
        {"{" SPACE "}", "{\"type\":\"evolutionary\"}", 300, 0, "budget: 300 trials, about "},
        {"{" SPACE "}", "{\"type\":\"random\"}", -1, 0.5, "budget: about "},
        {"{\"tasks\":3,\"choices\":3,\"baselines\":2}", "{\"type\":\"random\"}", 300, 0,
         "budget: 25 trials, about "},
    };
    const struct fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_estimate estimate;
        struct msc_str text = {0};
        struct launch one = {.path = f->path,
                             .env = rows[i].env,
                             .def = &msc_env_fake,
                             .agent = rows[i].agent,
                             .options = LAUNCH_TRIALS(rows[i].trials)};
        fake_reset();
        fake_control.delay_us = 1000;
        one.options.budget.seconds = rows[i].seconds;
        make_estimate(&estimate, &one);
        msc_estimate_text(&text, &estimate);
        if (!strstr(msc_str_text(&text), rows[i].expected)) {
            print_error("\"%s\" lacks \"%s\"\n", msc_str_text(&text), rows[i].expected);
            fail();
        }
        // The winner's noise and isolated losses cost 9 + 3 evaluations. Validation costs 0.5 each
        // for the winner and two baselines. The uncompressed model costs 1.
        assert_true(fabs(estimate.reevaluate_s / estimate.trial_s - 14.5) < 1e-6);
        assert_non_null(strstr(msc_str_text(&text), "\nthen: about "));
        msc_str_finish(&text);
    }
}

// Other programs may disturb measured times, so a test passes if one of N_ATTEMPTS attempts
// succeeds.
#define N_ATTEMPTS 8

// The estimate treats the trials of the record as done and takes the time per trial from them.
static bool is_estimated_after_a_launch(const struct fixture *f) {
    struct msc_estimate estimate;
    struct launch one = {.path = f->path,
                         .env = "{" SPACE "}",
                         .def = &msc_env_fake,
                         .agent = PER_TASK,
                         .options = LAUNCH_TRIALS(16)};
    fake_reset();
    fake_control.delay_us = 2000;
    fake_control.first_us = 400000;
    launch(&one);
    one.options.budget.trials = -1;
    make_estimate(&estimate, &one);
    remove_record(f->path);
    assert_true(estimate.n_trials == N_PER_TASK - 16 && estimate.is_exact);
    assert_true(estimate.trial_s >= 2e-3);
    return estimate.trial_s < 15e-3; // it would be 25e-3 if the slow first call counted
}

static void test_search_estimate__after_a_launch(void **state) {
    bool is_estimated = false;
    for (int i = 0; i < N_ATTEMPTS && !is_estimated; i++) {
        is_estimated = is_estimated_after_a_launch(*state);
    }
    assert_true(is_estimated);
}

struct watched {
    size_t n_seen;
    double predicted_s; // predicted end of the search, once 20 trials are done
    double n_all;
};

static void watch(void *payload, const struct msc_search_progress *progress) {
    struct watched *w = payload;
    assert_true(progress->is_left_exact);
    assert_true(progress->n_left + (double)progress->n_budgeted == w->n_all);
    assert_true(progress->n_left > 0.0 || progress->left_s == 0.0);
    if (progress->n_budgeted >= 20 && w->predicted_s == 0.0) {
        w->predicted_s = msc_clock_seconds() + progress->left_s;
    }
    w->n_seen++;
}

// True if, after 20 of n_all trials, the predicted duration is right within a factor of 1.5. The
// first evaluation takes as long as a hundred others and must not count.
static bool is_estimated_on_the_way(const struct fixture *f, const char *agent, int64_t trials,
                                    double n_all) {
    struct watched w = {.n_all = n_all};
    struct launch one = {.path = f->path,
                         .env = "{" SPACE "}",
                         .def = &msc_env_fake,
                         .agent = agent,
                         .options = LAUNCH_TRIALS(trials)};
    one.options.callbacks = (struct msc_search_callbacks){.payload = &w, .progress = watch};
    fake_reset();
    fake_control.delay_us = 5000;
    fake_control.first_us = 500000;
    double begin_s = msc_clock_seconds();
    launch(&one);
    double took_s = msc_clock_seconds() - begin_s;
    remove_record(f->path);
    double predicted_s = w.predicted_s - begin_s;
    return w.n_seen >= 6 && predicted_s < 1.5 * took_s && predicted_s > took_s / 1.5;
}

// Both agents know how many trials they will propose, so the estimated number is exact.
static void test_search_estimate__on_the_way(void **state) {
    static const struct {
        const char *agent;
        int64_t trials;
        double n_all;
    } rows[] = {{PER_TASK, -1, N_PER_TASK}, {"{\"type\":\"random\"}", 200, 200}};
    for (size_t i = 0; i < 2; i++) {
        bool is_estimated = false;
        for (int k = 0; k < N_ATTEMPTS && !is_estimated; k++) {
            is_estimated =
                is_estimated_on_the_way(*state, rows[i].agent, rows[i].trials, rows[i].n_all);
        }
        assert_true(is_estimated);
    }
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_estimate__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(trials_to_come),
        CASE(after_a_launch),
        CASE(on_the_way),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
