// Encoding of weights in blocks of GGUF, and the importance files of llama.cpp. Rows, errors of
// other encoders and files come from tests/data/files/make_gguf.py.
#include "data/npy.h"
#include "tests/msc_test.h"
#include "tools/block_fit.h"
#include "tools/importance.h"

#include <math.h>
#include <stdio.h>

#define FILES MSC_TESTS_FOLDER "/data/files/"

enum { ROWS = 8, COLUMNS = 256 };

struct rows {
    struct msc_array_list list;
    const float *x;
};

static void load_rows(struct rows *r) {
    r->list = (struct msc_array_list){0};
    assert_ok(msc_npz_load(&r->list, FILES "gguf_blocks.npz"));
    r->x = msc_array_data(msc_array_list_find(&r->list, "rows"));
}

// Mean squared error of encoded rows with weights, relative to the rows' mean square.
static double error_of(const uint8_t bytes[], const float x[], int64_t n_rows, const float w[],
                       const struct msc_gguf_block_type *type) {
    float y[ROWS * COLUMNS];
    double error = 0, all = 0;
    msc_gguf_decode(y, bytes, n_rows * COLUMNS / type->n, type);
    for (int64_t i = 0; i < n_rows * COLUMNS; i++) {
        double by = w ? (double)w[i % COLUMNS] : 1;
        error += by * ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
        all += by * (double)x[i] * (double)x[i];
    }
    return all > 0 ? error / all : error;
}

static void test_tools_block_fit__errors(void **state) {
    uint8_t bytes[ROWS * COLUMNS * 2];
    const struct msc_gguf_block_type *type;
    struct rows r;
    (void)state;
    load_rows(&r);
    for (int i = 0; (type = msc_gguf_block_type_at(i)) != NULL; i++) {
        char name[32];
        msc_block_fit_rows(bytes, r.x, ROWS, COLUMNS, NULL, type);
        double error = error_of(bytes, r.x, ROWS, NULL, type);
        snprintf(name, sizeof(name), "%s/error", type->name);
        const struct msc_array *other = msc_array_list_find(&r.list, name);
        // Steps of a uniform quantiser over a range of six deviations: (6 / 2^bits)^2 / 12, and
        // some more for the integers of large blocks.
        double uniform = 3 / pow(4, type->bits);
        assert_true(error > 0 && error < 1.5 * uniform);
        assert_true(other || type->n == 256);
        assert_true(!other || error < msc_array_get_double(other, 0));
    }
    msc_array_list_finish(&r.list);
}

// Rows of one value, of zeros, and of numbers that a block can hold.
static void test_tools_block_fit__exact(void **state) {
    uint8_t bytes[COLUMNS * 2];
    float x[COLUMNS], y[COLUMNS];
    const struct msc_gguf_block_type *type;
    (void)state;
    for (int i = 0; (type = msc_gguf_block_type_at(i)) != NULL; i++) {
        for (int k = 0; k < COLUMNS; k++) {
            x[k] = 0;
        }
        msc_block_fit_rows(bytes, x, 1, COLUMNS, NULL, type);
        msc_gguf_decode(y, bytes, COLUMNS / type->n, type);
        assert_memory_equal(x, y, sizeof(x));
        // Every code of the type, with a scale of 1/4 and, with minimums, an offset of half of
        // them.
        int n_codes = 1 << type->bits, zero = type->has_minimums ? n_codes / 2 : type->zero;
        for (int k = 0; k < COLUMNS; k++) {
            int code = k % type->n_in_part * n_codes / type->n_in_part;
            x[k] = (float)(code - zero) / 4;
        }
        msc_block_fit_rows(bytes, x, 1, COLUMNS, NULL, type);
        assert_true(error_of(bytes, x, 1, NULL, type) < 1e-6);
    }
}

static void test_tools_block_fit__importance(void **state) {
    uint8_t plain[ROWS * COLUMNS * 2], weighted[ROWS * COLUMNS * 2];
    float w[COLUMNS], none[COLUMNS] = {0};
    const struct msc_gguf_block_type *type;
    struct rows r;
    (void)state;
    load_rows(&r);
    for (int k = 0; k < COLUMNS; k++) {
        w[k] = k % 5 == 0 ? 10 : 0.1F;
    }
    for (int i = 0; (type = msc_gguf_block_type_at(i)) != NULL; i++) {
        size_t n_bytes = (size_t)(ROWS * COLUMNS / type->n * type->n_bytes);
        msc_block_fit_rows(plain, r.x, ROWS, COLUMNS, NULL, type);
        msc_block_fit_rows(weighted, r.x, ROWS, COLUMNS, w, type);
        assert_true(error_of(weighted, r.x, ROWS, w, type) < error_of(plain, r.x, ROWS, w, type));
        // Inputs that are always 0 leave the rows as they are fitted without importance.
        msc_block_fit_rows(weighted, r.x, ROWS, COLUMNS, none, type);
        assert_memory_equal(weighted, plain, n_bytes);
    }
    msc_array_list_finish(&r.list);
}

static void test_tools_block_fit__importance_files(void **state) {
    static const char *const paths[] = {FILES "importance.gguf", FILES "importance.dat"};
    struct msc_array_list expected = {0};
    (void)state;
    assert_ok(msc_npz_load(&expected, FILES "importance.npz"));
    for (int i = 0; i < 2; i++) {
        struct msc_array_list found = {0};
        assert_ok(msc_importance_load(&found, paths[i]));
        assert_int_equal(found.n, expected.n);
        for (size_t k = 0; k < expected.n; k++) {
            const struct msc_array *x = msc_array_list_find(&found, expected.names[k]);
            assert_non_null(x);
            assert_int_equal(msc_array_n_elements(x), msc_array_n_elements(expected.arrays[k]));
            assert_memory_equal(msc_array_data(x), msc_array_data(expected.arrays[k]),
                                msc_array_n_bytes(x));
        }
        msc_array_list_finish(&found);
    }
    msc_array_list_finish(&expected);
}

static void test_tools_block_fit__bad_importance_files(void **state) {
    struct msc_array_list found = {0};
    (void)state;
    assert_int_equal(msc_importance_load(&found, FILES "small.gguf"), MSC_E_FORMAT);
    assert_message("small.gguf: general.type is \"\", expected \"imatrix\"");
    assert_int_equal(msc_importance_load(&found, FILES "float32.npy"), MSC_E_FORMAT);
    assert_message("float32.npy: byte 0");
    assert_int_equal(msc_importance_load(&found, FILES "no.dat"), MSC_E_NOT_FOUND);
    assert_int_equal(found.n, 0);
    msc_array_list_finish(&found);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_block_fit__errors),
        cmocka_unit_test(test_tools_block_fit__exact),
        cmocka_unit_test(test_tools_block_fit__importance),
        cmocka_unit_test(test_tools_block_fit__importance_files),
        cmocka_unit_test(test_tools_block_fit__bad_importance_files),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
