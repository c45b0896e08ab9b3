// Event files for TensorBoard: framing, order and damaged files. The expected bytes were written by
// TensorBoard.
#include "results/event_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tests/temp_folder.h"

#include <string.h>

// Output of tensorboard.summary.writer.record_writer.RecordWriter (TensorBoard 2.21) for
// Event(wall_time=1.5, step=7, summary={value: {tag: "best/x", simple_value: 0.25}}).
static const unsigned char framed[] = {
    0x1c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc8, 0xc1, 0x95, 0x1d, 0x09, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x10, 0x07, 0x2a, 0x0f, 0x0a, 0x0d, 0x0a, 0x06, 0x62,
    0x65, 0x73, 0x74, 0x2f, 0x78, 0x15, 0x00, 0x00, 0x80, 0x3e, 0xa2, 0x95, 0x9c, 0x6e,
};

static void add_scalar(struct msc_event_file *file, int64_t step) {
    char tag[] = "best/x";
    MscTb__Summary__Value value = MSC_TB__SUMMARY__VALUE__INIT;
    MscTb__Summary__Value *values[] = {&value};
    MscTb__Summary summary = MSC_TB__SUMMARY__INIT;
    MscTb__Event event = MSC_TB__EVENT__INIT;
    value.tag = tag;
    value.value_case = MSC_TB__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    value.simple_value = 0.25f;
    summary.n_value = 1;
    summary.value = values;
    event.wall_time = 1.5;
    event.step = step;
    event.what_case = MSC_TB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    assert_ok(msc_event_file_add(file, &event));
}

struct steps {
    int64_t steps[16];
    size_t n;
};

static enum msc_status note_step(void *payload, const MscTb__Event *event) {
    struct steps *steps = payload;
    if (event->what_case == MSC_TB__EVENT__WHAT_SUMMARY) {
        assert_true(steps->n < 16);
        steps->steps[steps->n++] = event->step;
    }
    return MSC_OK;
}

static void test_search_event_file__frames(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    struct msc_event_file *file = NULL;
    char *data = NULL;
    size_t n_bytes = 0;
    temp_folder_make(folder);
    assert_ok(msc_event_file_create(&file, folder));
    add_scalar(file, 7);
    assert_ok(msc_event_file_flush(file));
    assert_ok(msc_file_read(&data, &n_bytes, msc_event_file_path(file)));
    assert_true(n_bytes > sizeof framed);
    assert_memory_equal(data + n_bytes - sizeof framed, framed, sizeof framed);
    msc_free(data);
    msc_event_file_close(file);
    temp_folder_remove(folder);
}

// Files are read in the order of their creation, even if all were created within one second.
static void test_search_event_file__order(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    struct steps found = {.n = 0};
    temp_folder_make(folder);
    for (int64_t step = 0; step < 12; step++) {
        struct msc_event_file *file = NULL;
        assert_ok(msc_event_file_create(&file, folder));
        add_scalar(file, step);
        assert_ok(msc_event_file_flush(file));
        msc_event_file_close(file);
    }
    assert_ok(msc_event_file_read_all(folder, note_step, &found));
    assert_int_equal(found.n, 12);
    for (size_t i = 0; i < found.n; i++) {
        assert_int_equal(found.steps[i], (int64_t)i);
    }
    temp_folder_remove(folder);
}

// A file that was cut, or has a flipped bit, is read up to the last whole event before the damage.
static void test_search_event_file__damage(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    struct msc_event_file *file = NULL;
    char *data = NULL;
    size_t n_bytes = 0;
    temp_folder_make(folder);
    assert_ok(msc_event_file_create(&file, folder));
    add_scalar(file, 0);
    add_scalar(file, 1);
    assert_ok(msc_event_file_flush(file));
    assert_ok(msc_file_read(&data, &n_bytes, msc_event_file_path(file)));
    for (size_t i = n_bytes - 2 * sizeof framed; i < n_bytes; i++) {
        struct steps cut = {.n = 0}, turned = {.n = 0};
        size_t n_whole = i < n_bytes - sizeof framed ? 0 : 1;
        assert_ok(msc_file_write(msc_event_file_path(file), data, i));
        assert_ok(msc_event_file_read_all(folder, note_step, &cut));
        assert_int_equal(cut.n, n_whole);
        data[i] ^= 0x10;
        assert_ok(msc_file_write(msc_event_file_path(file), data, n_bytes));
        assert_ok(msc_event_file_read_all(folder, note_step, &turned));
        assert_int_equal(turned.n, n_whole);
        data[i] ^= 0x10;
    }
    msc_free(data);
    msc_event_file_close(file);
    temp_folder_remove(folder);
}

static void test_search_event_file__no_folder(void **state) {
    (void)state;
    struct steps found = {.n = 0};
    assert_ok(msc_event_file_read_all("/nowhere/at/all", note_step, &found));
    assert_int_equal(found.n, 0);
    struct msc_event_file *file = NULL;
    assert_int_equal(msc_event_file_create(&file, "/dev/null/runs"), MSC_E_INVALID);
    assert_null(file);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_event_file__frames),
        cmocka_unit_test(test_search_event_file__order),
        cmocka_unit_test(test_search_event_file__damage),
        cmocka_unit_test(test_search_event_file__no_folder),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
