// Names of metrics for people, and values with units. Expected texts were written by hand.
#include "results/units.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

static void check_value(const char *column, double value, const char *expected) {
    struct msc_str text = {0};
    msc_unit_value(&text, column, value);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void check_name(const char *column, const char *expected) {
    struct msc_str text = {0};
    msc_unit_name(&text, column);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void check_phrase(const char *column, const char *expected) {
    struct msc_str text = {0};
    msc_unit_phrase(&text, column);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void check_digits(const char *column, double value, int digits, const char *expected) {
    struct msc_str text = {0};
    msc_unit_digits(&text, column, value, digits);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void test_values(void **state) {
    (void)state;
    check_value("accuracy", 0.99074, "99.07 %");
    check_value("validation.float_top1_kept", 1, "100 %");
    check_value("size_bytes", 0, "0 bytes");
    check_value("size_bytes", 999, "999 bytes");
    check_value("size_bytes", 1000, "1 KB");
    check_value("runtime.file_bytes", 11810, "11.8 KB");
    check_value("size_bytes", 999400, "999 KB");
    check_value("size_bytes", 999600, "1 MB");
    check_value("size_bytes", 5e12, "5e+03 GB");
    check_value("latency_us", 13.84, "13.8 µs");
    check_value("latency_us", 1487, "1.49 ms");
    check_value("latency_us", 2.5e6, "2.5 s");
    check_value("macs", 452864, "453 thousand");
    check_value("bit_ops", 463732736, "464 million");
    check_value("bit_ops", -2e9, "-2 billion");
    check_value("bit_ops", 1.69e12, "1.69 trillion");
    check_value("distill_loss", 3.0304e-5, "3.03e-05");
    check_value("distill_loss", INFINITY, "inf");
    check_value("size_bytes", INFINITY, "inf");
    check_value("own_metric", 42, "42");
    check_value("own_metric", NAN, "–");
}

static void test_digits(void **state) {
    (void)state;
    check_digits("size_ratio", 0.29, 6, "29 %");
    check_digits("size_ratio", 0.29000001, 9, "29.000001 %");
    check_digits("size_bytes", 123456, 6, "123.456 KB");
    check_digits("distill_loss", 0.00123456789, 6, "0.00123457");
    check_digits("latency_us", 0.5, 2, "0.5 µs");
}

static void test_phrases(void **state) {
    (void)state;
    check_phrase("size_ratio", "relative size");
    check_phrase("runtime.latency_us", "time of a run (in the runtime)");
    check_phrase("own\nmetric", "own\\nmetric");
    assert_true(msc_unit_has("validation.accuracy"));
    assert_false(msc_unit_has("distill_loss"));
    assert_false(msc_unit_has("own"));
}

static void test_names(void **state) {
    (void)state;
    check_name("accuracy", "Accuracy");
    check_name("validation.accuracy", "Accuracy (held-back samples)");
    check_name("runtime.latency_us", "Time of a run (in the runtime)");
    check_name("runtime.validation.distill_loss", "Loss (held-back samples, in the runtime)");
    check_name("own.accuracy", "own.accuracy");
    check_name("own_metric", "own_metric");
    check_name("validation.own_metric", "validation.own_metric");
    check_name("", "");
    assert_string_equal(msc_unit_metric("runtime.validation.accuracy"), "accuracy");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_phrases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
