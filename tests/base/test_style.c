// Terminal styles in text and tables. Control bytes in names must not act as styles.
#include "base/style.h"

#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "tests/msc_test.h"

#include <stdio.h>

static void check(struct msc_str *text, const char *expected) {
    struct msc_str shown = {0};
    msc_style_show(&shown, text);
    assert_string_equal(msc_str_text(&shown), expected);
    msc_str_finish(&shown);
    msc_str_finish(text);
}

static void write_name(struct msc_str *out, enum msc_style style, const char *name) {
    msc_style_begin(out, style);
    msc_shown_append(out, name);
    msc_style_end(out);
}

static void test_base_style__shown(void **state) {
    (void)state;
    struct msc_str text = {.has_styles = true};
    write_name(&text, MSC_STYLE_HEADING, "a");
    write_name(&text, MSC_STYLE_BEST, "b");
    write_name(&text, MSC_STYLE_FAINT, "c");
    msc_str_append(&text, " d\n");
    write_name(&text, MSC_STYLE_WARNING, "e");
    write_name(&text, MSC_STYLE_ERROR, "f");
    check(&text, "\033[1ma\033[0m\033[1;32mb\033[0m\033[2mc\033[0m d\n"
                 "\033[33me\033[0m\033[1;31mf\033[0m");
}

static void test_base_style__not_asked_for(void **state) {
    (void)state;
    struct msc_str text = {0};
    write_name(&text, MSC_STYLE_BEST, "b");
    assert_string_equal(msc_str_text(&text), "b");
    // Without styles, style marks are escaped like any other control byte.
    msc_str_append(&text, "\x01\x02\x1b");
    check(&text, "b\\x01\\x02\\x1b");
}

// Control bytes in a name are escaped, so none acts as a style mark.
static void test_base_style__names(void **state) {
    (void)state;
    struct msc_str text = {.has_styles = true};
    char name[32], expected[200] = "\033[1;32m";
    size_t n = strlen(expected);
    for (int c = 1; c < 32; c++) {
        const char *usual = c == '\t' ? "\\t" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : NULL;
        name[c - 1] = (char)c;
        n += (size_t)(usual ? sprintf(expected + n, "%s", usual)
                            : sprintf(expected + n, "\\x%02x", (unsigned)c));
    }
    name[31] = '\0';
    strcpy(expected + n, "\033[0m");
    write_name(&text, MSC_STYLE_BEST, name);
    check(&text, expected);
}

// Style codes do not count towards the width of a column.
static void test_base_style__table(void **state) {
    (void)state;
    struct msc_str text = {.has_styles = true};
    struct msc_table table = {.n_columns = 2};
    msc_table_add(&table, "");
    msc_table_add(&table, "loss");
    msc_table_add_styled(&table, "trial 12", MSC_STYLE_BEST);
    msc_table_add_styled(&table, "0.5", MSC_STYLE_BEST);
    msc_table_add(&table, "trial 3");
    msc_table_add(&table, "0.25");
    msc_table_write(&text, &table, 0);
    msc_table_finish(&table);
    check(&text, "          \033[1mloss\033[0m\n"
                 "\033[1;32mtrial 12\033[0m   \033[1;32m0.5\033[0m\n"
                 "trial 3   0.25\n");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_style__shown),
        cmocka_unit_test(test_base_style__not_asked_for),
        cmocka_unit_test(test_base_style__names),
        cmocka_unit_test(test_base_style__table),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
