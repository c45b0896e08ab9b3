// Runs graphs with the reference kernels. Also tests inputs that must be refused and layouts that
// ONNX models do not have. Expected values come from numpy or are worked out by hand.
#include "graph/reference/reference.h"
#include "tests/msc_test.h"

#include <math.h>

static struct msc_array *f32_array(int n_dims, const int64_t dims[]) {
    struct msc_array *array;
    assert_ok(msc_array_create(&array, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        ((float *)msc_array_data(array))[i] = (float)((37 * i + 11) % 256) * 0.01f - 1.0f;
    }
    return array;
}

static int32_t add_joint(struct msc_graph *g, enum msc_op op, int32_t n_inputs,
                         const int32_t inputs[], int32_t n_attrs, const struct msc_attr attrs[]) {
    int32_t joint;
    struct msc_joint_spec spec = {
        .op = op,
        .n_inputs = n_inputs,
        .inputs = inputs,
        .n_attrs = n_attrs,
        .attrs = attrs,
    };
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

// relu(x) + x * x, and relu(x) as a second output, for x [2, 3].
struct fixture {
    struct msc_graph *g;
    int32_t x, relu, square, sum;
};

static void set_up(struct fixture *f) {
    assert_ok(msc_graph_create(&f->g, "run"));
    assert_ok(
        msc_graph_add_input(&f->x, f->g, "x", "x", MSC_DTYPE_F32, "", 2, (const int64_t[]){2, 3}));
    f->relu = add_joint(f->g, MSC_OP_RELU, 1, &f->x, 0, NULL);
    f->square = add_joint(f->g, MSC_OP_MULTIPLY, 2, (const int32_t[]){f->x, f->x}, 0, NULL);
    f->sum = add_joint(f->g, MSC_OP_ADD, 2, (const int32_t[]){f->relu, f->square}, 0, NULL);
    assert_ok(msc_graph_set_outputs(f->g, 1, &f->sum));
    assert_ok(msc_graph_finalize(f->g));
}

static void test_graph_reference_run__wanted(void **state) {
    static const float x[] = {-2, -1, 0, 1, 2, 3};
    static const float relu[] = {0, 0, 0, 1, 2, 3}, sum[] = {4, 1, 0, 2, 6, 12};
    (void)state;
    struct fixture f;
    struct msc_array *input, *out[4];
    set_up(&f);
    assert_ok(msc_array_create_from(&input, MSC_DTYPE_F32, 2, (const int64_t[]){2, 3}, x));
    const struct msc_array *inputs[] = {input};
    // Inner tensors, inputs and repeated tensors may be requested as results.
    const int32_t wanted[] = {f.sum, f.relu, f.x, f.sum};
    assert_ok(msc_reference_run_graph(out, f.g, inputs, wanted, 4, NULL));
    assert_memory_equal(msc_array_data(out[0]), sum, sizeof(sum));
    assert_memory_equal(msc_array_data(out[1]), relu, sizeof(relu));
    assert_memory_equal(msc_array_data(out[2]), x, sizeof(x));
    assert_memory_equal(msc_array_data(out[3]), sum, sizeof(sum));
    for (int i = 0; i < 4; i++) {
        msc_array_release(out[i]);
    }
    msc_array_release(input);
    msc_graph_destroy(f.g);
}

static void test_graph_reference_run__input_that_does_not_fit(void **state) {
    (void)state;
    struct fixture f;
    struct msc_array *input, *out;
    set_up(&f);
    input = f32_array(2, (const int64_t[]){3, 2});
    const struct msc_array *inputs[] = {input};
    assert_int_equal(msc_reference_run_graph(&out, f.g, inputs, &f.sum, 1, NULL), MSC_E_INVALID);
    assert_message("expected float32 [2,3], found float32 [3,2]");
    assert_null(out);
    inputs[0] = NULL;
    assert_int_equal(msc_reference_run_graph(&out, f.g, inputs, &f.sum, 1, NULL), MSC_E_INVALID);
    assert_message("found");
    msc_array_release(input);
    msc_graph_destroy(f.g);
}

// Runs a joint with two int64 inputs and returns the status.
static enum msc_status run_int_pair(struct msc_array **out, enum msc_op op, const int64_t a[2],
                                    const int64_t b[2], int32_t n_attrs,
                                    const struct msc_attr attrs[]) {
    static const int64_t dims[] = {2};
    struct msc_graph *g;
    struct msc_array *arrays[2];
    int32_t ids[2];
    assert_ok(msc_graph_create(&g, "pair"));
    assert_ok(msc_graph_add_input(&ids[0], g, "a", "a", MSC_DTYPE_I64, "", 1, dims));
    assert_ok(msc_graph_add_input(&ids[1], g, "b", "b", MSC_DTYPE_I64, "", 1, dims));
    int32_t result = add_joint(g, op, 2, ids, n_attrs, attrs);
    assert_ok(msc_graph_set_outputs(g, 1, &result));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_array_create_from(&arrays[0], MSC_DTYPE_I64, 1, dims, a));
    assert_ok(msc_array_create_from(&arrays[1], MSC_DTYPE_I64, 1, dims, b));
    int32_t wanted = msc_graph_output(g, 0);
    enum msc_status status = msc_reference_run_graph(
        out, g, (const struct msc_array *const[]){arrays[0], arrays[1]}, &wanted, 1, NULL);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    msc_graph_destroy(g);
    return status;
}

static void test_graph_reference_run__integers(void **state) {
    (void)state;
    struct msc_array *out;
    // Results above 2^53, which doubles would round.
    const int64_t a[] = {INT64_C(9007199254740993), -7}, b[] = {2, 2};
    assert_ok(run_int_pair(&out, MSC_OP_MULTIPLY, a, b, 0, NULL));
    assert_true(msc_array_get_i64(out, 0) == INT64_C(18014398509481986));
    msc_array_release(out);
    assert_ok(run_int_pair(&out, MSC_OP_DIVIDE, a, b, 0, NULL));
    assert_true(msc_array_get_i64(out, 0) == INT64_C(4503599627370496));
    assert_true(msc_array_get_i64(out, 1) == -3); // rounds towards zero, as in C
    msc_array_release(out);
    // numpy.array([2**62, 2**62]) @ numpy.array([2, 3]) wraps.
    const int64_t large[] = {INT64_C(1) << 62, INT64_C(1) << 62}, factors[] = {2, 3};
    assert_ok(run_int_pair(&out, MSC_OP_MATMUL, large, factors, 0, NULL));
    assert_true(msc_array_get_i64(out, 0) == INT64_C(4611686018427387904));
    msc_array_release(out);
}

// A joint with several inputs. Element i of input k is i * (k + 1) mod 100. One float in seven is
// NaN, and one condition in three is true.
struct of_inputs {
    enum msc_op op;
    int32_t n;
    enum msc_dtype dtypes[3];
    int n_dims[3];
    int64_t dims[3][3];
};

static double value_at(int32_t input, enum msc_dtype dtype, int64_t i) {
    bool is_nan = msc_dtype_is_float(dtype) && i % 7 == 3;
    return dtype == MSC_DTYPE_BOOL ? i % 3 == 0 : is_nan ? NAN : (double)(i * (input + 1) % 100);
}

static struct msc_array *run_inputs(struct msc_array *inputs[3], const struct of_inputs *c) {
    static const char *const names[] = {"a", "b", "c"};
    int32_t ids[3], result;
    struct msc_graph *g;
    struct msc_array *out;
    assert_ok(msc_graph_create(&g, "inputs"));
    for (int32_t k = 0; k < c->n; k++) {
        struct msc_array *wide;
        assert_ok(msc_graph_add_input(&ids[k], g, names[k], names[k], c->dtypes[k], "",
                                      c->n_dims[k], c->dims[k]));
        assert_ok(msc_array_create(&wide, MSC_DTYPE_F64, c->n_dims[k], c->dims[k]));
        for (int64_t i = 0; i < msc_array_n_elements(wide); i++) {
            ((double *)msc_array_data(wide))[i] = value_at(k, c->dtypes[k], i);
        }
        assert_ok(msc_array_convert(&inputs[k], wide, c->dtypes[k]));
        msc_array_release(wide);
    }
    result = add_joint(g, c->op, c->n, ids, 0, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &result));
    assert_ok(msc_graph_finalize(g));
    result = msc_graph_output(g, 0);
    assert_ok(msc_reference_run_graph(&out, g, (const struct msc_array *const *)inputs, &result, 1,
                                      NULL));
    msc_graph_destroy(g);
    return out;
}

// Rows longer than one block of the computation; each operand is broadcast along different axes.
static void test_graph_reference_run__selects(void **state) {
    static const enum msc_dtype dtypes[] = {MSC_DTYPE_F32, MSC_DTYPE_F64, MSC_DTYPE_I64,
                                            MSC_DTYPE_U8, MSC_DTYPE_F16};
    (void)state;
    for (size_t t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++) {
        struct of_inputs c = {MSC_OP_WHERE,
                              3,
                              {MSC_DTYPE_BOOL, dtypes[t], dtypes[t]},
                              {1, 3, 2},
                              {{700}, {2, 3, 1}, {3, 700}}};
        struct msc_array *in[3], *out = run_inputs(in, &c);
        assert_int_equal(msc_array_n_elements(out), 2 * 3 * 700);
        for (int64_t i = 0; i < msc_array_n_elements(out); i++) {
            bool is_first = msc_array_get_i64(in[0], i % 700) != 0;
            double expected = is_first ? msc_array_get_double(in[1], i / 700)
                                       : msc_array_get_double(in[2], i % 2100);
            double found = msc_array_get_double(out, i);
            assert_true(found == expected || (isnan(found) && isnan(expected)));
        }
        for (int k = 0; k < 3; k++) {
            msc_array_release(in[k]);
        }
        msc_array_release(out);
    }
}

static bool compare(enum msc_op op, double a, double b) {
    switch (op) {
    case MSC_OP_EQUAL:
        return a == b;
    case MSC_OP_GREATER:
        return a > b;
    case MSC_OP_GREATER_EQUAL:
        return a >= b;
    case MSC_OP_LESS_EQUAL:
        return a <= b;
    default:
        return a < b;
    }
}

static void test_graph_reference_run__comparisons(void **state) {
    static const enum msc_op ops[] = {MSC_OP_EQUAL, MSC_OP_GREATER, MSC_OP_GREATER_EQUAL,
                                      MSC_OP_LESS_EQUAL, MSC_OP_LESS};
    static const enum msc_dtype dtypes[] = {MSC_DTYPE_F32, MSC_DTYPE_F64, MSC_DTYPE_I32};
    (void)state;
    for (int i = 0; i < 15; i++) {
        enum msc_dtype dtype = dtypes[i % 3];
        struct of_inputs c = {ops[i / 3], 2, {dtype, dtype}, {2, 2}, {{3, 700}, {3, 1}}};
        struct msc_array *in[3], *out = run_inputs(in, &c);
        for (int64_t k = 0; k < 2100; k++) {
            assert_int_equal(msc_array_get_i64(out, k),
                             compare(c.op, msc_array_get_double(in[0], k),
                                     msc_array_get_double(in[1], k / 700)));
        }
        msc_array_release(in[0]);
        msc_array_release(in[1]);
        msc_array_release(out);
    }
}

// The k of TopK is an input and known only at run time. Two numbers are not a valid k.
static void test_graph_reference_run__counts_found_late(void **state) {
    (void)state;
    struct msc_graph *g;
    struct msc_array *x, *k, *out;
    int32_t ids[2], prim, joint;
    assert_ok(msc_graph_create(&g, "late"));
    assert_ok(msc_graph_add_symbol(&prim, g, "N"));
    assert_ok(msc_graph_add_input(&ids[0], g, "x", "x", MSC_DTYPE_F32, "", 1, (int64_t[]){5}));
    assert_ok(msc_graph_add_symbolic_input(&ids[1], g, "k", "k", MSC_DTYPE_I64, "", 1,
                                           (int64_t[]){-1}, &prim));
    assert_ok(msc_graph_add_joint(
        &joint, g,
        &(struct msc_joint_spec){
            .op = MSC_OP_TOPK, .name = "top", .n_inputs = 2, .inputs = ids, .n_outputs = 2}));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    int32_t wanted = msc_graph_output(g, 0);
    x = f32_array(1, (const int64_t[]){5});
    for (int64_t n = 1; n <= 2; n++) {
        assert_ok(msc_array_create_from(&k, MSC_DTYPE_I64, 1, &n, (const int64_t[]){3, 3}));
        enum msc_status status = msc_reference_run_graph(
            &out, g, (const struct msc_array *const[]){x, k}, &wanted, 1, NULL);
        assert_int_equal(status, n == 1 ? MSC_OK : MSC_E_INVALID);
        if (n == 1) {
            assert_int_equal(msc_array_n_elements(out), 3);
            msc_array_release(out);
        } else {
            assert_message("k has 2 elements, expected one");
        }
        msc_array_release(k);
    }
    msc_array_release(x);
    msc_graph_destroy(g);
}

// An addition gets its length from one operand, because the other operand's length is symbolic. At
// run time the other operand has another length.
static void test_graph_reference_run__lengths_found_late(void **state) {
    (void)state;
    struct msc_graph *g;
    struct msc_array *x, *wide, *out;
    int32_t ids[2], prims[1], result;
    assert_ok(msc_graph_create(&g, "late"));
    assert_ok(msc_graph_add_symbol(&prims[0], g, "N"));
    assert_ok(msc_graph_add_input(&ids[0], g, "a", "a", MSC_DTYPE_F32, "", 1, (int64_t[]){5}));
    assert_ok(msc_graph_add_symbolic_input(&ids[1], g, "b", "b", MSC_DTYPE_F32, "", 1,
                                           (int64_t[]){-1}, prims));
    result = add_joint(g, MSC_OP_ADD, 2, ids, 0, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &result));
    assert_ok(msc_graph_finalize(g));
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_array_create(&x, MSC_DTYPE_F32, 1, (int64_t[]){5}));
    assert_ok(msc_array_create(&wide, MSC_DTYPE_F32, 1, (int64_t[]){3}));
    const struct msc_array *const equal[] = {x, x}, *const other[] = {x, wide};
    assert_ok(msc_reference_run_graph(&out, g, equal, &wanted, 1, NULL));
    assert_int_equal(msc_array_dim(out, 0), 5);
    msc_array_release(out);
    assert_int_equal(msc_reference_run_graph(&out, g, other, &wanted, 1, NULL), MSC_E_INVALID);
    msc_array_release(x);
    msc_array_release(wide);
    msc_graph_destroy(g);
}

// numpy.zeros((2, 0)) @ numpy.zeros((0, 3)) is numpy.zeros((2, 3)).
static void test_graph_reference_run__sums_of_nothing(void **state) {
    (void)state;
    static const float zeros[6] = {0};
    const int64_t dims[2][2] = {{2, 0}, {0, 3}};
    struct msc_graph *g;
    struct msc_array *arrays[2], *out;
    int32_t ids[2];
    assert_ok(msc_graph_create(&g, "nothing"));
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "a" : "b";
        assert_ok(msc_graph_add_input(&ids[i], g, name, name, MSC_DTYPE_F32, "", 2, dims[i]));
        assert_ok(msc_array_create(&arrays[i], MSC_DTYPE_F32, 2, dims[i]));
    }
    int32_t result = add_joint(g, MSC_OP_MATMUL, 2, ids, 0, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &result));
    assert_ok(msc_graph_finalize(g));
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_reference_run_graph(&out, g, (const struct msc_array *const *)arrays, &wanted, 1,
                                      NULL));
    assert_int_equal(msc_array_n_bytes(out), sizeof(zeros));
    assert_memory_equal(msc_array_data(out), zeros, sizeof(zeros));
    msc_array_release(out);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    msc_graph_destroy(g);
}

// The joint already has the name that a constant gets when the joint is run by itself.
static void test_graph_reference_run__alone_under_a_name_that_is_taken(void **state) {
    (void)state;
    const int64_t values[3] = {2, 10, 3}, expected[3] = {2, 5, 8}; // numpy.arange(2, 10, 3)
    struct msc_array *arrays[3], *out;
    struct msc_graph *g;
    int32_t ids[3], joint;
    assert_ok(msc_graph_create(&g, "range"));
    for (int i = 0; i < 3; i++) {
        const char *const names[3] = {"start", "limit", "delta"};
        assert_ok(msc_graph_add_input(&ids[i], g, names[i], names[i], MSC_DTYPE_I64, "", 0, NULL));
        assert_ok(msc_array_create_from(&arrays[i], MSC_DTYPE_I64, 0, NULL, &values[i]));
    }
    struct msc_joint_spec spec = {
        .op = MSC_OP_ARANGE, .name = "const", .n_inputs = 3, .inputs = ids};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    int32_t wanted = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(msc_graph_set_outputs(g, 1, &wanted));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_reference_run_graph(&out, g, (const struct msc_array *const *)arrays, &wanted, 1,
                                      NULL));
    assert_int_equal(msc_array_n_elements(out), 3);
    assert_memory_equal(msc_array_data(out), expected, sizeof(expected));
    msc_array_release(out);
    for (int i = 0; i < 3; i++) {
        msc_array_release(arrays[i]);
    }
    msc_graph_destroy(g);
}

static void test_graph_reference_run__refused_values(void **state) {
    (void)state;
    struct msc_array *out;
    const int64_t a[] = {5, 6};
    assert_int_equal(run_int_pair(&out, MSC_OP_DIVIDE, a, (const int64_t[]){1, 0}, 0, NULL),
                     MSC_E_INVALID);
    assert_message("division by zero");
    assert_int_equal(run_int_pair(&out, MSC_OP_TAKE, a, (const int64_t[]){0, 2}, 1,
                                  (const struct msc_attr[]){{"axis", "0"}}),
                     MSC_E_INVALID);
    assert_message("index 2 is out of range for axis 0 of length 2");
}

// Convolves x [1, 4, 5, 6] with a weight [6, 2, 3, 3] in two groups, in NCHW or, if `is_last`,
// channels-last layout. Returns the result as [1, 6, h, w].
static struct msc_array *run_conv(bool is_last) {
    struct msc_graph *g;
    struct msc_array *x = f32_array(4, (const int64_t[]){1, 4, 5, 6}), *out;
    struct msc_array *w = f32_array(4, (const int64_t[]){6, 2, 3, 3});
    int32_t ids[3], result, joint;
    assert_ok(msc_graph_create(&g, "layout"));
    assert_ok(
        msc_graph_add_input(&ids[0], g, "x", "x", MSC_DTYPE_F32, "NCHW", 4, msc_array_dims(x)));
    assert_ok(
        msc_graph_add_input(&ids[1], g, "w", "w", MSC_DTYPE_F32, "OIHW", 4, msc_array_dims(w)));
    if (is_last) {
        ids[0] = add_joint(g, MSC_OP_PERMUTE_DIMS, 1, &ids[0], 1,
                           (const struct msc_attr[]){{"axes", "0,2,3,1"}});
        ids[1] = add_joint(g, MSC_OP_PERMUTE_DIMS, 1, &ids[1], 1,
                           (const struct msc_attr[]){{"axes", "2,3,1,0"}});
    }
    struct msc_joint_spec spec = {
        .op = MSC_OP_CONV2D,
        .n_inputs = 2,
        .inputs = ids,
        .n_attrs = 6,
        .attrs = (const struct msc_attr[]){{"data_layout", is_last ? "NHWC" : "NCHW"},
                                           {"groups", "2"},
                                           {"kernel_layout", is_last ? "HWIO" : "OIHW"},
                                           {"out_layout", is_last ? "NHWC" : "NCHW"},
                                           {"padding", "1,0,2,1"},
                                           {"strides", "2,1"}},
    };
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    result = msc_graph_joint(g, joint)->outputs[0];
    if (is_last) {
        result = add_joint(g, MSC_OP_PERMUTE_DIMS, 1, &result, 1,
                           (const struct msc_attr[]){{"axes", "0,3,1,2"}});
    }
    assert_ok(msc_graph_set_outputs(g, 1, &result));
    assert_ok(msc_graph_finalize(g));
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_reference_run_graph(&out, g, (const struct msc_array *const[]){x, w}, &wanted, 1,
                                      NULL));
    msc_array_release(x);
    msc_array_release(w);
    msc_graph_destroy(g);
    return out;
}

// The order of additions does not depend on the layout, so the results have the same bits.
static void test_graph_reference_run__channels_last(void **state) {
    (void)state;
    struct msc_array *first = run_conv(false), *last = run_conv(true);
    assert_int_equal(msc_array_n_bytes(first), msc_array_n_bytes(last));
    assert_memory_equal(msc_array_data(first), msc_array_data(last), msc_array_n_bytes(first));
    msc_array_release(first);
    msc_array_release(last);
}

static void test_graph_reference_run__every_operator_has_a_kernel(void **state) {
    (void)state;
    for (int i = 0; i < MSC_OP_COUNT; i++) {
        bool is_source = i == MSC_OP_INPUT || i == MSC_OP_CONSTANT;
        if (!msc_reference_find((enum msc_op)i) != is_source) {
            fail_msg("%s", msc_op_info((enum msc_op)i)->name);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_reference_run__wanted),
        cmocka_unit_test(test_graph_reference_run__input_that_does_not_fit),
        cmocka_unit_test(test_graph_reference_run__integers),
        cmocka_unit_test(test_graph_reference_run__selects),
        cmocka_unit_test(test_graph_reference_run__counts_found_late),
        cmocka_unit_test(test_graph_reference_run__comparisons),
        cmocka_unit_test(test_graph_reference_run__lengths_found_late),
        cmocka_unit_test(test_graph_reference_run__sums_of_nothing),
        cmocka_unit_test(test_graph_reference_run__alone_under_a_name_that_is_taken),
        cmocka_unit_test(test_graph_reference_run__refused_values),
        cmocka_unit_test(test_graph_reference_run__channels_last),
        cmocka_unit_test(test_graph_reference_run__every_operator_has_a_kernel),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
