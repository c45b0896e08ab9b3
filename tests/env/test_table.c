// The environment `table`: outcomes from a JSON or CSV file, and messages for faulty files.
// Expected values are worked out by hand from the files.
#include "env/env.h"

#include "base/json.h"
#include "tests/msc_test.h"
#include "tests/temp_folder.h"
#include "tests/trial_room.h"

#include <stdio.h>

#define FILES MSC_TESTS_FOLDER "/env/files"

struct fixture {
    struct cJSON *config;
    struct msc_env *env;
    struct msc_goal goal;
    struct trial_room room;
};

static enum msc_status open_in(struct fixture *f, const char *folder, const char *json) {
    const struct msc_env_host host = {.folder = folder};
    memset(f, 0, sizeof *f);
    assert_ok(msc_json_parse(&f->config, json, strlen(json), "table"));
    return msc_env_create(&f->env, msc_env_find("table"), f->config, &host);
}

static void table_open(struct fixture *f, const char *json) {
    assert_ok(open_in(f, FILES, json));
    assert_ok(msc_env_read_goal(&f->goal, msc_env_space(f->env), f->config));
}

static void table_close(struct fixture *f) {
    msc_env_destroy(f->env);
    cJSON_Delete(f->config);
}

static const struct msc_outcome *measure(struct fixture *f, const uint32_t choices[]) {
    struct msc_trial *trial = trial_make(&f->room, 0, choices, msc_env_space(f->env)->n_tasks);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    trial->proposal.probe = true;
    assert_ok(msc_env_evaluate(f->env, &f->goal, &e));
    return &trial->outcome;
}

static void test_env_table__terms_add_up(void **state) {
    (void)state;
    // By hand: loss = 0.5 + single terms + pair (a, b) + pair (c, a); bytes = 7 + single terms +
    // 2 * a * b.
    static const struct {
        uint32_t choices[3];
        double loss, bytes;
    } rows[] = {
        {{0, 0, 0}, 0.5 + 2, 7 + 80 + 4 + 1 + 2 * 8 * 4},
        {{1, 0, 0}, 0.5 + 1 + 2 - 0.25 + 0.125, 7 + 40 + 4 + 1 + 2 * 4 * 4},
        {{1, 1, 0}, 0.5 + 1 + 4 + 0.125, 7 + 40 + 8 + 1 + 2 * 4 * 8},
        {{0, 1, 0}, 0.5, 7 + 80 + 8 + 1 + 2 * 8 * 8},
    };
    struct fixture f;
    table_open(&f, "{\"file\":\"table.json\"}");
    const struct msc_space *space = msc_env_space(f.env);
    int loss = msc_space_find_metric(space, "distill_loss");
    int bytes = msc_space_find_metric(space, "bytes");
    int time = msc_space_find_metric(space, "time");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct msc_outcome *outcome = measure(&f, rows[i].choices);
        assert_int_equal(outcome->state, MSC_TRIAL_COMPLETE);
        assert_true(outcome->metrics[loss] == rows[i].loss);
        assert_true(outcome->metrics[bytes] == rows[i].bytes);
        assert_true(outcome->metrics[time] == 5);
    }
    // `null` in the table means that the point cannot be evaluated.
    const struct msc_outcome *outcome = measure(&f, (uint32_t[]){0, 0, 1});
    assert_int_equal(outcome->state, MSC_TRIAL_FAILED);
    assert_int_equal(outcome->cause, MSC_CAUSE_TRIAL);
    table_close(&f);
}

static void test_env_table__space(void **state) {
    (void)state;
    struct fixture f;
    table_open(&f, "{\"file\":\"table.json\"}");
    const struct msc_space *space = msc_env_space(f.env);
    // distill_loss is the objective unless the configuration names another.
    assert_string_equal(space->metrics[0].name, "distill_loss");
    assert_string_equal(space->metrics[1].name, "time");
    assert_string_equal(space->metrics[1].unit, "ms");
    assert_true(space->metrics[2].is_exact);
    assert_int_equal(f.goal.objectives[0].metric, 0);
    assert_string_equal(space->feature_names[0], "elements");
    assert_true(space->tasks[1].features[0] == 10);
    // Task b lists its cheaper choice first.
    assert_int_equal(space->tasks[0].most_expensive_first[0], 0);
    assert_int_equal(space->tasks[1].most_expensive_first[0], 1);
    assert_int_equal(space->tasks[1].most_expensive_first[1], 0);
    assert_int_equal(space->n_baselines, 2);
    assert_string_equal(space->baselines[0].label, "8");
    assert_memory_equal(space->baselines[0].choices, ((uint32_t[]){0, 1, 0}), 12);
    assert_memory_equal(space->baselines[1].choices, ((uint32_t[]){1, 0, 1}), 12);
    table_close(&f);
}

// Columns are tasks. Numeric labels are sorted from the largest, other labels by their first
// occurrence.
static void test_env_table__rows_alone(void **state) {
    (void)state;
    struct fixture f;
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16];
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/t.CSV", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("bits,kind,distill_loss,time\n4,b,1,10\n8,b,2,20\n8,a,FAILED,\n10,a,nan,5\n", file);
    fclose(file);
    assert_ok(open_in(&f, folder, "{\"file\":\"t.CSV\",\"metrics\":[\"distill_loss\",\"time\"]}"));
    assert_ok(msc_env_read_goal(&f.goal, msc_env_space(f.env), f.config));
    const struct msc_space *space = msc_env_space(f.env);
    assert_int_equal(space->n_tasks, 2);
    assert_int_equal(space->tasks[0].n_choices, 3);
    assert_string_equal(space->tasks[0].labels[0], "10");
    assert_string_equal(space->tasks[0].labels[2], "4");
    assert_string_equal(space->tasks[1].labels[0], "b");
    assert_int_equal(space->n_baselines, 0);
    assert_true(measure(&f, (uint32_t[]){2, 0})->metrics[0] == 1);
    assert_true(measure(&f, (uint32_t[]){1, 0})->metrics[1] == 20);
    const struct msc_outcome *outcome = measure(&f, (uint32_t[]){1, 1});
    assert_int_equal(outcome->state, MSC_TRIAL_FAILED);
    assert_int_equal(outcome->cause, MSC_CAUSE_TRIAL);
    assert_string_equal(outcome->reason, "the table lists this point as failed");
    // One of two metrics is missing. It is the objective, so the trial has failed.
    outcome = measure(&f, (uint32_t[]){0, 1});
    assert_int_equal(outcome->state, MSC_TRIAL_FAILED);
    assert_true(outcome->metrics[1] == 5);
    outcome = measure(&f, (uint32_t[]){0, 0});
    assert_int_equal(outcome->state, MSC_TRIAL_FAILED);
    assert_int_equal(outcome->cause, MSC_CAUSE_TRIAL);
    assert_string_equal(outcome->reason, "the table has no such point");
    table_close(&f);
    temp_folder_remove(folder);
}

// The JSON names the columns to use; other columns are ignored.
static void test_env_table__rows_of_json(void **state) {
    (void)state;
    struct fixture f;
    table_open(&f, "{\"file\":\"rows.json\"}");
    const struct msc_space *space = msc_env_space(f.env);
    assert_int_equal(space->n_metrics, 3);
    assert_true(space->metrics[0].is_maximised);
    const struct msc_outcome *outcome = measure(&f, (uint32_t[]){0, 0});
    assert_int_equal(outcome->state, MSC_TRIAL_COMPLETE);
    assert_true(outcome->metrics[0] == 1.5 && outcome->metrics[1] == 1);
    assert_true(outcome->metrics[2] == 16 + 2);
    assert_int_equal(measure(&f, (uint32_t[]){1, 0})->state, MSC_TRIAL_FAILED);
    // A loss that is not finite makes the trial fail.
    assert_int_equal(measure(&f, (uint32_t[]){1, 1})->state, MSC_TRIAL_FAILED);
    assert_string_equal(measure(&f, (uint32_t[]){0, 1})->reason, "the table has no such point");
    table_close(&f);
}

static struct msc_hash identity_of(const char *folder, const char *name, const char *text) {
    struct fixture f;
    struct msc_hash hash;
    char path[TEMP_FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_ok(open_in(&f, folder, "{\"file\":\"t.json\"}"));
    assert_ok(msc_env_identity(&hash, f.env));
    table_close(&f);
    return hash;
}

// The table's contents are part of the identity, even if the space is unchanged.
static void test_env_table__identity_has_contents(void **state) {
    (void)state;
    static const char json[] =
        "{\"schema\":\"mscgym.table.1\",\"rows\":\"t.csv\",\"tasks\":[{"
        "\"name\":\"a\",\"choices\":[\"x\"]}],\"metrics\":[{\"name\":\"m\"}]}";
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16];
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/t.csv", folder);
    struct msc_hash hashes[2];
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "a,m\nx,%d\n", i);
        fclose(file);
        hashes[i] = identity_of(folder, "t.json", json);
    }
    assert_false(msc_hash_equal(hashes[0], hashes[1]));
    assert_true(msc_hash_equal(hashes[1], identity_of(folder, "t.json", json)));
    temp_folder_remove(folder);
}

#define TASKS "\"schema\":\"mscgym.table.1\",\"tasks\":[{\"name\":\"a\",\"choices\":[\"x\",\"y\"]}]"
#define METRIC(text) "{" TASKS ",\"metrics\":[{\"name\":\"m\"," text "}]}"

static void test_env_table__faults_are_named(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *expected;
    } rows[] = {
        {"t.json", "[", "t.json:1:"},
        {"t.json", "{}", "t.json: top level: \"schema\" is missing"},
        {"t.json", "{\"schema\":\"other\"}", "its schema is \"other\", expected"},
        {"t.json", "{\"schema\":\"mscgym.table.1\",\"tasks\":[]}", "at least one"},
        {"t.json", "{" TASKS "}", "top level: \"metrics\" is missing"},
        {"t.json", "{" TASKS ",\"metrics\":[]}", "0 metrics and costs"},
        {"t.json", METRIC("\"unit\":\"\""), "metrics[0]: expected \"constant\""},
        {"t.json", METRIC("\"alone\":[[0]]"), "metrics[0].alone[0]: expected a list of 2 numbers"},
        {"t.json", METRIC("\"alone\":[[0,\"1\"]]"),
         "metrics[0].alone[0][1]: expected a finite number"},
        {"t.json", METRIC("\"alone\":[[0,1],[0,1]]"), "metrics[0].alone: expected 1 lists"},
        {"t.json", METRIC("\"constant\":\"1\""), "\"constant\" is of type string"},
        {"t.json", METRIC("\"alon\":[]"), "metrics[0]: unknown key \"alon\""},
        {"t.json", METRIC("\"pairs\":[{\"tasks\":[0,1],\"values\":[]}]"),
         "metrics[0].pairs[0].tasks: expected the index of a task, 0 to 0"},
        {"t.json", METRIC("\"pairs\":[{\"tasks\":[0,0],\"values\":[]}]"),
         "metrics[0].pairs[0].tasks: expected two different tasks"},
        {"t.json", "{" TASKS ",\"metrics\":[],\"costs\":[{\"name\":\"m\",\"alone\":[[0,null]]}]}",
         "costs[0].alone[0][1]: expected a finite number"},
        {"t.json", "{" TASKS ",\"metrics\":[{\"name\":\"m\"}],\"rows\":\"none.csv\"}", "none.csv"},
        {"t.csv", "", "t.csv: the file is empty"},
        {"t.csv", "a,distill_loss\n", "t.csv: the table has no rows"},
        {"t.csv", "a,m\nx,1\n", "t.csv: there is no column for metric distill_loss"},
        {"t.csv", "distill_loss\n1\n", "expected a column for each task"},
        {"t.csv", "a,a,distill_loss\n", "columns 1 and 2 are both named a"},
        {"t.csv", "a,,distill_loss\n", "column 2 has no name"},
        {"t.csv", "a,distill_loss\nx\n", "t.csv:2: fewer than 2 cells"},
        {"t.csv", "a,distill_loss\nx,1\ny,1,2\n", "t.csv:3: more than 2 cells"},
        {"t.csv", "a,distill_loss\nx,1e\n", "t.csv:2: column distill_loss: \"1e\" is not a number"},
        {"t.csv", "a,distill_loss\n\"x,1\n", "t.csv:2: the quote opened here"},
        {"t.csv", "a,distill_loss\n\"x\"y,1\n", "t.csv:2: text after a closing quote"},
        {"t.csv", "a,distill_loss\nx,1\ny,1\nx,2\n", "t.csv:4: same point as line 2"},
    };
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16], json[64];
    temp_folder_make(folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        snprintf(path, sizeof path, "%s/%s", folder, rows[i].name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(rows[i].text, file);
        fclose(file);
        snprintf(json, sizeof json, "{\"file\":\"%s\"}", rows[i].name);
        assert_int_not_equal(open_in(&f, folder, json), MSC_OK);
        if (!strstr(msc_status_message(), rows[i].expected)) {
            fail_msg("\"%s\" is not in: %s", rows[i].expected, msc_status_message());
        }
        cJSON_Delete(f.config);
    }
    temp_folder_remove(folder);
}

static void test_env_table__configuration(void **state) {
    (void)state;
    static const struct {
        const char *json, *expected;
    } rows[] = {
        {"{}", "\"file\" is missing"},
        {"{\"file\":\"nothing.json\"}", "nothing.json"},
        {"{\"file\":\"table.json\",\"metrics\":[\"m\"]}", "a JSON table lists its metrics"},
        {"{\"file\":\"rows.csv\",\"metrics\":[]}", "expected a list of 1 to 24"},
        {"{\"file\":\"rows.csv\",\"metrics\":[1]}", "env.metrics[0]"},
        {"{\"file\":\"rows.csv\",\"metrics\":[\"ms\",\"ms\"]}", "listed twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        assert_int_not_equal(open_in(&f, FILES, rows[i].json), MSC_OK);
        if (!strstr(msc_status_message(), rows[i].expected)) {
            fail_msg("\"%s\" is not in: %s", rows[i].expected, msc_status_message());
        }
        cJSON_Delete(f.config);
    }
    // Completing a configuration reads the table, whose path is relative to the given folder.
    struct cJSON *config = cJSON_Parse("{\"type\":\"table\",\"file\":\"table.json\"}");
    assert_ok(msc_env_complete(msc_env_find("table"), config, FILES));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(config, "objectives");
    assert_string_equal(cJSON_GetArrayItem(list, 0)->valuestring, "distill_loss");
    cJSON_Delete(config);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_table__terms_add_up),
        cmocka_unit_test(test_env_table__space),
        cmocka_unit_test(test_env_table__rows_alone),
        cmocka_unit_test(test_env_table__rows_of_json),
        cmocka_unit_test(test_env_table__identity_has_contents),
        cmocka_unit_test(test_env_table__faults_are_named),
        cmocka_unit_test(test_env_table__configuration),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
