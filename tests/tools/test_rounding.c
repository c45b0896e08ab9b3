// Rounding of weights by three methods: nearest, GPTQ and coordinate descent. Also tests scales,
// groups, zero points and affine corrections of the weights. Expected values come from
// make_rounding.py.
#include "tools/rounding.h"

#include "base/alloc.h"
#include "tests/msc_test.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// make_rounding.py prints the expected values.

enum { ROWS = 3, COLUMNS = 70, SAMPLES = 160, LONG = 300, LONG_SAMPLES = 400 };

static const int8_t gptq_integers[] = {
    -1, 0,  1,  0,  1,  0,  0,  -2, 2,  -2, 2, -1, 2,  -1, -1, 1,  0,  0,  1,  -2, 2,  3,  0,  1,
    -1, 2,  1,  -3, 3,  2,  -2, 1,  -1, 1,  0, -2, 2,  -2, -3, -1, -1, 1,  3,  -1, 0,  -1, -2, 0,
    -3, -2, 0,  -1, 0,  -3, 1,  3,  -1, 3,  2, -3, -1, 1,  -2, 2,  1,  -2, 0,  -1, 2,  -2, 0,  -2,
    -1, 3,  2,  3,  -3, -1, 1,  0,  0,  -3, 0, -3, -2, -1, 1,  -3, -3, 1,  1,  -3, 2,  3,  1,  0,
    -1, 3,  1,  0,  0,  -2, 2,  3,  -2, 1,  0, -2, -1, -1, -2, 2,  2,  2,  -1, -1, -1, 3,  2,  1,
    1,  -2, 1,  -1, 1,  1,  -2, 3,  -3, 0,  2, 1,  0,  2,  0,  2,  -2, 3,  2,  -1, 1,  -1, -1, -3,
    0,  -2, 1,  -3, 1,  0,  2,  -1, -2, 0,  2, 0,  -2, -1, 1,  -1, -1, -2, -1, -1, -2, 1,  3,  -1,
    -1, 1,  -1, 1,  0,  -3, 1,  -1, 2,  0,  1, -1, -3, -2, 0,  0,  3,  0,  -3, -2, 2,  -2, 0,  -2,
    0,  1,  1,  -1, 3,  2,  -1, 2,  0,  1,  0, -1, 1,  2,  -3, 3,  -2, 0};
static const int8_t descended_integers[] = {
    -1, 1,  1,  -1, 1,  0,  1,  -3, 2,  -2, 2,  0,  2,  -1, -2, 2,  0,  0,  1,  -2, 2,  3,  0,  1,
    -1, 2,  1,  -3, 3,  2,  -1, 1,  -1, 1,  0,  -2, 2,  -2, -3, -1, -2, 1,  3,  -1, 1,  -1, -2, 0,
    -3, -2, -1, -1, 1,  -3, 1,  3,  -1, 3,  2,  -3, -1, 1,  -2, 2,  0,  -2, 1,  -2, 2,  -2, 0,  -2,
    -1, 3,  2,  3,  -3, -1, 2,  0,  0,  -3, 0,  -3, -2, -2, 1,  -2, -3, 0,  1,  -2, 2,  2,  1,  0,
    -1, 2,  2,  0,  0,  -2, 1,  3,  -2, 1,  -1, -1, -1, -1, -2, 2,  2,  2,  -1, -1, -1, 3,  2,  1,
    1,  -2, 1,  0,  1,  0,  -2, 3,  -2, -1, 2,  1,  0,  2,  0,  2,  -1, 3,  2,  -1, 1,  -1, -1, -3,
    1,  -2, 0,  -2, 1,  0,  1,  -1, -2, -1, 3,  0,  -1, -1, 1,  -2, 0,  -3, 0,  -1, -2, 1,  2,  -2,
    -1, 2,  -1, 1,  0,  -2, 1,  -2, 2,  0,  1,  -1, -3, -2, 0,  0,  3,  0,  -3, -2, 2,  -1, 0,  -3,
    0,  1,  2,  -1, 3,  2,  -1, 2,  0,  1,  -1, -1, 1,  2,  -3, 3,  -2, 0};
static const double nearest_errors[] = {0.446928631, 0.516089398, 0.507826829};
static const double gptq_errors[] = {0.170443807, 0.201698599, 0.209911867};
static const double descended_errors[] = {0.244373376, 0.253856053, 0.217268059};
static const double gains[] = {0.934452736, 0.990349912, 0.910363661};
static const double shifts[] = {0.208481299, 0.394040116, -0.392943449};
static const double least_errors[] = {0.223113432, 0.242968514, 0.162632354};
static const double least_errors_of_long_rows[] = {0.000576721726, 0.000602396088, 0.000571387512};

// The same numbers as `numbers` in make_rounding.py.
static void fill(float out[], int64_t n, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (float)((int32_t)(state >> 48) - 32768) / 32768.0f;
    }
}

struct problem {
    float w[ROWS * COLUMNS], h[COLUMNS * COLUMNS];
    double means[COLUMNS];
    float scales[ROWS * COLUMNS];
    int32_t zero_points[ROWS * COLUMNS], integers[ROWS * COLUMNS];
    struct msc_rounding_rows rows;
};

// Second moment and means of inputs. Neighbouring inputs are correlated, and one input is always 0.
// `offset` is added to all others.
static void fill_moment(float h[], double means[], double offset) {
    static float narrow[SAMPLES * COLUMNS];
    static double x[SAMPLES * COLUMNS];
    fill(narrow, SAMPLES * COLUMNS, 2);
    for (int i = 0; i < SAMPLES * COLUMNS; i++) {
        x[i] = narrow[i];
    }
    for (int k = 1; k < COLUMNS; k++) {
        for (int i = 0; i < SAMPLES; i++) {
            x[i * COLUMNS + k] += 0.8 * x[i * COLUMNS + k - 1];
        }
    }
    for (int i = 0; i < SAMPLES * COLUMNS; i++) {
        x[i] = i % COLUMNS == 5 ? 0 : x[i] + offset;
    }
    for (int a = 0; a < COLUMNS; a++) {
        means[a] = 0;
        for (int i = 0; i < SAMPLES; i++) {
            means[a] += x[i * COLUMNS + a] / SAMPLES;
        }
        for (int b = 0; b < COLUMNS; b++) {
            double sum = 0;
            for (int i = 0; i < SAMPLES; i++) {
                sum += x[i * COLUMNS + a] * x[i * COLUMNS + b];
            }
            h[a * COLUMNS + b] = (float)(sum / SAMPLES);
        }
    }
}

// 3 bits, including the lowest integer (-4). Scales come from the largest weight of each row.
static void set_up(struct problem *p) {
    *p = (struct problem){.rows = {.n_rows = ROWS, .n_columns = COLUMNS}};
    p->rows.scheme =
        (struct msc_scheme){.bits = 3, .is_symmetric = true, .is_weight = true, .has_lowest = true};
    p->rows.weights = p->w;
    p->rows.h = p->h;
    p->rows.scales = p->scales;
    p->rows.zero_points = p->zero_points;
    p->rows.integers = p->integers;
    fill(p->w, ROWS * COLUMNS, 1);
    fill_moment(p->h, p->means, 0);
    for (int r = 0; r < ROWS; r++) {
        float most = 0;
        for (int k = 0; k < COLUMNS; k++) {
            most = fmaxf(most, fabsf(p->w[r * COLUMNS + k]));
        }
        p->scales[r] = most / 3;
    }
    msc_linear_algebra_begin();
}

static void assert_errors(const struct problem *p, const double expected[]) {
    double errors[ROWS];
    assert_ok(msc_rounding_errors(errors, &p->rows));
    for (int r = 0; r < ROWS; r++) {
        if (!(fabs(errors[r] - expected[r]) <= 1e-5 * expected[r])) {
            print_error("row %d: error %.9g, expected %.9g\n", r, errors[r], expected[r]);
            fail();
        }
    }
}

static void assert_integers(const struct problem *p, const int8_t expected[]) {
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        if (p->integers[i] != expected[i]) {
            print_error("integer %d: %d, expected %d\n", i, (int)p->integers[i], expected[i]);
            fail();
        }
    }
}

static void round_gptq(struct problem *p) {
    struct msc_gptq_order *order;
    assert_ok(msc_gptq_order_create(&order, p->h, COLUMNS, 0.01));
    assert_ok(msc_rounding_gptq(&p->rows, order));
    msc_gptq_order_destroy(order);
}

static void test_tools_rounding__nearest(void **state) {
    struct problem p;
    (void)state;
    set_up(&p);
    msc_rounding_nearest(&p.rows);
    assert_errors(&p, nearest_errors);
}

static void test_tools_rounding__gptq(void **state) {
    struct problem p;
    (void)state;
    set_up(&p);
    round_gptq(&p);
    assert_integers(&p, gptq_integers);
    assert_errors(&p, gptq_errors);
}

static void test_tools_rounding__descent(void **state) {
    struct problem p;
    (void)state;
    set_up(&p);
    msc_rounding_nearest(&p.rows);
    assert_ok(msc_rounding_descend(&p.rows, 50));
    assert_integers(&p, descended_integers);
    assert_errors(&p, descended_errors);
}

static void test_tools_rounding__scales(void **state) {
    struct problem p;
    (void)state;
    set_up(&p);
    assert_ok(msc_rounding_fit(&p.rows));
    msc_rounding_nearest(&p.rows);
    for (int r = 0; r < ROWS; r++) {
        assert_int_equal(p.zero_points[r], 0);
    }
    assert_errors(&p, least_errors);
}

// The second moment of non-negative inputs with correlated neighbours.
static void fill_long_moment(float h[]) {
    static float x[LONG_SAMPLES * LONG];
    static double row[LONG], sums[LONG * LONG];
    fill(x, LONG_SAMPLES * LONG, 4);
    for (int i = 0; i < LONG_SAMPLES; i++) {
        for (int k = 0; k < LONG; k++) {
            row[k] = (double)x[i * LONG + k] + (k > 0 ? 0.8 * row[k - 1] : 0);
        }
        for (int k = 0; k < LONG; k++) {
            x[i * LONG + k] = (float)fmax(row[k] + 0.3, 0);
        }
        for (int k = 0; k < LONG * LONG; k++) {
            sums[k] += (double)x[i * LONG + k / LONG] * (double)x[i * LONG + k % LONG];
        }
    }
    for (int k = 0; k < LONG * LONG; k++) {
        h[k] = (float)(sums[k] / LONG_SAMPLES);
    }
}

// Only some ranges of long rows are tried; the best of them is chosen.
static void test_tools_rounding__scales_of_long_rows(void **state) {
    static float w[ROWS * LONG], h[LONG * LONG];
    static int32_t integers[ROWS * LONG];
    float scales[ROWS];
    int32_t zero_points[ROWS];
    struct msc_rounding_rows rows = {
        .n_rows = ROWS,
        .n_columns = LONG,
        .weights = w,
        .h = h,
        .scheme = {.bits = 8, .is_symmetric = true, .is_weight = true, .has_lowest = true},
        .scales = scales,
        .zero_points = zero_points,
        .integers = integers};
    double errors[ROWS];
    (void)state;
    fill(w, ROWS * LONG, 3);
    fill_long_moment(h);
    assert_ok(msc_rounding_fit(&rows));
    msc_rounding_nearest(&rows);
    assert_ok(msc_rounding_errors(errors, &rows));
    for (int r = 0; r < ROWS; r++) {
        if (!(errors[r] < 1.005 * least_errors_of_long_rows[r])) {
            print_error("row %d: error %.9g, the least %.9g\n", r, errors[r],
                        least_errors_of_long_rows[r]);
            fail();
        }
    }
}

// Each group has its own scale. So rounding costs little even if the halves of a row differ by a
// factor of 100.
static void test_tools_rounding__groups(void **state) {
    struct problem p;
    double together[ROWS], apart[ROWS];
    (void)state;
    set_up(&p);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        p.w[i] *= i % COLUMNS < 32 ? 0.01f : 1.0f;
    }
    assert_ok(msc_rounding_fit(&p.rows));
    msc_rounding_nearest(&p.rows);
    assert_ok(msc_rounding_errors(together, &p.rows));
    p.rows.group_size = 32;
    assert_ok(msc_rounding_fit(&p.rows));
    round_gptq(&p);
    assert_ok(msc_rounding_descend(&p.rows, 4));
    assert_ok(msc_rounding_errors(apart, &p.rows));
    for (int r = 0; r < ROWS; r++) {
        assert_true(apart[r] < together[r]);
        assert_true(p.scales[r * 3] < 0.02f * p.scales[r * 3 + 1]);
    }
}

// With zero points the integers start at 0, even if all weights have the same sign.
static void test_tools_rounding__zero_points(void **state) {
    struct problem p;
    double errors[ROWS];
    (void)state;
    set_up(&p);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        p.w[i] = p.w[i] / 2 + 0.4f;
    }
    p.rows.scheme.is_symmetric = false;
    assert_ok(msc_rounding_fit(&p.rows));
    round_gptq(&p);
    assert_ok(msc_rounding_errors(errors, &p.rows));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        assert_in_range(p.integers[i], 0, 7);
    }
    for (int r = 0; r < ROWS; r++) {
        assert_true(p.zero_points[r] > 0);
        assert_true(errors[r] < gptq_errors[r]);
    }
}

// Replaces the second moment by the second moment around the means.
static void centre(struct problem *p) {
    for (int i = 0; i < COLUMNS * COLUMNS; i++) {
        p->h[i] = (float)(p->h[i] - p->means[i / COLUMNS] * p->means[i % COLUMNS]);
    }
}

// Expected: the lines that numpy fits to the outputs; without shifts, lines through the origin.
static void test_tools_rounding__affine(void **state) {
    struct problem p;
    float found[ROWS], scales[ROWS];
    (void)state;
    set_up(&p);
    fill_moment(p.h, p.means, 0.7);
    centre(&p);
    memcpy(scales, p.scales, sizeof(scales));
    msc_rounding_nearest(&p.rows);
    assert_ok(msc_rounding_fit_affine(found, &p.rows, p.means));
    for (int r = 0; r < ROWS; r++) {
        assert_true(fabs((double)p.scales[r] / (double)scales[r] - gains[r]) < 1e-4);
        assert_true(fabs((double)found[r] - shifts[r]) < 1e-3);
    }
    double before[ROWS], after[ROWS];
    fill_moment(p.h, p.means, 0.7);
    memcpy(p.scales, scales, sizeof(scales));
    assert_ok(msc_rounding_errors(before, &p.rows));
    assert_ok(msc_rounding_fit_affine(NULL, &p.rows, p.means));
    assert_ok(msc_rounding_errors(after, &p.rows));
    for (int r = 0; r < ROWS; r++) {
        assert_true(after[r] < before[r]);
    }
}

// A matrix that is not a second moment of any inputs is refused.
static void test_tools_rounding__not_a_moment(void **state) {
    struct problem p;
    struct msc_gptq_order *order;
    (void)state;
    set_up(&p);
    p.h[3 * COLUMNS + 4] = p.h[4 * COLUMNS + 3] = 1e6f;
    assert_int_equal(msc_gptq_order_create(&order, p.h, COLUMNS, 0.01), MSC_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_rounding__nearest),
        cmocka_unit_test(test_tools_rounding__gptq),
        cmocka_unit_test(test_tools_rounding__descent),
        cmocka_unit_test(test_tools_rounding__scales),
        cmocka_unit_test(test_tools_rounding__scales_of_long_rows),
        cmocka_unit_test(test_tools_rounding__groups),
        cmocka_unit_test(test_tools_rounding__zero_points),
        cmocka_unit_test(test_tools_rounding__affine),
        cmocka_unit_test(test_tools_rounding__not_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
