// Logging: levels and their names, messages of one line, and control characters. Expected lines are
// written by hand.
#include "base/log.h"

#include "tests/msc_test.h"

struct captured {
    int n_lines;
    enum msc_log_level level;
    char line[4096];
};

static void capture(void *payload, enum msc_log_level level, const char *line) {
    struct captured *c = payload;
    c->n_lines++;
    c->level = level;
    assert_true(strlen(line) < sizeof c->line);
    strcpy(c->line, line);
}

static void test_base_log__levels(void **state) {
    (void)state;
    struct captured c = {0};
    struct msc_log log = {.level = MSC_LOG_INFO, .write = capture, .payload = &c};
    msc_log(&log, MSC_LOG_INFO, "%d sites, %s", 3, "8 tasks");
    assert_int_equal(c.n_lines, 1);
    assert_int_equal(c.level, MSC_LOG_INFO);
    assert_string_equal(c.line, "3 sites, 8 tasks");
    msc_log(&log, MSC_LOG_DEBUG, "hidden");
    assert_int_equal(c.n_lines, 1);
    msc_log(&log, MSC_LOG_ERROR, "shown");
    assert_int_equal(c.n_lines, 2);
    msc_log(NULL, MSC_LOG_ERROR, "silent");
    log.write = NULL;
    msc_log(&log, MSC_LOG_ERROR, "silent");
}

// The level names that the configuration key `verbose` and the option --log-level accept.
static void test_base_log__names_of_levels(void **state) {
    (void)state;
    static const enum msc_log_level expected[] = {MSC_LOG_DEBUG,   MSC_LOG_INFO,    MSC_LOG_INFO,
                                                  MSC_LOG_WARNING, MSC_LOG_WARNING, MSC_LOG_ERROR,
                                                  MSC_LOG_ERROR};
    char names[] = MSC_LOG_LEVEL_NAMES;
    size_t n = 0;
    for (char *name = strtok(names, "|"); name; name = strtok(NULL, "|"), n++) {
        assert_true(n < sizeof expected / sizeof expected[0]);
        assert_string_equal(msc_log_level_name(n), name);
        assert_int_equal(msc_log_level_at(n), expected[n]);
    }
    assert_int_equal(n, sizeof expected / sizeof expected[0]);
}

static void test_base_log__one_line(void **state) {
    (void)state;
    struct captured c = {0};
    struct msc_log log = {.level = MSC_LOG_INFO, .write = capture, .payload = &c};
    msc_log(&log, MSC_LOG_INFO, "first\nsecond\n");
    assert_string_equal(c.line, "first second");
    for (size_t length = 500; length < 3000; length += length < 530 ? 1 : 400) {
        char text[3001];
        memset(text, 'y', length);
        text[length] = '\0';
        msc_log(&log, MSC_LOG_INFO, "%s\n", text);
        assert_string_equal(c.line, text);
    }
}

static void test_base_log__is_safe_to_show(void **state) {
    (void)state;
    struct captured c = {0};
    struct msc_log log = {.level = MSC_LOG_INFO, .write = capture, .payload = &c};
    msc_log(&log, MSC_LOG_INFO, "input %s: 3 samples", "x\x1b[2J\xc2\x9b\xe2\x80\xae\xff");
    assert_string_equal(c.line, "input x\\x1b[2J\\u009b\\u202e\\xff: 3 samples");
    char text[601], expected[2401] = "";
    memset(text, '\a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 600; i++) {
        strcat(expected, "\\x07");
    }
    msc_log(&log, MSC_LOG_INFO, "%s", text);
    assert_string_equal(c.line, expected);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_log__levels),
        cmocka_unit_test(test_base_log__names_of_levels),
        cmocka_unit_test(test_base_log__one_line),
        cmocka_unit_test(test_base_log__is_safe_to_show),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
