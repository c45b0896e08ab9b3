// Answers and faults of mscgym-runtime, and the messages they lead to. Shell scripts replace the
// program. Expected messages are written by hand.
#include "tools/runtime.h"

#include "base/alloc.h"

#include "tests/processes.h"
#include "tests/temp_folder.h"
#include "tests/tools/runtime_script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATIENCE_S 30.0

static void assert_no_children(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static struct msc_runtime *started(const char *script) {
    struct msc_runtime *runtime = NULL;
    assert_ok(start_script(&runtime, script, PATIENCE_S));
    return runtime;
}

static void test_tools_runtime__says_what_there_is(void **state) {
    (void)state;
    const struct msc_runtime_found *found;
    struct msc_runtime *runtime = started(AFTER_HELLO "read -r b");
    const struct msc_runtime_host *host = msc_runtime_host(runtime);
    assert_string_equal(host->processor, "A chip");
    assert_int_equal(host->n_threads, 4);
    assert_int_equal(host->n_features, 2);
    assert_string_equal(host->features[1], "avx512_vnni");
    assert_int_equal(host->n_found, 2);
    assert_ok(msc_runtime_find(&found, runtime, "onnxruntime"));
    assert_string_equal(found->version, "1.2.3");
    assert_int_equal(msc_runtime_find(&found, runtime, "openvino"), MSC_E_DEVICE);
    assert_string_equal(msc_status_message(), "runtime openvino: pip install openvino");
    assert_int_equal(msc_runtime_find(&found, runtime, "tvm"), MSC_E_INVALID);
    assert_message("unknown runtime \"tvm\": expected one of onnxruntime, openvino");
    msc_runtime_stop(runtime);
    assert_no_children();
}

static void test_tools_runtime__latency(void **state) {
    (void)state;
    struct msc_latency latency = {0};
    struct msc_runtime *runtime = started(
        AFTER_HELLO "read -r b; echo '{\"note\":\"loading\"}'; echo '{\"note\":\"running\"}'; "
                    "echo '{\"models\":[{\"runs\":7,\"us\":[1,2.5,3]},{\"runs\":1,\"us\":[4,5,6]}]"
                    "}'; read -r c");
    assert_ok(msc_runtime_latency(runtime, &two_models, &latency));
    assert_int_equal(latency.runs[0], 7);
    assert_int_equal(latency.runs[1], 1);
    assert_true(latency.us[1] == 2.5 && latency.us[3] == 4 && latency.us[5] == 6);
    msc_latency_finish(&latency);
    msc_runtime_stop(runtime);
}

// A script that answers each request with the request's text as an error message.
#define ECHO                                                                                       \
    AFTER_HELLO "while read -r b; do printf '%s\\n' \"$b\" | "                                     \
                "sed 's/\"/`/g; s/^/{\"error\":\"/; s/$/\"}/'; done"

// After an error answer the next request is still answered.
static void test_tools_runtime__sends_what_is_documented(void **state) {
    (void)state;
    const struct msc_binding length = {.symbol = "seq", .value = 128};
    struct msc_runtime_job job = two_models;
    struct msc_latency latency = {0};
    struct msc_runtime *runtime = started(ECHO);
    job.bindings = &length;
    job.n_bindings = 1;
    assert_int_equal(msc_runtime_latency(runtime, &job, &latency), MSC_E_STATE);
    assert_string_equal(
        msc_status_message(),
        "mscgym-runtime, latency: it reported: {`runtime`:`onnxruntime`,`threads`:1,"
        "`batch`:1,`lengths`:{`seq`:128},`models`:[`a.onnx`,`b.onnx`],"
        "`rounds`:3,`method`:`latency`}");
    job.n_models = 1;
    job.inputs = "x.npz";
    job.batch = 8;
    job.n_threads = 2;
    assert_int_equal(msc_runtime_outputs(runtime, &job, "y.npz"), MSC_E_STATE);
    assert_string_equal(
        msc_status_message(),
        "mscgym-runtime, outputs: it reported: {`runtime`:`onnxruntime`,`threads`:2,"
        "`batch`:8,`inputs`:`x.npz`,`model`:`a.onnx`,`outputs`:`y.npz`,"
        "`method`:`outputs`}");
    job.runtime = "openvino"; // the hello does not list openvino, so the program is not asked
    assert_int_equal(msc_runtime_outputs(runtime, &job, "y.npz"), MSC_E_DEVICE);
    assert_message("pip install openvino");
    msc_runtime_stop(runtime);
}

static void test_tools_runtime__cannot_start(void **state) {
    (void)state;
    struct msc_runtime *runtime = NULL;
    const char *const command[] = {"no-such-program", NULL};
    const struct msc_runtime_options o = {.command = command, .timeout_s = PATIENCE_S};
    assert_int_equal(msc_runtime_start(&runtime, &o), MSC_E_NOT_FOUND);
    assert_message("no-such-program: cannot be started");
    assert_message("name it in MSCGYM_RUNTIME");
    assert_null(runtime);
    assert_no_children();
}

static void test_tools_runtime__greets_with_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *script, *message;
        enum msc_status status;
    } cases[] = {
        {"exit 127", "/bin/sh: ended with exit status 127", MSC_E_IO},
        {"read -r a; echo what?; read -r b", "answer:1:1", MSC_E_FORMAT},
        {"read -r a; echo '[]'; read -r b", "expected a JSON object", MSC_E_FORMAT},
        {"read -r a; echo '{}'; read -r b", "protocol", MSC_E_FORMAT},
        {"read -r a; echo '{\"error\":\"no licence\"}'; read -r b", "it reported: no licence",
         MSC_E_STATE},
        {"read -r a; echo '" HELLO "' | sed 's/:1,/:2,/'; read -r b",
         "the program uses protocol 2, expected 1; install both programs from one release",
         MSC_E_FORMAT},
        {"read -r a; echo '" HELLO "' | sed 's/missing/mising/'; read -r b",
         "openvino must have \"version\" or \"missing\"", MSC_E_FORMAT},
        {"read -r a; echo '" HELLO "' | sed 's/.avx2./5/'; read -r b", "feature 0 is not a string",
         MSC_E_FORMAT},
        {"read -r a; echo '" HELLO "' | sed 's/:4/:0/'; read -r b", "threads is 0", MSC_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_runtime *runtime = NULL;
        assert_int_equal(start_script(&runtime, cases[i].script, PATIENCE_S), cases[i].status);
        assert_message("mscgym-runtime, hello: ");
        assert_message(cases[i].message);
        assert_no_children();
    }
}

// After a malformed answer no further request is sent.
static void test_tools_runtime__measures_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {"what?", "answer:1:1"},
        {"{}", "models"},
        {"{\"models\":[{\"runs\":1,\"us\":[1,1,1]}]}", "answer: 1 models, expected 2"},
        {"{\"models\":[{\"us\":[1,1,1]},{\"us\":[1,1,1]}]}", "runs"},
        {"{\"models\":[{\"runs\":0,\"us\":[1,1,1]},{}]}", "model 0 has 3 rounds of 0 runs"},
        {"{\"models\":[{\"runs\":1,\"us\":[1,1,1]},{\"runs\":1,\"us\":[1]}]}",
         "model 1 has 1 rounds of 1 runs, expected 3"},
        {"{\"models\":[{\"runs\":1,\"us\":[1,0,1]},{}]}", "model 0: round 1 is not a duration"},
        {"{\"models\":[{\"runs\":1,\"us\":[1,1,\"1\"]},{}]}", "model 0: round 2 is not a duration"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[800];
        struct msc_latency latency = {0};
        snprintf(script, sizeof script, AFTER_HELLO "read -r b; echo '%s'; read -r c",
                 cases[i].answer);
        struct msc_runtime *runtime = started(script);
        assert_int_equal(msc_runtime_latency(runtime, &two_models, &latency), MSC_E_FORMAT);
        assert_message("mscgym-runtime, latency: ");
        assert_message(cases[i].message);
        assert_null(latency.us);
        assert_no_children();
        assert_int_equal(msc_runtime_latency(runtime, &two_models, &latency), MSC_E_STATE);
        assert_message("the program failed earlier and was ended");
        msc_runtime_stop(runtime);
    }
}

static void test_tools_runtime__profile(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    struct msc_profile profiles[2];
    struct msc_runtime *runtime = started(
        AFTER_HELLO "read -r b; echo '{\"note\":\"running\"}'; "
                    "echo '{\"models\":[{\"us\":7.5,\"kernels\":[{\"names\":[\"a_nchwc\",\"a\"],"
                    "\"kind\":\"compute\",\"us\":3},{\"names\":[],\"kind\":\"dequantize\","
                    "\"us\":0}]},{\"us\":1,\"kernels\":[]}]}'; read -r c");
    assert_ok(msc_runtime_profile(runtime, &two_models, profiles, &arena));
    assert_true(profiles[0].us == 7.5 && profiles[1].us == 1);
    assert_int_equal(profiles[0].n_kernels, 2);
    assert_int_equal(profiles[0].kernels[0].n_names, 2);
    assert_string_equal(profiles[0].kernels[0].names[1], "a");
    assert_true(profiles[0].kernels[0].us == 3);
    assert_int_equal(profiles[0].kernels[1].kind, MSC_PROFILE_DEQUANTIZE);
    assert_int_equal(profiles[1].n_kernels, 0);
    msc_runtime_stop(runtime);
    msc_arena_finish(&arena);
}

static void test_tools_runtime__profiles_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *models, *message;
    } cases[] = {
        {"{}", "answer: 1 models, expected 2"},
        {"{},{}", "model 0: us is not a duration"},
        {"{\"us\":1},{}", "kernels"},
        {"{\"us\":1,\"kernels\":[{\"us\":-1}]},{}", "model 0, kernel 0: us is not a duration"},
        {"{\"us\":1,\"kernels\":[{\"us\":1,\"kind\":\"move\",\"names\":[]}]},{}",
         "kernel 0: unknown kind \"move\""},
        {"{\"us\":1,\"kernels\":[{\"us\":1,\"kind\":\"compute\",\"names\":[5]}]},{}",
         "kernel 0: name 0 is not a string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[800];
        struct msc_arena arena = {0};
        struct msc_profile profiles[2];
        snprintf(script, sizeof script,
                 AFTER_HELLO "read -r b; echo '{\"models\":[%s]}'; read -r c", cases[i].models);
        struct msc_runtime *runtime = started(script);
        assert_int_equal(msc_runtime_profile(runtime, &two_models, profiles, &arena), MSC_E_FORMAT);
        assert_message("mscgym-runtime, profile: ");
        assert_message(cases[i].message);
        msc_runtime_stop(runtime);
        msc_arena_finish(&arena);
    }
}

static void test_tools_runtime__dies(void **state) {
    (void)state;
    struct msc_latency latency = {0};
    struct msc_runtime *runtime =
        started(AFTER_HELLO "read -r b; echo '{\"note\":\"running b.onnx\"}'; kill -9 $$");
    assert_int_equal(msc_runtime_latency(runtime, &two_models, &latency), MSC_E_IO);
    assert_message("mscgym-runtime, latency: /bin/sh: ended by signal 9; its last note was "
                   "\"running b.onnx\"");
    assert_no_children();
    msc_runtime_stop(runtime);
}

// A program that hangs is ended, with its children.
static void test_tools_runtime__hangs(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    char note[TEMP_FOLDER_BYTES + 8];
    char script[TEMP_FOLDER_BYTES + 800];
    struct msc_latency latency = {0};
    struct msc_runtime *runtime = NULL;
    temp_folder_make(folder);
    snprintf(note, sizeof note, "%s/pid", folder);
    snprintf(script, sizeof script,
             "sleep 600 & echo $! >%s; " AFTER_HELLO "read -r b; "
             "echo '{\"note\":\"loading a.onnx\"}'; sleep 600",
             note);
    assert_ok(start_script(&runtime, script, 2.0));
    pid_t pid = process_noted(note);
    assert_true(process_runs(pid));
    assert_int_equal(msc_runtime_latency(runtime, &two_models, &latency), MSC_E_IO);
    assert_message("no answer; waited 2 s; its last note was \"loading a.onnx\"");
    assert_process_ends(pid);
    assert_no_children();
    msc_runtime_stop(runtime);
    temp_folder_remove(folder);
}

// $MSCGYM_RUNTIME names a file, whose name may contain blanks, or a command with arguments.
static void test_tools_runtime__is_named_by_the_environment(void **state) {
    (void)state;
    static const struct msc_runtime_options o = {.timeout_s = PATIENCE_S};
    char folder[TEMP_FOLDER_BYTES];
    char path[TEMP_FOLDER_BYTES + 16];
    char command[TEMP_FOLDER_BYTES + 32];
    struct msc_runtime *runtime = NULL;
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/a b", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\n[ $# = 0 ] || exit 9\n" AFTER_HELLO "read -r b\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
    setenv("MSCGYM_RUNTIME", path, 1);
    assert_ok(msc_runtime_start(&runtime, &o));
    msc_runtime_stop(runtime);
    snprintf(command, sizeof command, "%s/ab", folder);
    assert_int_equal(rename(path, command), 0);
    snprintf(command, sizeof command, " /bin/sh  %s/ab ", folder);
    setenv("MSCGYM_RUNTIME", command, 1);
    assert_ok(msc_runtime_start(&runtime, &o));
    msc_runtime_stop(runtime);
    setenv("MSCGYM_RUNTIME", "/no/such/program --now", 1);
    assert_int_equal(msc_runtime_start(&runtime, &o), MSC_E_NOT_FOUND);
    assert_message("mscgym-runtime: /no/such/program: cannot be started");
    unsetenv("MSCGYM_RUNTIME");
    temp_folder_remove(folder);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_runtime__says_what_there_is),
        cmocka_unit_test(test_tools_runtime__latency),
        cmocka_unit_test(test_tools_runtime__sends_what_is_documented),
        cmocka_unit_test(test_tools_runtime__cannot_start),
        cmocka_unit_test(test_tools_runtime__greets_with_nonsense),
        cmocka_unit_test(test_tools_runtime__measures_nonsense),
        cmocka_unit_test(test_tools_runtime__profile),
        cmocka_unit_test(test_tools_runtime__profiles_nonsense),
        cmocka_unit_test(test_tools_runtime__dies),
        cmocka_unit_test(test_tools_runtime__hangs),
        cmocka_unit_test(test_tools_runtime__is_named_by_the_environment),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
