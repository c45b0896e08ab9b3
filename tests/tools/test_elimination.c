// Elimination of input units of a layer: the scores of units, and the repair of the remaining
// weights. make_elimination.py prints the expected values.
#include "tools/elimination.h"

#include "tests/msc_test.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <stdlib.h>

// Unit u has the columns u, u + STEP, u + 2 STEP, .... The test removes more columns in all than
// one update of the inverse handles.
enum { ROWS = 3, COLUMNS = 360, SAMPLES = 600, UNITS = 37, STEP = 40, EACH = COLUMNS / STEP };

// Scores of units 7 and 12 at first and after each of three eliminations.
static const double expected[4][2] = {
    {0.739826835724, 0.70001250773},
    {0.814493956041, 0.739095075653},
    {0.986390424124, 0.942309609367},
    {21.8311538565, 41.7970342774},
};

// The same numbers as `numbers` in make_rounding.py.
static void fill(float out[], int64_t n, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (float)((int32_t)(state >> 48) - 32768) / 32768.0f;
    }
}

struct problem {
    float w[ROWS * COLUMNS], numbers[SAMPLES * COLUMNS];
    double x[SAMPLES * COLUMNS], c[COLUMNS * COLUMNS];
    int64_t columns[UNITS * EACH], first[UNITS + 1];
};

static void problem_init(struct problem *p) {
    fill(p->w, ROWS * COLUMNS, 1);
    fill(p->numbers, SAMPLES * COLUMNS, 2);
    memset(p->c, 0, sizeof p->c);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < COLUMNS; k++) {
            int at = i * COLUMNS + k;
            p->x[at] = (double)p->numbers[at] + (k > 0 ? 0.8 * p->x[at - 1] : 0);
        }
    }
    for (int s = 0; s < SAMPLES; s++) {
        const double *x = p->x + s * COLUMNS;
        for (int i = 0; i < COLUMNS * COLUMNS; i++) {
            p->c[i] += x[i / COLUMNS] * x[i % COLUMNS] / SAMPLES;
        }
    }
    for (int u = 0; u < UNITS; u++) {
        p->first[u] = u * EACH;
        for (int i = 0; i < EACH; i++) {
            p->columns[u * EACH + i] = u + i * STEP;
        }
    }
    p->first[UNITS] = UNITS * EACH;
}

static struct msc_eliminated eliminated_of(struct problem *p) {
    return (struct msc_eliminated){.n_rows = ROWS,
                                   .n_columns = COLUMNS,
                                   .w = p->w,
                                   .c = p->c,
                                   .n_units = UNITS,
                                   .columns = p->columns,
                                   .first = p->first};
}

static void check_scores(const struct msc_elimination *e, const double of[2]) {
    static const int32_t units[] = {7, 12};
    for (int i = 0; i < 2; i++) {
        double score;
        assert_ok(msc_elimination_score(&score, e, units[i]));
        if (fabs(score - of[i]) > 1e-7 * of[i]) {
            fail_msg("unit %d: %.12g, expected %.12g", (int)units[i], score, of[i]);
        }
    }
}

static void test_tools_elimination__scores(void **state) {
    static const int32_t one[] = {5}, three[] = {1, 20, 36};
    struct problem *p = malloc(sizeof(*p));
    struct msc_elimination *e;
    int32_t many[UNITS], n = 0;
    (void)state;
    assert_non_null(p);
    problem_init(p);
    const struct msc_eliminated of = eliminated_of(p);
    assert_ok(msc_elimination_create(&e, &of));
    check_scores(e, expected[0]);
    assert_ok(msc_elimination_remove(e, one, 1));
    check_scores(e, expected[1]);
    assert_ok(msc_elimination_remove(e, three, 3));
    check_scores(e, expected[2]);
    for (int32_t u = 0; u < UNITS; u++) {
        if (u != 1 && u != 5 && u != 7 && u != 12 && u != 20 && u != 36) {
            many[n++] = u;
        }
    }
    assert_ok(msc_elimination_remove(e, many, n));
    check_scores(e, expected[3]);
    msc_elimination_destroy(e);
    free(p);
}

// If an input is always 0, the second moment has no inverse.
static void test_tools_elimination__not_definite(void **state) {
    struct problem *p = malloc(sizeof(*p));
    struct msc_elimination *e;
    (void)state;
    assert_non_null(p);
    problem_init(p);
    for (int i = 0; i < COLUMNS; i++) {
        p->c[i * COLUMNS + 9] = p->c[9 * COLUMNS + i] = 0;
    }
    const struct msc_eliminated of = eliminated_of(p);
    assert_int_equal(msc_elimination_create(&e, &of), MSC_E_INVALID);
    assert_message("not positive definite");
    free(p);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_elimination__scores),
        cmocka_unit_test(test_tools_elimination__not_definite),
    };
    msc_test_select(argc, argv);
    msc_linear_algebra_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
