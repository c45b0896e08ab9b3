// A search is one sequence of trials, however often it is stopped and extended. Reference records
// are made in a single launch.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "records/record_query.h"
#include "search_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct kind {
    const char *env;
    const char *agent;
};

static const struct kind kinds[] = {
    {"{\"tasks\":10,\"choices\":3}", "{\"type\":\"random\"}"},
    {"{\"tasks\":10,\"choices\":3,\"interaction\":0.5}",
     "{\"type\":\"evolutionary\",\"population\":8}"},
    {"{\"tasks\":6,\"choices\":3,\"bounds\":{\"size_ratio\":{\"max\":0.07}}}",
     "{\"type\":\"evolutionary\",\"population\":8}"},
    {"{\"tasks\":8,\"choices\":3,\"objectives\":[\"distill_loss\",\"size_bytes\"]}",
     "{\"type\":\"evolutionary\",\"population\":8}"},
    {"{\"tasks\":8,\"choices\":4}", "{\"type\":\"grid_search\"}"},
    {"{\"tasks\":8,\"choices\":3,\"fail_every\":5}", "{\"type\":\"random\"}"},
    {"{\"tasks\":3,\"choices\":3}", "{\"type\":\"random\"}"},
};

static int64_t best_id(const struct msc_record *record) {
    struct msc_record_line best;
    assert_true(msc_record_best(&best, record));
    return best.trial.id;
}

static void test_search_search__stops_and_goes_on(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct msc_rng rng;
    msc_rng_seed(&rng, 5, 0);
    fixture_join(whole, f, "whole.jsonl");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct launch all = {.path = whole,
                             .env = kinds[k].env,
                             .agent = kinds[k].agent,
                             .options = LAUNCH_TRIALS(100)};
        launch(&all);
        struct launch part = all;
        part.path = f->path;
        for (int64_t n = 0; n < 100;) {
            n += 1 + (int64_t)msc_rng_below(&rng, 30);
            n = n < 100 ? n : 100;
            part.options.budget.trials = n;
            launch(&part);
            assert_true(is_prefix(f->path, whole));
        }
        assert_same_record(f->path, whole);
        remove_record(f->path);
        remove_record(whole);
    }
}

// A record that was cut after any of its lines is continued.
static void test_search_search__goes_on_from_any_line(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    fixture_join(whole, f, "whole.jsonl");
    const struct launch all = {
        .path = whole, .env = kinds[2].env, .agent = kinds[2].agent, .options = LAUNCH_TRIALS(37)};
    launch(&all);
    struct launch part = all;
    part.path = f->path;
    for (size_t n = 0; n <= 40; n++) {
        char *text = NULL;
        size_t n_bytes = 0;
        assert_ok(msc_file_read(&text, &n_bytes, whole));
        assert_ok(msc_file_write(f->path, text, n_bytes));
        msc_free(text);
        cut_record(f->path, n);
        assert_int_equal(launch(&part), MSC_SEARCH_END_TRIALS);
        assert_same_record(f->path, whole);
    }
}

static void test_search_search__baselines_are_extra(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    const struct launch all = {.path = f->path,
                               .env = "{\"tasks\":10,\"choices\":3,"
                                      "\"bounds\":{\"size_ratio\":{\"max\":0.05}}}",
                               .options = LAUNCH_TRIALS(20)};
    run_launch(&run, &all);
    assert_ok(run.status);
    assert_int_equal(run.result.end, MSC_SEARCH_END_TRIALS);
    assert_int_equal(msc_record_n_trials(run.result.record), 23);
    for (size_t i = 0; i < 3; i++) {
        const struct msc_outcome outcome = msc_record_trial(run.result.record, i).trial.outcome;
        // Uniform plans are measured even if they break the bound, as the first two of the three
        // do.
        assert_int_equal(outcome.state, i < 2 ? MSC_TRIAL_INFEASIBLE : MSC_TRIAL_COMPLETE);
        assert_false(isnan(outcome.metrics[0]));
        assert_int_equal(msc_record_trial(run.result.record, i).baseline, i);
    }
    assert_true(msc_record_trial(run.result.record, 0).trial.outcome.violation > 0.0);
    run_finish(&run);
}

static void test_search_search__finished_stays_as_it_is(void **state) {
    const struct fixture *f = *state;
    size_t n_before = 0;
    size_t n_after = 0;
    char *before = NULL;
    char *after = NULL;
    struct search_run run;
    const struct launch all = {.path = f->path, .options = LAUNCH_TRIALS(30)};
    launch(&all);
    assert_ok(msc_file_read(&before, &n_before, f->path));
    run_launch(&run, &all);
    assert_ok(run.status);
    assert_true(run.result.was_resumed);
    assert_int_equal(run.result.n_new, 0);
    run_finish(&run);
    assert_ok(msc_file_read(&after, &n_after, f->path));
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_after);
    msc_free(before);
    msc_free(after);
    char attempt[FIXTURE_PATH_BYTES + 16];
    snprintf(attempt, sizeof attempt, "%s.attempt", f->path);
    assert_false(msc_file_exists(attempt));
}

static void test_search_search__ends(void **state) {
    const struct fixture *f = *state;
    struct msc_cancel cancel = {.level = 1};
    struct {
        const char *env;
        const char *agent;
        struct msc_budget budget;
        const struct msc_cancel *cancel;
        enum msc_search_end end;
    } rows[] = {
        {"{\"tasks\":2,\"choices\":2}", "{\"type\":\"random\"}", MSC_BUDGET_NONE, NULL,
         MSC_SEARCH_END_EXHAUSTED},
        {"{\"tasks\":4,\"choices\":3}", "{\"type\":\"grid_search\"}", MSC_BUDGET_NONE, NULL,
         MSC_SEARCH_END_AGENT},
        {NULL, NULL, {.trials = 0}, NULL, MSC_SEARCH_END_TRIALS},
        {NULL, NULL, {.trials = -1, .seconds = 0.05}, NULL, MSC_SEARCH_END_TIME},
        {NULL,
         NULL,
         {.trials = -1, .has_target = true, .target = 1e9},
         NULL,
         MSC_SEARCH_END_TARGET},
        {NULL, NULL, MSC_BUDGET_NONE, &cancel, MSC_SEARCH_END_CANCELLED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct launch one = {.path = f->path,
                             .env = rows[i].env,
                             .agent = rows[i].agent,
                             .options = LAUNCH_TRIALS(0)};
        one.options.budget = rows[i].budget;
        one.options.cancel = rows[i].cancel;
        assert_int_equal(launch(&one), rows[i].end);
        // A second launch ends in the same way.
        assert_int_equal(launch(&one), rows[i].end);
        remove_record(f->path);
    }
}

// A time budget covers the time of all launches together.
static void test_search_search__time_adds_up(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct launch slow = {.path = f->path,
                          .env = "{\"tasks\":10,\"choices\":3,\"delay_us\":2000}",
                          .options = LAUNCH_TRIALS(40)};
    launch(&slow); // 43 trials of 2 ms use up the 60 ms of the next launch
    slow.options.budget = (struct msc_budget){.trials = -1, .seconds = 0.06};
    run_launch(&run, &slow);
    assert_ok(run.status);
    assert_int_equal(run.result.end, MSC_SEARCH_END_TIME);
    assert_int_equal(run.result.n_new, 0);
    assert_true(run.result.elapsed_s > 0.08);
    run_finish(&run);
}

struct watched {
    size_t n_progress;
    size_t n_trials;
    size_t n_best;
    struct msc_trial last_best; // borrows memory of the record
    struct msc_cancel *cancel;
};

static void watch_progress(void *payload, const struct msc_search_progress *progress) {
    struct watched *w = payload;
    assert_true(progress->n_trials > w->n_trials);
    w->n_trials = progress->n_trials;
    w->n_progress++;
}

static enum msc_status watch_best(void *payload, const struct msc_trial *trial) {
    struct watched *w = payload;
    assert_true(w->n_best == 0 || msc_trial_compare(trial, &w->last_best) < 0);
    w->last_best = *trial;
    w->n_best++;
    return MSC_OK;
}

static void test_search_search__callbacks(void **state) {
    const struct fixture *f = *state;
    struct watched w = {0};
    struct search_run run;
    struct launch all = {.path = f->path, .env = kinds[2].env, .options = LAUNCH_TRIALS(64)};
    all.options.callbacks = (struct msc_search_callbacks){
        .payload = &w, .progress = watch_progress, .best = watch_best};
    run_launch(&run, &all);
    assert_ok(run.status);
    assert_int_equal(w.n_progress, 9); // once for the baselines and once for each of eight rounds
    assert_int_equal(w.n_trials, 67);
    assert_true(w.n_best > 1);
    assert_int_equal(w.last_best.id, best_id(run.result.record));
    run_finish(&run);
    // A finished record announces its best trial once, so that the files derived from it can be
    // written.
    w = (struct watched){0};
    launch(&all);
    assert_int_equal(w.n_best, 1);
    assert_int_equal(w.n_progress, 0);
}

// A long round is written in several commits.
static void test_search_search__commits_within_a_round(void **state) {
    const struct fixture *f = *state;
    char quick[FIXTURE_PATH_BYTES];
    fixture_join(quick, f, "quick.jsonl");
    struct watched w = {0};
    struct launch slow = {.path = f->path,
                          .env = "{\"tasks\":10,\"choices\":3,\"delay_us\":2000}",
                          .options = LAUNCH_TRIALS(16)};
    slow.options.commit_seconds = 0.003;
    slow.options.callbacks =
        (struct msc_search_callbacks){.payload = &w, .progress = watch_progress};
    launch(&slow);
    assert_true(w.n_progress >= 6);
    struct launch same = {.path = quick, .env = slow.env, .options = LAUNCH_TRIALS(16)};
    launch(&same);
    assert_same_record(f->path, quick);
}

static void test_search_search__restart(void **state) {
    const struct fixture *f = *state;
    char old_path[FIXTURE_PATH_BYTES];
    struct search_run run;
    struct launch all = {.path = f->path, .options = LAUNCH_TRIALS(10)};
    launch(&all);
    all.env = "{\"tasks\":11,\"choices\":3}";
    run_launch(&run, &all);
    assert_int_equal(run.status, MSC_E_STATE);
    assert_message("env.params.tasks is 10 there and 11 here");
    run_finish(&run);
    all.options.restart = true;
    launch(&all);
    fixture_join(old_path, f, "a.jsonl.1");
    struct msc_record *old = NULL;
    assert_ok(msc_record_open(&old, old_path, MSC_RECORD_READ, NULL));
    assert_int_equal(msc_record_space(old)->n_tasks, 10);
    msc_record_close(old);
}

static void test_search_search__refuses(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct launch all = {.path = f->path, .options = LAUNCH_TRIALS(10)};
    all.options.resume_only = true;
    run_launch(&run, &all);
    assert_int_equal(run.status, MSC_E_NOT_FOUND);
    run_finish(&run);
    assert_false(msc_file_exists(f->path));
    all.options.resume_only = false;
    all.options.parallel = MSC_SEARCH_MAX_PARALLEL + 1;
    run_launch(&run, &all);
    assert_int_equal(run.status, MSC_E_INVALID);
    run_finish(&run);
    all.options.parallel = 8;
    launch(&all);
    all.options.parallel = 16;
    run_launch(&run, &all);
    assert_int_equal(run.status, MSC_E_STATE);
    assert_message("parallel is 8 there and 16 here");
    run_finish(&run);
    all.options.parallel = 8;
    all.options.seed = 1;
    run_launch(&run, &all);
    assert_int_equal(run.status, MSC_E_STATE);
    assert_message("seed");
    run_finish(&run);
}

// After each commit, in new and continued searches, the front that the search keeps is as large as
// the front computed from the record.
static void compare_front(void *payload, const struct msc_search_progress *progress) {
    int64_t *ids = NULL;
    size_t n = 0;
    assert_ok(msc_record_front(&ids, &n, progress->record));
    assert_int_equal(msc_search_front_size(progress), n);
    msc_free(ids);
    *(size_t *)payload = n;
}

static void test_search_search__front_so_far(void **state) {
    const struct fixture *f = *state;
    size_t n = 0;
    struct launch one = {
        .path = f->path,
        .env = "{\"tasks\":8,\"choices\":3,\"objectives\":[\"distill_loss\",\"size_bytes\"],"
               "\"bounds\":{\"size_ratio\":{\"max\":0.07}}}",
        .options = LAUNCH_TRIALS(60)};
    one.options.callbacks = (struct msc_search_callbacks){.payload = &n, .progress = compare_front};
    launch(&one);
    one.options.budget.trials = 300;
    launch(&one);
    assert_true(n > 10);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_search__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(stops_and_goes_on),
        CASE(goes_on_from_any_line),
        CASE(baselines_are_extra),
        CASE(finished_stays_as_it_is),
        CASE(ends),
        CASE(time_adds_up),
        CASE(callbacks),
        CASE(front_so_far),
        CASE(commits_within_a_round),
        CASE(restart),
        CASE(refuses),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
