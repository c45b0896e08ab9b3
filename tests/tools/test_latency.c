// Quartiles of measured rounds. Expected values are numpy's:
//
//     python3 -c "import numpy as n; t = n.array([[5, 1, 4, 2, 8, 3], [2, 2, 2, 3, 4, 9]])
//     for x in (*t, t[1] / t[0], [7], [1, 2]): print(*n.percentile(x, [25, 50, 75]))"
#include "tools/latency.h"

#include "tests/msc_test.h"

#include <math.h>

static void check_quartiles(struct msc_quartiles found, double lower, double median, double upper) {
    assert_true(fabs(found.lower - lower) < 1e-12);
    assert_true(fabs(found.median - median) < 1e-12);
    assert_true(fabs(found.upper - upper) < 1e-12);
}

static void test_tools_latency__quartiles(void **state) {
    (void)state;
    static const double us[] = {5, 1, 4, 2, 8, 3, 2, 2, 2, 3, 4, 9};
    struct msc_latency latency = {0};
    struct msc_quartiles q;
    assert_ok(msc_latency_init(&latency, 2, 6));
    memcpy(latency.us, us, sizeof us);
    assert_ok(msc_latency_quartiles(&q, &latency, 0));
    check_quartiles(q, 2.25, 3.5, 4.75);
    assert_ok(msc_latency_quartiles(&q, &latency, 1));
    check_quartiles(q, 2, 2.5, 3.75);
    assert_ok(msc_latency_ratios(&q, &latency, 1, 0));
    check_quartiles(q, 0.5, 1, 1.875);
    assert_ok(msc_latency_ratios(&q, &latency, 0, 0));
    check_quartiles(q, 1, 1, 1);
    assert_memory_equal(latency.us, us, sizeof us); // the rounds are not sorted in place
    msc_latency_finish(&latency);
    assert_null(latency.us);
}

static void test_tools_latency__few(void **state) {
    (void)state;
    double one[] = {7};
    double two[] = {2, 1};
    check_quartiles(msc_quartiles_of(one, 1), 7, 7, 7);
    check_quartiles(msc_quartiles_of(two, 2), 1.25, 1.5, 1.75);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_latency__quartiles),
        cmocka_unit_test(test_tools_latency__few),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
