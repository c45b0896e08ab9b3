// Arrays written in pieces to .npy, .npz and .safetensors. Archives are read back with libzip,
// which checks their CRCs. Expected elements are those written.
#include "data/array_file.h"

#include "data_test.h"

#include "data/npy.h"
#include "data/safetensors.h"

#include "base/alloc.h"
#include "base/file.h"

#include <string.h>
#include <unistd.h>

static const struct msc_array_form forms[] = {
    {"bytes", MSC_DTYPE_U8, 1, {3}},     {"conv/1:0", MSC_DTYPE_F32, 3, {4, 2, 3}},
    {"\xc3\xa4", MSC_DTYPE_I64, 1, {2}}, {"scalar", MSC_DTYPE_F64, 0, {0}},
    {"none", MSC_DTYPE_F32, 2, {0, 5}},  {"half", MSC_DTYPE_BF16, 1, {2}},
};
#define N_FORMS (sizeof forms / sizeof forms[0])

// Writes the rows from last to first; one row is written twice.
static void put_all(struct msc_array_file *file) {
    const float wrong[6] = {9, 9, 9, 9, 9, 9};
    assert_int_equal(msc_array_file_put(file, 1, 12, wrong, 6), MSC_OK);
    for (int64_t row = 3; row >= 0; row--) {
        float values[6];
        for (int64_t i = 0; i < 6; i++) {
            values[i] = (float)(6 * row + i) * 0.5f;
        }
        assert_int_equal(msc_array_file_put(file, 1, 6 * row, values, 6), MSC_OK);
    }
    assert_int_equal(msc_array_file_put(file, 5, 0, (const uint16_t[]){0x3f80, 0xc040}, 2), MSC_OK);
    assert_int_equal(msc_array_file_put(file, 3, 0, (const double[]){-2.5}, 1), MSC_OK);
    assert_int_equal(msc_array_file_put(file, 2, 0, (const int64_t[]){-7, -6}, 2), MSC_OK);
    assert_int_equal(msc_array_file_put(file, 0, 0, "\0\1\2", 3), MSC_OK);
    assert_int_equal(msc_array_file_put(file, 4, 0, NULL, 0), MSC_OK);
}

static void check_names(const char *path) {
    struct msc_arena arena = {0};
    const char **names;
    size_t n;
    assert_int_equal(msc_array_file_names(&names, &n, &arena, path), MSC_OK);
    assert_int_equal(n, N_FORMS);
    for (size_t i = 0; i < N_FORMS; i++) {
        size_t found = 0;
        for (size_t k = 0; k < n; k++) {
            found += strcmp(names[k], forms[i].name) == 0;
        }
        assert_int_equal(found, 1);
    }
    msc_arena_finish(&arena);
}

static void check(const struct msc_array_list *list, enum msc_dtype half) {
    assert_int_equal(list->n, N_FORMS);
    test_is_ramp(msc_array_list_find(list, "bytes"), MSC_DTYPE_U8, 1, (const int64_t[]){3}, 0, 1);
    test_is_ramp(msc_array_list_find(list, "conv/1:0"), MSC_DTYPE_F32, 3,
                 (const int64_t[]){4, 2, 3}, 0, 0.5);
    test_is_ramp(msc_array_list_find(list, "\xc3\xa4"), MSC_DTYPE_I64, 1, (const int64_t[]){2}, -7,
                 1);
    test_is_ramp(msc_array_list_find(list, "scalar"), MSC_DTYPE_F64, 0, NULL, -2.5, 0);
    assert_int_equal(msc_array_n_elements(msc_array_list_find(list, "none")), 0);
    test_is_ramp(msc_array_list_find(list, "half"), half, 1, (const int64_t[]){2}, 1, -4);
}

static void test_data_array_file__pieces_in_any_order(void **state) {
    char path[PATH_BYTES];
    struct msc_array_file *file;
    struct msc_array_list list = {0};
    test_path(path, state, "a.npz");
    assert_int_equal(msc_array_file_kind_of(path), MSC_ARRAY_FILE_NPZ);
    assert_int_equal(msc_array_file_begin(&file, MSC_ARRAY_FILE_NPZ, path, forms, N_FORMS), MSC_OK);
    put_all(file);
    assert_false(msc_file_exists(path));
    assert_int_equal(msc_array_file_commit(file), MSC_OK);
    uint64_t n_bytes = 0;
    int descriptor;
    assert_int_equal(msc_file_open(&descriptor, &n_bytes, path), MSC_OK);
    close(descriptor);
    assert_int_equal(msc_array_file_bytes(file), n_bytes);
    msc_array_file_close(file);
    assert_int_equal(msc_npz_load(&list, path), MSC_OK);
    check(&list, MSC_DTYPE_F32);
    check_names(path);
    msc_array_list_finish(&list);
}

// The file has the same bytes as an array saved in one call.
static void test_data_array_file__safetensors(void **state) {
    char path[PATH_BYTES], whole[PATH_BYTES];
    struct msc_array_file *file;
    struct msc_array_list list = {0};
    char *bytes[2];
    size_t n_bytes[2];
    test_path(path, state, "a.safetensors");
    assert_int_equal(msc_array_file_kind_of(path), MSC_ARRAY_FILE_SAFETENSORS);
    assert_int_equal(msc_array_file_begin(&file, MSC_ARRAY_FILE_SAFETENSORS, path, forms, N_FORMS),
                     MSC_OK);
    put_all(file);
    assert_int_equal(msc_array_file_commit(file), MSC_OK);
    assert_int_equal(msc_safetensors_load(&list, path), MSC_OK);
    check(&list, MSC_DTYPE_BF16);
    check_names(path);
    assert_int_equal(
        msc_safetensors_save(test_path(whole, state, "whole.safetensors"), &list, NULL, 0), MSC_OK);
    assert_int_equal(msc_file_read(&bytes[0], &n_bytes[0], path), MSC_OK);
    assert_int_equal(msc_file_read(&bytes[1], &n_bytes[1], whole), MSC_OK);
    assert_int_equal(msc_array_file_bytes(file), n_bytes[0]);
    msc_array_file_close(file);
    assert_int_equal(n_bytes[0], n_bytes[1]);
    msc_free(bytes[0]);
    msc_free(bytes[1]);
    msc_array_list_finish(&list);
}

static void test_data_array_file__absent_without_a_commit(void **state) {
    char path[PATH_BYTES];
    struct msc_array_file *file;
    test_path(path, state, "absent.npz");
    assert_int_equal(msc_array_file_begin(&file, MSC_ARRAY_FILE_NPZ, path, forms, N_FORMS), MSC_OK);
    put_all(file);
    test_fails(msc_array_file_put(file, 0, 2, "\0\1", 2), MSC_E_INVALID, "absent.npz", "3 elements",
               NULL);
    msc_array_file_close(file);
    assert_false(msc_file_exists(path));
    test_fails(msc_array_file_begin(&file, MSC_ARRAY_FILE_NPZ, path, forms, 0), MSC_E_INVALID, path,
               NULL);
    assert_int_equal(msc_array_file_kind_of("a.npy"), MSC_ARRAY_FILE_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_array_file__pieces_in_any_order),
        cmocka_unit_test(test_data_array_file__safetensors),
        cmocka_unit_test(test_data_array_file__absent_without_a_commit),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
