// Requirements on every agent. Built-in agents, a program and a shared library run through the same
// cases. All agents in the registry are included automatically.
#include "tests/agents/trace.h"

#include "base/str.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

struct subject {
    char config[512];
    bool stays_feasible; // never proposes a point that exact costs rule out
    bool is_exhaustive;  // goes through a small space completely
};

#define MAX_SUBJECTS 16

static const char small_toy[] = "{\"tasks\":3,\"choices\":4,\"interaction\":0.5}";
static const char bounded_toy[] = "{\"tasks\":12,\"choices\":4,\"interaction\":0.5,"
                                  "\"bounds\":{\"size_ratio\":{\"max\":0.05}}}";
static const char pareto_toy[] = "{\"tasks\":8,\"choices\":3,"
                                 "\"objectives\":[\"distill_loss\",\"size_bytes\"]}";

static void add(struct subject subjects[], size_t *n, const char *config, bool stays_feasible,
                bool is_exhaustive) {
    assert_true(*n < MAX_SUBJECTS);
    struct subject *subject = &subjects[(*n)++];
    snprintf(subject->config, sizeof subject->config, "%s", config);
    subject->stays_feasible = stays_feasible;
    subject->is_exhaustive = is_exhaustive;
}

static size_t list_subjects(struct subject subjects[MAX_SUBJECTS]) {
    static const struct {
        const char *name;
        bool stays_feasible, is_exhaustive;
    } known[] = {{"auto", false, true}, {"random", true, true}, {"evolutionary", true, true}};
    size_t n = 0;
    const struct msc_agent_def *const *list = msc_agent_list();
    for (size_t i = 0; list[i]; i++) {
        char config[512];
        bool stays_feasible = false;
        bool is_exhaustive = false;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
            if (strcmp(known[k].name, list[i]->name) == 0) {
                stays_feasible = known[k].stays_feasible;
                is_exhaustive = known[k].is_exhaustive;
            }
        }
        snprintf(config, sizeof config, "{\"type\":\"%s\"}", list[i]->name);
        add(subjects, &n, config, stays_feasible, is_exhaustive);
    }
    add(subjects, &n, "{\"type\":\"grid_search\",\"mode\":\"greedy\"}", false, false);
    add(subjects, &n, "{\"type\":\"grid_search\",\"mode\":\"greedy\",\"changes\":\"all\"}", false,
        false);
    add(subjects, &n, "{\"type\":\"grid_search\",\"mode\":\"full\"}", true, true);
    add(subjects, &n, "{\"type\":\"grid_search\",\"mode\":\"greedy\",\"bounded\":false}", false,
        false);
    add(subjects, &n, "{\"type\":\"evolutionary\",\"bounded\":true}", true, true);
    add(subjects, &n, "{\"type\":\"evolutionary\",\"population\":4,\"crossover\":0.5}", true, true);
    char config[512];
    snprintf(config, sizeof config, "{\"type\":\"library\",\"path\":\"%s\",\"restart\":50}",
             MSC_EXAMPLE_LIBRARY);
    add(subjects, &n, config, false, false);
#ifdef MSC_PYTHON
    snprintf(config, sizeof config,
             "{\"type\":\"process\",\"command\":[\"%s\",\"%s\"],\"params\":{\"tries\":2000}}",
             MSC_PYTHON, "../examples/agents/random_agent.py");
    add(subjects, &n, config, true, true);
#endif
    return n;
}

static void for_each(void (*check)(const struct subject *subject)) {
    static struct subject subjects[MAX_SUBJECTS];
    size_t n = list_subjects(subjects);
    for (size_t i = 0; i < n; i++) {
        print_message("  %s\n", subjects[i].config);
        check(&subjects[i]);
    }
}

static void check_same_seed(const struct subject *subject) {
    struct trace first;
    struct trace second;
    struct trace_run run = {.env = bounded_toy,
                            .agent = subject->config,
                            .seed = 7,
                            .round = 8,
                            .max_trials = 150,
                            .tell_baselines = true};
    trace_make(&first, &run);
    trace_make(&second, &run);
    assert_true(first.n > 0);
    trace_assert_same(&first, &second);
    trace_finish(&first);
    trace_finish(&second);
}

static void test_agents_conformance__same_seed_same_trace(void **state) {
    (void)state;
    for_each(check_same_seed);
}

// Assembling the plan and asking for remarks before every call of `ask` does not change the
// proposals.
static void check_assembling(const struct subject *subject) {
    const char *const envs[] = {small_toy, bounded_toy, pareto_toy};
    for (size_t i = 0; i < 3; i++) {
        struct trace without;
        struct trace with;
        struct trace_run run = {.env = envs[i],
                                .agent = subject->config,
                                .seed = 5,
                                .round = 4,
                                .max_trials = 150,
                                .tell_baselines = true};
        trace_make(&without, &run);
        run.assembles = true;
        trace_make(&with, &run);
        trace_assert_same(&without, &with);
        trace_finish(&without);
        trace_finish(&with);
    }
}

static void test_agents_conformance__assembling_changes_nothing(void **state) {
    (void)state;
    for_each(check_assembling);
}

static void check_replay(const struct subject *subject) {
    static const size_t rounds[] = {1, 3, 8, 64};
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        struct trace whole;
        struct trace resumed;
        struct trace_run run = {.env = bounded_toy,
                                .agent = subject->config,
                                .seed = 3,
                                .round = rounds[i],
                                .max_trials = 130,
                                .tell_baselines = true};
        trace_make(&whole, &run);
        run.replayed = &whole;
        run.n_replayed = whole.n * 2 / 5 + 1; // the replayed part ends in the middle of a round
        trace_make(&resumed, &run);
        trace_assert_same(&whole, &resumed);
        trace_finish(&whole);
        trace_finish(&resumed);
    }
}

static void test_agents_conformance__replay_equals_uninterrupted(void **state) {
    (void)state;
    for_each(check_replay);
}

enum { TOY_METRICS = 3 };

static void fail_all(int64_t id, struct msc_outcome *outcome) {
    (void)id;
    for (int i = 0; i < TOY_METRICS; i++) {
        outcome->metrics[i] = NAN;
    }
    outcome->objectives[0] = NAN;
    outcome->violation = 0.0;
    msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "nothing works today");
}

static void mix(int64_t id, struct msc_outcome *outcome) {
    if (id % 3 == 0) {
        fail_all(id, outcome);
    } else if (id % 5 == 0) {
        outcome->state = MSC_TRIAL_PRUNED;
    } else if (id % 7 == 0) {
        outcome->state = MSC_TRIAL_INFEASIBLE;
        outcome->violation = 0.5;
    } else if (id % 11 == 0) {
        outcome->objectives[0] = INFINITY;
        outcome->objectives[1] = -INFINITY;
    }
}

static void check_bad_outcomes(const struct subject *subject) {
    void (*const disturbances[])(int64_t, struct msc_outcome *) = {fail_all, mix};
    const char *const envs[] = {small_toy, bounded_toy, pareto_toy};
    for (size_t i = 0; i < 6; i++) {
        struct trace trace;
        struct trace_run run = {.env = envs[i / 2],
                                .agent = subject->config,
                                .round = 8,
                                .max_trials = 150,
                                .tell_baselines = i % 2 == 0,
                                .disturb = disturbances[i % 2],
                                .tell_twice = true};
        trace_make(&trace, &run);
        assert_true(trace.n > 0);
        trace_finish(&trace);
    }
}

static void test_agents_conformance__survives_bad_outcomes(void **state) {
    (void)state;
    for_each(check_bad_outcomes);
}

static void check_feasible(const struct subject *subject) {
    struct trace trace;
    struct trace_run run = {.env = bounded_toy,
                            .agent = subject->config,
                            .round = 8,
                            .max_trials = 300,
                            .tell_baselines = true};
    trace_make(&trace, &run);
    for (size_t i = 0; i < trace.n && subject->stays_feasible; i++) {
        assert_true(trace.entries[i].exact_violation == 0.0);
    }
    assert_true(trace.best.id >= 0);
    assert_int_equal(trace.best.outcome.state, MSC_TRIAL_COMPLETE);
    trace_finish(&trace);
}

static void test_agents_conformance__stays_within_exact_bounds(void **state) {
    (void)state;
    for_each(check_feasible);
}

static void check_exhausts(const struct subject *subject) {
    struct trace trace;
    if (!subject->is_exhaustive) {
        return;
    }
    struct trace_run run = {
        .env = small_toy, .agent = subject->config, .round = 5, .max_trials = 1000};
    trace_make(&trace, &run);
    assert_true(trace.is_over);
    assert_int_equal(trace.n, 64);
    for (size_t i = 0; i < trace.n; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(trace.entries[i].choices, trace.entries[j].choices,
                                    3 * sizeof(uint32_t));
        }
    }
    trace_finish(&trace);
}

static void test_agents_conformance__exhausts_small_spaces(void **state) {
    (void)state;
    for_each(check_exhausts);
}

// The number of trials that an agent reports as left is never too small. If the agent calls it
// exact, it is right.
static void check_left(const struct subject *subject) {
    static const char *const envs[] = {
        small_toy,
        "{\"tasks\":3,\"choices\":4,\"bounds\":{\"size_ratio\":{\"max\":0.06}}}",
        bounded_toy,
    };
    for (size_t i = 0; i < 6; i++) {
        struct trace trace;
        struct trace_run run = {.env = envs[i / 2],
                                .agent = subject->config,
                                .round = i % 2 ? 1 : 5,
                                .max_trials = 150,
                                .tell_baselines = i % 2 == 0};
        trace_make(&trace, &run);
        for (size_t k = 0; k < trace.n; k++) {
            const struct trace_entry *entry = &trace.entries[k];
            double n = (double)(trace.n - k);
            if (entry->is_first) {
                assert_true(entry->left.n >= n);
                assert_true(!trace.is_over || !entry->left.is_exact || entry->left.n == n);
            }
        }
        trace_finish(&trace);
    }
}

static void test_agents_conformance__says_what_is_left(void **state) {
    (void)state;
    for_each(check_left);
}

static void check_single_point(const struct subject *subject) {
    struct trace trace;
    struct trace_run run = {.env = "{\"tasks\":1,\"choices\":1}",
                            .agent = subject->config,
                            .round = 4,
                            .max_trials = 20,
                            .tell_baselines = true};
    trace_make(&trace, &run);
    trace_finish(&trace);
}

static void test_agents_conformance__takes_a_single_point(void **state) {
    (void)state;
    for_each(check_single_point);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_conformance__same_seed_same_trace),
        cmocka_unit_test(test_agents_conformance__replay_equals_uninterrupted),
        cmocka_unit_test(test_agents_conformance__assembling_changes_nothing),
        cmocka_unit_test(test_agents_conformance__survives_bad_outcomes),
        cmocka_unit_test(test_agents_conformance__stays_within_exact_bounds),
        cmocka_unit_test(test_agents_conformance__exhausts_small_spaces),
        cmocka_unit_test(test_agents_conformance__says_what_is_left),
        cmocka_unit_test(test_agents_conformance__takes_a_single_point),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
