// Strings: appending, shortest forms of numbers, and parsing of numbers, durations and sizes.
// Expected digits come from Python and numpy; some results are compared with strtod's.
#include "base/str.h"

#include "base/alloc.h"
#include "tests/msc_test.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void test_base_str__appends(void **state) {
    (void)state;
    struct msc_str s = {0};
    assert_string_equal(msc_str_text(&s), "");
    assert_null(s.data);
    msc_str_append(&s, "a");
    msc_str_append_n(&s, "bcd", 2);
    msc_str_char(&s, '!');
    msc_str_printf(&s, " %d %s %.2f ", 12, "joints", 1.5);
    msc_str_i64(&s, INT64_MIN);
    msc_str_char(&s, ' ');
    msc_str_i64(&s, INT64_MAX);
    msc_str_char(&s, ' ');
    msc_str_u64(&s, UINT64_MAX);
    msc_str_i64(&s, 0);
    assert_ok(msc_str_status(&s));
    assert_string_equal(msc_str_text(&s), "abc! 12 joints 1.50 -9223372036854775808 "
                                          "9223372036854775807 184467440737095516150");
    assert_int_equal(s.length, strlen(s.data));
    msc_str_clear(&s);
    assert_string_equal(msc_str_text(&s), "");
    for (int i = 0; i < 1000; i++) {
        msc_str_printf(&s, "%03d,", i);
    }
    assert_int_equal(s.length, 4000);
    assert_memory_equal(s.data + 4 * 567, "567,568,", 8);
    msc_str_finish(&s);
    msc_str_finish(&s);
}

static void test_base_str__items(void **state) {
    (void)state;
    struct msc_str s = {0};
    msc_str_item(&s, "a");
    assert_string_equal(msc_str_text(&s), "a");
    msc_str_item(&s, "b c");
    msc_str_item(&s, "d");
    assert_string_equal(msc_str_text(&s), "a, b c, d");
    msc_str_finish(&s);
}

static void test_base_str__take(void **state) {
    (void)state;
    struct msc_str s = {0};
    char *taken = NULL;
    assert_ok(msc_str_take(&taken, &s));
    assert_string_equal(taken, "");
    msc_free(taken);
    msc_str_append(&s, "text");
    assert_ok(msc_str_take(&taken, &s));
    assert_string_equal(taken, "text");
    assert_null(s.data);
    msc_free(taken);

    s.failed = true; // the state after an append that ran out of memory
    msc_str_append(&s, "more");
    assert_string_equal(msc_str_text(&s), "");
    assert_int_equal(msc_str_status(&s), MSC_E_NOMEM);
    assert_int_equal(msc_str_take(&taken, &s), MSC_E_NOMEM);
    assert_false(s.failed);
}

static void check_double(double value, const char *expected) {
    struct msc_str s = {0};
    msc_str_double(&s, value);
    assert_string_equal(msc_str_text(&s), expected);
    msc_str_finish(&s);
}

static void check_float(float value, const char *expected) {
    struct msc_str s = {0};
    msc_str_float(&s, value);
    assert_string_equal(msc_str_text(&s), expected);
    msc_str_finish(&s);
}

// Digits as in Python's repr(); ".0" and the switch to exponents follow %g instead.
static void test_base_str__shortest_double(void **state) {
    (void)state;
    check_double(0.1, "0.1");
    check_double(1.0 / 3, "0.3333333333333333");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(1e-5, "1e-05");
    check_double(1e22, "1e+22");
    check_double(1e23, "1e+23");
    check_double(123456789.125, "123456789.125");
    check_double(100, "100");
    check_double(9007199254740992.0, "9007199254740992");
    check_double(0x1p-1074, "5e-324");
    check_double(0x0.02e055c9a3f6cp-1022, "2.5e-310");
    check_double(DBL_MIN, "2.2250738585072014e-308");
    check_double(-DBL_MAX, "-1.7976931348623157e+308");
    check_double(0, "0");
    check_double(-0.0, "-0");
    check_double(INFINITY, "inf");
    check_double(-INFINITY, "-inf");
    check_double(NAN, "nan");
}

// Digits as in str(numpy.float32(x)).
static void test_base_str__shortest_float(void **state) {
    (void)state;
    check_float(0.1f, "0.1");
    check_float(1.0f / 3, "0.33333334");
    check_float(16777216.0f, "16777216");
    check_float(FLT_MAX, "3.4028235e+38");
    check_float(0x1p-149f, "1e-45");
    check_float(FLT_MIN, "1.1754944e-38");
    check_float(1e-5f, "1e-05");
    check_float(-0.0f, "-0");
    check_float(-INFINITY, "-inf");
    check_float(NAN, "nan");
}

// Pseudo-random bit patterns, written as text, read back to the same bits.
static void test_base_str__round_trip(void **state) {
    (void)state;
    uint64_t bits = 1;
    struct msc_str s = {0};
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double value = 0;
        float single = 0;
        uint32_t half = (uint32_t)(bits >> 32);
        memcpy(&value, &bits, sizeof value);
        memcpy(&single, &half, sizeof single);
        if (isfinite(value)) {
            double back = 0;
            msc_str_clear(&s);
            msc_str_double(&s, value);
            assert_true(msc_parse_double(&back, msc_str_text(&s)));
            assert_memory_equal(&back, &value, sizeof value);
        }
        if (isfinite(single)) {
            msc_str_clear(&s);
            msc_str_float(&s, single);
            float back = strtof(msc_str_text(&s), NULL);
            assert_memory_equal(&back, &single, sizeof single);
        }
    }
    msc_str_finish(&s);
}

// msc_round_decimal agrees with strtod or declines. A quarter of the cases are exact halves
// between two doubles.
static void test_base_str__round_decimal(void **state) {
    (void)state;
    uint64_t bits = 7;
    size_t n_rounded = 0;
    for (int i = 0; i < 200000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        uint64_t mantissa = bits >> (bits >> 8) % 64;
        int exponent = (int)(bits >> 40) % 32 - 30;
        char text[40];
        double value = 0;
        // An odd 54-bit number is exactly between two doubles. So is 25 times such a number with a
        // decimal exponent of -2.
        if (i % 4 == 0) {
            mantissa = ((UINT64_C(1) << 53) | (mantissa >> 11) | 1) * (i % 8 == 0 ? 1 : 25);
            exponent = i % 8 == 0 ? 0 : -2;
        }
        snprintf(text, sizeof text, "%" PRIu64 "e%d", mantissa, exponent);
        if (msc_round_decimal(&value, mantissa, exponent)) {
            double expected = strtod(text, NULL);
            assert_memory_equal(&value, &expected, sizeof value);
            n_rounded++;
        }
    }
    assert_true(n_rounded > 180000);
    double value = 1;
    assert_true(msc_round_decimal(&value, 0, -300) && value == 0);
    assert_false(msc_round_decimal(&value, 1, 23));
    assert_false(msc_round_decimal(&value, UINT64_MAX, -28));
    assert_true(msc_round_decimal(&value, UINT64_MAX, 0) && value == 0x1p64);
}

static void test_base_str__parse_whole(void **state) {
    (void)state;
    int64_t i = 0;
    uint64_t u = 0;
    assert_true(msc_parse_i64(&i, "-9223372036854775808") && i == INT64_MIN);
    assert_true(msc_parse_i64(&i, "9223372036854775807") && i == INT64_MAX);
    assert_true(msc_parse_i64(&i, "-0") && i == 0);
    assert_true(msc_parse_i64(&i, "007") && i == 7);
    assert_true(msc_parse_u64(&u, "18446744073709551615") && u == UINT64_MAX);
    static const char *const bad[] = {"",
                                      "-",
                                      "1 ",
                                      " 1",
                                      "+1",
                                      "1.0",
                                      "0x10",
                                      "--1",
                                      "1e3",
                                      "1-",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    for (size_t n = 0; n < sizeof bad / sizeof bad[0]; n++) {
        assert_false(msc_parse_i64(&i, bad[n]));
    }
    assert_int_equal(i, 7);
    assert_false(msc_parse_u64(&u, "18446744073709551616"));
    assert_false(msc_parse_u64(&u, "-1"));
}

static void test_base_str__parse_double(void **state) {
    (void)state;
    double value = 0;
    assert_true(msc_parse_double(&value, "1.5") && value == 1.5);
    assert_true(msc_parse_double(&value, "-2.5e-3") && value == -0.0025);
    assert_true(msc_parse_double(&value, "5e-324") && value == 0x1p-1074);
    assert_true(msc_parse_double(&value, ".5") && value == 0.5);
    assert_true(msc_parse_double(&value, "1e-999") && value == 0);
    static const char *const bad[] = {"",    " 1", "1 ",    "1,5", "inf", "nan",  "-inf",
                                      "0x1", "1e", "1e999", "-",   ".",   "1.5f", "1.5.2"};
    value = 3;
    for (size_t n = 0; n < sizeof bad / sizeof bad[0]; n++) {
        assert_false(msc_parse_double(&value, bad[n]));
    }
    assert_true(value == 3);
}

static void test_base_str__parse_duration(void **state) {
    static const struct {
        const char *text;
        double seconds;
    } good[] = {
        {"8h", 28800}, {"90m", 5400},  {"30s", 30},    {"1h30m", 5400}, {"45", 45},
        {"0", 0},      {"1.5h", 5400}, {"2d", 172800}, {"0.25", 0.25},  {"1d2h3m4.5s", 93784.5}};
    static const char *const bad[] = {"",      "h",    "-1",  "-8h",    "8 h", "8x", "1h30",
                                      "30m1h", "1h1h", "nan", "1.5.2h", " 8h", "8hh"};
    (void)state;
    double seconds = -7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(msc_parse_duration(&seconds, bad[i]));
    }
    assert_true(seconds == -7);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(msc_parse_duration(&seconds, good[i].text));
        assert_true(seconds == good[i].seconds);
    }
}

static void test_base_str__parse_bytes(void **state) {
    static const struct {
        const char *text;
        uint64_t n_bytes;
    } good[] = {{"512", 512},
                {"512B", 512},
                {"256K", 262144},
                {"64M", 67108864},
                {"4G", 4294967296},
                {"4GB", 4294967296},
                {"4GiB", 4294967296},
                {"1T", 1099511627776},
                {"0", 0},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",
                                      "G",
                                      "-1",
                                      "4X",
                                      "4Gi",
                                      "4iB",
                                      "4GBx",
                                      "1.5G",
                                      "4 G",
                                      "17179869184G",
                                      "18446744073709551616"};
    (void)state;
    uint64_t n_bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(msc_parse_bytes(&n_bytes, bad[i]));
    }
    assert_int_equal(n_bytes, 7);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(msc_parse_bytes(&n_bytes, good[i].text));
        assert_true(n_bytes == good[i].n_bytes);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_str__appends),
        cmocka_unit_test(test_base_str__items),
        cmocka_unit_test(test_base_str__take),
        cmocka_unit_test(test_base_str__shortest_double),
        cmocka_unit_test(test_base_str__shortest_float),
        cmocka_unit_test(test_base_str__round_trip),
        cmocka_unit_test(test_base_str__round_decimal),
        cmocka_unit_test(test_base_str__parse_whole),
        cmocka_unit_test(test_base_str__parse_double),
        cmocka_unit_test(test_base_str__parse_duration),
        cmocka_unit_test(test_base_str__parse_bytes),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
