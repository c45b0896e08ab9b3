// Rows held back from second moments, the moment of the others, and the error on them. Expected
// values are plain sums over rows.
#include "tools/held_back.h"

#include "base/alloc.h"
#include "quantize_case.h"

#include <math.h>
#include <string.h>

enum { ROWS = 24, HELD = 8, COLUMNS = 5, OUTPUTS = 3, GROUPS = 2, CHANNELS = 2 * OUTPUTS };

// The moment of rows [GROUPS, ROWS, COLUMNS], of which the last `n_held` are held back.
static struct msc_moment moment_of(const float rows[], int64_t n_rows, int64_t n_held,
                                   int64_t block) {
    struct msc_moment m = {.n_groups = GROUPS,
                           .n_columns = COLUMNS,
                           .n_rows = n_rows,
                           .n_held = n_held,
                           .block_columns = block};
    int64_t n_products = GROUPS * msc_moment_n_products(COLUMNS, block);
    m.h = msc_alloc_zero((size_t)n_products, sizeof(m.h[0]));
    m.means = msc_alloc_zero((size_t)GROUPS * COLUMNS, sizeof(m.means[0]));
    m.held = msc_alloc((size_t)(GROUPS * n_held * COLUMNS) * sizeof(m.held[0]) + 1);
    assert_true(m.h && m.means && m.held);
    float *h = m.h;
    for (int64_t g = 0; g < GROUPS; g++) {
        const float *x = rows + g * ROWS * COLUMNS;
        memcpy(m.held + g * n_held * COLUMNS, x + (n_rows - n_held) * COLUMNS,
               (size_t)(n_held * COLUMNS) * sizeof(x[0]));
        for (int64_t i = 0; i < n_rows * COLUMNS; i++) {
            m.means[g * COLUMNS + i % COLUMNS] += (double)x[i] / (double)n_rows;
        }
        for (int64_t first = 0; first < COLUMNS; first += block) {
            int64_t end = first + block < COLUMNS ? first + block : COLUMNS;
            for (int64_t at = 0; at < (end - first) * (end - first); at++) {
                int64_t k = first + at / (end - first), l = first + at % (end - first);
                double sum = 0;
                for (int64_t i = 0; i < n_rows; i++) {
                    sum += (double)x[i * COLUMNS + k] * (double)x[i * COLUMNS + l];
                }
                *h++ = (float)(sum / (double)n_rows);
            }
        }
    }
    return m;
}

static float *make_rows(struct msc_array **owner) {
    *owner = quantize_array(3, (const int64_t[]){GROUPS, ROWS, COLUMNS}, 5);
    return msc_array_data(*owner);
}

static void check_without(int64_t block) {
    struct msc_array *owner;
    const float *rows = make_rows(&owner);
    struct msc_moment all = moment_of(rows, ROWS, HELD, block), found;
    struct msc_moment expected = moment_of(rows, ROWS - HELD, 0, block);
    assert_ok(msc_moment_without_held(&found, &all));
    assert_int_equal(found.n_rows, ROWS - HELD);
    assert_int_equal(found.n_held, 0);
    for (int64_t i = 0; i < GROUPS * msc_moment_n_products(COLUMNS, block); i++) {
        assert_true(fabsf(found.h[i] - expected.h[i]) < 1e-5F);
    }
    for (int64_t i = 0; i < GROUPS * COLUMNS; i++) {
        assert_true(fabs(found.means[i] - expected.means[i]) < 1e-6);
    }
    msc_moment_finish(&found);
    msc_moment_finish(&expected);
    msc_moment_finish(&all);
    msc_array_release(owner);
}

static void test_tools_held_back__moment_without(void **state) {
    (void)state;
    check_without(COLUMNS);
    check_without(2);
}

// A column that is not zero only in rows held back has no moment without them.
static void test_tools_held_back__column_of_held_rows(void **state) {
    struct msc_array *owner;
    float *rows = make_rows(&owner);
    struct msc_moment found;
    (void)state;
    for (int64_t i = 0; i < ROWS - HELD; i++) {
        rows[i * COLUMNS + 1] = 0;
    }
    struct msc_moment all = moment_of(rows, ROWS, HELD, COLUMNS);
    assert_ok(msc_moment_without_held(&found, &all));
    for (int64_t k = 0; k < COLUMNS; k++) {
        assert_true(found.h[COLUMNS + k] == 0 && found.h[k * COLUMNS + 1] == 0);
    }
    msc_moment_finish(&found);
    msc_moment_finish(&all);
    msc_array_release(owner);
}

static void test_tools_held_back__no_moment_without_all(void **state) {
    struct msc_array *owner;
    const float *rows = make_rows(&owner);
    struct msc_moment all = moment_of(rows, HELD, HELD, COLUMNS);
    struct msc_moment none = moment_of(rows, ROWS, 0, COLUMNS), found;
    (void)state;
    assert_ok(msc_moment_without_held(&found, &all));
    assert_null(found.means);
    assert_ok(msc_moment_without_held(&found, &none));
    assert_null(found.means);
    msc_moment_finish(&all);
    msc_moment_finish(&none);
    msc_array_release(owner);
}

static void test_tools_held_back__moments_added(void **state) {
    struct msc_array *owner;
    const float *rows = make_rows(&owner);
    struct msc_moment sum = moment_of(rows, ROWS - 1, HELD, COLUMNS);
    struct msc_moment m = moment_of(rows, ROWS, 3, COLUMNS);
    bool is_added;
    (void)state;
    assert_ok(msc_moment_add(&is_added, &sum, &m));
    assert_true(is_added);
    assert_int_equal(sum.n_held, HELD + 3);
    for (int64_t g = 0; g < GROUPS; g++) {
        const float *x = rows + g * ROWS * COLUMNS, *held = sum.held + g * (HELD + 3) * COLUMNS;
        assert_memory_equal(held, x + (ROWS - 1 - HELD) * COLUMNS, HELD * COLUMNS * sizeof(x[0]));
        assert_memory_equal(held + HELD * COLUMNS, x + (ROWS - 3) * COLUMNS,
                            3 * COLUMNS * sizeof(x[0]));
    }
    msc_moment_finish(&sum);
    msc_moment_finish(&m);
    msc_array_release(owner);
}

// One scale for all elements, integers by rounding to nearest, and shifts.
static void test_tools_held_back__error(void **state) {
    struct msc_array *owner, *w = quantize_array(4, (const int64_t[]){CHANNELS, COLUMNS, 1, 1}, 9);
    const float *rows = make_rows(&owner), *weights = msc_array_data(w), scale = 0.4F;
    const float shifts[CHANNELS] = {0.1F, -0.2F, 0.3F, 0, 0.5F, -0.1F};
    const int32_t zero = 0;
    const int64_t n_channels = CHANNELS;
    struct msc_array *of_shifts;
    struct msc_arena arena = {0};
    struct msc_weight_rows r;
    struct msc_moment m = moment_of(rows, ROWS, HELD, COLUMNS);
    struct msc_tensor t = {.name = "w", .n_dims = 4, .dims = {CHANNELS, COLUMNS, 1, 1}, .data = w};
    const struct msc_slot slot = {.channel_axis = 0};
    double found, by_threads, expected = 0;
    (void)state;
    assert_ok(msc_array_create_from(&of_shifts, MSC_DTYPE_F32, 1, &n_channels, shifts));
    struct msc_quant q = {.bits = 4, .low = -7, .high = 7, .axis = -1, .n = 1};
    q.scales = &scale;
    q.zero_points = &zero;
    q.shifts = of_shifts;
    msc_quant_seal(&q);
    assert_ok(msc_weight_rows_init(&r, &t, &slot, &m, &arena));
    assert_ok(msc_held_back_error(&found, &r, &m, &q, 1));
    assert_ok(msc_held_back_error(&by_threads, &r, &m, &q, 3));
    assert_true(found == by_threads);
    for (int64_t i = 0; i < HELD * CHANNELS; i++) {
        int64_t channel = i % CHANNELS, row = ROWS - HELD + i / CHANNELS;
        const float *x = rows + (channel / OUTPUTS * ROWS + row) * COLUMNS;
        double off = (double)shifts[channel];
        for (int64_t k = 0; k < COLUMNS; k++) {
            double element = (double)weights[channel * COLUMNS + k];
            double rounded = fmax(-7, fmin(7, rint(element / (double)scale))) * (double)scale;
            off += (rounded - element) * (double)x[k];
        }
        expected += off * off;
    }
    assert_true(fabs(found / expected - 1) < 1e-5);
    msc_moment_finish(&m);
    msc_arena_finish(&arena);
    msc_array_release(of_shifts);
    msc_array_release(owner);
    msc_array_release(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_held_back__moment_without),
        cmocka_unit_test(test_tools_held_back__column_of_held_rows),
        cmocka_unit_test(test_tools_held_back__no_moment_without_all),
        cmocka_unit_test(test_tools_held_back__moments_added),
        cmocka_unit_test(test_tools_held_back__error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
