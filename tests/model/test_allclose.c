// Checks which differences between the outputs of two computations are accepted. Expected results
// follow from the formulas in model/allclose.h.
#include "tests/msc_test.h"

#include "model/allclose.h"

#include <math.h>

static bool allclose_moved(enum msc_dtype dtype, int64_t n, const void *found, const void *truth,
                           double moved, int64_t *place) {
    struct msc_array *a, *b;
    double worst = 0;
    assert_ok(msc_array_create_from(&a, dtype, 1, &n, found));
    assert_ok(msc_array_create_from(&b, dtype, 1, &n, truth));
    *place = -1;
    bool is_same = msc_outputs_allclose(
        place, &worst, a, b, &(struct msc_closeness){.atol = 1e-3, .rtol = 1e-3, .moved = moved});
    msc_array_release(a);
    msc_array_release(b);
    return is_same;
}

static bool allclose(enum msc_dtype dtype, int64_t n, const void *found, const void *truth,
                     int64_t *place) {
    return allclose_moved(dtype, n, found, truth, 0, place);
}

static void test_pipeline_allclose__floats(void **state) {
    static const float truth[] = {1, 1000, NAN, INFINITY, 0};
    static const struct {
        float found[5];
        int64_t place; // index of the first element that differs too much; -1: all are close
    } rows[] = {
        {{1.0019f, 1000.9f, NAN, INFINITY, 0.0009f}, -1},
        {{1.02f, 1000, NAN, INFINITY, 0.1f}, 0},
        {{1, 1002, NAN, INFINITY, 0}, 1},
        {{1, 1000, 0, INFINITY, 0}, 2},
        {{1, 1000, NAN, -INFINITY, 0}, 3},
        {{1, 1000, NAN, 3e38f, 0}, 3},
        {{1, 1000, NAN, INFINITY, NAN}, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t place;
        assert_int_equal(allclose(MSC_DTYPE_F32, 5, rows[i].found, truth, &place),
                         rows[i].place < 0);
        assert_int_equal(place, rows[i].place);
    }
}

// If terms of a sum cancel, the sum may differ by rtol / 100 of the output's greatest magnitude: 30
// here.
static void test_pipeline_allclose__sums_that_cancel(void **state) {
    static const float truth[] = {3e6f, -2e6f, 1};
    static const float near[] = {3e6f, -2e6f, 20}, far[] = {3e6f, -2e6f, 40};
    (void)state;
    int64_t place;
    assert_true(allclose(MSC_DTYPE_F32, 3, near, truth, &place));
    assert_false(allclose(MSC_DTYPE_F32, 3, far, truth, &place));
    assert_int_equal(place, 2);
}

// If rounding the inputs changes the output by 0.02, the output may differ by ten times as much.
static void test_pipeline_allclose__moved(void **state) {
    static const float truth[] = {1, 2, 3}, near[] = {1.19f, 2, 2.81f}, far[] = {1, 2.21f, 3};
    (void)state;
    int64_t place;
    assert_false(allclose(MSC_DTYPE_F32, 3, near, truth, &place));
    assert_true(allclose_moved(MSC_DTYPE_F32, 3, near, truth, 0.02, &place));
    assert_false(allclose_moved(MSC_DTYPE_F32, 3, far, truth, 0.02, &place));
    assert_int_equal(place, 1);
}

// However much rounding changes the output, it may differ by at most 1000 times the requested
// tolerance: 1e-9 with `tight`, 1e-4 with `wide`. In this test the output differs by 1e-5.
static void test_pipeline_allclose__asked(void **state) {
    static const float truth[] = {1, 2, 3}, found[] = {1, 2.00001f, 3};
    (void)state;
    struct msc_array *a, *b;
    int64_t n = 3, place = -1;
    double worst = 0;
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_F32, 1, &n, found));
    assert_ok(msc_array_create_from(&b, MSC_DTYPE_F32, 1, &n, truth));
    const struct msc_closeness tight = {.atol = 1e-12, .moved = 0.02};
    assert_false(msc_outputs_allclose(&place, &worst, a, b, &tight));
    assert_int_equal(place, 1);
    const struct msc_closeness wide = {.atol = 1e-7, .moved = 0.02};
    assert_true(msc_outputs_allclose(&place, &worst, a, b, &wide));
    msc_array_release(a);
    msc_array_release(b);
}

// At most one of a hundred integers may differ.
static void test_pipeline_allclose__integers(void **state) {
    enum { N = 200 };
    int64_t truth[N] = {0}, found[N] = {0}, place;
    (void)state;
    found[7] = 1;
    assert_false(allclose(MSC_DTYPE_I64, 99, found, truth, &place));
    assert_int_equal(place, 7);
    assert_true(allclose(MSC_DTYPE_I64, 100, found, truth, &place));
    found[150] = 1;
    assert_true(allclose(MSC_DTYPE_I64, N, found, truth, &place));
    found[199] = 1;
    assert_false(allclose(MSC_DTYPE_I64, N, found, truth, &place));
    assert_int_equal(place, 7);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_allclose__floats),
        cmocka_unit_test(test_pipeline_allclose__sums_that_cancel),
        cmocka_unit_test(test_pipeline_allclose__moved),
        cmocka_unit_test(test_pipeline_allclose__asked),
        cmocka_unit_test(test_pipeline_allclose__integers),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
