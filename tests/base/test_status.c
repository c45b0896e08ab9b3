// Status codes and the thread-local error message: forwarding, prefixes, and cutting to one line.
// Expected messages are written by hand.
#include "base/status.h"

#include "tests/msc_test.h"

#include <pthread.h>
#include <stdbool.h>

static enum msc_status fail_thing(int found) {
    return MSC_FAIL(MSC_E_FORMAT, "%s: expected %d, got %d", "thing", 4, found);
}

static enum msc_status forward(bool *reached) {
    MSC_TRY(fail_thing(5));
    *reached = true;
    return MSC_OK;
}

static enum msc_status forward_out(int *n_released) {
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(fail_thing(6));
    *n_released = -100;
out:
    *n_released += 1;
    return status;
}

static void test_base_status__forwards(void **state) {
    (void)state;
    bool reached = false;
    assert_int_equal(forward(&reached), MSC_E_FORMAT);
    assert_false(reached);
    assert_string_equal(msc_status_message(), "thing: expected 4, got 5");
    assert_non_null(strstr(msc_status_where(), "test_status.c:"));

    int n_released = 0;
    assert_int_equal(forward_out(&n_released), MSC_E_FORMAT);
    assert_int_equal(n_released, 1);
    assert_string_equal(msc_status_message(), "thing: expected 4, got 6");
}

static void test_base_status__prefix(void **state) {
    (void)state;
    enum msc_status status = fail_thing(7);
    assert_int_equal(msc_status_prefix(status, "model %d", 2), MSC_E_FORMAT);
    assert_string_equal(msc_status_message(), "model 2: thing: expected 4, got 7");
    // A new message may quote the current one.
    status = MSC_FAIL(MSC_E_STATE, "again: %s", msc_status_message());
    assert_int_equal(status, MSC_E_STATE);
    assert_string_equal(msc_status_message(), "again: model 2: thing: expected 4, got 7");
}

static void test_base_status__long_text_is_cut(void **state) {
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    (void)MSC_FAIL(MSC_E_IO, "%s", text);
    size_t length = strlen(msc_status_message());
    assert_in_range(length, 500, 4999);
    msc_status_prefix(MSC_E_IO, "%s", text);
    assert_int_equal(strlen(msc_status_message()), length);
}

static void test_base_status__is_one_line(void **state) {
    (void)state;
    (void)MSC_FAIL(MSC_E_FORMAT, "node '%s'", "a\nb\r\x1b[2Jc\x7f");
    assert_string_equal(msc_status_message(), "node 'a\\nb\\r\\x1b[2Jc\\x7f'");
    msc_status_prefix(MSC_E_FORMAT, "%s", "x\ty.onnx");
    assert_string_equal(msc_status_message(), "x\\ty.onnx: node 'a\\nb\\r\\x1b[2Jc\\x7f'");
    (void)MSC_FAIL(MSC_E_FORMAT, "node '%s'", "a\xc2\x9b\xe2\x80\xae\x9b");
    assert_string_equal(msc_status_message(), "node 'a\\u009b\\u202e\\x9b'");
    msc_status_restore(MSC_E_FORMAT, "an agent says \x1b[2J");
    assert_string_equal(msc_status_message(), "an agent says \\x1b[2J");
}

static void *fail_elsewhere(void *payload) {
    char *copy = payload;
    (void)fail_thing(99);
    strcpy(copy, msc_status_message());
    return NULL;
}

static void test_base_status__threads_are_apart(void **state) {
    (void)state;
    char copy[100] = "";
    pthread_t thread;
    (void)fail_thing(8);
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, copy), 0);
    pthread_join(thread, NULL);
    assert_string_equal(copy, "thing: expected 4, got 99");
    assert_string_equal(msc_status_message(), "thing: expected 4, got 8");
    assert_int_equal(msc_status_restore(MSC_E_FORMAT, copy), MSC_E_FORMAT);
    assert_string_equal(msc_status_message(), copy);
    assert_int_equal(msc_status_restore(MSC_E_IO, msc_status_message()), MSC_E_IO);
    assert_string_equal(msc_status_message(), copy);
}

static void test_base_status__names(void **state) {
    (void)state;
    assert_string_equal(msc_status_name(MSC_OK), "ok");
    assert_string_equal(msc_status_name(MSC_E_NOMEM), "out of memory");
    assert_string_equal(msc_status_name(MSC_E_CANCELLED), "cancelled");
    assert_string_equal(msc_status_name(MSC_E_LOST), "device lost");
    assert_non_null(msc_status_name((enum msc_status)5));
    assert_non_null(msc_status_name((enum msc_status) - 50));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_status__forwards),
        cmocka_unit_test(test_base_status__prefix),
        cmocka_unit_test(test_base_status__long_text_is_cut),
        cmocka_unit_test(test_base_status__is_one_line),
        cmocka_unit_test(test_base_status__threads_are_apart),
        cmocka_unit_test(test_base_status__names),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
