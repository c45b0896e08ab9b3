// Trials: states, violation of bounds, judging, ordering and Pareto fronts. Expected values are
// worked out by hand or follow the definitions.
#include "env/api/trial.h"

#include "base/rng.h"
#include "base/utf8.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <math.h>
#include <string.h>

enum { LOSS, SIZE, ACCURACY };

static const struct msc_metric metrics[] = {
    [LOSS] = {.name = "loss"},
    [SIZE] = {.name = "size", .is_exact = true},
    [ACCURACY] = {.name = "accuracy", .is_maximised = true},
};
static const char *const labels[] = {"8", "4"};
static const uint32_t order[] = {0, 1};
static const double bytes[] = {80, 40};
static const struct msc_task tasks[] = {
    {.name = "t", .n_choices = 2, .labels = labels, .most_expensive_first = order},
};
static const struct msc_cost_factor factors[] = {{.task = 0, .by_choice = bytes}};
static const struct msc_cost_term terms[] = {{.scale = 1, .n_factors = 1, .factors = factors}};
static const struct msc_cost costs[] = {{.metric = "size", .n_terms = 1, .terms = terms}};
static const struct msc_space space = {
    .n_tasks = 1,
    .tasks = tasks,
    .n_metrics = 3,
    .metrics = metrics,
    .n_costs = 1,
    .costs = costs,
};

static struct msc_goal two_bounds(void) {
    return (struct msc_goal){
        .n_objectives = 2,
        .objectives = {{.metric = LOSS}, {.metric = ACCURACY, .is_maximised = true}},
        .n_bounds = 2,
        .bounds = {{.metric = SIZE, .min = -INFINITY, .max = 50},
                   {.metric = ACCURACY, .min = 0.8, .max = INFINITY}},
    };
}

static void test_env_trial__state_names(void **state) {
    (void)state;
    for (int i = 0; i < MSC_TRIAL_STATE_COUNT; i++) {
        enum msc_trial_state parsed;
        assert_true(msc_trial_state_parse(&parsed, msc_trial_state_name((enum msc_trial_state)i)));
        assert_int_equal(parsed, i);
    }
    enum msc_trial_state parsed;
    assert_false(msc_trial_state_parse(&parsed, "done"));
}

// If 50 bytes are allowed, 80 bytes violate the bound by 30/50. If an accuracy of 0.8 is required,
// 0.6 violates it by 0.2/0.8. For a limit of 0, the excess itself is the violation.
static void test_env_trial__violation(void **state) {
    (void)state;
    struct msc_goal goal = two_bounds();
    const double metrics_of_point[] = {0.5, 80, 0.6};
    assert_float_equal(msc_goal_violation(&goal, metrics_of_point), 0.6 + 0.25, 1e-12);
    const uint32_t expensive[] = {0};
    const uint32_t cheap[] = {1};
    assert_float_equal(msc_goal_exact_violation(&goal, &space, expensive), 0.6, 1e-12);
    assert_true(msc_goal_exact_violation(&goal, &space, cheap) == 0.0);
    const double at_the_limits[] = {0.5, 50, 0.8};
    assert_true(msc_goal_violation(&goal, at_the_limits) == 0.0);
    const double unknown[] = {NAN, NAN, NAN};
    assert_true(msc_goal_violation(&goal, unknown) == 0.0);
    goal.bounds[0].max = 0;
    assert_float_equal(msc_goal_violation(&goal, metrics_of_point), 80 + 0.25, 1e-12);
}

static struct msc_outcome judged(struct trial_room *room, const struct msc_goal *goal, double loss,
                                 double size, double accuracy) {
    const uint32_t expensive = 0;
    struct msc_trial *trial = trial_make(room, 0, &expensive, 1);
    room->metrics[LOSS] = loss;
    room->metrics[SIZE] = size;
    room->metrics[ACCURACY] = accuracy;
    msc_goal_judge(goal, &space, &trial->outcome);
    return trial->outcome;
}

static void test_env_trial__judge(void **state) {
    (void)state;
    struct trial_room room;
    struct msc_goal goal = two_bounds();
    struct msc_outcome good = judged(&room, &goal, 0.5, 40, 0.9);
    assert_int_equal(good.state, MSC_TRIAL_COMPLETE);
    assert_true(good.objectives[0] == 0.5 && good.objectives[1] == -0.9 && good.violation == 0.0);
    struct msc_outcome large = judged(&room, &goal, 0.5, 75, 0.9);
    assert_int_equal(large.state, MSC_TRIAL_INFEASIBLE);
    assert_true(large.violation == 0.5);
    struct msc_outcome broken = judged(&room, &goal, NAN, 75, 0.9);
    assert_int_equal(broken.state, MSC_TRIAL_FAILED);
    assert_int_equal(broken.cause, MSC_CAUSE_TRIAL);
    assert_string_equal(broken.reason, "loss is not a number");
    assert_string_equal(judged(&room, &goal, INFINITY, 40, 0.9).reason, "loss is infinite");
    goal.n_objectives = 1;
    assert_string_equal(judged(&room, &goal, 0.5, 40, NAN).reason, "accuracy is not a number");
}

static void test_env_trial__judge_keeps_other_states(void **state) {
    (void)state;
    struct msc_goal goal = two_bounds();
    struct trial_room room;
    const uint32_t expensive = 0;
    struct msc_outcome *outcome = &trial_make(&room, 0, &expensive, 1)->outcome;
    outcome->state = MSC_TRIAL_INFEASIBLE;
    outcome->metrics[SIZE] = 75;
    msc_goal_judge(&goal, &space, outcome);
    assert_int_equal(outcome->state, MSC_TRIAL_INFEASIBLE);
    assert_true(outcome->violation == 0.5 && isnan(outcome->objectives[0]));
    outcome->state = MSC_TRIAL_PRUNED;
    outcome->metrics[SIZE] = 40;
    msc_goal_judge(&goal, &space, outcome);
    assert_int_equal(outcome->state, MSC_TRIAL_PRUNED);
}

// A trial eliminated early is used as if its estimate had been measured. Trials that were stopped
// by their own bound are not used, and neither are trials that lack a bounded metric.
static void test_env_trial__learns_of_raced_trials(void **state) {
    (void)state;
    struct msc_goal goal = two_bounds();
    struct trial_room room;
    const uint32_t cheap = 1;
    struct msc_trial *trial = trial_make(&room, 0, &cheap, 1);
    goal.n_objectives = goal.n_bounds = 1;
    trial->outcome.state = MSC_TRIAL_PRUNED;
    trial->outcome.metrics[LOSS] = 0.25;
    trial->outcome.metrics[SIZE] = 40;
    trial->outcome.objectives[0] = 0.75;
    assert_true(msc_goal_is_estimate(&goal, trial));
    struct msc_outcome learnt = msc_goal_learn(&goal, trial);
    assert_int_equal(learnt.state, MSC_TRIAL_COMPLETE);
    assert_true(learnt.objectives[0] == 0.75);
    trial->outcome.violation = 0.5;
    assert_int_equal(msc_goal_learn(&goal, trial).state, MSC_TRIAL_INFEASIBLE);
    goal.n_bounds = 2; // the second bound is on the accuracy, which is not known
    assert_int_equal(msc_goal_learn(&goal, trial).state, MSC_TRIAL_PRUNED);
    goal.n_bounds = 1;
    trial->proposal.bound = 0.2;
    assert_false(msc_goal_is_estimate(&goal, trial));
    assert_int_equal(msc_goal_learn(&goal, trial).state, MSC_TRIAL_PRUNED);
    trial->proposal.bound = 0.25;
    assert_true(msc_goal_is_estimate(&goal, trial));
    trial->outcome.state = MSC_TRIAL_FAILED;
    assert_int_equal(msc_goal_learn(&goal, trial).state, MSC_TRIAL_FAILED);
}

// Beginning a trial clears earlier results but keeps its arrays. The trial's costs are the costs of
// its choices.
static void test_env_trial__begins(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    struct msc_trial trial;
    assert_ok(msc_trial_init(&trial, &arena, &space));
    assert_true(trial.id == -1 && trial.proposal.parent == -1 && isinf(trial.proposal.bound));
    assert_int_equal(trial.outcome.state, MSC_TRIAL_COMPLETE);
    assert_true(isnan(trial.outcome.metrics[LOSS]) && isnan(trial.outcome.metrics[ACCURACY]));
    trial.proposal.choices[0] = 1;
    trial.outcome.metrics[LOSS] = 0.5;
    trial.outcome.violation = 3;
    trial.outcome.time_us = 7;
    msc_outcome_fail(&trial.outcome, MSC_CAUSE_ENVIRONMENT, "the %s is gone", "device");
    assert_int_equal(trial.outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(trial.outcome.cause, MSC_CAUSE_ENVIRONMENT);
    assert_string_equal(trial.outcome.reason, "the device is gone");
    msc_trial_begin(&trial, &space);
    assert_int_equal(trial.outcome.state, MSC_TRIAL_COMPLETE);
    assert_int_equal(trial.outcome.cause, MSC_CAUSE_NONE);
    assert_true(isnan(trial.outcome.metrics[LOSS]) && trial.outcome.metrics[SIZE] == 40);
    assert_true(trial.outcome.violation == 0 && trial.outcome.time_us == 0);
    assert_string_equal(trial.outcome.reason, "");
    char text[3 * MSC_REASON_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    msc_outcome_prune(&trial.outcome, "%s", text);
    assert_int_equal(trial.outcome.state, MSC_TRIAL_PRUNED);
    assert_int_equal(strlen(trial.outcome.reason), MSC_REASON_BYTES - 1);
    msc_arena_finish(&arena);
}

// "\xc3\xbc" is one character.
static void check_reason(const char *expected, size_t n_before, const char *text) {
    char long_text[3 * MSC_REASON_BYTES] = "";
    struct trial_room room;
    const uint32_t expensive = 0;
    struct msc_outcome *outcome = &trial_make(&room, 0, &expensive, 1)->outcome;
    memset(long_text, 'x', n_before);
    for (size_t n = n_before; n + strlen(text) < sizeof long_text; n += strlen(text)) {
        memcpy(long_text + n, text, strlen(text) + 1);
    }
    msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "%s", long_text);
    assert_int_equal(msc_utf8_length(outcome->reason, strlen(outcome->reason)),
                     strlen(outcome->reason));
    assert_true(strlen(outcome->reason) < MSC_REASON_BYTES);
    assert_memory_equal(outcome->reason + n_before, expected, strlen(expected));
    struct msc_outcome pruned = {.reason = room.reason};
    msc_outcome_prune(&pruned, "%s", long_text);
    assert_memory_equal(pruned.reason + n_before, expected, strlen(expected));
}

static void test_env_trial__reasons_are_lines_of_utf8(void **state) {
    (void)state;
    check_reason("\xc3\xbc\xc3\xbc\xc3\xbc", 0, "\xc3\xbc");
    for (size_t n = MSC_REASON_BYTES - 6; n < MSC_REASON_BYTES + 8; n++) {
        check_reason("", n, "\xc3\xbc");
        check_reason("", n, "\xe2\x82\xac");
        check_reason("", n, "\xf0\x9f\x98\x80");
    }
    check_reason("\xf0\x9f\x98\x80", MSC_REASON_BYTES - 5, "\xf0\x9f\x98\x80");
    check_reason("two\\nlines\\r\\n", 0, "two\nlines\r\n");
    check_reason("gr\\xfcn", 0, "gr\xfcn");
    check_reason("tab\\tand \\x1b[2J", 0, "tab\tand \x1b[2J");
}

static struct msc_outcome outcome_of(enum msc_trial_state state, double objective,
                                     double violation) {
    return (struct msc_outcome){.state = state, .objectives = {objective}, .violation = violation};
}

static void test_env_trial__order(void **state) {
    (void)state;
    // From the best to the worst; ids break ties.
    const struct msc_trial sorted[] = {
        {.id = 9, .outcome = outcome_of(MSC_TRIAL_COMPLETE, 0.1, 0)},
        {.id = 3, .outcome = outcome_of(MSC_TRIAL_COMPLETE, 0.2, 0)},
        {.id = 4, .outcome = outcome_of(MSC_TRIAL_COMPLETE, 0.2, 0)},
        {.id = 8, .outcome = outcome_of(MSC_TRIAL_INFEASIBLE, 0.0, 0.1)},
        {.id = 1, .outcome = outcome_of(MSC_TRIAL_INFEASIBLE, NAN, 0.3)},
        {.id = 2, .outcome = outcome_of(MSC_TRIAL_PRUNED, 0.0, 0)},
        {.id = 5, .outcome = outcome_of(MSC_TRIAL_FAILED, NAN, 0)},
    };
    size_t n = sizeof sorted / sizeof sorted[0];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            int order_found = msc_trial_compare(&sorted[i], &sorted[j]);
            assert_int_equal((order_found > 0) - (order_found < 0), (i > j) - (i < j));
        }
    }
}

static void test_env_trial__goal_check(void **state) {
    (void)state;
    struct msc_goal goal = two_bounds();
    assert_ok(msc_goal_check(&goal, &space));
    goal.bounds[0].max = 39;
    assert_int_equal(msc_goal_check(&goal, &space), MSC_E_INVALID);
    assert_message("bound size: no choice can meet max 39; the reachable minimum is 40");
    goal.bounds[0] = (struct msc_bound){.metric = SIZE, .min = 81, .max = INFINITY};
    assert_int_equal(msc_goal_check(&goal, &space), MSC_E_INVALID);
    assert_message("bound size: no choice can meet min 81; the reachable maximum is 80");
    goal.bounds[0] = (struct msc_bound){.metric = SIZE, .min = 60, .max = 50};
    assert_int_equal(msc_goal_check(&goal, &space), MSC_E_INVALID);
    assert_message("min 60 is above max 50");
    goal.bounds[0] = (struct msc_bound){.metric = 3, .max = 1};
    assert_int_equal(msc_goal_check(&goal, &space), MSC_E_INVALID);
    goal = two_bounds();
    goal.n_objectives = 0;
    assert_int_equal(msc_goal_check(&goal, &space), MSC_E_INVALID);
    assert_message("0 objectives");
}

// Fronts by hand: (1, 4), (2, 2), (4, 1); then (2, 5), (3, 3), (4, 2); then (5, 5). Equal points
// are in the same front.
static void test_env_trial__pareto_by_hand(void **state) {
    (void)state;
    static const double points[][2] = {{5, 5}, {2, 2}, {3, 3}, {1, 4}, {4, 1},
                                       {4, 2}, {2, 5}, {2, 2}, {0, 0}};
    static const size_t expected[] = {2, 0, 1, 0, 0, 1, 1, 0, SIZE_MAX};
    struct msc_outcome outcomes[9];
    const struct msc_outcome *pointers[9];
    size_t ranks[9];
    for (size_t i = 0; i < 9; i++) {
        outcomes[i] =
            outcome_of(i < 8 ? MSC_TRIAL_COMPLETE : MSC_TRIAL_INFEASIBLE, points[i][0], 0);
        outcomes[i].objectives[1] = points[i][1];
        pointers[i] = &outcomes[i];
    }
    assert_ok(msc_pareto_rank(ranks, pointers, 9, 2));
    assert_memory_equal(ranks, expected, sizeof expected);
    assert_true(msc_outcome_dominates(&outcomes[1], &outcomes[2], 2));
    assert_false(msc_outcome_dominates(&outcomes[1], &outcomes[7], 2));
    assert_false(msc_outcome_dominates(&outcomes[3], &outcomes[4], 2));
    assert_ok(msc_pareto_rank(ranks, pointers, 0, 2));
    // The front, ordered by the first objective, with the first of two equal points.
    static const size_t expected_front[] = {3, 1, 4};
    assert_int_equal(msc_pareto_front(ranks, pointers, 9, 2), 3);
    assert_memory_equal(ranks, expected_front, sizeof expected_front);
    assert_int_equal(msc_pareto_front(ranks, pointers, 0, 2), 0);
}

// By definition: a front consists of the remaining points that no remaining point dominates.
static void peel(size_t ranks[], const struct msc_outcome *const outcomes[], size_t n, size_t m) {
    size_t n_left = n;
    for (size_t i = 0; i < n; i++) {
        ranks[i] = SIZE_MAX;
    }
    for (size_t rank = 0; n_left > 0; rank++) {
        for (size_t i = 0; i < n; i++) {
            bool is_dominated = false;
            for (size_t j = 0; j < n; j++) {
                is_dominated = is_dominated || ((ranks[j] == SIZE_MAX || ranks[j] == rank) &&
                                                msc_outcome_dominates(outcomes[j], outcomes[i], m));
            }
            if (ranks[i] == SIZE_MAX && !is_dominated) {
                ranks[i] = rank;
                n_left--;
            }
        }
    }
}

// The front has the points of rank 0 in lexicographic order. Equal points are listed once, with the
// first index.
static void check_front(const struct msc_outcome *const outcomes[], const size_t ranks[], size_t n,
                        size_t m) {
    size_t front[64];
    size_t n_distinct = 0;
    size_t n_front = msc_pareto_front(front, outcomes, n, m);
    for (size_t i = 0; i < n; i++) {
        bool is_first = ranks[i] == 0;
        for (size_t j = 0; j < i; j++) {
            is_first = is_first && memcmp(outcomes[i]->objectives, outcomes[j]->objectives,
                                          m * sizeof(double)) != 0;
        }
        size_t at = 0;
        while (at < n_front && front[at] != i) {
            at++;
        }
        assert_int_equal(at < n_front, is_first);
        n_distinct += is_first;
    }
    assert_int_equal(n_front, n_distinct);
    for (size_t i = 1; i < n_front; i++) {
        assert_true(outcomes[front[i - 1]]->objectives[0] <= outcomes[front[i]]->objectives[0]);
    }
}

static void test_env_trial__pareto_by_definition(void **state) {
    (void)state;
    enum { N = 60 };
    static struct msc_outcome outcomes[N];
    const struct msc_outcome *pointers[N];
    size_t ranks[N];
    size_t expected[N];
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 1);
    for (int round = 0; round < 60; round++) {
        size_t m = 1 + (size_t)round % MSC_MAX_OBJECTIVES;
        for (size_t i = 0; i < N; i++) {
            outcomes[i] = outcome_of(MSC_TRIAL_COMPLETE, 0, 0);
            for (size_t k = 0; k < m; k++) {
                outcomes[i].objectives[k] = (double)msc_rng_below(&rng, 9); // ties are common
            }
            pointers[i] = &outcomes[i];
        }
        assert_ok(msc_pareto_rank(ranks, pointers, N, m));
        peel(expected, pointers, N, m);
        assert_memory_equal(ranks, expected, sizeof expected);
        check_front(pointers, expected, N, m);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_trial__state_names),
        cmocka_unit_test(test_env_trial__violation),
        cmocka_unit_test(test_env_trial__judge),
        cmocka_unit_test(test_env_trial__judge_keeps_other_states),
        cmocka_unit_test(test_env_trial__learns_of_raced_trials),
        cmocka_unit_test(test_env_trial__begins),
        cmocka_unit_test(test_env_trial__reasons_are_lines_of_utf8),
        cmocka_unit_test(test_env_trial__order),
        cmocka_unit_test(test_env_trial__goal_check),
        cmocka_unit_test(test_env_trial__pareto_by_hand),
        cmocka_unit_test(test_env_trial__pareto_by_definition),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
