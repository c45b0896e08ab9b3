// Effects of single choices and of pairs, computed from a record. The expected numbers are sums of
// the terms of the table below, added up by hand.
#include "../msc_test.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "results/analysis.h"
#include "tests/search/search_fixture.h"

#include <stdio.h>
#include <stdlib.h>

// The loss is 0.5 + terms of single choices + terms of pairs; all sums are exact in binary.
static const char terms[] =
    "{\"schema\": \"mscgym.table.1\", \"tasks\": ["
    "{\"name\": \"conv1\", \"choices\": [\"8\", \"6\", \"4\"]},"
    "{\"name\": \"conv2\", \"choices\": [\"8\", \"6\", \"4\"]},"
    "{\"name\": \"he,ad\", \"choices\": [\"8\", \"4\"]}],"
    "\"metrics\": [{\"name\": \"distill_loss\", \"constant\": 0.5,"
    "\"alone\": [[0, 0.25, 0.5], [0, 0.125, 1], [0, 0.0625]],"
    "\"pairs\": [{\"tasks\": [0, 1], \"values\": [[0, 0, 0], [0, 0, 0], [0, 0, -0.25]]},"
    "{\"tasks\": [1, 2], \"values\": [[0, 0], [0, 0], [0, 0.5]]}]}],"
    "\"costs\": [{\"name\": \"size_bytes\", \"alone\": [[80, 60, 40], [160, 120, 80], [8, 4]]}]}";

static void write_table(char env[FIXTURE_PATH_BYTES + 200], const struct fixture *f,
                        const char *more) {
    char path[FIXTURE_PATH_BYTES];
    fixture_join(path, f, "terms.json");
    assert_ok(msc_file_write(path, terms, strlen(terms)));
    snprintf(env, FIXTURE_PATH_BYTES + 200, "{\"type\":\"table\",\"file\":\"%s\"%s}", path, more);
}

// The agent tries each choice while all other tasks keep their reference choice, then the plan with
// the least sum of losses, then pairs. For each pair of tasks it combines their worst choices.
// Pairs are ordered by the product of these choices' losses: 1 * 0.5, 1 * 0.0625, 0.5 * 0.0625.
static void test_search_analysis__expected_points(void **state) {
    const struct fixture *f = *state;
    static const uint32_t expected[][3] = {
        {0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 0, 1}, // each choice by itself
        {0, 1, 0}, // the agent's plan, a repeat: 208 bytes, loss 0.125 above the reference
        {2, 2, 0}, {0, 2, 1}, {2, 0, 1},
    };
    char env[FIXTURE_PATH_BYTES + 200];
    struct msc_record *record = NULL;
    write_table(env, f, ",\"bounds\":{\"size_bytes\":{\"max\":240}}");
    for (int64_t pairs = 0; pairs <= 4; pairs++) {
        char agent[80];
        snprintf(agent, sizeof agent, "{\"type\":\"sensitivity\",\"pairs\":%d}", (int)pairs);
        struct launch all = {.path = f->path,
                             .env = env,
                             .def = msc_env_find("table"),
                             .agent = agent,
                             .options = LAUNCH_TRIALS(-1)};
        assert_int_equal(launch(&all), MSC_SEARCH_END_AGENT);
        assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
        size_t n = 7 + (size_t)(pairs < 3 ? pairs : 3);
        assert_int_equal(msc_record_n_trials(record), n);
        for (size_t i = 0; i < n; i++) {
            const struct msc_proposal proposal = msc_record_trial(record, i).trial.proposal;
            assert_memory_equal(proposal.choices, expected[i], sizeof expected[i]);
            assert_int_equal(proposal.probe, i != 6);
        }
        msc_record_close(record);
        remove_record(f->path);
    }
}

static void make_record(const struct fixture *f) {
    char env[FIXTURE_PATH_BYTES + 200];
    write_table(env, f, "");
    struct launch all = {.path = f->path,
                         .env = env,
                         .def = msc_env_find("table"),
                         .agent = "{\"type\":\"sensitivity\"}",
                         .options = LAUNCH_TRIALS(-1)};
    launch(&all);
}

static void test_search_analysis__expected_numbers(void **state) {
    const struct fixture *f = *state;
    static const struct {
        size_t task;
        uint32_t choice;
        double difference;
    } alone[] = {{1, 2, 1}, {0, 2, 0.5}, {0, 1, 0.25}, {1, 1, 0.125}, {2, 1, 0.0625}};
    static const struct {
        size_t alone[2];
        double difference, sum;
    } pairs[] = {{{0, 4}, 1.5625, 1.0625}, {{1, 0}, 1.25, 1.5}, {{1, 4}, 0.5625, 0.5625}};
    struct msc_record *record = NULL;
    struct msc_analysis a;
    make_record(f);
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
    assert_ok(msc_analysis_make(&a, record));
    assert_int_equal(a.reference.trial.id, 0);
    assert_true(a.reference_value == 0.5);
    assert_int_equal(a.n_choices, 5);
    assert_int_equal(a.n_alone, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(a.alone[i].task, alone[i].task);
        assert_int_equal(a.alone[i].choice, alone[i].choice);
        assert_true(a.alone[i].difference == alone[i].difference);
        assert_true(a.alone[i].value == 0.5 + alone[i].difference);
    }
    assert_int_equal(a.n_pairs, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(a.pairs[i].alone[0], pairs[i].alone[0]);
        assert_int_equal(a.pairs[i].alone[1], pairs[i].alone[1]);
        assert_true(a.pairs[i].difference == pairs[i].difference);
        assert_true(a.pairs[i].sum == pairs[i].sum);
        assert_true(a.pairs[i].interaction == pairs[i].difference - pairs[i].sum);
    }
    msc_analysis_finish(&a);
    msc_record_close(record);
}

static void test_search_analysis__csv_and_json(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    struct msc_analysis a;
    struct msc_str text = {0};
    cJSON *json = NULL;
    make_record(f);
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
    assert_ok(msc_analysis_make(&a, record));
    msc_analysis_csv(&text, &a, 1);
    assert_ok(msc_str_status(&text));
    assert_string_equal(msc_str_text(&text),
                        "task,choice,task_2,choice_2,distill_loss,difference,sum,interaction\n"
                        "conv2,4,,,1.5,1,,\n"
                        "conv1,4,,,1,0.5,,\n"
                        "conv1,6,,,0.75,0.25,,\n"
                        "conv2,6,,,0.625,0.125,,\n"
                        "\"he,ad\",4,,,0.5625,0.0625,,\n"
                        "conv2,4,\"he,ad\",4,2.0625,1.5625,1.0625,0.5\n");
    assert_ok(msc_analysis_describe(&json, &a, 2));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "alone")), 5);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "pairs")), 2);
    const cJSON *pair = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "pairs"), 1);
    const cJSON *choices = cJSON_GetObjectItem(pair, "choices");
    assert_string_equal(cJSON_GetObjectItem(choices, "conv1")->valuestring, "4");
    assert_true(cJSON_GetObjectItem(pair, "interaction")->valuedouble == -0.25);
    cJSON_Delete(json);
    msc_str_finish(&text);
    msc_analysis_finish(&a);
    msc_record_close(record);
}

// The analysis reads records of any agent. If a record has no results, the analysis says so.
static void test_search_analysis__any_record(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    struct msc_analysis a;
    struct msc_str text = {0};
    struct launch all = {.path = f->path,
                         .env = "{\"tasks\":8,\"choices\":3,\"interaction\":0.5}",
                         .agent = "{\"type\":\"grid_search\",\"bounded\":false}",
                         .options = LAUNCH_TRIALS(-1)};
    launch(&all);
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
    assert_ok(msc_analysis_make(&a, record));
    assert_int_equal(a.reference.trial.id, 0); // the most expensive uniform plan
    assert_int_equal(a.n_alone, 16);
    msc_analysis_finish(&a);
    msc_record_close(record);
    cut_record(f->path, 0);
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
    assert_ok(msc_analysis_make(&a, record));
    assert_false(a.has_reference);
    assert_ok(msc_analysis_text(&text, &a, 20, 0));
    assert_non_null(strstr(msc_str_text(&text), "no trial has a result yet"));
    msc_str_finish(&text);
    msc_analysis_finish(&a);
    msc_record_close(record);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_search_analysis__expected_points, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_analysis__expected_numbers, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_analysis__csv_and_json, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_analysis__any_record, fixture_setup,
                                        fixture_teardown),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
