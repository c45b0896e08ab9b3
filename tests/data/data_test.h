// Helpers of the tests of data/: input files, a folder for output files, damaged copies of a file,
// and checks of error messages.
#ifndef MSC_TESTS_DATA_TEST_H
#define MSC_TESTS_DATA_TEST_H

#include "data/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PATH_BYTES 512

// Writes the path of a file in tests/data/files/ to `path` and returns `path`.
const char *test_file(char path[PATH_BYTES], const char *name);
// Group set-up and tear-down: *state is the path of a new folder.
int test_folder_setup(void **state);
int test_folder_teardown(void **state);
// Writes the path of a file in the test's folder to `path` and returns `path`.
const char *test_path(char path[PATH_BYTES], void **state, const char *name);

// Fails unless `status` is `expected` and the error message contains every given word (NULL ends
// the list).
void test_fails(enum msc_status status, enum msc_status expected, ...);

// Loads a file, discards its content and returns the status.
typedef enum msc_status (*test_load)(const char *path);
// Loads copies of `source` cut at every length. Each must fail with a one-line message that names
// the copy.
void test_truncations(void **state, const char *source, const char *copy_name, test_load load);
// Loads copies of `source` in which one byte is changed. Every byte is changed in several ways.
// Each copy must load, or fail with a one-line message that names the copy.
void test_changed_bytes(void **state, const char *source, const char *copy_name, test_load load);

// Checks type and shape, and that element i is first + step * i.
void test_is_ramp(const struct msc_array *array, enum msc_dtype dtype, int n_dims,
                  const int64_t dims[], double first, double step);

#endif
