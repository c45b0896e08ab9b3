// The record file. Lines must be read back unchanged. Also tests torn ends, damage, full disks, and
// records that are moved aside. Expected lines are those written.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "records_fixture.h"

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct msc_record *open_record(const struct fixture *f, enum msc_record_mode mode) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_open(&record, f->path, mode, NULL));
    return record;
}

static void test_records_record__round_trip(void **state) {
    const struct fixture *f = *state;
    uint32_t choices[FIXTURE_TASKS] = {2, 1, 0};
    char quotes[] = "line\nwith \"quotes\", \\ and gr\xc3\xbc\xc3\x9f";
    char plain[] = "plain";
    double rows[][FIXTURE_METRICS] = {
        {0.1, 9007199254740993.0, -0.0},
        {NAN, INFINITY, -INFINITY},
        {DBL_MIN / 3, DBL_MAX, 1e-300},
        {1.0 / 3.0, -12345678901234567.0, 4503599627370497.5},
        {NAN, NAN, NAN},
    };
    struct msc_record_line lines[5];
    for (int i = 0; i < 5; i++) {
        lines[i] = fixture_trial(i);
        lines[i].trial.proposal.choices = choices;
        lines[i].trial.outcome.metrics = rows[i];
    }
    lines[1].trial.proposal.bound = 0.1;
    lines[2].trial.proposal.probe = true;
    lines[2].trial.outcome.state = MSC_TRIAL_FAILED;
    lines[2].trial.outcome.cause = MSC_CAUSE_ENVIRONMENT;
    lines[2].trial.outcome.reason = quotes;
    lines[2].trial.outcome.violation = 1e-17;
    lines[3].trial.outcome.state = MSC_TRIAL_PRUNED;
    lines[3].repeat_of = 1;
    lines[3].trial.outcome.reason = plain;
    lines[3].trial.proposal.bound = -0.0;
    lines[4].retry_of = 1; // a retry of a baseline is a baseline, too
    lines[4].baseline = 1;
    lines[4].trial.proposal.probe = true;
    lines[4].trial.outcome.state = MSC_TRIAL_INFEASIBLE;

    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (int i = 0; i < 5; i++) {
        assert_ok(msc_record_append_trial(record, &lines[i]));
    }
    assert_ok(msc_record_commit(record));
    assert_ok(msc_record_append_segment(record, "vulkan \"x\"", true));
    assert_ok(msc_record_commit(record));
    msc_record_close(record);

    record = open_record(f, MSC_RECORD_READ);
    assert_int_equal(msc_record_n_trials(record), 5);
    for (int i = 0; i < 5; i++) {
        const struct msc_record_line read = msc_record_trial(record, (size_t)i);
        fixture_assert_same(&read, &lines[i]);
    }
    assert_int_equal(msc_record_n_segments(record), 1);
    assert_int_equal(msc_record_segment(record, 0)->first, 5);
    assert_true(msc_record_segment(record, 0)->is_warm_start);
    assert_string_equal(msc_record_numerics(record, 4), "cpu;avx512");
    assert_string_equal(msc_record_numerics(record, 5), "vulkan \"x\"");
    assert_true(msc_record_seed(record) == UINT64_MAX);
    assert_int_equal(msc_record_parallel(record), 4);
    msc_record_close(record);
}

static void test_records_record__space_and_goal(void **state) {
    const struct fixture *f = *state;
    fixture_write(f, 0);
    struct msc_record *record = open_record(f, MSC_RECORD_READ);
    const struct msc_space *space = msc_record_space(record);
    const struct msc_goal *goal = msc_record_goal(record);
    assert_int_equal(space->n_tasks, FIXTURE_TASKS);
    assert_string_equal(space->tasks[1].name, fixture_space.tasks[1].name);
    assert_string_equal(space->tasks[2].name, "fc\t1");
    assert_int_equal(space->tasks[2].n_choices, 2);
    assert_string_equal(space->tasks[0].labels[1], "6 \"mse\"");
    assert_string_equal(space->metrics[1].unit, "bytes");
    assert_true(space->metrics[1].is_exact);
    assert_true(space->metrics[2].is_maximised);
    assert_int_equal(space->n_baselines, 2);
    assert_memory_equal(space->baselines[1].choices, fixture_space.baselines[1].choices,
                        FIXTURE_TASKS * sizeof(uint32_t));
    assert_int_equal(goal->n_objectives, 2);
    assert_true(goal->objectives[1].is_maximised);
    assert_true(isinf(goal->bounds[0].min));
    assert_true(goal->bounds[0].max == 100.0);
    msc_record_close(record);
}

// Both checksums come from the reference implementation: xxh3_128_hexdigest of Python's xxhash
// over the line's text up to the comma before the checksum.
static void test_records_record__checksum(void **state) {
    static const char expected[] =
        "\n{\"kind\":\"trial\",\"id\":0,\"choices\":[0,0,0],\"parent\":-1,\"bound\":null,"
        "\"baseline\":\"8\",\"state\":\"complete\",\"metrics\":{"
        "\"distill_loss\":0.3333333333333333,\"size_bytes\":0,\"accuracy\":0},\"violation\":0,"
        "\"checksum\":\"0eaba3a7a7b9dccef52499f53d0d5bc2\",\"measured\":{\"us\":1000,"
        "\"reuse\":0.500,\"elapsed_s\":0,\"sum\":\"00c501f09df4f083f857129ae5a5e583\"}}\n";
    const struct fixture *f = *state;
    size_t n_bytes = 0;
    fixture_write(f, 1);
    char *text = fixture_read(&n_bytes, f->path);
    const char *line = strchr(text, '\n');
    assert_string_equal(line, expected);
    msc_free(text);
}

// Appends the missing trials and checks that the record equals the full one again.
static void assert_mended(const struct fixture *f, const char *text, size_t length) {
    struct msc_record *record = open_record(f, MSC_RECORD_APPEND);
    for (size_t i = msc_record_n_trials(record); i < 4; i++) {
        const struct msc_record_line trial = fixture_trial((int64_t)i);
        assert_ok(msc_record_append_trial(record, &trial));
    }
    assert_ok(msc_record_commit(record));
    msc_record_close(record);
    size_t n_after = 0;
    char *after = fixture_read(&n_after, f->path);
    assert_int_equal(n_after, length);
    assert_memory_equal(after, text, length);
    msc_free(after);
}

// A record cut at any byte keeps exactly its complete lines. Appending is tested only at every
// STEP-th cut, because it waits for the disk.
static void test_records_record__torn_anywhere(void **state) {
    enum { STEP = 29 };
    const struct fixture *f = *state;
    char cut_path[PATH_MAX + 8];
    size_t length = 0;
    fixture_write(f, 4);
    snprintf(cut_path, sizeof cut_path, "%s.cut", f->path);
    char *text = fixture_read(&length, f->path);
    size_t n_header = strcspn(text, "\n") + 1;
    for (size_t cut = 0; cut <= length; cut++) {
        struct msc_record *record = NULL;
        size_t n_lines = 0;
        size_t n_good = 0;
        for (size_t i = 0; i < cut; i++) {
            n_lines += text[i] == '\n';
            n_good = text[i] == '\n' ? i + 1 : n_good;
        }
        fixture_put(f->path, text, cut);
        enum msc_status status = msc_record_open(&record, f->path, MSC_RECORD_READ, NULL);
        if (cut < n_header) {
            assert_int_equal(status, MSC_E_NOT_FOUND);
            continue;
        }
        assert_ok(status);
        assert_int_equal(msc_record_n_trials(record), n_lines - 1);
        assert_int_equal(msc_record_was_cut(record), n_good < cut);
        assert_int_equal(msc_record_n_bytes(record), n_good);
        msc_record_close(record);
        if (cut % STEP == 0 || cut == n_good || cut == n_good + 1 || text[cut] == '\n') {
            assert_mended(f, text, length);
            assert_ok(msc_file_remove(cut_path));
        }
    }
    msc_free(text);
}

// A file with a torn header is not yet a record: a new one may begin at its path, and the old
// bytes are kept.
static void test_records_record__torn_header(void **state) {
    const struct fixture *f = *state;
    char cut_path[PATH_MAX + 8];
    size_t length = 0;
    fixture_write(f, 0);
    snprintf(cut_path, sizeof cut_path, "%s.cut", f->path);
    char *text = fixture_read(&length, f->path);
    for (size_t cut = 0; cut < length; cut += 37) {
        struct msc_record *record = NULL;
        size_t n_kept = 0;
        fixture_put(f->path, text, cut);
        assert_ok(msc_record_create(&record, f->path, f->header, NULL));
        msc_record_close(record);
        msc_record_close(open_record(f, MSC_RECORD_READ));
        assert_int_equal(msc_file_exists(cut_path), cut > 0);
        if (cut > 0) {
            char *kept = fixture_read(&n_kept, cut_path);
            assert_int_equal(n_kept, cut + 1); // the kept bytes and a newline
            assert_memory_equal(kept, text, cut);
            msc_free(kept);
            assert_ok(msc_file_remove(cut_path));
        }
    }
    msc_free(text);
}

// Any damaged byte before the last line is found, and the message names its line.
static void test_records_record__damage_in_the_middle(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    fixture_write(f, 4);
    char *text = fixture_read(&length, f->path);
    size_t number = 1;
    for (size_t i = 0; i < length; i++) {
        const char before = text[i];
        if (before == '\n') {
            number++;
            continue;
        }
        const char *line = text + i;
        while (line > text && line[-1] != '\n') {
            line--;
        }
        const char *measured = strstr(line, ",\"measured\"");
        if (number == 5 || text + i >= measured) {
            continue; // the last line, or bytes that no checksum covers
        }
        struct msc_record *record = NULL;
        char expected[32];
        snprintf(expected, sizeof expected, "line %zu", number);
        text[i] = (char)(before ^ 1);
        fixture_put(f->path, text, length);
        if (text[i] != '\n') {
            assert_int_equal(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL),
                             MSC_E_FORMAT);
            assert_message(expected);
        }
        text[i] = before;
    }
    msc_free(text);
}

// Lines with valid checksums in a wrong place, as in a file edited by hand.
static void test_records_record__lines_out_of_order(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    size_t length = 0;
    fixture_write(f, 3);
    char *text = fixture_read(&length, f->path);
    char *second = strchr(strchr(text, '\n') + 1, '\n') + 1;
    FILE *file = fopen(f->path, "ab");
    assert_non_null(file);
    fwrite(second, 1, strcspn(second, "\n") + 1, file);
    fclose(file);
    assert_int_equal(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL), MSC_E_FORMAT);
    assert_message("line 5: trial id 1, expected 3");
    msc_free(text);
}

static void test_records_record__no_record(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    assert_int_equal(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL), MSC_E_NOT_FOUND);
    fixture_put(f->path, "PK\x03\x04 a model", 12);
    assert_int_equal(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL), MSC_E_FORMAT);
    assert_int_equal(msc_record_create(&record, f->path, f->header, NULL), MSC_E_FORMAT);
    fixture_put(f->path, "{}\n", 3);
    assert_int_equal(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL), MSC_E_FORMAT);
    assert_message("line 1 is not a header");
    assert_int_equal(msc_record_create(&record, f->path, f->header, NULL), MSC_E_FORMAT);
    assert_int_equal(msc_record_open(&record, f->folder, MSC_RECORD_APPEND, NULL), MSC_E_IO);
    assert_int_equal(msc_record_create(&record, "/dev/full", f->header, NULL), MSC_E_IO);
    unlink(f->path);
    fixture_write(f, 1);
    assert_int_equal(msc_record_create(&record, f->path, f->header, NULL), MSC_E_STATE);
    assert_message("already");
}

static void test_records_record__other_schema(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    cJSON_SetNumberValue(cJSON_GetObjectItem(f->header, "schema"), 99);
    assert_int_equal(msc_record_create(&record, f->path, f->header, NULL), MSC_E_UNSUPPORTED);
    assert_message("schema is 99");
    assert_false(msc_file_exists(f->path));
}

// Runs `body` in a child process and returns its exit code.
static int in_child(int (*body)(const struct fixture *f), const struct fixture *f) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        _exit(body(f));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int try_to_write(const struct fixture *f) {
    struct msc_record *record = NULL;
    enum msc_status status = msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL);
    return status == MSC_E_STATE && strstr(msc_status_message(), "another process") ? 0 : 1;
}

static int try_to_set_aside(const struct fixture *f) {
    char *new_path = NULL;
    return msc_record_set_aside(&new_path, f->path, NULL) == MSC_E_STATE ? 0 : 1;
}

static void test_records_record__lock(void **state) {
    const struct fixture *f = *state;
    fixture_write(f, 2);
    struct msc_record *record = open_record(f, MSC_RECORD_APPEND);
    assert_int_equal(in_child(try_to_write, f), 0);
    assert_int_equal(in_child(try_to_set_aside, f), 0);
    msc_record_close(open_record(f, MSC_RECORD_READ));
    msc_record_release(record);
    assert_int_equal(msc_record_n_trials(record), 2);
    msc_record_close(open_record(f, MSC_RECORD_APPEND));
    msc_record_close(record);
}

// The disk becomes full during a commit: the trials committed before are intact.
static int fill_disk(const struct fixture *f) {
    struct msc_record *record = NULL;
    struct stat info;
    signal(SIGXFSZ, SIG_IGN);
    if (msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL) != MSC_OK ||
        stat(f->path, &info) != 0) {
        return 1;
    }
    const struct rlimit limit = {(rlim_t)info.st_size + 500, (rlim_t)info.st_size + 500};
    setrlimit(RLIMIT_FSIZE, &limit);
    // A single round, because a larger one would be written in several commits.
    for (int64_t i = 2; i < 6; i++) {
        const struct msc_record_line trial = fixture_trial(i);
        if (msc_record_append_trial(record, &trial) != MSC_OK) {
            return 2;
        }
    }
    if (msc_record_commit(record) != MSC_E_IO || msc_record_n_trials(record) != 2 ||
        !strstr(msc_status_message(), "2 trials are safe")) {
        return 3;
    }
    const struct msc_record_line trial = fixture_trial(2);
    if (msc_record_append_trial(record, &trial) != MSC_E_STATE) {
        return 4;
    }
    msc_record_close(record);
    return 0;
}

static void test_records_record__full_disk(void **state) {
    const struct fixture *f = *state;
    size_t n_before = 0;
    size_t n_after = 0;
    fixture_write(f, 2);
    msc_free(fixture_read(&n_before, f->path));
    assert_int_equal(in_child(fill_disk, f), 0);
    msc_free(fixture_read(&n_after, f->path));
    assert_int_equal(n_after, n_before);
    struct msc_record *record = open_record(f, MSC_RECORD_READ);
    assert_int_equal(msc_record_n_trials(record), 2);
    assert_false(msc_record_was_cut(record));
    msc_record_close(record);
}

// No space for the header: no file is created.
static int begin_on_full_disk(const struct fixture *f) {
    struct msc_record *record = NULL;
    const struct rlimit limit = {100, 100};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return msc_record_create(&record, f->path, f->header, NULL) == MSC_E_IO ? 0 : 1;
}

static int write_as_nobody(const struct fixture *f) {
    struct msc_record *record = NULL;
    if (geteuid() == 0 && setuid(65534) != 0) {
        return 77;
    }
    enum msc_status status = msc_record_create(&record, f->path, f->header, NULL);
    return status == MSC_E_IO && strstr(msc_status_message(), f->path) ? 0 : 1;
}

static void test_records_record__no_place_to_write(void **state) {
    const struct fixture *f = *state;
    assert_int_equal(in_child(begin_on_full_disk, f), 0);
    assert_false(msc_file_exists(f->path));
    assert_int_equal(chmod(f->folder, 0555), 0);
    int code = in_child(write_as_nobody, f);
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_true(code == 0 || code == 77);
    struct msc_record *record = NULL;
    assert_int_equal(msc_record_create(&record, "/nowhere/a.jsonl", f->header, NULL),
                     MSC_E_NOT_FOUND);
}

static void test_records_record__set_aside_companions(void **state) {
    static const char *const endings[] = {".params", ".base.json"};
    const struct fixture *f = *state;
    char name[PATH_MAX + 32];
    char *new_path = NULL;
    fixture_write(f, 1);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", f->path, endings[i]);
        fixture_put(name, "n", 1);
    }
    // A companion file that an earlier record left is not overwritten: the next free number is
    // used.
    snprintf(name, sizeof name, "%s.1.base.json", f->path);
    fixture_put(name, "o", 1);
    assert_ok(msc_record_set_aside(&new_path, f->path, NULL));
    snprintf(name, sizeof name, "%s.2", f->path);
    assert_string_equal(new_path, name);
    msc_free(new_path);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", f->path, endings[i]);
        assert_false(msc_file_exists(name));
        snprintf(name, sizeof name, "%s.2%s", f->path, endings[i]);
        assert_true(msc_file_exists(name));
    }
    // If an earlier call was interrupted after it moved only the companions, the record takes the
    // same number.
    fixture_write(f, 2);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.3%s", f->path, endings[i]);
        fixture_put(name, "n", 1);
    }
    snprintf(name, sizeof name, "%s.1.base.json", f->path);
    assert_ok(msc_file_remove(name));
    snprintf(name, sizeof name, "%s.1", f->path);
    fixture_put(name, "r", 1);
    assert_ok(msc_record_set_aside(&new_path, f->path, NULL));
    snprintf(name, sizeof name, "%s.3", f->path);
    assert_string_equal(new_path, name);
    msc_free(new_path);
}

static void test_records_record__set_aside(void **state) {
    const struct fixture *f = *state;
    char name[PATH_MAX + 32];
    char *new_path = NULL;
    assert_ok(msc_record_set_aside(&new_path, f->path, NULL));
    assert_null(new_path);
    for (int i = 1; i <= 2; i++) {
        fixture_write(f, (size_t)i);
        snprintf(name, sizeof name, "%s.params", f->path);
        fixture_put(name, "p", 1);
        snprintf(name, sizeof name, "%s.attempt", f->path);
        fixture_put(name, "a", 1);
        assert_ok(msc_record_set_aside(&new_path, f->path, NULL));
        assert_false(msc_file_exists(f->path));
        assert_false(msc_file_exists(name));
        snprintf(name, sizeof name, "%s.%d", f->path, i);
        assert_string_equal(new_path, name);
        struct msc_record *record = NULL;
        assert_ok(msc_record_open(&record, name, MSC_RECORD_READ, NULL));
        assert_int_equal(msc_record_n_trials(record), i);
        msc_record_close(record);
        snprintf(name, sizeof name, "%s.%d.params", f->path, i);
        assert_true(msc_file_exists(name));
        msc_free(new_path);
    }
}

static void test_records_record__jq(void **state) {
    const struct fixture *f = *state;
    char command[PATH_MAX + 200];
    if (system("jq --version > /dev/null 2>&1") != 0) {
        print_message("skipped: there is no jq\n");
        skip();
    }
    fixture_write(f, 5);
    snprintf(command, sizeof command,
             "test \"$(jq -s -c '[length, .[0].seed, .[0].space.tasks[1].name, "
             "(.[1:] | map(.metrics.size_bytes) | add)]' '%s')\" = "
             "'[6,\"18446744073709551615\",\"gr\xc3\xbc\xc3\x9f\",100]'",
             f->path);
    assert_int_equal(system(command), 0);
}

// The example in docs/record.md is a valid record.
static void test_records_record__documented(void **state) {
    const struct fixture *f = *state;
    size_t n_bytes = 0;
    char *text = fixture_read(&n_bytes, MSC_TESTS_FOLDER "/../docs/record.md");
    FILE *file = fopen(f->path, "wb");
    assert_non_null(file);
    for (char *line = strstr(text, "    {\"kind\""); line; line = strstr(line, "    {\"kind\"")) {
        line += 4;
        fwrite(line, 1, strcspn(line, "\n") + 1, file);
    }
    fclose(file);
    msc_free(text);
    struct msc_record *record = open_record(f, MSC_RECORD_READ);
    assert_false(msc_record_was_cut(record));
    assert_int_equal(msc_record_n_trials(record), 8);
    assert_int_equal(msc_record_trial(record, 6).retry_of, 4);
    assert_string_equal(msc_record_numerics(record, 7), "cpu 1 avx2 onednn-2.6.3");
    msc_record_close(record);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_records_record__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(round_trip),
        CASE(space_and_goal),
        CASE(checksum),
        CASE(torn_anywhere),
        CASE(torn_header),
        CASE(damage_in_the_middle),
        CASE(lines_out_of_order),
        CASE(no_record),
        CASE(other_schema),
        CASE(lock),
        CASE(full_disk),
        CASE(no_place_to_write),
        CASE(set_aside),
        CASE(set_aside_companions),
        CASE(jq),
        CASE(documented),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
