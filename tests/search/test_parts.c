// Long rounds are evaluated in parts. Tests how many trials a stop loses and how closely a time
// budget is kept. The record must equal a record made without parts.
#include "../msc_test.h"
#include "fake_env.h"
#include "search_fixture.h"

// Two baselines, then rounds of 32 trials.
static struct launch long_rounds(const char *path, int64_t trials) {
    fake_reset();
    fake_control.reports_late = true;
    struct launch one = {.path = path,
                         .env = "{\"tasks\":6,\"choices\":4,\"baselines\":2}",
                         .def = &msc_env_fake,
                         .agent = "{\"type\":\"random\"}",
                         .options = LAUNCH_TRIALS(trials)};
    one.options.parallel = 32;
    return one;
}

// Like long_rounds, but each part is a single trial, so that a stop loses at most one trial.
static struct launch slow_rounds(const char *path, int64_t trials) {
    struct launch one = long_rounds(path, trials);
    one.options.commit_seconds = 1e-6;
    one.options.part_seconds = 1e-6;
    fake_control.delay_us = 2000;
    return one;
}

static size_t n_trials_after(const struct launch *launch, enum msc_search_end end) {
    struct search_run run;
    run_launch(&run, launch);
    assert_ok(run.status);
    assert_int_equal(run.result.end, end);
    size_t n = msc_record_n_trials(run.result.record);
    run_finish(&run);
    return n;
}

static void write_whole(char whole[FIXTURE_PATH_BYTES], const struct fixture *f, int64_t trials) {
    fixture_join(whole, f, "whole.jsonl");
    const struct launch one = long_rounds(whole, trials);
    launch(&one);
}

// The first round has trials 2 to 33 and is stopped at trial 26. The trials evaluated before the
// stop are kept.
static void test_search_parts__a_stop_costs_a_part(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct msc_cancel cancel = {0};
    write_whole(whole, f, 64);
    for (int level = 1; level <= 2; level++) {
        struct launch one = slow_rounds(f->path, 64);
        one.options.cancel = &cancel;
        cancel.level = 0;
        fake_control.cancel = &cancel;
        fake_control.stop_at = 26;
        fake_control.stop_level = level;
        size_t n = n_trials_after(&one, MSC_SEARCH_END_CANCELLED);
        assert_in_range(n, level == 1 ? 27 : 10, level == 1 ? 33 : 26);
        assert_true(is_prefix(f->path, whole));
        fake_reset();
        one.options.cancel = NULL;
        assert_int_equal(n_trials_after(&one, MSC_SEARCH_END_TRIALS), 66);
        assert_same_record(f->path, whole);
        remove_record(f->path);
    }
}

// The time budget ends a search in the middle of a round. The next launch continues in that round.
static void test_search_parts__time_ends_a_round(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    write_whole(whole, f, 32);
    struct launch one = long_rounds(f->path, 32);
    fake_control.delay_us = 10000;
    one.options.budget.seconds = 0.1;
    size_t n = n_trials_after(&one, MSC_SEARCH_END_TIME);
    assert_in_range(n, 2, 14);
    assert_int_equal(n_trials_after(&one, MSC_SEARCH_END_TIME), n);
    assert_true(is_prefix(f->path, whole));
    one.options.budget.seconds = 0.0;
    assert_int_equal(n_trials_after(&one, MSC_SEARCH_END_TRIALS), 34);
    assert_same_record(f->path, whole);
}

// If trials are short, a round is one part, except while the first trials are timed.
static void test_search_parts__short_rounds_stay_whole(void **state) {
    const struct fixture *f = *state;
    struct launch one = long_rounds(f->path, 320);
    assert_int_equal(n_trials_after(&one, MSC_SEARCH_END_TRIALS), 322);
    assert_int_equal(fake_control.largest_call, 32);
    assert_in_range(fake_control.n_calls, 11, 15);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_parts__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_stop_costs_a_part),
        CASE(time_ends_a_round),
        CASE(short_rounds_stay_whole),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
