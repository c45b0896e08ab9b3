// Runs searches whose records are in a temporary folder, and compares and damages these records.
#ifndef MSC_TESTS_SEARCH_FIXTURE_H
#define MSC_TESTS_SEARCH_FIXTURE_H

#include "env/env.h"
#include "search/search.h"

#include <limits.h>

#define FIXTURE_PATH_BYTES (PATH_MAX + 64)

struct fixture {
    char folder[PATH_MAX];
    char path[FIXTURE_PATH_BYTES]; // path of the record
};

int fixture_setup(void **state);
int fixture_teardown(void **state);
void fixture_join(char path[FIXTURE_PATH_BYTES], const struct fixture *f, const char *name);

// One launch of a search. Texts are JSON; if a text is NULL, the fixture uses a default.
struct launch {
    const char *path;              // path of the record
    const char *env;               // parameters of the environment, objectives, bounds
    const struct msc_env_def *def; // NULL: the toy environment
    const char *agent;
    struct msc_search_options options; // the fixture sets env, agent_config, goal and record_path
};
#define LAUNCH_TRIALS(n)                                                                           \
    {                                                                                              \
        .parallel = 8, .numerics = "test", .budget = {.trials = (n) }                              \
    }

// A finished search whose environment is still open.
struct search_run {
    enum msc_status status;
    struct msc_search_result result;
    struct msc_env *env;
    struct msc_goal goal;
    struct cJSON *env_config;
    struct cJSON *agent_config;
};
void run_launch(struct search_run *run, const struct launch *launch);
void run_finish(struct search_run *run);
// Runs and frees a launch; fails the running test on an error.
enum msc_search_end launch(const struct launch *launch);

// Canonical text of a record, to be freed with free().
char *canonical(const char *path);
// Like canonical, but without the header line.
char *canonical_lines(const char *path);
void assert_same_record(const char *path, const char *expected_path);
// True if the canonical text of `longer` begins with the canonical text of `shorter`.
bool is_prefix(const char *shorter, const char *longer);
void remove_record(const char *path);
// Truncates a record after its first n trials.
void cut_record(const char *path, size_t n);

#endif
