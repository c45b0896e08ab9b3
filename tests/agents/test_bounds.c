// Bounded search is exact. With and without bounds on the loss of trials, agents propose the same
// points in the same order and find the same best trial. Spaces are random. Costs are sums or
// products, and losses have many ties or none. Batches have uneven weights, and some goals also
// bound a measured metric.
#include "agents/agent.h"
#include "tests/agents/random_space.h"

#include "base/hash.h"
#include "base/json.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCHES = 5, MAX_TASKS = 8, MAX_TRIALS = 4000, MAX_METRICS = 5 };

struct problem {
    struct random_space r;
    struct msc_metric metrics[MAX_METRICS];
    int measured; // index of the metric "drift", which has a bound, too; -1: none
    uint64_t seed;
    uint32_t n_levels; // batch losses are multiples of 1 / n_levels; 0: not rounded
    bool tells_baselines;
};

struct line {
    uint32_t choices[MAX_TASKS];
    double bound;
    enum msc_trial_state state;
    int64_t best_id; // id of the best trial after this trial ended
};

struct run {
    struct line lines[MAX_TRIALS];
    size_t n;
    size_t n_pruned;
    size_t n_batches; // number of evaluated batches
    bool is_over;
    struct msc_trial best; // the best trial; id -1: none so far
    double best_metrics[MSC_MAX_METRICS];
};

static void problem_init(struct problem *p, uint64_t seed) {
    struct msc_rng rng;
    memset(p, 0, sizeof *p);
    msc_rng_seed(&rng, seed, 77);
    p->seed = seed;
    p->n_levels = msc_rng_below(&rng, 2) == 0 ? 0 : 1 + (uint32_t)msc_rng_below(&rng, 6);
    p->tells_baselines = msc_rng_below(&rng, 4) > 0;
    struct random_space_options o = {
        .seed = seed,
        .n_tasks = 2 + msc_rng_below(&rng, MAX_TASKS - 2),
        .max_choices = 4,
        .n_costs = msc_rng_below(&rng, 3),
        .has_products = msc_rng_below(&rng, 2) == 0,
        .tightness = 0.2 + 0.6 * msc_rng_double(&rng),
    };
    random_space_init(&p->r, &o);
    memcpy(p->metrics, p->r.space.metrics, p->r.space.n_metrics * sizeof p->metrics[0]);
    p->metrics[0].name = "distill_loss";
    p->measured = -1;
    if (msc_rng_below(&rng, 4) == 0) {
        p->measured = (int)p->r.space.n_metrics++;
        p->metrics[p->measured] = (struct msc_metric){.name = "drift", .unit = ""};
        p->r.goal.bounds[p->r.goal.n_bounds++] =
            (struct msc_bound){.metric = p->measured, .min = -INFINITY, .max = 0.7};
    }
    p->r.space.metrics = p->metrics;
}

// A number in [0, 1) determined by the point, `what` and the seed.
static double draw(const struct problem *p, const uint32_t choices[], uint64_t what) {
    struct msc_hash h = msc_hash_bytes(choices, p->r.space.n_tasks * sizeof *choices);
    h = msc_hash_add_u64(msc_hash_add_u64(h, p->seed), what);
    return (double)(h.low >> 11) * 0x1p-53;
}

// A batch's loss: the sum of the choices' losses times a random factor, rounded to few levels if
// ties are wanted.
static double batch_loss(const struct problem *p, const uint32_t choices[], uint64_t batch) {
    double loss = (0.1 + draw(p, choices, batch)) * random_space_loss(&p->r, choices);
    return p->n_levels > 0 ? floor(loss * p->n_levels) / p->n_levels : loss;
}

static void evaluate(const struct problem *p, struct msc_trial *trial, size_t *n_batches) {
    const struct msc_space *space = &p->r.space;
    const struct msc_proposal *proposal = &trial->proposal;
    struct msc_outcome *outcome = &trial->outcome;
    double loss = 0.0;
    msc_trial_begin(trial, space);
    if (!proposal->probe && msc_goal_violation(&p->r.goal, outcome->metrics) > 0.0) {
        outcome->state = MSC_TRIAL_INFEASIBLE;
        msc_goal_judge(&p->r.goal, space, outcome);
        return;
    }
    for (uint64_t b = 0; b < BATCHES && outcome->state == MSC_TRIAL_COMPLETE; b++) {
        loss += batch_loss(p, proposal->choices, b);
        outcome->metrics[0] = loss / BATCHES;
        outcome->state =
            outcome->metrics[0] > proposal->bound ? MSC_TRIAL_PRUNED : MSC_TRIAL_COMPLETE;
        (*n_batches)++;
    }
    if (p->measured >= 0 && outcome->state == MSC_TRIAL_COMPLETE) {
        outcome->metrics[p->measured] = draw(p, proposal->choices, 1000);
    }
    msc_goal_judge(&p->r.goal, space, outcome);
}

static void add_line(struct run *run, const struct problem *p, struct msc_agent *agent,
                     const struct msc_trial *trial) {
    enum msc_trial_state state = trial->outcome.state;
    bool may_win = state == MSC_TRIAL_COMPLETE || state == MSC_TRIAL_INFEASIBLE;
    if (may_win && (run->best.id < 0 || msc_trial_compare(trial, &run->best) < 0)) {
        run->best = *trial;
        memcpy(run->best_metrics, trial->outcome.metrics, sizeof run->best_metrics);
    }
    struct line *line = &run->lines[trial->id];
    memcpy(line->choices, trial->proposal.choices, p->r.space.n_tasks * sizeof *line->choices);
    line->bound = trial->proposal.bound;
    line->state = state;
    line->best_id = run->best.id;
    run->n_pruned += state == MSC_TRIAL_PRUNED;
    assert_ok(msc_agent_tell(agent, trial));
}

// Tells the agent the uniform plans. Plan n takes the n-th most expensive choice of every task.
static void tell_baselines(struct run *run, const struct problem *p, struct msc_agent *agent) {
    for (uint32_t n = 0; n < 4; n++) {
        uint32_t choices[MAX_TASKS] = {0};
        for (size_t t = 0; t < p->r.space.n_tasks; t++) {
            const struct msc_task *task = &p->r.space.tasks[t];
            choices[t] = task->most_expensive_first[n < task->n_choices ? n : task->n_choices - 1];
        }
        struct trial_room room;
        struct msc_trial *trial = trial_make(&room, (int64_t)run->n++, choices, MAX_TASKS);
        trial->proposal.probe = true;
        evaluate(p, trial, &run->n_batches);
        add_line(run, p, agent, trial);
    }
}

static void search(struct run *run, const struct problem *p, const char *config, size_t round) {
    static uint32_t choices[64][MAX_TASKS];
    static struct trial_room rooms[64];
    struct msc_proposal proposals[64];
    struct msc_agent *agent = NULL;
    struct cJSON *json = NULL;
    size_t n = 1;
    memset(run, 0, sizeof *run);
    run->best.id = -1;
    assert_ok(msc_json_parse(&json, config, strlen(config), "agent"));
    assert_ok(msc_agent_open(&agent, json, &p->r.space, &p->r.goal, p->seed, NULL));
    if (p->tells_baselines) {
        tell_baselines(run, p, agent);
    }
    while (n > 0 && !msc_agent_is_done(agent) && run->n + round <= MAX_TRIALS) {
        for (size_t i = 0; i < round; i++) {
            proposals[i].choices = choices[i];
        }
        assert_ok(msc_agent_ask(agent, proposals, round, &n));
        for (size_t i = 0; i < n; i++) {
            struct msc_trial *trial =
                trial_make(&rooms[i], (int64_t)run->n++, choices[i], MAX_TASKS);
            trial->proposal.parent = proposals[i].parent;
            trial->proposal.bound = proposals[i].bound;
            trial->proposal.probe = proposals[i].probe;
            assert_true(trial->proposal.parent < (int64_t)(run->n - i));
            evaluate(p, trial, &run->n_batches);
        }
        for (size_t i = 0; i < n; i++) {
            add_line(run, p, agent, &rooms[i].trial);
        }
    }
    run->is_over = n == 0 || msc_agent_is_done(agent);
    msc_agent_destroy(agent);
    cJSON_Delete(json);
}

// The runs may differ only in bounds and in the states of stopped trials.
static void assert_equal_runs(const struct run *with, const struct run *without) {
    assert_int_equal(with->n, without->n);
    assert_int_equal(with->is_over, without->is_over);
    assert_int_equal(without->n_pruned, 0);
    for (size_t i = 0; i < with->n; i++) {
        assert_memory_equal(with->lines[i].choices, without->lines[i].choices,
                            sizeof with->lines[i].choices);
        assert_true(with->lines[i].state == MSC_TRIAL_PRUNED ||
                    with->lines[i].state == without->lines[i].state);
        assert_true(isinf(without->lines[i].bound));
        assert_int_equal(with->lines[i].best_id, without->lines[i].best_id);
    }
    assert_int_equal(with->best.id, without->best.id);
    assert_int_equal(with->best.outcome.state, without->best.outcome.state);
    assert_true(with->best.outcome.violation == without->best.outcome.violation);
    assert_memory_equal(with->best.outcome.objectives, without->best.outcome.objectives,
                        sizeof with->best.outcome.objectives);
    assert_memory_equal(with->best_metrics, without->best_metrics, sizeof with->best_metrics);
}

struct totals {
    size_t n_pruned;
    size_t n_batches[2]; // of the runs without and with bounds
};

static struct totals compare_runs(const char *params, bool has_ties, size_t n_seeds) {
    static const size_t rounds[] = {1, 4, 9, 64};
    static struct run runs[2];
    struct totals totals = {0};
    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        struct problem p;
        problem_init(&p, seed);
        p.n_levels = has_ties ? p.n_levels : 0;
        for (int bounded = 0; bounded < 2; bounded++) {
            char config[200];
            snprintf(config, sizeof config, "{%s,\"bounded\":%s}", params,
                     bounded ? "true" : "false");
            search(&runs[bounded], &p, config, rounds[seed % 4]);
            totals.n_batches[bounded] += runs[bounded].n_batches;
        }
        assert_equal_runs(&runs[1], &runs[0]);
        totals.n_pruned += runs[1].n_pruned;
        random_space_finish(&p.r);
    }
    print_message("  %s: %zu stopped, %zu of %zu batches\n", params, totals.n_pruned,
                  totals.n_batches[1], totals.n_batches[0]);
    return totals;
}

static void expect_exact(const char *params, bool has_ties, size_t n_seeds) {
    struct totals totals = compare_runs(params, has_ties, n_seeds);
    assert_true(totals.n_pruned > n_seeds / 2);
    assert_true(totals.n_batches[1] < totals.n_batches[0]);
}

static void test_agents_bounds__greedy_is_exact(void **state) {
    (void)state;
    expect_exact("\"type\":\"grid_search\",\"mode\":\"greedy\"", true, 1500);
    expect_exact("\"type\":\"grid_search\",\"mode\":\"greedy\",\"changes\":\"all\"", true, 500);
}

static void test_agents_bounds__per_task_is_exact(void **state) {
    (void)state;
    expect_exact("\"type\":\"grid_search\"", true, 1500);
}

static void test_agents_bounds__full_is_exact(void **state) {
    (void)state;
    expect_exact("\"type\":\"grid_search\",\"mode\":\"full\"", true, 100);
}

static void test_agents_bounds__evolutionary_is_exact_without_ties(void **state) {
    (void)state;
    expect_exact("\"type\":\"evolutionary\",\"population\":6", false, 100);
}

// Agents set no bounds if the objective is another metric or there are several objectives.
static void test_agents_bounds__none_for_other_goals(void **state) {
    (void)state;
    static const char *const configs[] = {"{\"type\":\"grid_search\",\"mode\":\"greedy\"}",
                                          "{\"type\":\"grid_search\"}",
                                          "{\"type\":\"grid_search\",\"mode\":\"full\"}",
                                          "{\"type\":\"evolutionary\",\"bounded\":true}"};
    static struct run run;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct problem p;
        problem_init(&p, seed);
        if (seed % 2 == 0) {
            p.metrics[0].name = "loss";
        } else {
            p.r.goal.n_objectives = 2;
            p.r.goal.objectives[1] = (struct msc_objective){.metric = 0};
        }
        search(&run, &p, configs[seed / 2 % 4], 8);
        for (size_t i = 0; i < run.n; i++) {
            assert_true(isinf(run.lines[i].bound));
        }
        random_space_finish(&p.r);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_bounds__greedy_is_exact),
        cmocka_unit_test(test_agents_bounds__per_task_is_exact),
        cmocka_unit_test(test_agents_bounds__full_is_exact),
        cmocka_unit_test(test_agents_bounds__evolutionary_is_exact_without_ties),
        cmocka_unit_test(test_agents_bounds__none_for_other_goals),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
