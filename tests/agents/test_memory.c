// Memory of the built-in agents: none is allocated while they are asked and told, and when it is
// short at the start they say so and leak nothing.
#include "agents/agent.h"
#include "env/env.h"

#include "base/json.h"
#include "tests/msc_test.h"
#include "tests/short_memory.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const char toy[] = "{\"tasks\":12,\"choices\":4,\"interaction\":0.5,"
                          "\"bounds\":{\"size_ratio\":{\"max\":0.06}}}";
static const char *const configs[] = {
    "{\"type\":\"grid_search\"}",
    "{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
    "{\"type\":\"grid_search\",\"mode\":\"full\"}",
    "{\"type\":\"random\"}",
    "{\"type\":\"evolutionary\"}",
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0], ROUND = 8, N_TASKS = 12 };

struct fixture {
    struct cJSON *env_config;
    struct cJSON *config;
    struct msc_env *env;
    struct msc_goal goal;
};

static void open_fixture(struct fixture *f, const char *config) {
    const struct msc_env_host host = {0};
    assert_ok(msc_json_parse(&f->env_config, toy, strlen(toy), "toy"));
    assert_ok(msc_json_parse(&f->config, config, strlen(config), "agent"));
    assert_ok(msc_env_create(&f->env, msc_env_find("toy"), f->env_config, &host));
    assert_ok(msc_env_read_goal(&f->goal, msc_env_space(f->env), f->env_config));
}

static void close_fixture(struct fixture *f) {
    msc_env_destroy(f->env);
    cJSON_Delete(f->config);
    cJSON_Delete(f->env_config);
}

// One round; returns the number of trials, having added the agent's own allocations to *n_made.
static size_t run_round(struct fixture *f, struct msc_agent *agent, int64_t *id, int *n_made) {
    uint32_t choices[ROUND][N_TASKS];
    struct msc_proposal proposals[ROUND];
    struct msc_trial trials[ROUND];
    struct msc_outcome outcomes[ROUND];
    size_t n;
    for (size_t i = 0; i < ROUND; i++) {
        proposals[i].choices = choices[i];
    }
    int before = n_calls;
    assert_ok(msc_agent_ask(agent, proposals, ROUND, &n));
    *n_made += n_calls - before;
    for (size_t i = 0; i < n; i++) {
        trials[i] = (struct msc_trial){.id = (*id)++,
                                       .choices = choices[i],
                                       .parent = -1,
                                       .bound = INFINITY,
                                       .probe = proposals[i].probe};
    }
    struct msc_evaluation e = {.trials = trials, .n = n, .outcomes = outcomes};
    assert_ok(msc_env_evaluate(f->env, &f->goal, &e));
    before = n_calls;
    for (size_t i = 0; i < n; i++) {
        assert_ok(msc_agent_tell(agent, &trials[i], &outcomes[i]));
    }
    *n_made += n_calls - before;
    return n;
}

static void test_agents_memory__ask_and_tell_allocate_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CONFIGS; i++) {
        struct fixture f;
        struct msc_agent *agent = NULL;
        int64_t id = 0;
        int n_made = 0;
        open_fixture(&f, configs[i]);
        int before = n_calls;
        assert_ok(msc_agent_open(&agent, f.config, msc_env_space(f.env), &f.goal, 1, NULL));
        assert_true(n_calls > before); // the count works
        while (id < 400 && run_round(&f, agent, &id, &n_made) > 0) {
            assert_int_equal(n_made, 0);
        }
        assert_true(id > 20);
        msc_agent_destroy(agent);
        close_fixture(&f);
    }
}

// Every allocation fails once: the n-th, n = 1, 2, … until the agent opens.
static void test_agents_memory__short_at_the_start(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CONFIGS; i++) {
        struct fixture f;
        enum msc_status status = MSC_E_NOMEM;
        open_fixture(&f, configs[i]);
        for (int n = 1; status == MSC_E_NOMEM; n++) {
            struct msc_agent *agent = NULL;
            int before = n_live;
            n_until_failure = n;
            status = msc_agent_open(&agent, f.config, msc_env_space(f.env), &f.goal, 1, NULL);
            bool has_failed = n_until_failure <= 0;
            n_until_failure = INT_MAX;
            assert_int_equal(status, has_failed ? MSC_E_NOMEM : MSC_OK);
            msc_agent_destroy(agent);
            assert_int_equal(n_live, before);
        }
        close_fixture(&f);
    }
}

static void test_agents_memory__toy_short_at_the_start(void **state) {
    (void)state;
    enum msc_status status = MSC_E_NOMEM;
    struct fixture f;
    const struct msc_env_host host = {0};
    open_fixture(&f, configs[0]);
    for (int n = 1; status == MSC_E_NOMEM; n++) {
        struct msc_env *env = NULL;
        int before = n_live;
        n_until_failure = n;
        status = msc_env_create(&env, msc_env_find("toy"), f.env_config, &host);
        bool has_failed = n_until_failure <= 0;
        n_until_failure = INT_MAX;
        assert_int_equal(status, has_failed ? MSC_E_NOMEM : MSC_OK);
        msc_env_destroy(env);
        assert_int_equal(n_live, before);
    }
    close_fixture(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_memory__ask_and_tell_allocate_nothing),
        cmocka_unit_test(test_agents_memory__short_at_the_start),
        cmocka_unit_test(test_agents_memory__toy_short_at_the_start),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
