// Tests the wrapper around an agent's definition, and the choice of a definition by a
// configuration. Expected values follow from the fake definitions below.
#include "agents/agent.h"
#include "tests/agents/trace.h"

#include "base/json.h"
#include "env/api/library.h"
#include "tests/env/plugin_faults.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdlib.h>

struct stubborn {
    int64_t choice;          // the parameter: the choice that is proposed for every task
    struct msc_outcome told; // the last outcome that the agent observed
    double bound;
    int64_t parent;
    bool says_more;
};

static enum msc_status stubborn_init(struct msc_agent *agent) {
    const struct stubborn *s = msc_agent_state(agent);
    return s->choice == 9 ? MSC_FAIL(MSC_E_INVALID, "not nine") : MSC_OK;
}

static enum msc_status stubborn_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                    size_t *n) {
    const struct stubborn *s = msc_agent_state(agent);
    for (; *n < max; (*n)++) {
        assert_true(out[*n].parent == -1 && isinf(out[*n].bound) && !out[*n].probe);
        for (size_t t = 0; t < msc_agent_space(agent)->n_tasks; t++) {
            out[*n].choices[t] = (uint32_t)s->choice;
        }
        out[*n].bound = s->bound;
        out[*n].parent = s->parent;
    }
    *n += s->says_more;
    return MSC_OK;
}

static enum msc_status stubborn_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct stubborn *s = msc_agent_state(agent);
    s->told = trial->outcome;
    return MSC_OK;
}

static const struct msc_param stubborn_params[] = {
    {.name = "choice",
     .help = "for every task",
     .offset = offsetof(struct stubborn, choice),
     .type = MSC_PARAM_I64,
     .number = 1,
     .min = 0,
     .max = 10},
    {.name = "bound",
     .help = "of every proposal",
     .offset = offsetof(struct stubborn, bound),
     .type = MSC_PARAM_F64,
     .number = 0.5},
    {.name = "parent",
     .help = "of every proposal",
     .offset = offsetof(struct stubborn, parent),
     .type = MSC_PARAM_I64,
     .number = 3},
    {.name = "says_more",
     .help = "count one too many",
     .offset = offsetof(struct stubborn, says_more),
     .type = MSC_PARAM_BOOL},
    {0},
};

static const struct msc_agent_def stubborn = {
    .abi = MSC_AGENT_ABI,
    .name = "stubborn",
    .summary = "always the same",
    .version = 1,
    .state_size = sizeof(struct stubborn),
    .params = stubborn_params,
    .init = stubborn_init,
    .ask = stubborn_ask,
    .tell = stubborn_tell,
};

static const char toy[] = "{\"tasks\":3,\"choices\":2}";

static enum msc_status create(struct fixture *f, const struct msc_agent_def *def,
                              const char *json) {
    open_fixture(f, toy, json);
    return msc_agent_create(&f->agent, def, f->config, msc_env_space(f->env), &f->goal, 0);
}

static enum msc_status open_type(struct fixture *f, const char *json) {
    open_fixture(f, toy, json);
    const struct msc_agent_host host = {.folder = MSC_PLUGIN_FOLDER};
    return msc_agent_open(&f->agent, f->config, msc_env_space(f->env), &f->goal, 0, &host);
}

static enum msc_status ask(struct fixture *f, struct msc_proposal *first) {
    static uint32_t choices[2][3];
    struct msc_proposal proposals[2] = {{.choices = choices[0]}, {.choices = choices[1]}};
    size_t n;
    enum msc_status status = msc_agent_ask(f->agent, proposals, 2, &n);
    *first = proposals[0];
    return status;
}

static void test_agents_agent__ask_is_checked(void **state) {
    (void)state;
    struct fixture f;
    struct msc_proposal first;
    assert_ok(create(&f, &stubborn, "{\"type\":\"whatever\"}"));
    assert_ok(ask(&f, &first));
    assert_true(first.bound == 0.5 && first.parent == 3 && first.choices[2] == 1);
    assert_false(msc_agent_is_done(f.agent));
    assert_ptr_equal(msc_agent_definition(f.agent), &stubborn);
    close_fixture(&f);
    assert_ok(create(&f, &stubborn, "{\"choice\":2}"));
    assert_int_equal(ask(&f, &first), MSC_E_INVALID);
    assert_message("agent stubborn: proposal 0 has choice 2 for task task_0, expected 0 to 1");
    close_fixture(&f);
    assert_ok(create(&f, &stubborn, "{\"parent\":-2}"));
    assert_int_equal(ask(&f, &first), MSC_E_INVALID);
    close_fixture(&f);
    assert_ok(create(&f, &stubborn, "{\"says_more\":true}"));
    assert_int_equal(ask(&f, &first), MSC_E_INVALID);
    assert_message("agent stubborn: made 3 proposals, expected at most 2");
    close_fixture(&f);
}

// An agent does not receive values that may differ between runs, such as times.
static void test_agents_agent__tells_no_times(void **state) {
    (void)state;
    struct fixture f;
    struct trial_room room;
    const uint32_t choices[] = {1, 0, 1};
    struct msc_trial *trial = trial_make(&room, 4, choices, 3);
    room.metrics[0] = 0.25;
    trial->outcome.time_us = 1234;
    trial->outcome.reuse_ratio = 0.5;
    assert_ok(create(&f, &stubborn, "{}"));
    assert_ok(msc_agent_tell(f.agent, trial));
    const struct stubborn *s = msc_agent_state(f.agent);
    assert_ptr_equal(s->told.metrics, room.metrics);
    assert_true(s->told.time_us == 0 && s->told.reuse_ratio == 0.0);
    assert_true(trial->outcome.time_us == 1234);
    close_fixture(&f);
}

static void test_agents_agent__create_refuses(void **state) {
    (void)state;
    struct fixture f;
    assert_int_equal(create(&f, &stubborn, "{\"chioce\":1}"), MSC_E_INVALID);
    assert_message("choice");
    close_fixture(&f);
    assert_int_equal(create(&f, &stubborn, "{\"choice\":9}"), MSC_E_INVALID);
    assert_message("not nine");
    close_fixture(&f);
    struct msc_agent_def old = stubborn;
    old.abi = 0;
    assert_int_equal(create(&f, &old, "{}"), MSC_E_UNSUPPORTED);
    assert_message("built for ABI 0, expected 2; rebuild it with the installed headers");
    close_fixture(&f);
}

static void test_agents_agent__open_by_type(void **state) {
    (void)state;
    struct fixture f;
    assert_ok(open_type(&f, "{\"type\":\"evolutionary\",\"population\":8}"));
    assert_ptr_equal(msc_agent_definition(f.agent), msc_agent_find("evolutionary"));
    struct cJSON *described = cJSON_CreateObject();
    assert_ok(msc_agent_describe(f.agent, described));
    assert_string_equal(cJSON_GetObjectItem(described, "type")->valuestring, "evolutionary");
    assert_int_equal(cJSON_GetObjectItem(described, "population")->valueint, 8);
    assert_true(cJSON_GetObjectItem(described, "crossover")->valuedouble == 0.9);
    cJSON_Delete(described);
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"type\":\"evolutionnary\"}"), MSC_E_NOT_FOUND);
    assert_message("did you mean \"evolutionary\"?");
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"population\":8}"), MSC_E_INVALID);
    assert_message("\"type\" is missing");
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"type\":\"random\",\"path\":\"x\"}"), MSC_E_INVALID);
    close_fixture(&f);
}

static void test_agents_agent__open_library(void **state) {
    (void)state;
    struct fixture f;
    struct msc_proposal first;
    assert_ok(open_type(&f, "{\"type\":\"library\",\"path\":\"hill_climb_agent.so\"}"));
    assert_string_equal(msc_agent_definition(f.agent)->name, "hill_climb");
    assert_ok(ask(&f, &first));
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"type\":\"library\",\"path\":\"hill_climb_agent.so\","
                                   "\"restart\":0}"),
                     MSC_E_INVALID);
    assert_message("restart");
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"type\":\"library\"}"), MSC_E_FORMAT);
    assert_message("path");
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"type\":\"library\",\"path\":\"nowhere.so\"}"),
                     MSC_E_NOT_FOUND);
    assert_message("nowhere.so");
    close_fixture(&f);
    assert_int_equal(open_type(&f, "{\"type\":\"library\",\"path\":\"CMakeFiles\"}"), MSC_E_FORMAT);
    close_fixture(&f);
}

// Three tasks of two choices give five trials: the most expensive plan, three plans that each
// change one task, and the knapsack plan.
static void test_agents_agent__left(void **state) {
    (void)state;
    static const struct {
        const char *agent;
        double n;
        bool is_exact;
    } rows[] = {
        {"{\"type\":\"grid_search\"}", 5, true},
        {"{\"type\":\"grid_search\",\"mode\":\"full\"}", 8, true},
        {"{\"type\":\"grid_search\",\"mode\":\"greedy\"}", INFINITY, false},
        {"{\"type\":\"random\"}", 8, true},
        {"{\"type\":\"evolutionary\"}", 8, true},
    };
    struct fixture f;
    struct msc_proposal first;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_ok(open_type(&f, rows[i].agent));
        struct msc_agent_left left = msc_agent_left(f.agent);
        assert_true(left.n == rows[i].n && left.is_exact == rows[i].is_exact);
        assert_ok(ask(&f, &first));
        assert_true(msc_agent_left(f.agent).n <= left.n);
        close_fixture(&f);
    }
    // `random` does not end in a large space: an exact infinity of trials is left. If a definition
    // cannot tell how many are left, the result is infinite but not exact.
    open_fixture(&f, "{\"tasks\":40,\"choices\":4}", "{\"type\":\"random\"}");
    assert_ok(msc_agent_open(&f.agent, f.config, msc_env_space(f.env), &f.goal, 0, NULL));
    assert_true(isinf(msc_agent_left(f.agent).n) && msc_agent_left(f.agent).is_exact);
    close_fixture(&f);
    assert_ok(create(&f, &stubborn, "{}"));
    assert_true(isinf(msc_agent_left(f.agent).n) && !msc_agent_left(f.agent).is_exact);
    close_fixture(&f);
}

// The toy's tasks are at 0, 1/3 and 2/3 of the network. A change of a task costs the part of the
// network after it: 1, 2/3 and 1/3 of a trial. The most expensive plan and the knapsack plan cost
// one trial each.
static void test_agents_agent__effort(void **state) {
    (void)state;
    struct fixture f;
    struct msc_proposal first;
    assert_ok(open_type(&f, "{\"type\":\"grid_search\",\"around\":0}"));
    assert_true(fabs(msc_agent_effort(f.agent, 5) - 4.0) < 1e-9);
    assert_true(fabs(msc_agent_effort(f.agent, 3) - (2.0 + 2.0 / 3.0)) < 1e-9);
    assert_ok(ask(&f, &first));
    double n = msc_agent_left(f.agent).n; // one or two full trials are already done
    assert_true(n == 3 || n == 4);
    assert_true(fabs(msc_agent_effort(f.agent, n) - (n - 1.0)) < 1e-9);
    close_fixture(&f);
    assert_ok(open_type(&f, "{\"type\":\"random\"}"));
    assert_true(msc_agent_effort(f.agent, 5) == 5.0);
    assert_true(isinf(msc_agent_effort(f.agent, INFINITY)));
    close_fixture(&f);
}

static void test_agents_agent__registry(void **state) {
    (void)state;
    for (const struct msc_agent_def *const *def = msc_agent_list(); *def; def++) {
        assert_ptr_equal(msc_agent_find((*def)->name), *def);
        assert_int_equal((*def)->abi, MSC_AGENT_ABI);
        assert_true((*def)->version >= 1 && (*def)->summary[0] != '\0');
    }
    assert_null(msc_agent_find("process"));
    msc_agent_destroy(NULL);
}

static void test_agents_agent__library_faults(void **state) {
    (void)state;
    const struct msc_agent_def *def = NULL;
    void *library = NULL;
    for (size_t i = 0; i < sizeof plugin_faults / sizeof plugin_faults[0]; i++) {
        setenv("MSC_FAULT", plugin_faults[i].fault, 1);
        assert_true(msc_agent_library_open(&library, &def, MSC_PLUGIN_FAULTS, NULL) != MSC_OK);
        assert_message(plugin_faults[i].message);
        assert_message(MSC_PLUGIN_FAULTS);
        assert_null(library);
    }
    setenv("MSC_FAULT", "none", 1);
    assert_ok(msc_agent_library_open(&library, &def, MSC_PLUGIN_FAULTS, NULL));
    msc_library_close(library);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_agent__ask_is_checked),
        cmocka_unit_test(test_agents_agent__tells_no_times),
        cmocka_unit_test(test_agents_agent__create_refuses),
        cmocka_unit_test(test_agents_agent__open_by_type),
        cmocka_unit_test(test_agents_agent__open_library),
        cmocka_unit_test(test_agents_agent__left),
        cmocka_unit_test(test_agents_agent__library_faults),
        cmocka_unit_test(test_agents_agent__effort),
        cmocka_unit_test(test_agents_agent__registry),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
