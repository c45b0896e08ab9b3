// The origin of each trial of a record. The agent is asked again and names the origin of its
// proposals.
#include "../msc_test.h"
#include "base/json.h"
#include "base/str.h"
#include "results/phases.h"
#include "search/warm.h"
#include "tests/search/search_fixture.h"

#include <stdlib.h>

static enum msc_status describe(cJSON *object, const struct launch *launch) {
    struct search_run run;
    struct launch none = *launch;
    struct msc_record *record = NULL;
    none.options.budget.trials = 0; // runs no trials, only creates the environment
    run_launch(&run, &none);
    assert_ok(run.status);
    assert_ok(msc_record_open(&record, launch->path, MSC_RECORD_READ, NULL));
    const struct msc_phases_options options = {
        .record = record, .space = msc_env_space(run.env), .agent_config = run.agent_config};
    enum msc_status status = msc_phases_add(object, &options);
    msc_record_close(record);
    run_finish(&run);
    return status;
}

static double count_of(const cJSON *phase, const char *origin, const char *what) {
    const cJSON *origins = cJSON_GetObjectItem(phase, "origins");
    const cJSON *item = cJSON_GetObjectItem(cJSON_GetObjectItem(origins, origin), what);
    return item ? item->valuedouble : 0;
}

// 6 tasks of 3 choices. In addition to the 3 baselines there are 12 single choices, the plan, and
// 15 pairs. The most expensive plan is a baseline. All 31 trials are in one phase.
static void test_search_phases__of_sensitivity(void **state) {
    const struct fixture *f = *state;
    const struct launch all = {.path = f->path,
                               .env = "{\"tasks\":6,\"choices\":3,\"interaction\":0.5}",
                               .agent = "{\"type\":\"sensitivity\"}",
                               .options = LAUNCH_TRIALS(-1)};
    cJSON *object = cJSON_CreateObject();
    struct msc_str text = {0};
    launch(&all);
    assert_ok(describe(object, &all));
    const cJSON *phases = cJSON_GetObjectItem(object, "phases");
    assert_int_equal(cJSON_GetArraySize(phases), 1);
    const cJSON *phase = cJSON_GetArrayItem(phases, 0);
    assert_true(cJSON_GetObjectItem(phase, "last")->valuedouble == 30);
    assert_true(count_of(phase, "given", "trials") == 3);
    assert_true(count_of(phase, "given", "best") == 1); // the toy's most expensive plan has no loss
    assert_true(count_of(phase, "alone", "trials") == 12);
    assert_true(count_of(phase, "plan", "trials") == 1);
    assert_true(count_of(phase, "pair", "trials") == 15);
    assert_true(count_of(phase, "pair", "best") == 0);
    assert_ok(msc_phases_text(&text, object, 0));
    assert_non_null(strstr(msc_str_text(&text), "0-30"));
    assert_non_null(strstr(msc_str_text(&text), "3 (1)"));
    msc_str_finish(&text);
    cJSON_Delete(object);
}

// Records that end inside a round, start from another record's trials, or continue with a fresh
// agent.
static void test_search_phases__of_any_record(void **state) {
    const struct fixture *f = *state;
    static const char *const agents[] = {"{\"type\":\"auto\"}", "{\"type\":\"evolutionary\"}",
                                         "{\"type\":\"random\"}", "{\"type\":\"grid_search\"}"};
    for (size_t a = 0; a < sizeof agents / sizeof agents[0]; a++) {
        struct launch all = {.path = f->path,
                             .env = "{\"tasks\":10,\"choices\":3,\"interaction\":0.5,"
                                    "\"bounds\":{\"size_ratio\":{\"max\":0.07}}}",
                             .agent = agents[a],
                             .options = LAUNCH_TRIALS(101)};
        cJSON *object = cJSON_CreateObject(), *warm = NULL;
        const char *told = "{\"from\":[],\"told\":[{\"choices\":[2,2,2,2,2,2,2,2,2,1],\"metrics\":{"
                           "\"distill_loss\":1}}],\"tried\":[[2,2,2,2,2,2,2,2,1,2]]}";
        assert_ok(msc_json_parse(&warm, told, strlen(told), "warm"));
        all.options.warm = warm;
        launch(&all);
        struct launch more = all;
        more.options.budget.trials = 150;
        more.options.warm_start = a % 2 == 1;
        launch(&more);
        assert_ok(describe(object, &more));
        double n = 0, n_given = 0;
        const cJSON *phase = NULL, *item = NULL;
        cJSON_ArrayForEach(phase, cJSON_GetObjectItem(object, "phases")) {
            cJSON_ArrayForEach(item, cJSON_GetObjectItem(phase, "origins")) {
                n += cJSON_GetObjectItem(item, "trials")->valuedouble;
            }
            n_given += count_of(phase, "given", "trials");
        }
        struct msc_record *record = NULL;
        assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
        assert_true(n == (double)msc_record_n_trials(record));
        assert_true(a % 2 == 1 ? n_given > 5 : n_given == 5);
        msc_record_close(record);
        cJSON_Delete(object);
        cJSON_Delete(warm);
        remove_record(f->path);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_search_phases__of_sensitivity, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_phases__of_any_record, fixture_setup,
                                        fixture_teardown),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
