// Programs that are run to their end, and waits that somebody stops.
#include "base/process.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/str.h"
#include "tests/processes.h"
#include "tests/temp_folder.h"

#define PATIENCE_S 30.0

static enum msc_status run_script(struct msc_str *last, const char *script, const char *folder,
                                  double timeout_s, const struct msc_cancel *cancel) {
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    return msc_process_run(last, argv, folder, timeout_s, cancel, 1);
}

static void test_base_process__run_takes_the_last_line(void **state) {
    static const struct {
        const char *script, *last;
    } cases[] = {
        {"echo 0.25", "0.25"},
        {"printf 'loading\\n  0.5\\t\\r\\n\\n  \\n'", "0.5"},
        {"echo 1; printf ' 2'", "2"},
        {"echo 3; echo 4 >&2 2>/dev/null", "3"},
        {"seq 1 200000", "200000"},
        {"cat; echo 'nothing to read'", "nothing to read"},
        {"pwd", "/"},
    };
    struct msc_str last = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(run_script(&last, cases[i].script, "/", PATIENCE_S, NULL));
        assert_string_equal(msc_str_text(&last), cases[i].last);
    }
    msc_str_finish(&last);
}

static void test_base_process__run_says_what_went_wrong(void **state) {
    static const char *const absent[] = {"no/such/program", NULL};
    struct msc_str last = {0};
    (void)state;
    assert_int_equal(run_script(&last, "echo 1; exit 3", NULL, PATIENCE_S, NULL), MSC_E_STATE);
    assert_message("/bin/sh: ended with exit status 3");
    assert_int_equal(run_script(&last, "echo 1; kill -9 $$", NULL, PATIENCE_S, NULL), MSC_E_STATE);
    assert_message("/bin/sh: ended by signal 9");
    assert_int_equal(run_script(&last, "echo; echo ' '", NULL, PATIENCE_S, NULL), MSC_E_STATE);
    assert_message("wrote nothing");
    assert_int_equal(msc_process_run(&last, absent, NULL, PATIENCE_S, NULL, 1), MSC_E_NOT_FOUND);
    assert_message("no/such/program: cannot be started");
    msc_str_finish(&last);
}

// With what it has started itself, whether it still talks or not.
static void test_base_process__run_ends_what_takes_too_long(void **state) {
    static const char *const scripts[] = {
        "sleep 1000 & echo $! >pid; wait",
        "sleep 1000 & echo $! >pid; exec >/dev/null; wait",
        "sleep 1000 & echo $! >pid; while :; do echo 1; sleep 0.01; done",
    };
    char folder[TEMP_FOLDER_BYTES];
    char noted[TEMP_FOLDER_BYTES + 8];
    struct msc_str last = {0};
    (void)state;
    temp_folder_make(folder);
    snprintf(noted, sizeof noted, "%s/pid", folder);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        assert_int_equal(run_script(&last, scripts[i], folder, 1.0, NULL), MSC_E_STATE);
        assert_message("waited 1 s");
        assert_process_ends(process_noted(noted));
        assert_int_equal(unlink(noted), 0);
    }
    msc_str_finish(&last);
    temp_folder_remove(folder);
}

static void test_base_process__waits_are_stopped_on_request(void **state) {
    uint64_t beats = 0;
    struct msc_cancel cancel = {.beats = &beats};
    struct msc_process *process = NULL;
    struct msc_str last = {0};
    const char *const argv[] = {"/bin/sh", "-c", "sleep 1000", NULL};
    const char *line;
    size_t length;
    (void)state;
    assert_ok(msc_process_start(&process, argv, NULL));
    msc_process_set_cancel(process, &cancel, 2);
    assert_int_equal(msc_process_receive(process, &line, &length, 1.0), MSC_E_IO);
    assert_true(beats >= 5); // who watches sees that we live
    msc_cancel_raise(&cancel, 1);
    assert_int_equal(msc_process_receive(process, &line, &length, 0.2), MSC_E_IO);
    msc_cancel_raise(&cancel, 2);
    double began_s = msc_clock_seconds();
    assert_int_equal(msc_process_receive(process, &line, &length, PATIENCE_S), MSC_E_CANCELLED);
    msc_process_stop(process, 0.0);
    assert_int_equal(run_script(&last, "sleep 1000", NULL, PATIENCE_S, &cancel), MSC_E_CANCELLED);
    assert_true(msc_clock_seconds() - began_s < PATIENCE_S / 2);
    msc_str_finish(&last);
}

// Six that do not want to end take no longer than one of them.
static void test_base_process__many_are_stopped_at_once(void **state) {
    static const char *const argv[] = {
        "/bin/sh", "-c", "trap '' TERM; echo here; while :; do sleep 1000; done", NULL};
    struct msc_process *processes[7] = {NULL};
    const char *line;
    size_t length;
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        assert_ok(msc_process_start(&processes[i], argv, NULL));
        assert_ok(msc_process_receive(processes[i], &line, &length, PATIENCE_S));
    }
    double began_s = msc_clock_seconds();
    msc_process_stop_all(processes, 7, 0.5);
    assert_true(msc_clock_seconds() - began_s < 6.0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_process__run_takes_the_last_line),
        cmocka_unit_test(test_base_process__run_says_what_went_wrong),
        cmocka_unit_test(test_base_process__run_ends_what_takes_too_long),
        cmocka_unit_test(test_base_process__waits_are_stopped_on_request),
        cmocka_unit_test(test_base_process__many_are_stopped_at_once),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
