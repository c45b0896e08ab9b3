// The agent `auto` as a whole: problems with a known optimum, and what the agent learns from the
// results that it observes. Optima come from the toy's own solver.
#include "agents/auto.h"
#include "env/env_toy.h"
#include "tests/agents/random_space.h"
#include "tests/agents/trace.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Optima it finds --------------------------------------------------------------------------

static void check_finds_optimum(const char *env, double limit, size_t most_trials) {
    struct trace trace;
    struct trace_run run = {.env = env,
                            .agent = "{\"type\":\"auto\"}",
                            .seed = 5,
                            .round = 8,
                            .max_trials = most_trials,
                            .tell_baselines = true};
    struct cJSON *config;
    struct msc_goal goal;
    double optimum;
    uint32_t choices[TRACE_TASKS];
    struct msc_env *toy = trace_open_env(env, &goal, &config);
    assert_ok(msc_env_toy_optimum(toy, limit, choices, &optimum));
    trace_make(&trace, &run);
    assert_true(trace.best.id >= 0);
    assert_true(fabs(trace.best.outcome.objectives[0] - optimum) <= 1e-9 * optimum);
    trace_finish(&trace);
    msc_env_destroy(toy);
    cJSON_Delete(config);
}

// If losses are additive, the agent reaches the optimum within the number of trials needed to try
// every choice by itself.
static void test_agents_auto_agent__additive_optimum(void **state) {
    (void)state;
    for (int seed = 0; seed < 5; seed++) {
        char env[200];
        snprintf(
            env, sizeof env,
            "{\"tasks\":20,\"choices\":5,\"seed\":%d,\"bounds\":{\"size_bytes\":{\"max\":1800}}}",
            seed);
        check_finds_optimum(env, 1800.0, 20 * 5 + 20);
    }
}

static void test_agents_auto_agent__interacting_optimum(void **state) {
    (void)state;
    for (int seed = 0; seed < 3; seed++) {
        char env[200];
        snprintf(env, sizeof env,
                 "{\"tasks\":10,\"choices\":3,\"interaction\":1,\"seed\":%d,"
                 "\"bounds\":{\"size_bytes\":{\"max\":600}}}",
                 seed);
        check_finds_optimum(env, 600.0, 200);
    }
}

// With more choices than its pair model handles, the agent reaches the knapsack plan soon after the
// last probe.
static void test_agents_auto_agent__optimum_of_many_choices(void **state) {
    (void)state;
    for (int seed = 0; seed < 3; seed++) {
        char env[200];
        snprintf(env, sizeof env,
                 "{\"tasks\":200,\"choices\":4,\"seed\":%d,"
                 "\"bounds\":{\"size_bytes\":{\"max\":13000}}}",
                 seed);
        check_finds_optimum(env, 13000.0, 200 * 4);
    }
}

// ---- State it keeps ---------------------------------------------------------------------------

static void run_and_look(const char *env, size_t n_trials, void (*look)(struct msc_agent *agent)) {
    struct trace trace;
    struct trace_run run = {.env = env,
                            .agent = "{\"type\":\"auto\"}",
                            .seed = 5,
                            .round = 8,
                            .max_trials = n_trials,
                            .tell_baselines = true,
                            .look = look};
    trace_make(&trace, &run);
    trace_finish(&trace);
}

static void look_for_all_points(struct msc_agent *agent) {
    const struct msc_auto *a = msc_agent_state(agent);
    const struct msc_pair_model *m = &a->parts[0].model;
    assert_int_equal(m->n_points + m->n_pending, m->n_told);
    assert_true(m->n_told > 100);
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        assert_true(isfinite(m->means[e]) && isfinite(m->terms[e]));
    }
}

// One point in five fails, including some points with a single change. The model still keeps all
// points that it has observed.
static void test_agents_auto_agent__failures(void **state) {
    (void)state;
    run_and_look("{\"tasks\":10,\"choices\":4,\"interaction\":1,\"seed\":3,\"fail_every\":5,"
                 "\"bounds\":{\"size_ratio\":{\"max\":0.07}}}",
                 200, look_for_all_points);
}

static void look_for_probes_left(struct msc_agent *agent) {
    const struct msc_auto *a = msc_agent_state(agent);
    assert_int_equal(a->n_probes_left, 0);
    assert_true(msc_auto_looks_additive(a));
}

// The agent may observe the base plan and plans with one changed choice although it did not propose
// them.
static void test_agents_auto_agent__probes_end(void **state) {
    (void)state;
    run_and_look(
        "{\"tasks\":20,\"choices\":4,\"seed\":1,\"bounds\":{\"size_bytes\":{\"max\":1400}}}", 120,
        look_for_probes_left);
}

static void tell_loss(struct msc_agent *agent, uint32_t choices[], int64_t id, double loss) {
    double metrics[MSC_MAX_METRICS];
    struct msc_trial trial = {.id = id,
                              .proposal = {.choices = choices, .parent = -1, .bound = INFINITY},
                              .outcome = {.metrics = metrics, .objectives = {loss}}};
    for (size_t i = 0; i < MSC_MAX_METRICS; i++) {
        metrics[i] = i == 0 ? loss : 0.0;
    }
    assert_ok(msc_agent_tell(agent, &trial));
}

static void ask_for_one(struct msc_agent *agent) {
    uint32_t choices[TRACE_TASKS];
    struct msc_proposal proposal = {.choices = choices};
    size_t n;
    assert_ok(msc_agent_ask(agent, &proposal, 1, &n));
    assert_int_equal(n, 1);
}

static void look_for_work(struct msc_agent *agent) {
    struct msc_auto *a = msc_agent_state(agent);
    uint32_t choices[TRACE_TASKS] = {1, 2, 2};
    ask_for_one(agent);
    uint64_t n_fitted = a->n_fitted;
    assert_true(a->has_plan && a->knapsack.work > 0);
    a->knapsack.work = 0;
    // A point with several changes says nothing about single choices.
    tell_loss(agent, choices, 100, 0.5);
    ask_for_one(agent);
    assert_true(a->n_fitted > n_fitted && a->knapsack.work == 0);
    memset(choices, 0, sizeof choices);
    choices[3] = 1;
    tell_loss(agent, choices, 101, 0.75);
    ask_for_one(agent);
    assert_true(a->knapsack.work > 0);
}

static void test_agents_auto_agent__solves_what_is_new(void **state) {
    (void)state;
    run_and_look("{\"tasks\":8,\"choices\":4,\"interaction\":1,\"seed\":1,"
                 "\"bounds\":{\"size_ratio\":{\"max\":0.07}}}",
                 16, look_for_work);
}

// With a bound on a sum of products, the work of one call of `ask` is limited. The work is the
// number of visited nodes plus the number of checked terms of bounds.
static void test_agents_auto_agent__limited_work(void **state) {
    struct random_space r;
    const struct random_space_options options = {.seed = 1,
                                                 .n_tasks = 120,
                                                 .max_choices = 4,
                                                 .n_costs = 2,
                                                 .has_products = true,
                                                 .tightness = 0.35};
    uint32_t choices[120] = {0};
    struct msc_proposal proposal = {.choices = choices};
    struct msc_agent *agent = NULL;
    uint64_t most_work = 0;
    (void)state;
    random_space_init(&r, &options);
    assert_ok(msc_agent_create(&agent, msc_agent_find("auto"), NULL, &r.space, &r.goal, 1));
    struct msc_auto *a = msc_agent_state(agent);
    for (int64_t id = 0; id < 60; id++) {
        size_t n;
        assert_ok(msc_agent_ask(agent, &proposal, 1, &n));
        tell_loss(agent, choices, id, random_space_loss(&r, choices));
        most_work = a->knapsack.work > most_work ? a->knapsack.work : most_work;
    }
    assert_int_equal(a->knapsack.bounds_work, 2 * 240);
    // The search stops at the work limit of one call of `ask`.
    assert_true(most_work >= 5000000 && most_work <= 5000000 + 2 * 240);
    msc_agent_destroy(agent);
    random_space_finish(&r);
}

// ---- What it learns ---------------------------------------------------------------------------

#define TASKS 9
#define CHOICES 3

// Tasks of equal cost, and two metrics that only an evaluation gives.
struct measured_space {
    struct msc_space space;
    struct msc_goal goal;
    struct msc_task tasks[TASKS];
    struct msc_agent *agent;
    struct msc_auto *state;
};

static void open_measured_space(struct measured_space *m, const char *agent) {
    static const uint32_t order[CHOICES] = {0, 1, 2};
    static const char *const labels[CHOICES] = {"8", "4", "2"};
    static const struct msc_metric metrics[] = {{.name = "distill_loss", .unit = "", .help = ""},
                                                {.name = "accuracy", .unit = "", .help = ""}};
    struct cJSON *config = NULL;
    memset(m, 0, sizeof *m);
    for (size_t t = 0; t < TASKS; t++) {
        m->tasks[t] = (struct msc_task){
            .name = "task", .n_choices = CHOICES, .labels = labels, .most_expensive_first = order};
    }
    m->space =
        (struct msc_space){.n_tasks = TASKS, .tasks = m->tasks, .n_metrics = 2, .metrics = metrics};
    m->goal.n_objectives = 1;
    assert_ok(msc_json_parse(&config, agent, strlen(agent), "agent"));
    assert_ok(msc_agent_create(&m->agent, msc_agent_find("auto"), config, &m->space, &m->goal, 1));
    m->state = msc_agent_state(m->agent);
    cJSON_Delete(config);
}

// Point i: the choices are the digits of i.
static void set_point(uint32_t choices[], uint32_t i) {
    for (size_t t = 0; t < TASKS; t++, i /= CHOICES) {
        choices[t] = i % CHOICES;
    }
}

// A trial eliminated early has an estimated loss and no accuracy. Neither is treated as a failure.
static void test_agents_auto_agent__raced_out_under_a_bound(void **state) {
    uint32_t choices[TASKS] = {0, 0, 1};
    double metrics[] = {0.25, NAN};
    struct measured_space m;
    (void)state;
    open_measured_space(&m, "{\"type\":\"auto\"}");
    m.goal.n_bounds = 1;
    m.goal.bounds[0] = (struct msc_bound){.metric = 1, .min = 0.5, .max = INFINITY};
    msc_agent_destroy(m.agent);
    assert_ok(msc_agent_create(&m.agent, msc_agent_find("auto"), NULL, &m.space, &m.goal, 1));
    m.state = msc_agent_state(m.agent);
    const struct msc_trial trial = {
        .id = 1,
        .proposal = {.choices = choices, .parent = -1, .bound = INFINITY},
        .outcome = {.state = MSC_TRIAL_PRUNED, .metrics = metrics, .objectives = {0.75}}};
    assert_ok(msc_agent_tell(m.agent, &trial));
    const struct msc_sensitivity *loss = &m.state->parts[0].sensitivity;
    const struct msc_sensitivity *accuracy = &m.state->parts[1].sensitivity;
    size_t entry = 2 * CHOICES + 1;
    assert_true(loss->told[entry] == 0.75 && loss->is_estimate[entry] && loss->was_asked[entry]);
    assert_true(isnan(accuracy->told[entry]));
    msc_agent_destroy(m.agent);
}

// Members are sorted from best to worst even if the population is far from full.
static void test_agents_auto_agent__best_of_few(void **state) {
    struct measured_space m;
    (void)state;
    open_measured_space(&m, "{\"type\":\"auto\",\"population\":1000}");
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t choices[TASKS];
        set_point(choices, 4 + 9 * i);
        tell_loss(m.agent, choices, i, 1.0 + (7 * i + 3) % 20);
    }
    ask_for_one(m.agent);
    for (size_t i = 0; i < 20; i++) {
        assert_true(msc_population_outcome(&m.state->members, i)->objectives[0] == 1.0 + (double)i);
    }
    msc_agent_destroy(m.agent);
}

// Every choice except the most expensive adds a loss of 1. Each pair of such choices adds `pair`.
static double loss_of(const uint32_t choices[], double pair) {
    double n = 0.0;
    for (size_t t = 0; t < TASKS; t++) {
        n += choices[t] > 0;
    }
    return n + pair * 0.5 * n * (n - 1.0);
}

static void tell_model(struct msc_pair_model *m, uint32_t first, uint32_t n, double pair) {
    static const double means[TASKS * CHOICES] = {0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1,
                                                  1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1};
    static bool known[TASKS * CHOICES];
    memset(known, 1, sizeof known);
    for (uint32_t i = first; i < first + n; i++) {
        uint32_t choices[TASKS];
        set_point(choices, 9 * i + 4);
        msc_pair_model_tell(m, choices, loss_of(choices, pair));
    }
    msc_pair_model_fit(m, 0.0, means, known);
}

// If there are more points than the agent keeps, believed points still reduce the spread of the
// next proposals.
static void test_agents_auto_agent__believes_beyond_its_points(void **state) {
    uint32_t choices[TASKS] = {2, 2, 0, 0, 0, 0, 1, 1, 2};
    struct measured_space m;
    (void)state;
    open_measured_space(&m, "{\"type\":\"auto\"}");
    struct msc_pair_model *model = &m.state->parts[0].model;
    tell_model(model, 0, 500, 0.3);
    assert_int_equal(model->n_points, model->max_points);
    assert_true(msc_pair_model_spread(model, choices, 0.0) > 0.0);
    for (uint32_t i = 0; i < MSC_PAIR_PENDING; i++) {
        set_point(choices, 17000 + 9 * i);
        msc_pair_model_believe(model, choices);
        assert_true(msc_pair_model_spread(model, choices, 0.0) < 1e-6);
    }
    msc_agent_destroy(m.agent);
}

// Even if the model is full, new points still change whether losses look additive.
static void test_agents_auto_agent__strengths_are_chosen_again(void **state) {
    struct measured_space m;
    (void)state;
    open_measured_space(&m, "{\"type\":\"auto\"}");
    struct msc_pair_model *model = &m.state->parts[0].model;
    model->max_points = 64;
    tell_model(model, 0, 64, 0.0);
    assert_true(msc_pair_model_is_additive(model));
    tell_model(model, 100, 64, -0.1); // lower values, so these points replace others
    assert_false(msc_pair_model_is_additive(model));
    msc_agent_destroy(m.agent);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_auto_agent__additive_optimum),
        cmocka_unit_test(test_agents_auto_agent__interacting_optimum),
        cmocka_unit_test(test_agents_auto_agent__optimum_of_many_choices),
        cmocka_unit_test(test_agents_auto_agent__failures),
        cmocka_unit_test(test_agents_auto_agent__probes_end),
        cmocka_unit_test(test_agents_auto_agent__solves_what_is_new),
        cmocka_unit_test(test_agents_auto_agent__limited_work),
        cmocka_unit_test(test_agents_auto_agent__raced_out_under_a_bound),
        cmocka_unit_test(test_agents_auto_agent__best_of_few),
        cmocka_unit_test(test_agents_auto_agent__believes_beyond_its_points),
        cmocka_unit_test(test_agents_auto_agent__strengths_are_chosen_again),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
