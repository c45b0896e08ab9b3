// The evolutionary agent: how close it comes to known optima and fronts. Optima come from the
// toy's own solver.
#include "env/env_toy.h"
#include "tests/agents/trace.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

// The least loss among points with at most `max_size_bytes`; +inf if there is no such point.
static double optimum(struct msc_env *env, double max_size_bytes) {
    uint32_t choices[TRACE_TASKS];
    double loss = INFINITY;
    if (msc_env_toy_optimum(env, max_size_bytes, choices, &loss) != MSC_OK) {
        return INFINITY;
    }
    return loss;
}

// In 2,000 trials of a space of 4^24 points, the agent comes within a tenth of the optimal loss.
// Random trials do not.
static void test_agents_evolutionary__one_objective_under_a_bound(void **state) {
    (void)state;
    for (int seed = 0; seed < 4; seed++) {
        static const char *const agents[] = {"{\"type\":\"evolutionary\"}",
                                             "{\"type\":\"random\"}"};
        char json[200];
        double found[2];
        snprintf(json, sizeof json,
                 "{\"tasks\":24,\"choices\":4,\"seed\":%d,\"interaction\":0.8,\"bounds\":"
                 "{\"size_bytes\":{\"max\":1500}}}",
                 seed);
        for (size_t i = 0; i < 2; i++) {
            struct trace trace;
            struct trace_run run = {.env = json,
                                    .agent = agents[i],
                                    .seed = (uint64_t)seed,
                                    .round = 32,
                                    .max_trials = 2000,
                                    .tell_baselines = true};
            trace_make(&trace, &run);
            assert_int_equal(trace.best.outcome.state, MSC_TRIAL_COMPLETE);
            found[i] = trace.best.outcome.objectives[0];
            trace_finish(&trace);
        }
        struct msc_goal goal;
        struct cJSON *config = NULL;
        struct msc_env *env = trace_open_env(json, &goal, &config);
        double best = optimum(env, 1500);
        msc_env_destroy(env);
        cJSON_Delete(config);
        assert_true(found[0] >= best - 1e-9 && found[0] <= 1.1 * best);
        assert_true(found[1] > 1.3 * best);
    }
}

// The area between the front of (loss, size) points and the corner (worst_loss, worst_size).
static double area(const double losses[], size_t n_sizes, double worst_loss) {
    double sum = 0.0;
    double least = worst_loss;
    for (size_t size = 0; size < n_sizes; size++) {
        least = fmin(least, losses[size]);
        sum += worst_loss - least;
    }
    return sum;
}

// If losses are additive and the agent has observed the loss of every single choice, its first
// proposal is the optimum.
static void test_agents_evolutionary__begins_with_the_plan(void **state) {
    (void)state;
    static const char config[] = "{\"tasks\":6,\"choices\":4,\"interaction\":0,\"seed\":5,"
                                 "\"bounds\":{\"size_bytes\":{\"max\":300}}}";
    struct msc_goal goal;
    struct cJSON *parsed = NULL;
    struct msc_agent *agent = NULL;
    uint32_t choices[6], best[6];
    double least;
    struct msc_env *env = trace_open_env(config, &goal, &parsed);
    const struct msc_space *space = msc_env_space(env);
    assert_ok(msc_agent_create(&agent, msc_agent_find("evolutionary"), NULL, space, &goal, 1));
    for (uint32_t id = 0; id < 24; id++) {
        memset(choices, 0, sizeof choices);
        for (size_t t = 0; t < 6; t++) {
            choices[t] = space->tasks[t].most_expensive_first[0];
        }
        choices[id / 4] = id % 4;
        struct msc_arena arena = {0};
        struct msc_trial room;
        struct msc_trial *trial = &room;
        const struct msc_evaluation evaluation = {.trials = &trial, .n = 1};
        assert_ok(msc_trial_init(trial, &arena, space));
        memcpy(trial->proposal.choices, choices, sizeof choices);
        trial->id = (int64_t)id;
        trial->proposal.probe = true;
        assert_ok(msc_env_evaluate(env, &goal, &evaluation));
        assert_ok(msc_agent_tell(agent, trial));
        msc_arena_finish(&arena);
    }
    struct msc_proposal proposal = {.choices = choices};
    size_t n = 0;
    assert_ok(msc_agent_ask(agent, &proposal, 1, &n));
    assert_int_equal(n, 1);
    assert_ok(msc_env_toy_optimum(env, goal.bounds[0].max, best, &least));
    assert_memory_equal(choices, best, sizeof best);
    msc_agent_destroy(agent);
    msc_env_destroy(env);
    cJSON_Delete(parsed);
}

// In a space of 3^10 points, the front of 2,000 trials covers at least 97 % of the area of the true
// front. The true front is computed size by size.
static void test_agents_evolutionary__front_of_two_objectives(void **state) {
    (void)state;
    static const char json[] = "{\"tasks\":10,\"choices\":3,\"interaction\":0.5,\"objectives\":"
                               "[\"distill_loss\",\"size_bytes\"]}";
    enum { MOST_SIZES = 10 * 64 * 3 + 1 };
    static double truth[MOST_SIZES];
    static double found[MOST_SIZES];
    struct trace trace;
    struct trace_run run = {.env = json,
                            .agent = "{\"type\":\"evolutionary\",\"population\":64}",
                            .round = 32,
                            .max_trials = 2000,
                            .tell_baselines = true};
    struct msc_goal goal;
    struct cJSON *config = NULL;
    struct msc_env *env = trace_open_env(json, &goal, &config);
    double worst = 0.0;
    for (size_t size = 0; size < MOST_SIZES; size++) {
        truth[size] = optimum(env, (double)size);
        found[size] = INFINITY;
        worst = isfinite(truth[size]) ? fmax(worst, truth[size]) : worst;
    }
    trace_make(&trace, &run);
    for (size_t i = 0; i < trace.n; i++) {
        const struct msc_outcome *outcome = &trace.entries[i].trial.outcome;
        size_t size = (size_t)outcome->objectives[1];
        found[size] = fmin(found[size], outcome->objectives[0]);
    }
    double ratio = area(found, MOST_SIZES, worst) / area(truth, MOST_SIZES, worst);
    assert_true(ratio > 0.97 && ratio <= 1.0 + 1e-9);
    trace_finish(&trace);
    msc_env_destroy(env);
    cJSON_Delete(config);
}

// Another seed gives other proposals.
static void test_agents_evolutionary__other_seed_other_trace(void **state) {
    (void)state;
    static const char json[] = "{\"tasks\":24,\"choices\":4}";
    static const char *const agents[] = {"{\"type\":\"evolutionary\"}", "{\"type\":\"random\"}"};
    for (size_t i = 0; i < 2; i++) {
        struct trace a;
        struct trace b;
        struct trace_run run = {
            .env = json, .agent = agents[i], .seed = 1, .round = 8, .max_trials = 64};
        trace_make(&a, &run);
        run.seed = 2;
        trace_make(&b, &run);
        assert_memory_not_equal(a.entries[0].choices, b.entries[0].choices,
                                sizeof a.entries[0].choices);
        trace_finish(&a);
        trace_finish(&b);
    }
}

// Only a few points of a large space meet the bound. Proposals are repaired to meet it, and still
// differ from each other.
static void test_agents_evolutionary__tight_bounds(void **state) {
    (void)state;
    static const char json[] = "{\"tasks\":48,\"choices\":2,\"bounds\":{\"size_ratio\":"
                               "{\"max\":0.034}}}";
    static const char *const agents[] = {"{\"type\":\"evolutionary\"}", "{\"type\":\"random\"}"};
    for (size_t i = 0; i < 2; i++) {
        struct trace trace;
        struct trace_run run = {.env = json, .agent = agents[i], .round = 16, .max_trials = 500};
        trace_make(&trace, &run);
        assert_int_equal(trace.n, 512);
        for (size_t k = 0; k < trace.n; k++) {
            assert_int_equal(trace.entries[k].trial.outcome.state, MSC_TRIAL_COMPLETE);
            for (size_t j = 0; j < k; j++) {
                assert_memory_not_equal(trace.entries[k].choices, trace.entries[j].choices,
                                        sizeof trace.entries[k].choices);
            }
        }
        trace_finish(&trace);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_evolutionary__one_objective_under_a_bound),
        cmocka_unit_test(test_agents_evolutionary__begins_with_the_plan),
        cmocka_unit_test(test_agents_evolutionary__front_of_two_objectives),
        cmocka_unit_test(test_agents_evolutionary__other_seed_other_trace),
        cmocka_unit_test(test_agents_evolutionary__tight_bounds),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
