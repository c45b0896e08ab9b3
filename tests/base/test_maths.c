// `exp` and `log`: results are exact to one unit in the last place, and have the same bits with
// every compiler. Expected values come from mpmath.
#include "base/maths.h"

#include "base/hash.h"
#include "base/rng.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

// Expected values: mpmath with 200 bits, rounded to the nearest double: float(mpmath.exp(x)),
// float(mpmath.log(x)).
struct row {
    double x, expected;
};

static const struct row exponentials[] = {
    {0.0, 1.0},
    {-0.0, 1.0},
    {-0x1.7490000000000p+9, 0x0.0000000000001p-1022},
    {-0x1.6240000000000p+9, 0x0.e6cf6d08897acp-1022},
    {-0x1.2c40000000000p+8, 0x1.c758233102acep-434},
    {-0x1.25e4f7b2737fap+5, 0x1.0000000000003p-53},
    {-0x1.5000000000000p+3, 0x1.cdfc263f6a0bap-16},
    {-0x1.8000000000000p+0, 0x1.c8f87724b5c1dp-3},
    {-0x1.62e42fefa39eep-2, 0x1.6a09e667f3bcdp-1},
    {-0x1.12e0be826d695p-30, 0x1.fffffff768fa1p-1},
    {0x1.999999999999ap-4, 0x1.1aec7b35a00d4p+0},
    {0x1.0000000000000p+0, 0x1.5bf0a8b145769p+1},
    {0x1.4800000000000p+3, 0x1.b9ea2aed2a0f1p+14},
    {0x1.62e0000000000p+9, 0x1.ef85a11e73f2dp+1023},
    {-746.0, 0.0},
    {-1e300, 0.0},
    {710.0, INFINITY},
    {-INFINITY, 0.0},
    {INFINITY, INFINITY},
};

static const struct row logarithms[] = {
    {1.0, 0.0},
    {0x0.0000000000001p-1022, -0x1.74385446d71c3p+9},
    {0x1.56e1fc2f8f359p-997, -0x1.5963447f87fb5p+9},
    {0x1.12e0be826d695p-30, -0x1.4b927f32bffb8p+4},
    {0x1.3333333333333p-2, -0x1.34378fcbda721p+0},
    {0x1.6a09e667f3bccp-1, -0x1.62e42fefa39f1p-2},
    {0x1.6a09e667f3bcdp-1, -0x1.62e42fefa39eep-2},
    {0x1.ffffde7210be9p-1, -0x1.0c6f82d74d230p-20},
    {0x1.000001ad7f29bp+0, 0x1.ad7f2847b6492p-24},
    {0x1.6a09e667f3bcdp+0, 0x1.62e42fefa39f0p-2},
    {0x1.8000000000000p+1, 0x1.193ea7aad030bp+0},
    {0x1.e848000000000p+19, 0x1.ba18a998fffa0p+3},
    {0x1.e42d130773b76p+1023, 0x1.62dd08fdc6f88p+9},
    {0.0, -INFINITY},
    {-0.0, -INFINITY},
    {INFINITY, INFINITY},
};

// Accepts the nearest double and its two neighbours.
static void assert_near(double found, double expected) {
    assert_true(found == expected || found == nextafter(expected, INFINITY) ||
                found == nextafter(expected, -INFINITY));
}

static void test_base_maths__values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof exponentials / sizeof exponentials[0]; i++) {
        assert_near(msc_maths_exp(exponentials[i].x), exponentials[i].expected);
    }
    for (size_t i = 0; i < sizeof logarithms / sizeof logarithms[0]; i++) {
        assert_near(msc_maths_log(logarithms[i].x), logarithms[i].expected);
    }
    assert_true(isnan(msc_maths_exp(NAN)));
    assert_true(isnan(msc_maths_log(NAN)) && isnan(msc_maths_log(-1.0)) &&
                isnan(msc_maths_log(-INFINITY)));
}

// The C library's results differ by at most one unit in the last place.
static void test_base_maths__beside_the_library(void **state) {
    struct msc_rng rng;
    (void)state;
    msc_rng_seed(&rng, 1, 0);
    for (int i = 0; i < 200000; i++) {
        double x = 1400.0 * msc_rng_double(&rng) - 700.0, y = ldexp(msc_rng_double(&rng), i % 60);
        assert_true(fabs(msc_maths_exp(x) - exp(x)) <= 0x1p-51 * exp(x));
        assert_true(fabs(msc_maths_log(y) - log(y)) <= 0x1p-51 * fabs(log(y)));
    }
}

// Records depend on every bit, so the hash of many results is compared with a fixed value.
static void test_base_maths__bits(void **state) {
    struct msc_rng rng;
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash hash = {0};
    (void)state;
    msc_rng_seed(&rng, 2, 0);
    for (int i = 0; i < 100000; i++) {
        double values[2] = {msc_maths_exp(40.0 * msc_rng_double(&rng) - 39.0),
                            msc_maths_log(1e-9 + 2.0 * msc_rng_double(&rng))};
        for (int k = 0; k < 2; k++) {
            uint64_t bits;
            memcpy(&bits, &values[k], sizeof bits);
            hash = msc_hash_add_u64(hash, bits);
        }
    }
    assert_string_equal(msc_hash_format(text, hash), "f97dba33eeafd28b342d74196eafa2d0");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_maths__values),
        cmocka_unit_test(test_base_maths__beside_the_library),
        cmocka_unit_test(test_base_maths__bits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
