// A record is removed, renamed or replaced while it is being written. No trial is lost, and a
// foreign file at the record's path is not touched. Expected texts come from a record that stays at
// its path.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "records/record_query.h"
#include "records_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void remove_it(const char *path) {
    assert_int_equal(unlink(path), 0);
}

static void rename_it(const char *path) {
    char other[PATH_MAX + 32];
    snprintf(other, sizeof other, "%.4100s.other", path);
    assert_int_equal(rename(path, other), 0);
}

// Replaces the file by a new file with the same content, as sed -i does.
static void replace_it(const char *path) {
    size_t length = 0;
    char *text = fixture_read(&length, path);
    rename_it(path);
    fixture_put(path, text, length);
    msc_free(text);
}

static void empty_it(const char *path) {
    assert_int_equal(truncate(path, 0), 0);
}

static void shorten_it(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 7), 0);
}

static void add_to_it(const char *path) {
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    fputs("something else\n", file);
    fclose(file);
}

static void put_folder_there(const char *path) {
    rename_it(path);
    assert_int_equal(mkdir(path, 0777), 0);
}

static enum msc_status gather(void *payload, const char *line, size_t length) {
    struct msc_str *text = payload;
    msc_str_append_n(text, line, length);
    msc_str_char(text, '\n');
    return msc_str_status(text);
}

static void append(struct msc_record *record, int64_t first, int64_t end) {
    for (int64_t id = first; id < end; id++) {
        const struct msc_record_line trial = fixture_trial(id);
        assert_ok(msc_record_append_trial(record, &trial));
    }
}

// The canonical text of a record of seven trials with a segment line after the fourth.
static void make_expected(struct msc_str *out, const struct fixture *f) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    append(record, 0, 4);
    assert_ok(msc_record_append_segment(record, "other", false));
    append(record, 4, 7);
    assert_ok(msc_record_commit(record));
    msc_record_close(record);
    assert_ok(msc_record_canonical(f->path, NULL, gather, out));
    assert_int_equal(unlink(f->path), 0);
}

static void assert_record(const char *path, const struct msc_str *expected) {
    struct msc_str text = {0};
    assert_ok(msc_record_canonical(path, NULL, gather, &text));
    assert_string_equal(msc_str_text(&text), msc_str_text(expected));
    msc_str_finish(&text);
}

static void test_records_record_elsewhere__saved(void **state) {
    static const struct {
        void (*act)(const char *path);
        bool is_there; // whether a file exists at the path afterwards
    } rows[] = {
        {remove_it, false}, {rename_it, false}, {replace_it, true},
        {empty_it, true},   {shorten_it, true}, {add_to_it, true},
    };
    const struct fixture *f = *state;
    struct msc_str expected = {0};
    char saved[PATH_MAX + 16];
    char params[PATH_MAX + 32];
    make_expected(&expected, f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_record *record = NULL;
        size_t n_before = 0;
        size_t n_after = 0;
        snprintf(params, sizeof params, "%s.params", f->path);
        fixture_put(params, "p", 1);
        assert_ok(msc_record_create(&record, f->path, f->header, NULL));
        append(record, 0, 3);
        assert_ok(msc_record_commit(record));
        assert_false(msc_record_is_elsewhere(record));
        rows[i].act(f->path);
        char *before = rows[i].is_there ? fixture_read(&n_before, f->path) : NULL;
        append(record, 3, 4);
        assert_ok(msc_record_append_segment(record, "other", false));
        append(record, 4, 5);
        assert_ok(msc_record_commit(record));
        assert_true(msc_record_is_elsewhere(record));
        append(record, 5, 7);
        assert_ok(msc_record_commit(record));
        snprintf(saved, sizeof saved, "%s.saved.1", f->path);
        assert_string_equal(msc_record_path(record), saved);
        assert_record(saved, &expected);
        snprintf(params, sizeof params, "%s.params", saved);
        assert_true(msc_file_exists(params));
        assert_int_equal(msc_file_exists(f->path), rows[i].is_there);
        if (before) {
            char *after = fixture_read(&n_after, f->path);
            assert_int_equal(n_after, n_before);
            assert_memory_equal(after, before, n_before);
            msc_free(after);
            msc_free(before);
            assert_int_equal(unlink(f->path), 0);
        }
        msc_record_close(record);
        assert_int_equal(unlink(saved), 0);
        assert_int_equal(unlink(params), 0);
    }
    msc_str_finish(&expected);
}

// The record is lost twice, so the second copy needs another name. A commit without new trials also
// notices that the record is lost.
static void test_records_record_elsewhere__again(void **state) {
    const struct fixture *f = *state;
    struct msc_str expected = {0};
    struct msc_record *record = NULL;
    char saved[2][PATH_MAX + 16];
    make_expected(&expected, f);
    for (int i = 0; i < 2; i++) {
        snprintf(saved[i], sizeof saved[i], "%s.saved.%d", f->path, i + 1);
    }
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    append(record, 0, 4);
    assert_ok(msc_record_append_segment(record, "other", false));
    append(record, 4, 7);
    assert_ok(msc_record_commit(record));
    remove_it(f->path);
    assert_ok(msc_record_commit(record));
    assert_record(saved[0], &expected);
    replace_it(saved[0]);
    assert_ok(msc_record_commit(record));
    assert_record(saved[1], &expected);
    msc_record_close(record);
    msc_str_finish(&expected);
}

// The record's whole folder is removed.
static void test_records_record_elsewhere__folder(void **state) {
    struct fixture *f = *state;
    struct msc_str expected = {0};
    struct msc_record *record = NULL;
    char folder[PATH_MAX + 8];
    char saved[PATH_MAX + 16];
    snprintf(folder, sizeof folder, "%.4000s/inner", f->folder);
    snprintf(f->path, sizeof f->path, "%.4000s/inner/a.jsonl", f->folder);
    snprintf(saved, sizeof saved, "%s.saved.1", f->path);
    assert_int_equal(mkdir(folder, 0777), 0);
    make_expected(&expected, f);
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    append(record, 0, 4);
    assert_ok(msc_record_commit(record));
    remove_it(f->path);
    assert_int_equal(rmdir(folder), 0);
    assert_ok(msc_record_append_segment(record, "other", false));
    append(record, 4, 7);
    assert_ok(msc_record_commit(record));
    assert_record(saved, &expected);
    msc_record_close(record);
    assert_int_equal(unlink(saved), 0);
    // If no copy can be written either, the commit fails and reports it.
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    append(record, 0, 1);
    remove_it(f->path);
    assert_int_equal(rmdir(folder), 0);
    fixture_put(folder, "x", 1);
    assert_int_equal(msc_record_commit(record), MSC_E_IO);
    assert_message("cannot be saved elsewhere");
    msc_record_close(record);
    msc_str_finish(&expected);
}

static void test_records_record_elsewhere__not_a_file(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    append(record, 0, 2);
    put_folder_there(f->path);
    assert_ok(msc_record_commit(record));
    assert_true(msc_record_is_elsewhere(record));
    msc_record_close(record);
    assert_int_equal(rmdir(f->path), 0);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_records_record_elsewhere__##name, fixture_setup,          \
                                    fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(saved),
        CASE(again),
        CASE(folder),
        CASE(not_a_file),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
