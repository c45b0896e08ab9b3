// Faults of an environment that is a separate program, and the messages they lead to. The programs
// are short shell scripts, so the messages name /bin/sh as the command. Expected messages are
// written by hand.
#include "env/env.h"

#include "tests/processes.h"
#include "tests/script.h"
#include "tests/temp_folder.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Two tasks of two choices, one metric and one exact cost.
#define TASKS                                                                                      \
    "\"tasks\":[{\"name\":\"a\",\"choices\":[\"8\",\"4\"]},{\"name\":\"b\",\"choices\":["          \
    "\"8\",\"4\"]}]"
#define METRICS "\"metrics\":[{\"name\":\"distill_loss\"}]"
#define COSTS "\"costs\":[{\"name\":\"size\",\"alone\":[[8,4],[16,8]]}]"
#define SPACE "{" TASKS "," METRICS "," COSTS "}"
#define SAY_SPACE "read -r a; echo '" SPACE "'; "
#define SAY_LOSS(trial, loss)                                                                      \
    "echo '{\"trial\":" #trial ",\"metrics\":{\"distill_loss\":" #loss "}}'; "

enum { N_TRIALS = 3 };

struct fixture {
    cJSON *config;
    struct msc_env *env;
    struct msc_goal goal;
    struct trial_room rooms[N_TRIALS];
    struct msc_trial *trials[N_TRIALS];
    size_t n_finished;
};

static void close_fixture(struct fixture *f) {
    msc_env_destroy(f->env);
    cJSON_Delete(f->config);
}

static enum msc_status open_json(struct fixture *f, const char *json, const char *folder) {
    const struct msc_env_host host = {.n_threads = 1, .folder = folder};
    memset(f, 0, sizeof *f);
    f->config = cJSON_Parse(json);
    assert_non_null(f->config);
    return msc_env_create(&f->env, msc_env_find("process"), f->config, &host);
}

static enum msc_status open_script(struct fixture *f, const char *script, double timeout_s) {
    char members[64];
    snprintf(members, sizeof members, "\"timeout\":%g,\"params\":{\"n\":3}", timeout_s);
    char *json = script_config(members, script);
    enum msc_status status = open_json(f, json, "/");
    msc_free(json);
    return status;
}

static void count_finished(void *payload, size_t index) {
    struct fixture *f = payload;
    assert_true(index < N_TRIALS);
    f->n_finished++;
}

// Evaluates the first n of the points 8 8, 8 4, 4 8.
static enum msc_status evaluate(struct fixture *f, size_t n) {
    static const uint32_t choices[N_TRIALS][2] = {{0, 0}, {0, 1}, {1, 0}};
    assert_ok(msc_env_read_goal(&f->goal, msc_env_space(f->env), NULL));
    for (size_t i = 0; i < n; i++) {
        f->trials[i] = trial_make(&f->rooms[i], (int64_t)i, choices[i], 2);
    }
    const struct msc_evaluation e = {
        .trials = f->trials, .n = n, .finished = count_finished, .payload = f};
    return msc_env_evaluate(f->env, &f->goal, &e);
}

static void test_env_process__cannot_start(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(open_json(&f, "{\"command\":[\"no-such-program\"]}", NULL), MSC_E_NOT_FOUND);
    assert_message("environment process \"no-such-program\", init");
    assert_message("cannot be started");
    close_fixture(&f);
    assert_int_equal(open_json(&f, "{}", NULL), MSC_E_INVALID);
    assert_message(
        "env.command: expected a list of strings such as [\"python3\", \"environment.py\"]");
    close_fixture(&f);
    assert_int_equal(open_script(&f, "read -r a; exit 3", 60), MSC_E_IO);
    assert_message("init: /bin/sh: ended with exit status 3");
    close_fixture(&f);
    assert_int_equal(open_script(&f, "exec sleep 60", 0.2), MSC_E_IO);
    assert_message("no answer; waited 0.2 s");
    close_fixture(&f);
    assert_int_equal(open_script(&f, "echo '{\"error\":\"no licence\"}'; read -r a", 60),
                     MSC_E_STATE);
    assert_message("init: it reported: no licence");
    close_fixture(&f);
}

static void test_env_process__sends_what_is_documented(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(open_script(&f, "read -r b; " SCRIPT_SAY_B, 60), MSC_E_STATE);
    assert_message("it reported: {`method`:`init`,`protocol`:1,`params`:{`n`:3}}");
    close_fixture(&f);
    assert_ok(open_script(&f, SAY_SPACE "read -r b; " SCRIPT_SAY_B, 60));
    assert_int_equal(evaluate(&f, 2), MSC_E_STATE);
    assert_message("{`method`:`evaluate`,`trials`:[{`choices`:[0,0]},{`choices`:[0,1]}]}");
    close_fixture(&f);
}

static void test_env_process__reads_a_space(void **state) {
    (void)state;
    struct fixture f;
    double reference[MSC_MAX_METRICS];
    assert_ok(open_script(
        &f,
        "read -r a; echo '{\"version\":2,\"features\":[\"elements\"],\"choice_features\":[\"bits\","
        "\"error\"],\"tasks\":[{\"name\":\"a\",\"choices\":[\"4\",\"8\"],\"features\":[72],"
        "\"choice_features\":[[4,0.5],[8,null]]},{\"name\":\"b\",\"choices\":[\"x\",\"y\"],"
        "\"dearest_first\":[1,0],\"features\":[5],\"choice_features\":[[1,0],[2,0]]}],\"metrics\":["
        "{\"name\":\"speed\",\"unit\":"
        "\"1/s\",\"maximised\":true,\"measured\":true},{\"name\":\"distill_loss\"}],\"costs\":[{"
        "\"name\":\"size\",\"constant\":1,\"alone\":[[4,8],[2,2]]}],\"baselines\":[{\"label\":"
        "\"the "
        "plain\",\"choices\":[1,0]}],\"neighbours\":[[1,0],[0,1]],\"reference\":{\"distill_loss\":"
        "0,\"size\":20}}'; read -r b",
        60));
    const struct msc_space *space = msc_env_space(f.env);
    assert_int_equal(space->n_tasks, 2);
    assert_true(space->tasks[0].features[0] == 72);
    assert_int_equal(space->n_choice_features, 2);
    assert_string_equal(space->choice_feature_names[1], "error");
    assert_true(space->tasks[0].choice_features[1] == 0.5);
    assert_true(isnan(space->tasks[0].choice_features[3]));
    assert_true(space->tasks[1].choice_features[2] == 2);
    assert_int_equal(space->tasks[0].most_expensive_first[0], 1); // ordered by the cost
    assert_int_equal(space->tasks[1].most_expensive_first[0], 1); // ordered by the program
    assert_string_equal(space->metrics[0].name, "distill_loss");
    assert_true(space->metrics[1].is_maximised && space->metrics[1].is_measured);
    assert_true(space->metrics[2].is_exact);
    assert_int_equal(space->n_neighbours, 1);
    assert_true(space->neighbours[0][0] == 0 && space->neighbours[0][1] == 1);
    assert_int_equal(space->n_baselines, 1);
    assert_string_equal(space->baselines[0].label, "the plain");
    assert_int_equal(space->baselines[0].choices[0], 1);
    assert_ok(msc_env_reference(f.env, reference));
    assert_true(reference[0] == 0 && isnan(reference[1]) && reference[2] == 20);
    close_fixture(&f);
}

static void test_env_process__refuses_spaces(void **state) {
    (void)state;
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {"what?", "answer:1:1"},
        {"[]", "expected a JSON object"},
        {"{}", "tasks"},
        {"{\"task\":[]}", "tasks"},
        {"{\"tasks\":[]," METRICS "}", "tasks: expected at least one"},
        {"{\"tasks\":[{\"name\":\"a\",\"choices\":[]}]," METRICS "}", "tasks[0].choices"},
        {"{\"tasks\":[{\"name\":\"a\",\"choices\":[8]}]," METRICS "}", "tasks[0]"},
        {"{\"tasks\":[{\"name\":\"\",\"choices\":[\"8\"]}]," METRICS "}", "task 0 has no name"},
        {"{\"tasks\":[{\"name\":\"a\",\"choices\":[\"8\",\"4\"],\"dearest_first\":[0]}]," METRICS
         "}",
         "tasks[0].dearest_first: expected the choices 0 to 1 in some order"},
        {"{\"tasks\":[{\"name\":\"a\",\"choices\":[\"8\",\"4\"],\"dearest_first\":[1,1]}]," METRICS
         "}",
         "task a: the order of choices lists choice 0 0 times"},
        {"{\"features\":[\"f\"]," TASKS "," METRICS "}", "tasks[0].features"},
        {"{\"choice_features\":[\"f\"]," TASKS "," METRICS "}",
         "tasks[0].choice_features: expected a list for each of the 2 choices"},
        {"{\"choice_features\":[\"f\"],\"tasks\":[{\"name\":\"a\",\"choices\":[\"8\"],"
         "\"choice_features\":[[1,2]]}]," METRICS "}",
         "tasks[0].choice_features[0]: expected a list of 1 numbers or null"},
        {"{\"choice_features\":[\"f\"],\"tasks\":[{\"name\":\"a\",\"choices\":[\"8\"],"
         "\"choice_features\":[[\"1\"]]}]," METRICS "}",
         "tasks[0].choice_features[0][0]: expected a number, or null"},
        {"{" TASKS ",\"metrics\":[]}", "there are 0 metrics and costs"},
        {"{" TASKS ",\"metrics\":[{\"name\":\"x\",\"alone\":[[0,1],[0,1]]}]}", "alone"},
        {"{" TASKS ",\"metrics\":[{\"name\":\"x\"},{\"name\":\"x\"}]}", "both named x"},
        {"{" TASKS "," METRICS ",\"costs\":[{\"name\":\"size\",\"alone\":[[1,2]]}]}",
         "costs[0].alone: expected 2 lists"},
        {"{" TASKS "," METRICS ",\"costs\":[{\"name\":\"size\",\"terms\":[{\"factors\":[{\"task\":"
         "2,\"values\":[1,2]}]}]}]}",
         "costs[0].terms[0].factors[0].task"},
        {"{" TASKS "," METRICS ",\"baselines\":[{\"label\":\"u\",\"choices\":[0,2]}]}",
         "baselines[0].choices[1]: expected 0 to 1, a choice of task b"},
        {"{" TASKS "," METRICS ",\"baselines\":[{\"label\":\"u\",\"choices\":[0]}]}",
         "baselines[0].choices: expected 2 choices"},
        {"{" TASKS "," METRICS ",\"reference\":{\"accuracy\":1}}",
         "reference: the space has no metric \"accuracy\""},
        {"{" TASKS "," METRICS ",\"neighbours\":[[0,2]]}",
         "neighbours[0]: expected the index of a task, 0 to 1"},
        {"{" TASKS "," METRICS ",\"neighbours\":[[0,1],[0]]}",
         "neighbours[1]: expected the indices of two tasks"},
        {"{" TASKS "," METRICS ",\"neighbours\":[[1,1]]}",
         "neighbours[0]: expected two different tasks"},
        {"{" TASKS "," METRICS ",\"version\":-1}", "version"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        char script[700];
        snprintf(script, sizeof script, "read -r a; echo '%s'; read -r b", cases[i].answer);
        assert_true(open_script(&f, script, 60) != MSC_OK);
        assert_message(cases[i].message);
        assert_message("environment process");
        close_fixture(&f);
    }
}

static void test_env_process__evaluates_in_any_order(void **state) {
    (void)state;
    struct fixture f;
    assert_ok(open_script(&f,
                          SAY_SPACE "read -r b; " SAY_LOSS(2, 0.25)
                              SAY_LOSS(0, 0.5) "echo '{\"trial\":1,\"state\":\"failed\",\"reason\":"
                                               "\"it melts\"}'; read -r c",
                          60));
    assert_ok(evaluate(&f, 3));
    assert_int_equal(f.n_finished, 3);
    assert_true(f.trials[0]->outcome.metrics[0] == 0.5 && f.trials[0]->outcome.metrics[1] == 24);
    assert_int_equal(f.trials[1]->outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(f.trials[1]->outcome.cause, MSC_CAUSE_TRIAL);
    assert_string_equal(f.trials[1]->outcome.reason, "it melts");
    assert_true(f.trials[2]->outcome.metrics[0] == 0.25);
    assert_int_equal(f.trials[2]->outcome.state, MSC_TRIAL_COMPLETE);
    close_fixture(&f);
}

static void test_env_process__refuses_outcomes(void **state) {
    (void)state;
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {"{\"metrics\":{\"distill_loss\":1}}",
         "expected \"trial\" to be the index of a trial, 0 to 1"},
        {"{\"trial\":2,\"metrics\":{}}", "expected \"trial\" to be the index of a trial, 0 to 1"},
        {"{\"trial\":0}", "trial 0: "},
        {"{\"trial\":0,\"metric\":{}}", "metrics"},
        {"{\"trial\":0,\"metrics\":{\"accuracy\":1}}", "the space has no metric \"accuracy\""},
        {"{\"trial\":0,\"metrics\":{\"size\":1}}", "\"size\" is an exact cost of the space"},
        {"{\"trial\":0,\"metrics\":{\"distill_loss\":\"low\"}}", "expected a finite number"},
        {"{\"trial\":0,\"metrics\":{\"distill_loss\":1e999}}", "too large"},
        {"{\"trial\":0,\"state\":\"failed\"}", "expected a \"reason\""},
        {"{\"trial\":0,\"state\":\"infeasible\",\"metrics\":{}}", "its state is \"infeasible\""},
        {"{\"trial\":0,\"state\":\"done\",\"metrics\":{}}", "its state is \"done\""},
        {"{\"trial\":0,\"metrics\":{\"distill_loss\":1}}\n{\"trial\":0,\"metrics\":{}}",
         "trial 0 was answered twice"},
        {"{\"error\":\"out of paper\"}", "it reported: out of paper"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        char script[700];
        snprintf(script, sizeof script, SAY_SPACE "read -r b; echo '%s'; read -r c",
                 cases[i].answer);
        assert_ok(open_script(&f, script, 60));
        assert_true(evaluate(&f, 2) != MSC_OK);
        assert_message(cases[i].message);
        assert_message("evaluate");
        close_fixture(&f);
    }
}

// A metric that is not measured is NaN. A trial without a value of its objective has failed, and so
// has a trial that is reported as pruned although it has no bound.
static void test_env_process__judges_outcomes(void **state) {
    (void)state;
    struct fixture f;
    assert_ok(open_script(&f,
                          SAY_SPACE "read -r b; echo '{\"trial\":0,\"metrics\":{\"distill_loss\":"
                                    "null}}'; echo '{\"trial\":1,\"state\":\"pruned\",\"metrics\":"
                                    "{\"distill_loss\":3}}'; read -r c",
                          60));
    assert_ok(evaluate(&f, 2));
    assert_int_equal(f.trials[0]->outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(f.trials[1]->outcome.state, MSC_TRIAL_FAILED);
    assert_non_null(strstr(f.trials[1]->outcome.reason, "expected more than its bound"));
    close_fixture(&f);
}

// Each start of the program appends a line to the file `starts`.
#define NOTE_START "echo start >>starts; "

static size_t n_starts(const char *folder) {
    char path[TEMP_FOLDER_BYTES + 8];
    char line[16];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/starts", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        n++;
    }
    fclose(file);
    return n;
}

static void open_in(struct fixture *f, const char *folder, const char *script) {
    char *json = script_config("\"timeout\":30", script);
    assert_ok(open_json(f, json, folder));
    msc_free(json);
}

// The program is killed once in a round. Its answers so far are kept, and the other trials are
// evaluated again.
static void test_env_process__starts_again_after_its_end(void **state) {
    (void)state;
    struct fixture f;
    char folder[TEMP_FOLDER_BYTES];
    temp_folder_make(folder);
    open_in(
        &f, folder,
        NOTE_START SAY_SPACE "if [ ! -e once ]; then read -r b; " SAY_LOSS(
            1, 0.5) "touch once; kill -9 $$; fi; while read -r b; do " SAY_LOSS(0, 0.25) "done");
    assert_ok(evaluate(&f, 3));
    assert_int_equal(f.n_finished, 3);
    assert_true(f.trials[0]->outcome.metrics[0] == 0.25);
    assert_true(f.trials[1]->outcome.metrics[0] == 0.5);
    assert_true(f.trials[2]->outcome.metrics[0] == 0.25);
    assert_int_equal(n_starts(folder), 2);
    close_fixture(&f);
    temp_folder_remove(folder);
}

// One point ends the program each time it is evaluated. The trial of that point fails; the others
// succeed.
static void test_env_process__a_trial_that_ends_it_has_failed(void **state) {
    (void)state;
    struct fixture f;
    char folder[TEMP_FOLDER_BYTES];
    temp_folder_make(folder);
    open_in(&f, folder,
            NOTE_START SAY_SPACE
            "while read -r b; do case $b in *'[0,1]'*) exit 7;; esac; " SAY_LOSS(0, 0.25) "done");
    assert_ok(evaluate(&f, 3));
    assert_int_equal(f.n_finished, 3);
    assert_int_equal(f.trials[0]->outcome.state, MSC_TRIAL_COMPLETE);
    assert_int_equal(f.trials[1]->outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(f.trials[1]->outcome.cause, MSC_CAUSE_TRIAL);
    assert_non_null(strstr(f.trials[1]->outcome.reason, "ended with exit status 7"));
    assert_int_equal(f.trials[2]->outcome.state, MSC_TRIAL_COMPLETE);
    // Four starts: the first, one after the round, and one after each retry of the bad trial.
    assert_int_equal(n_starts(folder), 4);
    close_fixture(&f);
    temp_folder_remove(folder);
}

static void test_env_process__says_the_same_when_started_again(void **state) {
    (void)state;
    struct fixture f;
    char folder[TEMP_FOLDER_BYTES];
    temp_folder_make(folder);
    open_in(&f, folder,
            "if [ -e once ]; then read -r a; echo '{" TASKS
            ",\"metrics\":[{\"name\":\"other\"}]}'; "
            "read -r b; fi; touch once; " SAY_SPACE "read -r b; exit 1");
    assert_int_equal(evaluate(&f, 2), MSC_E_STATE);
    assert_message("the answer after a restart differs");
    close_fixture(&f);
    temp_folder_remove(folder);
}

// The files that the command names are part of the environment's identity.
static void test_env_process__identity_holds_its_files(void **state) {
    (void)state;
    struct fixture f;
    struct msc_hash hashes[3];
    char folder[TEMP_FOLDER_BYTES];
    char path[TEMP_FOLDER_BYTES + 8];
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/env.sh", folder);
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%s\n" SAY_SPACE "read -r b\n", i < 2 ? "# as it was" : "# another");
        assert_int_equal(fclose(file), 0);
        assert_ok(open_json(&f, "{\"command\":[\"sh\",\"env.sh\"]}", folder));
        assert_ok(msc_env_identity(&hashes[i], f.env));
        cJSON *object = cJSON_CreateObject();
        assert_ok(msc_env_describe(f.env, object));
        assert_true(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(object, "program")));
        assert_true(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(object, "answer")));
        cJSON_Delete(object);
        close_fixture(&f);
    }
    assert_true(msc_hash_equal(hashes[0], hashes[1]));
    assert_false(msc_hash_equal(hashes[0], hashes[2]));
    temp_folder_remove(folder);
}

static void test_env_process__takes_its_children_along(void **state) {
    (void)state;
    struct fixture f;
    char folder[TEMP_FOLDER_BYTES];
    char note[TEMP_FOLDER_BYTES + 8];
    temp_folder_make(folder);
    snprintf(note, sizeof note, "%s/pid", folder);
    open_in(&f, folder, "sleep 600 & echo $! >pid; " SAY_SPACE "read -r b");
    pid_t pid = process_noted(note);
    assert_true(process_runs(pid));
    close_fixture(&f);
    assert_process_ends(pid);
    temp_folder_remove(folder);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_process__cannot_start),
        cmocka_unit_test(test_env_process__sends_what_is_documented),
        cmocka_unit_test(test_env_process__reads_a_space),
        cmocka_unit_test(test_env_process__refuses_spaces),
        cmocka_unit_test(test_env_process__evaluates_in_any_order),
        cmocka_unit_test(test_env_process__refuses_outcomes),
        cmocka_unit_test(test_env_process__judges_outcomes),
        cmocka_unit_test(test_env_process__starts_again_after_its_end),
        cmocka_unit_test(test_env_process__a_trial_that_ends_it_has_failed),
        cmocka_unit_test(test_env_process__says_the_same_when_started_again),
        cmocka_unit_test(test_env_process__identity_holds_its_files),
        cmocka_unit_test(test_env_process__takes_its_children_along),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
