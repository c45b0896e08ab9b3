// Following a record that another process writes: counts, speed, time left, and whether the search
// is running. The expected values follow from fixture_trial's losses and times.
#include "../msc_test.h"
#include "../records/records_fixture.h"
#include "base/json.h"
#include "results/follow.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void append(const struct fixture *f, int64_t first, int64_t end) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL));
    for (int64_t i = first; i < end; i++) {
        const struct msc_record_line line = fixture_trial(i);
        assert_ok(msc_record_append_trial(record, &line));
    }
    assert_ok(msc_record_commit(record));
    msc_record_close(record);
}

// In fixture_trial each trial has a lower loss than the one before and takes 0.25 s. The budget is
// 10 trials.
static void test_search_follow__reads_on(void **state) {
    const struct fixture *f = *state;
    struct msc_follow *follow = NULL;
    struct msc_follow_state now;
    fixture_write(f, 4);
    assert_ok(msc_follow_open(&follow, f->path, NULL));
    assert_ok(msc_follow_read(follow));
    assert_ok(msc_follow_now(&now, follow));
    assert_int_equal(now.counts.n_trials, 4);
    assert_int_equal(now.counts.n_budgeted, 2); // the other two are baselines
    assert_true(now.max_trials == 10.0);
    assert_true(isnan(now.max_s));
    assert_int_equal(now.best_id, 3);
    assert_true(now.best == 1.0 / 6);
    assert_true(now.is_running != MSC_RECORD_WRITTEN_YES);
    assert_true(isnan(now.left_s) || now.is_running == MSC_RECORD_WRITTEN_UNKNOWN);
    append(f, 4, 8);
    assert_ok(msc_follow_read(follow));
    assert_ok(msc_follow_now(&now, follow));
    assert_int_equal(now.counts.n_trials, 8);
    assert_int_equal(msc_follow_history(follow)->n_improvements, 8);
    assert_true(now.counts.elapsed_s == 1.75);
    assert_true(fabs(now.trials_per_s - 4.0) < 1e-9);
    assert_true(now.n_front > 0);
    msc_follow_close(follow);
}

// A record that is open for writing counts as running, and then the time left is known.
static void test_search_follow__running(void **state) {
    const struct fixture *f = *state;
    struct msc_follow *follow = NULL;
    struct msc_follow_state now;
    struct msc_record *record = NULL;
    fixture_write(f, 6);
    assert_ok(msc_follow_open(&follow, f->path, NULL));
    assert_ok(msc_follow_read(follow));
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL));
    assert_ok(msc_follow_now(&now, follow));
    if (now.is_running != MSC_RECORD_WRITTEN_UNKNOWN) {
        assert_int_equal(now.is_running, MSC_RECORD_WRITTEN_YES);
        assert_int_equal(now.n_workers, 1);
        assert_int_equal(now.workers[0].process, getpid());
        assert_true(now.workers[0].n_threads >= 1);
        assert_true(fabs(now.left_s - 6 * 0.25) < 1e-9);
    }
    msc_record_close(record);
    msc_follow_close(follow);
}

// The hours between two launches do not count as search time.
static void test_search_follow__resumed(void **state) {
    const struct fixture *f = *state;
    enum { HOURS = 10 };
    struct msc_follow *follow = NULL;
    struct msc_follow_state now;
    struct msc_record *record = NULL;
    cJSON *budget = cJSON_CreateObject();
    cJSON_AddNumberToObject(budget, "time", 3600);
    cJSON_ReplaceItemInObjectCaseSensitive(f->header, "budget", budget);
    fixture_write(f, 6);
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL));
    const time_t then = time(NULL) - HOURS * 3600;
    const struct timespec times[] = {{.tv_sec = then}, {.tv_sec = then}};
    assert_int_equal(utimensat(AT_FDCWD, f->path, times, 0), 0);
    assert_ok(msc_follow_open(&follow, f->path, NULL));
    assert_ok(msc_follow_read(follow));
    assert_ok(msc_follow_now(&now, follow));
    assert_true(now.since_s >= HOURS * 3600 - 1);
    if (now.is_running != MSC_RECORD_WRITTEN_UNKNOWN) {
        assert_true(now.left_s <= 3600 - 1.25);
        assert_true(now.left_s > 1800); // the ten hours do not count
    }
    msc_record_close(record);
    msc_follow_close(follow);
}

// If the record is set aside and a new one begins under its name, the new one is followed.
static void test_search_follow__restarted(void **state) {
    const struct fixture *f = *state;
    struct msc_follow *follow = NULL;
    struct msc_follow_state now;
    cJSON *object = NULL;
    fixture_write(f, 7);
    assert_ok(msc_follow_open(&follow, f->path, NULL));
    assert_ok(msc_follow_read(follow));
    assert_ok(msc_record_set_aside(NULL, f->path, NULL));
    assert_ok(msc_follow_read(follow)); // the name does not exist for now
    assert_ok(msc_follow_now(&now, follow));
    assert_int_equal(now.counts.n_trials, 7);
    fixture_write(f, 3);
    assert_ok(msc_follow_read(follow));
    assert_ok(msc_follow_describe(&object, follow, 4));
    assert_true(cJSON_GetObjectItem(object, "trials")->valuedouble == 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(object, "improvements")), 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(object, "best_over_trials")), 4);
    cJSON_Delete(object);
    msc_follow_close(follow);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_search_follow__reads_on, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_follow__running, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_follow__resumed, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_follow__restarted, fixture_setup,
                                        fixture_teardown),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
