// Scanning a record that is still being written: new lines, torn lines, damage and memory use.
// Lines are compared with the fixture's lines.
#include "../msc_test.h"
#include "base/alloc.h"
#include "records/record_scan.h"
#include "records_fixture.h"

#include <stdio.h>

static void expect_lines(struct msc_record_scan *scan, int64_t first, int64_t end) {
    const struct msc_record_line *line = NULL;
    for (int64_t i = first; i < end; i++) {
        const struct msc_record_line expected = fixture_trial(i);
        assert_ok(msc_record_scan_next(&line, scan));
        assert_non_null(line);
        fixture_assert_same(line, &expected);
    }
    assert_ok(msc_record_scan_next(&line, scan));
    assert_null(line);
    assert_int_equal(msc_record_n_trials(msc_record_scan_record(scan)), end);
}

// Appended lines are returned without reading earlier ones again.
static void test_records_record_scan__follow(void **state) {
    const struct fixture *f = *state;
    struct msc_record_scan *scan = NULL;
    struct msc_record *record = NULL;
    fixture_write(f, 5);
    assert_ok(msc_record_scan_open(&scan, f->path, NULL));
    assert_int_equal(msc_record_space(msc_record_scan_record(scan))->n_tasks, FIXTURE_TASKS);
    expect_lines(scan, 0, 5);
    expect_lines(scan, 5, 5);
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL));
    assert_ok(msc_record_append_segment(record, "other", false));
    for (int64_t i = 5; i < 9; i++) {
        const struct msc_record_line line = fixture_trial(i);
        assert_ok(msc_record_append_trial(record, &line));
    }
    assert_ok(msc_record_commit(record));
    expect_lines(scan, 5, 9);
    assert_string_equal(msc_record_numerics(msc_record_scan_record(scan), 8), "other");
    assert_int_equal(msc_record_n_bytes(msc_record_scan_record(scan)), msc_record_n_bytes(record));
    msc_record_close(record);
    msc_record_scan_close(scan);
}

// A partly written line is returned once it is complete, and never if it is cut off.
static void test_records_record_scan__torn(void **state) {
    const struct fixture *f = *state;
    struct msc_record_scan *scan = NULL;
    size_t n_bytes = 0;
    fixture_write(f, 7);
    char *text = fixture_read(&n_bytes, f->path);
    fixture_put(f->path, text, n_bytes - 30);
    assert_ok(msc_record_scan_open(&scan, f->path, NULL));
    expect_lines(scan, 0, 6);
    assert_true(msc_record_was_cut(msc_record_scan_record(scan)));
    fixture_put(f->path, text, n_bytes); // writes the complete text again
    expect_lines(scan, 6, 7);
    assert_false(msc_record_was_cut(msc_record_scan_record(scan)));
    // Damage up to the end of the file may be the torn end of a write.
    msc_record_scan_close(scan);
    text[n_bytes - 200] ^= 1;
    fixture_put(f->path, text, n_bytes);
    assert_ok(msc_record_scan_open(&scan, f->path, NULL));
    expect_lines(scan, 0, 6);
    assert_true(msc_record_was_cut(msc_record_scan_record(scan)));
    text[n_bytes - 200] ^= 1;
    fixture_put(f->path, text, n_bytes);
    expect_lines(scan, 6, 7);
    fixture_put(f->path, text, n_bytes - 400);
    const struct msc_record_line *line = NULL;
    assert_int_equal(msc_record_scan_next(&line, scan), MSC_E_STATE);
    msc_record_scan_close(scan);
    msc_free(text);
}

static void test_records_record_scan__damaged(void **state) {
    const struct fixture *f = *state;
    struct msc_record_scan *scan = NULL;
    const struct msc_record_line *line = NULL;
    size_t n_bytes = 0;
    enum msc_status status = MSC_OK;
    fixture_write(f, 7);
    char *text = fixture_read(&n_bytes, f->path);
    strstr(text, "\"id\":3,")[5] = '4';
    fixture_put(f->path, text, n_bytes);
    assert_ok(msc_record_scan_open(&scan, f->path, NULL));
    do {
        status = msc_record_scan_next(&line, scan);
    } while (status == MSC_OK && line);
    assert_int_equal(status, MSC_E_FORMAT);
    assert_non_null(strstr(msc_status_message(), "good lines follow; mscgym salvage"));
    msc_record_scan_close(scan);
    msc_free(text);
    assert_int_equal(msc_record_scan_open(&scan, f->folder, NULL), MSC_E_INVALID);
}

// Memory use does not grow with the length of the record.
static void test_records_record_scan__memory(void **state) {
    const struct fixture *f = *state;
    struct msc_record_scan *scan = NULL;
    const struct msc_record_line *line = NULL;
    fixture_write(f, 3000);
    assert_ok(msc_record_scan_open(&scan, f->path, NULL));
    assert_ok(msc_record_scan_next(&line, scan));
    size_t n_bytes = msc_record_scan_memory(scan);
    expect_lines(scan, 1, 3000);
    assert_int_equal(msc_record_scan_memory(scan), n_bytes);
    assert_true(n_bytes < (size_t)400 << 10);
    msc_record_scan_close(scan);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records_record_scan__follow, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_records_record_scan__torn, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_records_record_scan__damaged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_records_record_scan__memory, fixture_setup,
                                        fixture_teardown),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
