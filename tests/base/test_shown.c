// Texts made safe to show: control characters, bidirectional marks and bad UTF-8 are escaped. The
// characters to escape come from UAX 9 and RFC 3629, the quoting rules from POSIX.
#include "base/shown.h"

#include "base/str.h"
#include "tests/msc_test.h"

static void check(const char *text, const char *expected) {
    char cut[256];
    struct msc_str out = {0};
    msc_shown_append(&out, text);
    assert_string_equal(msc_str_text(&out), expected);
    // Escaping is idempotent.
    msc_str_clear(&out);
    msc_shown_append(&out, expected);
    assert_string_equal(msc_str_text(&out), expected);
    msc_str_finish(&out);
    assert_int_equal(msc_shown_copy(cut, sizeof cut, text), strlen(expected));
    assert_string_equal(cut, expected);
}

static void test_base_shown__ordinary_text_stays(void **state) {
    (void)state;
    check("", "");
    check("layer1/conv.0:weight \\ \"a\"", "layer1/conv.0:weight \\ \"a\"");
    check("sch\xc3\xb6n \xe5\xb1\x82 \xf0\x9f\x98\x80",
          "sch\xc3\xb6n \xe5\xb1\x82 \xf0\x9f\x98\x80");
    check("\xc2\xa0\xe2\x80\x8d\xef\xbf\xbd", "\xc2\xa0\xe2\x80\x8d\xef\xbf\xbd");
}

static void test_base_shown__controls(void **state) {
    (void)state;
    check("a\x1b[2Jb", "a\\x1b[2Jb");
    check("\a\b\t\n\v\f\r\x01\x1f\x7f", "\\x07\\x08\\t\\n\\x0b\\x0c\\r\\x01\\x1f\\x7f");
    check("\xc2\x80\xc2\x9b"
          "2J\xc2\x9f",
          "\\u0080\\u009b2J\\u009f");
}

// The marks of the Unicode bidirectional algorithm (UAX 9, table 3), and the line and paragraph
// separators.
static void test_base_shown__direction_and_lines(void **state) {
    (void)state;
    check("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f");
    check("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae",
          "\\u202a\\u202b\\u202c\\u202d\\u202e");
    check("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u2066\\u2067\\u2068\\u2069");
    check("\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029");
}

// Byte sequences that RFC 3629 forbids: invalid bytes, cut and overlong sequences, surrogates,
// and code points above U+10FFFF.
static void test_base_shown__no_utf8(void **state) {
    (void)state;
    check("\x9b"
          "2J",
          "\\x9b2J");
    check("a\xff\xfe", "a\\xff\\xfe");
    check("\xc3", "\\xc3");
    check("\xe5\xb1", "\\xe5\\xb1");
    check("\xe5"
          "a",
          "\\xe5"
          "a");
    check("\xc0\x9b\xe0\x82\x9b", "\\xc0\\x9b\\xe0\\x82\\x9b");
    check("\xed\xa0\x80", "\\xed\\xa0\\x80");
    check("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
}

static void test_base_shown__lines(void **state) {
    (void)state;
    struct msc_str out = {0};
    msc_shown_append_lines(&out, "one\n\x1b[2Jtwo\r\n");
    assert_string_equal(msc_str_text(&out), "one\n\\x1b[2Jtwo\\r\n");
    msc_str_finish(&out);
}

static void test_base_shown__json(void **state) {
    (void)state;
    struct msc_str out = {0};
    msc_shown_append_json(&out, "{\n  \"a\x7f\xc2\x9b\xe2\x80\xae\": \"\\u001b\xc3\xb6\"\n}\n");
    assert_string_equal(msc_str_text(&out),
                        "{\n  \"a\\u007f\\u009b\\u202e\": \"\\u001b\xc3\xb6\"\n}\n");
    msc_str_clear(&out);
    msc_shown_append_json(&out, "\"\x9b\"");
    assert_string_equal(msc_str_text(&out), "\"\\ufffd\"");
    msc_str_finish(&out);
}

static void test_base_shown__string(void **state) {
    (void)state;
    struct msc_str out = {0};
    msc_shown_append_string(&out, "a \"\xc3\xb6\\\"\n\xc3");
    assert_string_equal(msc_str_text(&out), "\"a \\\"\xc3\xb6\\\\\\\"\\n\\ufffd\"");
    msc_str_finish(&out);
}

static void test_base_shown__cut_at_a_character(void **state) {
    (void)state;
    char out[8];
    assert_int_equal(msc_shown_copy(out, sizeof out,
                                    "abcd\x1b"
                                    "e"),
                     9);
    assert_string_equal(out, "abcd");
    assert_int_equal(msc_shown_copy(out, sizeof out, "abcdef\xc3\xb6"), 8);
    assert_string_equal(out, "abcdef");
}

// POSIX, Shell Command Language, 2.2.2: single quotes preserve every character except a single
// quote.
static void test_base_shown__a_path_is_a_word_of_a_shell(void **state) {
    (void)state;
    static const char *const paths[][2] = {
        {"a/b-1_2.jsonl", "a/b-1_2.jsonl"},
        {"", "''"},
        {"--serve", "./--serve"},
        {"-a b", "./'-a b'"},
        {"my w/r$(touch pwn) 7.jsonl", "'my w/r$(touch pwn) 7.jsonl'"},
        {"it's", "'it'\\''s'"},
        {"\xc3\xb6~*?#", "'\xc3\xb6~*?#'"},
        {"a\nb", "'a\\nb'"},
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct msc_str out = {0};
        msc_shown_append_path(&out, paths[i][0]);
        assert_string_equal(msc_str_text(&out), paths[i][1]);
        msc_str_finish(&out);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_shown__ordinary_text_stays),
        cmocka_unit_test(test_base_shown__controls),
        cmocka_unit_test(test_base_shown__direction_and_lines),
        cmocka_unit_test(test_base_shown__no_utf8),
        cmocka_unit_test(test_base_shown__lines),
        cmocka_unit_test(test_base_shown__json),
        cmocka_unit_test(test_base_shown__string),
        cmocka_unit_test(test_base_shown__cut_at_a_character),
        cmocka_unit_test(test_base_shown__a_path_is_a_word_of_a_shell),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
