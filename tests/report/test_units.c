// Names of metrics for people, and values with units. Expected texts were written by hand.
#include "report/units.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

static void expect_value(const char *column, double value, const char *expected) {
    struct msc_str text = {0};
    msc_unit_value(&text, column, value);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void expect_name(const char *column, const char *expected) {
    struct msc_str text = {0};
    msc_unit_name(&text, column);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void test_values(void **state) {
    (void)state;
    expect_value("accuracy", 0.99074, "99.07 %");
    expect_value("size_bytes", 0, "0 bytes");
    expect_value("size_bytes", 999, "999 bytes");
    expect_value("size_bytes", 1000, "1 KB");
    expect_value("runtime.file_bytes", 11810, "11.8 KB");
    expect_value("size_bytes", 999400, "999 KB");
    expect_value("size_bytes", 999600, "1 MB");
    expect_value("size_bytes", 5e12, "5e+03 GB");
    expect_value("latency_us", 13.84, "13.8 µs");
    expect_value("latency_us", 1487, "1.49 ms");
    expect_value("latency_us", 2.5e6, "2.5 s");
    expect_value("macs", 452864, "453 thousand");
    expect_value("bit_ops", 463732736, "464 million");
    expect_value("bit_ops", -2e9, "-2 billion");
    expect_value("distill_loss", 3.0304e-5, "3.03e-05");
    expect_value("distill_loss", INFINITY, "inf");
    expect_value("size_bytes", INFINITY, "inf");
    expect_value("own_metric", 42, "42");
    expect_value("own_metric", NAN, "–");
}

static void test_names(void **state) {
    (void)state;
    expect_name("accuracy", "Accuracy");
    expect_name("validation.accuracy", "Accuracy (held-back samples)");
    expect_name("runtime.latency_us", "Time of a run (in the runtime)");
    expect_name("runtime.validation.distill_loss", "Loss (held-back samples, in the runtime)");
    expect_name("own.accuracy", "own.accuracy");
    expect_name("own_metric", "own_metric");
    expect_name("validation.own_metric", "validation.own_metric");
    expect_name("", "");
    assert_string_equal(msc_unit_metric("runtime.validation.accuracy"), "accuracy");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
