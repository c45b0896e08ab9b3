// Parsing the numbers of a record line, compared with strtod on the same text.
#include "records/record_cursor.h"

#include "base/rng.h"
#include "base/str.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

enum { N_NUMBERS = 20000 };

// Reads the number `text`, followed by `after`. Returns the number of characters read, or 0 if it
// is not a number.
static size_t read_number(double *out, const char *text, const char *after) {
    char line[128];
    int n = snprintf(line, sizeof line, "%s%s", text, after);
    assert_in_range(n, 1, sizeof line - 1);
    struct msc_record_cursor c = {.at = line, .end = line + n, .is_good = true};
    *out = msc_record__read_number(&c);
    return c.is_good ? (size_t)(c.at - line) : 0;
}

static void check(const char *text) {
    static const char *const ends[] = {",\"x\":1", "}", "]", ""};
    double expected = 0.0;
    bool is_number = msc_parse_double(&expected, text);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        double value = NAN;
        size_t n_read = read_number(&value, text, ends[i]);
        if (is_number) {
            assert_int_equal(n_read, strlen(text));
            assert_memory_equal(&value, &expected, sizeof value);
        } else {
            assert_true(n_read < strlen(text)); // the text only begins with a number
        }
    }
}

static size_t put_digits(char *at, struct msc_rng *rng, size_t n) {
    for (size_t i = 0; i < n; i++) {
        at[i] = (char)('0' + msc_rng_below(rng, 10));
    }
    return n;
}

static void test_records_record_cursor__numbers(void **state) {
    static const char *const texts[] = {"0",
                                        "9",
                                        "-0",
                                        "-7",
                                        "10",
                                        "0.5",
                                        "00000000",
                                        "0.00000000000000000000125",
                                        "12345678",
                                        "123456789012345678",
                                        "1234567890123456789",
                                        "18446744073709551615",
                                        "99999999999999999999",
                                        "0.1234567890123456789",
                                        "1234567.8",
                                        "12345678.12345678",
                                        "1e300",
                                        "-1.5E-300",
                                        "1e400",
                                        "-",
                                        ".5",
                                        "5.",
                                        "1..2",
                                        "--1",
                                        "1e",
                                        "x",
                                        "1234567x"};
    struct msc_rng rng;
    (void)state;
    msc_rng_seed(&rng, 18, 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check(texts[i]);
    }
    for (int i = 0; i < N_NUMBERS; i++) {
        char text[64] = "-";
        size_t n = msc_rng_below(&rng, 2);
        n += put_digits(text + n, &rng, 1 + msc_rng_below(&rng, 20));
        if (msc_rng_below(&rng, 3) > 0) {
            text[n++] = '.';
            n += put_digits(text + n, &rng, 1 + msc_rng_below(&rng, 16));
        }
        text[n] = '\0';
        check(text);
    }
}

// Digits are read eight at a time. A non-digit at any position among the eight is found.
static void test_records_record_cursor__no_digits(void **state) {
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        for (size_t place = 1; place < 16; place++) {
            char text[] = "1234567812345678";
            double value = NAN;
            text[place] = (char)byte;
            bool is_digit = byte >= '0' && byte <= '9', is_end = strchr(",}]", byte) != NULL;
            bool is_power = strchr("eE", byte) && place < 15;
            size_t n_read = read_number(&value, text, "");
            if (is_end) {
                assert_int_equal(n_read, place);
            } else if (is_digit || byte == '.') {
                assert_int_equal(n_read, 16);
            } else if (!is_power) {
                // At most the characters before the bad byte are read as a number.
                assert_true(n_read <= place);
            }
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_record_cursor__numbers),
        cmocka_unit_test(test_records_record_cursor__no_digits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
