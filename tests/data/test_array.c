// Arrays: creation, limits of shapes, conversion between types, hashes and lists. Expected bits
// of conversions come from numpy.
#include "data/array.h"

#include "data_test.h"

#include "data/npy.h"

#include <math.h>
#include <string.h>

static void test_data_array__create(void **state) {
    (void)state;
    struct msc_array *a = NULL;
    assert_int_equal(msc_array_create(&a, MSC_DTYPE_I16, 3, (const int64_t[]){2, 3, 4}), MSC_OK);
    assert_int_equal(msc_array_n_elements(a), 24);
    assert_int_equal(msc_array_n_bytes(a), 48);
    assert_int_equal(msc_array_dim(a, -1), 4);
    assert_int_equal(msc_array_dim(a, 0), 2);
    assert_int_equal((uintptr_t)msc_array_data(a) % 64, 0);
    for (int64_t i = 0; i < 24; i++) {
        assert_int_equal(msc_array_get_i64(a, i), 0);
    }
    struct msc_array *same = msc_array_retain(a);
    assert_ptr_equal(same, a);
    msc_array_release(a);
    assert_int_equal(msc_array_n_dims(same), 3);
    msc_array_release(same);
    msc_array_release(NULL);
}

static void test_data_array__over(void **state) {
    (void)state;
    float values[6] = {1, 2, 3, 4, 5, 6};
    struct msc_array *a = NULL, *rows = NULL;
    assert_int_equal(msc_array_create_over(&a, MSC_DTYPE_F32, 2, (const int64_t[]){3, 2}, values),
                     MSC_OK);
    assert_ptr_equal(msc_array_data(a), values);
    values[2] = 7;
    assert_true(msc_array_get_double(a, 2) == 7);
    assert_int_equal(msc_array_rows(&rows, a, 1, 1), MSC_OK);
    msc_array_release(a);
    values[2] = 8;
    assert_true(msc_array_get_double(rows, 0) == 7);
    msc_array_release(rows);
}

// While a meter is set, it counts the bytes of arrays that own their elements and are made or
// freed.
static void test_data_array__measure(void **state) {
    (void)state;
    float values[3] = {1, 2, 3};
    struct msc_array_meter meter = {0}, inner = {0};
    struct msc_array *before = NULL, *a = NULL, *b = NULL, *over = NULL;
    assert_int_equal(msc_array_create(&before, MSC_DTYPE_F32, 1, (const int64_t[]){100}), MSC_OK);
    assert_null(msc_array_measure(&meter));
    assert_int_equal(msc_array_create(&a, MSC_DTYPE_F32, 1, (const int64_t[]){10}), MSC_OK);
    assert_int_equal(msc_array_create_over(&over, MSC_DTYPE_F32, 1, (const int64_t[]){3}, values),
                     MSC_OK);
    struct msc_array *same = msc_array_retain(a);
    assert_int_equal(meter.held_bytes, 40);
    assert_ptr_equal(msc_array_measure(&inner), &meter);
    assert_int_equal(msc_array_create(&b, MSC_DTYPE_I16, 1, (const int64_t[]){4}), MSC_OK);
    assert_ptr_equal(msc_array_measure(&meter), &inner);
    msc_array_release(a);
    msc_array_release(over);
    assert_int_equal(meter.held_bytes, 40);
    msc_array_release(same);
    assert_int_equal(meter.held_bytes, 0);
    assert_int_equal(meter.peak_bytes, 40);
    assert_int_equal(inner.peak_bytes, 8);
    msc_array_measure(NULL);
    msc_array_release(before);
    msc_array_release(b);
    assert_int_equal(meter.held_bytes, 0);
}

static void test_data_array__scalar_and_empty(void **state) {
    (void)state;
    struct msc_array *a = NULL;
    const float value = 2.5f;
    assert_int_equal(msc_array_create_from(&a, MSC_DTYPE_F32, 0, NULL, &value), MSC_OK);
    assert_int_equal(msc_array_n_elements(a), 1);
    assert_true(msc_array_get_double(a, 0) == 2.5);
    struct msc_array *rows = NULL;
    test_fails(msc_array_rows(&rows, a, 0, 1), MSC_E_INVALID, "scalar", NULL);
    msc_array_release(a);
    const int64_t dims[] = {0, INT64_MAX / 64, 3}; // an empty array may have long dims
    assert_int_equal(msc_array_create(&a, MSC_DTYPE_F64, 3, dims), MSC_OK);
    assert_non_null(msc_array_data(a));
    assert_int_equal(msc_array_n_bytes(a), 0);
    assert_int_equal(msc_array_rows(&rows, a, 0, 0), MSC_OK);
    msc_array_release(rows);
    msc_array_release(a);
}

static void test_data_array__bad_shapes(void **state) {
    (void)state;
    struct msc_array *a = NULL;
    const int64_t large[] = {INT64_MAX, 2}, wide[] = {INT64_MAX / 4}, negative[] = {3, -1};
    const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    test_fails(msc_array_create(&a, MSC_DTYPE_U8, 2, large), MSC_E_INVALID, "overflows", NULL);
    test_fails(msc_array_create(&a, MSC_DTYPE_F64, 1, wide), MSC_E_INVALID, "overflows", NULL);
    test_fails(msc_array_create(&a, MSC_DTYPE_F32, 2, negative), MSC_E_INVALID, "[3,-1]", NULL);
    test_fails(msc_array_create(&a, MSC_DTYPE_F32, 9, ones), MSC_E_INVALID, "9 dims", NULL);
    test_fails(msc_array_create(&a, MSC_DTYPE_NONE, 1, ones), MSC_E_INVALID, NULL);
    assert_int_equal(msc_dims_product(2, large), -1);
    assert_int_equal(msc_dims_product(2, negative), -1);
    assert_int_equal(msc_dims_product(0, NULL), 1);
    assert_int_equal(msc_dims_product(3, (const int64_t[]){0, INT64_MAX, 1}), 0);
    // numpy 1.24 refuses numpy.empty((0, 2**62, 2**62)), too, because its strides overflow.
    assert_int_equal(msc_dims_product(3, (const int64_t[]){0, INT64_MAX, INT64_MAX}), -1);
}

static void test_data_array__dims_text(void **state) {
    (void)state;
    char text[MSC_DIMS_TEXT_BYTES];
    assert_string_equal(msc_dims_format(text, 4, (const int64_t[]){1, 3, 224, -1}), "[1,3,224,-1]");
    assert_string_equal(msc_dims_format(text, 0, NULL), "[]");
    const int64_t large[8] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                              INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    assert_int_equal(strlen(msc_dims_format(text, 8, large)), 8 * 20 + 7 + 2);
}

static void test_data_array__rows(void **state) {
    (void)state;
    int32_t values[12];
    for (int i = 0; i < 12; i++) {
        values[i] = i;
    }
    struct msc_array *a = NULL, *rows = NULL;
    const int64_t dims[] = {4, 3};
    assert_int_equal(msc_array_create_from(&a, MSC_DTYPE_I32, 2, dims, values), MSC_OK);
    assert_int_equal(msc_array_rows(&rows, a, 1, 2), MSC_OK);
    test_is_ramp(rows, MSC_DTYPE_I32, 2, (const int64_t[]){2, 3}, 3.0, 1.0);
    msc_array_release(rows);
    rows = NULL;
    test_fails(msc_array_rows(&rows, a, 3, 2), MSC_E_INVALID, NULL);
    test_fails(msc_array_rows(&rows, a, -1, 2), MSC_E_INVALID, NULL);
    test_fails(msc_array_rows(&rows, a, 2, INT64_MAX), MSC_E_INVALID, NULL);
    msc_array_release(a);
}

static void check_convert(enum msc_dtype from, const void *value, enum msc_dtype to,
                          const void *expected) {
    const int64_t dims[] = {1};
    struct msc_array *a = NULL, *b = NULL;
    assert_int_equal(msc_array_create_from(&a, from, 1, dims, value), MSC_OK);
    assert_int_equal(msc_array_convert(&b, a, to), MSC_OK);
    assert_memory_equal(msc_array_data(b), expected, msc_dtype_bytes(to));
    msc_array_release(a);
    msc_array_release(b);
}

#define CHECK_CONVERT(from, from_type, value, to, to_type, expected)                               \
    check_convert(MSC_DTYPE_##from, &(from_type){value}, MSC_DTYPE_##to, &(to_type){expected})

static void test_data_array__convert(void **state) {
    (void)state;
    CHECK_CONVERT(F32, float, 2.9f, I32, int32_t, 2);
    CHECK_CONVERT(F32, float, -2.9f, I32, int32_t, -2);
    CHECK_CONVERT(F64, double, 1e300, I64, int64_t, INT64_MAX);
    CHECK_CONVERT(F64, double, -1e300, I8, int8_t, -128);
    CHECK_CONVERT(F32, float, NAN, I32, int32_t, 0);
    CHECK_CONVERT(F32, float, -5.0f, U64, uint64_t, 0);
    CHECK_CONVERT(F32, float, INFINITY, U64, uint64_t, UINT64_MAX);
    CHECK_CONVERT(U64, uint64_t, UINT64_MAX, I64, int64_t, INT64_MAX);
    CHECK_CONVERT(I64, int64_t, -1, U64, uint64_t, 0);
    CHECK_CONVERT(I64, int64_t, 300, U8, uint8_t, 255);
    CHECK_CONVERT(I64, int64_t, 16777217, F32, float, 16777216.0f);
    CHECK_CONVERT(I8, int8_t, -7, BOOL, uint8_t, 1);
    CHECK_CONVERT(F32, float, 0.25f, BOOL, uint8_t, 1);
    CHECK_CONVERT(F64, double, 0.1, F32, float, 0.1f);
}

static void test_data_array__convert_to_f16_rounds_once(void **state) {
    (void)state;
    // Expected: numpy 1.24, np.float64(x).astype(np.float16).view(np.uint16). Rounding to float32
    // first would give the even neighbour.
    CHECK_CONVERT(F64, double, 1 + 0x1p-11 + 0x1p-40, F16, uint16_t, 0x3c01);
    CHECK_CONVERT(F64, double, 1 + 0x1p-11, F16, uint16_t, 0x3c00);
    CHECK_CONVERT(F64, double, 1 + 0x1p-11 - 0x1p-40, F16, uint16_t, 0x3c00);
    CHECK_CONVERT(F64, double, 2049.0000001, F16, uint16_t, 0x6801);
    CHECK_CONVERT(F64, double, 65519.9999999, F16, uint16_t, 0x7bff);
    CHECK_CONVERT(F64, double, 0x1p-25 * (1 + 0x1p-40), F16, uint16_t, 0x0001);
    CHECK_CONVERT(F64, double, 0x1p-25, F16, uint16_t, 0x0000);
    CHECK_CONVERT(F64, double, 1e300, F16, uint16_t, 0x7c00);
}

static void test_data_array__hash(void **state) {
    (void)state;
    const float values[] = {1, 2, 3, 4};
    const uint32_t other_type[] = {0x3f800000, 0x40000000, 0x40400000, 0x40800000};
    struct msc_array *a[4];
    msc_array_create_from(&a[0], MSC_DTYPE_F32, 2, (const int64_t[]){2, 2}, values);
    msc_array_create_from(&a[1], MSC_DTYPE_F32, 2, (const int64_t[]){2, 2}, values);
    msc_array_create_from(&a[2], MSC_DTYPE_F32, 1, (const int64_t[]){4}, values);
    msc_array_create_from(&a[3], MSC_DTYPE_U32, 2, (const int64_t[]){2, 2}, other_type);
    assert_true(msc_hash_equal(msc_array_hash(a[0]), msc_array_hash(a[1])));
    assert_false(msc_hash_equal(msc_array_hash(a[0]), msc_array_hash(a[2])));
    assert_false(msc_hash_equal(msc_array_hash(a[0]), msc_array_hash(a[3])));
    for (int i = 0; i < 4; i++) {
        msc_array_release(a[i]);
    }
}

static void test_data_array__list(void **state) {
    (void)state;
    struct msc_array_list list = {0};
    struct msc_array *a = NULL;
    assert_int_equal(msc_array_create(&a, MSC_DTYPE_U8, 0, NULL), MSC_OK);
    assert_int_equal(msc_array_list_add(&list, "one", a), MSC_OK);
    assert_int_equal(msc_array_list_add(&list, "two", a), MSC_OK);
    test_fails(msc_array_list_add(&list, "one", a), MSC_E_INVALID, "\"one\"", NULL);
    msc_array_release(a);
    assert_int_equal(list.n, 2);
    assert_ptr_equal(msc_array_list_find(&list, "two"), list.arrays[1]);
    assert_null(msc_array_list_find(&list, "three"));
    msc_array_list_finish(&list);
    assert_int_equal(list.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_array__create),
        cmocka_unit_test(test_data_array__scalar_and_empty),
        cmocka_unit_test(test_data_array__bad_shapes),
        cmocka_unit_test(test_data_array__dims_text),
        cmocka_unit_test(test_data_array__rows),
        cmocka_unit_test(test_data_array__convert),
        cmocka_unit_test(test_data_array__convert_to_f16_rounds_once),
        cmocka_unit_test(test_data_array__over),
        cmocka_unit_test(test_data_array__measure),
        cmocka_unit_test(test_data_array__hash),
        cmocka_unit_test(test_data_array__list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
