// Means and variances of elements with known formulas, to float32 precision.
#include "kernels/cpu/moments.h"

#include "base/alloc.h"

#include "tests/msc_test.h"

#include <math.h>

// A sawtooth: element i is first + i % 100. Whole periods have mean first + 49.5 and variance
// (100^2 - 1) / 12.
static const double spread = 833.25;

static float *sawtooth(int64_t n, float first) {
    float *x = msc_alloc((size_t)n * sizeof(*x));
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = first + (float)(i % 100);
    }
    return x;
}

static void check(const struct msc_moments *m, double n, double mean, double variance) {
    assert_true(m->n == n);
    if (!(fabs(m->mean - mean) <= 1e-7 * (1 + sqrt(variance)) &&
          fabs(msc_moments_variance(m) - variance) <= 5e-6 * variance)) {
        fail_msg("mean %.9g, expected %.9g; variance %.9g, expected %.9g", m->mean, mean,
                 msc_moments_variance(m), variance);
    }
}

// First elements: near 0, and so large that float32 barely resolves the differences between
// elements.
static const float firsts[] = {0.0f, -49.0f, 1e6f};

static void test_kernels_cpu_moments__rows(void **state) {
    static const int64_t lengths[] = {100, 1000, 4100, 1000000};
    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (size_t k = 0; k < sizeof(firsts) / sizeof(firsts[0]); k++) {
            float *x = sawtooth(lengths[i], firsts[k]);
            struct msc_moments m = {0};
            msc_moments_add_row(&m, x, lengths[i]);
            check(&m, (double)lengths[i], (double)firsts[k] + 49.5, spread);
            msc_free(x);
        }
    }
}

static void test_kernels_cpu_moments__few(void **state) {
    static const float x[] = {3, 5, 10};
    struct msc_moments m = {0}, nothing = {0};
    (void)state;
    msc_moments_add_row(&m, x, 1);
    check(&m, 1, 3, 0);
    msc_moments_add_row(&m, x + 1, 2);
    check(&m, 3, 6, 26.0 / 3);
    msc_moments_join(&m, &nothing);
    check(&m, 3, 6, 26.0 / 3);
    msc_moments_join(&nothing, &m);
    check(&nothing, 3, 6, 26.0 / 3);
}

static void test_kernels_cpu_moments__equal(void **state) {
    enum { N = 20001 };
    static float x[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = 2.3379076f;
    }
    struct msc_moments m = {0};
    msc_moments_add_row(&m, x, N);
    assert_true((float)m.mean == x[0]);
    assert_true(msc_moments_variance(&m) < 1e-16);
}

// Rows of 30, 150 and 128 columns, added in two calls. Each row starts at another place of the
// sawtooth. All columns together contain whole periods, whose moments are known.
static void test_kernels_cpu_moments__columns(void **state) {
    static const int64_t widths[] = {30, 150, 128};
    enum { ROWS = 1000, FIRST = 270 };
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        for (size_t k = 0; k < sizeof(firsts) / sizeof(firsts[0]); k++) {
            int64_t width = widths[i];
            float *x = sawtooth(ROWS * width, firsts[k]);
            double means[150] = {0}, squares[150] = {0};
            struct msc_moments_columns m = {0, means, squares};
            msc_moments_add_rows(&m, x, FIRST, width);
            msc_moments_add_rows(&m, x + FIRST * width, ROWS - FIRST, width);
            struct msc_moments all = msc_moments_of_columns(&m, 0, width, 0, 1);
            check(&all, (double)(ROWS * width), (double)firsts[k] + 49.5, spread);
            all = msc_moments_of_columns(&m, 0, width / 2, width / 2, 2);
            check(&all, (double)(ROWS * width), (double)firsts[k] + 49.5, spread);
            msc_free(x);
        }
    }
}

// Moments of columns 3, 8 and 13; rows have 15 columns. An element is its column's number plus -1,
// 0 or 1.
static void test_kernels_cpu_moments__some_columns(void **state) {
    enum { ROWS = 300, WIDTH = 15 };
    static float x[ROWS][WIDTH];
    double means[WIDTH] = {0}, squares[WIDTH] = {0};
    struct msc_moments_columns m = {0, means, squares};
    (void)state;
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < WIDTH; c++) {
            x[r][c] = (float)(c + r % 3 - 1);
        }
    }
    msc_moments_add_rows(&m, x[0], ROWS, WIDTH);
    struct msc_moments one = msc_moments_of_columns(&m, 3, 1, 0, 1);
    check(&one, ROWS, 3, 2.0 / 3);
    struct msc_moments some = msc_moments_of_columns(&m, 3, 1, 5, 3);
    check(&some, 3 * ROWS, 8, 2.0 / 3 + 50.0 / 3);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_moments__rows),
        cmocka_unit_test(test_kernels_cpu_moments__few),
        cmocka_unit_test(test_kernels_cpu_moments__equal),
        cmocka_unit_test(test_kernels_cpu_moments__columns),
        cmocka_unit_test(test_kernels_cpu_moments__some_columns),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
