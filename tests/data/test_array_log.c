// The append-only log of named arrays: reading back, cut and damaged logs, and a foreign file at
// the log's path. Expected elements are those written.
#include "data/array_log.h"

#include "data_test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct msc_hash identity = {.low = 7, .high = 9};

// Warnings, concatenated.
struct told {
    char text[1024];
};

static void keep_line(void *payload, enum msc_log_level level, const char *line) {
    struct told *t = payload;
    size_t length = strlen(t->text);
    (void)level;
    snprintf(t->text + length, sizeof t->text - length, "%s\n", line);
}

static struct msc_log log_of(struct told *t) {
    *t = (struct told){""};
    return (struct msc_log){.level = MSC_LOG_INFO, .write = keep_line, .payload = t};
}

static void add_ramp(struct msc_array_log *l, const char *name, int64_t n, float first) {
    struct msc_array *array;
    assert_int_equal(msc_array_create(&array, MSC_DTYPE_F32, 1, &n), MSC_OK);
    for (int64_t i = 0; i < n; i++) {
        ((float *)msc_array_data(array))[i] = first + (float)i;
    }
    assert_int_equal(msc_array_log_add(l, name, array), MSC_OK);
    msc_array_release(array);
}

static void has_ramp(const struct msc_array_log *l, const char *name, int64_t n, float first) {
    struct msc_array *array;
    assert_int_equal(msc_array_log_read(&array, l, name), MSC_OK);
    test_is_ramp(array, MSC_DTYPE_F32, 1, &n, first, 1);
    msc_array_release(array);
}

// Three arrays: "a" with elements, "b" with none, and "c" with no dimensions.
static void write_three(const char *path) {
    struct msc_array_log *l;
    struct msc_array *scalar;
    int64_t value = -5;
    assert_int_equal(msc_file_remove(path), MSC_OK);
    assert_int_equal(msc_array_log_open(&l, path, identity, NULL), MSC_OK);
    add_ramp(l, "a", 5, 1);
    add_ramp(l, "b", 0, 0);
    assert_int_equal(msc_array_create_from(&scalar, MSC_DTYPE_I64, 0, NULL, &value), MSC_OK);
    assert_int_equal(msc_array_log_add(l, "c", scalar), MSC_OK);
    msc_array_release(scalar);
    msc_array_log_close(l);
}

static void test_data_array_log__read_back(void **state) {
    char path[PATH_BYTES];
    struct msc_array_log *l;
    struct msc_array *array;
    write_three(test_path(path, state, "three"));
    assert_int_equal(msc_array_log_open(&l, path, identity, NULL), MSC_OK);
    assert_int_equal(msc_array_log_n(l), 3);
    assert_string_equal(msc_array_log_name(l, 2), "c");
    has_ramp(l, "a", 5, 1);
    has_ramp(l, "b", 0, 0);
    assert_int_equal(msc_array_log_read(&array, l, "c"), MSC_OK);
    assert_int_equal(msc_array_get_i64(array, 0), -5);
    msc_array_release(array);
    test_fails(msc_array_log_read(&array, l, "d"), MSC_E_NOT_FOUND, "three", "no array d", NULL);
    // Only one process may write at a time.
    struct msc_array_log *other;
    test_fails(msc_array_log_open(&other, path, identity, NULL), MSC_E_STATE, "another process",
               NULL);
    add_ramp(l, "d", 2, 8);
    msc_array_log_close(l);
    assert_int_equal(msc_array_log_open(&l, path, identity, NULL), MSC_OK);
    has_ramp(l, "d", 2, 8);
    msc_array_log_close(l);
}

// A log cut at any byte, as a killed writer leaves it, still has its complete arrays, and can be
// appended to.
static void test_data_array_log__cut_anywhere(void **state) {
    char path[PATH_BYTES], copy[PATH_BYTES];
    char *bytes;
    size_t n_bytes;
    write_three(test_path(path, state, "cut"));
    assert_int_equal(msc_file_read(&bytes, &n_bytes, path), MSC_OK);
    test_path(copy, state, "copy");
    size_t most = 0;
    for (size_t n = 0; n <= n_bytes; n++) {
        struct told told;
        struct msc_log log = log_of(&told);
        struct msc_array_log *l;
        assert_int_equal(msc_file_write(copy, bytes, n), MSC_OK);
        assert_int_equal(msc_array_log_open(&l, copy, identity, &log), MSC_OK);
        size_t n_there = msc_array_log_n(l);
        assert_true(n_there >= most && n_there <= most + 1);
        size_t before = most;
        most = n_there;
        if (n_there > 0) {
            has_ramp(l, "a", 5, 1);
        }
        bool is_whole = n == 0 || n == 32 || n_there > before;
        const char *what = n < 32 ? "damaged" : "incomplete";
        assert_true(is_whole ? told.text[0] == 0 : strstr(told.text, what) != NULL);
        add_ramp(l, "more", 3, 2);
        msc_array_log_close(l);
        assert_int_equal(msc_array_log_open(&l, copy, identity, NULL), MSC_OK);
        assert_int_equal(msc_array_log_n(l), n_there + 1);
        has_ramp(l, "more", 3, 2);
        msc_array_log_close(l);
    }
    assert_int_equal(most, 3);
    msc_free(bytes);
}

// If any one byte is changed, no wrong array is read, and at most one warning is given.
static void test_data_array_log__damaged_anywhere(void **state) {
    char path[PATH_BYTES], copy[PATH_BYTES];
    char *bytes;
    size_t n_bytes;
    write_three(test_path(path, state, "damaged"));
    assert_int_equal(msc_file_read(&bytes, &n_bytes, path), MSC_OK);
    test_path(copy, state, "copy");
    for (size_t at = 0; at < n_bytes; at++) {
        struct told told;
        struct msc_log log = log_of(&told);
        struct msc_array_log *l;
        bytes[at] ^= 0x41;
        assert_int_equal(msc_file_write(copy, bytes, n_bytes), MSC_OK);
        bytes[at] ^= 0x41;
        if (at < 16) { // without a valid head the file is not recognised as an array log
            test_fails(msc_array_log_open(&l, copy, identity, &log), MSC_E_FORMAT, copy, NULL);
            continue;
        }
        assert_int_equal(msc_array_log_open(&l, copy, identity, &log), MSC_OK);
        assert_true(msc_array_log_n(l) < 3);
        if (msc_array_log_n(l) > 0) {
            has_ramp(l, "a", 5, 1);
        }
        const char *end = strchr(told.text, '\n');
        assert_true(!end || (end[1] == 0 && strstr(told.text, copy)));
        msc_array_log_close(l);
    }
    msc_free(bytes);
}

static void test_data_array_log__of_another(void **state) {
    const struct msc_hash other = {.low = 7, .high = 8};
    char path[PATH_BYTES];
    struct told told;
    struct msc_log log = log_of(&told);
    struct msc_array_log *l;
    write_three(test_path(path, state, "other"));
    assert_int_equal(msc_array_log_open(&l, path, other, &log), MSC_OK);
    assert_non_null(strstr(told.text, "belongs to another configuration"));
    assert_int_equal(msc_array_log_n(l), 0);
    add_ramp(l, "a", 1, 3);
    msc_array_log_close(l);
    assert_int_equal(msc_array_log_open(&l, path, other, NULL), MSC_OK);
    has_ramp(l, "a", 1, 3);
    msc_array_log_close(l);
    // Paths at which no log can be made.
    test_fails(msc_array_log_open(&l, "/dev/null", other, NULL), MSC_E_IO, "/dev/null", NULL);
    test_fails(msc_array_log_open(&l, "/nowhere/a", other, NULL), MSC_E_IO, "/nowhere/a", NULL);
}

// A foreign file or a link at the log's path is refused and left unchanged.
static void test_data_array_log__of_others(void **state) {
    static const char precious[] = "what somebody wrote, and keeps here";
    char path[PATH_BYTES], target[PATH_BYTES];
    struct msc_array_log *l = NULL;
    char *bytes = NULL;
    size_t n_bytes = 0;
    test_path(path, state, "log");
    test_path(target, state, "precious");
    for (int i = 0; i < 4; i++) {
        static const char *const words[] = {"not an array file", "symbolic link", "symbolic link",
                                            "hard link"};
        (void)msc_file_remove(path);
        const char *held = i == 0 ? path : target;
        if (i == 2) { // the link's target is itself an array log
            write_three(target);
        } else {
            assert_int_equal(msc_file_write(held, precious, sizeof precious), MSC_OK);
        }
        if (i > 0) {
            assert_int_equal(i == 3 ? link(target, path) : symlink(target, path), 0);
        }
        struct stat before, after;
        assert_int_equal(stat(held, &before), 0);
        test_fails(msc_array_log_open(&l, path, identity, NULL), i == 0 ? MSC_E_FORMAT : MSC_E_IO,
                   path, words[i], NULL);
        msc_array_log_remove(path);
        assert_int_equal(stat(path, &after), 0);
        assert_true(after.st_ino == before.st_ino && after.st_size == before.st_size);
        assert_int_equal(msc_file_read(&bytes, &n_bytes, path), MSC_OK);
        assert_true(i == 2 || memcmp(bytes, precious, sizeof precious) == 0);
        msc_free(bytes);
    }
    assert_int_equal(unlink(path), 0);
    write_three(path);
    msc_array_log_remove(path);
    assert_false(msc_file_exists(path));
    msc_array_log_remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_array_log__read_back),
        cmocka_unit_test(test_data_array_log__cut_anywhere),
        cmocka_unit_test(test_data_array_log__damaged_anywhere),
        cmocka_unit_test(test_data_array_log__of_another),
        cmocka_unit_test(test_data_array_log__of_others),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
