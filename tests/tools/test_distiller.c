// Distillation of a weight: least-squares improvement under a quantisation plan. Expected weights
// follow from the closed form of ridge regression, worked out in the comments.
#include "tools/distiller.h"

#include "base/alloc.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 6 };

// A weight [rows, columns] or [columns, rows] that a plan quantises to 8 bits with step 0.02.
struct weight_case {
    struct msc_array *w;
    struct msc_tensor tensor;
    struct msc_slot slot;
    struct msc_moment moment; // filled in by the test, not measured
    struct msc_quant now;
    float scales[ROWS * COLUMNS];
    int32_t zero_points[ROWS * COLUMNS];
    bool has_shifts;
    float h[COLUMNS * COLUMNS], cross[COLUMNS * COLUMNS];
    double means[COLUMNS], float_means[COLUMNS];
};

struct shape {
    bool is_input_first;
    int64_t n_groups;
    int32_t group_size; // number of columns that share a scale
    bool has_one_scale, has_shifts;
};

static double weight_of(int64_t row, int64_t k) {
    return sin(1.0 + 2.3 * (double)row + 0.7 * (double)k);
}

static int64_t element_of(const struct weight_case *c, int64_t row, int64_t k) {
    return c->slot.channel_axis == 1 ? k * ROWS + row : row * c->moment.n_columns + k;
}

static void weight_open(struct weight_case *c, const struct shape *s) {
    int64_t n_columns = COLUMNS / s->n_groups;
    const int64_t dims[] = {s->is_input_first ? n_columns : ROWS,
                            s->is_input_first ? ROWS : n_columns};
    int32_t n_blocks =
        s->group_size > 0 ? ((int32_t)n_columns + s->group_size - 1) / s->group_size : 1;
    *c = (struct weight_case){.slot = {.channel_axis = s->is_input_first ? 1 : 0}};
    c->moment = (struct msc_moment){
        .n_groups = s->n_groups, .n_columns = n_columns, .n_rows = 1, .h = c->h, .cross = c->cross};
    c->moment.means = c->means;
    c->moment.float_means = c->float_means;
    c->has_shifts = s->has_shifts;
    assert_ok(msc_array_create(&c->w, MSC_DTYPE_F32, 2, dims));
    float *data = msc_array_data(c->w);
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t k = 0; k < n_columns; k++) {
            data[element_of(c, r, k)] = (float)weight_of(r, k);
        }
    }
    c->tensor = (struct msc_tensor){.data = c->w, .n_dims = 2};
    c->now = (struct msc_quant){.bits = 8,
                                .low = -127,
                                .high = 127,
                                .axis = s->has_one_scale    ? -1
                                        : s->group_size > 0 ? (s->is_input_first ? 0 : 1)
                                                            : c->slot.channel_axis,
                                .group_size = s->group_size,
                                .group_axes = s->group_size > 0 ? 1 : 0,
                                .n = s->has_one_scale ? 1 : ROWS * n_blocks,
                                .scales = c->scales,
                                .zero_points = c->zero_points};
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        c->scales[i] = 0.02f;
    }
}

static void improve(struct msc_quant *q, const struct weight_case *c, double ridge, int n_threads) {
    const struct msc_distiller_job job = {.weight = &c->tensor,
                                          .slot = &c->slot,
                                          .now = &c->now,
                                          .moment = &c->moment,
                                          .ridge = ridge,
                                          .has_shifts = c->has_shifts,
                                          .n_threads = n_threads};
    assert_ok(msc_distiller_improve(q, &job));
}

static void add_means(struct weight_case *c) {
    int64_t n = c->moment.n_columns;
    for (int64_t i = 0; i < COLUMNS; i++) {
        c->means[i] = 1 - (double)i / 5;
        c->float_means[i] = 0.5;
    }
    for (int64_t i = 0; i < COLUMNS * n; i++) {
        int64_t row = i / n, column = row / n * n + i % n;
        c->h[i] += (float)(c->means[row] * c->means[column]);
        c->cross[i] += (float)(c->float_means[row] * c->means[column]);
    }
}

// Checks that each output has the same mean as in the float model.
static void check_shift(const struct weight_case *c, const struct msc_array *improved, int64_t row,
                        double shift) {
    int64_t n = c->moment.n_columns, group = row / (ROWS / c->moment.n_groups);
    double mean = shift, expected = 0;
    for (int64_t k = 0; k < n; k++) {
        mean += msc_array_get_double(improved, element_of(c, row, k)) * c->means[group * n + k];
        expected += weight_of(row, k) * c->float_means[group * n + k];
    }
    assert_true(fabs(mean - expected) < 1e-5);
}

// The inputs are uncorrelated and have mean square 1. In the float model, input k is 1 + k / 10
// times as large. So the improved weight is w* = w (1 + k / 10 + ridge) / (1 + ridge), rounded to
// the nearest step. With shifts, the formula holds for the inputs minus their means. Input k has
// mean 1 - k / 5, but mean 1/2 in the float model; the shifts correct the difference.
static void check_scaled(const struct shape *s) {
    const double ridge = 0.25;
    struct weight_case c;
    struct msc_array *improved;
    struct msc_quant q;
    weight_open(&c, s);
    int64_t n = c.moment.n_columns, rows_of_group = ROWS / s->n_groups;
    for (int64_t i = 0; i < COLUMNS; i++) {
        c.h[i * n + i % n] = 1;
        c.cross[i * n + i % n] = 1 + (float)i / 10;
    }
    if (s->has_shifts) {
        add_means(&c);
    }
    improve(&q, &c, ridge, 2);
    assert_int_equal(q.low, -128);
    assert_int_equal(q.n, c.now.n);
    assert_true(!s->has_one_scale || q.scales[0] == 0.02f);
    assert_ok(msc_fake_quantize_array(&improved, c.w, &q));
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t k = 0; k < n; k++) {
            double factor = 1 + (double)(r / rows_of_group * n + k) / 10;
            double expected = weight_of(r, k) * (factor + ridge) / (1 + ridge);
            double found = msc_array_get_double(improved, element_of(&c, r, k));
            // Steps are below 1.6 / 127, unless the plan sets the step to 0.02.
            assert_true(fabs(found - expected) < 0.0101);
        }
        assert_int_equal(q.shifts != NULL, s->has_shifts);
        if (s->has_shifts) {
            check_shift(&c, improved, r, msc_array_get_double(q.shifts, r));
        }
    }
    msc_array_release(improved);
    msc_quant_finish(&q);
    msc_array_release(c.w);
}

static void test_tools_distiller__scaled_inputs(void **state) {
    static const struct shape shapes[] = {
        {.n_groups = 1},
        {.n_groups = 1, .is_input_first = true},
        {.n_groups = 2},
        {.n_groups = 1, .group_size = 4},
        {.n_groups = 1, .group_size = 4, .is_input_first = true},
        {.n_groups = 1, .has_one_scale = true},
        {.n_groups = 1, .has_shifts = true},
        {.n_groups = 2, .has_shifts = true},
        {.n_groups = 1, .group_size = 4, .is_input_first = true, .has_shifts = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        print_message("shape %zu\n", i);
        check_scaled(&shapes[i]);
    }
}

// Compares the error with one computed from the two samples of the test below. The input means are
// (1, 1/4) under the plan and (1, 1/2) in the float model. With w = (1, 1/2) the float model's
// outputs are 3/2 and 1.
static void check_error(struct weight_case *c, const struct msc_quant *q, const float improved[],
                        double shift) {
    double off[] = {improved[0] + improved[1] + shift - 1.5,
                    improved[0] - improved[1] / 2 + shift - 1};
    double expected = (off[0] * off[0] + off[1] * off[1]) / 2 - (1.5 * 1.5 + 1) / 2, error;
    float narrow = (float)shift;
    int64_t n = 1;
    struct msc_quant with_shift = *q;
    struct msc_array *shifts = NULL;
    assert_ok(msc_array_create_from(&shifts, MSC_DTYPE_F32, 1, &n, &narrow));
    with_shift.shifts = shift != 0 ? shifts : NULL;
    c->means[0] = c->float_means[0] = 1;
    c->means[1] = 0.25;
    c->float_means[1] = 0.5;
    const struct msc_distiller_job job = {
        .weight = &c->tensor, .slot = &c->slot, .now = &with_shift, .moment = &c->moment};
    assert_ok(msc_distiller_error(&error, &job));
    assert_true(fabs(error - expected) < 1e-5);
    msc_array_release(shifts);
}

// The two samples are (1, 1) and (1, -1/2) under the plan (the rows of X), and (1, 1) and (1, 0) in
// the float model (the rows of F). So X'X / 2 = [1, 1/4; 1/4, 5/8] and F'X / 2 = [1, 1/4; 1/2,
// 1/2]. With ridge r and d = 13 r / 16, the improved weights are w* = (w F'X/2 + d w)(X'X/2 + d
// I)^-1. For r = 8/13, d is 1/2 and the inverse is [9/8, -1/4; -1/4, 3/2] / (13/8). With w = (1,
// 1/2) the first factor is (7/4, 3/4), so w* = (57/52, 11/26).
static void test_tools_distiller__two_samples(void **state) {
    static const float h[] = {1, 0.25f, 0.25f, 0.625f}, cross[] = {1, 0.25f, 0.5f, 0.5f};
    static const float w[] = {1, 0.5f};
    static const int64_t dims[] = {1, 2};
    struct weight_case c;
    struct msc_array *improved;
    struct msc_quant q;
    (void)state;
    weight_open(&c, &(struct shape){.n_groups = 1, .has_one_scale = true});
    msc_array_release(c.w);
    assert_ok(msc_array_create_from(&c.w, MSC_DTYPE_F32, 2, dims, w));
    memcpy(c.h, h, sizeof(h));
    memcpy(c.cross, cross, sizeof(cross));
    c.tensor.data = c.w;
    c.moment.n_columns = 2;
    improve(&q, &c, 8.0 / 13, 1);
    assert_ok(msc_fake_quantize_array(&improved, c.w, &q));
    assert_true(fabs(msc_array_get_double(improved, 0) - 57.0 / 52) < 0.0101);
    assert_true(fabs(msc_array_get_double(improved, 1) - 11.0 / 26) < 0.0101);
    check_error(&c, &q, msc_array_data(improved), 0);
    check_error(&c, &q, msc_array_data(improved), 0.25);
    msc_array_release(improved);
    msc_quant_finish(&q);
    msc_array_release(c.w);
}

// If all inputs of a group are always 0, the group's weights do not change. Moments that are NaN or
// infinite are refused.
static void test_tools_distiller__degenerate(void **state) {
    struct weight_case c;
    struct msc_array *improved;
    struct msc_quant q;
    (void)state;
    weight_open(&c, &(struct shape){.n_groups = 1});
    improve(&q, &c, 0.5, 1);
    assert_ok(msc_fake_quantize_array(&improved, c.w, &q));
    for (int64_t k = 0; k < COLUMNS; k++) {
        assert_true(fabs(msc_array_get_double(improved, k) - weight_of(0, k)) < 0.0101);
    }
    msc_array_release(improved);
    msc_quant_finish(&q);
    c.h[0] = INFINITY;
    const struct msc_distiller_job job = {.weight = &c.tensor,
                                          .slot = &c.slot,
                                          .now = &c.now,
                                          .moment = &c.moment,
                                          .ridge = 0.5,
                                          .n_threads = 1};
    assert_int_equal(msc_distiller_improve(&q, &job), MSC_E_INVALID);
    msc_array_release(c.w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_distiller__scaled_inputs),
        cmocka_unit_test(test_tools_distiller__two_samples),
        cmocka_unit_test(test_tools_distiller__degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
