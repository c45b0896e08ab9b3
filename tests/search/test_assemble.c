// Assembled plans. If the budget ends before the agent has measured everything that its plan needs,
// the last trial is a plan assembled from the results so far. The agent's own proposals do not
// change.
#include "../msc_test.h"
#include "records/record_query.h"
#include "search_fixture.h"

#include <math.h>

// 9 tasks of 3 choices: 19,683 points. Of the three uniform plans, the last two meet the bound.
#define ENV                                                                                        \
    "{\"tasks\":9,\"choices\":3,\"interaction\":0,\"seed\":5,"                                     \
    "\"bounds\":{\"size_ratio\":{\"max\":0.075}}}"
#define N_BASELINES 3
// The trials are the most expensive plan, 2 changes of each of 9 tasks, and the plan that solves
// the knapsack.
#define N_PER_TASK 20

static const char *const agents[] = {
    "{\"type\":\"grid_search\"}",
    "{\"type\":\"grid_search\",\"bounded\":false,\"around\":0}",
    "{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
    "{\"type\":\"sensitivity\"}",
};
enum { N_AGENTS = sizeof agents / sizeof agents[0] };

static struct launch assembling(const struct fixture *f, const char *agent, int64_t trials) {
    return (struct launch){
        .path = f->path, .env = ENV, .agent = agent, .options = LAUNCH_TRIALS(trials)};
}

struct found {
    size_t n;
    struct msc_record_line last;
    int64_t best;
    double best_loss, least_uniform;
};

static void search_with(struct found *out, struct launch one) {
    struct search_run run;
    struct msc_record_line best;
    run_launch(&run, &one);
    assert_ok(run.status);
    const struct msc_record *record = run.result.record;
    out->n = msc_record_n_trials(record);
    out->last = msc_record_trial(record, out->n - 1);
    assert_true(msc_record_best(&best, record));
    out->best = best.trial.id;
    out->best_loss = best.trial.outcome.objectives[0];
    out->least_uniform = INFINITY;
    for (size_t i = 0; i < N_BASELINES; i++) {
        const struct msc_record_line uniform = msc_record_trial(record, i);
        if (uniform.trial.outcome.state == MSC_TRIAL_COMPLETE) {
            out->least_uniform = fmin(out->least_uniform, uniform.trial.outcome.objectives[0]);
        }
    }
    run_finish(&run);
}

// Least loss within the bounds, by exhaustive search.
static double optimum(const struct fixture *f) {
    struct found all;
    search_with(&all, assembling(f, "{\"type\":\"grid_search\",\"mode\":\"full\"}", -1));
    remove_record(f->path);
    return all.best_loss;
}

// Without interactions the losses of single choices add up. Once all are known, the assembled plan
// is the optimum; before that it beats the best uniform plan by at least 10 %.
static void test_search_assemble__last_trial(void **state) {
    const struct fixture *f = *state;
    double least = optimum(f);
    for (int64_t trials = 2; trials < N_PER_TASK; trials++) {
        struct found found;
        search_with(&found, assembling(f, agents[0], trials));
        remove_record(f->path);
        assert_int_equal(found.n, N_BASELINES + trials);
        assert_true(found.last.is_assembled && found.last.trial.id == found.best);
        assert_int_equal(found.last.trial.outcome.state, MSC_TRIAL_COMPLETE);
        assert_true(found.best_loss < 0.9 * found.least_uniform);
        assert_true(found.best_loss >= least);
        assert_true(trials < N_PER_TASK - 1 || fabs(found.best_loss - least) <= 1e-12 * least);
    }
    // If the budget is large enough for the agent's own plan, nothing is assembled.
    struct found whole;
    search_with(&whole, assembling(f, agents[1], N_PER_TASK));
    assert_int_equal(whole.n, N_BASELINES + N_PER_TASK);
    assert_false(whole.last.is_assembled);
    assert_true(fabs(whole.best_loss - least) <= 1e-12 * least);
}

// Every agent that assembles beats the uniform plans within 6 trials.
static void test_search_assemble__every_agent(void **state) {
    const struct fixture *f = *state;
    for (size_t i = 0; i < N_AGENTS; i++) {
        struct found found;
        search_with(&found, assembling(f, agents[i], 6));
        remove_record(f->path);
        assert_int_equal(found.n, N_BASELINES + 6);
        assert_true(found.last.is_assembled);
        assert_true(found.best_loss < found.least_uniform);
    }
}

// Extending the budget step by step gives the same record as one launch with the larger budget.
static void test_search_assemble__more_budget(void **state) {
    static const int64_t steps[] = {3, 7, 8, 11, 16, 17, 30, 45};
    const struct fixture *f = *state;
    char straight[FIXTURE_PATH_BYTES];
    fixture_join(straight, f, "straight.jsonl");
    for (size_t i = 0; i < N_AGENTS; i++) {
        size_t n_assembled = 0;
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            struct found found, again;
            struct launch one = assembling(f, agents[i], steps[k]);
            search_with(&found, one);
            n_assembled += found.last.is_assembled;
            search_with(&again, one);
            assert_int_equal(again.n, found.n); // nothing is evaluated again
            one.path = straight;
            search_with(&again, one);
            assert_same_record(f->path, straight);
            assert_true(again.last.is_assembled == found.last.is_assembled);
            assert_true(!again.last.is_assembled || again.last.trial.outcome.objectives[0] ==
                                                        found.last.trial.outcome.objectives[0]);
            remove_record(straight);
        }
        assert_true(n_assembled >= 3);
        remove_record(f->path);
    }
}

// A record that was cut after any line is continued to the same end.
static void test_search_assemble__goes_on(void **state) {
    const struct fixture *f = *state;
    for (size_t i = 0; i < N_AGENTS; i++) {
        struct found whole;
        struct launch one = assembling(f, agents[i], 13);
        search_with(&whole, one);
        for (size_t n = 0; n < whole.n; n++) {
            struct found again;
            cut_record(f->path, n);
            search_with(&again, one);
            assert_int_equal(again.n, whole.n);
            assert_true(again.last.is_assembled == whole.last.is_assembled);
            assert_true(again.best == whole.best && again.best_loss == whole.best_loss);
        }
        remove_record(f->path);
    }
}

// A plan is also assembled if the budget is a time. If the agent ends by itself, nothing is
// assembled.
static void test_search_assemble__other_ends(void **state) {
    const struct fixture *f = *state;
    struct found found;
    struct launch one = assembling(f, agents[0], -1);
    one.env = "{\"tasks\":9,\"choices\":3,\"delay_us\":20000,"
              "\"bounds\":{\"size_ratio\":{\"max\":0.075}}}";
    one.options.budget.seconds = 0.15;
    search_with(&found, one);
    assert_true(found.last.is_assembled);
    size_t n = found.n;
    search_with(&found, one);
    assert_int_equal(found.n, n);
    remove_record(f->path);
    search_with(&found, assembling(f, agents[0], -1));
    assert_false(found.last.is_assembled);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_assemble__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(last_trial), CASE(every_agent), CASE(more_budget), CASE(goes_on), CASE(other_ends),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
