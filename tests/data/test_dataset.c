// Datasets: samples loaded from files, cut into batches, parts, sequences and splits. Inputs are
// ramps, so each expected element follows from its index.
#include "data/dataset.h"

#include "data_test.h"

#include "base/file.h"
#include "data/npy.h"
#include "data/safetensors.h"

#include <string.h>

// An array of the given dims with elements first, first + 1, ...
static struct msc_array *ramp(enum msc_dtype dtype, int n_dims, const int64_t dims[],
                              int64_t first) {
    struct msc_array *wide = NULL, *a = NULL;
    assert_int_equal(msc_array_create(&wide, MSC_DTYPE_I64, n_dims, dims), MSC_OK);
    int64_t *values = msc_array_data(wide);
    for (int64_t i = 0; i < msc_array_n_elements(wide); i++) {
        values[i] = first + i;
    }
    assert_int_equal(msc_array_convert(&a, wide, dtype), MSC_OK);
    msc_array_release(wide);
    return a;
}

static const struct msc_input_spec batched = {
    .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 3}, .is_batched = true};

static struct msc_dataset *create_10(int64_t batch) {
    struct msc_array *x = ramp(MSC_DTYPE_F32, 2, (const int64_t[]){10, 3}, 0);
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_dataset_create(&data, &batched, &x, 1, NULL, batch), MSC_OK);
    msc_array_release(x);
    return data;
}

static void test_data_dataset__batches(void **state) {
    (void)state;
    struct msc_dataset *data = create_10(4);
    assert_int_equal(msc_dataset_n_samples(data), 10);
    assert_int_equal(msc_dataset_batch_size(data), 4);
    assert_int_equal(msc_dataset_n_inputs(data), 1);
    assert_int_equal(msc_dataset_n_batches(data), 3);
    static const int64_t sizes[] = {4, 4, 2};
    for (size_t b = 0; b < 3; b++) {
        assert_int_equal(msc_dataset_batch_samples(data, b), sizes[b]);
        test_is_ramp(msc_dataset_batch(data, b, 0), MSC_DTYPE_F32, 2,
                     (const int64_t[]){sizes[b], 3}, 12.0 * (double)b, 1.0);
    }
    assert_false(msc_dataset_has_labels(data));
    double min, max;
    msc_dataset_range(&min, &max, data, 0);
    assert_true(min == 0.0 && max == 29.0);
    msc_dataset_destroy(data);
    data = create_10(100);
    assert_int_equal(msc_dataset_n_batches(data), 1);
    assert_int_equal(msc_dataset_batch_samples(data, 0), 10);
    msc_dataset_destroy(data);
    msc_dataset_destroy(NULL);
}

// Samples 3 to 8 of ten, in batches of four: the batches hold samples 3 to 6, and 7 and 8.
static void test_data_dataset__part(void **state) {
    (void)state;
    struct msc_array *x = ramp(MSC_DTYPE_F32, 2, (const int64_t[]){10, 3}, 0);
    struct msc_array *labels = ramp(MSC_DTYPE_I64, 1, (const int64_t[]){10}, 100);
    struct msc_dataset *data = NULL, *part = NULL;
    assert_int_equal(msc_dataset_create(&data, &batched, &x, 1, labels, 4), MSC_OK);
    assert_int_equal(msc_dataset_create_part(&part, data, 3, 6), MSC_OK);
    assert_int_equal(msc_dataset_n_batches(part), 2);
    assert_int_equal(msc_dataset_n_samples(part), 6);
    test_is_ramp(msc_dataset_batch(part, 0, 0), MSC_DTYPE_F32, 2, (const int64_t[]){4, 3}, 9.0,
                 1.0);
    test_is_ramp(msc_dataset_batch(part, 1, 0), MSC_DTYPE_F32, 2, (const int64_t[]){2, 3}, 21.0,
                 1.0);
    assert_int_equal(msc_dataset_label(part, 0), 103);
    assert_int_equal(msc_dataset_label(part, 5), 108);
    msc_dataset_destroy(part);
    // Batches that the part contains completely are shared with the dataset.
    assert_int_equal(msc_dataset_create_part(&part, data, 4, 6), MSC_OK);
    assert_ptr_equal(msc_dataset_batch(part, 0, 0), msc_dataset_batch(data, 1, 0));
    assert_ptr_equal(msc_dataset_batch(part, 1, 0), msc_dataset_batch(data, 2, 0));
    msc_dataset_destroy(part);
    part = NULL;
    assert_int_equal(msc_dataset_create_part(&part, data, 5, 6), MSC_E_INVALID);
    assert_int_equal(msc_dataset_create_part(&part, data, 5, 0), MSC_E_INVALID);
    msc_dataset_destroy(data);
    msc_array_release(labels);
    msc_array_release(x);
}

static void test_data_dataset__hash_ignores_the_batch_size(void **state) {
    (void)state;
    struct msc_dataset *data = create_10(1);
    struct msc_hash h = msc_dataset_hash(data);
    msc_dataset_destroy(data);
    for (int64_t batch = 2; batch < 12; batch++) {
        data = create_10(batch);
        assert_true(msc_hash_equal(msc_dataset_hash(data), h));
        msc_dataset_destroy(data);
    }
}

// Five chunks in sequences of three and two. The first input takes a row of each chunk, the second
// a [2,3] array of each chunk, and the third one value for all chunks. The last two are states.
static void test_data_dataset__sequences(void **state) {
    (void)state;
    struct msc_input_spec specs[5] = {
        batched,
        {.name = "y", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {2, 3}},
        {.name = "rate", .dtype = MSC_DTYPE_I64, .n_dims = 0},
        {.name = "h", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {2, -1}, .state = "hn"},
        {.name = "c", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {2}, .state = "cn"}};
    struct msc_array *arrays[5] = {
        ramp(MSC_DTYPE_F32, 2, (const int64_t[]){5, 3}, 0),
        ramp(MSC_DTYPE_F32, 3, (const int64_t[]){5, 2, 3}, 100),
        ramp(MSC_DTYPE_I64, 0, NULL, 16000),
        NULL,
        ramp(MSC_DTYPE_F32, 2, (const int64_t[]){5, 2}, 50),
    };
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_dataset_create(&data, specs, arrays, 5, NULL, 3), MSC_OK);
    assert_true(msc_dataset_is_sequence(data));
    assert_int_equal(msc_dataset_n_batches(data), 2);
    assert_int_equal(msc_dataset_batch_samples(data, 1), 2);
    static const enum msc_input_form forms[] = {MSC_INPUT_CHUNKS, MSC_INPUT_CHUNKS,
                                                MSC_INPUT_SHARED, MSC_INPUT_STATE, MSC_INPUT_STATE};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(msc_dataset_form(data, i), forms[i]);
    }
    assert_null(msc_dataset_state(data, 0));
    assert_string_equal(msc_dataset_state(data, 4), "cn");
    const struct msc_array *batch = msc_dataset_batch(data, 1, 0);
    test_is_ramp(batch, MSC_DTYPE_F32, 3, (const int64_t[]){2, 1, 3}, 9.0, 1.0);
    batch = msc_dataset_batch(data, 1, 1);
    test_is_ramp(batch, MSC_DTYPE_F32, 3, (const int64_t[]){2, 2, 3}, 118.0, 1.0);
    test_is_ramp(msc_dataset_batch(data, 1, 2), MSC_DTYPE_I64, 0, NULL, 16000.0, 1.0);
    // State "h" starts with zeros, of length 1 because the model leaves its length open. State "c"
    // starts with the values of the fourth sample.
    test_is_ramp(msc_dataset_batch(data, 1, 3), MSC_DTYPE_F32, 2, (const int64_t[]){2, 1}, 0.0,
                 0.0);
    test_is_ramp(msc_dataset_batch(data, 1, 4), MSC_DTYPE_F32, 1, (const int64_t[]){2}, 56.0, 1.0);
    struct msc_array *chunk = NULL;
    assert_int_equal(msc_dataset_chunk(&chunk, data, 1, 0, 1), MSC_OK);
    test_is_ramp(chunk, MSC_DTYPE_F32, 2, (const int64_t[]){1, 3}, 12.0, 1.0);
    msc_array_release(chunk);
    struct msc_hash h = msc_dataset_hash(data);
    msc_dataset_destroy(data);
    // The sequence lengths are part of the hash; without lengths all samples are one sequence.
    assert_int_equal(msc_dataset_create(&data, specs, arrays, 5, NULL, 0), MSC_OK);
    assert_int_equal(msc_dataset_n_batches(data), 1);
    assert_false(msc_hash_equal(msc_dataset_hash(data), h));
    msc_dataset_destroy(data);
    for (int i = 0; i < 5; i++) {
        msc_array_release(arrays[i]);
    }
}

static void test_data_dataset__hash_sees_every_difference(void **state) {
    (void)state;
    const int64_t dims[] = {4, 3};
    struct msc_array *x[3] = {ramp(MSC_DTYPE_F32, 2, dims, 0), ramp(MSC_DTYPE_F32, 2, dims, 0),
                              ramp(MSC_DTYPE_F32, 2, dims, 0)};
    ((float *)msc_array_data(x[1]))[11] = 0.5f;
    struct msc_array *labels = ramp(MSC_DTYPE_I64, 1, dims, 0);
    struct msc_array *others = ramp(MSC_DTYPE_I64, 1, dims, 1);
    const struct msc_array *const label_rows[] = {NULL, NULL, labels, others};
    struct msc_array *const rows[] = {x[0], x[1], x[2], x[2]};
    struct msc_hash h[4];
    for (int i = 0; i < 4; i++) {
        struct msc_dataset *data = NULL;
        assert_int_equal(msc_dataset_create(&data, &batched, &rows[i], 1, label_rows[i], 3),
                         MSC_OK);
        h[i] = msc_dataset_hash(data);
        msc_dataset_destroy(data);
        for (int k = 0; k < i; k++) {
            assert_false(msc_hash_equal(h[i], h[k]));
        }
    }
    for (int i = 0; i < 3; i++) {
        msc_array_release(x[i]);
    }
    msc_array_release(labels);
    msc_array_release(others);
}

static void test_data_dataset__static_batch_of_one(void **state) {
    (void)state;
    struct msc_input_spec spec = batched;
    spec.dims[0] = 1;
    spec.is_batched = false;
    struct msc_array *rows = ramp(MSC_DTYPE_F32, 2, (const int64_t[]){5, 3}, 0);
    struct msc_array *stacked = ramp(MSC_DTYPE_F32, 3, (const int64_t[]){5, 1, 3}, 0);
    struct msc_array *const both[] = {rows, stacked};
    struct msc_hash h[2];
    for (int i = 0; i < 2; i++) {
        struct msc_dataset *data = NULL;
        assert_int_equal(msc_dataset_create(&data, &spec, &both[i], 1, NULL, 64), MSC_OK);
        assert_int_equal(msc_dataset_batch_size(data), 1);
        assert_int_equal(msc_dataset_n_batches(data), 5);
        for (size_t b = 0; b < 5; b++) {
            test_is_ramp(msc_dataset_batch(data, b, 0), MSC_DTYPE_F32, 2, (const int64_t[]){1, 3},
                         3.0 * (double)b, 1.0);
        }
        h[i] = msc_dataset_hash(data);
        msc_dataset_destroy(data);
    }
    assert_true(msc_hash_equal(h[0], h[1]));
    msc_array_release(rows);
    msc_array_release(stacked);
}

static void test_data_dataset__static_inputs_of_any_shape(void **state) {
    (void)state;
    const struct msc_input_spec specs[] = {
        {.name = "frames", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {2, 4}},
        {.name = "rate", .dtype = MSC_DTYPE_I64, .n_dims = 0},
        {.name = "state", .dtype = MSC_DTYPE_F32, .n_dims = 3, .dims = {2, 1, 3}},
        {.name = "step", .dtype = MSC_DTYPE_I64, .n_dims = 0},
    };
    struct msc_array *arrays[] = {
        ramp(MSC_DTYPE_F32, 3, (const int64_t[]){3, 2, 4}, 0),
        ramp(MSC_DTYPE_I64, 0, NULL, 16000),
        ramp(MSC_DTYPE_F32, 3, (const int64_t[]){2, 1, 3}, 7),
        ramp(MSC_DTYPE_I64, 1, (const int64_t[]){3}, 5),
    };
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_dataset_create(&data, specs, arrays, 4, NULL, 8), MSC_OK);
    assert_int_equal(msc_dataset_n_samples(data), 3);
    assert_int_equal(msc_dataset_n_batches(data), 3);
    for (size_t b = 0; b < 3; b++) {
        test_is_ramp(msc_dataset_batch(data, b, 0), MSC_DTYPE_F32, 2, (const int64_t[]){2, 4},
                     8.0 * (double)b, 1.0);
        test_is_ramp(msc_dataset_batch(data, b, 1), MSC_DTYPE_I64, 0, NULL, 16000, 0);
        test_is_ramp(msc_dataset_batch(data, b, 2), MSC_DTYPE_F32, 3, (const int64_t[]){2, 1, 3}, 7,
                     1);
        test_is_ramp(msc_dataset_batch(data, b, 3), MSC_DTYPE_I64, 0, NULL, 5.0 + (double)b, 0);
    }
    msc_dataset_destroy(data);
    for (int i = 0; i < 4; i++) {
        msc_array_release(arrays[i]);
    }
}

// Samples on axis 1, as the state of a recurrent layer has them. The values of sample i are those
// of column i, whatever the batch: the array is x[d0][i][d2] = 100 d0 + 10 i + d2.
static struct msc_array *columns(int64_t n) {
    struct msc_array *a = NULL;
    assert_int_equal(msc_array_create(&a, MSC_DTYPE_F32, 3, (const int64_t[]){2, n, 3}), MSC_OK);
    for (int64_t i = 0; i < 6 * n; i++) {
        ((float *)msc_array_data(a))[i] = (float)(100 * (i / (3 * n)) + 10 * (i / 3 % n) + i % 3);
    }
    return a;
}

static void check_columns(const struct msc_array *batch, int64_t first, int64_t n) {
    const int64_t dims[] = {2, n, 3};
    assert_int_equal(msc_array_n_dims(batch), 3);
    assert_memory_equal(msc_array_dims(batch), dims, sizeof dims);
    for (int64_t i = 0; i < 6 * n; i++) {
        double expected = (double)(100 * (i / (3 * n)) + 10 * (first + i / 3 % n) + i % 3);
        assert_true(msc_array_get_double(batch, i) == expected);
    }
}

static void test_data_dataset__samples_on_another_axis(void **state) {
    (void)state;
    const struct msc_input_spec spec[] = {batched,
                                          {.name = "h0",
                                           .dtype = MSC_DTYPE_F32,
                                           .n_dims = 3,
                                           .dims = {2, -1, 3},
                                           .is_batched = true,
                                           .axis = 1}};
    struct msc_array *arrays[] = {ramp(MSC_DTYPE_F32, 2, (const int64_t[]){10, 3}, 0), columns(10)};
    struct msc_array *sample = NULL;
    struct msc_dataset *data = NULL, *part = NULL, *whole = NULL, *left = NULL;
    int64_t n_shared;
    assert_int_equal(msc_dataset_create(&data, spec, arrays, 2, NULL, 4), MSC_OK);
    assert_int_equal(msc_dataset_n_samples(data), 10);
    assert_int_equal(msc_dataset_n_batches(data), 3);
    check_columns(msc_dataset_batch(data, 1, 1), 4, 4);
    check_columns(msc_dataset_batch(data, 2, 1), 8, 2);
    assert_int_equal(msc_dataset_first_sample(&sample, data, 1, 1), MSC_OK);
    check_columns(sample, 4, 1);
    assert_int_equal(msc_dataset_create_part(&part, data, 3, 6), MSC_OK);
    check_columns(msc_dataset_batch(part, 0, 1), 3, 4);
    check_columns(msc_dataset_batch(part, 1, 1), 7, 2);
    assert_int_equal(msc_dataset_create(&whole, spec, arrays, 2, NULL, 10), MSC_OK);
    assert_true(msc_hash_equal(msc_dataset_hash(data), msc_dataset_hash(whole)));
    // Samples 3 to 8 are in both, so 0 to 2 and 9 remain.
    assert_int_equal(msc_dataset_create_apart(&left, &n_shared, whole, part), MSC_OK);
    assert_int_equal(n_shared, 6);
    struct msc_array *rows = NULL;
    assert_int_equal(msc_array_slice(&rows, msc_dataset_batch(left, 0, 1), 1, 0, 3), MSC_OK);
    check_columns(rows, 0, 3);
    msc_array_release(rows);
    assert_int_equal(msc_array_slice(&rows, msc_dataset_batch(left, 0, 1), 1, 3, 1), MSC_OK);
    check_columns(rows, 9, 1);
    msc_array_release(rows);
    // An array with the samples first is refused, with what to do.
    struct msc_array *kept = arrays[1];
    arrays[1] = ramp(MSC_DTYPE_F32, 3, (const int64_t[]){10, 2, 3}, 0);
    struct msc_dataset *none = NULL;
    assert_int_equal(msc_dataset_create(&none, spec, arrays, 2, NULL, 4), MSC_E_INVALID);
    assert_string_equal(msc_status_message(),
                        "dataset: input \"h0\": expected [2,N,3] float32, found [10,2,3] float32, "
                        "values 0 to 59; put the samples on the model's own axis, which is not the "
                        "first, with numpy.moveaxis");
    msc_array_release(kept);
    msc_array_release(sample);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    msc_dataset_destroy(left);
    msc_dataset_destroy(whole);
    msc_dataset_destroy(part);
    msc_dataset_destroy(data);
}

static void test_data_dataset__npz_by_name(void **state) {
    char path[PATH_BYTES], saved[PATH_BYTES];
    const struct msc_input_spec specs[] = {
        {.name = "ids", .dtype = MSC_DTYPE_I64, .n_dims = 1, .dims = {-1}, .is_batched = true},
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true},
    };
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = test_file(path, "stored.npz");
    o.batch = 2;
    struct msc_dataset *data = NULL, *other = NULL;
    assert_int_equal(msc_dataset_load(&data, &o, specs, 2), MSC_OK);
    assert_int_equal(msc_dataset_n_batches(data), 2);
    test_is_ramp(msc_dataset_batch(data, 1, 0), MSC_DTYPE_I64, 1, (const int64_t[]){1}, -1, 1);
    test_is_ramp(msc_dataset_batch(data, 0, 1), MSC_DTYPE_F32, 2, (const int64_t[]){2, 4}, -1.5,
                 0.5);
    // The same arrays have the same hash if they come from a .safetensors file.
    struct msc_array_list list = {0};
    assert_int_equal(msc_npz_load(&list, path), MSC_OK);
    o.inputs = test_path(saved, state, "same.safetensors");
    assert_int_equal(msc_safetensors_save(o.inputs, &list, NULL, 0), MSC_OK);
    assert_int_equal(msc_dataset_load(&other, &o, specs, 2), MSC_OK);
    assert_true(msc_hash_equal(msc_dataset_hash(data), msc_dataset_hash(other)));
    msc_array_list_finish(&list);
    msc_dataset_destroy(data);
    msc_dataset_destroy(other);
}

static void test_data_dataset__single_array_of_any_name(void **state) {
    char path[PATH_BYTES], saved[PATH_BYTES];
    struct msc_input_spec spec = {.name = "input.1",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 2,
                                  .dims = {-1, 4},
                                  .is_batched = true};
    struct msc_array_list list = {0};
    struct msc_array *x = ramp(MSC_DTYPE_F32, 2, (const int64_t[]){3, 4}, 0);
    assert_int_equal(msc_array_list_add(&list, "arr_0", x), MSC_OK);
    assert_int_equal(msc_npz_save(test_path(path, state, "one.npz"), &list), MSC_OK);
    assert_int_equal(msc_npy_save(test_path(saved, state, "one.npy"), x), MSC_OK);
    msc_array_release(x);
    msc_array_list_finish(&list);
    const char *const files[] = {path, saved};
    for (int i = 0; i < 2; i++) {
        struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
        o.inputs = files[i];
        int64_t n = 0;
        assert_int_equal(msc_dataset_count(&n, &o, &spec, 1), MSC_OK);
        assert_int_equal(n, 3);
    }
}

static void test_data_dataset__samples_of_different_shapes(void **state) {
    char path[PATH_BYTES];
    struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 3, .dims = {-1, 2, -1}, .is_batched = true};
    struct msc_array_list list = {0};
    for (int64_t i = 0; i < 3; i++) {
        struct msc_array *x = ramp(MSC_DTYPE_F32, 3, (const int64_t[]){1, 2, 4 + i / 2}, 10 * i);
        const char *const names[] = {"x/0", "x/1", "x/2"};
        assert_int_equal(msc_array_list_add(&list, names[i], x), MSC_OK);
        msc_array_release(x);
    }
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = test_path(path, state, "parts.npz");
    assert_int_equal(msc_npz_save(path, &list), MSC_OK);
    msc_array_list_finish(&list);
    struct msc_dataset *data = NULL, *pairs = NULL;
    assert_int_equal(msc_dataset_load(&data, &o, &spec, 1), MSC_OK);
    assert_int_equal(msc_dataset_n_samples(data), 3);
    test_is_ramp(msc_dataset_batch(data, 2, 0), MSC_DTYPE_F32, 3, (const int64_t[]){1, 2, 5}, 20,
                 1);
    // The first two samples have the same shape and share a batch. The third has a batch of its
    // own.
    o.batch = 2;
    assert_int_equal(msc_dataset_load(&pairs, &o, &spec, 1), MSC_OK);
    assert_int_equal(msc_array_dim(msc_dataset_batch(pairs, 0, 0), 0), 2);
    assert_true(msc_array_get_double(msc_dataset_batch(pairs, 0, 0), 8) == 10.0);
    assert_true(msc_hash_equal(msc_dataset_hash(data), msc_dataset_hash(pairs)));
    msc_dataset_destroy(data);
    msc_dataset_destroy(pairs);
    o.batch = 3;
    test_fails(msc_dataset_load(&data, &o, &spec, 1), MSC_E_INVALID, "sample 0 is [1,2,4]",
               "sample 2 is [1,2,5]", NULL);
}

// Arrays in the file that no input uses may have any type and may be stored in any way.
static void test_data_dataset__other_arrays_are_passed_over(void **state) {
    char path[PATH_BYTES];
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true};
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    struct msc_dataset *data = NULL;
    o.inputs = test_file(path, "beside.npz");
    o.batch = 3;
    assert_int_equal(msc_dataset_load(&data, &o, &spec, 1), MSC_OK);
    test_is_ramp(msc_dataset_batch(data, 0, 0), MSC_DTYPE_F32, 2, (const int64_t[]){3, 4}, -1.5,
                 0.5);
    msc_dataset_destroy(data);
    // In a .safetensors file, an unused tensor of 4-bit floats comes before the input's tensor.
    static const char header[] =
        "{\"codes\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,4]},"
        "\"x\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[4,20]}}";
    char bytes[8 + sizeof header - 1 + 20] = {(char)(sizeof header - 1)};
    const float ones[4] = {1, 1, 1, 1};
    assert_true(sizeof header - 1 < 128);
    memcpy(bytes + 8, header, sizeof header - 1);
    memcpy(bytes + sizeof bytes - sizeof ones, ones, sizeof ones);
    o.inputs = test_path(path, state, "beside.safetensors");
    assert_int_equal(msc_file_write(path, bytes, sizeof bytes), MSC_OK);
    assert_int_equal(msc_dataset_load(&data, &o, &spec, 1), MSC_OK);
    test_is_ramp(msc_dataset_batch(data, 0, 0), MSC_DTYPE_F32, 2, (const int64_t[]){1, 4}, 1, 0);
    msc_dataset_destroy(data);
}

// A gap in the sample numbers is an error; otherwise later samples would be lost silently.
static void test_data_dataset__a_gap_between_samples(void **state) {
    char path[PATH_BYTES];
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true};
    static const char *const names[][3] = {{"x/0", "x/1", "x/3"}, {"x/00", "x/01", "x/02"}};
    static const char *const missing[] = {"no array \"x/2\"", "no array \"x/0\""};
    struct msc_array *x = ramp(MSC_DTYPE_F32, 2, (const int64_t[]){1, 4}, 0);
    for (size_t i = 0; i < 2; i++) {
        struct msc_array_list list = {0};
        struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
        struct msc_dataset *data = NULL;
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(msc_array_list_add(&list, names[i][k], x), MSC_OK);
        }
        // Not a sample: its name is not a number.
        assert_int_equal(msc_array_list_add(&list, "x/last", x), MSC_OK);
        o.inputs = test_path(path, state, "gap.npz");
        assert_int_equal(msc_npz_save(path, &list), MSC_OK);
        test_fails(msc_dataset_load(&data, &o, &spec, 1), MSC_E_NOT_FOUND, path, missing[i],
                   "3 samples", NULL);
        msc_array_list_finish(&list);
    }
    msc_array_release(x);
}

// Saves ten samples. Sample i has first element 3 * i and label 100 + i.
static struct msc_dataset_options save_ten(char inputs[PATH_BYTES], char labels[PATH_BYTES],
                                           void **state) {
    struct msc_array *x = ramp(MSC_DTYPE_F32, 2, (const int64_t[]){10, 3}, 0);
    struct msc_array *y = ramp(MSC_DTYPE_I32, 1, (const int64_t[]){10}, 100);
    assert_int_equal(msc_npy_save(test_path(inputs, state, "ten.npy"), x), MSC_OK);
    assert_int_equal(msc_npy_save(test_path(labels, state, "labels.npy"), y), MSC_OK);
    msc_array_release(x);
    msc_array_release(y);
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = inputs;
    o.labels = labels;
    o.batch = 4;
    return o;
}

static void test_data_dataset__splits(void **state) {
    static const struct {
        int64_t samples, skip_last, take_last;
        int64_t first, count;
    } rows[] = {
        {0, 0, 0, 0, 10}, {6, 0, 0, 0, 6}, {0, 3, 0, 0, 7},   {5, 3, 0, 0, 5},   {9, 3, 0, 0, 7},
        {0, 0, 3, 7, 3},  {2, 0, 3, 7, 2}, {0, 0, 10, 0, 10}, {99, 0, 0, 0, 10},
    };
    char inputs[PATH_BYTES], labels[PATH_BYTES];
    struct msc_dataset_options o = save_ten(inputs, labels, state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        o.samples = rows[i].samples;
        o.skip_last = rows[i].skip_last;
        o.take_last = rows[i].take_last;
        struct msc_dataset *data = NULL;
        assert_int_equal(msc_dataset_load(&data, &o, &batched, 1), MSC_OK);
        assert_int_equal(msc_dataset_n_samples(data), rows[i].count);
        assert_true(msc_array_get_double(msc_dataset_batch(data, 0, 0), 0) ==
                    3.0 * (double)rows[i].first);
        assert_true(msc_dataset_has_labels(data));
        for (int64_t k = 0; k < rows[i].count; k++) {
            assert_int_equal(msc_dataset_label(data, k), 100 + rows[i].first + k);
        }
        msc_dataset_destroy(data);
    }
}

static void test_data_dataset__calibration_and_validation_do_not_overlap(void **state) {
    char inputs[PATH_BYTES], labels[PATH_BYTES];
    struct msc_dataset_options o = save_ten(inputs, labels, state);
    struct msc_dataset *calibration = NULL, *validation = NULL;
    o.skip_last = 2;
    assert_int_equal(msc_dataset_load(&calibration, &o, &batched, 1), MSC_OK);
    o.skip_last = 0;
    o.take_last = 2;
    assert_int_equal(msc_dataset_load(&validation, &o, &batched, 1), MSC_OK);
    assert_int_equal(msc_dataset_label(calibration, 7), 107);
    assert_int_equal(msc_dataset_n_samples(calibration), 8);
    assert_int_equal(msc_dataset_label(validation, 0), 108);
    msc_dataset_destroy(calibration);
    msc_dataset_destroy(validation);
}

static void test_data_dataset__conversions(void **state) {
    (void)state;
    static const struct {
        enum msc_dtype from, to;
    } rows[] = {
        {MSC_DTYPE_F64, MSC_DTYPE_F32}, {MSC_DTYPE_F16, MSC_DTYPE_F32},
        {MSC_DTYPE_F32, MSC_DTYPE_F16}, {MSC_DTYPE_U8, MSC_DTYPE_I64},
        {MSC_DTYPE_I32, MSC_DTYPE_I64}, {MSC_DTYPE_U16, MSC_DTYPE_I32},
        {MSC_DTYPE_U8, MSC_DTYPE_U32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_input_spec spec = batched;
        spec.dtype = rows[i].to;
        struct msc_array *x = ramp(rows[i].from, 2, (const int64_t[]){4, 3}, 0);
        struct msc_dataset *data = NULL;
        assert_int_equal(msc_dataset_create(&data, &spec, &x, 1, NULL, 4), MSC_OK);
        test_is_ramp(msc_dataset_batch(data, 0, 0), rows[i].to, 2, (const int64_t[]){4, 3}, 0, 1);
        msc_dataset_destroy(data);
        msc_array_release(x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_dataset__batches),
        cmocka_unit_test(test_data_dataset__part),
        cmocka_unit_test(test_data_dataset__hash_ignores_the_batch_size),
        cmocka_unit_test(test_data_dataset__sequences),
        cmocka_unit_test(test_data_dataset__samples_on_another_axis),
        cmocka_unit_test(test_data_dataset__hash_sees_every_difference),
        cmocka_unit_test(test_data_dataset__static_batch_of_one),
        cmocka_unit_test(test_data_dataset__static_inputs_of_any_shape),
        cmocka_unit_test(test_data_dataset__npz_by_name),
        cmocka_unit_test(test_data_dataset__single_array_of_any_name),
        cmocka_unit_test(test_data_dataset__samples_of_different_shapes),
        cmocka_unit_test(test_data_dataset__other_arrays_are_passed_over),
        cmocka_unit_test(test_data_dataset__a_gap_between_samples),
        cmocka_unit_test(test_data_dataset__splits),
        cmocka_unit_test(test_data_dataset__calibration_and_validation_do_not_overlap),
        cmocka_unit_test(test_data_dataset__conversions),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
