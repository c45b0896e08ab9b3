// Sparse weights: which elements are kept, n:m patterns, repair of the kept elements, and counts.
// make_sparsity.py prints the expected values, except for the counts.
#include "tools/sparsity.h"

#include "tests/msc_test.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <string.h>

// Two kernel positions of five input channels: an n:4 pattern covers four of them, and the fifth
// is kept.
enum { ROWS = 6, COLUMNS = 10, SAMPLES = 40, RUN = 5 };

// Kept elements, and the error of the outputs after repair, printed by make_sparsity.py.
static const struct {
    enum msc_criterion criterion;
    bool has_pattern;
    const char *kept[ROWS];
    double error;
} expected[] = {
    {MSC_CRITERION_L2,
     false,
     {"....x..xxx", "..x.x....x", "xx...x.xxx", ".....xxxx.", "x.x...x.xx", "...x.x.xxx"},
     0.396443402},
    {MSC_CRITERION_ENERGY,
     false,
     {"....x..xxx", "..x.xx...x", ".x...x.xxx", ".....xxxxx", "..x...x.xx", "...x.x.xxx"},
     0.43247567},
    {MSC_CRITERION_HESSIAN,
     false,
     {"....x..xxx", "x.........", "xx...x.xxx", ".....xxxxx", "x.x...x.xx", ".x.x.x.xxx"},
     0.403487554},
    {MSC_CRITERION_L2,
     true,
     {"..xxx..xxx", "x.x.xx..xx", "xx..x..xxx", "x.x.x..xxx", "x.x.x.x.xx", ".x.xxx.x.x"},
     0.399205163},
    {MSC_CRITERION_ENERGY,
     true,
     {"..xxx..xxx", "..xxxx..xx", "xx..x..xxx", "x.x.x.x.xx", "x.x.x.x.xx", ".x.xxx.x.x"},
     0.443626876},
    {MSC_CRITERION_HESSIAN,
     true,
     {"..xxx..xxx", "x.x.xx..xx", "xx..x..xxx", "xx..x..xxx", "x.x.x.x.xx", ".x.xxx..xx"},
     0.367968038},
};
enum { N_EXPECTED = sizeof(expected) / sizeof(expected[0]) };

static const struct msc_sparsity some = {.share = 0.55}, half = {.share = 0.5, .n = 2, .m = 4};

// The same numbers as `numbers` in make_rounding.py.
static void fill(double out[], int64_t n, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (double)((float)((int32_t)(state >> 48) - 32768) / 32768.0f);
    }
}

struct problem {
    double whole[ROWS * COLUMNS], w[ROWS * COLUMNS], c[COLUMNS * COLUMNS];
    bool is_kept[ROWS * COLUMNS];
    struct msc_sparse_rows rows;
};

static void problem_init(struct problem *p) {
    double x[SAMPLES * COLUMNS];
    *p = (struct problem){.whole = {0}};
    fill(p->whole, ROWS * COLUMNS, 1);
    memcpy(p->w, p->whole, sizeof p->w);
    fill(x, SAMPLES * COLUMNS, 2);
    for (int i = 0; i < SAMPLES * COLUMNS; i++) {
        x[i] += i % COLUMNS > 0 ? 0.8 * x[i - 1] : 0;
    }
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < COLUMNS * COLUMNS; i++) {
            p->c[i] += x[s * COLUMNS + i / COLUMNS] * x[s * COLUMNS + i % COLUMNS] / SAMPLES;
        }
    }
    p->rows = (struct msc_sparse_rows){.n_rows = ROWS,
                                       .n_columns = COLUMNS,
                                       .run = RUN,
                                       .w = p->w,
                                       .c = p->c,
                                       .is_kept = p->is_kept};
}

// Sum of the squared errors of the outputs: tr((w - whole) C (w - whole)') with the second moment
// C.
static double error_of(const struct problem *p) {
    double sum = 0;
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLUMNS * COLUMNS; i++) {
            int a = row * COLUMNS + i / COLUMNS, b = row * COLUMNS + i % COLUMNS;
            sum += (p->w[a] - p->whole[a]) * p->c[i] * (p->w[b] - p->whole[b]);
        }
    }
    return sum;
}

static void test_tools_sparsity__as_expected(void **state) {
    (void)state;
    for (int e = 0; e < N_EXPECTED; e++) {
        struct problem p;
        problem_init(&p);
        const struct msc_sparsity *s = expected[e].has_pattern ? &half : &some;
        assert_ok(msc_sparse_rows_choose(&p.rows, s, expected[e].criterion));
        assert_memory_equal(p.w, p.whole, sizeof p.w);
        int64_t n_kept = 0;
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            n_kept += p.is_kept[i];
            assert_int_equal(p.is_kept[i], expected[e].kept[i / COLUMNS][i % COLUMNS] == 'x');
        }
        assert_int_equal(n_kept, msc_sparsity_count(s, ROWS, COLUMNS, RUN));
        assert_ok(msc_sparse_rows_repair(&p.rows));
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            assert_true((p.w[i] != 0) == p.is_kept[i]);
        }
        double error = error_of(&p);
        if (fabs(error - expected[e].error) > 1e-6 * expected[e].error) {
            fail_msg("%d: %.9g, expected %.9g", e, error, expected[e].error);
        }
    }
}

static void test_tools_sparsity__masks(void **state) {
    struct problem p;
    (void)state;
    problem_init(&p);
    p.rows.c = NULL; // magnitudes need no second moment
    assert_ok(msc_sparse_rows_choose(&p.rows, &half, MSC_CRITERION_L1));
    msc_sparse_rows_mask(&p.rows);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        assert_true(p.w[i] == (p.is_kept[i] ? p.whole[i] : 0));
    }
}

// Expected counts are worked out by hand. In a run of 7 neighbours, the pattern 2:4 keeps two of
// the first four and two of the remaining three.
static void test_tools_sparsity__counts(void **state) {
    const struct msc_sparsity whole = {.share = 0}, two = {.share = 0.5, .n = 2, .m = 4},
                              one = {.share = 0.875, .n = 1, .m = 8};
    (void)state;
    assert_int_equal(msc_sparsity_count(&two, 3, 14, 7), 3 * 2 * 4);
    assert_int_equal(msc_sparsity_count(&two, 3, 9, 1), 3 * 9);
    assert_int_equal(msc_sparsity_count(&some, 3, 5, 5), 15 - 8);
    assert_int_equal(msc_sparsity_count(&whole, 3, 5, 5), 15);
    assert_true(msc_sparsity_bytes(&whole, 15, 15, 4) == 60);
    assert_true(msc_sparsity_bytes(&some, 7, 15, 4) == 28 + 2);
    assert_true(msc_sparsity_bytes(&two, 24, 42, 4) == 96 + 6);
    assert_true(msc_sparsity_bytes(&one, 8, 64, 4) == 32 + 3);
    assert_true(msc_sparsity_bytes(&one, 8, 64, 2) == 16 + 3); // float16
}

// An input that is always 0 makes the second moment singular.
static void test_tools_sparsity__not_definite(void **state) {
    struct problem p;
    (void)state;
    problem_init(&p);
    for (int i = 0; i < COLUMNS; i++) {
        p.c[i * COLUMNS + 3] = p.c[3 * COLUMNS + i] = 0;
    }
    assert_int_equal(msc_sparse_rows_choose(&p.rows, &some, MSC_CRITERION_HESSIAN), MSC_E_INVALID);
    assert_ok(msc_sparse_rows_choose(&p.rows, &some, MSC_CRITERION_ENERGY));
    for (int row = 0; row < ROWS; row++) {
        assert_false(p.is_kept[row * COLUMNS + 3]);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_sparsity__as_expected),
        cmocka_unit_test(test_tools_sparsity__masks),
        cmocka_unit_test(test_tools_sparsity__counts),
        cmocka_unit_test(test_tools_sparsity__not_definite),
    };
    msc_test_select(argc, argv);
    msc_linear_algebra_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
