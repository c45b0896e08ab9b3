// The wrappers around an environment's definition, tested on a definition that records how it is
// called. Expected calls and results are written by hand.
#include "env/env.h"

#include "base/json.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <math.h>
#include <string.h>

struct probe {
    int64_t limit; // the definition's only parameter

    size_t n_calls;
    size_t n_measured;
    int64_t last_id;
    bool reports;    // reports each trial by calling `finished`, the last trial first
    bool fails_late; // fails after reporting one trial
    bool stops;      // stops every trial at its bound
    bool fails;      // fails every trial, with its own reason
    double last_bound;
    const struct msc_space *space; // NULL, or a space to use instead of the probe's own
};

static const char *const labels[] = {"expensive", "cheap"};
static const uint32_t order[] = {0, 1};
static const double sizes[] = {8, 2};
static const struct msc_task tasks[] = {
    {.name = "a", .n_choices = 2, .labels = labels, .most_expensive_first = order},
    {.name = "b", .n_choices = 2, .labels = labels, .most_expensive_first = order},
};
static const struct msc_cost_factor factors[] = {
    {.task = 0, .by_choice = sizes},
    {.task = 1, .by_choice = sizes},
};
static const struct msc_cost_term terms[] = {
    {.scale = 1, .n_factors = 1, .factors = &factors[0]},
    {.scale = 1, .n_factors = 1, .factors = &factors[1]},
};
static const struct msc_cost costs[] = {{.metric = "size", .n_terms = 2, .terms = terms}};
static const struct msc_metric metrics[] = {
    {.name = "loss"},
    {.name = "size", .is_exact = true},
};
static const struct msc_space space = {
    .n_tasks = 2,
    .tasks = tasks,
    .n_metrics = 2,
    .metrics = metrics,
    .n_costs = 1,
    .costs = costs,
};
static const struct msc_goal goal = {
    .n_objectives = 1,
    .objectives = {{.metric = 0}},
    .n_bounds = 1,
    .bounds = {{.metric = 1, .min = -INFINITY, .max = 10}},
};

static enum msc_status probe_init(struct msc_env *env) {
    struct probe *probe = msc_env_state(env);
    return probe->limit == 13 ? MSC_FAIL(MSC_E_INVALID, "13 brings bad luck") : MSC_OK;
}

static const struct msc_space *probe_space(const struct msc_env *env) {
    const struct probe *probe = msc_env_state(env);
    return probe->space ? probe->space : &space;
}

static void measure(struct probe *probe, struct msc_trial *trial, double bound) {
    struct msc_outcome *outcome = &trial->outcome;
    probe->n_measured++;
    probe->last_id = trial->id;
    assert_int_equal(outcome->state, MSC_TRIAL_COMPLETE);
    assert_true(outcome->metrics[1] == msc_cost_value(costs, trial->proposal.choices));
    outcome->metrics[0] = (double)trial->id;
    outcome->state = probe->stops ? MSC_TRIAL_PRUNED : MSC_TRIAL_COMPLETE;
    probe->last_bound = bound;
    if (probe->fails) {
        outcome->state = MSC_TRIAL_FAILED;
        memset(outcome->reason, 'x', MSC_REASON_BYTES); // without a terminating NUL
        memcpy(outcome->reason, "gr\xfcn\n", 5);
    }
}

static enum msc_status probe_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    struct probe *probe = msc_env_state(env);
    probe->n_calls++;
    for (size_t i = e->n; i-- > 0;) {
        measure(probe, e->trials[i], e->bounds[i]);
        if (probe->reports) {
            e->finished(e->payload, i);
        }
        if (probe->fails_late) {
            return MSC_FAIL(MSC_E_DEVICE, "the device is gone");
        }
    }
    return MSC_OK;
}

static const struct msc_param probe_params[] = {
    {.name = "limit",
     .help = "a number",
     .offset = offsetof(struct probe, limit),
     .type = MSC_PARAM_I64,
     .number = 4,
     .min = 0,
     .max = 20},
    {0},
};

static const struct msc_env_def probe_def = {
    .abi = MSC_ENV_ABI,
    .name = "probe",
    .summary = "notes how it is called",
    .version = 1,
    .state_size = sizeof(struct probe),
    .params = probe_params,
    .init = probe_init,
    .space = probe_space,
    .evaluate = probe_evaluate,
};

static const struct msc_env_host nothing = {0};

static struct msc_env *open_probe(struct probe **probe) {
    struct msc_env *env = NULL;
    assert_ok(msc_env_create(&env, &probe_def, NULL, &nothing));
    *probe = msc_env_state(env);
    assert_int_equal((*probe)->limit, 4);
    return env;
}

struct notes {
    size_t n;
    size_t indices[8];
    struct msc_trial *trials[8];
};

static void note(void *payload, size_t index) {
    struct notes *notes = payload;
    notes->indices[notes->n++] = index;
    // A trial gets its final state before it is reported.
    const struct msc_outcome *outcome = &notes->trials[index]->outcome;
    assert_true(outcome->violation > 0.0 || outcome->objectives[0] == outcome->metrics[0]);
}

static const uint32_t expensive[] = {0, 0}; // 16 bytes: infeasible
static const uint32_t mixed[] = {0, 1};     // 10 bytes
static const uint32_t cheap[] = {1, 1};     // 4 bytes

static void test_env_env__infeasible_trials_are_not_measured(void **state) {
    (void)state;
    struct probe *probe;
    struct msc_env *env = open_probe(&probe);
    const uint32_t *const points[] = {expensive, mixed, expensive, cheap, expensive};
    struct trial_room rooms[5];
    struct notes notes = {0};
    for (int i = 0; i < 5; i++) {
        notes.trials[i] = trial_make(&rooms[i], 10 + i, points[i], 2);
    }
    notes.trials[4]->proposal.probe = true;
    const struct msc_evaluation e = {
        .trials = notes.trials, .n = 5, .finished = note, .payload = &notes};
    for (int round = 0; round < 2; round++) {
        const struct msc_outcome *outcomes[5];
        for (int i = 0; i < 5; i++) {
            outcomes[i] = &rooms[i].trial.outcome;
        }
        probe->reports = round == 1;
        notes.n = 0;
        assert_ok(msc_env_evaluate(env, &goal, &e));
        assert_int_equal(probe->n_measured, 3 * (round + 1));
        assert_int_equal(outcomes[0]->state, MSC_TRIAL_INFEASIBLE);
        assert_true(isnan(outcomes[0]->metrics[0]) && outcomes[0]->metrics[1] == 16);
        assert_float_equal(outcomes[0]->violation, 0.6, 1e-12);
        assert_int_equal(outcomes[1]->state, MSC_TRIAL_COMPLETE);
        assert_true(outcomes[1]->objectives[0] == 11 && outcomes[3]->objectives[0] == 13);
        assert_int_equal(outcomes[2]->state, MSC_TRIAL_INFEASIBLE);
        assert_int_equal(outcomes[4]->state, MSC_TRIAL_INFEASIBLE);
        assert_true(outcomes[4]->metrics[0] == 14 && outcomes[4]->objectives[0] == 14);
        const size_t in_order[] = {0, 2, 1, 3, 4};
        const size_t as_reported[] = {0, 2, 4, 3, 1};
        assert_int_equal(notes.n, 5);
        assert_memory_equal(notes.indices, round == 1 ? as_reported : in_order, sizeof in_order);
    }
    msc_env_destroy(env);
}

// A bound is passed on only if `distill_loss` is the only objective. A trial that was stopped
// although it did not exceed its bound has failed.
static void test_env_env__bounds_of_trials(void **state) {
    (void)state;
    struct msc_metric own[2] = {metrics[0], metrics[1]};
    struct msc_space own_space = space;
    struct trial_room room;
    struct probe *probe;
    struct msc_env *env = open_probe(&probe);
    struct msc_trial *trial = trial_make(&room, 12, cheap, 2);
    const struct msc_outcome *outcome = &trial->outcome;
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    trial->proposal.bound = 11.5;
    own_space.metrics = own;
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_true(isinf(probe->last_bound));
    own[0].name = "distill_loss";
    probe->space = &own_space;
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_true(probe->last_bound == 11.5);
    assert_int_equal(outcome->state, MSC_TRIAL_COMPLETE);
    probe->stops = true;
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_int_equal(outcome->state, MSC_TRIAL_PRUNED);
    assert_true(outcome->objectives[0] == 12 && outcome->violation == 0.0);
    trial->proposal.bound = 12;
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_int_equal(outcome->state, MSC_TRIAL_FAILED);
    assert_int_equal(outcome->cause, MSC_CAUSE_TRIAL);
    assert_string_equal(
        outcome->reason,
        "the environment stopped the trial at 12, expected more than its bound of 12");
    msc_env_destroy(env);
}

// Records are UTF-8 text, so a reason in any other encoding is repaired.
static void test_env_env__reasons_of_others(void **state) {
    (void)state;
    struct probe *probe;
    struct msc_env *env = open_probe(&probe);
    struct trial_room room;
    struct msc_trial *trial = trial_make(&room, 1, cheap, 2);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    probe->fails = true;
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_int_equal(trial->outcome.state, MSC_TRIAL_FAILED);
    assert_memory_equal(trial->outcome.reason, "gr\\xfcn\\nxxx", 12);
    assert_int_equal(strlen(trial->outcome.reason), MSC_REASON_BYTES - 1);
    msc_env_destroy(env);
}

static void test_env_env__nothing_left_to_measure(void **state) {
    (void)state;
    struct probe *probe;
    struct msc_env *env = open_probe(&probe);
    struct trial_room room;
    struct msc_trial *trial = trial_make(&room, 1, expensive, 2);
    struct msc_evaluation e = {.trials = &trial, .n = 1};
    assert_ok(msc_env_evaluate(env, &goal, &e));
    e.n = 0;
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_int_equal(probe->n_calls, 0);
    msc_env_destroy(env);
}

static void test_env_env__a_late_failure_keeps_what_was_reported(void **state) {
    (void)state;
    struct probe *probe;
    struct msc_env *env = open_probe(&probe);
    struct trial_room rooms[2];
    struct notes notes = {
        .trials = {trial_make(&rooms[0], 1, cheap, 2), trial_make(&rooms[1], 2, mixed, 2)}};
    const struct msc_evaluation e = {
        .trials = notes.trials, .n = 2, .finished = note, .payload = &notes};
    probe->reports = true;
    probe->fails_late = true;
    assert_int_equal(msc_env_evaluate(env, &goal, &e), MSC_E_DEVICE);
    assert_int_equal(notes.n, 1);
    assert_int_equal(notes.indices[0], 1);
    assert_true(rooms[1].trial.outcome.objectives[0] == 2);
    msc_env_destroy(env);
}

static void test_env_env__choices_out_of_range(void **state) {
    (void)state;
    struct probe *probe;
    struct msc_env *env = open_probe(&probe);
    const uint32_t wrong[] = {0, 2};
    struct trial_room room;
    struct msc_trial *trial = trial_make(&room, 3, wrong, 2);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    assert_int_equal(msc_env_evaluate(env, &goal, &e), MSC_E_INVALID);
    assert_message("trial 3: task b has no choice 2, only 2 choices");
    msc_env_destroy(env);
}

static enum msc_status create_with(const struct msc_env_def *def, const char *json) {
    struct msc_env *env = NULL;
    struct cJSON *config = NULL;
    assert_ok(msc_json_parse(&config, json, strlen(json), "config"));
    enum msc_status status = msc_env_create(&env, def, config, &nothing);
    assert_int_equal(status == MSC_OK, env != NULL);
    msc_env_destroy(env);
    cJSON_Delete(config);
    return status;
}

static void test_env_env__create_refuses(void **state) {
    (void)state;
    assert_ok(create_with(&probe_def, "{\"type\":\"probe\",\"objectives\":[],\"bounds\":{}}"));
    assert_int_equal(create_with(&probe_def, "{\"limt\":3}"), MSC_E_INVALID);
    assert_message("limit");
    assert_int_equal(create_with(&probe_def, "{\"limit\":21}"), MSC_E_INVALID);
    assert_message("env");
    assert_int_equal(create_with(&probe_def, "{\"limit\":13}"), MSC_E_INVALID);
    assert_message("bad luck");
    struct msc_env_def needy = probe_def;
    needy.needs = MSC_ENV_NEEDS_GRAPH;
    assert_int_equal(create_with(&needy, "{}"), MSC_E_INVALID);
    assert_message("environment probe needs a model");
    struct msc_env_def old = probe_def;
    old.abi = 99;
    assert_int_equal(create_with(&old, "{}"), MSC_E_UNSUPPORTED);
    assert_message("built for ABI 99");
    msc_env_destroy(NULL);
}

static void test_env_env__what_is_left_out_has_defaults(void **state) {
    (void)state;
    struct probe *probe;
    double values[MSC_MAX_METRICS];
    struct cJSON *out = NULL;
    struct msc_env *env = open_probe(&probe);
    assert_ok(msc_env_reference(env, values));
    assert_true(isnan(values[0]) && isnan(values[1]));
    assert_false(msc_env_has_edits(env));
    assert_int_equal(msc_env_edits(env, cheap, &out), MSC_E_UNSUPPORTED);
    assert_ok(msc_env_reevaluate(env, cheap, MSC_REEVALUATE_ALL, &out));
    assert_true(cJSON_IsObject(out) && cJSON_GetArraySize(out) == 0);
    cJSON_Delete(out);
    assert_ok(msc_env_save(env, &out));
    assert_true(cJSON_IsNull(out));
    assert_ok(msc_env_restore(env, out));
    cJSON_Delete(out);
    out = cJSON_CreateObject();
    assert_int_equal(msc_env_restore(env, out), MSC_E_FORMAT);
    assert_ok(msc_env_describe(env, out));
    assert_string_equal(cJSON_GetObjectItem(out, "type")->valuestring, "probe");
    assert_int_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(out, "params"), "limit")->valueint, 4);
    cJSON_Delete(out);
    msc_env_destroy(env);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_env__infeasible_trials_are_not_measured),
        cmocka_unit_test(test_env_env__bounds_of_trials),
        cmocka_unit_test(test_env_env__reasons_of_others),
        cmocka_unit_test(test_env_env__nothing_left_to_measure),
        cmocka_unit_test(test_env_env__a_late_failure_keeps_what_was_reported),
        cmocka_unit_test(test_env_env__choices_out_of_range),
        cmocka_unit_test(test_env_env__create_refuses),
        cmocka_unit_test(test_env_env__what_is_left_out_has_defaults),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
