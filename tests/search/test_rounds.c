// How a round handles proposals: repeats, bounds, probes, and what the agent observes. A scripted
// agent makes the proposals; the losses are sums of the choices.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "fake_env.h"
#include "records/record_query.h"
#include "search_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct scripted_run {
    char log[FIXTURE_PATH_BYTES];
    char agent[FIXTURE_PATH_BYTES * 2 + 4096];
    struct launch launch;
    struct search_run run;
};

static int64_t best_id(const struct msc_record *record) {
    struct msc_record_line best;
    assert_true(msc_record_best(&best, record));
    return best.trial.id;
}

static void prepare(struct scripted_run *s, const struct fixture *f, const char *env,
                    const char *script) {
    fixture_join(s->log, f, "told.txt");
    snprintf(s->agent, sizeof s->agent,
             "{\"type\":\"library\",\"path\":\"%s\",\"log\":\"%s\",\"script\":%s}",
             MSC_SCRIPTED_AGENT, s->log, script);
    s->launch = (struct launch){.path = f->path,
                                .env = env,
                                .def = &msc_env_fake,
                                .agent = s->agent,
                                .options = LAUNCH_TRIALS(-1)};
    fake_reset();
}

static void run_scripted(struct scripted_run *s) {
    unlink(s->log);
    run_launch(&s->run, &s->launch);
    assert_ok(s->run.status);
}

static struct msc_record_line line(const struct scripted_run *s, size_t id) {
    return msc_record_trial(s->run.result.record, id);
}

static void assert_told(const struct scripted_run *s, const char *expected) {
    char *text = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&text, &n_bytes, s->log));
    assert_string_equal(text, expected);
    msc_free(text);
}

static void test_search_rounds__repeats(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{}",
            "[[{\"choices\":[0,1]},{\"choices\":[0,1]},{\"choices\":[1,1]}],"
            " [{\"choices\":[1,1]},{\"choices\":[2,2],\"parent\":2}]]");
    run_scripted(&s);
    assert_int_equal(s.run.result.end, MSC_SEARCH_END_AGENT);
    assert_int_equal(fake_control.n_trials, 3);
    const int64_t repeats[] = {-1, 0, -1, 2, -1};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(line(&s, i).repeat_of, repeats[i]);
        assert_int_equal(line(&s, i).trial.outcome.state, MSC_TRIAL_COMPLETE);
    }
    assert_true(line(&s, 3).trial.outcome.metrics[0] == 2.0);
    assert_int_equal(line(&s, 4).trial.proposal.parent, 2);
    assert_told(&s, "ask\ntell 0 complete 1\ntell 1 complete 1\ntell 2 complete 2\n"
                    "ask\ntell 3 complete 2\ntell 4 complete 4\nask\n");
    run_finish(&s.run);
}

// A pruned result is reused only under the same bound or a tighter one. A complete result is reused
// under any bound.
static void test_search_rounds__bounds(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{}",
            "[[{\"choices\":[3,3],\"bound\":4}],"
            " [{\"choices\":[3,3],\"bound\":4}],"
            " [{\"choices\":[3,3],\"bound\":2}],"
            " [{\"choices\":[3,3],\"bound\":5}],"
            " [{\"choices\":[3,3]}],"
            " [{\"choices\":[3,3],\"bound\":1}]]");
    run_scripted(&s);
    const struct {
        int64_t repeat_of;
        enum msc_trial_state state;
    } expected[] = {
        {-1, MSC_TRIAL_PRUNED}, {0, MSC_TRIAL_PRUNED},    {0, MSC_TRIAL_PRUNED},
        {-1, MSC_TRIAL_PRUNED}, {-1, MSC_TRIAL_COMPLETE}, {4, MSC_TRIAL_COMPLETE},
    };
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(line(&s, i).repeat_of, expected[i].repeat_of);
        assert_int_equal(line(&s, i).trial.outcome.state, expected[i].state);
    }
    assert_string_equal(line(&s, 1).trial.outcome.reason, "over its bound");
    run_finish(&s.run);
}

// A point that was only pruned may be proposed again, so it does not count towards exhausting the
// space.
static void test_search_rounds__stopped_points_do_not_exhaust(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{\"tasks\":1,\"choices\":2}",
            "[[{\"choices\":[0]},{\"choices\":[1],\"bound\":0.5}],"
            " [{\"choices\":[1],\"bound\":0.25},{\"choices\":[1]}],"
            " [{\"choices\":[0]}]]");
    for (int launch = 0; launch < 2; launch++) {
        run_scripted(&s);
        assert_int_equal(s.run.result.end, MSC_SEARCH_END_EXHAUSTED);
        assert_int_equal(msc_record_n_trials(s.run.result.record), 4);
        assert_int_equal(line(&s, 1).trial.outcome.state, MSC_TRIAL_PRUNED);
        assert_int_equal(line(&s, 2).repeat_of, 1);
        assert_int_equal(line(&s, 3).trial.outcome.state, MSC_TRIAL_COMPLETE);
        assert_int_equal(best_id(s.run.result.record), 0);
        run_finish(&s.run);
    }
}

// Within a round, only the bounds decide which results are reused. So a round that was cut
// continues unchanged.
static void test_search_rounds__bounds_within_a_round(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct scripted_run s;
    fixture_join(whole, f, "whole.jsonl");
    prepare(&s, f, "{}",
            "[[{\"choices\":[1,1],\"bound\":4},{\"choices\":[1,1]},"
            "{\"choices\":[1,1],\"bound\":2},{\"choices\":[3,3],\"bound\":2}]]");
    s.launch.path = whole;
    run_scripted(&s);
    const int64_t repeats[] = {-1, -1, 1, -1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(line(&s, i).repeat_of, repeats[i]);
    }
    run_finish(&s.run);
    s.launch.path = f->path;
    for (int64_t n = 0; n <= 4; n++) {
        s.launch.options.budget.trials = n;
        run_scripted(&s);
        run_finish(&s.run);
        assert_true(is_prefix(f->path, whole));
    }
    assert_same_record(f->path, whole);
}

// The size is 20 minus the sum of the choices: at most 17 means a sum of 3 or more.
static void test_search_rounds__infeasible_and_probes(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{\"bounds\":{\"size_bytes\":{\"max\":17}}}",
            "[[{\"choices\":[0,0]},{\"choices\":[0,0]},{\"choices\":[3,0]}],"
            " [{\"choices\":[0,0],\"probe\":true}],"
            " [{\"choices\":[0,0],\"probe\":true},{\"choices\":[0,0]},"
            "{\"choices\":[3,0],\"probe\":true}]]");
    run_scripted(&s);
    assert_int_equal(fake_control.n_trials, 2);
    const int64_t repeats[] = {-1, 0, -1, -1, 3, 3, 2};
    for (size_t i = 0; i < 7; i++) {
        bool is_measured = i == 2 || i >= 3;
        assert_int_equal(line(&s, i).repeat_of, repeats[i]);
        assert_int_equal(isnan(line(&s, i).trial.outcome.metrics[0]), !is_measured);
        assert_int_equal(line(&s, i).trial.outcome.state,
                         i == 2 || i == 6 ? MSC_TRIAL_COMPLETE : MSC_TRIAL_INFEASIBLE);
        assert_int_equal(line(&s, i).trial.outcome.violation > 0.0, i != 2 && i != 6);
    }
    assert_true(line(&s, 0).trial.outcome.metrics[1] == 20.0);
    run_finish(&s.run);
}

// The agent observes nothing of a round that the budget cuts. The next launch asks for the round
// again and completes it.
static void test_search_rounds__cut_round_is_not_told(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{\"baselines\":1}",
            "[[{\"choices\":[1,0]},{\"choices\":[2,0]},{\"choices\":[3,0]}],"
            "[{\"choices\":[3,1]}]]");
    s.launch.options.budget.trials = 2;
    run_scripted(&s);
    assert_int_equal(s.run.result.end, MSC_SEARCH_END_TRIALS);
    run_finish(&s.run);
    assert_told(&s, "tell 0 complete 0\nask\n");
    s.launch.options.budget.trials = 4;
    run_scripted(&s);
    assert_int_equal(s.run.result.n_evaluated, 2);
    run_finish(&s.run);
    assert_told(&s, "tell 0 complete 0\nask\ntell 1 complete 1\ntell 2 complete 2\n"
                    "tell 3 complete 3\nask\ntell 4 complete 4\n");
}

// Repeats cost no evaluation, but after 1,000 of them in a row the search ends.
static void test_search_rounds__repeats_without_end(void **state) {
    struct scripted_run s;
    char script[32768] = "[[{\"choices\":[0,1]}]";
    for (int i = 0; i < 300; i++) {
        strcat(script, ",[{\"choices\":[0,1]},{\"choices\":[0,1]},{\"choices\":[0,1]},"
                       "{\"choices\":[0,1]}]");
    }
    strcat(script, "]");
    char *agent = malloc(sizeof script + 2 * FIXTURE_PATH_BYTES);
    prepare(&s, *state, "{}", "[]");
    sprintf(agent, "{\"type\":\"library\",\"path\":\"%s\",\"script\":%s}", MSC_SCRIPTED_AGENT,
            script);
    s.launch.agent = agent;
    run_scripted(&s);
    assert_int_equal(s.run.result.end, MSC_SEARCH_END_EXHAUSTED);
    assert_int_equal(msc_record_n_trials(s.run.result.record), 1001);
    assert_int_equal(fake_control.n_trials, 1);
    run_finish(&s.run);
    free(agent);
}

static void test_search_rounds__all_points_told(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{\"choices\":2,\"baselines\":2}",
            "[[{\"choices\":[0,1]}],[{\"choices\":[1,0]}],[{\"choices\":[0,0]}]]");
    run_scripted(&s);
    assert_int_equal(s.run.result.end, MSC_SEARCH_END_EXHAUSTED);
    assert_int_equal(msc_record_n_trials(s.run.result.record), 4);
    run_finish(&s.run);
}

static void test_search_rounds__parent_that_is_not_there(void **state) {
    struct scripted_run s;
    prepare(&s, *state, "{}", "[[{\"choices\":[0,1],\"parent\":0}]]");
    run_launch(&s.run, &s.launch);
    assert_int_equal(s.run.status, MSC_E_INVALID);
    assert_message("parent");
    run_finish(&s.run);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_rounds__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(repeats),
        CASE(bounds),
        CASE(stopped_points_do_not_exhaust),
        CASE(bounds_within_a_round),
        CASE(infeasible_and_probes),
        CASE(cut_round_is_not_told),
        CASE(repeats_without_end),
        CASE(all_points_told),
        CASE(parent_that_is_not_there),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
