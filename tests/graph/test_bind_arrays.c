// Tests three operations on graphs: binding to given input arrays when lengths depend on the
// content of inputs, isolating joints as graphs of their own, and replacing an If by the branch
// that a known condition selects.
#include "graph/graph.h"

#include "base/str.h"
#include "data/npy.h"

#include "graph/onnx/load.h"
#include "graph/passes/bind.h"
#include "tests/msc_test.h"

static struct msc_array *ints(int n, const int64_t values[]) {
    struct msc_array *array;
    int64_t dim = n;
    assert_ok(msc_array_create_from(&array, MSC_DTYPE_I64, 1, &dim, values));
    return array;
}

static struct msc_array *zeros(int n_dims, const int64_t dims[]) {
    struct msc_array *array;
    assert_ok(msc_array_create(&array, MSC_DTYPE_F32, n_dims, dims));
    return array;
}

static void check_dims(const struct msc_graph *g, int32_t tensor, int n, const int64_t dims[]) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    assert_int_equal(t->n_dims, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(t->dims[i], dims[i]);
    }
}

// x [4, 6], reshaped to the shape that the input `shape` contains.
static struct msc_graph *reshape_graph(void) {
    struct msc_graph *g;
    int32_t inputs[2], joint;
    assert_ok(msc_graph_create(&g, "reshape"));
    assert_ok(msc_graph_add_input(&inputs[0], g, "x", "x", MSC_DTYPE_F32, "", 2,
                                  (const int64_t[]){4, 6}));
    assert_ok(msc_graph_add_input(&inputs[1], g, "shape", "shape", MSC_DTYPE_I64, "", 1,
                                  (const int64_t[]){3}));
    struct msc_joint_spec spec = {.op = MSC_OP_RESHAPE, .n_inputs = 2, .inputs = inputs};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static void test_graph_bind_arrays__parameter(void **state) {
    (void)state;
    struct msc_graph *g = reshape_graph(), *bound;
    struct msc_array *x = zeros(2, (const int64_t[]){4, 6});
    struct msc_array *shape = ints(3, (const int64_t[]){2, -1, 3});
    const struct msc_array *const arrays[] = {x, shape};
    assert_false(msc_graph_is_bound(g));
    assert_ok(msc_graph_bind_arrays(&bound, g, arrays, 2));
    assert_true(msc_graph_is_bound(bound));
    check_dims(bound, msc_graph_output(bound, 0), 3, (const int64_t[]){2, 4, 3});
    // The input still exists but has no consumer.
    const int32_t *readers;
    assert_int_equal(msc_graph_n_inputs(bound), 2);
    assert_int_equal(msc_graph_consumers(bound, msc_graph_input(bound, 1), &readers), 0);
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
    msc_array_release(x);
    msc_array_release(shape);
}

// The graph doubles the input `shape`. The doubled shape is both the new shape of x and the operand
// of a cast.
static void test_graph_bind_arrays__parameter_and_data(void **state) {
    (void)state;
    struct msc_graph *g, *bound;
    int32_t inputs[2], joint, outputs[2], operands[2];
    assert_ok(msc_graph_create(&g, "both"));
    assert_ok(msc_graph_add_input(&inputs[0], g, "x", "x", MSC_DTYPE_F32, "", 2,
                                  (const int64_t[]){4, 6}));
    assert_ok(msc_graph_add_input(&inputs[1], g, "shape", "shape", MSC_DTYPE_I64, "", 1,
                                  (const int64_t[]){2}));
    struct msc_joint_spec spec = {.op = MSC_OP_ADD,
                                  .name = "twice",
                                  .n_inputs = 2,
                                  .inputs = (const int32_t[]){inputs[1], inputs[1]}};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    operands[0] = inputs[0];
    operands[1] = msc_graph_joint(g, joint)->outputs[0];
    spec = (struct msc_joint_spec){.op = MSC_OP_RESHAPE, .n_inputs = 2, .inputs = operands};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    outputs[0] = msc_graph_joint(g, joint)->outputs[0];
    const struct msc_attr dtype = {"dtype", "float32"};
    spec = (struct msc_joint_spec){.op = MSC_OP_CAST,
                                   .name = "number",
                                   .n_inputs = 1,
                                   .inputs = &operands[1],
                                   .n_attrs = 1,
                                   .attrs = &dtype};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    outputs[1] = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    struct msc_array *x = zeros(2, (const int64_t[]){4, 6});
    struct msc_array *shape = ints(2, (const int64_t[]){6, 1});
    const struct msc_array *const arrays[] = {x, shape};
    assert_ok(msc_graph_bind_arrays(&bound, g, arrays, 2));
    check_dims(bound, msc_graph_output(bound, 0), 2, (const int64_t[]){12, 2});
    // The cast is still computed from the input.
    const struct msc_tensor *number = msc_graph_tensor(bound, msc_graph_output(bound, 1));
    const struct msc_joint *cast = msc_graph_joint(bound, number->producer);
    assert_string_equal(cast->name, "number");
    const struct msc_tensor *sum = msc_graph_tensor(bound, cast->operands[0]);
    assert_string_equal(msc_graph_joint(bound, sum->producer)->name, "twice");
    const int32_t *readers;
    assert_int_equal(msc_graph_consumers(bound, msc_graph_input(bound, 1), &readers), 1);
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
    msc_array_release(x);
    msc_array_release(shape);
}

static void test_graph_bind_arrays__data(void **state) {
    (void)state;
    struct msc_graph *g, *bound;
    int32_t x, joint;
    assert_ok(msc_graph_create(&g, "nonzero"));
    assert_ok(msc_graph_add_input(&x, g, "x", "x", MSC_DTYPE_F32, "", 2, (const int64_t[]){2, 3}));
    struct msc_joint_spec spec = {.op = MSC_OP_NONZERO, .n_inputs = 1, .inputs = &x};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    struct msc_array *array = zeros(2, (const int64_t[]){2, 3});
    const struct msc_array *const arrays[] = {array};
    assert_int_equal(msc_graph_bind_arrays(&bound, g, arrays, 1), MSC_E_UNSUPPORTED);
    assert_message("depends on data");
    msc_array_release(array);
    msc_graph_destroy(g);
}

static void test_graph_bind_arrays__isolate(void **state) {
    (void)state;
    struct msc_graph *g = reshape_graph(), *alone;
    struct msc_array *x = zeros(2, (const int64_t[]){4, 6});
    struct msc_array *shape = ints(2, (const int64_t[]){3, 8});
    const struct msc_array *const arrays[] = {x, shape};
    int32_t joint = msc_graph_find_joint(g, "reshape");
    assert_ok(msc_graph_isolate(&alone, g, joint, arrays));
    assert_int_equal(msc_graph_n_inputs(alone), 1);
    check_dims(alone, msc_graph_output(alone, 0), 2, (const int64_t[]){3, 8});
    assert_string_equal(
        msc_joint_attr(msc_graph_joint(alone, msc_graph_find_joint(alone, "reshape")), "shape"),
        "3,8");
    msc_graph_destroy(alone);
    msc_graph_destroy(g);
    msc_array_release(x);
    msc_array_release(shape);
}

// A body graph may be destroyed after it is added to an If. Comparing graphs and writing JSON
// include the bodies.
static void test_graph_bind_arrays__bodies(void **state) {
    (void)state;
    struct msc_graph *bodies[2], *g, *copy;
    for (int i = 0; i < 2; i++) {
        int32_t y, joint;
        assert_ok(msc_graph_create(&bodies[i], "body"));
        assert_ok(msc_graph_add_input(&y, bodies[i], "y", "y", MSC_DTYPE_F32, "", 1,
                                      (const int64_t[]){2}));
        struct msc_joint_spec spec = {
            .op = i == 0 ? MSC_OP_RELU : MSC_OP_ABS, .n_inputs = 1, .inputs = &y};
        assert_ok(msc_graph_add_joint(&joint, bodies[i], &spec));
        assert_ok(msc_graph_set_outputs(bodies[i], 1, msc_graph_joint(bodies[i], joint)->outputs));
        assert_ok(msc_graph_finalize(bodies[i]));
    }
    int32_t inputs[2], joint;
    assert_ok(msc_graph_create(&g, "branch"));
    assert_ok(msc_graph_add_input(&inputs[0], g, "c", "c", MSC_DTYPE_BOOL, "", 0, NULL));
    assert_ok(
        msc_graph_add_input(&inputs[1], g, "x", "x", MSC_DTYPE_F32, "", 1, (const int64_t[]){2}));
    struct msc_joint_spec spec = {.op = MSC_OP_IF,
                                  .n_inputs = 2,
                                  .inputs = inputs,
                                  .n_graphs = 2,
                                  .graphs = (const struct msc_graph *const *)bodies};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    check_dims(g, msc_graph_joint(g, joint)->outputs[0], 1, (const int64_t[]){2});
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    msc_graph_destroy(bodies[0]);
    msc_graph_destroy(bodies[1]);
    assert_ok(msc_graph_clone(&copy, g));
    assert_true(msc_graph_equal(g, copy, true));
    msc_graph_destroy(g);
    const struct msc_joint *j = msc_graph_joint(copy, msc_graph_find_joint(copy, "if"));
    assert_int_equal(j->n_graphs, 2);
    assert_true(msc_graph_find_joint(j->graphs[1], "abs") != MSC_NO_ID);
    struct msc_str json = {0};
    struct msc_graph *read;
    msc_graph_write_json(copy, &json);
    assert_ok(msc_str_status(&json));
    assert_ok(msc_graph_read_json(&read, json.data, json.length, "branch.json", NULL, NULL));
    assert_true(msc_graph_equal(copy, read, true));
    msc_str_finish(&json);
    msc_graph_destroy(read);
    msc_graph_destroy(copy);
}

// A graph with two outputs: an If that gives relu(x) if `mode`, else |x|; and !mode.
static struct msc_graph *branch_graph(void) {
    struct msc_graph *bodies[2], *g;
    int32_t inputs[2], prim, joint;
    for (int i = 0; i < 2; i++) {
        int32_t x;
        assert_ok(msc_graph_create(&bodies[i], "body"));
        assert_ok(msc_graph_add_symbol(&prim, bodies[i], "N"));
        assert_ok(msc_graph_add_symbolic_input(&x, bodies[i], "x", "x", MSC_DTYPE_F32, "", 2,
                                               (const int64_t[]){-1, 2},
                                               (const int32_t[]){prim, MSC_NO_ID}));
        struct msc_joint_spec spec = {
            .op = i == 0 ? MSC_OP_RELU : MSC_OP_ABS, .name = "act", .n_inputs = 1, .inputs = &x};
        assert_ok(msc_graph_add_joint(&joint, bodies[i], &spec));
        assert_ok(msc_graph_set_outputs(bodies[i], 1, msc_graph_joint(bodies[i], joint)->outputs));
        assert_ok(msc_graph_finalize(bodies[i]));
    }
    assert_ok(msc_graph_create(&g, "branch"));
    assert_ok(msc_graph_add_input(&inputs[0], g, "mode", "mode", MSC_DTYPE_BOOL, "", 0, NULL));
    assert_ok(msc_graph_add_symbol(&prim, g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&inputs[1], g, "x", "x", MSC_DTYPE_F32, "", 2,
                                           (const int64_t[]){-1, 2},
                                           (const int32_t[]){prim, MSC_NO_ID}));
    struct msc_joint_spec spec = {.op = MSC_OP_IF,
                                  .n_inputs = 2,
                                  .inputs = inputs,
                                  .n_graphs = 2,
                                  .graphs = (const struct msc_graph *const *)bodies};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    int32_t output = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(msc_graph_set_alias(g, output, "y"));
    spec = (struct msc_joint_spec){
        .op = MSC_OP_LOGICAL_NOT, .name = "not", .n_inputs = 1, .inputs = inputs};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    const int32_t outputs[2] = {output, msc_graph_joint(g, joint)->outputs[0]};
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    msc_graph_destroy(bodies[0]);
    msc_graph_destroy(bodies[1]);
    return g;
}

static void test_graph_bind_arrays__take_branches(void **state) {
    (void)state;
    struct msc_graph *g = branch_graph(), *taken;
    static const char *const names[2] = {"if/else/act", "if/then/act"};
    int32_t n_taken;
    for (int mode = 0; mode < 2; mode++) {
        bool value = mode == 1;
        struct msc_array *array;
        assert_ok(msc_array_create_from(&array, MSC_DTYPE_BOOL, 0, NULL, &value));
        const struct msc_array *const arrays[] = {array, NULL};
        assert_ok(msc_graph_take_branches(&taken, &n_taken, g, arrays, 2));
        assert_int_equal(n_taken, 1);
        int32_t joint = msc_graph_find_joint(taken, names[mode]);
        assert_int_not_equal(joint, MSC_NO_ID);
        assert_int_equal(msc_graph_find_joint(taken, "if"), MSC_NO_ID);
        const struct msc_tensor *y = msc_graph_tensor(taken, msc_graph_output(taken, 0));
        assert_string_equal(y->alias, "y");
        assert_int_equal(y->producer, joint);
        assert_int_equal(y->dims[0], -1);
        assert_string_equal(msc_graph_prim(taken, y->prims[0])->name, "N");
        assert_int_equal(msc_graph_n_inputs(taken), 2);
        // Joints that use `mode` as data still read the input.
        const struct msc_joint *not = msc_graph_joint(taken, msc_graph_find_joint(taken, "not"));
        assert_int_equal(not ->operands[0], msc_graph_input(taken, 0));
        msc_graph_destroy(taken);
        msc_array_release(array);
    }
    // If the condition is not known, the graph does not change.
    const struct msc_array *const unknown[] = {NULL, NULL};
    assert_ok(msc_graph_take_branches(&taken, &n_taken, g, unknown, 2));
    assert_int_equal(n_taken, 0);
    assert_true(msc_graph_equal(g, taken, true));
    msc_graph_destroy(taken);
    msc_graph_destroy(g);
}

// if mode: (if mode: x, else: relu(x)), else: relu(x). The output of each body has an alias of
// its own.
static struct msc_graph *nested_body(bool passes, bool is_nested);

static struct msc_graph *nested_if(const char *name, bool is_nested) {
    struct msc_graph *bodies[2] = {nested_body(true, is_nested), nested_body(false, false)}, *g;
    int32_t inputs[3], joint;
    assert_ok(msc_graph_create(&g, name));
    assert_ok(msc_graph_add_input(&inputs[0], g, "mode", "mode", MSC_DTYPE_BOOL, "", 0, NULL));
    inputs[1] = inputs[0];
    assert_ok(
        msc_graph_add_input(&inputs[2], g, "x", "x", MSC_DTYPE_F32, "", 1, (const int64_t[]){2}));
    struct msc_joint_spec spec = {.op = MSC_OP_IF,
                                  .name = name,
                                  .n_inputs = 3,
                                  .inputs = inputs,
                                  .n_graphs = 2,
                                  .graphs = (const struct msc_graph *const *)bodies};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    int32_t output = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(msc_graph_set_alias(g, output, name));
    assert_ok(msc_graph_set_outputs(g, 1, &output));
    assert_ok(msc_graph_finalize(g));
    msc_graph_destroy(bodies[0]);
    msc_graph_destroy(bodies[1]);
    return g;
}

static struct msc_graph *nested_body(bool passes, bool is_nested) {
    struct msc_graph *g;
    int32_t inputs[2], joint;
    if (is_nested) {
        return nested_if("inner", false);
    }
    assert_ok(msc_graph_create(&g, "body"));
    assert_ok(msc_graph_add_input(&inputs[0], g, "mode", "mode", MSC_DTYPE_BOOL, "", 0, NULL));
    assert_ok(
        msc_graph_add_input(&inputs[1], g, "x", "x", MSC_DTYPE_F32, "", 1, (const int64_t[]){2}));
    struct msc_joint_spec spec = {
        .op = MSC_OP_RELU, .name = "act", .n_inputs = 1, .inputs = &inputs[1]};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    assert_ok(
        msc_graph_set_outputs(g, 1, passes ? &inputs[1] : msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// Both Ifs are replaced by the branch that runs. The output keeps the alias of the outer If.
static void test_graph_bind_arrays__nested_branches(void **state) {
    (void)state;
    struct msc_graph *g = nested_if("y", true), *taken;
    int32_t n_taken;
    bool mode = true;
    struct msc_array *array;
    assert_ok(msc_array_create_from(&array, MSC_DTYPE_BOOL, 0, NULL, &mode));
    const struct msc_array *const arrays[] = {array, NULL};
    assert_ok(msc_graph_take_branches(&taken, &n_taken, g, arrays, 2));
    assert_int_equal(n_taken, 2);
    assert_int_equal(msc_graph_find_joint(taken, "inner"), MSC_NO_ID);
    const struct msc_tensor *y = msc_graph_tensor(taken, msc_graph_output(taken, 0));
    const struct msc_joint *last = msc_graph_joint(taken, y->producer);
    assert_string_equal(y->alias, "y");
    assert_string_equal(last->name, "y");
    assert_string_equal(msc_graph_tensor(taken, last->operands[0])->alias, "x");
    msc_graph_destroy(taken);
    msc_graph_destroy(g);
    msc_array_release(array);
}

// The lengths of an If's inputs are bound in its bodies, too.
static void test_graph_bind_arrays__bound_bodies(void **state) {
    (void)state;
    struct msc_graph *g = branch_graph(), *bound;
    const struct msc_input_shape shapes[2] = {{.n_dims = 0}, {.n_dims = 2, .dims = {5, 2}}};
    assert_ok(msc_graph_bind_shapes(&bound, g, shapes, 2));
    check_dims(bound, msc_graph_output(bound, 0), 2, (const int64_t[]){5, 2});
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
}

// The branches have different numbers of dimensions; the input `n` selects the branch.
static void test_graph_bind_arrays__load_bound(void **state) {
    (void)state;
    static const char path[] = MSC_TESTS_FOLDER "/graph/files/branches.onnx";
    const struct msc_binding binding = {"n", 1};
    struct msc_graph *g;
    bool is_bound;
    assert_int_not_equal(msc_graph_load(&g, path), MSC_OK);
    assert_message("dimensions in one body");
    assert_ok(msc_graph_load_bound(&g, &is_bound, path, &binding, 1, NULL));
    assert_true(is_bound);
    assert_int_equal(msc_graph_n_inputs(g), 2);
    check_dims(g, msc_graph_output(g, 0), 1, (const int64_t[]){3});
    assert_int_not_equal(msc_graph_find_joint(g, "if/then/Squeeze"), MSC_NO_ID);
    assert_string_equal(msc_graph_tensor(g, msc_graph_output(g, 0))->alias, "y");
    msc_graph_destroy(g);
}

static void check_outputs(const struct msc_graph *g, int32_t n, const char *const names[]) {
    assert_int_equal(msc_graph_n_outputs(g), n);
    for (int32_t i = 0; i < n; i++) {
        int32_t tensor = msc_graph_output(g, i);
        assert_string_equal(msc_graph_tensor(g, tensor)->alias, names[i]);
        assert_int_equal(msc_graph_find_tensor(g, names[i]), tensor);
    }
}

// A taken branch's outputs get the names of the If's outputs. This holds even if a value already
// has a name as an output of the outer graph or as another output of the branch.
static void test_graph_bind_arrays__names_of_outputs(void **state) {
    (void)state;
    static const char path[] = MSC_TESTS_FOLDER "/graph/files/branch_outputs.onnx";
    static const char *const names[] = {"a", "p", "q", "r", "s"};
    for (int64_t n = 0; n < 2; n++) {
        const struct msc_binding binding = {"n", 1 + n};
        const int64_t number = 1 + n;
        struct msc_array *array;
        struct msc_graph *plain, *bound, *taken;
        bool is_bound;
        int32_t n_taken;
        assert_ok(msc_graph_load(&plain, path));
        check_outputs(plain, 5, names);
        assert_ok(msc_graph_load_bound(&bound, &is_bound, path, &binding, 1, NULL));
        assert_true(is_bound);
        check_outputs(bound, 5, names);
        assert_ok(msc_array_create_from(&array, MSC_DTYPE_I64, 0, NULL, &number));
        assert_ok(msc_graph_take_branches(&taken, &n_taken, plain,
                                          (const struct msc_array *const[]){NULL, array}, 2));
        assert_int_equal(n_taken, 1);
        check_outputs(taken, 5, names);
        msc_array_release(array);
        msc_graph_destroy(taken);
        msc_graph_destroy(bound);
        msc_graph_destroy(plain);
    }
}

// Like the test above, but `n` is given as an input array instead of a binding.
static void test_graph_bind_arrays__load_for(void **state) {
    (void)state;
    static const char path[] = MSC_TESTS_FOLDER "/graph/files/branches.onnx";
    const int64_t n[2] = {1, 2};
    struct msc_array_list feeds = {0};
    struct msc_array *array;
    struct msc_graph *g;
    for (int i = 0; i < 2; i++) { // first one branch is taken, then the other
        assert_ok(msc_array_create_from(&array, MSC_DTYPE_I64, 0, NULL, &n[i]));
        assert_ok(msc_array_list_add(&feeds, "n", array));
        assert_ok(msc_graph_load_for(&g, path, &feeds, NULL));
        check_dims(g, msc_graph_output(g, 0), i == 0 ? 1 : 2,
                   i == 0 ? (const int64_t[]){3} : (const int64_t[]){3, 1});
        msc_graph_destroy(g);
        msc_array_release(array);
        msc_array_list_finish(&feeds);
    }
    assert_int_not_equal(msc_graph_load_for(&g, path, &feeds, NULL), MSC_OK);
    assert_message("dimensions in one body");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_bind_arrays__parameter),
        cmocka_unit_test(test_graph_bind_arrays__parameter_and_data),
        cmocka_unit_test(test_graph_bind_arrays__data),
        cmocka_unit_test(test_graph_bind_arrays__isolate),
        cmocka_unit_test(test_graph_bind_arrays__bodies),
        cmocka_unit_test(test_graph_bind_arrays__take_branches),
        cmocka_unit_test(test_graph_bind_arrays__nested_branches),
        cmocka_unit_test(test_graph_bind_arrays__bound_bodies),
        cmocka_unit_test(test_graph_bind_arrays__load_bound),
        cmocka_unit_test(test_graph_bind_arrays__load_for),
        cmocka_unit_test(test_graph_bind_arrays__names_of_outputs),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
