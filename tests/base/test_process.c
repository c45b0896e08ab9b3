// Child processes: run to their end, stopped on a timeout, or answering line by line. Expected
// answers follow from the shell scripts that are run.
#include "base/process.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/str.h"
#include "tests/processes.h"
#include "tests/temp_folder.h"

#include <fcntl.h>
#include <signal.h>

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

// A timeout ends the program and its children, whether or not they still write output.
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

static size_t count_descriptors(void) {
    size_t n = 0;
    for (int i = 0; i < 256; i++) {
        n += fcntl(i, F_GETFD) >= 0;
    }
    return n;
}

// Returns the id of the child that a script has left. The script ran in `folder` and wrote the id
// to the file `pid`.
static pid_t left_child(const char *folder) {
    char noted[TEMP_FOLDER_BYTES + 8];
    snprintf(noted, sizeof noted, "%s/pid", folder);
    pid_t pid = process_noted(noted);
    assert_int_equal(unlink(noted), 0);
    return pid;
}

// A run ends when the program does. It does not wait for a child that still holds the output.
static void test_base_process__run_does_not_wait_for_children(void **state) {
    static const char *const scripts[] = {
        "sleep 1000 & echo $! >pid; echo 1; echo 0.5",
        "sleep 1000 & echo $! >pid; printf 0.5",
        "(trap '' HUP; sleep 1000) & echo $! >pid; seq 1 100000; echo 0.5",
        "(sleep 1000 | cat) & echo $! >pid; sleep 0.3; echo 0.5",
    };
    char folder[TEMP_FOLDER_BYTES];
    struct msc_str last = {0};
    (void)state;
    temp_folder_make(folder);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        size_t n_open = count_descriptors();
        double began_s = msc_clock_seconds();
        assert_ok(run_script(&last, scripts[i], folder, PATIENCE_S, NULL));
        assert_string_equal(msc_str_text(&last), "0.5");
        assert_true(msc_clock_seconds() - began_s < PATIENCE_S / 2);
        assert_int_equal(count_descriptors(), n_open);
        pid_t child = left_child(folder);
        assert_true(process_runs(child));
        assert_int_equal(kill(-getpgid(child), SIGKILL), 0);
    }
    msc_str_finish(&last);
    temp_folder_remove(folder);
}

// A run ends with the program even if a child writes without end.
static void test_base_process__run_does_not_read_on(void **state) {
    char folder[TEMP_FOLDER_BYTES];
    struct msc_str last = {0};
    double began_s = msc_clock_seconds();
    (void)state;
    temp_folder_make(folder);
    assert_ok(run_script(&last, "yes & echo $! >pid; echo 0.5", folder, PATIENCE_S, NULL));
    assert_true(msc_clock_seconds() - began_s < PATIENCE_S / 2);
    assert_process_ends(left_child(folder)); // the child gets SIGPIPE: its output has no reader
    assert_int_equal(run_script(&last, "yes", folder, 1.0, NULL), MSC_E_STATE);
    assert_message("waited 1 s");
    msc_str_finish(&last);
    temp_folder_remove(folder);
}

static void test_base_process__failed_run_ends_children(void **state) {
    char folder[TEMP_FOLDER_BYTES];
    struct msc_str last = {0};
    (void)state;
    temp_folder_make(folder);
    assert_int_equal(
        run_script(&last, "sleep 1000 & echo $! >pid; exit 3", folder, PATIENCE_S, NULL),
        MSC_E_STATE);
    assert_message("/bin/sh: ended with exit status 3");
    assert_process_ends(left_child(folder));
    msc_str_finish(&last);
    temp_folder_remove(folder);
}

static void test_base_process__call_does_not_wait_for_children(void **state) {
    static const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 & echo $! >\"$FOLDER/pid\"",
                                       NULL};
    char folder[TEMP_FOLDER_BYTES];
    char variable[TEMP_FOLDER_BYTES + 8];
    const char *const environment[] = {variable, NULL};
    double began_s = msc_clock_seconds();
    (void)state;
    temp_folder_make(folder);
    snprintf(variable, sizeof variable, "FOLDER=%s", folder);
    assert_ok(msc_process_call(argv, environment, PATIENCE_S, NULL, 1));
    assert_true(msc_clock_seconds() - began_s < PATIENCE_S / 2);
    pid_t child = left_child(folder);
    assert_true(process_runs(child));
    assert_int_equal(kill(-getpgid(child), SIGKILL), 0);
    temp_folder_remove(folder);
}

// A program that answers line by line: msc_process_receive and msc_process_next_line report its end
// at once.
static void test_base_process__talk_ends_with_the_program(void **state) {
    static const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 <&0 & echo 1; echo 2; exit 3",
                                       NULL};
    enum { MANY = 1 << 20 }; // more bytes than a pipe buffer holds
    struct msc_process *process = NULL;
    double began_s = msc_clock_seconds();
    char *many = test_calloc(MANY, 1);
    const char *line = NULL;
    size_t length;
    (void)state;
    assert_ok(msc_process_start(&process, argv, NULL));
    assert_ok(msc_process_send(process, many, MANY, PATIENCE_S));
    for (const char *expected = "1"; expected; expected = *expected == '1' ? "2" : NULL) {
        assert_ok(msc_process_receive(process, &line, &length, PATIENCE_S));
        assert_string_equal(line, expected);
    }
    assert_int_equal(msc_process_receive(process, &line, &length, PATIENCE_S), MSC_E_IO);
    assert_message("/bin/sh: ended with exit status 3");
    msc_process_stop(process, 0.0);

    assert_ok(msc_process_start(&process, argv, NULL));
    enum msc_status status = MSC_OK;
    for (int n_lines = 0; status == MSC_OK && msc_clock_seconds() - began_s < PATIENCE_S;) {
        status = msc_process_next_line(process, &line, &length);
        n_lines += status == MSC_OK && line;
        assert_true(status == MSC_OK || n_lines == 2);
        sleep_ms(1);
    }
    assert_int_equal(status, MSC_E_IO);
    assert_message("/bin/sh: ended with exit status 3");
    msc_process_stop(process, 0.0);
    assert_true(msc_clock_seconds() - began_s < PATIENCE_S / 2);
    test_free(many);
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
    assert_true(beats >= 5); // the heartbeat continues
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

// Stopping six processes that ignore SIGTERM takes no longer than stopping one.
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
        cmocka_unit_test(test_base_process__run_does_not_wait_for_children),
        cmocka_unit_test(test_base_process__run_does_not_read_on),
        cmocka_unit_test(test_base_process__failed_run_ends_children),
        cmocka_unit_test(test_base_process__call_does_not_wait_for_children),
        cmocka_unit_test(test_base_process__talk_ends_with_the_program),
        cmocka_unit_test(test_base_process__waits_are_stopped_on_request),
        cmocka_unit_test(test_base_process__many_are_stopped_at_once),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
