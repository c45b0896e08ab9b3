// Damaged records: at most the torn end of one commit is cut, and the cut bytes are kept in a file
// next to the record. Other damage is refused. Expected texts are those written.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "records/record_query.h"
#include "records_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PARALLEL 4 // the fixture's lines per commit

// The record's text with lines `first` to `last` (from 1) changed as by sed 's/state/STATE/'.
static char *spoil(size_t *length, const struct fixture *f, size_t first, size_t last) {
    char *text = fixture_read(length, f->path);
    size_t number = 1;
    for (char *line = text; *line; number++) {
        char *state = strstr(line, "\"state\"");
        if (state && number >= first && number <= last) {
            state[1] = 'S';
        }
        line += strcspn(line, "\n") + 1;
    }
    fixture_put(f->path, text, *length);
    return text;
}

static void assert_file(const char *path, const char *text, size_t length) {
    size_t n_bytes = 0;
    char *now = fixture_read(&n_bytes, path);
    assert_int_equal(n_bytes, length);
    assert_memory_equal(now, text, length);
    msc_free(now);
}

static const char *name_cut(const struct fixture *f) {
    static char name[PATH_MAX + 8];
    snprintf(name, sizeof name, "%s.cut", f->path);
    return name;
}

static void assert_refused(const struct fixture *f, const char *text, size_t length,
                           const char *message) {
    struct msc_record *record = NULL;
    char salvage[PATH_MAX + 32];
    snprintf(salvage, sizeof salvage, "mscgym salvage %s -o NEW", f->path);
    for (int mode = MSC_RECORD_READ; mode <= MSC_RECORD_APPEND; mode++) {
        assert_int_equal(msc_record_open(&record, f->path, (enum msc_record_mode)mode, NULL),
                         MSC_E_FORMAT);
        assert_message(message);
        assert_message(salvage);
    }
    assert_file(f->path, text, length);
    assert_false(msc_file_exists(name_cut(f)));
}

static void assert_cut(const struct fixture *f, size_t n_trials) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL));
    assert_int_equal(msc_record_n_trials(record), n_trials);
    assert_true(msc_record_was_cut(record));
    msc_record_close(record);
}

static void test_records_record_damage__every_line(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    fixture_write(f, 20);
    char *text = spoil(&length, f, 2, 21);
    assert_refused(f, text, length, "line 2 is damaged");
    msc_free(text);
}

static void test_records_record_damage__more_than_one_commit(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    fixture_write(f, 20);
    char *text = spoil(&length, f, 21 - PARALLEL, 21);
    assert_refused(f, text, length, "line 17 is damaged");
    msc_free(text);
}

// If the first commit is damaged, nothing of the search is left, so the record is refused instead
// of cut.
static void test_records_record_damage__all_after_the_header(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    fixture_write(f, 1);
    char *text = spoil(&length, f, 2, 2);
    assert_refused(f, text, length, "line 2 is damaged");
    msc_free(text);
}

static void test_records_record_damage__good_lines_follow(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    fixture_write(f, 8);
    char *text = spoil(&length, f, 4, 4);
    assert_refused(f, text, length, "line 4 is damaged (its checksum does not match) and 5 good");
    msc_free(text);
}

// Ids that are not consecutive, as in a file edited by hand.
static void test_records_record_damage__out_of_order(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    fixture_write(f, 3);
    char *text = fixture_read(&length, f->path);
    char *second = strchr(strchr(text, '\n') + 1, '\n') + 1;
    char *twice = malloc(2 * length);
    size_t n =
        (size_t)snprintf(twice, 2 * length, "%s%.*s\n", text, (int)strcspn(second, "\n"), second);
    fixture_put(f->path, twice, n);
    assert_refused(f, twice, n, "line 5: trial id 1, expected 3");
    free(twice);
    msc_free(text);
}

// The cut bytes are kept, together with the bytes of earlier cuts.
static void test_records_record_damage__kept(void **state) {
    const struct fixture *f = *state;
    size_t length = 0;
    struct stat info;
    fixture_write(f, 20);
    assert_int_equal(stat(f->path, &info), 0);
    char *text = spoil(&length, f, 22 - PARALLEL, 21);
    assert_cut(f, 16);
    size_t n_good = 0;
    char *good = fixture_read(&n_good, f->path);
    assert_memory_equal(good, text, n_good);
    assert_file(name_cut(f), text + n_good, length - n_good);
    // A write torn by a power cut: blocks of zeros without a newline.
    char *torn = calloc(n_good + 5000, 1);
    memcpy(torn, good, n_good);
    fixture_put(f->path, torn, n_good + 5000);
    assert_cut(f, 16);
    assert_file(f->path, good, n_good);
    size_t n_kept = 0;
    char *kept = fixture_read(&n_kept, name_cut(f));
    // The bytes are kept with a final newline.
    assert_int_equal(n_kept, length - n_good + 5000 + 1);
    assert_memory_equal(kept, text + n_good, length - n_good);
    assert_int_equal(kept[n_kept - 1], '\n');
    free(torn);
    msc_free(kept);
    msc_free(good);
    msc_free(text);
}

static void test_records_record_damage__not_kept_not_cut(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    size_t length = 0;
    fixture_write(f, 6);
    char *text = spoil(&length, f, 7, 7);
    for (int i = 0; i < 2; i++) { // a pipe without a reader must not block
        assert_int_equal(i == 0 ? mkdir(name_cut(f), 0777) : mkfifo(name_cut(f), 0666), 0);
        assert_int_not_equal(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL), MSC_OK);
        assert_message(name_cut(f));
        assert_message("not cut");
        assert_file(f->path, text, length);
        assert_int_equal(remove(name_cut(f)), 0);
    }
    msc_free(text);
}

// Trials are written as soon as a commit is full, even without a call to commit.
static void test_records_record_damage__short_writes(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (int64_t id = 0; id <= PARALLEL; id++) {
        const struct msc_record_line trial = fixture_trial(id);
        assert_ok(msc_record_append_trial(record, &trial));
    }
    struct msc_record *seen = NULL;
    assert_ok(msc_record_open(&seen, f->path, MSC_RECORD_READ, NULL));
    assert_int_equal(msc_record_n_trials(seen), PARALLEL);
    msc_record_close(seen);
    msc_record_close(record);
}

// The last warning that the record gave.
static char warning[512];

static void take_warning(void *payload, enum msc_log_level level, const char *line) {
    (void)payload;
    if (level == MSC_LOG_WARNING) {
        snprintf(warning, sizeof warning, "%s", line);
    }
}

static const struct msc_log warnings = {.level = MSC_LOG_WARNING, .write = take_warning};

// Opens a record in which line `number` has a damaged `measured` member. Opening must warn but must
// not cut the record.
static struct msc_record *open_damaged(const char *path, const char *number) {
    struct msc_record *record = NULL;
    warning[0] = '\0';
    assert_ok(msc_record_open(&record, path, MSC_RECORD_READ, &warnings));
    assert_false(msc_record_was_cut(record));
    assert_non_null(strstr(warning, "`measured` is damaged"));
    assert_non_null(strstr(warning, number));
    return record;
}

// Changes each byte of `measured` in the header, in a middle line and in the last line.
static void test_records_record_damage__measured(void **state) {
    const struct fixture *f = *state;
    static const size_t numbers[] = {1, 3, 5};
    size_t length = 0;
    fixture_write(f, 4);
    char *text = fixture_read(&length, f->path);
    for (size_t k = 0; k < 3; k++) {
        char name[32];
        char *line = text;
        for (size_t i = 1; i < numbers[k]; i++) {
            line = strchr(line, '\n') + 1;
        }
        snprintf(name, sizeof name, "line %zu", numbers[k]);
        for (char *at = strstr(line, ",\"measured\""); *at != '\n'; at++) {
            char before = *at;
            *at = (char)(before ^ 1);
            fixture_put(f->path, text, length);
            *at = before;
            struct msc_record *record = open_damaged(f->path, name);
            assert_int_equal(msc_record_n_trials(record), 4);
            for (int64_t id = 0; id < 4; id++) {
                struct msc_record_line expected = fixture_trial(id);
                if (id + 2 == (int64_t)numbers[k]) {
                    expected.trial.outcome.time_us = 0;
                    expected.trial.outcome.reuse_ratio = 0.0;
                    expected.elapsed_s = 0.25 * (double)(id - 1); // taken from the previous line
                }
                const struct msc_record_line read = msc_record_trial(record, (size_t)id);
                fixture_assert_same(&read, &expected);
            }
            msc_record_close(record);
        }
    }
    msc_free(text);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_records_record_damage__##name, fixture_setup,             \
                                    fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(every_line),        CASE(more_than_one_commit), CASE(all_after_the_header),
        CASE(good_lines_follow), CASE(out_of_order),         CASE(kept),
        CASE(not_kept_not_cut),  CASE(short_writes),         CASE(measured),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
