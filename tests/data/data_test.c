// Helpers of the tests of data/, declared in data_test.h.
#include "data_test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "tests/temp_folder.h"

#include <stdio.h>
#include <string.h>

const char *test_file(char path[PATH_BYTES], const char *name) {
    snprintf(path, PATH_BYTES, "%s/data/files/%s", MSC_TESTS_FOLDER, name);
    return path;
}

int test_folder_setup(void **state) {
    char *folder = msc_alloc(TEMP_FOLDER_BYTES);
    assert_non_null(folder);
    temp_folder_make(folder);
    *state = folder;
    return 0;
}

int test_folder_teardown(void **state) {
    temp_folder_remove(*state);
    msc_free(*state);
    return 0;
}

const char *test_path(char path[PATH_BYTES], void **state, const char *name) {
    snprintf(path, PATH_BYTES, "%s/%s", (const char *)*state, name);
    return path;
}

void test_fails(enum msc_status status, enum msc_status expected, ...) {
    const char *message = msc_status_message();
    if (status != expected) {
        fail_msg("status %s, expected %s (%s)", msc_status_name(status), msc_status_name(expected),
                 message);
    }
    if (strchr(message, '\n')) {
        fail_msg("more than one line: %s", message);
    }
    va_list words;
    va_start(words, expected);
    for (const char *word = va_arg(words, const char *); word; word = va_arg(words, const char *)) {
        if (!strstr(message, word)) {
            fail_msg("no \"%s\" in: %s", word, message);
        }
    }
    va_end(words);
}

static void write_copy(const char *path, const char *bytes, size_t n_bytes) {
    // Removed first: some file systems flush a file to disk when it is truncated and written again.
    remove(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    assert_int_equal(fclose(file), 0);
}

void test_truncations(void **state, const char *source, const char *copy_name, test_load load) {
    char path[PATH_BYTES], copy[PATH_BYTES];
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, source)), MSC_OK);
    test_path(copy, state, copy_name);
    for (size_t n = 0; n < n_bytes; n++) {
        write_copy(copy, bytes, n);
        test_fails(load(copy), MSC_E_FORMAT, copy, NULL);
    }
    write_copy(copy, bytes, n_bytes);
    assert_int_equal(load(copy), MSC_OK);
    msc_free(bytes);
}

void test_changed_bytes(void **state, const char *source, const char *copy_name, test_load load) {
    char path[PATH_BYTES], copy[PATH_BYTES];
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, source)), MSC_OK);
    test_path(copy, state, copy_name);
    static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x10, 0x08};
    for (size_t i = 0; i < n_bytes; i++) {
        for (size_t k = 0; k < sizeof changes; k++) {
            bytes[i] = (char)(bytes[i] ^ changes[k]);
            write_copy(copy, bytes, n_bytes);
            bytes[i] = (char)(bytes[i] ^ changes[k]);
            enum msc_status status = load(copy);
            if (status != MSC_OK) {
                test_fails(status, status, copy, NULL);
            }
        }
    }
    msc_free(bytes);
}

void test_is_ramp(const struct msc_array *array, enum msc_dtype dtype, int n_dims,
                  const int64_t dims[], double first, double step) {
    assert_string_equal(msc_dtype_name(msc_array_dtype(array)), msc_dtype_name(dtype));
    char found[MSC_DIMS_TEXT_BYTES], expected[MSC_DIMS_TEXT_BYTES];
    msc_dims_format(found, msc_array_n_dims(array), msc_array_dims(array));
    assert_string_equal(found, msc_dims_format(expected, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        assert_true(msc_array_get_double(array, i) == first + step * (double)i);
    }
}
