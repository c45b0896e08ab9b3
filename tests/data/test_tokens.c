// Token ids of language models: a text that is cut, lines of ids, and the inputs that follow from
// the ids.
#include "data/dataset.h"

#include "data_test.h"

#include "base/file.h"
#include "data/npy.h"

#include <string.h>

enum { IDS, MASK, POSITIONS, TYPES, PAST, N_INPUTS };

#define OF_TOKENS(label, type)                                                                     \
    { .name = label, .dtype = type, .n_dims = 2, .dims = {-1, -1}, .is_batched = true }

static const struct msc_input_spec specs[N_INPUTS] = {
    [IDS] = OF_TOKENS("input_ids", MSC_DTYPE_I64),
    [MASK] = OF_TOKENS("attention_mask", MSC_DTYPE_I64),
    [POSITIONS] = OF_TOKENS("position_ids", MSC_DTYPE_I32),
    [TYPES] = OF_TOKENS("token_type_ids", MSC_DTYPE_I64),
    [PAST] = {.name = "past_key_values.0.key",
              .dtype = MSC_DTYPE_F32,
              .n_dims = 4,
              .dims = {-1, 2, -1, 8},
              .is_batched = true}};

// Saves the ids 5, 6, ... as an array of these dims, and makes the options to load them.
static struct msc_dataset_options save_ids(char path[PATH_BYTES], void **state, int n_dims,
                                           const int64_t dims[]) {
    struct msc_array *ids = NULL;
    assert_int_equal(msc_array_create(&ids, MSC_DTYPE_I64, n_dims, dims), MSC_OK);
    for (int64_t i = 0; i < msc_array_n_elements(ids); i++) {
        ((int64_t *)msc_array_data(ids))[i] = 5 + i;
    }
    assert_int_equal(msc_npy_save(test_path(path, state, "ids.npy"), ids), MSC_OK);
    msc_array_release(ids);
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = path;
    return o;
}

static struct msc_dataset_options save_lines(char path[PATH_BYTES], void **state,
                                             const char *text) {
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = test_path(path, state, "ids.jsonl");
    assert_int_equal(msc_file_write(path, text, strlen(text)), MSC_OK);
    return o;
}

static struct msc_dataset *load(const struct msc_dataset_options *o, size_t n) {
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_dataset_load(&data, o, specs, n), MSC_OK);
    return data;
}

// Each row of the batch is first, first + step, ...
static void check_rows(const struct msc_dataset *data, size_t b, size_t input, enum msc_dtype dtype,
                       int64_t n, int64_t length, int64_t first, int64_t step, int64_t row_step) {
    const struct msc_array *a = msc_dataset_batch(data, b, input);
    assert_int_equal(msc_array_dtype(a), dtype);
    assert_int_equal(msc_array_n_dims(a), 2);
    assert_int_equal(msc_array_dim(a, 0), n);
    assert_int_equal(msc_array_dim(a, 1), length);
    for (int64_t i = 0; i < n * length; i++) {
        assert_int_equal(msc_array_get_i64(a, i),
                         first + i / length * row_step + i % length * step);
    }
}

// Checks the inputs that follow from ids [n, length] in a batch.
static void check_made(const struct msc_dataset *data, size_t b, int64_t n, int64_t length) {
    check_rows(data, b, MASK, MSC_DTYPE_I64, n, length, 1, 0, 0);
    check_rows(data, b, POSITIONS, MSC_DTYPE_I32, n, length, 0, 1, 0);
    check_rows(data, b, TYPES, MSC_DTYPE_I64, n, length, 0, 0, 0);
    const struct msc_array *past = msc_dataset_batch(data, b, PAST);
    const int64_t dims[4] = {n, 2, 0, 8};
    assert_int_equal(msc_array_n_dims(past), 4);
    assert_memory_equal(msc_array_dims(past), dims, sizeof dims);
}

static void test_data_tokens__rows(void **state) {
    char path[PATH_BYTES];
    struct msc_dataset_options o = save_ids(path, state, 2, (const int64_t[]){6, 4});
    o.batch = 4;
    struct msc_dataset *data = load(&o, N_INPUTS);
    assert_int_equal(msc_dataset_n_samples(data), 6);
    check_rows(data, 1, IDS, MSC_DTYPE_I64, 2, 4, 5 + 16, 1, 4);
    check_made(data, 1, 2, 4);
    msc_dataset_destroy(data);
}

// The last two of the 14 ids do not fill a sample.
static void test_data_tokens__text(void **state) {
    char path[PATH_BYTES];
    struct msc_dataset_options o = save_ids(path, state, 1, (const int64_t[]){14});
    struct msc_dataset *data = NULL;
    o.batch = 8;
    test_fails(msc_dataset_load(&data, &o, specs, N_INPUTS), MSC_E_INVALID, path, "14 token ids",
               "--sequence", NULL);
    o.sequence = 15;
    test_fails(msc_dataset_load(&data, &o, specs, N_INPUTS), MSC_E_INVALID, path, "has 15", NULL);
    o.sequence = 4;
    data = load(&o, N_INPUTS);
    assert_int_equal(msc_dataset_n_samples(data), 3);
    check_rows(data, 0, IDS, MSC_DTYPE_I64, 3, 4, 5, 1, 4);
    check_made(data, 0, 3, 4);
    msc_dataset_destroy(data);
    // The model's own length.
    struct msc_input_spec fixed = specs[IDS];
    fixed.dims[1] = 7;
    o.sequence = 0;
    assert_int_equal(msc_dataset_load(&data, &o, &fixed, 1), MSC_OK);
    check_rows(data, 0, 0, MSC_DTYPE_I64, 2, 7, 5, 1, 7);
    msc_dataset_destroy(data);
}

static void test_data_tokens__lines(void **state) {
    char path[PATH_BYTES];
    struct msc_dataset_options o = save_lines(
        path, state, "[5, 6, 7]\n\n{\"ids\": [8, 9, 10]}\n{\"input_ids\": [11, 12, 13]}");
    o.batch = 8;
    struct msc_dataset *data = load(&o, N_INPUTS);
    check_rows(data, 0, IDS, MSC_DTYPE_I64, 3, 3, 5, 1, 3);
    check_made(data, 0, 3, 3);
    msc_dataset_destroy(data);
    o.sequence = 4;
    data = load(&o, 1);
    check_rows(data, 0, IDS, MSC_DTYPE_I64, 2, 4, 5, 1, 4);
    msc_dataset_destroy(data);
}

static void test_data_tokens__lines_of_different_lengths(void **state) {
    char path[PATH_BYTES];
    struct msc_dataset_options o = save_lines(path, state, "[5, 6, 7]\n[8, 9]\n");
    struct msc_dataset *data = load(&o, N_INPUTS);
    assert_int_equal(msc_dataset_n_batches(data), 2);
    check_rows(data, 0, IDS, MSC_DTYPE_I64, 1, 3, 5, 1, 0);
    check_rows(data, 1, IDS, MSC_DTYPE_I64, 1, 2, 8, 1, 0);
    check_made(data, 1, 1, 2);
    msc_dataset_destroy(data);
}

static void test_data_tokens__lines_that_are_wrong(void **state) {
    static const char *const texts[] = {"[1]\n[1, -2]", "[1]\n[1.5]", "[1]\n{\"text\": [1]}",
                                        "[1]\n\"1\"", "[1]\n[1"};
    char path[PATH_BYTES];
    struct msc_dataset *data = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct msc_dataset_options o = save_lines(path, state, texts[i]);
        test_fails(msc_dataset_load(&data, &o, specs, 1), MSC_E_FORMAT, path, "line 2", NULL);
    }
    struct msc_dataset_options o = save_lines(path, state, "\n");
    test_fails(msc_dataset_load(&data, &o, specs, 1), MSC_E_INVALID, path, "no token ids", NULL);
    const struct msc_input_spec images = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true};
    test_fails(msc_dataset_load(&data, &o, &images, 1), MSC_E_INVALID, path, "one input of ids",
               NULL);
}

// Ids of a sample, across batches, in a part as well.
static void test_data_tokens__next(void **state) {
    char path[PATH_BYTES];
    struct msc_dataset *part = NULL;
    struct msc_dataset_options o = save_ids(path, state, 2, (const int64_t[]){5, 4});
    o.batch = 2;
    struct msc_dataset *data = load(&o, N_INPUTS);
    assert_false(msc_dataset_has_next(data));
    msc_dataset_destroy(data);
    o.labels = MSC_LABELS_NEXT;
    data = load(&o, N_INPUTS);
    assert_true(msc_dataset_has_next(data));
    assert_false(msc_dataset_has_labels(data));
    assert_int_equal(msc_dataset_n_tokens(data, 4), 4);
    assert_int_equal(msc_dataset_token(data, 3, 2), 5 + 3 * 4 + 2);
    assert_int_equal(msc_dataset_create_part(&part, data, 2, 3), MSC_OK);
    assert_int_equal(msc_dataset_token(part, 2, 1), 5 + 4 * 4 + 1);
    msc_dataset_destroy(part);
    msc_dataset_destroy(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_tokens__rows),
        cmocka_unit_test(test_data_tokens__text),
        cmocka_unit_test(test_data_tokens__lines),
        cmocka_unit_test(test_data_tokens__lines_of_different_lengths),
        cmocka_unit_test(test_data_tokens__lines_that_are_wrong),
        cmocka_unit_test(test_data_tokens__next),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
