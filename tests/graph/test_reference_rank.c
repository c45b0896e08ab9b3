// TopK of elements whose order ONNX does not define or whose type ONNX Runtime does not accept:
// NaN, which counts as the largest, and rare types. The cases of make_cases.py test all other
// elements. Expected ranks come from numpy.
#include "graph/reference/reference.h"
#include "tests/msc_test.h"

#include <math.h>

// Runs TopK along the axis of x [n] and checks which elements it selects.
static void check_indices(const struct msc_array *x, const char *k, const char *largest,
                          const int64_t expected[], int64_t n_expected) {
    struct msc_graph *g;
    struct msc_array *out[2];
    const int64_t n = msc_array_n_elements(x);
    const struct msc_attr attrs[] = {{"axis", "0"}, {"k", k}, {"largest", largest}};
    int32_t input, joint;
    assert_ok(msc_graph_create(&g, "rank"));
    assert_ok(msc_graph_add_input(&input, g, "x", "x", msc_array_dtype(x), "", 1, &n));
    struct msc_joint_spec spec = {.op = MSC_OP_TOPK,
                                  .name = "rank",
                                  .n_inputs = 1,
                                  .inputs = &input,
                                  .n_attrs = 3,
                                  .attrs = attrs,
                                  .n_outputs = 2};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    const int32_t *outputs = msc_graph_joint(g, joint)->outputs;
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    int32_t wanted[] = {msc_graph_output(g, 0), msc_graph_output(g, 1)};
    assert_ok(msc_reference_run_graph(out, g, &x, wanted, 2, NULL));
    assert_int_equal(msc_array_n_elements(out[1]), n_expected);
    size_t bytes = msc_dtype_bytes(msc_array_dtype(x));
    for (int64_t i = 0; i < n_expected; i++) {
        assert_int_equal(msc_array_get_i64(out[1], i), expected[i]);
        assert_memory_equal((const char *)msc_array_data(out[0]) + (size_t)i * bytes,
                            (const char *)msc_array_data(x) + (size_t)expected[i] * bytes, bytes);
    }
    msc_array_release(out[0]);
    msc_array_release(out[1]);
    msc_graph_destroy(g);
}

static void check_values(enum msc_dtype dtype, const double values[], int64_t n, const char *k,
                         const char *largest, const int64_t expected[], int64_t n_expected) {
    struct msc_array *doubles, *x;
    assert_ok(msc_array_create_from(&doubles, MSC_DTYPE_F64, 1, &n, values));
    assert_ok(msc_array_convert(&x, doubles, dtype));
    check_indices(x, k, largest, expected, n_expected);
    msc_array_release(x);
    msc_array_release(doubles);
}

// Expected: numpy's lexsort((indices, -x, ~isnan(x))) and lexsort((indices, x, isnan(x))).
static void test_graph_reference_rank__nan(void **state) {
    static const enum msc_dtype dtypes[] = {MSC_DTYPE_F32, MSC_DTYPE_F64, MSC_DTYPE_F16,
                                            MSC_DTYPE_BF16};
    static const double x[] = {1, NAN, 3, 3, -INFINITY, NAN, INFINITY, -0.0, 0.0, 1};
    static const int64_t greatest[] = {1, 5, 6, 2, 3, 0, 9, 7, 8, 4};
    static const int64_t least[] = {4, 7, 8, 0, 9, 2, 3, 6, 1, 5};
    (void)state;
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        check_values(dtypes[i], x, 10, "10", "1", greatest, 10);
        check_values(dtypes[i], x, 10, "10", "0", least, 10);
        check_values(dtypes[i], x, 10, "4", "1", greatest, 4);
        check_values(dtypes[i], x, 10, "9", "0", least, 9);
        check_values(dtypes[i], x, 10, "1", "1", greatest, 1);
        check_values(dtypes[i], x, 10, "0", "1", greatest, 0);
    }
}

// Integer types, which have no NaN. Expected: numpy's argsort(kind="stable") of x and of -x.
static void test_graph_reference_rank__whole(void **state) {
    static const enum msc_dtype dtypes[] = {MSC_DTYPE_I8,  MSC_DTYPE_U8,  MSC_DTYPE_I16,
                                            MSC_DTYPE_U16, MSC_DTYPE_I32, MSC_DTYPE_U32,
                                            MSC_DTYPE_I64, MSC_DTYPE_U64};
    static const double x[] = {7, 127, 0, 7, 1, 0, 127, 100, 7};
    static const int64_t greatest[] = {1, 6, 7, 0, 3, 8, 4, 2, 5};
    static const int64_t least[] = {2, 5, 4, 0, 3, 8, 7, 1, 6};
    (void)state;
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        check_values(dtypes[i], x, 9, "9", "1", greatest, 9);
        check_values(dtypes[i], x, 9, "9", "0", least, 9);
        check_values(dtypes[i], x, 9, "5", "1", greatest, 5);
    }
}

// Neighbouring integers that are equal as doubles, and both ends of int64.
static void test_graph_reference_rank__wide(void **state) {
    static const int64_t x[] = {INT64_MAX - 1, INT64_MIN, INT64_MAX, INT64_MIN + 1, 0, INT64_MAX};
    static const int64_t greatest[] = {2, 5, 0, 4, 3, 1}, least[] = {1, 3, 4, 0, 2, 5};
    static const int64_t n = 6;
    struct msc_array *array;
    (void)state;
    assert_ok(msc_array_create_from(&array, MSC_DTYPE_I64, 1, &n, x));
    check_indices(array, "6", "1", greatest, 6);
    check_indices(array, "6", "0", least, 6);
    check_indices(array, "2", "0", least, 2);
    msc_array_release(array);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_reference_rank__nan),
        cmocka_unit_test(test_graph_reference_rank__whole),
        cmocka_unit_test(test_graph_reference_rank__wide),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
