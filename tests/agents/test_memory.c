// Memory of the built-in agents: `ask` and `tell` allocate nothing, and a failed allocation in
// `create` is reported and leaks nothing.
#include "tests/agents/trace.h"

#include "tests/msc_test.h"
#include "tests/short_memory.h"
#include "tests/trial_room.h"

static const char toy[] = "{\"tasks\":12,\"choices\":4,\"interaction\":0.5,"
                          "\"bounds\":{\"size_ratio\":{\"max\":0.06}}}";
static const char *const configs[] = {
    "{\"type\":\"grid_search\"}",
    "{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
    "{\"type\":\"grid_search\",\"mode\":\"full\"}",
    "{\"type\":\"random\"}",
    "{\"type\":\"evolutionary\"}",
    "{\"type\":\"auto\"}",
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0], ROUND = 8, N_TASKS = 12 };

// Runs one round, adds the agent's own allocations to *n_made and returns the number of trials.
static size_t run_round(struct fixture *f, int64_t *id, int *n_made) {
    static struct trial_room rooms[ROUND];
    uint32_t choices[ROUND][N_TASKS];
    struct msc_proposal proposals[ROUND];
    struct msc_trial *trials[ROUND];
    size_t n;
    for (size_t i = 0; i < ROUND; i++) {
        proposals[i].choices = choices[i];
    }
    int before = n_calls;
    assert_ok(msc_agent_ask(f->agent, proposals, ROUND, &n));
    *n_made += n_calls - before;
    for (size_t i = 0; i < n; i++) {
        trials[i] = trial_make(&rooms[i], (*id)++, choices[i], N_TASKS);
        trials[i]->proposal.probe = proposals[i].probe;
    }
    const struct msc_evaluation e = {.trials = trials, .n = n};
    assert_ok(msc_env_evaluate(f->env, &f->goal, &e));
    before = n_calls;
    for (size_t i = 0; i < n; i++) {
        assert_ok(msc_agent_tell(f->agent, trials[i]));
    }
    *n_made += n_calls - before;
    return n;
}

static void test_agents_memory__ask_and_tell_allocate_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CONFIGS; i++) {
        struct fixture f;
        int64_t id = 0;
        int n_made = 0;
        open_fixture(&f, toy, configs[i]);
        int before = n_calls;
        assert_ok(msc_agent_open(&f.agent, f.config, msc_env_space(f.env), &f.goal, 1, NULL));
        assert_true(n_calls > before); // the counter works
        while (id < 400 && run_round(&f, &id, &n_made) > 0) {
            assert_int_equal(n_made, 0);
        }
        assert_true(id > 20);
        close_fixture(&f);
    }
}

// Input of the scenarios, made before allocations start to fail.
static struct fixture sample;

static enum msc_status open_agent(void) {
    struct msc_agent *agent = NULL;
    enum msc_status status =
        msc_agent_open(&agent, sample.config, msc_env_space(sample.env), &sample.goal, 1, NULL);
    msc_agent_destroy(agent);
    return status;
}

static void test_agents_memory__short_at_the_start(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CONFIGS; i++) {
        open_fixture(&sample, toy, configs[i]);
        run_failing(open_agent, 0);
        close_fixture(&sample);
    }
}

static enum msc_status open_toy(void) {
    const struct msc_env_host host = {0};
    struct msc_env *env = NULL;
    enum msc_status status = msc_env_create(&env, msc_env_find("toy"), sample.env_config, &host);
    msc_env_destroy(env);
    return status;
}

static void test_agents_memory__toy_short_at_the_start(void **state) {
    (void)state;
    open_fixture(&sample, toy, configs[0]);
    run_failing(open_toy, 0);
    close_fixture(&sample);
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
