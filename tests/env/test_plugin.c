// Environments as shared libraries: loading, and the faults of plugin_faults.c with their messages.
// Expected messages are written by hand.
#include "env/env.h"

#include "tests/env/plugin_faults.h"
#include "tests/msc_test.h"
#include "tests/trial_room.h"

#include <stdlib.h>

static void test_env_plugin__runs(void **state) {
    (void)state;
    const struct msc_env_def *def = NULL;
    struct msc_env_library *library = NULL;
    struct msc_env *env = NULL;
    const struct msc_env_host host = {0};
    const struct msc_goal goal = {.n_objectives = 1};
    const uint32_t tails = 1;
    struct trial_room room;
    struct msc_trial *trial = trial_make(&room, 0, &tails, 1);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    assert_ok(msc_env_select(&def, &library, MSC_PLUGIN_GOOD, NULL));
    assert_string_equal(def->name, "coin");
    assert_ok(msc_env_create(&env, def, NULL, &host));
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_true(trial->outcome.state == MSC_TRIAL_COMPLETE && trial->outcome.objectives[0] == 2.0);
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
    assert_int_equal(msc_env_library_open(&library, MSC_TESTS_FOLDER "/env/toy.h"), MSC_E_FORMAT);
    assert_message("cannot be loaded");
    assert_int_equal(msc_env_library_open(&library, MSC_PLUGIN_GONE), MSC_E_FORMAT);
    assert_message("undefined symbol: msc_gone; rebuild it with the installed headers");
    assert_int_equal(msc_env_library_open(&library, MSC_PLUGIN_NAMELESS), MSC_E_FORMAT);
    assert_message("does not export msc_env_plugin");
    assert_int_equal(msc_env_library_open(&library, MSC_PLUGIN_OTHER_ABI), MSC_E_UNSUPPORTED);
    assert_message("built for environment ABI 3, expected 2; rebuild it with the installed "
                   "headers");
}

static void test_env_plugin__finds_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof plugin_faults / sizeof plugin_faults[0]; i++) {
        struct msc_env_library *library = NULL;
        setenv("MSC_FAULT", plugin_faults[i].fault, 1);
        assert_true(msc_env_library_open(&library, MSC_PLUGIN_FAULTS) != MSC_OK);
        assert_message(plugin_faults[i].message);
        assert_message(MSC_PLUGIN_FAULTS);
        assert_null(library);
    }
    setenv("MSC_FAULT", "none", 1);
    struct msc_env_library *library = NULL;
    assert_ok(msc_env_library_open(&library, MSC_PLUGIN_FAULTS));
    msc_env_library_close(library);
}

// Functions that need each other: if one is missing, the definition is refused.
static void test_env_plugin__misses_parts(void **state) {
    (void)state;
    static const struct {
        const char *fault, *message;
    } rows[] = {
        {"no batches", "the definition has evaluate_part but no batches"},
        {"no evaluate_part", "the definition has batches but no evaluate_part"},
        {"no partial_loss", "the definition has batches but no partial_loss"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_env_library *library = NULL;
        setenv("MSC_FAULT", rows[i].fault, 1);
        assert_int_equal(msc_env_library_open(&library, MSC_PLUGIN_FAULTS), MSC_E_FORMAT);
        assert_message(rows[i].message);
        assert_message(MSC_PLUGIN_FAULTS);
        assert_null(library);
    }
}

// A library without a space, and one whose space is all zeros.
static void test_env_plugin__has_no_space(void **state) {
    (void)state;
    static const char *const faults[] = {"space", "none"};
    static const char *const messages[] = {"the space is NULL", "0 tasks"};
    for (size_t i = 0; i < 2; i++) {
        const struct msc_env_def *def = NULL;
        struct msc_env_library *library = NULL;
        struct msc_env *env = NULL;
        const struct msc_env_host host = {0};
        setenv("MSC_FAULT", faults[i], 1);
        assert_ok(msc_env_select(&def, &library, MSC_PLUGIN_FAULTS, NULL));
        assert_int_equal(msc_env_create(&env, def, NULL, &host), MSC_E_INVALID);
        assert_message("environment faulty");
        assert_message(messages[i]);
        msc_env_library_close(library);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_plugin__runs),
        cmocka_unit_test(test_env_plugin__selects),
        cmocka_unit_test(test_env_plugin__refuses),
        cmocka_unit_test(test_env_plugin__finds_faults),
        cmocka_unit_test(test_env_plugin__misses_parts),
        cmocka_unit_test(test_env_plugin__has_no_space),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
