// Losses of one sample: mse, cosine and kl, with zeros, NaN and equal outputs.
#include "env/loss.h"

#include "tests/msc_test.h"

#include <math.h>

// make_loss_expected.py prints the expected values, computed with scipy's rel_entr, softmax and
// cosine.

enum { MOST = 1000 };

struct row {
    struct msc_loss_shape shape;
    double mse, sum_squares, cosine, kl_logits, kl_probs;
};

static const struct row rows[] = {
    {{1, 10, 1},
     0.0014698654413223267,
     230.72249089926481,
     3.156067480458713e-05,
     0.00018347460694523814,
     4.513873680543211e-05},
    {{3, 5, 4},
     0.0013098719219366709,
     1286.2380872601643,
     3.0525470130493559e-05,
     0.00024588009199736721,
     3.4966677746837978e-05},
    {{1, 1000, 1},
     0.0013042759597301484,
     21336.390652343398,
     3.0561361771597184e-05,
     0.00064660660798562049,
     3.5325602671769482e-05},
    {{2, 3, 7},
     0.00129364679257075,
     892.99471847596578,
     3.0355108799007269e-05,
     8.1187637871979043e-06,
     2.7367054308000257e-05},
    {{24, 1, 1}, 0.0014303078254063923, 526.60778522305191, 3.2583143931841363e-05, 0, 0},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static double sample_loss(enum msc_loss_kind kind, bool is_logits, const float y[], const float z[],
                          struct msc_loss_shape shape, double mean_square) {
    const struct msc_loss loss = {.kind = kind, .is_logits = is_logits};
    return msc_loss_sample(&loss, y, z, shape, mean_square);
}

static int64_t fill(float y[], float z[], struct msc_loss_shape s) {
    int64_t n = s.outer * s.axis * s.inner;
    for (int64_t i = 0; i < n; i++) {
        uint32_t a = (uint32_t)(i + 1000) * UINT32_C(2654435761);
        uint32_t b = (uint32_t)i * UINT32_C(2246822519);
        y[i] = (float)(a >> 12) / 65536.0f - 8.0f;
        z[i] = y[i] + ((float)(b >> 22) - 512.0f) / 8192.0f;
    }
    return n;
}

static void to_probabilities(float x[], struct msc_loss_shape s) {
    for (int64_t at = 0; at < s.outer * s.inner; at++) {
        float *first = x + at / s.inner * s.axis * s.inner + at % s.inner;
        double sum = 0;
        for (int64_t k = 0; k < s.axis; k++) {
            sum += fabs((double)first[k * s.inner]) + 1;
        }
        for (int64_t k = 0; k < s.axis; k++) {
            first[k * s.inner] = (float)((fabs((double)first[k * s.inner]) + 1) / sum);
        }
    }
}

static void assert_close(double found, double expected, double absolute) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected) + absolute)) {
        print_error("%.17g, expected %.17g\n", found, expected);
        fail();
    }
}

static void test_env_loss__mse(void **state) {
    float y[MOST], z[MOST];
    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        fill(y, z, rows[i].shape);
        assert_close(sample_loss(MSC_LOSS_MSE, true, y, z, rows[i].shape, 2.5), rows[i].mse / 2.5,
                     0);
        // Scale 0: the loss is not divided.
        assert_close(sample_loss(MSC_LOSS_MSE, true, y, z, rows[i].shape, 0), rows[i].mse, 0);
    }
}

static void test_env_loss__sum_squares(void **state) {
    float y[MOST], z[MOST];
    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        int64_t n = fill(y, z, rows[i].shape);
        assert_close(msc_loss_sum_squares(y, n), rows[i].sum_squares, 0);
    }
    assert_true(msc_loss_sum_squares(y, 0) == 0);
}

static void test_env_loss__cosine(void **state) {
    float y[MOST], z[MOST];
    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        int64_t n = fill(y, z, rows[i].shape);
        assert_close(sample_loss(MSC_LOSS_COSINE, true, y, z, rows[i].shape, 1), rows[i].cosine,
                     1e-15);
        for (int64_t k = 0; k < n; k++) {
            z[k] = -y[k];
        }
        assert_close(sample_loss(MSC_LOSS_COSINE, true, y, z, rows[i].shape, 1), 2, 0);
    }
}

static void test_env_loss__cosine_of_zero(void **state) {
    static const float zero[4] = {0};
    static const float some[4] = {0, 1, 0, 0};
    const struct msc_loss_shape shape = {1, 4, 1};
    (void)state;
    assert_true(sample_loss(MSC_LOSS_COSINE, true, zero, zero, shape, 1) == 0);
    assert_true(sample_loss(MSC_LOSS_COSINE, true, zero, some, shape, 1) == 1);
    assert_true(sample_loss(MSC_LOSS_COSINE, true, some, zero, shape, 1) == 1);
}

static void test_env_loss__kl_of_logits(void **state) {
    float y[MOST], z[MOST];
    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        int64_t n = fill(y, z, rows[i].shape);
        assert_close(sample_loss(MSC_LOSS_KL, true, y, z, rows[i].shape, 1), rows[i].kl_logits,
                     1e-14);
        // Softmax ignores an added constant of any size; the numbers used here are exact in
        // float32.
        for (int64_t k = 0; k < n; k++) {
            y[k] = (y[k] + 8) * 1024;
            z[k] = y[k] + 100000.0f;
        }
        double shifted = sample_loss(MSC_LOSS_KL, true, y, z, rows[i].shape, 1);
        assert_true(shifted >= 0 && shifted < 1e-9);
    }
}

static void test_env_loss__kl_of_probabilities(void **state) {
    float y[MOST], z[MOST];
    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        fill(y, z, rows[i].shape);
        to_probabilities(y, rows[i].shape);
        to_probabilities(z, rows[i].shape);
        assert_close(sample_loss(MSC_LOSS_KL, false, y, z, rows[i].shape, 1), rows[i].kl_probs,
                     1e-14);
    }
}

// If a probability was rounded to 0, the loss is large but finite. A probability of 0 in the float
// model adds no loss.
static void test_env_loss__kl_of_zero_probability(void **state) {
    static const float y[3] = {0.5f, 0.5f, 0};
    static const float z[3] = {1, 0, 0};
    const struct msc_loss_shape shape = {1, 3, 1};
    (void)state;
    // The expected loss is 0.5 log 0.5 + 0.5 (log 0.5 + 126 log 2).
    assert_close(sample_loss(MSC_LOSS_KL, false, y, z, shape, 1), 62 * log(2), 0);
}

static void test_env_loss__equal_is_zero(void **state) {
    float y[MOST], z[MOST];
    (void)state;
    for (int kind = MSC_LOSS_MSE; kind < MSC_LOSS_COUNT; kind++) {
        for (int i = 0; i < N_ROWS; i++) {
            fill(y, z, rows[i].shape);
            assert_true(sample_loss((enum msc_loss_kind)kind, true, y, y, rows[i].shape, 1) == 0);
        }
        assert_true(sample_loss((enum msc_loss_kind)kind, true, y, z,
                                (struct msc_loss_shape){1, 0, 4}, 1) == 0);
    }
}

static void test_env_loss__nan_stays(void **state) {
    float y[MOST], z[MOST];
    const struct msc_loss_shape shape = {2, 5, 3};
    (void)state;
    for (int kind = MSC_LOSS_MSE; kind < MSC_LOSS_COUNT; kind++) {
        for (int is_logits = 0; is_logits < 2; is_logits++) {
            fill(y, z, shape);
            z[17] = NAN;
            assert_true(isnan(sample_loss((enum msc_loss_kind)kind, is_logits, y, z, shape, 1)));
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_loss__mse),
        cmocka_unit_test(test_env_loss__sum_squares),
        cmocka_unit_test(test_env_loss__cosine),
        cmocka_unit_test(test_env_loss__cosine_of_zero),
        cmocka_unit_test(test_env_loss__kl_of_logits),
        cmocka_unit_test(test_env_loss__kl_of_probabilities),
        cmocka_unit_test(test_env_loss__kl_of_zero_probability),
        cmocka_unit_test(test_env_loss__equal_is_zero),
        cmocka_unit_test(test_env_loss__nan_stays),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
