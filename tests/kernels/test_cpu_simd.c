// The loops in a machine's own instructions against those in plain C, and those against the formula.
#include "kernels/cpu/simd.h"

#include "base/rng.h"

#include "tests/msc_test.h"

#include <math.h>

enum { N = 1000 };

static float random_float(struct msc_rng *rng, float low, float high) {
    return low + (high - low) * (float)msc_rng_double(rng);
}

// Numbers on and beside ties, in and beyond the range, and those that are no numbers.
static void set_numbers(float x[N], struct msc_rng *rng, const struct msc_quant *q) {
    float scale = q->scales[0];
    for (int i = 0; i < N; i++) {
        int32_t level = (int32_t)msc_rng_below(rng, 300) - 20 + q->low - q->zero_points[0];
        float tie = ((float)level + 0.5f) * scale;
        float beside[] = {tie, nextafterf(tie, INFINITY), nextafterf(tie, -INFINITY)};
        x[i] = i % 4 == 3 ? random_float(rng, -300 * scale, 300 * scale) : beside[i % 4];
    }
    const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 3e38f, -3e38f, 1e-42f};
    memcpy(x + 40, special, sizeof(special));
}

static struct msc_quant quant_of(const float *scale, const int32_t *zero_point, bool is_signed) {
    return (struct msc_quant){.bits = 8,
                              .low = is_signed ? -128 : 0,
                              .high = is_signed ? 127 : 255,
                              .axis = -1,
                              .n = 1,
                              .scales = scale,
                              .zero_points = zero_point};
}

static void test_kernels_cpu_simd__quantize(void **state) {
    (void)state;
    static const float powers[] = {1.0f, 1e-3f, 300.0f, 1e-25f, 1e-40f, 1e25f, 1e37f};
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 0);
    for (int round = 0; round < 700; round++) {
        float x[N], scale = powers[round % 7] * random_float(&rng, 1.0f, 2.0f);
        uint8_t plain[N + 1], best[N + 1];
        bool is_signed = round % 2 == 1;
        int32_t zero_point = is_signed ? 0 : (int32_t)msc_rng_below(&rng, 256);
        struct msc_quant q = quant_of(&scale, &zero_point, is_signed);
        struct msc_simd_bytes bytes = msc_simd_bytes_of(&q);
        int n = N - round % 40;
        set_numbers(x, &rng, &q);
        plain[n] = best[n] = 0xee;
        msc_simd_plain.quantize(plain, x, n, &bytes);
        msc_simd_best()->quantize(best, x, n, &bytes);
        assert_memory_equal(plain, best, (size_t)n + 1);
        for (int i = 0; i < n; i++) {
            int32_t expected = msc_quantize_value(x[i], scale, zero_point, q.low, q.high);
            assert_int_equal(plain[i], (uint8_t)expected);
        }
    }
}

struct sums {
    int32_t sums[N], offsets[N];
    float scales[N], bias[N];
};

static struct msc_simd_finish random_sums(struct sums *s, struct msc_rng *rng, float low,
                                          float high) {
    for (int i = 0; i < N; i++) {
        s->sums[i] = (int32_t)msc_rng_below(rng, 4000000) - 2000000;
        s->offsets[i] = (int32_t)msc_rng_below(rng, 100000);
        s->scales[i] = random_float(rng, 1e-6f, 1e-5f);
        s->bias[i] = random_float(rng, -3.0f, 3.0f);
    }
    s->bias[7] = NAN;
    s->sums[8] = INT32_MIN;
    return (struct msc_simd_finish){.sums = s->sums,
                                    .offsets = s->offsets,
                                    .scales = s->scales,
                                    .bias = s->bias,
                                    .low = low,
                                    .high = high};
}

static void test_kernels_cpu_simd__finish(void **state) {
    (void)state;
    struct msc_rng rng;
    struct sums s;
    msc_rng_seed(&rng, 2, 0);
    for (int round = 0; round < 60; round++) {
        float plain[N], best[N], scale = 0.07f;
        uint8_t expected[N], bytes[N];
        int32_t zero_point = 100;
        int n = N - round;
        struct msc_simd_finish f = random_sums(&s, &rng, round % 3 == 0 ? -INFINITY : 0.0f,
                                               round % 3 == 2 ? 6.0f : INFINITY);
        struct msc_quant quant = quant_of(&scale, &zero_point, false);
        struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
        msc_simd_plain.finish(plain, &f, n);
        msc_simd_best()->finish(best, &f, n);
        assert_true(isnan(plain[7]) && isnan(best[7]));
        plain[7] = best[7] = 0.0f;
        assert_memory_equal(plain, best, (size_t)n * sizeof(plain[0]));
        float y = s.scales[9] * (float)(s.sums[9] - s.offsets[9]);
        y = y + s.bias[9];
        assert_true(plain[9] == fminf(fmaxf(y, f.low), f.high));
        msc_simd_plain.finish_quantize(expected, &f, n, &q);
        msc_simd_best()->finish_quantize(bytes, &f, n, &q);
        assert_memory_equal(expected, bytes, (size_t)n);
        plain[7] = NAN;
        msc_simd_plain.quantize(bytes, plain, n, &q);
        assert_memory_equal(expected, bytes, (size_t)n);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_simd__quantize),
        cmocka_unit_test(test_kernels_cpu_simd__finish),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
