// Random numbers: PCG32 and PCG64, compared with their reference implementations and numpy, and the
// statistics of bounded draws, doubles, streams and shuffles.
#include "base/rng.h"

#include "tests/msc_test.h"

// The first line that pcg32-demo of the reference implementation prints. The demo's seeds are 42
// and 54.
static void test_base_rng__pcg32_reference(void **state) {
    static const uint32_t expected[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                        0x83d2f293, 0xbfa4784b, 0xcbed606e};
    (void)state;
    struct msc_pcg32 rng;
    msc_pcg32_seed(&rng, 42, 54);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(msc_pcg32_next(&rng), expected[i]);
    }
}

// After six numbers, pcg32-demo tosses 65 coins and rolls 33 dice.
static void test_base_rng__pcg32_coins_and_dice(void **state) {
    static const char coins[] = "HHTTTHTHHHTHTTTHHHHHTTTHHHTHTHTHTTHTTTHHHHHHTTTTHHTTTTTHTTTTTTTHT";
    static const char dice[] = "341122324324335231315141564662633";
    (void)state;
    struct msc_pcg32 rng;
    msc_pcg32_seed(&rng, 42, 54);
    for (int i = 0; i < 6; i++) {
        msc_pcg32_next(&rng);
    }
    for (size_t i = 0; i < sizeof coins - 1; i++) {
        assert_int_equal(msc_pcg32_below(&rng, 2) ? 'H' : 'T', coins[i]);
    }
    for (size_t i = 0; i < sizeof dice - 1; i++) {
        assert_int_equal('1' + msc_pcg32_below(&rng, 6), dice[i]);
    }
}

// Expected: numpy 1.24, PCG64().state = {"state": {"state": s, "inc": c}, ...}; random_raw(6).
static void test_base_rng__pcg64_numpy(void **state) {
    static const struct {
        struct msc_pcg64 rng;
        uint64_t expected[6];
    } cases[] = {
        {{0, 1, 0, 1},
         {0xe260e53261800aab, 0xd4feb4e5a4bcfe09, 0xe85a7fe071b026e6, 0x3a5b9037fe928c11,
          0x7b044380d100f216, 0x1c7850a6b6d83e6a}},
        {{0x0123456789abcdef, 0xfedcba9876543210, 0xda3e39cb94b95bdb, 0x5851f42d4c957f2d},
         {0x8b3d162c584ca68b, 0x6e307fc85c1b7a83, 0x8415ec2d365a37e6, 0x4df88d80092f66ff,
          0x96fafa646e373b9f, 0x86d32047336c0074}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
         {0xca64c3001557c2c1, 0xb4979fc13a9f569c, 0x4dcdd0b4f1c0e360, 0x946089d2dcc1bff4,
          0x0b3d8221f0688079, 0xe3c28531b6c1f350}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_pcg64 rng = cases[i].rng;
        for (size_t j = 0; j < 6; j++) {
            uint64_t drawn = msc_pcg64_next(&rng);
            assert_true(drawn == cases[i].expected[j]);
        }
    }
}

// Expected: numpy 1.24, Generator(PCG64 with state 1, increment 1).random(4).
static void test_base_rng__doubles_numpy(void **state) {
    static const double expected[] = {0x1.c4c1ca64c3001p-1, 0x1.a9fd69cb4979fp-1,
                                      0x1.d0b4ffc0e3604p-1, 0x1.d2dc81bff4944p-3};
    (void)state;
    struct msc_rng rng = {.pcg = {0, 1, 0, 1}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(msc_rng_double(&rng) == expected[i]);
    }
}

// Mean and standard deviation of bounded draws and of doubles, within 6 standard errors.
static void test_base_rng__uniform(void **state) {
    enum { BOUND = 7, DRAWS = 70000 };
    (void)state;
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 0);
    int counts[BOUND] = {0};
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t drawn = msc_rng_below(&rng, BOUND);
        assert_true(drawn < BOUND);
        counts[drawn]++;
        double real = msc_rng_double(&rng);
        assert_true(real >= 0 && real < 1);
        sum += real;
    }
    for (int i = 0; i < BOUND; i++) {
        // Within 6 standard deviations; one standard deviation is sqrt(70000 * 6) / 7 = 93.
        assert_in_range(counts[i], 10000 - 556, 10000 + 556);
    }
    assert_true(sum / DRAWS > 0.5 - 0.0066 && sum / DRAWS < 0.5 + 0.0066);
    assert_int_equal(msc_rng_below(&rng, 1), 0);
    assert_true(msc_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
}

// Each pair of a seed and a stream starts with a different number. The first numbers of
// neighbouring pairs differ in about half of their bits.
static void test_base_rng__seeds_and_streams(void **state) {
    enum { SEEDS = 32, STREAMS = 32, ALL = SEEDS * STREAMS };
    static uint64_t first[ALL];
    (void)state;
    uint64_t n_different_bits = 0;
    for (uint64_t i = 0; i < ALL; i++) {
        struct msc_rng rng;
        msc_rng_seed(&rng, i / STREAMS, i % STREAMS);
        assert_int_equal(rng.pcg.increment_low & 1, 1);
        first[i] = msc_rng_u64(&rng);
        for (uint64_t j = 0; j < i; j++) {
            assert_true(first[i] != first[j]);
        }
        for (uint64_t bits = i ? first[i] ^ first[i - 1] : 0; bits; bits &= bits - 1) {
            n_different_bits++;
        }
    }
    double mean = (double)n_different_bits / (ALL - 1);
    assert_true(mean > 31 && mean < 33);

    struct msc_rng a, b;
    msc_rng_seed(&a, 5, 6);
    msc_rng_seed(&b, 5, 6);
    assert_memory_equal(&a, &b, sizeof a);
    msc_rng_seed(&b, 6, 5);
    assert_memory_not_equal(&a, &b, sizeof a);
}

// All 6 orders of 3 items are equally frequent, and no item is lost.
static void test_base_rng__shuffle(void **state) {
    enum { DRAWS = 6000 };
    (void)state;
    struct msc_rng rng;
    msc_rng_seed(&rng, 3, 0);
    int counts[27] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint32_t items[3] = {0, 1, 2};
        msc_rng_shuffle(&rng, items, 3);
        assert_int_equal(1u << items[0] | 1u << items[1] | 1u << items[2], 7);
        counts[items[0] * 9 + items[1] * 3 + items[2]]++;
    }
    int n_orders = 0;
    for (int i = 0; i < 27; i++) {
        if (counts[i] > 0) {
            n_orders++;
            // Within 6 standard deviations; one standard deviation is sqrt(6000 * 5) / 6 = 29.
            assert_in_range(counts[i], 1000 - 174, 1000 + 174);
        }
    }
    assert_int_equal(n_orders, 6);
    msc_rng_shuffle(&rng, NULL, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_rng__pcg32_reference),
        cmocka_unit_test(test_base_rng__pcg32_coins_and_dice),
        cmocka_unit_test(test_base_rng__pcg64_numpy),
        cmocka_unit_test(test_base_rng__doubles_numpy),
        cmocka_unit_test(test_base_rng__uniform),
        cmocka_unit_test(test_base_rng__seeds_and_streams),
        cmocka_unit_test(test_base_rng__shuffle),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
