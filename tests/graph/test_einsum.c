// Parsing of Einsum equations. Expected axes follow numpy's rules.
#include "graph/einsum.h"

#include "tests/msc_test.h"

static void check_axes(const int axes[], int n, const int expected[]) {
    for (int i = 0; i < n; i++) {
        assert_int_equal(axes[i], expected[i]);
    }
}

static void test_graph_einsum__explicit(void **state) {
    (void)state;
    struct msc_einsum e;
    assert_null(msc_einsum_parse(&e, "bij, bjk -> bik", 2, (const int[]){3, 3}));
    assert_int_equal(e.n_output_axes, 3);
    assert_int_equal(e.n_axes, 4);
    check_axes(e.axes[0], 3, (const int[]){0, 1, 3});
    check_axes(e.axes[1], 3, (const int[]){0, 3, 2});
}

// Without an arrow the output has the letters that occur once, in alphabetical order (numpy's
// rule).
static void test_graph_einsum__implicit(void **state) {
    (void)state;
    struct msc_einsum e;
    assert_null(msc_einsum_parse(&e, "kj,ji", 2, (const int[]){2, 2}));
    assert_int_equal(e.n_output_axes, 2);
    check_axes(e.axes[0], 2, (const int[]){1, 2});
    check_axes(e.axes[1], 2, (const int[]){2, 0});
    assert_null(msc_einsum_parse(&e, "ii", 1, (const int[]){2}));
    assert_int_equal(e.n_output_axes, 0);
    check_axes(e.axes[0], 2, (const int[]){0, 0});
}

static void test_graph_einsum__dots(void **state) {
    (void)state;
    struct msc_einsum e;
    assert_null(msc_einsum_parse(&e, "...ij,jk->...ik", 2, (const int[]){4, 2}));
    assert_int_equal(e.n_output_axes, 4);
    check_axes(e.axes[0], 4, (const int[]){0, 1, 2, 4});
    check_axes(e.axes[1], 2, (const int[]){4, 3});
}

static void test_graph_einsum__errors(void **state) {
    (void)state;
    struct msc_einsum e;
    assert_non_null(msc_einsum_parse(&e, "ij->ik", 1, (const int[]){2}));
    assert_non_null(msc_einsum_parse(&e, "ij", 1, (const int[]){3}));
    assert_non_null(msc_einsum_parse(&e, "ij,jk->ik", 1, (const int[]){2}));
    assert_non_null(msc_einsum_parse(&e, "i1->i", 1, (const int[]){2}));
    assert_non_null(msc_einsum_parse(&e, "ij-ij", 1, (const int[]){2}));
    assert_non_null(msc_einsum_parse(&e, "ij->ii", 1, (const int[]){2}));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_einsum__explicit),
        cmocka_unit_test(test_graph_einsum__implicit),
        cmocka_unit_test(test_graph_einsum__dots),
        cmocka_unit_test(test_graph_einsum__errors),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
