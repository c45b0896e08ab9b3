// File sets: a file that is named twice, at least once as an output, is refused, even if the two
// names differ. Expected messages are written by hand.
#include "base/file_set.h"

#include "base/file.h"
#include "tests/temp_folder.h"

#include <sys/stat.h>

static char folder[TEMP_FOLDER_BYTES];

static int enter_folder(void **state) {
    (void)state;
    temp_folder_make(folder);
    return chdir(folder);
}

static int leave_folder(void **state) {
    (void)state;
    int failed = rmdir("sub") + chdir("/");
    temp_folder_remove(folder);
    return failed;
}

static void expect_refused(struct msc_file_set *set, const char *path) {
    assert_int_equal(msc_file_set_write(set, "the output", path), MSC_E_INVALID);
    assert_message(path);
    assert_message("the output is the same file as the model, model.onnx, which is read");
}

static void test_base_file_set__one_file_by_many_names(void **state) {
    (void)state;
    struct msc_file_set set = {0};
    char absolute[TEMP_FOLDER_BYTES + 16];
    snprintf(absolute, sizeof absolute, "%s/model.onnx", folder);
    assert_int_equal(mkdir("sub", 0700), 0);
    assert_ok(msc_file_write("model.onnx", "weights", 7));
    assert_ok(msc_file_write("same.onnx", "weights", 7));
    assert_int_equal(link("model.onnx", "hard.onnx"), 0);
    assert_int_equal(symlink("model.onnx", "soft.onnx"), 0);
    assert_ok(msc_file_set_read(&set, "the model", "model.onnx"));
    assert_ok(msc_file_set_read(&set, "the labels", NULL));
    expect_refused(&set, "model.onnx");
    expect_refused(&set, "./sub/../model.onnx");
    expect_refused(&set, absolute);
    expect_refused(&set, "hard.onnx");
    expect_refused(&set, "soft.onnx");
    assert_ok(msc_file_set_write(&set, "the output", "same.onnx"));
    assert_ok(msc_file_set_write(&set, "the log", NULL));
    msc_file_set_finish(&set);
}

// Outputs that do not exist yet are compared by the path they will have.
static void test_base_file_set__outputs(void **state) {
    (void)state;
    struct msc_file_set set = {0};
    assert_ok(msc_file_set_write(&set, "the record", "sub/a.jsonl"));
    assert_int_equal(msc_file_set_write(&set, "the log file", "sub//./a.jsonl"), MSC_E_INVALID);
    assert_message("sub//./a.jsonl: the log file is the same file as the record, sub/a.jsonl; "
                   "name another");
    assert_ok(msc_file_set_write(&set, "the log file", "absent/sub/a.jsonl"));
    assert_int_equal(msc_file_set_write(&set, "x", "absent/../sub/../sub/a.jsonl"), MSC_E_INVALID);
    // A missing input is not an error here: the code that reads the input reports it.
    assert_ok(msc_file_set_read(&set, "labels", "labels.npy"));
    assert_int_equal(msc_file_set_write(&set, "the output", "labels.npy"), MSC_E_INVALID);
    msc_file_set_finish(&set);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_file_set__one_file_by_many_names),
        cmocka_unit_test(test_base_file_set__outputs),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
