// Tests the safetensors format with a file that the reference library wrote (files/make_files.py),
// and with bad headers.
#include "data/safetensors.h"

#include "data_test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

static enum msc_status load(const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_safetensors_load(&list, path);
    if (status != MSC_OK) {
        assert_int_equal(list.n, 0);
    }
    msc_array_list_finish(&list);
    return status;
}

static void test_data_safetensors__file_of_the_reference(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct msc_array_list list = {0};
    assert_int_equal(msc_safetensors_load(&list, test_file(path, "numpy.safetensors")), MSC_OK);
    assert_int_equal(list.n, 6);
    test_is_ramp(msc_array_list_find(&list, "a"), MSC_DTYPE_I64, 2, (const int64_t[]){2, 2}, -3, 1);
    test_is_ramp(msc_array_list_find(&list, "b"), MSC_DTYPE_F32, 2, (const int64_t[]){3, 4}, -1.5,
                 0.5);
    test_is_ramp(msc_array_list_find(&list, "c"), MSC_DTYPE_F16, 1, (const int64_t[]){3}, -1.5,
                 0.5);
    test_is_ramp(msc_array_list_find(&list, "nothing"), MSC_DTYPE_F32, 2, (const int64_t[]){0, 7},
                 0, 0);
    test_is_ramp(msc_array_list_find(&list, "scalar"), MSC_DTYPE_I16, 0, NULL, 7, 0);
    const struct msc_array *flag = msc_array_list_find(&list, "flag");
    assert_int_equal(msc_array_dtype(flag), MSC_DTYPE_BOOL);
    for (int64_t i = 0; i < 5; i++) {
        assert_int_equal(msc_array_get_i64(flag, i), i % 2);
    }
    msc_array_list_finish(&list);
}

static void test_data_safetensors__metadata(void **state) {
    (void)state;
    char path[PATH_BYTES];
    char *text = NULL;
    test_file(path, "numpy.safetensors");
    assert_int_equal(msc_safetensors_metadata(&text, path, "note"), MSC_OK);
    assert_string_equal(text, "a \"quoted\" word");
    msc_free(text);
    test_fails(msc_safetensors_metadata(&text, path, "other"), MSC_E_NOT_FOUND, path, "\"other\"",
               NULL);
}

// Writes a file with this header and `n_bytes` zero bytes of elements.
static const char *write_header(char path[PATH_BYTES], void **state, const char *header,
                                size_t n_bytes) {
    test_path(path, state, "header.safetensors");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++) {
        fputc((int)((uint64_t)n >> (8 * i) & 0xff), file);
    }
    fwrite(header, 1, n, file);
    for (size_t i = 0; i < n_bytes; i++) {
        fputc(0, file);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_data_safetensors__bad_headers(void **state) {
    static const struct {
        const char *header, *word;
        enum msc_status status;
    } rows[] = {
        {"[]", "does not begin with '{'", MSC_E_FORMAT},
        {"{} x", "header.safetensors", MSC_E_FORMAT},
        {"{\"a\":3}", "\"dtype\"", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", "\"dtype\"", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[8],\"data_offsets\":[0,8]}}", "\"F8_E4M3\"",
         MSC_E_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", "\"shape\"",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "a dim",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", "a dim",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
         "more than 8 dims", MSC_E_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "\"data_offsets\"", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", "\"data_offsets\"",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,1e300]}}", "\"data_offsets\"",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "are outside",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", "are outside",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "does not fit",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
         "does not fit", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,8]}}",
         "a dim", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         "\"b\": begins at byte 4 of the elements, overlapping", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         "with a gap", MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "4 bytes follow",
         MSC_E_FORMAT},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
         "duplicate key a", MSC_E_FORMAT},
    };
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_header(path, state, rows[i].header, 8);
        test_fails(load(path), rows[i].status, path, rows[i].word, NULL);
    }
}

static void test_data_safetensors__bad_length(void **state) {
    char path[PATH_BYTES];
    test_path(path, state, "length.safetensors");
    const char large[] = "\xff\xff\xff\xff\xff\xff\xff\xff{}", zero[16] = {0};
    assert_int_equal(msc_file_write(path, large, sizeof large - 1), MSC_OK);
    test_fails(load(path), MSC_E_FORMAT, path, "byte 0", "18446744073709551615 bytes", NULL);
    assert_int_equal(msc_file_write(path, zero, sizeof zero), MSC_OK);
    test_fails(load(path), MSC_E_FORMAT, path, "byte 0", NULL);
    test_fails(load(test_path(path, state, "absent.safetensors")), MSC_E_NOT_FOUND, path, NULL);
}

static void test_data_safetensors__truncated(void **state) {
    test_truncations(state, "numpy.safetensors", "cut.safetensors", load);
}

static void test_data_safetensors__changed_bytes(void **state) {
    test_changed_bytes(state, "numpy.safetensors", "changed.safetensors", load);
}

static void test_data_safetensors__save_and_load(void **state) {
    char path[PATH_BYTES], again[PATH_BYTES];
    struct msc_array_list list = {0}, back = {0};
    assert_int_equal(msc_safetensors_load(&list, test_file(path, "numpy.safetensors")), MSC_OK);
    struct msc_array *a = NULL;
    const uint16_t halves[] = {0x3f80, 0x4000, 0x4040};
    assert_int_equal(msc_array_create_from(&a, MSC_DTYPE_BF16, 1, (const int64_t[]){3}, halves),
                     MSC_OK);
    assert_int_equal(msc_array_list_add(&list, "name with \"quotes\"", a), MSC_OK);
    msc_array_release(a);
    const char *const metadata[][2] = {{"hash", "abc"}, {"line", "one\ntwo"}};
    test_path(path, state, "saved.safetensors");
    assert_int_equal(msc_safetensors_save(path, &list, metadata, 2), MSC_OK);
    assert_int_equal(msc_safetensors_load(&back, path), MSC_OK);
    assert_int_equal(back.n, list.n);
    for (size_t i = 0; i < list.n; i++) {
        const struct msc_array *found = msc_array_list_find(&back, list.names[i]);
        assert_non_null(found);
        assert_true(msc_hash_equal(msc_array_hash(list.arrays[i]), msc_array_hash(found)));
    }
    char *text = NULL;
    assert_int_equal(msc_safetensors_metadata(&text, path, "line"), MSC_OK);
    assert_string_equal(text, "one\ntwo");
    msc_free(text);
    char *bytes[2] = {NULL, NULL};
    size_t n_bytes[2] = {0, 0};
    test_path(again, state, "again.safetensors");
    assert_int_equal(msc_safetensors_save(again, &list, metadata, 2), MSC_OK);
    assert_int_equal(msc_file_read(&bytes[0], &n_bytes[0], path), MSC_OK);
    assert_int_equal(msc_file_read(&bytes[1], &n_bytes[1], again), MSC_OK);
    assert_int_equal(n_bytes[0], n_bytes[1]);
    assert_memory_equal(bytes[0], bytes[1], n_bytes[0]);
    assert_int_equal(((unsigned char)bytes[0][0] + 8) % 64, 0);
    msc_free(bytes[0]);
    msc_free(bytes[1]);
    msc_array_list_finish(&list);
    msc_array_list_finish(&back);
}

static void test_data_safetensors__save_nothing(void **state) {
    char path[PATH_BYTES];
    struct msc_array_list list = {0};
    test_path(path, state, "saved.safetensors");
    assert_int_equal(msc_safetensors_save(path, &list, NULL, 0), MSC_OK);
    assert_int_equal(load(path), MSC_OK);
    char *text = NULL;
    test_fails(msc_safetensors_metadata(&text, path, "key"), MSC_E_NOT_FOUND, "\"key\"", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_safetensors__file_of_the_reference),
        cmocka_unit_test(test_data_safetensors__metadata),
        cmocka_unit_test(test_data_safetensors__bad_headers),
        cmocka_unit_test(test_data_safetensors__bad_length),
        cmocka_unit_test(test_data_safetensors__truncated),
        cmocka_unit_test(test_data_safetensors__changed_bytes),
        cmocka_unit_test(test_data_safetensors__save_and_load),
        cmocka_unit_test(test_data_safetensors__save_nothing),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
