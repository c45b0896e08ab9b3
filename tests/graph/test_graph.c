// The graph API: building, names, queries, replacing joints and tensors, and errors. Expected
// values follow from the small graphs of graph_samples.h.
#include "tests/graph/graph_samples.h"

// Compares the names of the joints `ids` with `expected`, such as "a,b".
static void check_joints(const struct msc_graph *g, const int32_t ids[], int32_t n,
                         const char *expected) {
    struct msc_str text = {0};
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(&text, i > 0 ? "," : "");
        msc_str_append(&text, msc_graph_joint(g, ids[i])->name);
    }
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void check_consumers(const struct msc_graph *g, const char *tensor, const char *expected) {
    const int32_t *joints;
    int32_t id = msc_graph_find_tensor(g, tensor);
    assert_int_not_equal(id, MSC_NO_ID);
    int32_t n = msc_graph_consumers(g, id, &joints);
    check_joints(g, joints, n, expected);
}

static void test_graph_graph__find(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    assert_string_equal(msc_graph_name(g), "branches");
    assert_int_equal(msc_graph_find_joint(g, "split"), 3);
    assert_int_equal(msc_graph_find_joint(g, "none"), MSC_NO_ID);
    int32_t sum = msc_graph_find_tensor(g, "add:0");
    assert_int_equal(msc_graph_find_tensor(g, "sum"), sum);
    assert_string_equal(msc_graph_tensor(g, sum)->name, "add:0");
    assert_int_equal(msc_graph_find_tensor(g, "data"), msc_graph_find_tensor(g, "x:0"));
    int32_t weight = msc_graph_find_tensor(g, "shared.weight");
    assert_int_equal(msc_graph_tensor(g, weight)->producer, MSC_NO_ID);
    assert_int_equal(msc_graph_find_tensor(g, ""), MSC_NO_ID);
    assert_int_equal(msc_graph_find_tensor(g, "split:2"), MSC_NO_ID);
    assert_int_equal(msc_graph_find_prim(g, "batch"), 0);
    assert_int_equal(msc_graph_find_prim(g, "seq"), MSC_NO_ID);
    msc_graph_destroy(g);
}

static void test_graph_graph__consumers_read_that_output(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    check_consumers(g, "split:0", "relu");
    check_consumers(g, "split:1", "add,tanh");
    check_consumers(g, "shared.weight", "conv_a,conv_b");
    check_consumers(g, "add:0", "");
    int32_t weight = msc_graph_find_tensor(g, "shared.weight");
    assert_int_equal(msc_graph_producer(g, weight), find(g, "conv_a"));
    assert_int_equal(msc_graph_producer(g, msc_graph_find_tensor(g, "split:1")), find(g, "split"));
    msc_graph_destroy(g);
}

static void test_graph_graph__links(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    const struct msc_joint *split = msc_graph_joint(g, find(g, "split"));
    check_joints(g, split->parents, split->n_parents, "conv_b");
    check_joints(g, split->children, split->n_children, "relu,add,tanh");
    const struct msc_joint *add = msc_graph_joint(g, find(g, "add"));
    check_joints(g, add->parents, add->n_parents, "relu,split");
    const int32_t *joints;
    int32_t n = msc_graph_entries(g, &joints);
    check_joints(g, joints, n, "x");
    n = msc_graph_exits(g, &joints);
    check_joints(g, joints, n, "add,tanh");
    assert_string_equal(msc_graph_joint(g, find(g, "conv_a"))->shared_ref, "");
    assert_string_equal(msc_graph_joint(g, find(g, "conv_b"))->shared_ref, "conv_a");
    msc_graph_destroy(g);
}

static void test_graph_graph__negative_positions(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    assert_int_equal(msc_graph_output(g, -1), msc_graph_find_tensor(g, "act"));
    assert_int_equal(msc_graph_output(g, -2), msc_graph_output(g, 0));
    assert_int_equal(msc_graph_input(g, -1), msc_graph_input(g, 0));
    const struct msc_joint *split = msc_graph_joint(g, find(g, "split"));
    assert_int_equal(msc_joint_output(split, -1), split->outputs[1]);
    assert_int_equal(msc_joint_child(split, -1), find(g, "tanh"));
    assert_int_equal(msc_joint_parent(split, -1), find(g, "conv_b"));
    const struct msc_joint *add = msc_graph_joint(g, find(g, "add"));
    assert_int_equal(msc_joint_input(add, -2), msc_graph_find_tensor(g, "relu:0"));
    const struct msc_tensor *x = msc_graph_tensor(g, msc_graph_input(g, 0));
    assert_int_equal(msc_tensor_dim(x, -3), 4);
    assert_int_equal(msc_tensor_dim(x, 0), -1);
    msc_graph_destroy(g);
}

static void test_graph_graph__weight_of(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "held"));
    int32_t x = add_input(g, "x", "", 2, DIMS(1, 3));
    int32_t w = add_weight(g, "w", "", 2, DIMS(1, 3));
    int32_t held = add_joint(g, &(struct msc_joint_spec){
                                    .op = MSC_OP_CONSTANT,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){"const", w},
                                });
    int32_t relu = add_unary(g, MSC_OP_RELU, "relu", held);
    assert_int_equal(msc_graph_weight_of(g, w), w);
    assert_int_equal(msc_graph_weight_of(g, held), w);
    assert_int_equal(msc_graph_weight_of(g, x), MSC_NO_ID);
    assert_int_equal(msc_graph_weight_of(g, relu), MSC_NO_ID);
    msc_graph_destroy(g);
}

static void test_graph_graph__tensors(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    struct msc_graph *h = make_conv_relu();
    const struct msc_tensor *x = msc_graph_tensor(g, msc_graph_input(g, 0));
    const struct msc_tensor *w = msc_graph_tensor(h, msc_graph_find_tensor(h, "const"));
    assert_int_equal(msc_tensor_n_elements(x), -1);
    assert_int_equal(msc_tensor_n_elements(w), 18);
    assert_int_equal(msc_tensor_axis(w, 'O'), 0);
    assert_int_equal(msc_tensor_axis(w, 'H'), 2);
    assert_int_equal(msc_tensor_axis(w, 'C'), -1);
    assert_int_equal(msc_tensor_axis(w, '\0'), -1);
    assert_false(msc_graph_is_bound(g));
    assert_true(msc_graph_is_bound(h));
    assert_true(msc_graph_is_output(g, msc_graph_find_tensor(g, "sum")));
    assert_false(msc_graph_is_output(g, msc_graph_find_tensor(g, "split:0")));
    const struct msc_tensor *first = msc_graph_tensor(g, msc_graph_find_tensor(g, "split:0"));
    const struct msc_tensor *second = msc_graph_tensor(g, msc_graph_find_tensor(g, "split:1"));
    assert_true(msc_tensor_equal(g, first, g, second));
    assert_false(msc_tensor_equal(g, first, g, x));
    msc_graph_destroy(g);
    msc_graph_destroy(h);
}

static void test_graph_graph__attributes(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    const struct msc_joint *conv = msc_graph_joint(g, find(g, "conv_a"));
    int64_t groups, list[4] = {9, 9, 9, 9};
    bool flag;
    float real;
    assert_string_equal(msc_joint_attr(conv, "data_layout"), "NCHW");
    assert_null(msc_joint_attr(conv, "none"));
    assert_true(msc_joint_attr_i64(conv, "groups", &groups));
    assert_int_equal(groups, 1);
    assert_false(msc_joint_attr_i64(conv, "strides", &groups));
    assert_false(msc_joint_attr_i64(conv, "data_layout", &groups));
    assert_true(msc_joint_attr_bool(conv, "groups", &flag) && flag);
    assert_true(msc_joint_attr_float(conv, "groups", &real) && real == 1.0f);
    assert_int_equal(msc_joint_attr_list(conv, "padding", list, 3), 4);
    assert_int_equal(list[2], 0);
    assert_int_equal(list[3], 9);
    assert_int_equal(msc_joint_attr_list(conv, "groups", list, 4), 1);
    assert_int_equal(msc_joint_attr_list(conv, "data_layout", list, 4), -1);
    assert_int_equal(msc_joint_attr_list(conv, "none", list, 4), -1);
    for (int32_t i = 1; i < conv->n_attrs; i++) {
        assert_true(strcmp(conv->attrs[i - 1].key, conv->attrs[i].key) < 0);
    }
    assert_int_equal(msc_joint_operand(conv, "weight"), 1);
    assert_int_equal(msc_joint_operand(conv, "bias"), -1);
    assert_int_equal(msc_joint_weight(conv, "weight"), conv->operands[1]);
    assert_int_equal(msc_joint_weight(conv, "bias"), MSC_NO_ID);
    msc_graph_destroy(g);
}

static void test_graph_graph__names_are_made_unique(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "names"));
    int32_t x = add_input(g, "relu", "", 1, DIMS(3));
    int32_t a = add_unary(g, MSC_OP_RELU, NULL, x);
    int32_t b = add_unary(g, MSC_OP_RELU, "", a);
    int32_t c = add_unary(g, MSC_OP_TANH, "relu_1", b);
    assert_string_equal(msc_graph_tensor(g, a)->name, "relu_1:0");
    assert_string_equal(msc_graph_tensor(g, b)->name, "relu_2:0");
    assert_string_equal(msc_graph_tensor(g, c)->name, "tanh:0");
    int32_t tensor;
    assert_int_equal(msc_graph_add_input(&tensor, g, "relu", NULL, MSC_DTYPE_F32, "", 0, NULL),
                     MSC_E_INVALID);
    assert_message("'relu'");
    msc_graph_destroy(g);
}

static void test_graph_graph__default_aliases(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    int32_t second = msc_graph_find_tensor(g, "split:1");
    int32_t relu = msc_graph_find_tensor(g, "relu:0");
    assert_ok(msc_graph_set_outputs(g, 2, IDS(second, relu)));
    assert_string_equal(msc_graph_tensor(g, second)->alias, "split_1");
    assert_string_equal(msc_graph_tensor(g, relu)->alias, "relu");
    msc_graph_destroy(g);
}

static void test_graph_graph__refuses(void **state) {
    (void)state;
    struct msc_graph *g;
    int32_t x, id;
    assert_ok(msc_graph_create(&g, "bad"));
    x = add_input(g, "x", "NCHW", 4, DIMS(1, 3, 4, 4));
    int32_t w = add_weight(g, "w", "OIHW", 4, DIMS(6, 3, 1, 1));
    struct msc_joint_spec spec = {.op = MSC_OP_CONV2D, .name = "c", .n_inputs = 1, .inputs = &x};
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("joint 'c' (nn.conv2d) lacks its required operand 'weight'");
    spec.n_weights = 1;
    spec.weights = &(struct msc_weight_spec){"bias", w};
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    spec.weights = &(struct msc_weight_spec){"weight", x};
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("expected a weight");
    spec.weights = &(struct msc_weight_spec){"weight", w};
    spec.inputs = &w;
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("expected a joint's output");
    spec.inputs = IDS(x, x);
    spec.n_inputs = 2;
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("expects 1 inputs, found 2");
    spec.n_inputs = 1;
    spec.n_attrs = 1;
    spec.attrs = &(struct msc_attr){"strides", "1,x"};
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("attribute strides is '1,x', expected integers");
    spec.n_attrs = 2;
    spec.attrs = (const struct msc_attr[]){{"groups", "1"}, {"groups", "3"}};
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("given twice");
    spec = (struct msc_joint_spec){.op = MSC_OP_RESHAPE, .n_inputs = 1, .inputs = &x};
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("'shape'");
    spec.op = MSC_OP_CAST;
    assert_int_equal(msc_graph_add_joint(&id, g, &spec), MSC_E_INVALID);
    assert_message("lacks its required attribute dtype");
    assert_int_equal(
        msc_graph_add_input(&id, g, "y", NULL, MSC_DTYPE_F32, "NC", 4, DIMS(1, 3, 4, 4)),
        MSC_E_INVALID);
    assert_message("layout 'NC'");
    assert_int_equal(msc_graph_add_input(&id, g, "y", NULL, MSC_DTYPE_F32, "", 1, DIMS(-1)),
                     MSC_E_INVALID);
    assert_int_equal(msc_graph_set_outputs(g, 1, &w), MSC_E_INVALID);
    assert_message("is a weight");
    assert_int_equal(msc_graph_finalize(g), MSC_E_STATE);
    assert_message("no outputs");
    msc_graph_destroy(g);
}

static void test_graph_graph__dead_parts_go(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    int32_t joint = find(g, "tanh");
    add_weight(g, "unused", "", 1, DIMS(3));
    int32_t seq;
    assert_ok(msc_graph_add_symbol(&seq, g, "seq"));
    assert_ok(msc_graph_set_outputs(g, 1, IDS(msc_graph_find_tensor(g, "conv_a:0"))));
    add_input(g, "spare", "", 1, DIMS(2));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(msc_graph_n_joints(g), 3);
    assert_int_equal(msc_graph_n_inputs(g), 2);
    assert_int_equal(msc_graph_n_tensors(g), 4);
    assert_int_equal(msc_graph_n_prims(g), 1);
    assert_int_equal(msc_graph_find_tensor(g, "unused"), MSC_NO_ID);
    assert_int_equal(msc_graph_find_joint(g, "tanh"), MSC_NO_ID);
    assert_int_equal(joint, 6);
    check_consumers(g, "shared.weight", "conv_a");
    msc_graph_destroy(g);
}

// Replaces a joint in the middle by another with the same name; the order stays topological.
static void test_graph_graph__replace_joint(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    int32_t old = find(g, "conv_b");
    int32_t old_output = msc_graph_joint(g, old)->outputs[0];
    int32_t input = msc_graph_joint(g, old)->inputs[0];
    assert_ok(msc_graph_remove_joint(g, old));
    assert_int_equal(msc_graph_finalize(g), MSC_E_INVALID);
    assert_message("joint 'split' reads 'conv_b:0', whose producer was removed");
    int32_t w = add_weight(g, "own.weight", "OIHW", 4, DIMS(4, 4, 1, 1));
    int32_t output = add_conv(g, "conv_b", input, w);
    assert_string_equal(msc_graph_tensor(g, output)->name, "conv_b:0");
    assert_ok(msc_graph_replace_tensor(g, old_output, output));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(msc_graph_n_joints(g), 7);
    assert_int_equal(find(g, "conv_b"), 2);
    assert_int_equal(find(g, "split"), 3);
    check_consumers(g, "conv_b:0", "split");
    check_consumers(g, "shared.weight", "conv_a");
    check_consumers(g, "own.weight", "conv_b");
    assert_string_equal(msc_graph_joint(g, 2)->shared_ref, "");
    msc_graph_destroy(g);
}

// A joint placed after an output takes over the output's name, and reads the former output tensor.
static void test_graph_graph__replace_output(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    int32_t sum = msc_graph_find_tensor(g, "sum");
    int32_t clipped = add_unary(g, MSC_OP_CLIP, "clip", sum);
    assert_ok(msc_graph_replace_tensor(g, sum, clipped));
    assert_ok(msc_graph_finalize(g));
    assert_string_equal(msc_graph_tensor(g, msc_graph_output(g, 0))->name, "clip:0");
    assert_int_equal(msc_graph_find_tensor(g, "sum"), msc_graph_output(g, 0));
    check_consumers(g, "add:0", "clip");
    int32_t relu = msc_graph_find_tensor(g, "conv_a:0");
    assert_int_equal(msc_graph_replace_tensor(g, sum, relu), MSC_E_INVALID);
    assert_message("cannot replace");
    msc_graph_destroy(g);
}

static void test_graph_graph__cycle(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "cycle"));
    int32_t x = add_input(g, "x", "", 1, DIMS(3));
    int32_t a = add_unary(g, MSC_OP_RELU, "a", x);
    int32_t b = add_unary(g, MSC_OP_RELU, "b", a);
    int32_t c = add_unary(g, MSC_OP_RELU, "c", b);
    assert_ok(msc_graph_set_outputs(g, 1, &c));
    assert_ok(msc_graph_replace_tensor(g, x, b));
    assert_int_equal(msc_graph_finalize(g), MSC_E_INVALID);
    assert_message("depends on its own result");
    msc_graph_destroy(g);
}

static void test_graph_graph__weight_data(void **state) {
    (void)state;
    struct msc_graph *g = make_conv_relu();
    struct msc_graph *copy;
    assert_ok(msc_graph_clone(&copy, g));
    int32_t w = msc_graph_find_tensor(g, "const");
    struct msc_array *data, *other;
    assert_ok(msc_array_create(&data, MSC_DTYPE_F32, 4, DIMS(6, 3, 1, 1)));
    assert_ok(msc_array_create(&other, MSC_DTYPE_F32, 2, DIMS(6, 3)));
    assert_true(msc_graph_equal(g, copy, true));
    assert_ok(msc_graph_set_weight_data(g, w, data));
    assert_int_equal(msc_graph_set_weight_data(g, w, other), MSC_E_INVALID);
    assert_message("[6,3,1,1]");
    assert_true(msc_graph_equal(g, copy, false));
    assert_false(msc_graph_equal(g, copy, true));
    assert_true(msc_hash_equal(msc_graph_hash(g), msc_graph_hash(copy)));
    assert_false(msc_hash_equal(msc_graph_weights_hash(g), msc_graph_weights_hash(copy)));
    msc_array_release(data);
    msc_array_release(other);
    msc_graph_destroy(g);
    msc_graph_destroy(copy);
}

static void test_graph_graph__equal_sees_outputs(void **state) {
    (void)state;
    struct msc_graph *g = make_branches();
    struct msc_graph *copy;
    assert_ok(msc_graph_clone(&copy, g));
    assert_true(msc_graph_equal(g, copy, true));
    assert_true(msc_hash_equal(msc_graph_hash(g), msc_graph_hash(copy)));
    assert_ok(msc_graph_set_alias(copy, msc_graph_find_tensor(copy, "split:1"), "half"));
    assert_ok(msc_graph_finalize(copy));
    assert_false(msc_graph_equal(g, copy, false));
    assert_false(msc_hash_equal(msc_graph_hash(g), msc_graph_hash(copy)));
    msc_graph_destroy(copy);
    assert_ok(msc_graph_clone(&copy, g));
    int32_t sum = msc_graph_find_tensor(copy, "sum"), act = msc_graph_find_tensor(copy, "act");
    assert_ok(msc_graph_set_outputs(copy, 2, IDS(act, sum)));
    assert_ok(msc_graph_finalize(copy));
    assert_false(msc_graph_equal(g, copy, false));
    msc_graph_destroy(copy);
    msc_graph_destroy(g);
}

// An optional parameter may be an attribute, an input, or absent between two that are given.
static void test_graph_graph__optional_operands(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "clips"));
    int32_t x = add_input(g, "x", "", 1, DIMS(3));
    int32_t most = add_input(g, "most", "", 0, NULL);
    int32_t joint;
    struct msc_joint_spec spec = {
        .op = MSC_OP_CLIP, .n_inputs = 3, .inputs = IDS(x, MSC_NO_ID, most)};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    const struct msc_joint *j = msc_graph_joint(g, joint);
    assert_int_equal(j->n_operands, 3);
    assert_int_equal(j->operands[1], MSC_NO_ID);
    assert_int_equal(msc_joint_operand(j, "max"), 2);
    assert_int_equal(msc_joint_operand(j, "min"), -1);
    assert_int_equal(j->n_inputs, 2);
    assert_string_equal(msc_joint_attr(j, "min"), "");
    assert_null(msc_joint_attr(j, "max"));
    spec = (struct msc_joint_spec){.op = MSC_OP_CLIP,
                                   .n_inputs = 2,
                                   .inputs = IDS(x, most),
                                   .n_attrs = 1,
                                   .attrs = &(struct msc_attr){"min", "0.1"}};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    j = msc_graph_joint(g, joint);
    assert_int_equal(j->operands[2], most);
    float least;
    assert_true(msc_joint_attr_float(j, "min", &least));
    assert_true(least == 0.1f);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_graph__find),
        cmocka_unit_test(test_graph_graph__consumers_read_that_output),
        cmocka_unit_test(test_graph_graph__links),
        cmocka_unit_test(test_graph_graph__negative_positions),
        cmocka_unit_test(test_graph_graph__weight_of),
        cmocka_unit_test(test_graph_graph__tensors),
        cmocka_unit_test(test_graph_graph__attributes),
        cmocka_unit_test(test_graph_graph__names_are_made_unique),
        cmocka_unit_test(test_graph_graph__default_aliases),
        cmocka_unit_test(test_graph_graph__refuses),
        cmocka_unit_test(test_graph_graph__dead_parts_go),
        cmocka_unit_test(test_graph_graph__replace_joint),
        cmocka_unit_test(test_graph_graph__replace_output),
        cmocka_unit_test(test_graph_graph__cycle),
        cmocka_unit_test(test_graph_graph__weight_data),
        cmocka_unit_test(test_graph_graph__equal_sees_outputs),
        cmocka_unit_test(test_graph_graph__optional_operands),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
