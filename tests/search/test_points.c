// The hash table of points that a search has tried. Points that the test added must be found, and
// others must not.
#include "../msc_test.h"
#include "search/points.h"

#define N 5000

static void test_search_points__set_and_find(void **state) {
    (void)state;
    struct msc_points points = {0};
    uint32_t choices[3] = {0};
    assert_int_equal(msc_points_find(&points, msc_point_hash(choices, 3)), -1);
    for (uint32_t i = 0; i < N; i++) {
        choices[0] = i;
        choices[2] = i / 7;
        assert_ok(msc_points_set(&points, msc_point_hash(choices, 3), i));
    }
    assert_int_equal(points.n, N);
    for (uint32_t i = 0; i < 2 * N; i++) {
        choices[0] = i;
        choices[2] = i / 7;
        assert_int_equal(msc_points_find(&points, msc_point_hash(choices, 3)), i < N ? (int)i : -1);
    }
    choices[0] = 3;
    choices[2] = 0;
    assert_ok(msc_points_set(&points, msc_point_hash(choices, 3), 99));
    assert_int_equal(points.n, N);
    assert_int_equal(msc_points_find(&points, msc_point_hash(choices, 3)), 99);
    assert_int_equal(points.n_settled, 0);
    for (int i = 0; i < 2; i++) {
        msc_points_settle(&points, msc_point_hash(choices, 3));
        assert_int_equal(points.n_settled, 1);
    }
    // The point remains settled when it is set again and when the table grows.
    assert_ok(msc_points_set(&points, msc_point_hash(choices, 3), 100));
    for (uint32_t i = N; i < 4 * N; i++) {
        const uint32_t other[] = {i, 0, 0};
        assert_ok(msc_points_set(&points, msc_point_hash(other, 3), i));
    }
    msc_points_settle(&points, msc_point_hash(choices, 3));
    assert_int_equal(points.n_settled, 1);
    msc_points_finish(&points);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_search_points__set_and_find)};
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
