// Numbers are read and written with a decimal point under a locale that has a decimal comma.
// Expected texts are written by hand.
#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

#include <locale.h>
#include <stdio.h>

static int use_comma(void **state) {
    (void)state;
    setlocale(LC_ALL, "de_DE.UTF-8");
    return 0;
}

static int use_point(void **state) {
    (void)state;
    setlocale(LC_ALL, "C");
    return 0;
}

static void skip_without_comma(void) {
    char text[16];
    snprintf(text, sizeof text, "%.1f", 1.5);
    if (strcmp(text, "1,5") != 0) {
        print_message("skipped: no locale with a decimal comma\n");
        skip();
    }
}

static void test_base_locale__numbers(void **state) {
    (void)state;
    skip_without_comma();
    struct msc_str s = {0};
    msc_str_double(&s, 0.1);
    msc_str_char(&s, ' ');
    msc_str_float(&s, 0.1f);
    msc_str_printf(&s, " %.2f", 2.25);
    assert_string_equal(msc_str_text(&s), "0.1 0.1 2.25");
    double value = 0;
    assert_true(msc_parse_double(&value, "1.5"));
    assert_true(value == 1.5);
    assert_false(msc_parse_double(&value, "1,5"));
    assert_true(msc_parse_duration(&value, "1.5h"));
    assert_true(value == 5400);
    msc_str_finish(&s);
    // Checks that the library has restored the caller's locale, which has a decimal comma.
    skip_without_comma();
}

static void test_base_locale__json(void **state) {
    (void)state;
    skip_without_comma();
    static const char text[] = "{\"a\":[1.5,-2.25e-300]}";
    cJSON *tree = NULL;
    struct msc_str s = {0};
    assert_ok(msc_json_parse(&tree, text, sizeof text - 1, "t"));
    msc_json_write(&s, tree);
    assert_string_equal(msc_str_text(&s), text);
    msc_str_finish(&s);
    cJSON_Delete(tree);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_base_locale__numbers, use_comma, use_point),
        cmocka_unit_test_setup_teardown(test_base_locale__json, use_comma, use_point),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
