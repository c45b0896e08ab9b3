// The environment `toy`: its optimum (compared with brute force), metrics, bounds, injected
// failures, delays and crashes.
#include "env/env_toy.h"

#include "base/clock.h"
#include "tests/env/toy.h"
#include "tests/trial_room.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

// The least loss of all points, evaluated one by one.
static double exhaust(struct toy_fixture *f) {
    const struct msc_space *space = msc_env_space(f->env);
    uint32_t choices[16] = {0};
    double best = INFINITY;
    size_t t = 0;
    while (t < space->n_tasks) {
        struct msc_outcome outcome = toy_measure(f, 0, choices);
        if (outcome.state == MSC_TRIAL_COMPLETE) {
            best = fmin(best, outcome.metrics[0]);
        }
        for (t = 0; t < space->n_tasks && ++choices[t] == space->tasks[t].n_choices; t++) {
            choices[t] = 0;
        }
    }
    return best;
}

static void test_env_toy__optimum_equals_exhaustion(void **state) {
    (void)state;
    for (int seed = 0; seed < 12; seed++) {
        char json[200];
        struct toy_fixture f;
        uint32_t choices[16];
        double loss;
        snprintf(json, sizeof json,
                 "{\"tasks\":%d,\"choices\":%d,\"seed\":%d,\"interaction\":%g,"
                 "\"bounds\":{\"size_ratio\":{\"max\":%g}}}",
                 3 + seed % 4, 1 + seed % 5, seed, 0.25 * (seed % 5), 0.06 + 0.01 * seed);
        toy_open(&f, json);
        const struct msc_space *space = msc_env_space(f.env);
        double limit_bytes = f.goal.bounds[0].max;
        double reference[MSC_MAX_METRICS];
        assert_ok(msc_env_reference(f.env, reference));
        limit_bytes *= reference[1];
        double best = exhaust(&f);
        assert_ok(msc_env_toy_optimum(f.env, limit_bytes, choices, &loss));
        assert_true(loss == best);
        assert_true(msc_cost_value(&space->costs[0], choices) <= limit_bytes);
        assert_true(toy_measure(&f, 0, choices).metrics[0] == loss);
        toy_close(&f);
    }
}

static void test_env_toy__optimum_without_bound_or_solution(void **state) {
    (void)state;
    struct toy_fixture f;
    uint32_t choices[48];
    double loss;
    toy_open(&f, "{\"tasks\":48,\"choices\":2}");
    assert_ok(msc_env_toy_optimum(f.env, INFINITY, choices, &loss));
    assert_true(loss == 0.0);
    assert_int_equal(msc_env_toy_optimum(f.env, 3, choices, &loss), MSC_E_NOT_FOUND);
    toy_close(&f);
}

// With interaction on, a point's loss is more than the sum of the losses of its single changes.
static void test_env_toy__interaction_joins_tasks(void **state) {
    (void)state;
    for (int is_on = 0; is_on < 2; is_on++) {
        struct toy_fixture f;
        const uint32_t points[][2] = {{1, 0}, {0, 1}, {1, 1}};
        double losses[3];
        toy_open(&f, is_on ? "{\"tasks\":2,\"choices\":2,\"interaction\":1}"
                           : "{\"tasks\":2,\"choices\":2}");
        for (size_t i = 0; i < 3; i++) {
            losses[i] = toy_measure(&f, 0, points[i]).metrics[0];
        }
        assert_int_equal(is_on, fabs(losses[0] + losses[1] - losses[2]) > 1e-9);
        toy_close(&f);
    }
}

static void test_env_toy__metrics(void **state) {
    (void)state;
    struct toy_fixture f;
    const uint32_t expensive[] = {0, 0, 0};
    const uint32_t cheap[] = {7, 7, 7};
    double reference[MSC_MAX_METRICS];
    toy_open(&f, "{\"tasks\":3,\"choices\":8}");
    assert_ok(msc_env_reference(f.env, reference));
    struct msc_outcome outcome = toy_measure(&f, 0, expensive);
    assert_true(outcome.metrics[0] == 0.0);
    // The reference has 32 bits, the most expensive choice 8 and the cheapest 1.
    assert_true(outcome.metrics[1] * 4 == reference[1]);
    assert_float_equal(outcome.metrics[2], 0.25, 1e-12);
    assert_float_equal(toy_measure(&f, 0, cheap).metrics[2], 1.0 / 32, 1e-12);
    assert_true(toy_measure(&f, 0, cheap).metrics[0] > 0.0);
    toy_close(&f);
}

// The trial has eight batches of equal loss. A bound of 0.3 of the loss stops it after the third
// batch. A bound of 0.25 does, too, because the loss of two batches reaches this bound without
// exceeding it. A bound equal to the loss does not stop the trial.
static void test_env_toy__stops_at_its_bound(void **state) {
    (void)state;
    static const struct {
        double part, stopped_at;
    } rows[] = {{0.0, 0.125}, {0.2, 0.25}, {0.25, 0.375}, {0.3, 0.375}, {0.99, 1.0}, {1.0, -1}};
    struct toy_fixture f;
    const uint32_t point[] = {1, 2, 1};
    toy_open(&f, "{\"tasks\":3,\"choices\":3,\"delay_us\":80}");
    double loss = toy_measure(&f, 0, point).metrics[0];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_trial *trial = toy_trial(&f, 0, point);
        const struct msc_outcome *outcome = &trial->outcome;
        const struct msc_evaluation e = {.trials = &trial, .n = 1};
        trial->proposal.bound = rows[i].part * loss;
        bool is_stopped = rows[i].stopped_at > 0;
        assert_ok(msc_env_evaluate(f.env, &f.goal, &e));
        assert_int_equal(outcome->state, is_stopped ? MSC_TRIAL_PRUNED : MSC_TRIAL_COMPLETE);
        double expected = is_stopped ? rows[i].stopped_at : 1;
        assert_float_equal(outcome->metrics[0], expected * loss, 1e-12 * loss);
        assert_int_equal(outcome->time_us, 80 * expected);
    }
    toy_close(&f);
}

static void test_env_toy__injected_failures(void **state) {
    (void)state;
    struct toy_fixture f;
    const uint32_t point[] = {0, 1};
    toy_open(&f, "{\"tasks\":2,\"choices\":2,\"fail_at\":5}");
    assert_int_equal(toy_measure(&f, 4, point).state, MSC_TRIAL_COMPLETE);
    struct msc_outcome outcome = toy_measure(&f, 5, point);
    assert_int_equal(outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(outcome.cause, MSC_CAUSE_TRIAL);
    assert_string_equal(outcome.reason, "distill_loss is not a number");
    toy_close(&f);
    toy_open(&f, "{\"tasks\":2,\"choices\":2,\"fail_at\":5,\"fail_cause\":\"environment\"}");
    outcome = toy_measure(&f, 5, point);
    assert_int_equal(outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(outcome.cause, MSC_CAUSE_ENVIRONMENT);
    assert_string_equal(outcome.reason, "injected: the device is gone");
    toy_close(&f);
    toy_open(&f, "{\"tasks\":10,\"choices\":2,\"fail_every\":4}");
    size_t n_failed = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        uint32_t choices[10];
        for (uint32_t t = 0; t < 10; t++) {
            choices[t] = i >> t & 1;
        }
        n_failed += toy_measure(&f, i, choices).state == MSC_TRIAL_FAILED;
    }
    assert_in_range(n_failed, 200, 312); // a quarter of the trials, within four standard deviations
    toy_close(&f);
}

static void test_env_toy__delay_and_cancel(void **state) {
    (void)state;
    struct toy_fixture f;
    const uint32_t point[] = {0};
    toy_open(&f, "{\"tasks\":1,\"choices\":2,\"delay_us\":20000}");
    uint64_t before_ns = msc_clock_ns();
    struct msc_outcome outcome = toy_measure(&f, 0, point);
    assert_true(msc_clock_ns() - before_ns >= 20000000);
    assert_int_equal(outcome.time_us, 20000);
    toy_close(&f);
    struct msc_cancel cancel = {.level = 2};
    const struct msc_env_host host = {.cancel = &cancel};
    struct cJSON *config = cJSON_Parse("{\"tasks\":1,\"choices\":2,\"hang_at\":0}");
    struct msc_env *env = NULL;
    assert_ok(msc_env_create(&env, msc_env_find("toy"), config, &host));
    struct trial_room room;
    struct msc_trial *trial = trial_make(&room, 0, point, 1);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    const struct msc_goal goal = {.n_objectives = 1};
    assert_int_equal(msc_env_evaluate(env, &goal, &e), MSC_E_CANCELLED);
    msc_env_destroy(env);
    cJSON_Delete(config);
}

static void test_env_toy__crash_ends_the_program(void **state) {
    (void)state;
    const uint32_t point[] = {0};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct toy_fixture f;
        signal(SIGABRT, SIG_DFL);
        toy_open(&f, "{\"tasks\":1,\"choices\":2,\"crash_at\":2}");
        toy_measure(&f, 1, point);
        toy_measure(&f, 2, point);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_toy__optimum_equals_exhaustion),
        cmocka_unit_test(test_env_toy__optimum_without_bound_or_solution),
        cmocka_unit_test(test_env_toy__interaction_joins_tasks),
        cmocka_unit_test(test_env_toy__metrics),
        cmocka_unit_test(test_env_toy__stops_at_its_bound),
        cmocka_unit_test(test_env_toy__injected_failures),
        cmocka_unit_test(test_env_toy__delay_and_cancel),
        cmocka_unit_test(test_env_toy__crash_ends_the_program),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
