// The attempt file next to a record lists the trials in flight, so that the next launch can tell
// which trial may have ended the program.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "search/attempt.h"
#include "search_fixture.h"
#include "tests/trial_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 4

static struct msc_attempt *open_where(const struct fixture *f, int64_t next_id, bool is_elsewhere) {
    struct msc_attempt *attempt = NULL;
    const struct msc_attempt_options options = {
        .record_path = f->path,
        .record_hash = {.low = 1, .high = 2},
        .next_id = next_id,
        .is_elsewhere = is_elsewhere,
    };
    assert_ok(msc_attempt_open(&attempt, &options));
    return attempt;
}

static struct msc_attempt *open_attempt(const struct fixture *f, int64_t next_id) {
    return open_where(f, next_id, false);
}

// A child process begins n trials, finishes the first n_finished, and exits without closing the
// file.
static void vanish_from(const struct fixture *f, int64_t first, size_t n, size_t n_finished,
                        bool is_alone, bool is_elsewhere) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct msc_trial trials[N] = {{0}};
        struct msc_trial *begun[N];
        struct msc_attempt *attempt = open_where(f, first, is_elsewhere);
        for (size_t i = 0; i < n; i++) {
            trials[i].id = first + (int64_t)i;
            begun[i] = &trials[i];
        }
        msc_attempt_begin(attempt, begun, n, is_alone);
        for (size_t i = 0; i < n_finished; i++) {
            msc_attempt_finished(attempt, i);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void vanish(const struct fixture *f, int64_t first, size_t n, size_t n_finished,
                   bool is_alone) {
    vanish_from(f, first, n, n_finished, is_alone, false);
}

// The verdict on trial `id`. If it is FAILED, its outcome is in `room`.
static enum msc_attempt_verdict judge(const struct fixture *f, int64_t next_id, int64_t id,
                                      struct trial_room *room) {
    struct msc_attempt *attempt = open_attempt(f, next_id);
    enum msc_attempt_verdict verdict = msc_attempt_judge(attempt, trial_make(room, id, NULL, 0));
    assert_int_equal(msc_attempt_has_suspects(attempt), verdict != MSC_ATTEMPT_FREE);
    msc_attempt_close(attempt);
    return verdict;
}

// A link planted under the name of the attempt file is replaced; its target is not written to.
static void test_search_attempt__planted_links(void **state) {
    const struct fixture *f = *state;
    char page[FIXTURE_PATH_BYTES + 16], precious[FIXTURE_PATH_BYTES + 16];
    int (*const make[])(const char *, const char *) = {symlink, link};
    snprintf(page, sizeof page, "%s.attempt", f->path);
    snprintf(precious, sizeof precious, "%s.precious", f->path);
    for (size_t i = 0; i < 2; i++) {
        char *data = NULL;
        size_t n_bytes = 0;
        assert_ok(msc_file_write(precious, "of somebody", 11));
        assert_int_equal(make[i](precious, page), 0);
        msc_attempt_close(open_attempt(f, 0));
        assert_ok(msc_file_read(&data, &n_bytes, precious));
        assert_int_equal(n_bytes, 11);
        assert_string_equal(data, "of somebody");
        msc_free(data);
        assert_ok(msc_file_remove(page));
        assert_ok(msc_file_remove(precious));
    }
}

static void test_search_attempt__vanished_round(void **state) {
    const struct fixture *f = *state;
    struct trial_room room;
    vanish(f, 10, N, 1, false);
    assert_int_equal(judge(f, 10, 11, &room), MSC_ATTEMPT_FREE);
    vanish(f, 10, N, 1, false);
    // Trial 10 was finished, so it is not a suspect.
    assert_int_equal(judge(f, 10, 11, &room), MSC_ATTEMPT_ALONE);
    assert_int_equal(judge(f, 10, 13, &room), MSC_ATTEMPT_ALONE);
    // Trials below next_id are already in the record, so they are no longer suspects.
    assert_int_equal(judge(f, 14, 11, &room), MSC_ATTEMPT_FREE);
}

// If workers of a cluster evaluate the trials, the trials do not become suspects when this process
// ends.
static void test_search_attempt__elsewhere(void **state) {
    const struct fixture *f = *state;
    struct trial_room room;
    for (int i = 0; i < 4; i++) {
        vanish_from(f, 10, N, 0, false, true);
        vanish_from(f, 10, 1, 0, true, true);
        assert_int_equal(judge(f, 10, 10, &room), MSC_ATTEMPT_FREE);
    }
    // A trial that this process evaluates itself becomes a suspect as usual.
    vanish(f, 10, 1, 0, true);
    assert_int_equal(judge(f, 10, 10, &room), MSC_ATTEMPT_ALONE);
}

static void test_search_attempt__progress_forgives(void **state) {
    const struct fixture *f = *state;
    struct trial_room room;
    vanish(f, 10, N, 0, false);
    vanish(f, 14, N, 0, false); // a second crash, one round later
    assert_int_equal(judge(f, 14, 15, &room), MSC_ATTEMPT_FREE);
}

static void test_search_attempt__vanished_alone(void **state) {
    const struct fixture *f = *state;
    struct trial_room room;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(judge(f, 10, 10, &room), i == 0 ? MSC_ATTEMPT_FREE : MSC_ATTEMPT_ALONE);
        vanish(f, 10, 1, 0, true);
    }
    assert_int_equal(judge(f, 10, 10, &room), MSC_ATTEMPT_FAILED);
    assert_int_equal(room.trial.outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(room.trial.outcome.cause, MSC_CAUSE_ENVIRONMENT);
    assert_non_null(strstr(room.reason, "3 times"));
}

static void test_search_attempt__another_record(void **state) {
    const struct fixture *f = *state;
    struct msc_attempt *attempt = NULL;
    struct trial_room room;
    char path[FIXTURE_PATH_BYTES + 16];
    vanish(f, 10, N, 0, false);
    vanish(f, 10, N, 0, false);
    const struct msc_attempt_options options = {.record_path = f->path, .next_id = 10};
    assert_ok(msc_attempt_open(&attempt, &options));
    assert_int_equal(msc_attempt_judge(attempt, trial_make(&room, 11, NULL, 0)), MSC_ATTEMPT_FREE);
    msc_attempt_close(attempt);
    snprintf(path, sizeof path, "%s.attempt", f->path);
    assert_false(msc_file_exists(path));
    // An attempt file with other content, or a truncated one, is ignored.
    assert_ok(msc_file_write(path, "nonsense", 8));
    assert_int_equal(judge(f, 10, 11, &room), MSC_ATTEMPT_FREE);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_attempt__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(planted_links),     CASE(vanished_round), CASE(elsewhere),
        CASE(progress_forgives), CASE(vanished_alone), CASE(another_record),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
