// Which tasks of the environment `quantize` are neighbours in the network. Expected pairs are
// worked out by hand for the small network.
#include "tests/env/space_case.h"

static void assert_neighbours(const struct bench *b, size_t n, const uint32_t expected[][2]) {
    assert_int_equal(b->space.space.n_neighbours, n);
    assert_memory_equal(b->space.space.neighbours, expected, n * sizeof expected[0]);
    assert_ok(msc_space_check(&b->space.space));
}

// The operands of one joint are neighbours, and those of two joints between which is no other task.
static void test_env_quantize_neighbours__pairs(void **state) {
    static const uint32_t all[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3},
                                      {2, 4}, {2, 5}, {3, 4}, {3, 5}, {4, 5}};
    static const uint32_t of_joints[][2] = {{0, 1}, {1, 2}}, of_weights[][2] = {{0, 1}};
    struct bench b;
    (void)state;
    open_bench(&b, "{" THREE "}", 4);
    assert_ok(build(&b));
    assert_neighbours(&b, 11, all);
    close_bench(&b);
    open_bench(&b, "{" THREE ",\"group\":\"joint\"}", 4);
    assert_ok(build(&b));
    assert_neighbours(&b, 2, of_joints);
    close_bench(&b);
    // conv1.w and head.w, with conv2 between them
    open_bench(&b, "{" THREE ",\"include\":[\"conv1.w\",\"head.w\"]}", 4);
    assert_ok(build(&b));
    assert_neighbours(&b, 1, of_weights);
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_neighbours__pairs),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
