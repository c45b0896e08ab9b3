// What the tests of data/ share: files beside the tests, a folder for files they write, damaged
// copies of a file, and checks of error texts.
#ifndef MSC_TESTS_DATA_TEST_H
#define MSC_TESTS_DATA_TEST_H

#include "data/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PATH_BYTES 512

// The path of a file in tests/data/files/, in `path`; returns `path`.
const char *test_file(char path[PATH_BYTES], const char *name);
// Group set-up and tear-down: *state is a fresh folder's path.
int test_folder_setup(void **state);
int test_folder_teardown(void **state);
// The path of a file in that folder.
const char *test_path(char path[PATH_BYTES], void **state, const char *name);

// Fails unless `status` is `expected` and the error text holds each of the words (NULL ends them).
void test_fails(enum msc_status status, enum msc_status expected, ...);

// Loads a file and forgets what came; a sweep wants only the status.
typedef enum msc_status (*test_load)(const char *path);
// Copies of `source` cut at every length: each must fail with one line that names the copy.
void test_truncations(void **state, const char *source, const char *copy_name, test_load load);
// Copies with one byte changed, at every place in several ways: each must load or fail with one
// line that names the copy, never crash.
void test_changed_bytes(void **state, const char *source, const char *copy_name, test_load load);

// Checks type, shape and that element i is first + step * i.
void test_is_ramp(const struct msc_array *array, enum msc_dtype dtype, int n_dims,
                  const int64_t dims[], double first, double step);

#endif
