// Requirements on every environment. Environments that need no model are tested here; all
// environments in the registry are included automatically.
#include "env/env.h"

#include "base/json.h"
#include "base/rng.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <math.h>

static const struct msc_env_host host = {.folder = MSC_TESTS_FOLDER "/env/files"};

// Configurations of environments that need more than defaults.
static const struct {
    const char *name, *json;
} configs[] = {
    {"placement", "{\"file\":\"placement.json\"}"},
    {"table", "{\"file\":\"table.json\"}"},
#ifdef MSC_PYTHON
    {"process",
     "{\"command\":[\"" MSC_PYTHON "\",\"-S\",\"" MSC_EXAMPLES "/environments/filter_bits.py\"]}"},
#endif
};

static bool can_run(const struct msc_env_def *def) {
#ifndef MSC_PYTHON
    if (strcmp(def->name, "process") == 0) {
        print_message("skipped: environment process: there is no Python\n");
        return false;
    }
#endif
    return def->needs == 0;
}

static cJSON *find_config(const struct msc_env_def *def) {
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        if (strcmp(configs[i].name, def->name) == 0) {
            return cJSON_Parse(configs[i].json);
        }
    }
    return NULL;
}

static struct msc_env *create(const struct msc_env_def *def) {
    struct msc_env *env = NULL;
    cJSON *config = find_config(def);
    assert_ok(msc_env_create(&env, def, config, &host));
    return env;
}

static void destroy(struct msc_env *env) {
    cJSON *config = (cJSON *)msc_env_config(env);
    msc_env_destroy(env);
    cJSON_Delete(config);
}

static void for_each(void (*check)(const struct msc_env_def *def)) {
    const struct msc_env_def *const *list = msc_env_list();
    for (size_t i = 0; list[i]; i++) {
        if (can_run(list[i])) {
            check(list[i]);
        }
    }
}

static void check_definition(const struct msc_env_def *def) {
    assert_int_equal(def->abi, MSC_ENV_ABI);
    assert_true(def->version >= 1);
    assert_true(def->summary[0] != '\0');
    assert_ptr_equal(msc_env_find(def->name), def);
}

static void test_env_conformance__definitions(void **state) {
    (void)state;
    for (const struct msc_env_def *const *def = msc_env_list(); *def; def++) {
        check_definition(*def);
    }
    assert_null(msc_env_find("nothing of that name"));
}

enum { N_TRIALS = 24, MOST_TASKS = 256 };

struct batch {
    struct trial_room rooms[N_TRIALS];
    struct msc_trial *trials[N_TRIALS];
};

static void draw(struct batch *batch, const struct msc_space *space, uint64_t seed) {
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 3);
    assert_true(space->n_tasks <= MOST_TASKS);
    for (size_t i = 0; i < N_TRIALS; i++) {
        uint32_t choices[MOST_TASKS];
        for (size_t t = 0; t < space->n_tasks; t++) {
            choices[t] = (uint32_t)msc_rng_below(&rng, space->tasks[t].n_choices);
        }
        batch->trials[i] = trial_make(&batch->rooms[i], (int64_t)i, choices, space->n_tasks);
    }
}

static void assert_equal_bits(const struct msc_space *space, const struct msc_outcome *a,
                              const struct msc_outcome *b) {
    assert_int_equal(a->state, b->state);
    assert_memory_equal(a->metrics, b->metrics, space->n_metrics * sizeof a->metrics[0]);
}

// Outcomes depend only on the choices, not on other trials of the round, their order or earlier
// rounds.
static void check_determinism(const struct msc_env_def *def) {
    static struct batch together;
    static struct batch alone;
    struct msc_env *env = create(def);
    struct msc_env *other = create(def);
    const struct msc_space *space = msc_env_space(env);
    struct msc_goal goal;
    assert_ok(msc_env_read_goal(&goal, space, NULL));
    draw(&together, space, 1);
    draw(&alone, space, 1);
    const struct msc_evaluation e = {.trials = together.trials, .n = N_TRIALS};
    assert_ok(msc_env_evaluate(env, &goal, &e));
    for (size_t i = N_TRIALS; i-- > 0;) {
        const struct msc_evaluation single = {.trials = &alone.trials[i], .n = 1};
        const struct msc_outcome *outcome = &together.trials[i]->outcome;
        assert_ok(msc_env_evaluate(other, &goal, &single));
        assert_equal_bits(space, outcome, &alone.trials[i]->outcome);
        for (size_t k = 0; k < space->n_costs; k++) {
            int metric = msc_space_find_metric(space, space->costs[k].metric);
            assert_true(outcome->metrics[metric] ==
                        msc_cost_value(&space->costs[k], together.rooms[i].choices));
        }
    }
    destroy(env);
    destroy(other);
}

static void test_env_conformance__outcomes_depend_on_choices_alone(void **state) {
    (void)state;
    for_each(check_determinism);
}

static void check_identity(const struct msc_env_def *def) {
    struct msc_env *env = create(def);
    struct msc_env *other = create(def);
    struct msc_hash a, b;
    assert_ok(msc_env_identity(&a, env));
    assert_ok(msc_env_identity(&b, other));
    assert_true(msc_hash_equal(a, b));
    assert_true(
        msc_hash_equal(msc_space_hash(msc_env_space(env)), msc_space_hash(msc_env_space(other))));
    destroy(env);
    destroy(other);
}

static void test_env_conformance__equal_configs_are_one(void **state) {
    (void)state;
    for_each(check_identity);
}

static void check_space(const struct msc_env_def *def) {
    struct msc_env *env = create(def);
    const struct msc_space *space = msc_env_space(env);
    double reference[MSC_MAX_METRICS];
    assert_ok(msc_space_check(space));
    assert_ok(msc_env_reference(env, reference));
    // Checks the order of choices: no cost may be lower for the most expensive plan than for the
    // cheapest.
    for (size_t k = 0; k < space->n_costs; k++) {
        uint32_t expensive[MOST_TASKS];
        uint32_t cheap[MOST_TASKS];
        for (size_t t = 0; t < space->n_tasks; t++) {
            const struct msc_task *task = &space->tasks[t];
            expensive[t] = task->most_expensive_first[0];
            cheap[t] = task->most_expensive_first[task->n_choices - 1];
        }
        assert_true(msc_cost_value(&space->costs[k], expensive) >=
                    msc_cost_value(&space->costs[k], cheap));
    }
    destroy(env);
}

static void test_env_conformance__spaces_are_sound(void **state) {
    (void)state;
    for_each(check_space);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_conformance__definitions),
        cmocka_unit_test(test_env_conformance__outcomes_depend_on_choices_alone),
        cmocka_unit_test(test_env_conformance__equal_configs_are_one),
        cmocka_unit_test(test_env_conformance__spaces_are_sound),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
