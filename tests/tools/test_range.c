// Quantisation ranges: schemes, their scales and zero points, and the observers that choose ranges.
// Expected values come from numpy and PyTorch.
#include "tools/range.h"

#include "base/alloc.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

// make_expected.py prints the expected values: ranges by brute force in numpy, percentiles by
// numpy, scales by PyTorch's MinMaxObserver.

enum { N_VALUES = 20000 };

enum shape { SHAPE_BELL, SHAPE_HEAVY, SHAPE_RELU, SHAPE_SKEW };

// The same numbers as `values` in make_expected.py: sums of four uniform numbers, cubed or
// clipped at 0.
static float *make_values(enum shape shape) {
    float *x = msc_alloc(N_VALUES * sizeof(x[0]));
    uint64_t state = 1;
    assert_non_null(x);
    for (int i = 0; i < N_VALUES; i++) {
        int total = 0;
        for (int k = 0; k < 4; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            total += (int)(state >> 48);
        }
        float v = (float)(total - 131070) / 16384.0f;
        bool is_cubed = shape == SHAPE_HEAVY || (shape == SHAPE_SKEW && v >= 0);
        x[i] = is_cubed ? v * v * v : shape == SHAPE_RELU && v < 0 ? 0 : v;
    }
    return x;
}

static void assert_close(double found, double expected, double relative) {
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        print_error("%.9g, expected %.9g\n", found, expected);
        fail();
    }
}

// ---- Schemes ----------------------------------------------------------------------------------

static void test_tools_range__scheme_limits(void **state) {
    static const struct {
        struct msc_scheme scheme;
        int32_t low, high;
    } rows[] = {
        {{8, false, false, false, 0}, 0, 255},    {{8, true, false, false, 0}, -128, 127},
        {{8, true, true, false, 0}, -127, 127},   {{8, false, true, false, 0}, 0, 255},
        {{4, true, true, false, 0}, -7, 7},       {{4, true, false, false, 0}, -8, 7},
        {{2, true, true, false, 0}, -1, 1},       {{2, false, false, false, 0}, 0, 3},
        {{8, true, true, true, 0}, -128, 127},    {{2, true, true, true, 0}, -2, 1},
        {{16, false, false, false, 0}, 0, 65535}, {{16, true, true, false, 0}, -32767, 32767},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int32_t low, high;
        msc_scheme_limits(&rows[i].scheme, &low, &high);
        assert_int_equal(low, rows[i].low);
        assert_int_equal(high, rows[i].high);
    }
}

static void test_tools_range__scheme_fit(void **state) {
    static const struct {
        float low, high;
        int bits, is_symmetric, is_weight;
        float scale;
        int32_t zero_point;
    } rows[] = {
        {-1.0f, 1.0f, 8, 0, 0, 0.00784313772f, 127},
        {-1.0f, 1.0f, 4, 0, 0, 0.13333334f, 7},
        {-1.0f, 1.0f, 8, 1, 1, 0.00787401572f, 0},
        {-1.0f, 1.0f, 4, 1, 1, 0.142857149f, 0},
        {-1.0f, 1.0f, 16, 0, 0, 3.05180438e-05f, 32768},
        {0.0f, 6.0f, 8, 0, 0, 0.0235294122f, 0},
        {0.0f, 6.0f, 4, 0, 0, 0.400000006f, 0},
        {0.0f, 6.0f, 8, 1, 1, 0.0472440943f, 0},
        {0.0f, 6.0f, 4, 1, 1, 0.857142866f, 0},
        {0.0f, 6.0f, 16, 0, 0, 9.15541314e-05f, 0},
        {-0.300000012f, 2.70000005f, 8, 0, 0, 0.0117647061f, 26},
        {-0.300000012f, 2.70000005f, 4, 0, 0, 0.200000003f, 2},
        {-0.300000012f, 2.70000005f, 8, 1, 1, 0.0212598424f, 0},
        {-0.300000012f, 2.70000005f, 4, 1, 1, 0.385714293f, 0},
        {-0.300000012f, 2.70000005f, 16, 0, 0, 4.57770657e-05f, 6554},
        {-4.0f, 0.0f, 8, 0, 0, 0.0156862754f, 255},
        {-4.0f, 0.0f, 4, 0, 0, 0.266666681f, 15},
        {-4.0f, 0.0f, 8, 1, 1, 0.0314960629f, 0},
        {-4.0f, 0.0f, 4, 1, 1, 0.571428597f, 0},
        {-4.0f, 0.0f, 16, 0, 0, 6.10360876e-05f, 65535},
        {-7.5f, 0.100000001f, 8, 0, 0, 0.0298039205f, 252},
        {-7.5f, 0.100000001f, 4, 0, 0, 0.50666666f, 15},
        {-7.5f, 0.100000001f, 8, 1, 1, 0.0590551198f, 0},
        {-7.5f, 0.100000001f, 4, 1, 1, 1.07142854f, 0},
        {-7.5f, 0.100000001f, 16, 0, 0, 0.000115968563f, 64673},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_scheme scheme = {rows[i].bits, rows[i].is_symmetric, rows[i].is_weight, false,
                                    0};
        float scale;
        int32_t zero_point;
        msc_scheme_fit(&scheme, (struct msc_range){rows[i].low, rows[i].high}, &scale, &zero_point);
        assert_close((double)scale, (double)rows[i].scale, 1.2e-7);
        assert_int_equal(zero_point, rows[i].zero_point);
    }
}

static void test_tools_range__fit_of_empty_and_extreme(void **state) {
    struct msc_scheme scheme = {.bits = 8};
    float scale;
    int32_t zero_point;
    (void)state;
    msc_scheme_fit(&scheme, (struct msc_range){0, 0}, &scale, &zero_point);
    assert_true(scale == 1.0f && zero_point == 0);
    // The range always includes zero, even if both ends are positive.
    msc_scheme_fit(&scheme, (struct msc_range){2, 5.1f}, &scale, &zero_point);
    assert_close((double)scale, 5.1 / 255, 1.2e-7);
    assert_int_equal(zero_point, 0);
    // The width overflows float, but the scale does not.
    msc_scheme_fit(&scheme, (struct msc_range){-3e38f, 3e38f}, &scale, &zero_point);
    assert_close((double)scale, 6e38 / 255, 1.2e-7);
    // The range is so narrow that the scale would be 0.
    msc_scheme_fit(&scheme, (struct msc_range){0, 1e-45f}, &scale, &zero_point);
    assert_true(scale == 1.0f && zero_point == 0);
}

// Values below -3 do not matter: the range starts at -3, and 3 is a whole number of steps, rounded
// down to leave room above. 255 * 3 / (3 + 5) is 95.6, 127 * 3 / 5 is 76.2, 15 * 3 / 8 is 5.6.
static void test_tools_range__scheme_cut(void **state) {
    static const struct {
        float low, high;
        int bits, is_symmetric, steps, zero_point;
    } rows[] = {
        {-9, 5, 8, 0, 95, 95}, {-1, 5, 8, 0, 95, 95},   {-9, 5, 8, 1, 76, 0},
        {-9, 5, 4, 0, 5, 5},   {-9, 0, 8, 0, 255, 255}, {-9, 2, 8, 1, 127, 0},
    };
    float scale;
    int32_t zero_point;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_scheme scheme = {
            .bits = rows[i].bits, .is_symmetric = rows[i].is_symmetric, .cut = 3};
        msc_scheme_fit(&scheme, (struct msc_range){rows[i].low, rows[i].high}, &scale, &zero_point);
        assert_close((double)scale, 3.0 / rows[i].steps, 1.2e-7);
        assert_int_equal(zero_point, rows[i].zero_point);
    }
    // One step is wider than 3: the cut has no effect.
    struct msc_scheme scheme = {.bits = 8, .cut = 3};
    msc_scheme_fit(&scheme, (struct msc_range){0, 2550}, &scale, &zero_point);
    assert_close((double)scale, 10, 1.2e-7);
    assert_int_equal(zero_point, 0);
}

// ---- Observers --------------------------------------------------------------------------------

static void observe(struct msc_range *out, const float x[], struct msc_observation o) {
    assert_ok(msc_range_of_values(out, x, N_VALUES, &o));
}

static struct msc_histogram *histogram_of(const float x[]) {
    struct msc_histogram *h = msc_alloc_zero(1, sizeof(*h));
    assert_non_null(h);
    for (int i = 0; i < N_VALUES; i++) {
        h->low = x[i] < h->low ? x[i] : h->low;
        h->high = x[i] > h->high ? x[i] : h->high;
    }
    // The values are added in three parts, as batches arrive.
    msc_histogram_add(h, x, 7000);
    msc_histogram_add(h, x + 7000, 1);
    msc_histogram_add(h, x + 7001, N_VALUES - 7001);
    return h;
}

static void test_tools_range__minmax(void **state) {
    float *x = make_values(SHAPE_BELL);
    struct msc_histogram *h = histogram_of(x);
    struct msc_observation o = {.observer = MSC_OBSERVER_MINMAX, .scheme = {.bits = 8}};
    struct msc_range r;
    (void)state;
    observe(&r, x, o);
    assert_true(r.low == -7.22149658f && r.high == 7.48175049f);
    assert_ok(msc_range_of_histogram(&r, h, &o));
    assert_true(r.low == -7.22149658f && r.high == 7.48175049f);
    // If all values have the same sign, the range is extended to 0.
    for (int i = 0; i < N_VALUES; i++) {
        x[i] += 10;
    }
    observe(&r, x, o);
    assert_true(r.low == 0 && r.high > 17);
    msc_free(h);
    msc_free(x);
}

static void test_tools_range__percentile(void **state) {
    static const struct {
        enum shape shape;
        double percentile;
        float low, high;
    } rows[] = {
        {SHAPE_BELL, 99.993, -7.09545898f, 7.42285156f},
        {SHAPE_BELL, 99.913, -6.41009521f, 6.49194336f},
        {SHAPE_BELL, 98.7654, -5.08117676f, 5.08404541f},
        {SHAPE_BELL, 91.237, -3.21307373f, 3.20568848f},
        {SHAPE_BELL, 100.0, -7.22149658f, 7.48175049f},
        {SHAPE_HEAVY, 99.993, -357.224701f, 408.989655f},
        {SHAPE_HEAVY, 99.913, -263.386475f, 273.605072f},
        {SHAPE_HEAVY, 98.7654, -131.187637f, 131.409943f},
        {SHAPE_HEAVY, 91.237, -33.1712685f, 32.9430618f},
        {SHAPE_HEAVY, 100.0, -376.601135f, 418.802887f},
        {SHAPE_RELU, 99.993, 0.0f, 7.42285156f},
        {SHAPE_RELU, 99.913, 0.0f, 6.49194336f},
        {SHAPE_RELU, 98.7654, 0.0f, 5.08404541f},
        {SHAPE_RELU, 91.237, 0.0f, 3.20568848f},
        {SHAPE_RELU, 100.0, 0.0f, 7.48175049f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float *x = make_values(rows[i].shape);
        struct msc_histogram *h = histogram_of(x);
        double bin = ((double)h->high - (double)h->low) / MSC_HISTOGRAM_BINS;
        struct msc_observation o = {.observer = MSC_OBSERVER_PERCENTILE,
                                    .percentile = rows[i].percentile,
                                    .scheme = {.bits = 8}};
        struct msc_range r;
        observe(&r, x, o);
        assert_true(r.low == rows[i].low && r.high == rows[i].high);
        // The range that a histogram gives is exact to one bin.
        assert_ok(msc_range_of_histogram(&r, h, &o));
        assert_true(fabs((double)r.low - (double)rows[i].low) <= bin);
        assert_true(fabs((double)r.high - (double)rows[i].high) <= bin);
        msc_free(h);
        msc_free(x);
    }
}

// 99.9 percent of 1000 values excludes exactly one value at either end.
static void test_tools_range__percentile_of_few(void **state) {
    float x[1000];
    struct msc_observation o = {.observer = MSC_OBSERVER_PERCENTILE, .scheme = {.bits = 8}};
    static const struct {
        double percentile;
        float high;
    } rows[] = {{99.9, 998}, {99.8, 997}, {99.0, 989}, {99.99, 999}, {100, 999}, {50.0001, 500}};
    struct msc_range r;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        x[i * 7 % 1000] = (float)i;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        o.percentile = rows[i].percentile;
        assert_ok(msc_range_of_values(&r, x, 1000, &o));
        assert_true(r.low == 0 && r.high == rows[i].high);
    }
    o.percentile = 60;
    assert_ok(msc_range_of_values(&r, x, 1, &o));
    assert_true(r.high == x[0]);
    assert_ok(msc_range_of_values(&r, x, 0, &o));
    assert_true(r.low == 0 && r.high == 0);
}

struct searched {
    enum shape shape;
    int bits, is_symmetric, is_weight;
    float low, high;
};

static const struct searched mse[] = {
    {SHAPE_BELL, 8, 0, 0, -6.99582481f, 7.24794579f},
    {SHAPE_BELL, 6, 0, 0, -6.31880951f, 6.46859694f},
    {SHAPE_BELL, 4, 0, 0, -5.34089851f, 5.45544291f},
    {SHAPE_HEAVY, 8, 0, 0, -364.832336f, 405.715302f},
    {SHAPE_HEAVY, 6, 0, 0, -305.988434f, 349.002411f},
    {SHAPE_HEAVY, 4, 0, 0, -223.606918f, 244.301682f},
    {SHAPE_RELU, 8, 0, 0, 0.0f, 7.32588053f},
    {SHAPE_RELU, 6, 0, 0, 0.0f, 7.09207582f},
    {SHAPE_RELU, 4, 0, 0, 0.0f, 6.00098753f},
    {SHAPE_SKEW, 8, 0, 0, -5.71701813f, 410.07782f},
    {SHAPE_SKEW, 4, 0, 0, -4.88955498f, 296.652039f},
    // Symmetric schemes: both ends of the range move together.
    {SHAPE_BELL, 3, 1, 0, -3.892838f, 4.03313112f},
    {SHAPE_BELL, 4, 1, 1, -5.13403273f, 5.31905699f},
    {SHAPE_HEAVY, 3, 1, 0, -141.225433f, 157.051086f},
    {SHAPE_RELU, 3, 1, 0, 0.0f, 4.38383818f},
    {SHAPE_RELU, 4, 1, 1, 0.0f, 5.31905699f},
    {SHAPE_HEAVY, 4, 1, 1, -205.953751f, 229.032822f},
};

static void check_searched(const struct searched rows[], size_t n, struct msc_observation o,
                           bool is_histogram) {
    for (size_t i = 0; i < n; i++) {
        float *x = make_values(rows[i].shape);
        struct msc_histogram *h = histogram_of(x);
        struct msc_range r;
        o.scheme = (struct msc_scheme){.bits = rows[i].bits,
                                       .is_symmetric = rows[i].is_symmetric,
                                       .is_weight = rows[i].is_weight};
        if (is_histogram) {
            assert_ok(msc_range_of_histogram(&r, h, &o));
        } else {
            observe(&r, x, o);
        }
        assert_close((double)r.low, (double)rows[i].low, 1e-6);
        assert_close((double)r.high, (double)rows[i].high, 1e-6);
        msc_free(h);
        msc_free(x);
    }
}

static void test_tools_range__mse(void **state) {
    (void)state;
    for (int is_histogram = 0; is_histogram < 2; is_histogram++) {
        check_searched(mse, sizeof(mse) / sizeof(mse[0]),
                       (struct msc_observation){.observer = MSC_OBSERVER_MSE}, is_histogram);
    }
}

// All values are zero; then there is only a single value.
static void test_tools_range__degenerate(void **state) {
    static const float zeros[5] = {0};
    static const float one[1] = {-3};
    (void)state;
    for (int i = 0; i < MSC_OBSERVER_COUNT; i++) {
        struct msc_observation o = {
            .observer = (enum msc_observer)i, .percentile = 99, .scheme = {.bits = 8}};
        struct msc_range r;
        assert_ok(msc_range_of_values(&r, zeros, 5, &o));
        assert_true(r.low == 0 && r.high == 0);
        assert_ok(msc_range_of_values(&r, one, 1, &o));
        assert_true(r.low <= -0.74f && r.low >= -3 && r.high == 0);
    }
}

static void test_tools_range__observer_names(void **state) {
    enum msc_observer found;
    (void)state;
    for (int i = 0; i < MSC_OBSERVER_COUNT; i++) {
        assert_true(msc_observer_find(&found, msc_observer_name((enum msc_observer)i)));
        assert_int_equal(found, i);
    }
    assert_false(msc_observer_find(&found, "mean"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_range__scheme_limits),
        cmocka_unit_test(test_tools_range__scheme_fit),
        cmocka_unit_test(test_tools_range__scheme_cut),
        cmocka_unit_test(test_tools_range__fit_of_empty_and_extreme),
        cmocka_unit_test(test_tools_range__minmax),
        cmocka_unit_test(test_tools_range__percentile),
        cmocka_unit_test(test_tools_range__percentile_of_few),
        cmocka_unit_test(test_tools_range__mse),
        cmocka_unit_test(test_tools_range__degenerate),
        cmocka_unit_test(test_tools_range__observer_names),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
