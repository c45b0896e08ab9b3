// Tests the rules of `mscgym check`. Each fault of an environment must break its own rule, with the
// message expected here. The built-in environments and agents must break no rule. The faulty
// environments are the built-in "toy" with one function replaced.
#include "checks/check.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <string.h>

// The environment that the checked subject opens: the toy with one function replaced.
static struct msc_env_def faulty;
static size_t n_evaluated;

static const struct msc_env_def *toy(void) {
    return msc_env_find("toy");
}

static enum msc_status open_faulty(void *payload, struct msc_env **out) {
    const struct msc_env_host host = {.n_threads = 1};
    (void)payload;
    return msc_env_create(out, &faulty, NULL, &host);
}

static void close_faulty(void *payload, struct msc_env *env) {
    (void)payload;
    msc_env_destroy(env);
}

static enum msc_status refuse_init(struct msc_env *env) {
    (void)env;
    return MSC_FAIL(MSC_E_INVALID, "it does not want to");
}

static enum msc_status by_company(struct msc_env *env, const struct msc_evaluation *e) {
    MSC_TRY(toy()->evaluate(env, e));
    for (size_t i = 0; i < e->n; i++) {
        e->trials[i]->outcome.metrics[0] *= 1.0 + 1e-15 * (double)e->n;
    }
    return MSC_OK;
}

static enum msc_status by_history(struct msc_env *env, const struct msc_evaluation *e) {
    MSC_TRY(toy()->evaluate(env, e));
    for (size_t i = 0; i < e->n; i++) {
        e->trials[i]->outcome.metrics[0] += 1e-6 * (double)n_evaluated++;
    }
    return MSC_OK;
}

static enum msc_status other_costs(struct msc_env *env, const struct msc_evaluation *e) {
    MSC_TRY(toy()->evaluate(env, e));
    for (size_t i = 0; i < e->n; i++) {
        e->trials[i]->outcome.metrics[1] += 1.0;
    }
    return MSC_OK;
}

static enum msc_status never(struct msc_env *env, const struct msc_evaluation *e) {
    (void)env;
    for (size_t i = 0; i < e->n; i++) {
        msc_outcome_fail(&e->trials[i]->outcome, MSC_CAUSE_TRIAL, "it is Monday");
    }
    return MSC_OK;
}

// Stops a trial at half of its bound.
static enum msc_status too_soon(struct msc_env *env, const struct msc_evaluation *e) {
    MSC_TRY(toy()->evaluate(env, e));
    for (size_t i = 0; i < e->n; i++) {
        struct msc_outcome *outcome = &e->trials[i]->outcome;
        if (outcome->state == MSC_TRIAL_COMPLETE && outcome->metrics[0] > e->bounds[i] / 2) {
            outcome->metrics[0] = e->bounds[i] * 1.001;
            msc_outcome_prune(outcome, "enough of it");
        }
    }
    return MSC_OK;
}

static struct msc_hash new_identity(const struct msc_env *env) {
    (void)env;
    return (struct msc_hash){.low = ++n_evaluated};
}

static const struct msc_space *cheapest_first(const struct msc_env *env) {
    static const uint32_t order[] = {3, 2, 1, 0};
    static struct msc_task tasks[12]; // the toy has 12 tasks
    static struct msc_space space;
    space = *toy()->space(env);
    for (size_t t = 0; t < space.n_tasks; t++) {
        tasks[t] = space.tasks[t];
        tasks[t].most_expensive_first = order;
    }
    space.tasks = tasks;
    return &space;
}

static const struct msc_space *latin_1(const struct msc_env *env) {
    static struct msc_task tasks[12];
    static struct msc_space space;
    space = *toy()->space(env);
    memcpy(tasks, space.tasks, space.n_tasks * sizeof tasks[0]);
    tasks[3].name = "gr\xf6\xdf"
                    "e";
    space.tasks = tasks;
    return &space;
}

static enum msc_status save_something(const struct msc_env *env, struct cJSON **out) {
    (void)env;
    *out = cJSON_CreateNumber(1);
    return MSC_OK;
}

static enum msc_status edit_nothing(struct msc_env *env, const uint32_t choices[],
                                    struct cJSON **out) {
    (void)env;
    (void)choices;
    *out = cJSON_CreateNull();
    return MSC_OK;
}

// Returns the name of the first rule that the subject breaks, or NULL.
static const char *first_broken(const struct msc_check_rule rules[], const void *subject) {
    for (const struct msc_check_rule *rule = rules; rule->name; rule++) {
        if (rule->check(subject) != MSC_OK) {
            return rule->name;
        }
    }
    return NULL;
}

static void test_search_check__finds_faults_of_environments(void **state) {
    (void)state;
    const struct {
        const char *rule, *message;
        struct msc_env_def with;
    } rows[] = {
        {"init", "it does not want to", {.init = refuse_init}},
        {"space", "less than the plan of all cheapest", {.space = cheapest_first}},
        {"init", "is not UTF-8", {.space = latin_1}},
        {"identity", "another identity", {.identity = new_identity}},
        {"choices", "by itself", {.evaluate = by_company}},
        {"choices", "with others", {.evaluate = by_history}},
        {"outcomes", "the space's costs give", {.evaluate = other_costs}},
        {"outcomes", "it is Monday", {.evaluate = never}},
        {"bounds", "is stopped at its bound", {.evaluate = too_soon}},
        {"state", "has no state to restore", {.save = save_something}},
        {"edits", "not a JSON object", {.edits = edit_nothing}},
    };
    const struct msc_check_env subject = {.open = open_faulty, .close = close_faulty};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct msc_env_def *with = &rows[i].with;
        faulty = *toy();
        faulty.init = with->init ? with->init : faulty.init;
        faulty.space = with->space ? with->space : faulty.space;
        faulty.identity = with->identity ? with->identity : faulty.identity;
        faulty.evaluate = with->evaluate ? with->evaluate : faulty.evaluate;
        faulty.save = with->save ? with->save : faulty.save;
        faulty.edits = with->edits ? with->edits : faulty.edits;
        const char *broken = first_broken(msc_check_env_rules, &subject);
        assert_non_null(broken);
        assert_string_equal(broken, rows[i].rule);
        if (!strstr(msc_status_message(), rows[i].message)) {
            fail_msg("\"%s\" is not in: %s", rows[i].message, msc_status_message());
        }
    }
    faulty = *toy();
    assert_null(first_broken(msc_check_env_rules, &subject));
}

// All built-in environments that need no options keep the rules. The others are skipped.
static void test_search_check__environments_pass(void **state) {
    (void)state;
    const struct msc_check_env subject = {.open = open_faulty, .close = close_faulty};
    for (const struct msc_env_def *const *def = msc_env_list(); *def; def++) {
        faulty = **def;
        struct msc_env *env = NULL;
        if ((*def)->needs == 0 && open_faulty(NULL, &env) == MSC_OK) {
            msc_env_destroy(env);
            assert_null(first_broken(msc_check_env_rules, &subject));
        }
    }
}

static void test_search_check__agents_pass(void **state) {
    (void)state;
    for (const struct msc_agent_def *const *def = msc_agent_list(); *def; def++) {
        cJSON *config = cJSON_CreateObject();
        assert_ok(msc_json_add_text(config, "type", (*def)->name));
        const struct msc_check_agent subject = {.config = config};
        const char *broken = first_broken(msc_check_agent_rules, &subject);
        if (broken) {
            fail_msg("%s, %s: %s", (*def)->name, broken, msc_status_message());
        }
        cJSON_Delete(config);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_check__finds_faults_of_environments),
        cmocka_unit_test(test_search_check__environments_pass),
        cmocka_unit_test(test_search_check__agents_pass),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
