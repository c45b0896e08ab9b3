// Tests the .npz format with archives that numpy wrote (files/make_files.py), with damaged
// archives, and with archives that unpack to too many bytes.
#include "data/npy.h"

#include "data_test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <zip.h>

static enum msc_status load(const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_npz_load(&list, path);
    if (status != MSC_OK) {
        assert_int_equal(list.n, 0);
    }
    msc_array_list_finish(&list);
    return status;
}

static void test_data_npz__stored_and_deflated(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct msc_array_list list = {0};
    assert_int_equal(msc_npz_load(&list, test_file(path, "stored.npz")), MSC_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.names[0], "x");
    test_is_ramp(list.arrays[0], MSC_DTYPE_F32, 2, (const int64_t[]){3, 4}, -1.5, 0.5);
    test_is_ramp(msc_array_list_find(&list, "ids"), MSC_DTYPE_I64, 1, (const int64_t[]){3}, -3, 1);
    msc_array_list_finish(&list);
    assert_int_equal(msc_npz_load(&list, test_file(path, "deflated.npz")), MSC_OK);
    test_is_ramp(list.arrays[0], MSC_DTYPE_F32, 2, (const int64_t[]){3, 4}, -1.5, 0.5);
    test_is_ramp(list.arrays[1], MSC_DTYPE_F32, 2, (const int64_t[]){100, 10}, 0.0, 0.0);
    msc_array_list_finish(&list);
}

static void test_data_npz__bad_members(void **state) {
    (void)state;
    char path[PATH_BYTES];
    test_fails(load(test_file(path, "bad_member.npz")), MSC_E_FORMAT, "bad_member.npz",
               "\"readme.txt\" is not a .npy array", NULL);
    test_fails(load(test_file(path, "bad_content.npz")), MSC_E_FORMAT, "bad_content.npz",
               "member \"x.npy\": byte 0: not a .npy array", NULL);
    test_fails(load(test_file(path, "bad_method.npz")), MSC_E_UNSUPPORTED, "bad_method.npz",
               "\"x.npy\"", "method 12", NULL);
    test_fails(load(test_file(path, "bad_twice.npz")), MSC_E_FORMAT, "bad_twice.npz", "\"x\"",
               NULL);
    test_fails(load(test_file(path, "float32.npy")), MSC_E_FORMAT, "float32.npy", "zip", NULL);
}

static void test_data_npz__truncated(void **state) {
    test_truncations(state, "stored.npz", "cut.npz", load);
    test_truncations(state, "deflated.npz", "cut.npz", load);
}

static void test_data_npz__changed_bytes(void **state) {
    test_changed_bytes(state, "stored.npz", "changed.npz", load);
    test_changed_bytes(state, "deflated.npz", "changed.npz", load);
}

static void test_data_npz__changed_elements_are_found(void **state) {
    char path[PATH_BYTES];
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, "stored.npz")), MSC_OK);
    const float marked = 3.5f; // an element of x, found in the file by its bytes
    char *place = NULL;
    for (size_t i = 0; i + 4 <= n_bytes && !place; i++) {
        place = memcmp(bytes + i, &marked, 4) == 0 ? bytes + i : NULL;
    }
    assert_non_null(place);
    place[1] ^= 1;
    assert_int_equal(msc_file_write(test_path(path, state, "element.npz"), bytes, n_bytes), MSC_OK);
    test_fails(load(path), MSC_E_FORMAT, "checksum", "\"x.npy\"", NULL);
    msc_free(bytes);
}

// If a member states a larger size than its bytes can unpack to, the member is refused before
// memory is allocated.
static void test_data_npz__sizes_are_not_trusted(void **state) {
    char path[PATH_BYTES];
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, "deflated.npz")), MSC_OK);
    for (size_t i = 0; i + 46 < n_bytes; i++) {
        // An entry of the central directory; the size is at offset 24.
        if (memcmp(bytes + i, "PK\x01\x02", 4) == 0) {
            memcpy(bytes + i + 24, "\xf0\xff\xff\xff", 4);
        }
    }
    assert_int_equal(msc_file_write(test_path(path, state, "size.npz"), bytes, n_bytes), MSC_OK);
    test_fails(load(path), MSC_E_FORMAT, path, "4294967280 bytes", NULL);
    msc_free(bytes);
}

// An archive of `n_members` arrays of `n_elements` zeros each, which deflate about 1000 to 1.
static const char *write_zeros(char path[PATH_BYTES], void **state, const char *name,
                               size_t n_members, size_t n_elements) {
    static const char magic[] = "\x93NUMPY\x01";
    enum { HEADER_BYTES = 128 };
    const size_t n_bytes = HEADER_BYTES + n_elements;
    char *member = msc_alloc_zero(1, n_bytes);
    assert_non_null(member);
    memcpy(member, magic, sizeof magic);
    member[8] = HEADER_BYTES - 10;
    memset(member + 10, ' ', HEADER_BYTES - 10);
    int n = snprintf(member + 10, HEADER_BYTES - 10,
                     "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,), }", n_elements);
    member[10 + n] = ' ';
    member[HEADER_BYTES - 1] = '\n';
    int error = 0;
    zip_t *archive = zip_open(test_path(path, state, name), ZIP_CREATE | ZIP_TRUNCATE, &error);
    assert_non_null(archive);
    for (size_t i = 0; i < n_members; i++) {
        char entry[32];
        snprintf(entry, sizeof entry, "x%zu.npy", i);
        zip_source_t *source = zip_source_buffer(archive, member, n_bytes, 0);
        zip_int64_t index = zip_file_add(archive, entry, source, 0);
        assert_true(index >= 0);
        assert_int_equal(zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_DEFLATE, 1),
                         0);
    }
    assert_int_equal(zip_close(archive), 0);
    msc_free(member);
    return path;
}

// Archives that unpack to gigabytes, in one member or in many, are refused because of their central
// directory. Arrays that unpack to a few megabytes are read even if they compress very well, as
// masks and padding do.
static void test_data_npz__unpacked_size_has_a_limit(void **state) {
    const size_t mib = (size_t)1 << 20;
    char path[PATH_BYTES];
    assert_int_equal(load(write_zeros(path, state, "mask.npz", 1, 4 * mib)), MSC_OK);
    test_fails(load(write_zeros(path, state, "bomb.npz", 1, 128 * mib)), MSC_E_UNSUPPORTED,
               "bomb.npz", "134217856 bytes", "numpy.savez", NULL);
    test_fails(load(write_zeros(path, state, "many.npz", 16, 8 * mib)), MSC_E_UNSUPPORTED,
               "many.npz", "134219776 bytes", "numpy.savez", NULL);
}

static void test_data_npz__save_and_load(void **state) {
    char path[PATH_BYTES], again[PATH_BYTES];
    struct msc_array_list list = {0}, back = {0};
    assert_int_equal(msc_npz_load(&list, test_file(path, "stored.npz")), MSC_OK);
    struct msc_array *a = NULL;
    assert_int_equal(msc_npy_load(&a, test_file(path, "empty.npy")), MSC_OK);
    assert_int_equal(msc_array_list_add(&list, "empty", a), MSC_OK);
    msc_array_release(a);
    assert_int_equal(msc_npz_save(test_path(path, state, "saved.npz"), &list), MSC_OK);
    assert_int_equal(msc_npz_load(&back, path), MSC_OK);
    assert_int_equal(back.n, list.n);
    for (size_t i = 0; i < list.n; i++) {
        assert_string_equal(back.names[i], list.names[i]);
        assert_true(msc_hash_equal(msc_array_hash(list.arrays[i]), msc_array_hash(back.arrays[i])));
    }
    // Equal lists are saved as equal bytes.
    assert_int_equal(msc_npz_save(test_path(again, state, "again.npz"), &back), MSC_OK);
    char *bytes[2] = {NULL, NULL};
    size_t n_bytes[2] = {0, 0};
    assert_int_equal(msc_file_read(&bytes[0], &n_bytes[0], path), MSC_OK);
    assert_int_equal(msc_file_read(&bytes[1], &n_bytes[1], again), MSC_OK);
    assert_int_equal(n_bytes[0], n_bytes[1]);
    assert_memory_equal(bytes[0], bytes[1], n_bytes[0]);
    msc_free(bytes[0]);
    msc_free(bytes[1]);
    msc_array_list_finish(&list);
    msc_array_list_finish(&back);
    test_fails(msc_npz_save(path, &list), MSC_E_INVALID, path, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_npz__stored_and_deflated),
        cmocka_unit_test(test_data_npz__bad_members),
        cmocka_unit_test(test_data_npz__truncated),
        cmocka_unit_test(test_data_npz__changed_bytes),
        cmocka_unit_test(test_data_npz__changed_elements_are_found),
        cmocka_unit_test(test_data_npz__sizes_are_not_trusted),
        cmocka_unit_test(test_data_npz__unpacked_size_has_a_limit),
        cmocka_unit_test(test_data_npz__save_and_load),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
