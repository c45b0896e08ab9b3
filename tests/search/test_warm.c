// Warm starts: trials and points that a search takes over from other records before it asks its
// agent.
#include "../msc_test.h"
#include "base/json.h"
#include "fake_env.h"
#include "records/record_query.h"
#include "search/warm.h"
#include "search_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char toy[] = "{\"tasks\":6,\"choices\":3,\"interaction\":0.5}";
static const char other_toy[] = "{\"tasks\":6,\"choices\":3,\"interaction\":0.5,\"seed\":1}";
static const char larger_toy[] = "{\"tasks\":8,\"choices\":3,\"interaction\":0.5}";
static const char bounded_toy[] = "{\"tasks\":6,\"choices\":3,\"interaction\":0.5,"
                                  "\"bounds\":{\"size_ratio\":{\"max\":0.06}}}";
static const char random_agent[] = "{\"type\":\"random\"}";

struct told_log {
    char text[1024];
    enum msc_log_level level;
};

static void keep_line(void *payload, enum msc_log_level level, const char *line) {
    struct told_log *kept = payload;
    snprintf(kept->text, sizeof kept->text, "%s", line);
    kept->level = level;
}

// Collects the trials that a search in `env`, under the numerics "test", takes over from the
// records.
static enum msc_status collect(cJSON **out, struct told_log *kept, const struct msc_env_def *def,
                               const char *env_text, const char *const paths[], size_t n_paths) {
    const struct msc_env_host host = {0};
    const struct msc_log log = {.level = MSC_LOG_INFO, .write = keep_line, .payload = kept};
    struct msc_env *env = NULL;
    struct msc_goal goal;
    cJSON *config = NULL;
    assert_ok(msc_json_parse(&config, env_text, strlen(env_text), "env"));
    assert_ok(msc_env_create(&env, def ? def : msc_env_find("toy"), config, &host));
    assert_ok(msc_env_read_goal(&goal, msc_env_space(env), config));
    const struct msc_warm_options options = {.env = env,
                                             .goal = &goal,
                                             .numerics = "test",
                                             .paths = paths,
                                             .n_paths = n_paths,
                                             .log = kept ? &log : NULL};
    enum msc_status status = msc_warm_collect(out, &options);
    msc_env_destroy(env);
    cJSON_Delete(config);
    return status;
}

static int count(const cJSON *member, const char *key) {
    const cJSON *points = cJSON_GetObjectItemCaseSensitive(member, key);
    cJSON *list = NULL;
    assert_true(cJSON_IsRaw(points));
    assert_ok(msc_json_parse(&list, points->valuestring, strlen(points->valuestring), key));
    int n = cJSON_GetArraySize(list);
    cJSON_Delete(list);
    return n;
}

static struct msc_record *open_record(const char *path) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_open(&record, path, MSC_RECORD_READ, NULL));
    return record;
}

static bool is_same_point(struct msc_record_line a, struct msc_record_line b, size_t n_tasks) {
    return memcmp(a.trial.proposal.choices, b.trial.proposal.choices,
                  n_tasks * sizeof *a.trial.proposal.choices) == 0;
}

// From a record of the same environment, all trials are taken over with their values, at no cost.
static void test_search_warm__tells_what_holds(void **state) {
    const struct fixture *f = *state;
    char other[FIXTURE_PATH_BYTES];
    const char *const paths[] = {other};
    struct told_log kept;
    cJSON *warm = NULL;
    fixture_join(other, f, "other.jsonl");
    const struct launch before = {
        .path = other, .env = toy, .agent = random_agent, .options = LAUNCH_TRIALS(21)};
    launch(&before);
    assert_ok(collect(&warm, &kept, NULL, bounded_toy, paths, 1));
    assert_int_equal(count(warm, "told"), 21);
    assert_int_equal(count(warm, "tried"), 0);
    assert_non_null(strstr(kept.text, "21 points are observed with recorded values"));

    struct launch next = {.path = f->path, .env = bounded_toy, .options = LAUNCH_TRIALS(30)};
    next.options.seed = 5;
    next.options.warm = warm;
    launch(&next);
    struct msc_record *theirs = open_record(other), *ours = open_record(f->path);
    struct msc_record_counts counts;
    msc_record_count(&counts, ours);
    assert_int_equal(counts.n_told, 21);
    assert_int_equal(counts.n_budgeted, 30);
    assert_int_equal(counts.n_trials, 3 + 21 + 30);
    for (size_t i = 3; i < 24; i++) {
        const struct msc_record_line line = msc_record_trial(ours, i);
        const struct msc_record_line from = msc_record_trial(theirs, i);
        assert_int_equal(line.warm, MSC_RECORD_WARM_TOLD);
        assert_true(is_same_point(line, from, 6));
        assert_true(line.trial.outcome.metrics[0] == from.trial.outcome.metrics[0]);
        // The bound of this search applies, although the other search had no bound.
        bool is_within = line.trial.outcome.metrics[2] <= 0.06;
        assert_int_equal(line.trial.outcome.state,
                         is_within ? MSC_TRIAL_COMPLETE : MSC_TRIAL_INFEASIBLE);
    }
    for (size_t i = 24; i < 54; i++) { // no point is evaluated twice
        for (size_t k = 3; k < 24; k++) {
            assert_false(is_same_point(msc_record_trial(ours, i), msc_record_trial(theirs, k), 6));
        }
    }
    msc_record_close(theirs);
    msc_record_close(ours);
    cJSON_Delete(warm);
}

// Only the best trial of the other record is measured again, as a check.
static void test_search_warm__measures_one(void **state) {
    const struct fixture *f = *state;
    char other[FIXTURE_PATH_BYTES];
    const char *const paths[] = {other};
    static const char env[] = "{\"tasks\":5,\"choices\":3}";
    cJSON *warm = NULL;
    fixture_join(other, f, "other.jsonl");
    fake_reset();
    struct launch run = {.path = other,
                         .env = env,
                         .def = &msc_env_fake,
                         .agent = random_agent,
                         .options = LAUNCH_TRIALS(20)};
    launch(&run);
    fake_reset();
    assert_ok(collect(&warm, NULL, &msc_env_fake, env, paths, 1));
    assert_int_equal(fake_control.n_trials, 1);
    assert_true(count(warm, "told") > 15);
    run.path = f->path;
    run.options.warm = warm;
    run.options.budget.trials = 0;
    fake_reset();
    launch(&run);
    struct msc_record *record = open_record(f->path);
    size_t n_baselines = msc_record_space(record)->n_baselines;
    assert_int_equal(fake_control.n_trials, n_baselines);
    assert_int_equal(msc_record_n_trials(record), n_baselines + (size_t)count(warm, "told"));
    msc_record_close(record);
    cJSON_Delete(warm);
}

// From a record of another environment, or under other numerics, only the best points are taken
// over and evaluated here, without their values.
static void test_search_warm__tries_the_best_of_others(void **state) {
    const struct fixture *f = *state;
    char other[FIXTURE_PATH_BYTES];
    const char *const paths[] = {other};
    int64_t ids[64];
    size_t n = 0;
    cJSON *warm = NULL;
    struct told_log kept;
    fixture_join(other, f, "other.jsonl");
    const struct launch before = {
        .path = other, .env = other_toy, .agent = random_agent, .options = LAUNCH_TRIALS(40)};
    launch(&before);
    assert_ok(collect(&warm, &kept, NULL, toy, paths, 1));
    assert_int_equal(count(warm, "told"), 0);
    assert_int_equal(count(warm, "tried"), MSC_WARM_BEST);
    assert_non_null(strstr(kept.text, "tried first, without values: hashes.env differs"));

    struct launch next = {.path = f->path, .env = toy, .options = LAUNCH_TRIALS(20)};
    next.options.warm = warm;
    launch(&next);
    struct msc_record *theirs = open_record(other), *ours = open_record(f->path);
    struct msc_record_counts counts;
    msc_record_count(&counts, ours);
    assert_int_equal(counts.n_budgeted, 20); // the points taken over count towards the budget
    msc_record_top(ids, &n, 64, theirs);
    size_t at = 3;
    for (size_t i = 0; i < n && at < 3 + MSC_WARM_BEST; i++) {
        if (ids[i] >= 3) { // a baseline is evaluated anyway
            const struct msc_record_line line = msc_record_trial(ours, at++);
            assert_int_equal(line.warm, MSC_RECORD_WARM_TRIED);
            assert_true(is_same_point(line, msc_record_trial(theirs, (size_t)ids[i]), 6));
        }
    }
    assert_int_equal(msc_record_trial(ours, at).warm, MSC_RECORD_WARM_NONE);
    msc_record_close(theirs);
    msc_record_close(ours);
    cJSON_Delete(warm);
    remove_record(other);
    struct launch elsewhere = before;
    elsewhere.env = toy;
    elsewhere.options.numerics = "another";
    launch(&elsewhere);
    assert_ok(collect(&warm, &kept, NULL, toy, paths, 1));
    assert_int_equal(count(warm, "told"), 0);
    assert_int_equal(count(warm, "tried"), MSC_WARM_BEST);
    cJSON_Delete(warm);
}

// Tasks are matched by name. Tasks that the other record lacks are listed in the log and keep their
// most expensive choice.
static void test_search_warm__matches_names(void **state) {
    const struct fixture *f = *state;
    char other[FIXTURE_PATH_BYTES];
    const char *const paths[] = {other};
    cJSON *warm = NULL;
    struct told_log kept;
    fixture_join(other, f, "other.jsonl");
    struct launch before = {
        .path = other, .env = toy, .agent = random_agent, .options = LAUNCH_TRIALS(30)};
    launch(&before);
    assert_ok(collect(&warm, &kept, NULL, larger_toy, paths, 1));
    assert_int_equal(count(warm, "told"), 0);
    assert_non_null(strstr(kept.text, "it lacks 2 of 8 tasks: task_6, task_7"));
    const cJSON *point = NULL;
    cJSON_ArrayForEach(point, cJSON_GetObjectItemCaseSensitive(warm, "tried")) {
        assert_int_equal(cJSON_GetArraySize(point), 8);
        assert_int_equal(cJSON_GetArrayItem(point, 6)->valueint, 0);
        assert_int_equal(cJSON_GetArrayItem(point, 7)->valueint, 0);
    }
    cJSON_Delete(warm);
    // The tasks of the fake environment have other names.
    fake_reset();
    assert_int_equal(collect(&warm, &kept, &msc_env_fake, "{\"tasks\":5,\"choices\":3}", paths, 1),
                     MSC_E_INVALID);
    assert_message("other.jsonl: it has none of the 5 tasks of this search");
}

// If the best value of a record cannot be reproduced, no value of that record is used.
static void test_search_warm__believes_no_other_value(void **state) {
    const struct fixture *f = *state;
    char other[FIXTURE_PATH_BYTES], forged[FIXTURE_PATH_BYTES];
    const char *const paths[] = {forged};
    cJSON *warm = NULL;
    struct told_log kept;
    struct msc_record *copy = NULL;
    fixture_join(other, f, "other.jsonl");
    fixture_join(forged, f, "forged.jsonl");
    const struct launch before = {
        .path = other, .env = toy, .agent = random_agent, .options = LAUNCH_TRIALS(30)};
    launch(&before);
    struct msc_record *record = open_record(other);
    assert_ok(msc_record_create(&copy, forged, msc_record_header(record), NULL));
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        struct msc_record_line line = msc_record_trial(record, i);
        line.trial.outcome.metrics[0] *= 0.5;
        assert_ok(msc_record_append_trial(copy, &line));
    }
    assert_ok(msc_record_commit(copy));
    msc_record_close(copy);
    msc_record_close(record);
    assert_ok(collect(&warm, &kept, NULL, toy, paths, 1));
    assert_int_equal(count(warm, "told"), 0);
    assert_int_equal(count(warm, "tried"), MSC_WARM_BEST);
    assert_non_null(strstr(kept.text, "could not be reproduced"));
    cJSON_Delete(warm);
}

// A search that was cut after any line continues, even if the other records no longer exist.
static void test_search_warm__goes_on_from_any_line(void **state) {
    const struct fixture *f = *state;
    char told[FIXTURE_PATH_BYTES], tried[FIXTURE_PATH_BYTES], whole[FIXTURE_PATH_BYTES];
    const char *const paths[] = {told, tried};
    cJSON *warm = NULL;
    static const char *const agents[] = {
        random_agent, "{\"type\":\"auto\"}", "{\"type\":\"evolutionary\",\"population\":8}",
        "{\"type\":\"grid_search\"}", "{\"type\":\"grid_search\",\"mode\":\"greedy\"}"};
    fixture_join(told, f, "told.jsonl");
    fixture_join(tried, f, "tried.jsonl");
    fixture_join(whole, f, "whole.jsonl");
    struct launch before = {
        .path = told, .env = toy, .agent = random_agent, .options = LAUNCH_TRIALS(11)};
    launch(&before);
    before.path = tried;
    before.env = other_toy;
    before.options.seed = 1;
    launch(&before);
    assert_ok(collect(&warm, NULL, NULL, bounded_toy, paths, 2));
    assert_int_equal(count(warm, "told"), 11);
    assert_true(count(warm, "tried") > 2);
    for (size_t a = 0; a < sizeof agents / sizeof agents[0]; a++) {
        struct launch all = {
            .path = whole, .env = bounded_toy, .agent = agents[a], .options = LAUNCH_TRIALS(24)};
        all.options.warm = warm;
        all.options.parallel = 4;
        launch(&all);
        struct msc_record *record = open_record(whole);
        size_t n_trials = msc_record_n_trials(record);
        msc_record_close(record);
        for (size_t n = 0; n <= n_trials; n += 1 + n % 3) {
            char command[3 * FIXTURE_PATH_BYTES];
            snprintf(command, sizeof command, "cp '%s' '%s'", whole, f->path);
            assert_int_equal(system(command), 0);
            cut_record(f->path, n);
            struct launch rest = all;
            rest.path = f->path;
            rest.options.warm = NULL;
            launch(&rest);
            assert_same_record(f->path, whole);
        }
        // Stopping by budget and continuing gives the same record.
        remove_record(f->path);
        for (int64_t trials = 0; trials <= 24; trials += 3) {
            struct launch part = all;
            part.path = f->path;
            part.options.budget.trials = trials;
            launch(&part);
            assert_true(is_prefix(f->path, whole));
        }
        assert_same_record(f->path, whole);
        remove_record(f->path);
        remove_record(whole);
    }
    cJSON_Delete(warm);
}

// A record lists the files that it was started from.
static void test_search_warm__knows_its_files(void **state) {
    const struct fixture *f = *state;
    char other[FIXTURE_PATH_BYTES], third[FIXTURE_PATH_BYTES];
    const char *const paths[] = {other, third};
    cJSON *warm = NULL;
    fixture_join(other, f, "other.jsonl");
    fixture_join(third, f, "third.jsonl");
    struct launch before = {
        .path = other, .env = toy, .agent = random_agent, .options = LAUNCH_TRIALS(5)};
    launch(&before);
    assert_ok(collect(&warm, NULL, NULL, toy, paths, 1));
    before.options.budget.trials = 9; // the other record has grown since
    launch(&before);
    assert_ok(msc_warm_check(warm, paths, 1, "a.jsonl", NULL));
    assert_ok(msc_warm_check(warm, paths, 2, "a.jsonl", NULL)); // the second file does not exist
    before.path = third;
    before.options.seed = 7;
    launch(&before);
    assert_int_equal(msc_warm_check(warm, paths, 2, "a.jsonl", NULL), MSC_E_STATE);
    assert_message("a.jsonl: this search did not begin with");
    assert_int_equal(msc_warm_check(NULL, paths, 1, "a.jsonl", NULL), MSC_E_STATE);
    cJSON_Delete(warm);
}

// Malformed warm-start members: points without values in the list of points with values, wrong
// lengths or choices.
static void test_search_warm__refuses(void **state) {
    const struct fixture *f = *state;
    static const char *const bad[] = {
        "{\"from\":[],\"told\":[[0,0,0,0,0,0]],\"tried\":[]}",
        "{\"from\":[],\"told\":[],\"tried\":[[0,0,0,0,0]]}",
        "{\"from\":[],\"told\":[],\"tried\":[[0,0,0,0,0,3]]}",
        "{\"from\":[],\"told\":1,\"tried\":[]}",
        "{\"from\":[],\"told\":[]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct search_run run;
        cJSON *warm = NULL;
        struct launch one = {.path = f->path, .env = toy, .options = LAUNCH_TRIALS(1)};
        assert_ok(msc_json_parse(&warm, bad[i], strlen(bad[i]), "warm"));
        one.options.warm = warm;
        for (int launch = 0; launch < 2; launch++) { // a new search, then a continued one
            run_launch(&run, &one);
            assert_int_equal(run.status, MSC_E_FORMAT);
            run_finish(&run);
        }
        cJSON_Delete(warm);
        remove_record(f->path);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_search_warm__tells_what_holds, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__measures_one, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__tries_the_best_of_others, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__matches_names, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__believes_no_other_value, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__goes_on_from_any_line, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__knows_its_files, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_warm__refuses, fixture_setup, fixture_teardown),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
