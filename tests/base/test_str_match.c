// Glob patterns, and suggestions for misspelt names. Expected answers are written by hand.
#include "base/str.h"

#include "tests/msc_test.h"

static void test_base_str_match__glob(void **state) {
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "conv1", true},
        {"conv?", "conv1", true},
        {"conv?", "conv", false},
        {"conv*", "conv", true},
        {"conv*", "aconv", false},
        {"*conv", "a/conv", true},
        {"*a*b", "xaxbxab", true},
        {"*a*b", "xaxbxa", false},
        {"a**b", "ab", true},
        {"conv:0", "conv:0", true},
        {"Conv", "conv", false},
        {"if_1/*/conv", "if_1/then/conv", true},
        {"?", "", false},
        {"*?", "a", true},
        {"a*", "", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (msc_glob_match(cases[i].pattern, cases[i].text) != cases[i].matches) {
            fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
        }
    }
}

// Matching a pattern with many stars does not take exponential time.
static void test_base_str_match__glob_is_fast(void **state) {
    (void)state;
    char text[5001];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(msc_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_base_str_match__suggest(void **state) {
    static const char *const keys[] = {"population", "mutation", "elite", "seed", "type"};
    (void)state;
    assert_string_equal(msc_suggest("populaton", keys, 5), "population");
    assert_string_equal(msc_suggest("mutations", keys, 5), "mutation");
    assert_string_equal(msc_suggest("sede", keys, 5), "seed");
    assert_string_equal(msc_suggest("tpye", keys, 5), "type");
    assert_null(msc_suggest("frobnicate", keys, 5));
    assert_null(msc_suggest("", keys, 5));
    assert_null(msc_suggest("x", keys, 5));
    assert_null(msc_suggest("seed", keys, 0));
    char longer[200];
    memset(longer, 'q', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_null(msc_suggest(longer, keys, 5));
    const char *const long_keys[] = {longer, "seeds"};
    assert_string_equal(msc_suggest("seed", long_keys, 2), "seeds");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_str_match__glob),
        cmocka_unit_test(test_base_str_match__glob_is_fast),
        cmocka_unit_test(test_base_str_match__suggest),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
