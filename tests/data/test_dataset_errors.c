// Data that a dataset must refuse, with the expected messages. The data have wrong shapes, types,
// values, sample counts, files or splits. Messages are written by hand.
#include "data/dataset.h"

#include "data_test.h"

#include "data/npy.h"

#include <math.h>

// An array filled with `value`, except that its last element is `last`.
static struct msc_array *filled(enum msc_dtype dtype, int n_dims, const int64_t dims[],
                                double value, double last) {
    struct msc_array *wide = NULL, *a = NULL;
    assert_int_equal(msc_array_create(&wide, MSC_DTYPE_F64, n_dims, dims), MSC_OK);
    double *values = msc_array_data(wide);
    int64_t n = msc_array_n_elements(wide);
    for (int64_t i = 0; i < n; i++) {
        values[i] = i + 1 < n ? value : last;
    }
    assert_int_equal(msc_array_convert(&a, wide, dtype), MSC_OK);
    msc_array_release(wide);
    return a;
}

static const struct msc_input_spec image = {.name = "image",
                                            .dtype = MSC_DTYPE_F32,
                                            .n_dims = 4,
                                            .dims = {-1, 3, 8, 6},
                                            .is_batched = true};

// Makes a dataset of one array for one input and releases the array.
static enum msc_status give(const struct msc_input_spec *spec, struct msc_array *array) {
    struct msc_dataset *data = NULL;
    enum msc_status status = msc_dataset_create(&data, spec, &array, 1, NULL, 2);
    msc_dataset_destroy(data);
    msc_array_release(array);
    return status;
}

static void test_data_dataset_errors__shape_type_and_range(void **state) {
    (void)state;
    test_fails(
        give(&image, filled(MSC_DTYPE_U8, 4, (const int64_t[]){5, 8, 6, 3}, 0, 255)), MSC_E_INVALID,
        "input \"image\": expected [N,3,8,6] float32, found [5,8,6,3] uint8, values 0 to 255; "
        "put the channels first with array.transpose(0, 3, 1, 2)",
        NULL);
    test_fails(give(&image, filled(MSC_DTYPE_F32, 4, (const int64_t[]){5, 3, 8, 7}, -0.5, 1.25)),
               MSC_E_INVALID,
               "expected [N,3,8,6] float32, found [5,3,8,7] float32, values -0.5 to "
               "1.25; save it in the input's shape",
               NULL);
    test_fails(give(&image, filled(MSC_DTYPE_F32, 3, (const int64_t[]){3, 8, 6}, 0, 1)),
               MSC_E_INVALID, "found [3,8,6] float32", "add a first axis that counts the samples",
               NULL);
    test_fails(give(&image, filled(MSC_DTYPE_U8, 4, (const int64_t[]){5, 3, 8, 6}, 3, 200)),
               MSC_E_INVALID,
               "expected [N,3,8,6] float32, found [5,3,8,6] uint8, values 3 to 200; "
               "save it as floats, scaled as in training",
               NULL);
    test_fails(give(&image, filled(MSC_DTYPE_F32, 0, NULL, 0, 1)), MSC_E_INVALID,
               "found [] float32, values 1 to 1", NULL);
    test_fails(give(&image, filled(MSC_DTYPE_F32, 4, (const int64_t[]){0, 3, 8, 7}, 0, 1)),
               MSC_E_INVALID, "found [0,3,8,7] float32, no finite values", NULL);
}

static void test_data_dataset_errors__static_shapes(void **state) {
    (void)state;
    const struct msc_input_spec pair = {
        .name = "pair", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {2, 5}};
    test_fails(give(&pair, filled(MSC_DTYPE_F32, 2, (const int64_t[]){7, 5}, 0, 1)), MSC_E_INVALID,
               "expected [N,2,5] float32, found [7,5] float32",
               "export the model for any number of them (torch.onnx.export: dynamic_shapes, or "
               "dynamic_axes)",
               NULL);
    test_fails(give(&pair, filled(MSC_DTYPE_F32, 2, (const int64_t[]){7, 6}, 0, 1)), MSC_E_INVALID,
               "save it in the input's shape", NULL);
    const struct msc_input_spec one = {
        .name = "one", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {1, 5}};
    test_fails(give(&one, filled(MSC_DTYPE_F32, 3, (const int64_t[]){7, 2, 5}, 0, 1)),
               MSC_E_INVALID, "expected [N,5] float32, found [7,2,5] float32", NULL);
    const struct msc_input_spec open = {.name = "open",
                                        .dtype = MSC_DTYPE_F32,
                                        .n_dims = 3,
                                        .dims = {-1, -1, 4},
                                        .is_batched = true};
    test_fails(give(&open, filled(MSC_DTYPE_F32, 3, (const int64_t[]){7, 2, 5}, 0, 1)),
               MSC_E_INVALID, "expected [N,any,4] float32", NULL);
}

static void test_data_dataset_errors__types(void **state) {
    (void)state;
    static const struct {
        enum msc_dtype from, to;
    } rows[] = {
        {MSC_DTYPE_F32, MSC_DTYPE_I64},  {MSC_DTYPE_I64, MSC_DTYPE_F32},
        {MSC_DTYPE_BOOL, MSC_DTYPE_F32}, {MSC_DTYPE_BOOL, MSC_DTYPE_I64},
        {MSC_DTYPE_U8, MSC_DTYPE_BOOL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_input_spec spec = image;
        spec.dtype = rows[i].to;
        test_fails(give(&spec, filled(rows[i].from, 4, (const int64_t[]){2, 3, 8, 6}, 0, 1)),
                   MSC_E_INVALID, "\"image\"", msc_dtype_name(rows[i].from),
                   msc_dtype_name(rows[i].to), "values 0 to 1", NULL);
    }
}

// Integers of another type are converted if every element fits the input's type.
static void test_data_dataset_errors__integers(void **state) {
    (void)state;
    static const struct {
        enum msc_dtype from, to;
        double fits, too_much;
        const char *name;
    } rows[] = {
        {MSC_DTYPE_I64, MSC_DTYPE_I32, 2147483647, 2147483648,
         "2147483648 does not fit into int32"},
        {MSC_DTYPE_I64, MSC_DTYPE_I32, -2147483648.0, -2147483649.0, "-2147483649 does not fit"},
        {MSC_DTYPE_I64, MSC_DTYPE_U8, 255, 256, "256 does not fit into uint8"},
        {MSC_DTYPE_I8, MSC_DTYPE_U8, 127, -1, "-1 does not fit into uint8"},
        {MSC_DTYPE_I64, MSC_DTYPE_U64, 1, -1, "-1 does not fit into uint64"},
        {MSC_DTYPE_U64, MSC_DTYPE_I64, 4611686018427387904.0, 9223372036854775808.0,
         "9223372036854775808 does not fit into int64"},
        {MSC_DTYPE_U32, MSC_DTYPE_I16, 32767, 32768, "32768 does not fit into int16"},
    };
    const int64_t dims[] = {2, 3, 8, 6};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_input_spec spec = image;
        spec.dtype = rows[i].to;
        assert_int_equal(give(&spec, filled(rows[i].from, 4, dims, 0, rows[i].fits)), MSC_OK);
        test_fails(give(&spec, filled(rows[i].from, 4, dims, 0, rows[i].too_much)), MSC_E_INVALID,
                   "\"image\"", msc_dtype_name(rows[i].from), rows[i].name, NULL);
        // Inputs that are used whole, in a single run, are converted as well.
        struct msc_array *array = filled(rows[i].from, 4, dims, 0, rows[i].fits);
        struct msc_dataset *whole = NULL;
        assert_int_equal(
            msc_dataset_create_whole(&whole, &spec, (const struct msc_array *const[]){array}, 1),
            MSC_OK);
        const struct msc_array *taken = msc_dataset_batch(whole, 0, 0);
        assert_int_equal(msc_array_dtype(taken), rows[i].to);
        assert_true(msc_array_get_double(taken, 2 * 3 * 8 * 6 - 1) == rows[i].fits);
        msc_dataset_destroy(whole);
        msc_array_release(array);
    }
}

static void test_data_dataset_errors__values(void **state) {
    (void)state;
    const int64_t dims[] = {2, 3, 8, 6};
    test_fails(give(&image, filled(MSC_DTYPE_F64, 4, dims, 0.5, 1e300)), MSC_E_INVALID,
               "too large for the input", "float64", NULL);
    // Infinities are accepted, because masks contain them, and NaN, because it may mark a missing
    // value.
    assert_int_equal(give(&image, filled(MSC_DTYPE_F32, 4, dims, 0.5, NAN)), MSC_OK);
    assert_int_equal(give(&image, filled(MSC_DTYPE_F32, 4, dims, 0.5, -INFINITY)), MSC_OK);
}

static void test_data_dataset_errors__numbers_of_samples(void **state) {
    (void)state;
    struct msc_input_spec specs[2] = {image, image};
    specs[1].name = "mask";
    struct msc_array *arrays[] = {filled(MSC_DTYPE_F32, 4, (const int64_t[]){5, 3, 8, 6}, 0, 1),
                                  filled(MSC_DTYPE_F32, 4, (const int64_t[]){4, 3, 8, 6}, 0, 1)};
    struct msc_array *labels = filled(MSC_DTYPE_I64, 1, (const int64_t[]){4}, 0, 1);
    struct msc_array *floats = filled(MSC_DTYPE_F32, 1, (const int64_t[]){5}, 0, 1);
    struct msc_dataset *data = NULL;
    test_fails(msc_dataset_create(&data, specs, arrays, 2, NULL, 1), MSC_E_INVALID, "\"mask\"",
               "expected 5 samples as for \"image\", found 4", NULL);
    test_fails(msc_dataset_create(&data, specs, arrays, 1, labels, 1), MSC_E_INVALID,
               "expected integers [5]", "found [4] int64", NULL);
    test_fails(msc_dataset_create(&data, specs, arrays, 1, floats, 1), MSC_E_INVALID,
               "found [5] float32", NULL);
    test_fails(msc_dataset_create(&data, specs, arrays, 1, NULL, 0), MSC_E_INVALID, "batch is 0",
               NULL);
    test_fails(msc_dataset_create(&data, specs, arrays, 0, NULL, 1), MSC_E_INVALID, "no input",
               NULL);
    test_fails(give(&image, filled(MSC_DTYPE_F32, 4, (const int64_t[]){0, 3, 8, 6}, 0, 1)),
               MSC_E_INVALID, "no sample", NULL);
    assert_null(data);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    msc_array_release(labels);
    msc_array_release(floats);
}

static enum msc_status load(const char *inputs, const struct msc_input_spec specs[], size_t n) {
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = inputs;
    struct msc_dataset *data = NULL;
    enum msc_status status = msc_dataset_load(&data, &o, specs, n);
    msc_dataset_destroy(data);
    return status;
}

static void test_data_dataset_errors__files(void **state) {
    char path[PATH_BYTES];
    struct msc_input_spec specs[2] = {image, image};
    specs[1].name = "xs";
    test_fails(load(test_file(path, "stored.npz"), specs, 2), MSC_E_NOT_FOUND, path,
               "no array for input \"image\"", "\"x\", \"ids\"", NULL);
    test_fails(load(path, &specs[1], 1), MSC_E_NOT_FOUND, "did you mean \"x\"?", NULL);
    test_fails(load(test_file(path, "float32.npy"), specs, 2), MSC_E_INVALID, path,
               "2 inputs (\"image\", \"xs\")", NULL);
    test_fails(load(test_file(path, "float32.npy"), specs, 1), MSC_E_INVALID, path, "[3,4] float32",
               "values -1.5 to 4", NULL);
    test_fails(load(test_file(path, "images"), specs, 2), MSC_E_INVALID, path, "2 inputs", NULL);
    test_fails(load(test_path(path, state, "absent.npz"), specs, 1), MSC_E_NOT_FOUND, path, NULL);
    test_fails(load(test_path(path, state, "absent"), specs, 1), MSC_E_NOT_FOUND, path, NULL);
    test_fails(load(test_file(path, "make_files.py"), specs, 1), MSC_E_INVALID, path,
               ".safetensors", NULL);
}

static void test_data_dataset_errors__splits(void **state) {
    (void)state;
    char path[PATH_BYTES];
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true};
    static const struct {
        int64_t samples, skip_last, take_last;
        const char *word;
    } rows[] = {
        {0, 3, 0, "the file has 3"},
        {0, 0, 4, "the file has 3"},
        {-1, 0, 0, "negative"},
        {0, 1, 1, "cannot both be set"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
        o.inputs = test_file(path, "float32.npy");
        o.samples = rows[i].samples;
        o.skip_last = rows[i].skip_last;
        o.take_last = rows[i].take_last;
        struct msc_dataset *data = NULL;
        test_fails(msc_dataset_load(&data, &o, &spec, 1), MSC_E_INVALID, path, rows[i].word, NULL);
    }
}

static void test_data_dataset_errors__part_of_another_shape(void **state) {
    char path[PATH_BYTES];
    struct msc_array_list list = {0};
    struct msc_array *a = filled(MSC_DTYPE_F32, 4, (const int64_t[]){1, 3, 8, 6}, 0, 1);
    struct msc_array *b = filled(MSC_DTYPE_F32, 4, (const int64_t[]){2, 3, 8, 6}, 0, 1);
    assert_int_equal(msc_array_list_add(&list, "image/0", a), MSC_OK);
    assert_int_equal(msc_array_list_add(&list, "image/1", b), MSC_OK);
    assert_int_equal(msc_npz_save(test_path(path, state, "parts.npz"), &list), MSC_OK);
    test_fails(load(path, &image, 1), MSC_E_INVALID, path, "found [2,3,8,6]", NULL);
    msc_array_list_finish(&list);
    msc_array_release(a);
    msc_array_release(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_dataset_errors__shape_type_and_range),
        cmocka_unit_test(test_data_dataset_errors__static_shapes),
        cmocka_unit_test(test_data_dataset_errors__types),
        cmocka_unit_test(test_data_dataset_errors__integers),
        cmocka_unit_test(test_data_dataset_errors__values),
        cmocka_unit_test(test_data_dataset_errors__numbers_of_samples),
        cmocka_unit_test(test_data_dataset_errors__files),
        cmocka_unit_test(test_data_dataset_errors__splits),
        cmocka_unit_test(test_data_dataset_errors__part_of_another_shape),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
