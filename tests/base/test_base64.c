// Base64 encoding and decoding, and the texts that decoding refuses. Expected texts come from RFC
// 4648 and Python's base64.
#include "base/base64.h"

#include "base/str.h"
#include "tests/msc_test.h"

#include <string.h>

// Pairs from RFC 4648, section 10, and all 256 byte values encoded by Python's base64.
static const char *const pairs[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xfe\xfb\xef", "//777w=="},
};

static void test_base_base64__pairs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct msc_str text = {0};
        char bytes[16];
        size_t n;
        assert_ok(msc_base64_write(&text, pairs[i][0], strlen(pairs[i][0])));
        assert_string_equal(msc_str_text(&text), pairs[i][1]);
        assert_ok(msc_base64_count(&n, pairs[i][1]));
        assert_int_equal(n, strlen(pairs[i][0]));
        assert_ok(msc_base64_read(bytes, n, pairs[i][1]));
        assert_memory_equal(bytes, pairs[i][0], n);
        msc_str_finish(&text);
    }
}

static void test_base_base64__refused(void **state) {
    static const char *const bad[] = {"Zg", "Zg=a", "Z===", "Zm9v=", "Zm 9", "Zm9\xc3", "=Zg="};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char bytes[16];
        size_t n = 0;
        enum msc_status status = msc_base64_count(&n, bad[i]);
        status = status == MSC_OK ? msc_base64_read(bytes, n, bad[i]) : status;
        assert_int_equal(status, MSC_E_FORMAT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_base64__pairs),
        cmocka_unit_test(test_base_base64__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
