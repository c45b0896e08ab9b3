// Fixture: a toy environment opened from JSON.
#ifndef MSC_TESTS_ENV_TOY_H
#define MSC_TESTS_ENV_TOY_H

#include "base/json.h"
#include "env/env.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

struct toy_fixture {
    struct cJSON *config;
    struct msc_env *env;
    struct msc_goal goal;
    struct msc_arena arena; // memory of the outcomes
};

static inline void toy_open(struct toy_fixture *f, const char *json) {
    const struct msc_env_host host = {0};
    memset(f, 0, sizeof *f);
    assert_ok(msc_json_parse(&f->config, json, strlen(json), "toy"));
    assert_ok(msc_env_create(&f->env, msc_env_find("toy"), f->config, &host));
    assert_ok(msc_env_read_goal(&f->goal, msc_env_space(f->env), f->config));
}

static inline void toy_close(struct toy_fixture *f) {
    msc_env_destroy(f->env);
    cJSON_Delete(f->config);
    msc_arena_finish(&f->arena);
}

// A trial with these choices; it lives until the fixture is closed.
static inline struct msc_trial *toy_trial(struct toy_fixture *f, int64_t id,
                                          const uint32_t choices[]) {
    const struct msc_space *space = msc_env_space(f->env);
    struct msc_trial *trial = msc_arena_array(&f->arena, 1, sizeof *trial);
    assert_non_null(trial);
    assert_ok(msc_trial_init(trial, &f->arena, space));
    trial->id = id;
    memcpy(trial->proposal.choices, choices, space->n_tasks * sizeof *choices);
    return trial;
}

static inline struct msc_outcome toy_measure(struct toy_fixture *f, int64_t id,
                                             const uint32_t choices[]) {
    struct msc_trial *trial = toy_trial(f, id, choices);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    trial->proposal.probe = true;
    assert_ok(msc_env_evaluate(f->env, &f->goal, &e));
    return trial->outcome;
}

#endif
