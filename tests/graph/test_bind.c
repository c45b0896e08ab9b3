// Binding symbolic dimensions to numbers. Expected shapes and attributes follow from the models
// that files/make_models.py writes.
#include "tests/graph/onnx_files.h"

#include "graph/passes/bind.h"
#include "graph/site.h"

static const struct msc_binding view_bindings[] = {{"N", 2}, {"H", 8}, {"W", 6}};

static void test_graph_bind__by_name(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("view")), *bound;
    assert_false(msc_graph_is_bound(g));
    assert_ok(msc_graph_bind(&bound, g, view_bindings, 3));
    assert_true(msc_graph_is_bound(bound));
    check_dims(output_of(bound, "conv"), "[2,4,4,3]");
    check_dims(output_of(bound, "reshape"), "[2,48]");
    // Binding turned the chain of shape arithmetic into an attribute. Names and aliases are
    // unchanged.
    assert_int_equal(msc_graph_n_joints(bound), 3);
    assert_string_equal(attr_of(bound, "reshape", "shape"), "2,-1");
    assert_string_equal(output_of(bound, "reshape")->alias, "y");
    assert_string_equal(output_of(bound, "conv")->alias, "c");
    assert_int_equal(msc_graph_n_prims(bound), 0);
    // The bound graph shares the elements of the original one.
    assert_ptr_equal(weight_of(bound, "conv", "weight")->data,
                     weight_of(g, "conv", "weight")->data);
    msc_graph_destroy(g);
    msc_graph_destroy(bound);
}

static void test_graph_bind__by_shapes(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("view")), *bound, *other;
    struct msc_input_shape shape = {4, {2, 3, 8, 6}};
    assert_ok(msc_graph_bind_shapes(&bound, g, &shape, 1));
    assert_ok(msc_graph_bind(&other, g, view_bindings, 3));
    assert_true(msc_graph_equal(bound, other, true));
    msc_graph_destroy(bound);
    msc_graph_destroy(other);
    msc_graph_destroy(g);
}

static void test_graph_bind__bound_again(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("view")), *bound, *again;
    assert_ok(msc_graph_bind(&bound, g, view_bindings, 3));
    assert_ok(msc_graph_bind(&again, bound, NULL, 0));
    assert_true(msc_graph_equal(bound, again, true));
    msc_graph_destroy(bound);
    msc_graph_destroy(again);
    msc_graph_destroy(g);
}

// A model without symbols does not change.
static void test_graph_bind__fixed_models(void **state) {
    (void)state;
    static const char *const paths[] = {
        MSC_TESTS_MODEL("names"),   MSC_TESTS_MODEL("outputs"), MSC_TESTS_MODEL("constants"),
        MSC_TESTS_MODEL("opset_9"), MSC_TESTS_MODEL("windows"), MSC_TESTS_MODEL("shared"),
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct msc_graph *g = load_file(paths[i]), *bound;
        assert_ok(msc_graph_bind(&bound, g, NULL, 0));
        assert_true(msc_graph_equal(g, bound, true));
        msc_graph_destroy(g);
        msc_graph_destroy(bound);
    }
}

static void test_graph_bind__errors(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("view")), *bound = NULL;
    const struct msc_binding unknown[] = {{"N", 2}, {"batch", 3}};
    assert_int_equal(msc_graph_bind(&bound, g, unknown, 2), MSC_E_INVALID);
    assert_message(
        "bind: no input or input dimension is called \"batch\"; possible names: N, H, W");
    assert_int_equal(msc_graph_bind(&bound, g, view_bindings, 2), MSC_E_INVALID);
    assert_message("input 'x': dimension 3, 'W', is not bound; give it a value: --bind W=N");
    const struct msc_binding zero = {"N", 0};
    assert_int_equal(msc_graph_bind(&bound, g, &zero, 1), MSC_E_INVALID);
    assert_message("symbol 'N' is bound to 0");
    const struct msc_input_shape ranks = {3, {2, 3, 8}};
    assert_int_equal(msc_graph_bind_shapes(&bound, g, &ranks, 1), MSC_E_INVALID);
    assert_message("input 'x' has 4 dimensions, but the given shape has 3");
    const struct msc_input_shape channels = {4, {2, 4, 8, 6}};
    assert_int_equal(msc_graph_bind_shapes(&bound, g, &channels, 1), MSC_E_INVALID);
    assert_message("input 'x': dimension 1 is 4, expected 3");
    assert_int_equal(msc_graph_bind_shapes(&bound, g, &channels, 0), MSC_E_INVALID);
    assert_message("has 1 inputs, but 0 shapes were given");
    msc_graph_destroy(g);
    g = load_file(MSC_TESTS_MODEL("dims"));
    const struct msc_input_shape shapes[] = {{2, {4, 5}}, {2, {3, 1}}};
    assert_int_equal(msc_graph_bind_shapes(&bound, g, shapes, 2), MSC_E_INVALID);
    assert_message("input 'y': dimension 0 is 3, but its symbol 'N' is already bound to 4");
    assert_null(bound);
    msc_graph_destroy(g);
}

// A shape that is also used as data becomes a constant with the joint's name.
static void test_graph_bind__shape_as_data(void **state) {
    (void)state;
    struct msc_graph *g, *bound;
    int32_t x, prim, shape, cast, sum;
    const int32_t prims[] = {0, MSC_NO_ID};
    assert_ok(msc_graph_create(&g, "g"));
    assert_ok(msc_graph_add_symbol(&prim, g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, DIMS(-1, 2), prims));
    shape = add_unary(g, MSC_OP_SHAPE_OF, "lengths", x);
    const struct msc_attr dtype = {"dtype", "float32"};
    cast = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CAST,
                                                 .name = "cast",
                                                 .n_inputs = 1,
                                                 .inputs = &shape,
                                                 .n_attrs = 1,
                                                 .attrs = &dtype});
    sum = add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_ADD, .n_inputs = 2, .inputs = IDS(x, cast)});
    assert_ok(msc_graph_set_outputs(g, 2, IDS(sum, shape)));
    assert_ok(msc_graph_finalize(g));
    const struct msc_binding binding = {"N", 5};
    assert_ok(msc_graph_bind(&bound, g, &binding, 1));
    assert_string_equal(op_of(bound, "lengths"), "constant");
    assert_string_equal(op_of(bound, "cast"), "constant");
    check_floats(weight_of(bound, "cast", "const"), 2, (const float[]){5.0f, 2.0f});
    const struct msc_tensor *lengths = weight_of(bound, "lengths", "const");
    assert_int_equal(lengths->dtype, MSC_DTYPE_I64);
    assert_int_equal(msc_array_get_i64(lengths->data, 0), 5);
    assert_string_equal(msc_graph_tensor(bound, msc_graph_output(bound, 1))->name, "lengths:0");
    msc_graph_destroy(g);
    msc_graph_destroy(bound);
}

// A bound copy has the same slots in the same order.
static void test_graph_bind__slots(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("view")), *bound;
    struct msc_sites before, after;
    assert_ok(msc_graph_bind(&bound, g, view_bindings, 3));
    assert_ok(msc_sites_find(&before, g, NULL));
    assert_ok(msc_sites_find(&after, bound, NULL));
    assert_int_equal(before.n_slots, after.n_slots);
    for (int32_t i = 0; i < before.n_slots; i++) {
        assert_string_equal(msc_graph_joint(g, before.slots[i].joint)->name,
                            msc_graph_joint(bound, after.slots[i].joint)->name);
        assert_int_equal(before.slots[i].operand, after.slots[i].operand);
    }
    msc_sites_finish(&before);
    msc_sites_finish(&after);
    msc_graph_destroy(g);
    msc_graph_destroy(bound);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_bind__by_name),
        cmocka_unit_test(test_graph_bind__by_shapes),
        cmocka_unit_test(test_graph_bind__bound_again),
        cmocka_unit_test(test_graph_bind__fixed_models),
        cmocka_unit_test(test_graph_bind__errors),
        cmocka_unit_test(test_graph_bind__shape_as_data),
        cmocka_unit_test(test_graph_bind__slots),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
