// Tests the .npy format with files that numpy wrote (files/make_files.py), and with damaged or
// unusual headers.
#include "data/npy.h"

#include "data_test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

static enum msc_status load(const char *path) {
    struct msc_array *a = NULL;
    enum msc_status status = msc_npy_load(&a, path);
    msc_array_release(a);
    return status;
}

// Checks a file that numpy wrote with ramp() of files/make_files.py.
static void check_ramp(const char *name, enum msc_dtype dtype, int n_dims, const int64_t dims[]) {
    char path[PATH_BYTES];
    struct msc_array *a = NULL;
    assert_int_equal(msc_npy_load(&a, test_file(path, name)), MSC_OK);
    double first = 0.0, step = 1.0;
    if (msc_dtype_is_float(dtype)) {
        first = -1.5;
        step = 0.5;
    } else if (dtype >= MSC_DTYPE_I8 && dtype <= MSC_DTYPE_I64) {
        first = -3.0;
    }
    test_is_ramp(a, dtype, n_dims, dims, first, step);
    msc_array_release(a);
}

static void test_data_npy__every_type(void **state) {
    (void)state;
    const int64_t dims[] = {3, 4};
    char name[64];
    for (int i = MSC_DTYPE_NONE + 1; i < MSC_DTYPE_BOOL; i++) {
        if (i != MSC_DTYPE_BF16) {
            snprintf(name, sizeof name, "%s.npy", msc_dtype_name((enum msc_dtype)i));
            check_ramp(name, (enum msc_dtype)i, 2, dims);
        }
    }
    char path[PATH_BYTES];
    struct msc_array *a = NULL;
    assert_int_equal(msc_npy_load(&a, test_file(path, "bool.npy")), MSC_OK);
    assert_int_equal(msc_array_dtype(a), MSC_DTYPE_BOOL);
    for (int64_t i = 0; i < 12; i++) {
        assert_int_equal(msc_array_get_i64(a, i), i % 2);
    }
    msc_array_release(a);
}

static void test_data_npy__shapes_orders_versions(void **state) {
    (void)state;
    check_ramp("vector.npy", MSC_DTYPE_F32, 1, (const int64_t[]){5});
    check_ramp("empty.npy", MSC_DTYPE_F32, 2, (const int64_t[]){0, 3});
    check_ramp("fortran.npy", MSC_DTYPE_F32, 3, (const int64_t[]){2, 3, 4});
    check_ramp("big_endian.npy", MSC_DTYPE_F64, 2, (const int64_t[]){3, 4});
    check_ramp("big_endian_fortran.npy", MSC_DTYPE_I32, 2, (const int64_t[]){3, 4});
    check_ramp("version2.npy", MSC_DTYPE_F32, 2, (const int64_t[]){3, 4});
    check_ramp("version3.npy", MSC_DTYPE_F32, 2, (const int64_t[]){3, 4});
    char path[PATH_BYTES];
    struct msc_array *a = NULL;
    assert_int_equal(msc_npy_load(&a, test_file(path, "scalar.npy")), MSC_OK);
    test_is_ramp(a, MSC_DTYPE_F32, 0, NULL, 2.5, 0.0);
    msc_array_release(a);
}

static void test_data_npy__refused_types(void **state) {
    (void)state;
    static const struct {
        const char *name, *word;
    } rows[] = {
        {"bad_object.npy", "Python objects"}, {"bad_text.npy", "text"},
        {"bad_complex.npy", "complex"},       {"bad_fields.npy", "named fields"},
        {"bad_long_double.npy", "'<f16'"},    {"bad_nine_dims.npy", "more than 8 dims"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[PATH_BYTES];
        test_fails(load(test_file(path, rows[i].name)), MSC_E_UNSUPPORTED, rows[i].name,
                   rows[i].word, "byte ", NULL);
    }
}

// Writes a version 1.0 file with this header dict and `n_bytes` zero bytes of elements.
static const char *write_header(char path[PATH_BYTES], void **state, const char *dict,
                                size_t n_bytes) {
    test_path(path, state, "header.npy");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    size_t n = strlen(dict);
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc((int)(n & 0xff), file);
    fputc((int)(n >> 8), file);
    fwrite(dict, 1, n, file);
    for (size_t i = 0; i < n_bytes; i++) {
        fputc(0, file);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_data_npy__bad_headers(void **state) {
    static const struct {
        const char *dict, *word;
    } rows[] = {
        {"", "byte 10: expected '{'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)", "',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False}", "'shape'"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (4,)}", "byte 44: expected True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-4,)}", "zero or more"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4.5,)}", "',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 4}", "'('"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'more': 1}", "only 'descr'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", "once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} x", "blanks"},
        {"{'descr': '<q4', 'fortran_order': False, 'shape': (4,)}", "unknown element type '<q4'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (4,)}", "unknown element type"},
        {"{'descr': '<f4", "closing quote"},
        {"{'descr': '<f4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "short quoted name"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}",
         "overflows"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}", "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
         "needs 4000000000000 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}",
         "found 16; the file is cut off"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "longer than one array"},
    };
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_header(path, state, rows[i].dict, 16);
        test_fails(load(path), MSC_E_FORMAT, path, "byte ", rows[i].word, NULL);
    }
}

static void test_data_npy__unusual_headers(void **state) {
    static const char *const dicts[] = {
        "{\"shape\":(4L,),\"descr\":\"<f4\",\"fortran_order\":True}",
        "  {  'shape' : ( 2 , 2 , ) , 'fortran_order' : False , 'descr' : '=f4' , }  \n\n",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (2,2)}",
    };
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
        assert_int_equal(load(write_header(path, state, dicts[i], 16)), MSC_OK);
    }
    // An empty array may have long dims. Like numpy 1.24, we refuse one whose strides overflow.
    const char *empty = "{'descr': '<f4', 'fortran_order': True, 'shape': (1000000007, 0, 3)}";
    assert_int_equal(load(write_header(path, state, empty, 0)), MSC_OK);
    const char *large = "{'descr': '<f4', 'fortran_order': True, 'shape': "
                        "(9223372036854775807, 0, 9223372036854775807)}";
    test_fails(load(write_header(path, state, large, 0)), MSC_E_FORMAT, "overflows", NULL);
}

static void test_data_npy__bools_are_0_or_1(void **state) {
    char path[PATH_BYTES];
    const char *dict = "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}";
    write_header(path, state, dict, 0);
    FILE *file = fopen(path, "ab");
    fputc(7, file);
    fclose(file);
    struct msc_array *a = NULL;
    assert_int_equal(msc_npy_load(&a, path), MSC_OK);
    assert_int_equal(*(const uint8_t *)msc_array_data(a), 1);
    msc_array_release(a);
}

static void test_data_npy__truncated(void **state) {
    test_truncations(state, "float32.npy", "cut.npy", load);
    test_truncations(state, "version2.npy", "cut.npy", load);
    test_truncations(state, "big_endian_fortran.npy", "cut.npy", load);
}

static void test_data_npy__changed_bytes(void **state) {
    test_changed_bytes(state, "fortran.npy", "changed.npy", load);
    test_changed_bytes(state, "version3.npy", "changed.npy", load);
}

static void test_data_npy__no_file(void **state) {
    char path[PATH_BYTES];
    test_fails(load(test_path(path, state, "absent.npy")), MSC_E_NOT_FOUND, path, NULL);
    test_fails(load(*state), MSC_E_INVALID, "it is a folder", NULL);
    test_fails(load(test_file(path, "make_files.py")), MSC_E_FORMAT, "not a .npy array", NULL);
}

static void test_data_npy__save_and_load(void **state) {
    static const char *const names[] = {"float32.npy", "float16.npy", "float64.npy", "int8.npy",
                                        "int64.npy",   "uint8.npy",   "bool.npy",    "scalar.npy",
                                        "empty.npy",   "vector.npy",  "fortran.npy"};
    char path[PATH_BYTES], copy[PATH_BYTES];
    test_path(copy, state, "saved.npy");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct msc_array *a = NULL, *b = NULL;
        assert_int_equal(msc_npy_load(&a, test_file(path, names[i])), MSC_OK);
        assert_int_equal(msc_npy_save(copy, a), MSC_OK);
        assert_int_equal(msc_npy_load(&b, copy), MSC_OK);
        assert_true(msc_hash_equal(msc_array_hash(a), msc_array_hash(b)));
        msc_array_release(a);
        msc_array_release(b);
    }
}

static void test_data_npy__saved_bytes(void **state) {
    char path[PATH_BYTES];
    struct msc_array *a = NULL;
    const float values[] = {1.0f, -2.0f};
    assert_int_equal(msc_array_create_from(&a, MSC_DTYPE_F32, 1, (const int64_t[]){2}, values),
                     MSC_OK);
    assert_int_equal(msc_npy_save(test_path(path, state, "saved.npy"), a), MSC_OK);
    msc_array_release(a);
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, path), MSC_OK);
    // The layout of numpy's format description: 10 bytes and a dict of 118 bytes make 128.
    const char head[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(2,), }    ";
    assert_int_equal(n_bytes, 128 + 8);
    assert_memory_equal(bytes, head, sizeof head - 1);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, values, 8);
    msc_free(bytes);
}

static void test_data_npy__bfloat16_is_saved_as_float32(void **state) {
    char path[PATH_BYTES];
    struct msc_array *a = NULL;
    const uint16_t values[] = {0x3f80, 0x4000, 0x4040};
    assert_int_equal(msc_array_create_from(&a, MSC_DTYPE_BF16, 1, (const int64_t[]){3}, values),
                     MSC_OK);
    assert_int_equal(msc_npy_save(test_path(path, state, "saved.npy"), a), MSC_OK);
    msc_array_release(a);
    assert_int_equal(msc_npy_load(&a, path), MSC_OK);
    test_is_ramp(a, MSC_DTYPE_F32, 1, (const int64_t[]){3}, 1.0, 1.0);
    test_fails(msc_npy_save("/no/such/folder/x.npy", a), MSC_E_NOT_FOUND, "/no/such/folder", NULL);
    msc_array_release(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_npy__every_type),
        cmocka_unit_test(test_data_npy__shapes_orders_versions),
        cmocka_unit_test(test_data_npy__refused_types),
        cmocka_unit_test(test_data_npy__bad_headers),
        cmocka_unit_test(test_data_npy__unusual_headers),
        cmocka_unit_test(test_data_npy__bools_are_0_or_1),
        cmocka_unit_test(test_data_npy__truncated),
        cmocka_unit_test(test_data_npy__changed_bytes),
        cmocka_unit_test(test_data_npy__no_file),
        cmocka_unit_test(test_data_npy__save_and_load),
        cmocka_unit_test(test_data_npy__saved_bytes),
        cmocka_unit_test(test_data_npy__bfloat16_is_saved_as_float32),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
