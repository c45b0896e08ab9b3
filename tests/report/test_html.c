// Text from files is escaped in pages, whatever it contains. The expected HTML and JSON are written
// out here.
#include "report/html.h"

#include "base/json.h"
#include "tests/msc_test.h"

static void assert_text(const char *text, const char *expected) {
    struct msc_str out = {0};
    msc_html_text(&out, text);
    assert_string_equal(msc_str_text(&out), expected);
    msc_str_finish(&out);
}

static void test_report_html__escapes_what_html_takes_for_its_own(void **state) {
    (void)state;
    assert_text("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;");
    assert_text("a\" onload='x' & b", "a&quot; onload=&#39;x&#39; &amp; b");
    assert_text("&amp;", "&amp;amp;");
    assert_text("schön", "schön");
}

static void test_report_html__shows_control_characters(void **state) {
    (void)state;
    assert_text("a\nb\x1b[2J", "a\\nb\\x1b[2J");
    assert_text("\u202Eevil", "\\u202eevil");
    assert_text("\xff", "\\xff");
}

static void test_report_html__a_long_name_loses_its_middle(void **state) {
    (void)state;
    char name[10001];
    struct msc_str out = {0};
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    name[0] = '<';
    name[sizeof name - 2] = '>';
    msc_html_name(&out, name);
    const char *text = msc_str_text(&out);
    assert_int_equal(strncmp(text, "&lt;xxx", 7), 0);
    assert_string_equal(text + out.length - 7, "xxx&gt;");
    assert_in_range(out.length, 120, 130);
    assert_non_null(strstr(text, "…"));
    msc_str_finish(&out);
}

// Characters that could end the script element, or be read as markup, are escaped. JSON readers get
// the original text.
static void test_report_html__json_cannot_leave_its_element(void **state) {
    (void)state;
    static const char text[] = "</script><!-- & \u2028\u2029 \"\\ \x1b";
    struct msc_str out = {0};
    cJSON *object = cJSON_CreateObject(), *again = NULL;
    assert_ok(msc_json_add_text(object, text, text));
    assert_ok(msc_html_json(&out, object));
    assert_null(strpbrk(msc_str_text(&out), "<>&"));
    assert_null(strstr(msc_str_text(&out), "\u2028"));
    assert_null(strstr(msc_str_text(&out), "\u2029"));
    assert_ok(msc_json_parse(&again, msc_str_text(&out), out.length, "json"));
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(again, text)->valuestring, text);
    cJSON_Delete(again);
    cJSON_Delete(object);
    msc_str_finish(&out);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_html__escapes_what_html_takes_for_its_own),
        cmocka_unit_test(test_report_html__shows_control_characters),
        cmocka_unit_test(test_report_html__a_long_name_loses_its_middle),
        cmocka_unit_test(test_report_html__json_cannot_leave_its_element),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
