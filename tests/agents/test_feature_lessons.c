// Tests what searches teach about features (agents/feature_lessons.h). Expected coefficients come
// from make_feature_lessons.py.
#include "agents/feature_lessons.h"

#include "agents/agent.h"
#include "agents/numbers.h"
#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

#define MOST_TASKS 24
#define CHOICES 3

// A search whose losses add up, with one bounded cost.
struct problem {
    struct msc_space space;
    struct msc_goal goal;
    struct msc_task tasks[MOST_TASKS];
    double features[MOST_TASKS][1], choice_features[MOST_TASKS][CHOICES * 2];
    struct msc_cost cost;
    struct msc_cost_term terms[MOST_TASKS];
    struct msc_cost_factor factors[MOST_TASKS];
    double losses[MOST_TASKS][CHOICES];
};

static void open_problem(struct problem *p, size_t n_tasks) {
    static const uint32_t order[CHOICES] = {0, 1, 2};
    static const char *const labels[CHOICES] = {"8", "6", "4"};
    static const char *const names[MOST_TASKS] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                  "i", "j", "k", "l", "m", "n", "o", "p",
                                                  "q", "r", "s", "t", "u", "v", "w", "x"};
    static const char *const of_choices[] = {"output_error", "other"}, *const of_tasks[] = {"kind"};
    static const struct msc_metric metrics[] = {{.name = "loss"},
                                                {.name = "size", .is_exact = true}};
    static const double sizes[CHOICES] = {8, 6, 4};
    memset(p, 0, sizeof *p);
    for (size_t t = 0; t < n_tasks; t++) {
        p->tasks[t] = (struct msc_task){.name = names[t],
                                        .n_choices = CHOICES,
                                        .labels = labels,
                                        .most_expensive_first = order,
                                        .features = p->features[t],
                                        .choice_features = p->choice_features[t]};
        p->factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = sizes};
        p->terms[t] =
            (struct msc_cost_term){.scale = 1.0, .n_factors = 1, .factors = &p->factors[t]};
    }
    p->cost = (struct msc_cost){.metric = "size", .n_terms = n_tasks, .terms = p->terms};
    p->space = (struct msc_space){.n_tasks = n_tasks,
                                  .tasks = p->tasks,
                                  .n_features = 1,
                                  .feature_names = of_tasks,
                                  .n_choice_features = 2,
                                  .choice_feature_names = of_choices,
                                  .n_metrics = 2,
                                  .metrics = metrics,
                                  .n_costs = 1,
                                  .costs = &p->cost};
    p->goal.n_objectives = p->goal.n_bounds = 1;
    p->goal.bounds[0] =
        (struct msc_bound){.metric = 1, .min = -INFINITY, .max = 5.5 * (double)n_tasks};
}

// ---- Coefficients -----------------------------------------------------------------------------

struct told {
    size_t task;
    uint32_t choice;
    double loss;
};

static void teach(struct msc_feature_lessons *lessons, struct msc_arena *arena, struct problem *p,
                  double base, const double uniform[2], const struct told told[], size_t n) {
    struct msc_feature_study study;
    uint32_t point[MOST_TASKS] = {0};
    assert_ok(msc_feature_study_open(&study, &p->space, "loss", 1.0));
    msc_feature_study_tell(&study, point, base);
    for (uint32_t c = 1; c < CHOICES; c++) {
        const uint32_t all[] = {c, c, c, c};
        msc_feature_study_tell(&study, all, uniform[c - 1]);
    }
    for (size_t i = 0; i < n; i++) {
        point[told[i].task] = told[i].choice;
        msc_feature_study_tell(&study, point, base + told[i].loss);
        point[told[i].task] = 0;
    }
    assert_ok(msc_feature_study_close(&study, lessons, arena));
}

static void set_features(struct problem *p, const double errors[4][2], const double other[4][2],
                         const double of_tasks[4]) {
    for (size_t t = 0; t < 4; t++) {
        p->features[t][0] = of_tasks[t];
        for (size_t c = 0; c < 2; c++) {
            p->choice_features[t][2 * (c + 1)] = errors[t][c];
            p->choice_features[t][2 * (c + 1) + 1] = other[t][c];
        }
    }
}

static double number_of(const cJSON *lesson, const char *key) {
    return msc_json_get(lesson, key)->valuedouble;
}

static void teach_both(struct msc_feature_lessons *lessons, struct msc_arena *arena) {
    struct problem p;
    open_problem(&p, 4);
    set_features(&p, (const double[][2]){{1, 8}, {2, 4}, {4, 32}, {.5, 16}},
                 (const double[][2]){{1, 1.5}, {1.25, 1}, {NAN, NAN}, {1.75, 1.5}},
                 (const double[]){1, 1.5, 1, 1.25});
    const struct told first[] = {{0, 2, 1.0}, {1, 2, 3.0}, {2, 1, 0.25}};
    teach(lessons, arena, &p, 0.5, (const double[]){2.5, 8.5}, first, 3);
    set_features(&p, (const double[][2]){{3, 9}, {1, 5}, {2, 40}, {6, 7}},
                 (const double[][2]){{1, 1.5}, {1.25, 1}, {1.5, 1.25}, {1.75, 1.5}},
                 (const double[]){1.5, 1, 1.25, 1.75});
    const struct told second[] = {{0, 1, 0.5}, {0, 2, 1.5}, {1, 1, 0.125}, {3, 2, 2.0}};
    teach(lessons, arena, &p, 2.0, (const double[]){3.0, 6.0}, second, 4);
}

static void test_agents_feature_lessons__coefficients(void **state) {
    static const struct {
        const char *feature, *of;
        double mean, variance;
    } expected[] = {{"output_error", "choice", 0.193157447495, 0.155562420246},
                    {"other", "choice", -0.437585774212, 1.6002257288},
                    {"kind", "task", 1.8842603853, 0.992340352628}};
    static struct msc_feature_lessons lessons;
    struct msc_arena arena = {0};
    cJSON *object = NULL;
    (void)state;
    teach_both(&lessons, &arena);
    assert_int_equal(lessons.n_losses, 7);
    assert_ok(msc_feature_lessons_write(&object, &lessons, "loss"));
    const cJSON *list = msc_json_get(object, "features");
    assert_int_equal(cJSON_GetArraySize(list), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *lesson = cJSON_GetArrayItem(list, i);
        assert_string_equal(msc_json_text_of(lesson, "feature"), expected[i].feature);
        assert_string_equal(msc_json_text_of(lesson, "of"), expected[i].of);
        assert_true(cJSON_IsTrue(msc_json_get(lesson, "log")) == (i == 0));
        assert_true(fabs(number_of(lesson, "mean") - expected[i].mean) < 1e-9);
        assert_true(fabs(number_of(lesson, "variance") - expected[i].variance) < 1e-9);
    }
    cJSON_Delete(object);
    msc_arena_finish(&arena);
}

// ---- Use --------------------------------------------------------------------------------------

static enum msc_status use(const char *text, const char *metric) {
    struct problem p;
    struct msc_feature_study study;
    cJSON *object = NULL;
    open_problem(&p, 4);
    set_features(&p, (const double[][2]){{1, 8}, {2, 4}, {4, 32}, {.5, 16}},
                 (const double[][2]){{1, 1.5}, {1.25, 1}, {1, 1}, {1.75, 1.5}},
                 (const double[]){1, 2, 1, 2});
    assert_ok(msc_json_parse(&object, text, strlen(text), "test"));
    assert_ok(msc_feature_study_open(&study, &p.space, "loss", 1.0));
    double deviation = study.prior.kinds[2].deviation;
    assert_true(deviation == 0.5); // of 1, 2, 1, 2
    enum msc_status status = msc_feature_lessons_use(object, &study.prior, metric);
    bool is_used = study.prior.variances[2] < 1.0;
    if (status == MSC_OK && is_used) {
        assert_true(fabs(study.prior.expected[2] - 3.0 * deviation) < 1e-12);
        assert_true(study.prior.variances[2] > 0.04 * deviation * deviation);
        assert_true(study.prior.variances[0] == 1.0);
    }
    assert_true(status != MSC_OK || is_used == (strcmp(metric, "loss") == 0));
    assert_ok(msc_feature_study_close(&study, NULL, NULL));
    cJSON_Delete(object);
    return status;
}

#define LESSON(members)                                                                            \
    "{\"metric\":\"loss\",\"features\":[{\"feature\":\"kind\",\"of\":\"task\"," members "}]}"

static void test_agents_feature_lessons__used(void **state) {
    (void)state;
    assert_ok(use(LESSON("\"log\":false,\"mean\":3,\"variance\":0.04"), "loss"));
    assert_ok(use(LESSON("\"log\":false,\"mean\":3,\"variance\":0.04"), "accuracy"));
    assert_int_equal(use(LESSON("\"log\":false,\"mean\":3"), "loss"), MSC_E_FORMAT);
    assert_int_equal(use(LESSON("\"log\":false,\"mean\":3,\"variance\":-1"), "loss"), MSC_E_FORMAT);
    assert_int_equal(use("{\"metric\":\"loss\"}", "loss"), MSC_E_FORMAT);
}

// ---- Gain -------------------------------------------------------------------------------------

// Tasks of kind 1 lose much less than others, and the error says less of losses than it seems to.
static void fill_network(struct problem *p, size_t n_tasks, uint64_t seed) {
    struct msc_rng rng;
    open_problem(p, n_tasks);
    msc_rng_seed(&rng, seed, 1);
    for (size_t t = 0; t < n_tasks; t++) {
        double scale = msc_agent_exp(0.2 * msc_agent_normal(&rng));
        p->features[t][0] = (double)msc_rng_below(&rng, 2);
        for (size_t c = 1; c < CHOICES; c++) {
            double error = (double)c + msc_agent_normal(&rng);
            p->choice_features[t][2 * c] = msc_agent_exp(error);
            p->choice_features[t][2 * c + 1] = msc_rng_double(&rng);
            p->losses[t][c] =
                scale * msc_agent_exp((double)(2 * c) + 0.3 * error - 3.0 * p->features[t][0]);
        }
    }
}

static double loss_of(const struct problem *p, const uint32_t choices[]) {
    double sum = 1.0;
    for (size_t t = 0; t < p->space.n_tasks; t++) {
        sum += p->losses[t][choices[t]];
    }
    return sum;
}

static void tell(struct msc_agent *agent, const struct problem *p, struct msc_trial *trial) {
    msc_trial_begin(trial, &p->space);
    trial->outcome.metrics[0] = loss_of(p, trial->proposal.choices);
    msc_goal_judge(&p->goal, &p->space, &trial->outcome);
    assert_ok(msc_agent_tell(agent, trial));
}

// The best loss after a number of proposals of `auto`.
static double search(const struct problem *p, const cJSON *lessons, uint64_t seed, int n_trials) {
    const struct msc_agent_host host = {.lessons = lessons};
    struct msc_arena arena = {0};
    struct msc_agent *agent;
    struct msc_trial trial;
    double best = INFINITY;
    cJSON *config = cJSON_CreateObject();
    assert_ok(msc_json_add_text(config, "type", "auto"));
    assert_ok(msc_trial_init(&trial, &arena, &p->space));
    assert_ok(msc_agent_open(&agent, config, &p->space, &p->goal, seed, &host));
    for (uint32_t c = 0; c < CHOICES; c++, trial.id++) {
        for (size_t t = 0; t < p->space.n_tasks; t++) {
            trial.proposal.choices[t] = c;
        }
        tell(agent, p, &trial);
    }
    for (int i = 0; i < n_trials; i++, trial.id++) {
        size_t n = 0;
        assert_ok(msc_agent_ask(agent, &trial.proposal, 1, &n));
        assert_int_equal(n, 1);
        tell(agent, p, &trial);
        best = trial.outcome.state == MSC_TRIAL_COMPLETE ? fmin(best, trial.outcome.objectives[0])
                                                         : best;
    }
    msc_agent_destroy(agent);
    msc_arena_finish(&arena);
    cJSON_Delete(config);
    return best;
}

// Lessons of one network make the first plans of another one better.
static void test_agents_feature_lessons__gain(void **state) {
    double ratio = 0.0;
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        static struct msc_feature_lessons lessons;
        struct problem first, second;
        struct msc_feature_study study;
        struct msc_arena arena = {0};
        uint32_t point[MOST_TASKS] = {0};
        cJSON *object = NULL;
        memset(&lessons, 0, sizeof lessons);
        fill_network(&first, 16, 2 * seed);
        fill_network(&second, MOST_TASKS, 2 * seed + 1);
        assert_ok(msc_feature_study_open(&study, &first.space, "loss", 1.0));
        msc_feature_study_tell(&study, point, loss_of(&first, point));
        for (size_t t = 0; t < 16; t++) {
            for (point[t] = 1; point[t] < CHOICES; point[t]++) {
                msc_feature_study_tell(&study, point, loss_of(&first, point));
            }
            point[t] = 0;
        }
        assert_ok(msc_feature_study_close(&study, &lessons, &arena));
        assert_ok(msc_feature_lessons_write(&object, &lessons, "loss"));
        ratio += log(search(&second, object, seed, 8) / search(&second, NULL, seed, 8)) / 5.0;
        cJSON_Delete(object);
        msc_arena_finish(&arena);
    }
    print_message("loss after 8 trials, relative to that without lessons: %.3f\n", exp(ratio));
    assert_true(exp(ratio) < 0.8);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_feature_lessons__coefficients),
        cmocka_unit_test(test_agents_feature_lessons__used),
        cmocka_unit_test(test_agents_feature_lessons__gain),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
