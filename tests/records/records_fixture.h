// Fixture of the record tests: a small space, a folder with a record of it, and trials to append.
#ifndef MSC_TESTS_RECORDS_FIXTURE_H
#define MSC_TESTS_RECORDS_FIXTURE_H

#include "records/record.h"
#include "records/record_header.h"

#include <limits.h>

#define FIXTURE_TASKS 3
#define FIXTURE_METRICS 3

struct fixture {
    char folder[PATH_MAX];
    char path[PATH_MAX];
    struct cJSON *header;
};

// cmocka set-up and tear-down; *state is a struct fixture.
int fixture_setup(void **state);
int fixture_teardown(void **state);

// 3 tasks, 3 metrics (loss, exact size, accuracy), 2 baselines.
extern const struct msc_space fixture_space;
// Minimise the loss, maximise the accuracy; the size is at most 100.
extern const struct msc_goal fixture_goal;

// A complete trial whose values are derived from `id`.
struct msc_record_line fixture_trial(int64_t id);
// Writes a new record with n trials of fixture_trial and closes it.
void fixture_write(const struct fixture *f, size_t n);
// Reads the whole file; the caller frees it with msc_free.
char *fixture_read(size_t *n_bytes, const char *path);
void fixture_put(const char *path, const char *data, size_t n_bytes);
// Fails the running test unless both lines have the same content.
void fixture_assert_same(const struct msc_record_line *a, const struct msc_record_line *b);

#endif
