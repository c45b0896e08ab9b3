// Plug-ins for operators that are programs, and that break the protocol.
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include "model/operators.h"

#include "base/file.h"
#include "graph/operators_internal.h"

#include <string.h>
#include <sys/stat.h>

static struct msc_operators *open_script(const char *text) {
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 32];
    const char *paths[] = {path};
    struct msc_operators *set;
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/script", folder);
    assert_ok(msc_file_write(path, text, strlen(text)));
    assert_int_equal(chmod(path, 0700), 0);
    assert_ok(msc_operators_open(&set, paths, 1));
    temp_folder_remove(folder); // the script runs and stays open
    return set;
}

static enum msc_status compute_nothing(const struct msc_operators *set) {
    const struct msc_operators_source *source = msc_operators__find(set, "my", "Op")->source;
    const struct msc_operator_call call = {.joint = "j", .domain = "my", .op = "Op", .version = 1};
    return source->call(source->state, false, &call);
}

// The line after a bad one answers the same request. It must not become the answer to the next.
static void test_model_operators_program__late_answer(void **state) {
    struct msc_operators *set =
        open_script("#!/bin/sh\n"
                    "answer='{\"outputs\":[]}'\n"
                    "read line\n"
                    "echo '{\"operators\":[{\"domain\":\"my\",\"op\":\"Op\",\"infers\":false}]}'\n"
                    "read line; echo \"$answer\"\n"
                    "read line; echo 'a line for people'; echo \"$answer\"\n"
                    "while read line; do echo \"$answer\"; done\n");
    (void)state;
    assert_ok(compute_nothing(set));
    assert_int_equal(compute_nothing(set), MSC_E_FORMAT);
    assert_int_equal(compute_nothing(set), MSC_E_IO);
    assert_non_null(strstr(msc_status_message(), "ended after an error"));
    msc_operators_close(set);
}

// An error that the program reports answers its request, so the program goes on.
static void test_model_operators_program__reported_error(void **state) {
    struct msc_operators *set =
        open_script("#!/bin/sh\n"
                    "read line\n"
                    "echo '{\"operators\":[{\"domain\":\"my\",\"op\":\"Op\",\"infers\":false}]}'\n"
                    "read line; echo '{\"error\":\"not today\"}'\n"
                    "while read line; do echo '{\"outputs\":[]}'; done\n");
    (void)state;
    assert_int_equal(compute_nothing(set), MSC_E_STATE);
    assert_non_null(strstr(msc_status_message(), "not today"));
    assert_ok(compute_nothing(set));
    msc_operators_close(set);
}

// A length that does not fit in an integer is refused; a cast of it would be undefined.
static void test_model_operators_program__long_length(void **state) {
    struct msc_operators *set =
        open_script("#!/bin/sh\n"
                    "read line\n"
                    "echo '{\"operators\":[{\"domain\":\"my\",\"op\":\"Op\",\"infers\":true}]}'\n"
                    "while read line; do\n"
                    "    echo '{\"outputs\":[{\"dtype\":\"float32\",\"dims\":[1e300]}]}'\n"
                    "done\n");
    const struct msc_operators_source *source = msc_operators__find(set, "my", "Op")->source;
    struct msc_operator_tensor output = {0};
    const struct msc_operator_call call = {
        .joint = "j", .domain = "my", .op = "Op", .n_outputs = 1, .outputs = &output};
    (void)state;
    assert_int_equal(source->call(source->state, true, &call), MSC_E_FORMAT);
    assert_non_null(strstr(msc_status_message(), "not an integer up to 2^53"));
    msc_operators_close(set);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_operators_program__late_answer),
        cmocka_unit_test(test_model_operators_program__reported_error),
        cmocka_unit_test(test_model_operators_program__long_length),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
