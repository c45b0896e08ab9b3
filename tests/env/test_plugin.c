#include "env/env.h"

#include "tests/msc_test.h"

#include <math.h>

static void test_env_plugin__runs(void **state) {
    (void)state;
    const struct msc_env_def *def = NULL;
    struct msc_env_library *library = NULL;
    struct msc_env *env = NULL;
    const struct msc_env_host host = {0};
    const struct msc_goal goal = {.n_objectives = 1};
    const uint32_t tails = 1;
    struct msc_outcome outcome;
    struct msc_trial trial = {.id = 0, .choices = &tails};
    struct msc_evaluation e = {.trials = &trial, .n = 1, .outcomes = &outcome};
    assert_ok(msc_env_select(&def, &library, MSC_PLUGIN_GOOD, NULL));
    assert_string_equal(def->name, "coin");
    assert_ok(msc_env_create(&env, def, NULL, &host));
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_true(outcome.state == MSC_TRIAL_COMPLETE && outcome.objectives[0] == 2.0);
    msc_env_destroy(env);
    msc_env_library_close(library);
    msc_env_library_close(NULL);
}

static void test_env_plugin__selects(void **state) {
    (void)state;
    const struct msc_env_def *def = NULL;
    struct msc_env_library *library = NULL;
    assert_ok(msc_env_select(&def, &library, "toy", "/nowhere"));
    assert_ptr_equal(def, msc_env_find("toy"));
    assert_null(library);
    assert_ok(msc_env_select(&def, &library, "plugin_good.so", MSC_PLUGIN_FOLDER));
    assert_ptr_equal(def, msc_env_library_definition(library));
    msc_env_library_close(library);
    assert_int_equal(msc_env_select(&def, &library, "toi", NULL), MSC_E_NOT_FOUND);
    assert_message("did you mean \"toy\"?");
    assert_int_equal(msc_env_select(&def, &library, "zzzzzzzz", NULL), MSC_E_NOT_FOUND);
    assert_message("`mscgym envs`");
}

static void test_env_plugin__refuses(void **state) {
    (void)state;
    struct msc_env_library *library = NULL;
    assert_int_equal(msc_env_library_open(&library, "no/such/library.so"), MSC_E_NOT_FOUND);
    assert_message("no/such/library.so");
    assert_int_equal(msc_env_library_open(&library, __FILE__), MSC_E_FORMAT);
    assert_message("cannot be loaded");
    assert_int_equal(msc_env_library_open(&library, MSC_PLUGIN_NAMELESS), MSC_E_FORMAT);
    assert_message("does not export msc_env_plugin");
    assert_int_equal(msc_env_library_open(&library, MSC_PLUGIN_OLD), MSC_E_UNSUPPORTED);
    assert_message("built for environment ABI 1, expected 2");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_plugin__runs),
        cmocka_unit_test(test_env_plugin__selects),
        cmocka_unit_test(test_env_plugin__refuses),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
