// A small space, a record of it in a folder of its own, and trials to put in.
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

// cmocka's setup and teardown; *state is a struct fixture.
int fixture_setup(void **state);
int fixture_teardown(void **state);

extern const struct msc_space fixture_space; // 3 tasks; loss, size (exact), accuracy; 2 baselines
// Minimise the loss, maximise the accuracy, size at most 100.
extern const struct msc_goal fixture_goal;

// The line of a complete trial with the given id and values made from it.
struct msc_record_line fixture_trial(int64_t id);
// A new record with n trials of fixture_trial, closed.
void fixture_write(const struct fixture *f, size_t n);
// The whole file; freed with msc_free.
char *fixture_read(size_t *n_bytes, const char *path);
void fixture_put(const char *path, const char *data, size_t n_bytes);
// Fails the running test unless the two lines say the same.
void fixture_assert_same(const struct msc_record_line *a, const struct msc_record_line *b);

#endif
