// Scalar and vector functions of the reference kernels (exp, tanh, erf, pow, ...). Errors in ulp
// are measured against the C library in double precision and against mpmath. Special values are
// tested, too.
#include "graph/reference/numeric.h"

#include "tests/msc_test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// The position of a float in the order of all floats.
static int64_t rank_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits < 0 ? -(int64_t)(bits & 0x7fffffff) : bits;
}

// Distance in ulp between a result and the correctly rounded value.
static int64_t ulps(float got, double want) {
    float rounded = (float)want;
    if (got != got || rounded != rounded) {
        return got != got && rounded != rounded ? 0 : INT64_MAX;
    }
    int64_t distance = rank_of(got) - rank_of(rounded);
    return distance < 0 ? -distance : distance;
}

static float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double sigmoid(double x) {
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static const struct function {
    const char *name;
    float (*ours)(float);
    double (*truth)(double);
    void (*run)(float[], const float[], int64_t); // the function for vectors, or NULL
} functions[] = {
    {"exp", msc_expf, exp, msc_exp_run},
    {"log", msc_logf, log, NULL},
    {"tanh", msc_tanhf, tanh, msc_tanh_run},
    {"erf", msc_erff, erf, msc_erf_run},
    {"sigmoid", msc_sigmoidf, sigmoid, msc_sigmoid_run},
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

// Every 251st bit pattern, which includes denormals, infinities and NaN.
static void test_graph_numeric__sweep_of_all_floats(void **state) {
    (void)state;
    for (size_t k = 0; k < N_FUNCTIONS; k++) {
        const struct function *f = &functions[k];
        int64_t worst = 0;
        float at = 0;
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 251) {
            float x = float_of_bits((uint32_t)bits);
            int64_t distance = ulps(f->ours(x), f->truth((double)x));
            if (distance > worst) {
                worst = distance;
                at = x;
            }
        }
        print_message("%s: at most %lld units off, at %.9g\n", f->name, (long long)worst,
                      (double)at);
        assert_true(worst <= 2);
    }
}

// A dense sweep over common values and around the points where formulas change.
static void test_graph_numeric__sweep_of_common_values(void **state) {
    static const struct {
        float first, last;
    } ranges[] = {{-104, 90}, {-1, 1}, {0.62f, 0.63f}, {0.92f, 0.923f}, {0.5f, 2}, {3.9f, 4.1f}};
    (void)state;
    for (size_t k = 0; k < N_FUNCTIONS; k++) {
        const struct function *f = &functions[k];
        for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
            for (int i = 0; i <= 200000; i++) {
                float t = (float)i / 200000.0f;
                float x = ranges[r].first + (ranges[r].last - ranges[r].first) * t;
                if (ulps(f->ours(x), f->truth((double)x)) > 2) {
                    fail_msg("%s(%.9g) = %.9g, expected %.9g", f->name, (double)x,
                             (double)f->ours(x), f->truth((double)x));
                }
            }
        }
    }
}

// Expected: mpmath 1.2.1 with 200 bits, rounded to float32: numpy.float32(f(mpf(x))).
static void test_graph_numeric__mpmath(void **state) {
    static const struct {
        size_t function;
        float x, y;
    } cases[] = {
        {0, 1e0f, 2.7182817e+00f},
        {0, -1e0f, 3.6787945e-01f},
        {0, 1e-1f, 1.105171e+00f},
        {0, 8.87e1f, 3.3259769e+38f},
        {0, -8.7e1f, 1.6458115e-38f},
        {0, -1e2f, 3.8e-44f},
        {1, 2e0f, 6.931472e-01f},
        {1, 1.0001f, 1.00011595e-04f},
        {1, 1e-42f, -9.6708046e+01f},
        {1, 3e38f, 8.859685e+01f},
        {2, 1e-1f, 9.9667996e-02f},
        {2, 6.3e-1f, 5.5805224e-01f},
        {2, 5e0f, 9.999092e-01f},
        {3, 1e-1f, 1.12462915e-01f},
        {3, 9.5e-1f, 8.208908e-01f},
        {3, 3e0f, 9.999779e-01f},
        {4, -1e-1f, 4.7502083e-01f},
        {4, -5e1f, 1.9287499e-22f},
        {4, 2e1f, 1e0f},
        {4, -8.8e1f, 6.054601e-39f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float got = functions[cases[i].function].ours(cases[i].x);
        assert_true(ulps(got, (double)cases[i].y) <= 2);
    }
}

static void test_graph_numeric__special_values(void **state) {
    (void)state;
    assert_true(msc_expf(-INFINITY) == 0.0f && msc_expf(INFINITY) == INFINITY);
    assert_true(msc_expf(0.0f) == 1.0f && msc_expf(89.0f) == INFINITY);
    assert_true(msc_expf(-103.0f) > 0.0f && msc_expf(-105.0f) == 0.0f);
    assert_true(msc_logf(0.0f) == -INFINITY && msc_logf(INFINITY) == INFINITY);
    assert_true(isnan(msc_logf(-1.0f)) && msc_logf(1.0f) == 0.0f);
    assert_true(msc_tanhf(INFINITY) == 1.0f && msc_tanhf(-INFINITY) == -1.0f);
    assert_true(signbit(msc_tanhf(-0.0f)) && signbit(msc_erff(-0.0f)));
    assert_true(msc_erff(INFINITY) == 1.0f && msc_erff(-INFINITY) == -1.0f);
    assert_true(msc_sigmoidf(-INFINITY) == 0.0f && msc_sigmoidf(INFINITY) == 1.0f);
    assert_true(msc_sigmoidf(0.0f) == 0.5f);
    for (size_t k = 0; k < N_FUNCTIONS; k++) {
        assert_true(isnan(functions[k].ours(NAN)));
    }
}

// The vectorised functions give the same bits as the scalar functions, for any length and in place.
static void test_graph_numeric__runs_have_the_same_bits(void **state) {
    enum { N = 1000 };
    float x[N], got[N], want[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = float_of_bits((uint32_t)i * 4294967u + 12345u);
        x[i] = i % 2 ? x[i] : ((float)i - 500.0f) / 61.0f;
    }
    for (size_t k = 0; k < N_FUNCTIONS; k++) {
        const struct function *f = &functions[k];
        for (int64_t n = 0; f->run && n <= N; n += n < 40 ? 1 : 96) {
            memcpy(got, x, sizeof(x));
            f->run(got, got, n);
            for (int i = 0; i < N; i++) {
                want[i] = i < n ? f->ours(x[i]) : x[i];
                if (memcmp(&got[i], &want[i], sizeof(float)) != 0 && !isnan(want[i])) {
                    fail_msg("%s(%.9g), element %d of %d", f->name, (double)x[i], i, (int)n);
                }
            }
        }
    }
}

static void check_pow(float x, float y) {
    float got = msc_powf(x, y);
    double want = pow((double)x, (double)y);
    if (ulps(got, want) > 2 || (want == want && signbit(got) != signbit((float)want))) {
        fail_msg("pow(%.9g, %.9g) = %.9g, expected %.9g", (double)x, (double)y, (double)got, want);
    }
}

static void test_graph_numeric__pow(void **state) {
    // Expected: mpmath 1.2.1 with 200 bits, rounded to float32.
    static const float cases[][3] = {
        {2e0f, 0.5f, 1.4142135e+00f},  {2e0f, 1e1f, 1.024e+03f},
        {1e1f, -3e0f, 1e-03f},         {0.3f, 7.7f, 9.415294e-05f},
        {3e0f, 4e1f, 1.2157665e+19f},  {1.0000001f, 1e8f, 1.5038114e+05f},
        {1e-20f, 1.9f, 1.000001e-38f}, {1.5f, -2.17e2f, 6.140402e-39f},
        {0.99f, 2e3f, 1.8637925e-09f}, {1e-45f, 0.3f, 3.4991185e-14f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(ulps(msc_powf(cases[i][0], cases[i][1]), (double)cases[i][2]) <= 2);
    }
    uint32_t random = 1;
    for (int i = 0; i < 2000000; i++) {
        random = random * 1664525u + 1013904223u;
        float x = i % 2 ? float_of_bits(random) : 0.5f + (float)(random >> 8) * 0x1p-23f;
        random = random * 1664525u + 1013904223u;
        float y = ((float)(random >> 8) * 0x1p-23f - 1.0f) * (i % 3 ? 10.0f : 300.0f);
        check_pow(x, i % 7 ? y : rintf(y));
    }
    assert_true(msc_powf(1.1f, 1.0f) == 1.1f && msc_powf(1.1f, 2.0f) == 1.1f * 1.1f);
    assert_true(msc_powf(2.0f, 0.5f) == sqrtf(2.0f));
}

// Expected: C's rules for zeros, infinities, NaN and negative bases.
static void test_graph_numeric__pow_special(void **state) {
    static const float values[] = {0.0f,  -0.0f,   1.0f,   -1.0f,  INFINITY,    -INFINITY,
                                   NAN,   2.0f,    -2.0f,  3.0f,   -3.0f,       0.5f,
                                   -0.5f, 1e-45f,  3e38f,  -3e38f, 0.99999994f, 1.0000001f,
                                   1e30f, -1e-45f, -1e30f, 1e9f,   4.0f,        -1.5f};
    enum { N = sizeof(values) / sizeof(values[0]) };
    (void)state;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            check_pow(values[i], values[j]);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_numeric__sweep_of_all_floats),
        cmocka_unit_test(test_graph_numeric__sweep_of_common_values),
        cmocka_unit_test(test_graph_numeric__mpmath),
        cmocka_unit_test(test_graph_numeric__special_values),
        cmocka_unit_test(test_graph_numeric__runs_have_the_same_bits),
        cmocka_unit_test(test_graph_numeric__pow),
        cmocka_unit_test(test_graph_numeric__pow_special),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
