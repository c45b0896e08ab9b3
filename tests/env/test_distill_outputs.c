// Outputs that the distillation loss cannot compare: integers, outputs after a joint whose result
// can jump (such as rounding), outputs without elements, and outputs of a length that depends on
// data. Which outputs are left out follows from the networks that the tests build.
#include "env/distill_internal.h"

#include "tests/env/distill_bench.h"

static int32_t add_unary(struct msc_graph *g, enum msc_op op, const char *name, int32_t x,
                         const char *key, const char *value) {
    int32_t joint;
    struct msc_attr attr = {key, value};
    assert_ok(msc_graph_add_joint(&joint, g,
                                  &(struct msc_joint_spec){.op = op,
                                                           .name = name,
                                                           .n_inputs = 1,
                                                           .inputs = &x,
                                                           .n_attrs = key != NULL,
                                                           .attrs = &attr}));
    return msc_graph_joint(g, joint)->outputs[0];
}

// No column of x: a tensor without elements.
static int32_t add_none(struct msc_graph *g, int32_t x) {
    int32_t joint;
    const struct msc_attr attrs[] = {{"axes", "1"}, {"begin", "0"}, {"end", "0"}};
    assert_ok(msc_graph_add_joint(&joint, g,
                                  &(struct msc_joint_spec){.op = MSC_OP_STRIDED_SLICE,
                                                           .name = "none",
                                                           .n_inputs = 1,
                                                           .inputs = &x,
                                                           .n_attrs = 3,
                                                           .attrs = attrs}));
    return msc_graph_joint(g, joint)->outputs[0];
}

// Outputs: the argmax of -x; the square root of x; a relu after the rounded -x; and no column of x.
static void open_odd(struct distill_bench *b, bool with_floats) {
    static const int64_t dims[2] = {-1, 4};
    struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true};
    static const int64_t rows[2] = {3, 4};
    static const float elements[12] = {0.5f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int32_t prims[2] = {0, MSC_NO_ID};
    int32_t x, outputs[4];
    struct msc_array *a;
    memset(b, 0, sizeof(*b));
    assert_ok(msc_graph_create(&b->c.g, "odd"));
    assert_ok(msc_graph_add_symbol(&prims[0], b->c.g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(&x, b->c.g, "x", NULL, MSC_DTYPE_F32, "", 2, dims, prims));
    int32_t before = add_unary(b->c.g, MSC_OP_NEGATIVE, "before", x, NULL, NULL);
    outputs[0] = add_unary(b->c.g, MSC_OP_ARGMAX, "class", before, "axis", "1");
    outputs[1] = add_unary(b->c.g, MSC_OP_SQRT, "root", x, NULL, NULL);
    outputs[2] = add_unary(b->c.g, MSC_OP_RELU, "behind",
                           add_unary(b->c.g, MSC_OP_ROUND, "jump", before, NULL, NULL), NULL, NULL);
    outputs[3] = add_none(b->c.g, x);
    assert_ok(msc_graph_set_outputs(b->c.g, with_floats ? 4 : 1, outputs));
    assert_ok(msc_graph_finalize(b->c.g));
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_F32, 2, rows, elements));
    assert_ok(msc_dataset_create(&b->c.data, &spec, &a, 1, NULL, 2));
    msc_array_release(a);
    distill_bench_open(b);
}

static void test_env_distill_outputs__outputs_left_out(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct distill_bench b;
    (void)state;
    open_odd(&b, true);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    assert_non_null(strstr(msc_str_text(&b.lines), "output class:0 is int64: left out"));
    assert_non_null(strstr(msc_str_text(&b.lines), "output behind follows joint jump"));
    assert_non_null(strstr(msc_str_text(&b.lines), "such as [\"before:0\"]"));
    assert_non_null(strstr(msc_str_text(&b.lines), "output none:0 is empty: left out"));
    assert_null(strstr(msc_str_text(&b.lines), "root"));
    distill_bench_close(&b);
    open_odd(&b, false);
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.c.data, &o), MSC_E_INVALID);
    assert_message(
        "graph odd has no float32 output: name tensors to compare in env.loss_tensors, such "
        "as [\"before:0\"]");
    const char *name = "class:0";
    o.tensors = &name;
    o.n_tensors = 1;
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.c.data, &o), MSC_E_INVALID);
    assert_message("class:0 is not float32");
    b.d = NULL;
    distill_bench_close(&b);
}

// The two largest values of x and their indices, each followed by a relu. Only the indices jump.
static void test_env_distill_outputs__greatest_values_are_continuous(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    static const int64_t dims[2] = {3, 4};
    struct msc_input_spec spec = {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {3, 4}};
    struct msc_array *a;
    struct distill_bench b = {0};
    int32_t x, joint, outputs[2];
    (void)state;
    assert_ok(msc_graph_create(&b.c.g, "top"));
    assert_ok(msc_graph_add_input(&x, b.c.g, "x", NULL, MSC_DTYPE_F32, "", 2, dims));
    struct msc_attr k = {"k", "2"};
    assert_ok(msc_graph_add_joint(&joint, b.c.g,
                                  &(struct msc_joint_spec){.op = MSC_OP_TOPK,
                                                           .name = "top",
                                                           .n_inputs = 1,
                                                           .inputs = &x,
                                                           .n_attrs = 1,
                                                           .attrs = &k,
                                                           .n_outputs = 2}));
    const int32_t *top = msc_graph_joint(b.c.g, joint)->outputs;
    int32_t places = add_unary(b.c.g, MSC_OP_CAST, "places", top[1], "dtype", "float32");
    outputs[0] = add_unary(b.c.g, MSC_OP_RELU, "values", top[0], NULL, NULL);
    outputs[1] = add_unary(b.c.g, MSC_OP_RELU, "where", places, NULL, NULL);
    assert_ok(msc_graph_set_outputs(b.c.g, 2, outputs));
    assert_ok(msc_graph_finalize(b.c.g));
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, 2, dims));
    assert_ok(msc_dataset_create(&b.c.data, &spec, &a, 1, NULL, 1));
    msc_array_release(a);
    distill_bench_open(&b);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    assert_null(strstr(msc_str_text(&b.lines), "output values lies behind"));
    assert_non_null(strstr(msc_str_text(&b.lines), "output where follows joint top"));
    distill_bench_close(&b);
}

// One sample of x [8] and v [n]. If n is too large for a shape parameter, lengths that depend on v
// are unknown.
static struct msc_dataset *slice_data(int64_t n) {
    struct msc_input_spec specs[2] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {8}},
        {.name = "v", .dtype = MSC_DTYPE_I64, .n_dims = 1, .dims = {-1}}};
    const int64_t dims[2][2] = {{1, 8}, {1, n}};
    struct msc_array *arrays[2];
    struct msc_dataset *data;
    assert_ok(msc_array_create(&arrays[0], MSC_DTYPE_F32, 2, dims[0]));
    assert_ok(msc_array_create(&arrays[1], MSC_DTYPE_I64, 2, dims[1]));
    for (int i = 0; i < 8; i++) {
        ((float *)msc_array_data(arrays[0]))[i] = (float)i + 1;
    }
    ((int64_t *)msc_array_data(arrays[1]))[0] = 3;
    assert_ok(msc_dataset_create(&data, specs, arrays, 2, NULL, 1));
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    return data;
}

// root = sqrt(x) and part = relu(x[0 : v[0]]). The length of part is known if v is short.
static void open_slices(struct distill_bench *b, int64_t n) {
    struct msc_graph *g;
    int32_t inputs[2], prim, joint, outputs[2];
    memset(b, 0, sizeof(*b));
    assert_ok(msc_graph_create(&g, "slices"));
    assert_ok(
        msc_graph_add_input(&inputs[0], g, "x", NULL, MSC_DTYPE_F32, "", 1, (const int64_t[]){8}));
    assert_ok(msc_graph_add_symbol(&prim, g, "n"));
    assert_ok(msc_graph_add_symbolic_input(&inputs[1], g, "v", NULL, MSC_DTYPE_I64, "", 1,
                                           (const int64_t[]){-1}, &prim));
    outputs[0] = add_unary(g, MSC_OP_SQRT, "root", inputs[0], NULL, NULL);
    const struct msc_attr first[] = {{"begin", "0"}, {"end", "1"}, {"axes", "0"}};
    struct msc_joint_spec spec = {.op = MSC_OP_STRIDED_SLICE,
                                  .name = "end",
                                  .n_inputs = 1,
                                  .inputs = &inputs[1],
                                  .n_attrs = 3,
                                  .attrs = first};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    int32_t operands[3] = {inputs[0], MSC_NO_ID, msc_graph_joint(g, joint)->outputs[0]};
    const struct msc_attr begin[] = {{"begin", "0"}, {"axes", "0"}};
    spec = (struct msc_joint_spec){.op = MSC_OP_STRIDED_SLICE,
                                   .name = "part",
                                   .n_inputs = 2,
                                   .inputs = (const int32_t[]){operands[0], operands[2]},
                                   .n_attrs = 2,
                                   .attrs = begin};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    outputs[1] =
        add_unary(g, MSC_OP_RELU, "relu", msc_graph_joint(g, joint)->outputs[0], NULL, NULL);
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    b->c.g = g;
    b->c.data = slice_data(n);
    distill_bench_open(b);
}

// The compared tensors are chosen on the calibration samples and used for other samples, too.
static void test_env_distill_outputs__same_tensors_on_other_samples(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct msc_array_list list = {0};
    struct msc_distill *other;
    struct distill_bench b;
    (void)state;
    open_slices(&b, 5000);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    assert_non_null(
        strstr(msc_str_text(&b.lines), "output relu is of a length that depends on the data"));
    struct msc_dataset *data = slice_data(4);
    assert_ok(msc_distill_create_as(&other, b.d, data));
    assert_ok(msc_distill_compute_reference(other));
    assert_ok(msc_distill_save_reference(other, &list));
    assert_int_equal(list.n, 1);
    assert_non_null(msc_array_list_find(&list, "reference/root"));
    msc_array_list_finish(&list);
    msc_distill_destroy(other);
    msc_dataset_destroy(data);
    distill_bench_close(&b);
    // It is an error if an output is comparable on the calibration samples but has an unknown
    // length on the other samples.
    open_slices(&b, 4);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    data = slice_data(5000);
    assert_int_equal(msc_distill_create_as(&other, b.d, data), MSC_E_INVALID);
    assert_message("on these samples tensor relu, which the loss compares, is of a length that "
                   "depends on the data");
    msc_dataset_destroy(data);
    distill_bench_close(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_distill_outputs__outputs_left_out),
        cmocka_unit_test(test_env_distill_outputs__greatest_values_are_continuous),
        cmocka_unit_test(test_env_distill_outputs__same_tensors_on_other_samples),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
