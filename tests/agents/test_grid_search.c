// Grid search. The sequence of proposals of each mode is worked out by hand from a table of losses.
// Results are also tested on toys whose optimum is known.
#include "tests/agents/trace.h"

#include "base/json.h"
#include "env/env_toy.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Two tasks with widths 3, 2 and 1, at ten bytes per unit of width.
static const char *const labels[] = {"3", "2", "1"};
static const uint32_t order[] = {0, 1, 2};
static const double widths[] = {3, 2, 1};
static const struct msc_task tasks[] = {
    {.name = "a", .n_choices = 3, .labels = labels, .most_expensive_first = order},
    {.name = "b", .n_choices = 3, .labels = labels, .most_expensive_first = order},
};
static const struct msc_cost_factor factors[] = {
    {.task = 0, .by_choice = widths},
    {.task = 1, .by_choice = widths},
};
static const struct msc_cost_term terms[] = {
    {.scale = 10, .n_factors = 1, .factors = &factors[0]},
    {.scale = 10, .n_factors = 1, .factors = &factors[1]},
};
static const struct msc_cost costs[] = {{.metric = "size", .n_terms = 2, .terms = terms}};
static const struct msc_metric metrics[] = {
    {.name = "loss", .unit = ""},
    {.name = "size", .unit = "bytes", .is_exact = true},
};
static const struct msc_space space = {
    .n_tasks = 2,
    .tasks = tasks,
    .n_metrics = 2,
    .metrics = metrics,
    .n_costs = 1,
    .costs = costs,
};
static const struct msc_goal goal = {
    .n_objectives = 1,
    .objectives = {{.metric = 0}},
    .n_bounds = 1,
    .bounds = {{.metric = 1, .min = -INFINITY, .max = 40}},
};

// Asks in rounds of `round`, answers from a table of losses, and compares the proposals.
static void expect_sequence(const char *config, size_t round, const double losses[3][3],
                            const uint32_t expected[][2], size_t n_expected) {
    struct msc_agent *agent = NULL;
    struct cJSON *json = NULL;
    size_t n_seen = 0;
    size_t n = 1;
    uint32_t choices[8][2];
    struct msc_proposal proposals[8];
    assert_ok(msc_json_parse(&json, config, strlen(config), "agent"));
    assert_ok(msc_agent_open(&agent, json, &space, &goal, 0, NULL));
    while (n > 0 && !msc_agent_is_done(agent)) {
        for (size_t i = 0; i < round; i++) {
            proposals[i].choices = choices[i];
        }
        memset(choices, 0xff, sizeof choices); // stale choices must not be read
        assert_ok(msc_agent_ask(agent, proposals, round, &n));
        for (size_t i = 0; i < n; i++) {
            assert_true(n_seen + i < n_expected);
            assert_memory_equal(choices[i], expected[n_seen + i], sizeof choices[i]);
        }
        for (size_t i = 0; i < n; i++) {
            struct trial_room room;
            struct msc_trial *trial = trial_make(&room, (int64_t)n_seen++, choices[i], 2);
            room.metrics[0] = losses[choices[i][0]][choices[i][1]];
            room.metrics[1] = msc_cost_value(costs, choices[i]);
            msc_goal_judge(&goal, &space, &trial->outcome);
            assert_ok(msc_agent_tell(agent, trial));
        }
    }
    assert_int_equal(n_seen, n_expected);
    msc_agent_destroy(agent);
    cJSON_Delete(json);
}

// Worked out by hand. The most expensive plan has 60 bytes, and 40 are allowed. Each change to a
// cheaper choice removes a violation of 10/40, more than the least step (an eighth of the first
// violation).
// - Step 1: the change of b costs 0.5 and the change of a 1.0, so the plan becomes (0, 1).
// - Step 2 evaluates only (0, 2), which costs 1.5. The change of a is known to cost 1.0 and is
//   taken. The new plan (1, 1) has 40 bytes and is evaluated.
// - Step 3: more expensive choices exceed the bound. The change of b, to (1, 2), is tried first and
//   lowers the loss to 1.1. The change of a, to (2, 1), is tried last because its cost is unknown.
// - Step 4 tries (0, 2), (1, 1) and (2, 2), in the order of the earlier gains of these changes. No
//   loss is below 1.1. The last plan near (1, 2) that is left is (2, 0).
static void test_agents_grid_search__greedy_takes_what_was_tried(void **state) {
    (void)state;
    static const double losses[3][3] = {{0.0, 0.5, 2.0}, {1.0, 1.2, 1.1}, {9.0, 1.5, 3.0}};
    static const uint32_t expected[][2] = {
        {0, 0}, {1, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 1}, {0, 2}, {1, 1}, {2, 2}, {2, 0},
    };
    for (size_t round = 1; round <= 8; round++) {
        expect_sequence("{\"type\":\"grid_search\",\"mode\":\"greedy\"}", round, losses, expected,
                        11);
    }
}

// The most expensive plan fails, as do all points with a's most expensive choice. The agent
// starts from the first random point that does not fail.
static void test_agents_grid_search__greedy_without_a_first_plan(void **state) {
    (void)state;
    struct msc_agent *agent = NULL;
    struct cJSON *json = NULL;
    static const char config[] = "{\"type\":\"grid_search\",\"mode\":\"greedy\"}";
    uint32_t choices[2];
    struct msc_proposal proposal = {.choices = choices};
    double best = INFINITY;
    size_t n = 1;
    assert_ok(msc_json_parse(&json, config, strlen(config), "agent"));
    assert_ok(msc_agent_open(&agent, json, &space, &goal, 0, NULL));
    for (int id = 0; n > 0 && !msc_agent_is_done(agent); id++) {
        assert_true(id < 300);
        assert_ok(msc_agent_ask(agent, &proposal, 1, &n));
        if (n == 1) {
            struct trial_room room;
            struct msc_trial *trial = trial_make(&room, id, choices, 2);
            room.metrics[0] = choices[0] == 0 ? NAN : 1.0 + choices[0] + choices[1];
            room.metrics[1] = msc_cost_value(costs, choices);
            msc_goal_judge(&goal, &space, &trial->outcome);
            best = fmin(best, trial->outcome.state == MSC_TRIAL_COMPLETE ? room.metrics[0] : best);
            assert_ok(msc_agent_tell(agent, trial));
        }
    }
    assert_true(best == 3.0); // the plan (1, 1) or (2, 0): the best within 40 bytes
    msc_agent_destroy(agent);
    cJSON_Delete(json);
}

// Changing one task at a time would take more than a thousand trials.
static void test_agents_grid_search__greedy_is_soon_within_bounds(void **state) {
    (void)state;
    static const char env[] = "{\"tasks\":60,\"choices\":8,\"seed\":3,"
                              "\"bounds\":{\"size_ratio\":{\"max\":0.1}}}";
    struct trace trace;
    struct trace_run run = {.env = env,
                            .agent = "{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
                            .round = 16,
                            .max_trials = 100};
    size_t n_feasible = 0;
    trace_make(&trace, &run);
    for (size_t i = 0; i < trace.n; i++) {
        n_feasible += trace.entries[i].trial.outcome.state == MSC_TRIAL_COMPLETE;
    }
    assert_true(n_feasible > 0);
    trace_finish(&trace);
}

// Worked out by hand. Single choices of a lose 0, 1, 9 and of b 0, 0.5, 2. Three plans have 40
// bytes: (0, 2) with the sum 2, (1, 1) with 1.5, and (2, 0) with 9. So (1, 1) is tried. Its
// measured loss is 7, so (0, 2) remains the best plan within the bound. The neighbours of (0, 2)
// are tried in the order of the sums that they add: (1, 2) adds 1, (2, 1) adds 7.5 and (2, 2) adds
// 9.
static void test_agents_grid_search__per_task_by_hand(void **state) {
    (void)state;
    static const double losses[3][3] = {{0.0, 0.5, 2.0}, {1.0, 7.0, 7.0}, {9.0, 7.0, 7.0}};
    static const uint32_t expected[][2] = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {0, 2},
                                           {1, 1}, {1, 2}, {2, 1}, {2, 2}};
    for (size_t round = 1; round <= 8; round++) {
        expect_sequence("{\"type\":\"grid_search\",\"around\":0}", round, losses, expected, 6);
        expect_sequence("{\"type\":\"grid_search\",\"around\":5}", round, losses, expected, 9);
    }
}

// The plans (0, 0), (0, 1) and (1, 0) exceed 40 bytes.
static void test_agents_grid_search__full_skips_infeasible(void **state) {
    (void)state;
    static const double losses[3][3] = {{0.0}};
    static const uint32_t expected[][2] = {{0, 2}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}};
    for (size_t round = 1; round <= 8; round++) {
        expect_sequence("{\"type\":\"grid_search\",\"mode\":\"full\"}", round, losses, expected, 6);
    }
}

static double toy_optimum(const char *json) {
    struct msc_goal toy_goal;
    struct cJSON *config = NULL;
    uint32_t choices[TRACE_TASKS];
    double loss = NAN;
    struct msc_env *env = trace_open_env(json, &toy_goal, &config);
    double limit = toy_goal.n_bounds > 0 ? toy_goal.bounds[0].max : INFINITY;
    assert_ok(msc_env_toy_optimum(env, limit, choices, &loss));
    msc_env_destroy(env);
    cJSON_Delete(config);
    return loss;
}

static void test_agents_grid_search__per_task_is_optimal_on_sums(void **state) {
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        char env[200];
        snprintf(
            env, sizeof env,
            "{\"tasks\":24,\"choices\":5,\"seed\":%d,\"bounds\":{\"size_bytes\":{\"max\":%d}}}",
            seed, 1000 + 30 * seed);
        struct trace trace;
        struct trace_run run = {.env = env,
                                .agent = "{\"type\":\"grid_search\",\"around\":0}",
                                .round = 16,
                                .max_trials = 1000};
        trace_make(&trace, &run);
        assert_true(trace.is_over);
        assert_int_equal(trace.n, 1 + 24 * 4 + 1);
        assert_int_equal(trace.best.id, trace.n - 1);
        assert_float_equal(trace.best.outcome.objectives[0], toy_optimum(env), 1e-9);
        trace_finish(&trace);
    }
}

// The bound is on a measured metric, and the objective is an exact metric. The measured metric is
// assumed to be additive.
static void test_agents_grid_search__per_task_keeps_measured_bounds(void **state) {
    (void)state;
    static const char env[] = "{\"tasks\":5,\"choices\":4,\"objectives\":[\"size_bytes\"],"
                              "\"bounds\":{\"distill_loss\":{\"max\":1.0}}}";
    struct trace part;
    struct trace full;
    struct trace_run run = {.env = env,
                            .agent = "{\"type\":\"grid_search\",\"around\":0}",
                            .round = 8,
                            .max_trials = 2000};
    trace_make(&part, &run);
    run.agent = "{\"type\":\"grid_search\",\"mode\":\"full\"}";
    trace_make(&full, &run);
    assert_int_equal(full.n, 1024);
    assert_int_equal(part.entries[part.n - 1].trial.outcome.state, MSC_TRIAL_COMPLETE);
    assert_true(part.entries[part.n - 1].trial.outcome.objectives[0] ==
                full.best.outcome.objectives[0]);
    trace_finish(&part);
    trace_finish(&full);
}

// Tells a loss and an accuracy. Only the first plan has an accuracy: the others were eliminated
// early, with estimated losses.
static void tell_raced_out(struct msc_agent *agent, uint32_t choices[], int64_t id, double loss) {
    double measured[] = {loss, id == 0 ? 0.75 : NAN};
    const struct msc_trial trial = {
        .id = id,
        .proposal = {.choices = choices, .parent = -1, .bound = INFINITY},
        .outcome = {.state = id == 0 ? MSC_TRIAL_COMPLETE : MSC_TRIAL_PRUNED,
                    .metrics = measured,
                    .objectives = {loss}}};
    assert_ok(msc_agent_tell(agent, &trial));
}

// If a bound is on a metric that early elimination leaves unknown, the plan is still made from
// the estimates.
static void test_agents_grid_search__per_task_raced_under_a_bound(void **state) {
    static const struct msc_metric measured[] = {{.name = "distill_loss", .unit = ""},
                                                 {.name = "accuracy", .unit = ""}};
    const struct msc_space raced = {
        .n_tasks = 2, .tasks = tasks, .n_metrics = 2, .metrics = measured};
    const struct msc_goal bounded = {.n_objectives = 1,
                                     .objectives = {{.metric = 0}},
                                     .n_bounds = 1,
                                     .bounds = {{.metric = 1, .min = 0.5, .max = INFINITY}}};
    static const double losses[3][3] = {{4, 3, 5}, {6, 0, 0}, {2, 0, 0}};
    struct msc_agent *agent = NULL;
    uint32_t choices[8][2];
    struct msc_proposal proposals[8];
    size_t n;
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        proposals[i].choices = choices[i];
    }
    assert_ok(msc_agent_create(&agent, msc_agent_find("grid_search"), NULL, &raced, &bounded, 0));
    assert_ok(msc_agent_ask(agent, proposals, 8, &n));
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) {
        tell_raced_out(agent, choices[i], (int64_t)i, losses[choices[i][0]][choices[i][1]]);
    }
    assert_ok(msc_agent_ask(agent, proposals, 8, &n));
    assert_int_equal(n, 1);
    assert_true(choices[0][0] == 2 && choices[0][1] == 1);
    msc_agent_destroy(agent);
}

static void test_agents_grid_search__full_finds_the_optimum(void **state) {
    (void)state;
    static const char *const envs[] = {
        "{\"tasks\":6,\"choices\":3,\"interaction\":1,\"seed\":4}",
        "{\"tasks\":6,\"choices\":3,\"interaction\":1,\"bounds\":{\"size_bytes\":{\"max\":300}}}",
    };
    for (size_t i = 0; i < 2; i++) {
        struct trace trace;
        struct trace_run run = {.env = envs[i],
                                .agent = "{\"type\":\"grid_search\",\"mode\":\"full\"}",
                                .round = 7,
                                .max_trials = 2000};
        trace_make(&trace, &run);
        assert_true(trace.is_over);
        assert_true(i > 0 ? trace.n < 729 : trace.n == 729);
        assert_float_equal(trace.best.outcome.objectives[0], toy_optimum(envs[i]), 1e-12);
        trace_finish(&trace);
    }
}

static void test_agents_grid_search__greedy_comes_near_the_optimum(void **state) {
    (void)state;
    for (int seed = 0; seed < 10; seed++) {
        char env[200];
        snprintf(env, sizeof env,
                 "{\"tasks\":24,\"choices\":4,\"seed\":%d,\"bounds\":{\"size_bytes\":"
                 "{\"max\":1500}}}",
                 seed);
        struct trace trace;
        struct trace_run run = {.env = env,
                                .agent = "{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
                                .round = 16,
                                .max_trials = 5000};
        trace_make(&trace, &run);
        assert_true(trace.is_over);
        double best = toy_optimum(env);
        assert_true(trace.best.outcome.objectives[0] >= best - 1e-9);
        assert_true(trace.best.outcome.objectives[0] <= best * 1.1);
        trace_finish(&trace);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_grid_search__greedy_takes_what_was_tried),
        cmocka_unit_test(test_agents_grid_search__greedy_without_a_first_plan),
        cmocka_unit_test(test_agents_grid_search__greedy_is_soon_within_bounds),
        cmocka_unit_test(test_agents_grid_search__per_task_by_hand),
        cmocka_unit_test(test_agents_grid_search__full_skips_infeasible),
        cmocka_unit_test(test_agents_grid_search__per_task_is_optimal_on_sums),
        cmocka_unit_test(test_agents_grid_search__per_task_keeps_measured_bounds),
        cmocka_unit_test(test_agents_grid_search__per_task_raced_under_a_bound),
        cmocka_unit_test(test_agents_grid_search__full_finds_the_optimum),
        cmocka_unit_test(test_agents_grid_search__greedy_comes_near_the_optimum),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
