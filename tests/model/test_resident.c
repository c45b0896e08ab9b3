// A model that stays loaded. tests/cli/files/make_files.py made the models and, with ONNX Runtime,
// the expected outputs.
#include "model/resident.h"

#include "data/npy.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

#define FILES MSC_TESTS_FOLDER "/cli/files/"

// Fills the only input with the samples in the other order, if `is_reversed`.
static void fill(const struct msc_resident *r, const struct msc_array *x, bool is_reversed) {
    struct msc_resident_value in;
    assert_ok(msc_resident_input(&in, r, 0));
    int64_t n = msc_array_dim(x, 0), size = msc_array_n_elements(x) / n;
    for (int64_t i = 0; i < n; i++) {
        const float *from = (const float *)msc_array_data(x) + (is_reversed ? n - 1 - i : i) * size;
        memcpy((float *)in.data + i * size, from, (size_t)size * sizeof *from);
    }
}

static void assert_close(const struct msc_resident *r, const struct msc_array *y,
                         bool is_reversed) {
    struct msc_resident_value out;
    assert_ok(msc_resident_output(&out, r, 0));
    assert_string_equal(out.dtype, "float32");
    assert_int_equal(out.n_dims, msc_array_n_dims(y));
    assert_memory_equal(out.dims, msc_array_dims(y), (size_t)out.n_dims * sizeof out.dims[0]);
    int64_t n = msc_array_dim(y, 0), size = msc_array_n_elements(y) / n;
    for (int64_t k = 0; k < n * size; k++) {
        int64_t sample = is_reversed ? n - 1 - k / size : k / size;
        double truth = msc_array_get_double(y, sample * size + k % size);
        assert_true(fabs(((const float *)out.data)[k] - truth) < 1e-6);
    }
}

// Each run computes the outputs of what its inputs hold at that time.
static void test_model_resident__runs_again(void **state) {
    (void)state;
    struct msc_resident *r = NULL;
    struct msc_resident_value in;
    struct msc_array *x = NULL, *y = NULL;
    assert_ok(msc_npy_load(&x, FILES "x.npy"));
    assert_ok(msc_npy_load(&y, FILES "outputs.npy"));
    assert_true(msc_array_dim(x, 0) > 1);
    assert_ok(msc_resident_open(&r, FILES "tiny.onnx", "cpu", 1));
    assert_int_equal(msc_resident_n_inputs(r), 1);
    assert_int_equal(msc_resident_n_outputs(r), 1);
    assert_ok(msc_resident_input(&in, r, 0));
    assert_string_equal(in.name, "x");
    assert_int_equal(in.dims[0], -1);
    assert_null(in.data);
    assert_ok(msc_resident_shape(r, 0, msc_array_n_dims(x), msc_array_dims(x)));
    for (int round = 0; round < 4; round++) {
        fill(r, x, round % 2);
        if (round == 0) {
            assert_ok(msc_resident_run(r)); // moves the inputs' data
            fill(r, x, false);
        }
        assert_ok(msc_resident_run(r));
        assert_close(r, y, round % 2);
    }
    msc_resident_close(r);
    msc_array_release(x);
    msc_array_release(y);
}

static void test_model_resident__refuses(void **state) {
    (void)state;
    struct msc_resident *r = NULL;
    struct msc_resident_value value;
    const int64_t dims[] = {1, 1, 4, 4}, wrong[] = {1, 1, 4, 5};
    assert_int_equal(msc_resident_open(&r, FILES "absent.onnx", "cpu", 1), MSC_E_NOT_FOUND);
    assert_int_equal(msc_resident_open(&r, FILES "branch.onnx", "cpu", 1), MSC_E_UNSUPPORTED);
    assert_message("has graphs of its own");
    assert_null(r);
    assert_ok(msc_resident_open(&r, FILES "tiny.onnx", "cpu", 1));
    assert_int_equal(msc_resident_input(&value, r, 1), MSC_E_INVALID);
    assert_int_equal(msc_resident_output(&value, r, -1), MSC_E_INVALID);
    assert_int_equal(msc_resident_run(r), MSC_E_INVALID);
    assert_message("input x has no shape yet");
    assert_int_equal(msc_resident_shape(r, 0, 9, dims), MSC_E_INVALID);
    assert_ok(msc_resident_shape(r, 0, 4, wrong));
    assert_int_equal(msc_resident_run(r), MSC_E_INVALID);
    assert_ok(msc_resident_shape(r, 0, 1, (const int64_t[]){3}));
    assert_ok(msc_resident_input(&value, r, 0)); // as given, so its data can be filled safely
    assert_int_equal(value.n_dims, 1);
    assert_int_equal(value.dims[0], 3);
    assert_int_equal(msc_resident_run(r), MSC_E_INVALID);
    assert_ok(msc_resident_shape(r, 0, 4, dims));
    assert_ok(msc_resident_run(r));
    assert_int_equal(msc_resident_shape(r, 0, 4, dims), MSC_E_STATE);
    msc_resident_close(r);
    msc_resident_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_resident__runs_again),
        cmocka_unit_test(test_model_resident__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
