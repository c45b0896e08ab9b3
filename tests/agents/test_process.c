// Faults of an agent that is a separate program, and the messages they lead to. The programs are
// one-line shell scripts, so the messages name /bin/sh as the command. Expected messages are
// written by hand.
#include "agents/agent.h"
#include "tests/agents/trace.h"

#include "tests/processes.h"
#include "tests/script.h"
#include "tests/temp_folder.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>

static enum msc_status open_json(struct fixture *f, const char *json) {
    open_fixture(f, "{\"tasks\":3,\"choices\":2}", json);
    const struct msc_agent_host host = {.folder = "/"};
    return msc_agent_open(&f->agent, f->config, msc_env_space(f->env), &f->goal, 5, &host);
}

// Opens an agent that runs `script` with a timeout of half a second.
static enum msc_status open_script(struct fixture *f, const char *script) {
    char *json = script_config("\"type\":\"process\",\"timeout\":0.5", script);
    enum msc_status status = open_json(f, json);
    msc_free(json);
    return status;
}

static enum msc_status ask(struct fixture *f, size_t *n) {
    uint32_t choices[2][3];
    struct msc_proposal proposals[2] = {{.choices = choices[0]}, {.choices = choices[1]}};
    return msc_agent_ask(f->agent, proposals, 2, n);
}

static void test_agents_process__cannot_start(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(open_json(&f, "{\"type\":\"process\",\"command\":[\"no-such-program\"]}"),
                     MSC_E_NOT_FOUND);
    assert_message("agent process \"no-such-program\", init");
    assert_message("cannot be started");
    close_fixture(&f);
    assert_int_equal(open_json(&f, "{\"type\":\"process\"}"), MSC_E_INVALID);
    assert_message("agent.command");
    close_fixture(&f);
    assert_int_equal(open_json(&f, "{\"type\":\"process\",\"command\":[\"sh\",3]}"), MSC_E_INVALID);
    assert_message("word 1 is not a string");
    close_fixture(&f);
    assert_int_equal(open_json(&f, "{\"type\":\"process\",\"comand\":[\"sh\"]}"), MSC_E_INVALID);
    assert_message("command");
    close_fixture(&f);
}

static void test_agents_process__dies(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(open_script(&f, "exit 3"), MSC_E_IO);
    assert_message("ended with exit status 3");
    close_fixture(&f);
    assert_int_equal(open_script(&f, "kill -9 $$"), MSC_E_IO);
    assert_message("ended by signal 9");
    close_fixture(&f);
    size_t n;
    assert_ok(open_script(&f, "read a; echo '{}'; read b; exit 4"));
    assert_int_equal(ask(&f, &n), MSC_E_IO);
    assert_message("ask: /bin/sh: ended with exit status 4");
    close_fixture(&f);
}

static void test_agents_process__does_not_answer(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(open_script(&f, "sleep 60"), MSC_E_IO);
    assert_message("no answer; waited 0.5 s");
    close_fixture(&f);
}

static void test_agents_process__says_what_is_left(void **state) {
    (void)state;
    struct fixture f;
    size_t n;
    assert_ok(open_script(&f, "read a; echo '{}'; read b; "
                              "echo '{\"proposals\":[{\"choices\":[0,0,0]}],\"left\":7}'; read c; "
                              "echo '{\"proposals\":[],\"left\":\"some\"}'; read d"));
    assert_true(isinf(msc_agent_left(f.agent).n) && !msc_agent_left(f.agent).is_exact);
    assert_ok(ask(&f, &n));
    assert_true(msc_agent_left(f.agent).n == 7 && !msc_agent_left(f.agent).is_exact);
    assert_int_equal(ask(&f, &n), MSC_E_FORMAT);
    assert_message("left");
    close_fixture(&f);
}

static void test_agents_process__answers_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {"what?", "answer:1:1"},
        {"[]", "expected a JSON object"},
        {"{\"error\":\"no licence\"}", "it reported: no licence"},
        {"{}", "proposals"},
        {"{\"proposals\":[[0,0,0]]}", "proposal 0 is not an object"},
        {"{\"proposals\":[{\"choices\":[0,0]}]}", "proposal 0 has 2 choices, expected 3"},
        {"{\"proposals\":[{\"choices\":[0,0,0]},{\"choices\":[0,2,0]}]}",
         "proposal 1 has choice 2 for task task_1, expected 0 to 1"},
        {"{\"proposals\":[{\"choices\":[0,-1,0]}]}", "has choice -1"},
        {"{\"proposals\":[{\"choices\":[0,0.5,0]}]}", "has choice 0.5"},
        {"{\"proposals\":[{\"choices\":[0,1,0],\"parents\":1}]}", "parent"},
        {"{\"proposals\":[{\"choices\":[0,1,0],\"parent\":-2}]}", "parent -2"},
        {"{\"proposals\":[{\"choices\":[0,0,0]},{\"choices\":[0,0,0]},{\"choices\":[0,0,0]}]}",
         "it has 3 proposals, expected at most 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        char script[400];
        size_t n;
        snprintf(script, sizeof script, "read a; echo '{}'; read b; echo '%s'; read c",
                 cases[i].answer);
        assert_ok(open_script(&f, script));
        assert_true(ask(&f, &n) != MSC_OK);
        assert_message(cases[i].message);
        assert_message("agent");
        close_fixture(&f);
    }
}

static void test_agents_process__takes_parent_bound_and_probe(void **state) {
    (void)state;
    struct fixture f;
    uint32_t choices[3];
    size_t n;
    struct msc_proposal proposal = {.choices = choices};
    assert_ok(open_script(&f, "read a; echo '{}'; read b; echo '{\"proposals\":[{\"choices\":"
                              "[1,0,1],\"parent\":4,\"bound\":0.25,\"probe\":true}],\"done\":true}'"
                              "; read c"));
    assert_ok(msc_agent_ask(f.agent, &proposal, 1, &n));
    const uint32_t expected[] = {1, 0, 1};
    assert_int_equal(n, 1);
    assert_memory_equal(choices, expected, sizeof choices);
    assert_int_equal(proposal.parent, 4);
    assert_true(proposal.bound == 0.25 && proposal.probe);
    assert_true(msc_agent_is_done(f.agent));
    close_fixture(&f);
}

// The script answers with the text it received, as an error message.
static void test_agents_process__sends_what_is_documented(void **state) {
    (void)state;
    struct fixture f;
    static const char echo[] = "read -r a; echo '{}'; read -r b; " SCRIPT_SAY_B;
    const uint32_t choices[] = {1, 0, 1};
    struct trial_room room;
    struct msc_trial *trial = trial_make(&room, 9, choices, 3);
    room.metrics[0] = 0.1;
    trial->outcome.objectives[0] = 0.1;
    assert_ok(open_script(&f, echo));
    assert_int_equal(msc_agent_tell(f.agent, trial), MSC_E_STATE);
    assert_message("{`method`:`tell`,`trial`:{`id`:9,`choices`:[1,0,1],`parent`:-1,`bound`:null},"
                   "`outcome`:{`state`:`complete`,`metrics`:{`distill_loss`:0.1},"
                   "`objectives`:[0.1],`violation`:0,`reason`:``}}");
    close_fixture(&f);
    size_t n;
    assert_ok(open_script(&f, echo));
    assert_int_equal(ask(&f, &n), MSC_E_STATE);
    assert_message("{`method`:`ask`,`max`:2}");
    close_fixture(&f);
}

// The program runs in the folder that relative paths start from. No shell expands its command.
static void test_agents_process__runs_in_its_folder(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(open_script(&f, "printf '{\"error\":\"%s\"}\\n' \"$PWD\""), MSC_E_STATE);
    assert_message("it reported: /");
    close_fixture(&f);
    assert_int_equal(open_json(&f, "{\"type\":\"process\",\"command\":[\"echo\",\"$HOME\"]}"),
                     MSC_E_FORMAT);
    assert_message("echo $HOME");
    close_fixture(&f);
}

// The agent starts a child that would run for ten minutes, answers, and ends. Once the agent is
// closed, the child must have ended, too.
static void check_child_ends(const char *child, const char *rest) {
    struct fixture f;
    char folder[TEMP_FOLDER_BYTES];
    char note[TEMP_FOLDER_BYTES + 8];
    char script[TEMP_FOLDER_BYTES + 400];
    temp_folder_make(folder);
    snprintf(note, sizeof note, "%s/pid", folder);
    snprintf(script, sizeof script, "%s & echo $! >%s; read a; echo '{}'; %s", child, note, rest);
    assert_ok(open_script(&f, script));
    pid_t pid = process_noted(note);
    assert_true(process_runs(pid));
    close_fixture(&f);
    assert_process_ends(pid);
    temp_folder_remove(folder);
}

static void test_agents_process__takes_its_children_along(void **state) {
    (void)state;
    static const char stubborn[] = "(trap '' TERM; sleep 600)";
    check_child_ends("sleep 600", "read b"); // the agent ends when it is asked to
    check_child_ends("sleep 600", "exit 0"); // the agent ends before it is asked to
    check_child_ends(stubborn, "read b");
    check_child_ends(stubborn, "sleep 600"); // the agent does not end when it is asked to
}

// While the program works, the heartbeat goes on, and a second request to stop ends the wait.
static void test_agents_process__may_think_long(void **state) {
    (void)state;
    struct fixture f;
    uint64_t beats = 0;
    size_t n;
    struct msc_cancel cancel = {.beats = &beats};
    const struct msc_agent_host host = {.cancel = &cancel};
    char *json = script_config("\"type\":\"process\",\"timeout\":60",
                               "read a; sleep 0.5; echo {}; read b; sleep 60");
    open_fixture(&f, "{\"tasks\":3,\"choices\":2}", json);
    assert_ok(msc_agent_open(&f.agent, f.config, msc_env_space(f.env), &f.goal, 5, &host));
    assert_true(beats >= 3);
    msc_cancel_raise(&cancel, 2);
    assert_int_equal(ask(&f, &n), MSC_E_CANCELLED);
    close_fixture(&f);
    msc_free(json);
}

static void assert_remark(struct fixture *f, const char *expected) {
    cJSON *remarks = cJSON_CreateArray();
    assert_ok(msc_agent_remarks(f->agent, remarks));
    assert_int_equal(cJSON_GetArraySize(remarks), expected ? 1 : 0);
    if (expected && !strstr(cJSON_GetArrayItem(remarks, 0)->valuestring, expected)) {
        print_error("%s\n", cJSON_GetArrayItem(remarks, 0)->valuestring);
        fail();
    }
    cJSON_Delete(remarks);
}

// Only a program that offers remarks is asked for them. What is wrong with them is a remark.
static void test_agents_process__remarks(void **state) {
    (void)state;
    static const struct {
        const char *script, *remark;
    } cases[] = {
        {"read a; echo {}; read b; exit 3", NULL},
        {"read a; echo '{\"remarks\":true}'; read b; echo '{\"remarks\":[]}'; read c", NULL},
        {"read a; echo '{\"remarks\":true}'; read b; echo '{\"remarks\":[\"a and b\"]}'; read c",
         "a and b"},
        {"read a; echo '{\"remarks\":true}'; read b; echo \"{\\\"remarks\\\":[$(echo $b | wc "
         "-c)]}\"",
         "remarks: answer: \"remarks\" is not a list of strings"},
        {"read a; echo '{\"remarks\":true}'; read b; echo {}",
         "\"remarks\" is missing, expected an array"},
        {"read a; echo '{\"remarks\":true}'; read b; exit 3", "ended with exit status 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        assert_ok(open_script(&f, cases[i].script));
        assert_remark(&f, cases[i].remark);
        close_fixture(&f);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_process__cannot_start),
        cmocka_unit_test(test_agents_process__dies),
        cmocka_unit_test(test_agents_process__does_not_answer),
        cmocka_unit_test(test_agents_process__says_what_is_left),
        cmocka_unit_test(test_agents_process__answers_nonsense),
        cmocka_unit_test(test_agents_process__takes_parent_bound_and_probe),
        cmocka_unit_test(test_agents_process__sends_what_is_documented),
        cmocka_unit_test(test_agents_process__runs_in_its_folder),
        cmocka_unit_test(test_agents_process__takes_its_children_along),
        cmocka_unit_test(test_agents_process__may_think_long),
        cmocka_unit_test(test_agents_process__remarks),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
