// Two checks of samples: which samples two datasets have in common, and whether all samples are
// equal. Expected samples are selected by hand.
#include "data/dataset.h"

#include "data_test.h"

#include <math.h>

// One sample of a dataset with two inputs, x [n, 2] and mask [n]. Both elements of a row of x are
// equal. The label is the value of x.
struct sample {
    float x;
    int64_t mask;
};

static struct msc_dataset *make(const struct sample of[], int64_t n, int64_t batch) {
    static const struct msc_input_spec specs[] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 2}, .is_batched = true},
        {.name = "mask", .dtype = MSC_DTYPE_I64, .n_dims = 1, .dims = {-1}, .is_batched = true}};
    struct msc_array *arrays[2] = {NULL}, *labels = NULL;
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_array_create(&arrays[0], MSC_DTYPE_F32, 2, (const int64_t[]){n, 2}),
                     MSC_OK);
    assert_int_equal(msc_array_create(&arrays[1], MSC_DTYPE_I64, 1, &n), MSC_OK);
    assert_int_equal(msc_array_create(&labels, MSC_DTYPE_I64, 1, &n), MSC_OK);
    for (int64_t i = 0; i < n; i++) {
        ((float *)msc_array_data(arrays[0]))[2 * i] = of[i].x;
        ((float *)msc_array_data(arrays[0]))[2 * i + 1] = of[i].x;
        ((int64_t *)msc_array_data(arrays[1]))[i] = of[i].mask;
        ((int64_t *)msc_array_data(labels))[i] = isnan(of[i].x) ? -1 : (int64_t)of[i].x;
    }
    assert_int_equal(msc_dataset_create(&data, specs, arrays, 2, labels, batch), MSC_OK);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    msc_array_release(labels);
    return data;
}

static const struct sample known[] = {{1, 0}, {2, 0}, {3, 1}, {NAN, 0}, {0, 0}};

// The result keeps the order of the samples and has those that differ from every known sample in
// some input. This holds for every batch size.
static void test_data_dataset_apart__samples_of_two_inputs(void **state) {
    // In order: known; new mask; new x; known NaN; known, because -0 equals 0; a new sample
    // twice.
    static const struct sample given[] = {{2, 0},     {2, 1}, {7, 0}, {NAN, 0},
                                          {-0.0f, 0}, {8, 1}, {8, 1}};
    static const float left[] = {2, 7, 8, 8};
    (void)state;
    for (int64_t batch = 1; batch <= 8; batch++) {
        struct msc_dataset *all = make(known, 5, 2), *from = make(given, 7, batch), *apart = NULL;
        int64_t n_shared = 0;
        assert_int_equal(msc_dataset_create_apart(&apart, &n_shared, from, all), MSC_OK);
        assert_int_equal(n_shared, 3);
        msc_dataset_destroy(from); // the result must not refer to its source
        assert_int_equal(msc_dataset_n_samples(apart), 4);
        for (int64_t i = 0; i < 4; i++) {
            size_t b = (size_t)(i / batch);
            const struct msc_array *x = msc_dataset_batch(apart, b, 0);
            assert_true(msc_array_get_double(x, 2 * (i % batch) + 1) == (double)left[i]);
            assert_int_equal(msc_dataset_label(apart, i), (int64_t)left[i]);
        }
        msc_dataset_destroy(apart);
        msc_dataset_destroy(all);
    }
}

static void test_data_dataset_apart__all_or_none(void **state) {
    static const struct sample others[] = {{3, 0}, {4, 0}}, turned[] = {{3, 1}, {1, 0}, {1, 0}};
    struct msc_dataset *all = make(known, 5, 2), *apart = NULL;
    struct msc_dataset *none = make(others, 2, 2), *every = make(turned, 3, 2);
    int64_t n_shared = 9;
    (void)state;
    assert_int_equal(msc_dataset_create_apart(&apart, &n_shared, none, all), MSC_OK);
    assert_true(n_shared == 0 && !apart);
    assert_int_equal(msc_dataset_create_apart(&apart, &n_shared, every, all), MSC_OK);
    assert_true(n_shared == 3 && !apart);
    msc_dataset_destroy(all);
    msc_dataset_destroy(none);
    msc_dataset_destroy(every);
}

// Samples of two shapes: each remaining sample forms a batch of its own.
static void test_data_dataset_apart__samples_of_other_shapes(void **state) {
    static const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {-1}};
    static const float two[] = {5, 6}, more[] = {5, 6, 7, 8};
    struct msc_array *a = NULL, *b = NULL;
    struct msc_dataset *all = NULL, *from = NULL, *apart = NULL;
    int64_t n_shared = 0;
    (void)state;
    assert_int_equal(msc_array_create_from(&a, MSC_DTYPE_F32, 2, (const int64_t[]){1, 2}, two),
                     MSC_OK);
    assert_int_equal(msc_array_create_from(&b, MSC_DTYPE_F32, 2, (const int64_t[]){2, 2}, more),
                     MSC_OK);
    assert_int_equal(msc_dataset_create(&all, &spec, &a, 1, NULL, 1), MSC_OK);
    assert_int_equal(msc_dataset_create(&from, &spec, &b, 1, NULL, 1), MSC_OK);
    assert_int_equal(msc_dataset_create_apart(&apart, &n_shared, from, all), MSC_OK);
    assert_int_equal(n_shared, 1);
    assert_int_equal(msc_dataset_n_samples(apart), 1);
    assert_true(msc_array_get_double(msc_dataset_batch(apart, 0, 0), 0) == 7);
    msc_dataset_destroy(apart);
    msc_dataset_destroy(from);
    msc_dataset_destroy(all);
    msc_array_release(a);
    msc_array_release(b);
}

static bool is_constant(const struct sample of[], int64_t n, int64_t batch) {
    struct msc_dataset *data = make(of, n, batch);
    bool found = msc_dataset_is_constant(data);
    msc_dataset_destroy(data);
    return found;
}

// A single sample does not count as constant.
static void test_data_dataset_apart__constant(void **state) {
    static const struct sample zeros[] = {{0, 1}, {-0.0f, 1}, {0, 1}}, masks[] = {{0, 1}, {0, 2}};
    (void)state;
    for (int64_t batch = 1; batch <= 3; batch++) {
        assert_true(is_constant(zeros, 3, batch));
        assert_false(is_constant(zeros, 1, batch));
        assert_false(is_constant(masks, 2, batch));
        assert_false(is_constant(known, 5, batch));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_dataset_apart__samples_of_two_inputs),
        cmocka_unit_test(test_data_dataset_apart__all_or_none),
        cmocka_unit_test(test_data_dataset_apart__samples_of_other_shapes),
        cmocka_unit_test(test_data_dataset_apart__constant),
    };
    (void)argc;
    (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
