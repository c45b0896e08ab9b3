// UTF-8 decoding, checked against table 3-7 of the Unicode standard and the sequences that RFC
// 3629 forbids.
#include "base/utf8.h"

#include "tests/msc_test.h"

#include <stdbool.h>

static bool is_good(const char *text, size_t length) {
    return msc_utf8_length(text, length) == length;
}

// Each lead byte with each second byte, followed by valid bytes, according to table 3-7.
static void test_base_utf8__well_formed_sequences(void **state) {
    static const struct {
        unsigned first, last, low, high; // ranges of the lead byte and of the second byte
        size_t n;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    (void)state;
    for (unsigned lead = 0x80; lead < 0x100; lead++) {
        for (unsigned second = 0; second < 0x100; second++) {
            const char text[] = {(char)lead, (char)second, (char)0x80, (char)0xbf, 0};
            size_t n = 0;
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                bool is_row = lead >= rows[i].first && lead <= rows[i].last;
                n = is_row && second >= rows[i].low && second <= rows[i].high ? rows[i].n : n;
            }
            uint32_t code;
            assert_int_equal(msc_utf8_next(&code, text, 4), n);
            for (size_t length = 0; length < n; length++) {
                assert_int_equal(msc_utf8_next(&code, text, length), 0); // the sequence is cut off
            }
        }
    }
}

static void test_base_utf8__code_points(void **state) {
    static const struct {
        const char *text;
        uint32_t code;
    } rows[] = {{"$", 0x24},
                {"\xc2\xa3", 0xa3},
                {"\xe2\x82\xac", 0x20ac},
                {"\xef\xbf\xbf", 0xffff},
                {"\xf0\x90\x8d\x88", 0x10348},
                {"\xf4\x8f\xbf\xbf", 0x10ffff}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t code = 0;
        size_t length = strlen(rows[i].text);
        assert_int_equal(msc_utf8_next(&code, rows[i].text, length), length);
        assert_int_equal(code, rows[i].code);
    }
}

static void test_base_utf8__length_is_that_of_the_good_part(void **state) {
    (void)state;
    assert_int_equal(msc_utf8_length("", 0), 0);
    assert_true(is_good("a\n\x7f\xc3\xb6\xf0\x9f\x98\x80", 9));
    assert_int_equal(msc_utf8_length("8\0zzz", 5), 1);
    assert_int_equal(msc_utf8_length("a\xc3", 2), 1);
    assert_int_equal(msc_utf8_length("ab\xed\xa0\x80", 5), 2);
    assert_int_equal(msc_utf8_length("\xc0\x80", 2), 0);
    // The second byte is outside the given length.
    assert_int_equal(msc_utf8_length("\xc3\xb6", 1), 0);
}

static void test_base_utf8__errors_name_the_place(void **state) {
    (void)state;
    assert_ok(msc_utf8_check("a", 1, "it"));
    assert_int_equal(msc_utf8_check("abc\xff", 4, "it"), MSC_E_FORMAT);
    assert_message("it: byte 3 is 0xff, which is not UTF-8");
    assert_int_equal(msc_utf8_check("a\0b", 3, "it"), MSC_E_FORMAT);
    assert_message("it: byte 1 is NUL");
    assert_ok(msc_utf8_check_file("a,b\r\n", 5, "t.csv"));
    assert_int_equal(msc_utf8_check_file("a,b\r\n\xc3\xb6,\xe9\n", 10, "t.csv"), MSC_E_FORMAT);
    assert_message("t.csv:2:3: byte 0xe9 is not UTF-8");
    assert_int_equal(msc_utf8_check_file("a\n8\0zzz", 7, "t.csv"), MSC_E_FORMAT);
    assert_message("t.csv:2:2: a NUL byte");
    assert_int_equal(msc_utf8_check_file("\xff\xfe"
                                         "a\0",
                                         4, "t.csv"),
                     MSC_E_FORMAT);
    assert_message("t.csv:1:1: this is UTF-16");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_utf8__well_formed_sequences),
        cmocka_unit_test(test_base_utf8__code_points),
        cmocka_unit_test(test_base_utf8__length_is_that_of_the_good_part),
        cmocka_unit_test(test_base_utf8__errors_name_the_place),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
