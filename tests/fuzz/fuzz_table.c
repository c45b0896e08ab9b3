// Files of the environment `table`: a JSON file, a NUL, and the CSV file that it may name
// "rows.csv". If nothing comes before the NUL, only the rows are used. Spaces that load must be
// valid, and their points can be evaluated.
#include "base/json.h"
#include "env/env.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { N_POINTS = 3, MOST_TASKS = 4096 };

static void measure(struct msc_env *env, const struct msc_goal *goal, uint32_t point) {
    const struct msc_space *space = msc_env_space(env);
    struct msc_arena arena = {0};
    struct msc_trial trial, *trials[] = {&trial};
    const struct msc_evaluation e = {.trials = trials, .n = 1};
    if (msc_trial_init(&trial, &arena, space) == MSC_OK) {
        for (size_t t = 0; t < space->n_tasks; t++) {
            trial.proposal.choices[t] = (point * 7 + (uint32_t)t) % space->tasks[t].n_choices;
        }
        trial.proposal.probe = true;
        fuzz_check(msc_env_evaluate(env, goal, &e));
        if (trial.outcome.state == MSC_TRIAL_FAILED && trial.outcome.reason[0] == '\0') {
            fuzz_fail("a point fails without a reason");
        }
    }
    msc_arena_finish(&arena);
}

static void read_table(const char *json) {
    cJSON *config = cJSON_Parse(json);
    const struct msc_env_host host = {.n_threads = 1};
    struct msc_goal goal;
    struct msc_env *env = NULL;
    if (config &&
        fuzz_check(msc_env_create(&env, msc_env_find("table"), config, &host)) == MSC_OK &&
        msc_env_space(env)->n_tasks <= MOST_TASKS &&
        fuzz_check(msc_env_read_goal(&goal, msc_env_space(env), NULL)) == MSC_OK) {
        for (uint32_t i = 0; i < N_POINTS; i++) {
            measure(env, &goal, i);
        }
    }
    msc_env_destroy(env);
    cJSON_Delete(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"t.json", "rows.csv", NULL};
    char json[8192];
    const uint8_t *end = n_bytes > 0 ? memchr(data, 0, n_bytes) : NULL;
    if (!end || n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    fuzz_write("t.json", data, (size_t)(end - data));
    fuzz_write("rows.csv", end + 1, n_bytes - (size_t)(end - data) - 1);
    if (end == data) {
        snprintf(json, sizeof json, "{\"file\":\"%s\"}", fuzz_path("rows.csv"));
    } else {
        snprintf(json, sizeof json, "{\"file\":\"%s\"}", fuzz_path("t.json"));
    }
    read_table(json);
    fuzz_check_files(files);
    return 0;
}
