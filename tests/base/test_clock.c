// The monotonic clock, and UTC times as text: formatted, and read back. Expected texts come from
// date(1).
#include "base/clock.h"

#include "tests/msc_test.h"

#include <math.h>
#include <time.h>

static void test_base_clock__monotonic(void **state) {
    (void)state;
    uint64_t before = msc_clock_ns();
    struct timespec pause = {.tv_nsec = 2000000};
    nanosleep(&pause, NULL);
    uint64_t after = msc_clock_ns();
    assert_true(after - before >= 2000000);
    assert_true(msc_clock_seconds() >= (double)after / 1e9);
    assert_true(fabs(msc_clock_wall_seconds() - (double)time(NULL)) < 5);
}

// Expected texts: date -u -d @SECONDS +%FT%TZ.
static void test_base_clock__format(void **state) {
    (void)state;
    char text[MSC_CLOCK_TEXT_BYTES];
    assert_string_equal(msc_clock_format(text, 0), "1970-01-01T00:00:00Z");
    assert_string_equal(msc_clock_format(text, 1795233906.75), "2026-11-21T04:05:06Z");
    assert_string_equal(msc_clock_format(text, 1709210096), "2024-02-29T12:34:56Z");
    assert_string_equal(msc_clock_format(text, -0.5), "1969-12-31T23:59:59Z");
    assert_string_equal(msc_clock_format(text, 1e300), "unknown time");
    assert_string_equal(msc_clock_format(text, NAN), "unknown time");
}

static void test_base_clock__parse(void **state) {
    (void)state;
    double seconds = -1;
    assert_true(msc_clock_parse(&seconds, "2026-11-21T04:05:06Z"));
    assert_true(seconds == 1795233906);
    assert_true(msc_clock_parse(&seconds, "2024-02-29T12:34:56Z"));
    assert_true(seconds == 1709210096);
    assert_true(msc_clock_parse(&seconds, "1969-12-31T23:59:59Z"));
    assert_true(seconds == -1);
    static const char *const none[] = {
        "",
        "2026-02-30T00:00:00Z",
        "2026-11-21T04:05:06",
        "2026-11-21T04:05:06Zulu",
        "2026-11-21T24:05:06Z",
        "unknown time",
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_false(msc_clock_parse(&seconds, none[i]));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_clock__monotonic),
        cmocka_unit_test(test_base_clock__format),
        cmocka_unit_test(test_base_clock__parse),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
