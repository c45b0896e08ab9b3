// Searches that continue after trouble: trials that cannot run, stops within a round, other
// numerics, full disks, and agents that are not deterministic. Expected records are those of
// undisturbed runs.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "fake_env.h"
#include "records/record_query.h"
#include "search_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct launch fake_launch(const struct fixture *f, int64_t trials) {
    fake_reset();
    struct launch one = {.path = f->path,
                         .env = "{\"tasks\":6,\"choices\":4,\"baselines\":2}",
                         .def = &msc_env_fake,
                         .agent = "{\"type\":\"random\"}",
                         .options = LAUNCH_TRIALS(trials)};
    return one;
}

// A round that does not fit into memory is evaluated one trial at a time.
static void test_search_recover__too_large_a_round(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    fixture_join(whole, f, "whole.jsonl");
    struct launch one = fake_launch(f, 40);
    one.path = whole;
    launch(&one);
    one = fake_launch(f, 40);
    fake_control.fail_calls = MSC_E_NOMEM;
    launch(&one);
    assert_same_record(f->path, whole);
}

static void test_search_recover__a_trial_that_cannot_run(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct launch one = fake_launch(f, 40);
    fake_control.fail_from = 20;
    fake_control.fail_to = 23;
    run_launch(&run, &one);
    assert_ok(run.status);
    assert_int_equal(msc_record_n_trials(run.result.record), 42);
    for (size_t i = 0; i < 42; i++) {
        const struct msc_outcome outcome = msc_record_trial(run.result.record, i).trial.outcome;
        bool has_failed = i >= 20 && i < 23;
        assert_int_equal(outcome.state, has_failed ? MSC_TRIAL_FAILED : MSC_TRIAL_COMPLETE);
        assert_int_equal(outcome.cause, has_failed ? MSC_CAUSE_ENVIRONMENT : MSC_CAUSE_NONE);
        assert_string_equal(outcome.reason, has_failed ? "the device is lost" : "");
    }
    run_finish(&run);
}

// If no trial can run any more, the search ends with an error instead of using up the budget.
static void test_search_recover__a_device_that_is_gone(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct launch one = fake_launch(f, 400);
    fake_control.fail_from = 20;
    fake_control.fail_to = INT64_MAX;
    run_launch(&run, &one);
    assert_int_equal(run.status, MSC_E_DEVICE);
    assert_message("33 trials in a row could not run: the device is lost");
    run_finish(&run);
    // When the device is back, failed trials are retried, and the search continues.
    fake_reset();
    one.options.retry_failed = true;
    run_launch(&run, &one);
    assert_ok(run.status);
    struct msc_record_counts counts;
    msc_record_count(&counts, run.result.record);
    assert_int_equal(counts.n_retries, 32);
    assert_int_equal(counts.n_budgeted, 400);
    assert_int_equal(counts.n_by_state[MSC_TRIAL_COMPLETE], 402);
    run_finish(&run);
}

// A lost device ends the search at once, and finished trials are kept. No trial is recorded as
// failed. When the device is back, the search continues as if it had not been lost.
static void test_search_recover__a_lost_device(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    fixture_join(whole, f, "whole.jsonl");
    struct launch one = fake_launch(f, 40);
    one.path = whole;
    launch(&one);
    const size_t n_calls = fake_control.n_calls;
    for (size_t from = 1; from <= n_calls; from++) {
        struct search_run run;
        one = fake_launch(f, 40);
        fake_control.lost_from = from;
        run_launch(&run, &one);
        assert_int_equal(run.status, MSC_E_LOST);
        assert_string_equal(msc_status_message(), "the device is lost");
        assert_int_equal(fake_control.n_calls, from); // nothing is retried
        run_finish(&run);
        assert_true(is_prefix(f->path, whole));
        fake_reset();
        launch(&one);
        assert_same_record(f->path, whole);
        remove_record(f->path);
    }
}

// If memory runs out, briefly or permanently, no trial is recorded as failed.
static void test_search_recover__no_memory_left(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    fixture_join(whole, f, "whole.jsonl");
    struct launch one = fake_launch(f, 40);
    one.path = whole;
    launch(&one);
    const size_t n_calls = fake_control.n_calls;
    for (size_t from = 0; from < n_calls; from++) {
        for (size_t n_short = 1; n_short <= 4; n_short++) {
            struct search_run run;
            one = fake_launch(f, 40);
            fake_control.short_from = from;
            fake_control.short_to = n_short < 4 ? from + n_short : SIZE_MAX;
            run_launch(&run, &one);
            if (n_short == 1 || (n_short == 2 && from > 0)) {
                assert_ok(run.status);
            } else {
                assert_int_equal(run.status, MSC_E_NOMEM);
                assert_message(from > 0 ? "which was evaluated before" : "evaluated yet");
            }
            run_finish(&run);
            assert_true(is_prefix(f->path, whole));
            fake_reset();
            launch(&one);
            assert_same_record(f->path, whole);
            remove_record(f->path);
        }
    }
}

// Failed trials are retried once, at the current end of the record; later launches replay the
// retries.
static void test_search_recover__retry(void **state) {
    const struct fixture *f = *state;
    const int64_t budgets[] = {30, 32}; // end within a round, and between two rounds
    for (size_t i = 0; i < 2; i++) {
        struct search_run run;
        struct launch one = fake_launch(f, budgets[i]);
        one.agent = "{\"type\":\"evolutionary\",\"population\":8}";
        fake_control.fail_from = 12;
        fake_control.fail_to = 14;
        launch(&one);
        fake_reset();
        one.options.retry_failed = true;
        run_launch(&run, &one);
        assert_ok(run.status);
        assert_int_equal(run.result.n_new, 2);
        const struct msc_record *record = run.result.record;
        for (int64_t k = 0; k < 2; k++) {
            const struct msc_record_line retry =
                msc_record_trial(record, (size_t)(budgets[i] + 2 + k));
            assert_int_equal(retry.retry_of, 12 + k);
            assert_int_equal(retry.trial.outcome.state, MSC_TRIAL_COMPLETE);
            const struct msc_record_line first = msc_record_trial(record, (size_t)(12 + k));
            assert_memory_equal(retry.trial.proposal.choices, first.trial.proposal.choices,
                                6 * sizeof(uint32_t));
        }
        run_finish(&run);
        run_launch(&run, &one);
        assert_int_equal(run.result.n_new, 0);
        run_finish(&run);
        // Continuing replays the retries at their places in the record.
        one.options.retry_failed = false;
        one.options.budget.trials = 70;
        assert_int_equal(launch(&one), MSC_SEARCH_END_TRIALS);
        one.options.budget.trials = 90;
        assert_int_equal(launch(&one), MSC_SEARCH_END_TRIALS);
        remove_record(f->path);
    }
}

// If a search is stopped within a round, finished trials are kept, and the continued search gives
// the undisturbed record.
static void test_search_recover__stopped_at_once(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct msc_cancel cancel = {0};
    struct search_run run;
    fixture_join(whole, f, "whole.jsonl");
    struct launch one = fake_launch(f, 40);
    one.path = whole;
    launch(&one);
    for (int level = 1; level <= 2; level++) {
        one = fake_launch(f, 40);
        one.options.cancel = &cancel;
        cancel.level = 0;
        fake_control.cancel = &cancel;
        fake_control.stop_at = 21; // baselines 0, 1; rounds 2-9, 10-17, 18-25
        fake_control.stop_level = level;
        run_launch(&run, &one);
        assert_ok(run.status);
        assert_int_equal(run.result.end, MSC_SEARCH_END_CANCELLED);
        assert_int_equal(msc_record_n_trials(run.result.record), level == 1 ? 26 : 21);
        run_finish(&run);
        assert_true(is_prefix(f->path, whole));
        fake_reset();
        one.options.cancel = NULL;
        launch(&one);
        assert_same_record(f->path, whole);
        remove_record(f->path);
    }
}

static void test_search_recover__other_numerics(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct launch one = fake_launch(f, 20);
    launch(&one);
    one.options.numerics = "other";
    one.options.budget.trials = 40;
    run_launch(&run, &one);
    assert_int_equal(run.status, MSC_E_STATE);
    assert_message("\"test\"");
    assert_message("\"other\"");
    assert_message("--accept-new-numerics");
    run_finish(&run);
    one.options.accept_new_numerics = true;
    run_launch(&run, &one);
    assert_ok(run.status);
    assert_int_equal(msc_record_n_segments(run.result.record), 1);
    assert_string_equal(msc_record_numerics(run.result.record, 21), "test");
    assert_string_equal(msc_record_numerics(run.result.record, 22), "other");
    run_finish(&run);
    // From now on the record has the numerics "other".
    one.options.accept_new_numerics = false;
    one.options.budget.trials = 60;
    launch(&one);
}

static void scripted(char *agent, size_t n_bytes, const char *log) {
    snprintf(agent, n_bytes,
             "{\"type\":\"library\",\"path\":\"%s\",\"log\":\"%s\",\"script\":"
             "[[{\"choices\":[1,0]},{\"choices\":[2,0]}],[{\"choices\":[3,0]}],"
             "[{\"choices\":[3,1]}],[{\"choices\":[3,2]}]]}",
             MSC_SCRIPTED_AGENT, log);
}

// The agent no longer proposes the recorded trials, so the search uses them as a warm start.
static void test_search_recover__warm_start(void **state) {
    const struct fixture *f = *state;
    char agent[FIXTURE_PATH_BYTES * 2 + 1024];
    char log[FIXTURE_PATH_BYTES];
    struct search_run run;
    fixture_join(log, f, "told.txt");
    scripted(agent, sizeof agent, log);
    struct launch one = fake_launch(f, 2);
    one.env = "{\"baselines\":1}";
    one.agent = agent;
    launch(&one);
    setenv("MSC_SCRIPTED_SKIP", "1", 1);
    one.options.budget.trials = 4;
    run_launch(&run, &one);
    assert_int_equal(run.status, MSC_E_STATE);
    assert_message("trial 1 does not replay");
    assert_message("--warm-start");
    run_finish(&run);
    one.options.warm_start = true;
    unlink(log);
    launch(&one);
    char *text = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&text, &n_bytes, log));
    assert_string_equal(text, "tell 0 complete 0\ntell 1 complete 1\ntell 2 complete 2\n"
                              "ask\ntell 3 complete 3\nask\ntell 4 complete 4\n");
    msc_free(text);
    // Later launches replay from the warm start on.
    one.options.warm_start = false;
    one.options.budget.trials = 5;
    run_launch(&run, &one);
    assert_ok(run.status);
    assert_int_equal(msc_record_n_segments(run.result.record), 1);
    assert_true(msc_record_segment(run.result.record, 0)->is_warm_start);
    assert_int_equal(run.result.n_new, 1);
    run_finish(&run);
    unsetenv("MSC_SCRIPTED_SKIP");
}

// Runs a launch in a child process. Files of that process cannot grow beyond n_bytes, as on a full
// disk.
static void launch_on_full_disk(const struct launch *one, size_t n_bytes) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct search_run run;
        const struct rlimit limit = {n_bytes, n_bytes};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        run_launch(&run, one);
        bool is_said = run.status == MSC_E_IO && strstr(msc_status_message(), " safe; make room") &&
                       strstr(msc_status_message(), one->path);
        run_finish(&run);
        _exit(is_said ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_search_recover__full_disk(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    fixture_join(whole, f, "whole.jsonl");
    struct launch one = fake_launch(f, 200);
    launch_on_full_disk(&one, 6000);
    struct msc_record *record = NULL;
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
    assert_true(msc_record_n_trials(record) >= 2 && msc_record_n_trials(record) < 60);
    msc_record_close(record);
    launch(&one);
    one.path = whole;
    launch(&one);
    assert_same_record(f->path, whole);
}

static enum msc_status ignore_best(void *payload, const struct msc_trial *best) {
    (void)payload;
    (void)best;
    return MSC_OK;
}

// Trial 8 fails, but the call that evaluates it succeeds. So the results of the whole call are
// written at once. Trials that did not fit on the disk must not be read afterwards.
static void test_search_recover__full_disk_at_once(void **state) {
    const struct fixture *f = *state;
    struct stat file;
    struct launch one = fake_launch(f, 8);
    one.env = "{\"tasks\":6,\"choices\":4}"; // no baseline, because no trial would beat it
    launch(&one);
    assert_int_equal(stat(f->path, &file), 0);
    remove_record(f->path);
    one.options.budget.trials = 40;
    one.options.commit_seconds = 1e-6;
    one.options.callbacks.best = ignore_best;
    fake_control.fail_from = 8;
    fake_control.fail_to = 9;
    fake_control.fails_softly = true;
    launch_on_full_disk(&one, (size_t)file.st_size + 100);
    assert_int_equal(launch(&one), MSC_SEARCH_END_TRIALS);
}

// Like the test above, but with 24 retries, more than fit in one write. They are retried in parts
// of 1, 4 and 19.
static void test_search_recover__full_disk_while_retrying(void **state) {
    const struct fixture *f = *state;
    struct stat file;
    struct launch one = fake_launch(f, 24);
    one.env = "{\"tasks\":6,\"choices\":4,\"baselines\":1}";
    fake_control.fail_from = 1;
    fake_control.fail_to = 25;
    fake_control.fails_softly = true;
    launch(&one);
    assert_int_equal(stat(f->path, &file), 0);
    fake_control.fail_from = 30;
    fake_control.fail_to = 31;
    one.options.commit_seconds = 1e-6;
    one.options.retry_failed = true;
    launch_on_full_disk(&one, (size_t)file.st_size / 25 * 33);
    assert_int_equal(launch(&one), MSC_SEARCH_END_TRIALS);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_recover__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(too_large_a_round), CASE(a_trial_that_cannot_run),
        CASE(no_memory_left),    CASE(a_device_that_is_gone),
        CASE(a_lost_device),     CASE(retry),
        CASE(stopped_at_once),   CASE(other_numerics),
        CASE(warm_start),        CASE(full_disk),
        CASE(full_disk_at_once), CASE(full_disk_while_retrying),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
