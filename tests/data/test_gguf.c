// Tests GGUF with files that the package gguf of llama.cpp wrote (files/make_gguf.py), with damaged
// files, and blocks against the values that the package decodes.
#include "data/gguf.h"
#include "data/npy.h"

#include "data_test.h"

#include <stdio.h>
#include <string.h>

static enum msc_status load(const char *path) {
    struct msc_gguf *g;
    enum msc_status status = msc_gguf_open(&g, path);
    for (size_t i = 0; status == MSC_OK && i < msc_gguf_n_tensors(g); i++) {
        struct msc_array *array = NULL;
        if (msc_gguf_load(&array, g, msc_gguf_tensor(g, i)) == MSC_OK) {
            msc_array_release(array);
        }
    }
    if (status == MSC_OK) {
        msc_gguf_close(g);
    }
    return status;
}

static void test_data_gguf__values(void **state) {
    static const struct {
        const char *key;
        double value;
    } numbers[] = {{"u8", 200},
                   {"i8", -3},
                   {"u16", 60000},
                   {"i16", -300},
                   {"i32", -70000},
                   {"u32", 4000000000.0},
                   {"f32", 1.5},
                   {"bool", 1},
                   {"u64", 1099511627776.0},
                   {"f64", 0.1},
                   {"i64", -1099511627776.0}};
    char path[PATH_BYTES];
    struct msc_gguf *g;
    const char *text;
    double value;
    (void)state;
    assert_int_equal(msc_gguf_open(&g, test_file(path, "small.gguf")), MSC_OK);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_true(msc_gguf_number(&value, g, numbers[i].key));
        assert_true(value == numbers[i].value);
    }
    assert_true(msc_gguf_text(&text, g, "text"));
    assert_string_equal(text, "a text");
    assert_false(msc_gguf_text(&text, g, "u8"));
    assert_false(msc_gguf_number(&value, g, "texts"));
    assert_false(msc_gguf_number(&value, g, "absent"));
    assert_int_equal(msc_gguf_alignment(g), 32);
    assert_string_equal(msc_gguf_path(g), path);
    msc_gguf_close(g);
}

static void test_data_gguf__tensors(void **state) {
    static const char *const names[] = {"f32", "f16", "bf16"};
    char path[PATH_BYTES];
    struct msc_gguf *g;
    struct msc_array *array;
    (void)state;
    assert_int_equal(msc_gguf_open(&g, test_file(path, "small.gguf")), MSC_OK);
    assert_int_equal(msc_gguf_n_tensors(g), 5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(msc_gguf_load(&array, g, msc_gguf_find(g, names[i])), MSC_OK);
        test_is_ramp(array, MSC_DTYPE_F32, 2, (const int64_t[]){2, 32}, -1.5, 0.5);
        msc_array_release(array);
    }
    assert_null(msc_gguf_find(g, "absent"));
    test_fails(msc_gguf_load(&array, g, msc_gguf_find(g, "other")), MSC_E_UNSUPPORTED, path,
               "\"other\"", "type 20", NULL);
    msc_gguf_close(g);
}

static void test_data_gguf__damaged(void **state) {
    char path[PATH_BYTES];
    test_truncations(state, "small.gguf", "cut.gguf", load);
    test_changed_bytes(state, "small.gguf", "changed.gguf", load);
    test_fails(load(test_file(path, "float32.npy")), MSC_E_FORMAT, "float32.npy", "not a GGUF file",
               NULL);
}

// Changes one byte, `after` bytes behind the name of the tensor `name`, in a copy of small.gguf.
static const char *change(char path[PATH_BYTES], void **state, const char *name, long after,
                          uint8_t byte) {
    static uint8_t bytes[1 << 16];
    size_t n = strlen(name), at = 0;
    FILE *file = fopen(test_file(path, "small.gguf"), "rb");
    assert_non_null(file);
    size_t n_bytes = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_true(n_bytes > n && n_bytes < sizeof(bytes));
    while (at + n < n_bytes && (memcmp(bytes + at, name, n) != 0 || bytes[at - 8] != n)) {
        at++;
    }
    bytes[at + (size_t)((long)n + after)] = byte;
    file = fopen(test_path(path, state, "changed.gguf"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    fclose(file);
    return path;
}

static void test_data_gguf__names_and_offsets(void **state) {
    char path[PATH_BYTES];
    // A tensor of two axes: name, u32 number of axes, two u64 lengths, u32 type, u64 offset.
    test_fails(load(change(path, state, "bf16", 24, 7)), MSC_E_FORMAT, path, "\"bf16\"",
               "expected a multiple of the file's alignment, 32", NULL);
    test_fails(load(change(path, state, "bf16", -2, 0)), MSC_E_FORMAT, path, ": byte ",
               "has the byte 0 in it", NULL);
    test_fails(load(change(path, state, "text", -1, 0)), MSC_E_FORMAT, path, ": byte ",
               "has the byte 0 in it", NULL);
    assert_int_equal(load(change(path, state, "bf16", -2, 'F')), MSC_OK);
}

// ---- Blocks -----------------------------------------------------------------------------------

static const struct msc_array *find(const struct msc_array_list *list,
                                    const struct msc_gguf_block_type *type, const char *what) {
    char name[32];
    snprintf(name, sizeof(name), "%s/%s", type->name, what);
    const struct msc_array *array = msc_array_list_find(list, name);
    assert_non_null(array);
    return array;
}

static void test_data_gguf__blocks(void **state) {
    char path[PATH_BYTES];
    struct msc_array_list list = {0};
    const struct msc_gguf_block_type *type;
    int n_types = 0;
    (void)state;
    assert_int_equal(msc_npz_load(&list, test_file(path, "gguf_blocks.npz")), MSC_OK);
    for (; (type = msc_gguf_block_type_at(n_types)) != NULL; n_types++) {
        const struct msc_array *bytes = find(&list, type, "bytes");
        const struct msc_array *values = find(&list, type, "values");
        float decoded[4 * MSC_GGUF_MAX_BLOCK];
        assert_int_equal(msc_array_n_elements(bytes), 4 * type->n_bytes);
        assert_int_equal(msc_array_n_elements(values), 4 * type->n);
        msc_gguf_decode(decoded, msc_array_data(bytes), 4, type);
        assert_memory_equal(decoded, msc_array_data(values), msc_array_n_bytes(values));
        for (int i = 0; i < 4; i++) {
            const uint8_t *block = (const uint8_t *)msc_array_data(bytes) + i * type->n_bytes;
            uint8_t packed[MSC_GGUF_MAX_BYTES];
            struct msc_gguf_block unpacked;
            msc_gguf_unpack(&unpacked, block, type);
            msc_gguf_pack(packed, &unpacked, type);
            assert_memory_equal(packed, block, (size_t)type->n_bytes);
        }
        assert_ptr_equal(msc_gguf_block_type_named(type->name), type);
        assert_ptr_equal(msc_gguf_block_type((int)type->type), type);
        assert_int_equal(msc_gguf_n_bytes((int)type->type, 2 * type->n, type->n),
                         2 * type->n_bytes);
        assert_int_equal(msc_gguf_n_bytes((int)type->type, 3 * 16, 16), 0);
    }
    assert_int_equal(n_types, 10);
    assert_null(msc_gguf_block_type(20));
    assert_null(msc_gguf_block_type_named("q4"));
    msc_array_list_finish(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_gguf__values),
        cmocka_unit_test(test_data_gguf__tensors),
        cmocka_unit_test(test_data_gguf__damaged),
        cmocka_unit_test(test_data_gguf__names_and_offsets),
        cmocka_unit_test(test_data_gguf__blocks),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
